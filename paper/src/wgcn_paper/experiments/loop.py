"""Run the experiments of the labelling loop on many cores: ``python -m wgcn_paper.experiments.loop --help``.

What ``wgcn-paper reproduce`` does for one table after the other, this does for several at once, each cell in a process
with one thread, and without the packages of the command line. Every run is saved as it finishes; repeated, the command
goes on where it was. Cells whose data or packages are missing are left out with a message.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wgcn_paper.experiments.cells import Cell, Run

__all__ = ["NAMES", "main", "selected_cells"]

NAMES = ("explanations", "seeds", "suggest", "review", "abstain", "update")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# CPU seconds of a fit of wgcn, roughly: the longest cells are begun first.
_SECONDS = {"20ng": 20.0, "20ng-coarse": 20.0, "ohsumed": 4.0, "r52": 5.0, "r8": 2.5, "mr": 1.0}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, write the reports, and return 1 if a cell has failed."""
    options = _options(arguments)
    # Before numpy and numba are loaded, here and in the processes that are started.
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    if options.data:
        os.environ["WGCN_DATA"] = str(options.data.resolve())
    from wgcn_paper.experiments.results import ResultFile
    from wgcn_paper.experiments.runner import workers

    chosen = {name: selected_cells(name, options.datasets, options.seeds, options.quick) for name in options.names}
    files = {name: ResultFile(options.out, name, reuse=False) for name in chosen}
    todo = [(name, cell) for name, cells in chosen.items() for cell in files[name].missing(_possible(cells))]
    todo.sort(key=lambda item: -_cost(item[1]))
    started, done, failed = time.time(), 0, 0
    until = started + 60 * options.minutes
    with workers(options.jobs) as pool:
        for (name, cell), outcome in pool.each(_attempt, todo, until, group=_group):
            done += 1
            what = (
                f"[{done}/{len(todo)}, {(time.time() - started) / 60:.1f} min] {name} {' '.join(map(str, cell.place))}"
            )
            if outcome is None:
                continue
            if isinstance(outcome, str):
                failed += 1
                print(f"{what} FAILED: {outcome}", flush=True)
                continue
            files[name].add([outcome])
            print(f"{what}: {outcome.accuracy:.4f} ({outcome.metrics['cpu_seconds']:.0f} CPU s)", flush=True)
    for name, cells in chosen.items():
        _finish(name, files[name].runs(cells), len(cells), options.out)
    return 1 if failed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m wgcn_paper.experiments.loop", description=__doc__)
    parser.add_argument("--names", type=_names, default=NAMES, metavar="A,B", help=f"some of {','.join(NAMES)}")
    parser.add_argument("--datasets", type=_names, metavar="A,B", help="only these data sets")
    parser.add_argument("--seeds", type=int, help="at most this many draws")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes, each with one thread")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no cell after this time")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results; those in it are not run again")
    parser.add_argument("--data", type=Path, help="data folder; default: that of WGCN_DATA")
    parser.add_argument("--quick", action="store_true", help="training documents only: a fifth of them for testing")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no experiment {', '.join(unknown)}")
    return options


def _names(text: str) -> list[str]:
    return text.split(",")


def selected_cells(name: str, datasets: Sequence[str] | None, seeds: int | None, quick: bool) -> list[Cell]:
    """Return the cells of an experiment, on those of the given data sets that it has."""
    from wgcn_paper.experiments.table import Options, load_table

    table = load_table(name)
    known = None if datasets is None else [dataset for dataset in table.datasets if dataset in datasets]
    cells = table.cells(Options(known, seeds=seeds))
    return [replace(cell, settings={**cell.settings, "held_out": True}) for cell in cells] if quick else cells


def _possible(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells whose packages and data are there, and say which are not."""
    from wgcn.errors import WGCNError
    from wgcn_paper.datasets.groups import COARSE, COARSE_SOURCE
    from wgcn_paper.datasets.layout import find_folder
    from wgcn_paper.methods.baseline import method_class

    reasons: dict[tuple[str, str], str] = {}
    for method, dataset in dict.fromkeys((cell.method, cell.dataset) for cell in cells):
        missing = [package for package in method_class(method).packages if find_spec(package) is None]
        try:
            find_folder(COARSE_SOURCE if dataset == COARSE else dataset)
        except WGCNError:
            missing.append(f"the data set {dataset}")
        if missing:
            reasons[method, dataset] = ", ".join(missing)
    for (method, dataset), reason in reasons.items():
        print(f"Left out: {method} on {dataset}, for want of {reason}.", flush=True)
    return [cell for cell in cells if (cell.method, cell.dataset) not in reasons]


def _cost(cell: Cell) -> float:
    from wgcn_paper.methods.baseline import method_class

    method: Any = method_class(cell.method)(cell.settings)
    return float(method.cost * _SECONDS.get(cell.dataset, 1.0))


def _group(item: tuple[str, Cell]) -> str:
    """Return what cells share in a process: the draws of explanations share a fit, all others nothing."""
    name, cell = item
    return f"{name} {cell.dataset}" if name == "explanations" else cell.key


def _attempt(item: tuple[str, Cell], until: float) -> Run | str | None:
    """Return the run of a cell, or why there is none; None if it is too late to begin."""
    if time.time() > until:
        return None
    from wgcn_paper.experiments.cells import run_cell

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model warns of few labels and wrong seeds, which are what is measured
        try:
            return run_cell(item[1])
        except Exception as error:  # one cell that fails must not end the others
            return f"{type(error).__name__}: {error}"


def _cpu(runs: list[Run]) -> float:
    return float(sum(run.metrics["cpu_seconds"] for run in runs))


def _finish(name: str, runs: list[Run], wanted: int, folder: Path) -> None:
    from wgcn.errors import WGCNError
    from wgcn_paper.experiments.reproduce import write_report
    from wgcn_paper.experiments.table import load_table

    print(f"{name}: {len(runs)} of {wanted} cells, {_cpu(runs) / 60:.1f} CPU minutes in all")
    if runs:
        try:
            print(f"Report: {write_report(load_table(name), runs, folder)}", flush=True)
        except (WGCNError, ImportError) as error:  # no matplotlib: the runs are saved, and the report can be made later
            print(f"No report: {error}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
