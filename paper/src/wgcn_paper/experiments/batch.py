"""Run several tables at once on many cores, or search for settings: ``python -m wgcn_paper.experiments.batch --help``.

What ``wgcn-paper reproduce`` does for one table after the other, this does for several at once, each cell in a process
with few threads, and without the packages of the command line. Every run is saved as it finishes; repeated, the command
goes on where it was. Cells whose data or packages are missing are left out with a message. Results of another machine
are taken over with ``--merge``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wgcn_paper.experiments.cells import Cell, Run
    from wgcn_paper.experiments.table import Options, Table

    Item = tuple[str, Cell]  # with the name of its table


LOOP = ("explanations", "seeds", "suggest", "review", "abstain", "update")  # the tables of the labelling loop
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# CPU seconds of a fit of wgcn, roughly: the longest cells are begun first.
_SECONDS = {"20ng": 20.0, "20ng-coarse": 20.0, "ohsumed": 4.0, "r52": 5.0, "r8": 2.5, "mr": 1.0, "mr-thinned": 1.0}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, write the reports, and return 1 if a cell has failed."""
    options = _options(arguments)
    # Before numpy and numba are loaded, here and in the processes that are started.
    os.environ.update(dict.fromkeys(_THREADS, str(options.threads)))
    if options.data:
        os.environ["WGCN_DATA"] = str(options.data.resolve())
    if options.merge:
        return _merge(options)
    until = time.time() + 60 * options.minutes
    return _search(options, until) if options.search else _run(options, until)


def _run(options: argparse.Namespace, until: float) -> int:
    from wgcn_paper.experiments.results import ResultFile
    from wgcn_paper.experiments.runner import workers
    from wgcn_paper.resume import resume

    chosen = {name: selected_cells(name, options) for name in options.names}
    files = {name: ResultFile(options.out, name, reuse=False) for name in chosen}
    todo = [(name, cell) for name, cells in chosen.items() for cell in files[name].missing(_possible(cells))]
    todo.sort(key=lambda item: -_cost(item[1]))
    started = time.time()
    failed: list[Item] = []

    def do(items: list[Item]) -> Iterator[tuple[Item, Run | str | None]]:
        return pool.each(_attempt, items, options.device, until, group=_group)

    def keep(item: Item, outcome: Run | str) -> None:
        if isinstance(outcome, str):
            failed.append(item)
        else:
            files[item[0]].add([outcome])

    def show(done: int, total: int, item: Item | None, outcome: Run | str | None) -> None:
        if item is None or outcome is None:
            return
        place = " ".join(map(str, (item[0], *item[1].place)))
        said = f"[{done}/{total}, {(time.time() - started) / 60:.1f} min] {place}"
        if isinstance(outcome, str):
            print(f"{said} FAILED: {outcome}", flush=True)
        else:
            print(f"{said}: {outcome.accuracy:.4f} ({outcome.fit_seconds:.0f} s)", flush=True)

    # What earlier cells leave in a process counts as memory, so costs are always measured in new ones.
    with workers(options.jobs, fresh=options.fresh or "efficiency" in chosen) as pool:
        resume(todo, lambda item: (item[0], item[1].place), (), do, keep, show)
    for name, cells in chosen.items():
        _finish(name, files[name].runs(cells), len(cells), options.out)
    return 1 if failed else 0


def _search(options: argparse.Namespace, until: float) -> int:
    from wgcn_paper.experiments.runner import workers
    from wgcn_paper.experiments.search import search

    def show(done: int, total: int, last: str) -> None:
        print(f"[{done}/{total}] {last}", flush=True)

    how = {"trials": options.trials, "device": options.device, "progress": show, "until": until}
    with workers(options.jobs) as pool:
        for name in options.names:
            table = _table(name)
            print(search(table, _selection(table, options), options.out, pool, **how), flush=True)
    return 0


def _merge(options: argparse.Namespace) -> int:
    """Take the runs of other folders over that belong to the tables of today."""
    from wgcn_paper.experiments.results import ResultFile

    for name in options.names:
        cells, file = _table(name).all_cells(), ResultFile(options.out, name, reuse=False)
        for folder in options.merge:
            found = ResultFile(folder, name, reuse=False).runs(cells)
            file.add(found)
            print(f"{name}: {len(found)} runs out of {folder}", flush=True)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    from wgcn_paper.experiments.pages import TABLES

    parser = argparse.ArgumentParser(prog="python -m wgcn_paper.experiments.batch", description=__doc__)
    parser.add_argument("--names", type=_names, default=LOOP, metavar="A,B", help=f"some of {','.join(TABLES)}")
    parser.add_argument("--datasets", type=_names, metavar="A,B", help="only these data sets")
    parser.add_argument("--protocols", type=_names, metavar="A,B", help="only these protocols")
    parser.add_argument("--models", type=_names, metavar="A,B", help="only the rows of these methods")
    parser.add_argument("--rows", type=lambda text: text.split(";"), metavar="A;B", help="only the rows of these names")
    parser.add_argument("--seeds", type=int, help="at most this many draws or seeds")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--threads", type=int, default=1, help="threads of each process")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--fresh", action="store_true", help="a new process for each cell, one after the other")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no cell after this time")
    parser.add_argument("--search", action="store_true", help="search for settings on validation documents instead")
    parser.add_argument("--trials", type=int, default=40, help="number of settings that --search tries per data set")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="DIR", help="take over the runs in these folders")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results; those in it are not run again")
    parser.add_argument("--data", type=Path, help="data folder; default: that of WGCN_DATA")
    parser.add_argument(
        "--quick", action="store_true", help="for the labelling loop: training documents only, a fifth of them to test"
    )
    options = parser.parse_args(arguments)
    if "efficiency" in options.names and options.device == "auto":
        parser.error("costs are of one device: name it, --device cpu or cuda")
    unknown = [name for name in options.names if name not in TABLES]
    if unknown:
        parser.error(f"there is no table {', '.join(unknown)}")
    return options


def _names(text: str) -> list[str]:
    return text.split(",")


def _table(name: str) -> Table:
    from wgcn_paper.experiments.table import load_table

    return load_table(name)


def _selection(table: Table, options: argparse.Namespace) -> Options:
    """Return what is selected of a table; names that it does not have are left out."""
    from wgcn_paper.experiments.table import Options

    return table.known(Options(options.datasets, options.protocols, options.rows, options.seeds, options.models))


def selected_cells(name: str, options: argparse.Namespace) -> list[Cell]:
    """Return the cells of a table that are selected."""
    from wgcn_paper.experiments.reproduce import selected

    table = _table(name)
    cells = selected(table, _selection(table, options), options.device)
    return [replace(cell, settings={**cell.settings, "held_out": True}) for cell in cells] if options.quick else cells


def _possible(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells that can be run here, and say which packages or data others lack."""
    from wgcn.base.errors import WGCNError
    from wgcn_paper.datasets.derived import SOURCES
    from wgcn_paper.datasets.layout import find_folder
    from wgcn_paper.methods.baseline import method_class

    reasons: dict[tuple[str, str], str] = {}
    for method, dataset in dict.fromkeys((cell.method, cell.dataset) for cell in cells):
        missing = [package for package in method_class(method).packages if find_spec(package) is None]
        try:
            find_folder(SOURCES.get(dataset, dataset))
        except WGCNError:
            missing.append(f"the data set {dataset}")
        if missing:
            reasons[method, dataset] = ", ".join(missing)
    for (method, dataset), reason in reasons.items():
        print(f"Left out: {method} on {dataset}, for want of {reason}.", flush=True)
    return [
        cell
        for cell in cells
        if (cell.method, cell.dataset) not in reasons and cell.version == method_class(cell.method).version
    ]


def _cost(cell: Cell) -> float:
    from wgcn_paper.methods.baseline import method_class

    method: Any = method_class(cell.method)(cell.settings)
    return float(getattr(method, "cost", 1.0) * _SECONDS.get(cell.dataset, 1.0))


def _group(item: Item) -> Hashable:
    """Return what cells share in a process: seeds of a method its preparations, draws of explanations a fit."""
    name, cell = item
    if name == "explanations":
        return name, cell.dataset
    return cell.key if name in LOOP else (name, *cell.place[:-1])


def _attempt(item: Item, device: str, until: float) -> Run | str | None:
    """Return the run of a cell, or why there is none; None if it is too late to begin."""
    if time.time() > until:
        return None
    from wgcn_paper.experiments.cells import run_cell

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model warns of few labels and wrong seeds, which are what is measured
        try:
            return run_cell(item[1], device)
        except Exception as error:  # one cell that fails must not end the others
            return f"{type(error).__name__}: {error}"


def _finish(name: str, runs: list[Run], wanted: int, folder: Path) -> None:
    from wgcn.base.errors import WGCNError
    from wgcn_paper.experiments.pages import write_report

    seconds = sum(float(run.metrics.get("cpu_seconds", run.fit_seconds)) for run in runs)
    print(f"{name}: {len(runs)} of {wanted} cells, {seconds / 60:.1f} minutes in all")
    if runs:
        try:
            print(f"Report: {write_report(_table(name), runs, folder)}", flush=True)
        except (WGCNError, ImportError) as error:  # no matplotlib: the runs are saved, and the report can be made later
            print(f"No report: {error}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
