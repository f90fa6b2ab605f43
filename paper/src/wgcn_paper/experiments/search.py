"""Search for hyper-parameters by validation accuracy; every trial is saved.

For each row and data set, and for each value that the table varies, settings out of the row's ranges are judged by the
accuracy on validation documents: the whole grid or, if that is larger than the number of trials, some of it, drawn at
random. Successive halving (Jamieson and Talwalkar, AISTATS 2016): all with one seed, the best with three, the best few
with six, because the highest of many noisy figures is rarely the best.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np

from wgcn.base.errors import InputError
from wgcn.base.files import write_file
from wgcn_paper.experiments.cells import Cell, make_cell, validate_cell
from wgcn_paper.experiments.environment import environment
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import NOTHING, markdown_table
from wgcn_paper.experiments.runner import Workers
from wgcn_paper.experiments.table import Options, Row, Table, row_name
from wgcn_paper.resume import resume

Progress = Callable[[int, int, str], Any]

_FORMAT = "wgcn-search-2"
# Seeds per trial in each round, and which share and least number of the trials of the round before are in it.
ROUNDS = ((1, 1.0, 1), (3, 0.2, 6), (6, 0.0, 3))
_OF_GRAPHS = ("window", "weight", "threshold", "norm", "power", "normalized", "citation_order", "directed")


def search(
    table: Table,
    options: Options,
    folder: Path,
    pool: Workers,
    *,
    trials: int = 40,
    device: str = "auto",
    progress: Progress | None = None,
    until: float = math.inf,
    rounds: Sequence[tuple[int, float, int]] = ROUNDS,
) -> Path:
    """Search the ranges of the rows that have any, and write all trials and the choice to ``<table>-search.json``.

    What was chosen is also written to ``<table>-search.toml``. As ``settings/searched/<table>.toml`` of the package, it
    has the settings of the rows that are marked as searched. The search continues an interrupted one, and begins no
    trial after the time `until`. Test documents are not used.
    """
    log = _Log(folder / f"{table.name}-search.json", table.name, rounds[-1][0])
    studies = [
        _Study(row, dataset, protocol, variant, values, _candidates(row, dataset, trials))
        for row in table.rows
        if row.search and not row.retired and (options.rows is None or row.name in options.rows)
        if options.models is None or row.method in options.models
        for protocol in _first(row.protocols or table.protocols, options.protocols)
        for dataset in table.datasets
        if options.datasets is None or dataset in options.datasets
        if row.seeds.get(dataset, 1)
        for variant, values in table.variants(row, dataset)
    ]
    if not studies:
        raise InputError(f"No row of '{table.name}' that was selected has ranges to search.")
    left = {study: study.candidates for study in studies}
    for n_seeds, share, least in rounds:
        left = {
            study: log.best(study, trials, max(least, math.ceil(share * len(trials)))) for study, trials in left.items()
        }
        cells = [cell for study, trials in left.items() for values in trials for cell in study.cells(values, n_seeds)]
        if not _judge(cells, log, pool, device, until, progress):
            return log.path
    for study, finalists in left.items():
        log.choose(study, finalists)
    log.save()
    log.save_settings()
    return log.path


def _judge(
    cells: Sequence[Cell], log: _Log, pool: Workers, device: str, until: float, progress: Progress | None
) -> bool:
    """Judge the cells that have not been; return whether all are."""

    def do(todo: list[Cell]) -> Iterator[tuple[Cell, tuple[float, dict[str, str]] | None]]:
        return pool.each(_validate, todo, device, until, group=_graph)

    def show(done: int, total: int, cell: Cell | None, _: object) -> None:
        if progress and cell is not None:
            progress(done, total, f"{cell.dataset} {cell.variant}")

    resume(sorted(cells, key=_graph), lambda cell: cell.key, log.accuracies, do, log.add, show)
    return all(cell.key in log.accuracies for cell in cells)


def _graph(cell: Cell) -> tuple[str, ...]:
    """Return what a graph depends on: trials with the same graph share it if they are in the same process."""
    return cell.dataset, cell.method, *(str(cell.settings.get(name)) for name in _OF_GRAPHS)


def _validate(cell: Cell, device: str, until: float) -> tuple[float, dict[str, str]] | None:
    """Return the validation accuracy of a cell, 0 if its loss is not finite, and where it was found."""
    if time.time() > until:
        return None
    try:
        return validate_cell(cell, device), environment()
    except InputError as error:
        if "loss" not in str(error):
            raise
        return 0.0, environment()


def _candidates(row: Row, dataset: str, trials: int) -> list[dict[str, Any]]:
    """Return the row's own settings, if they are in the ranges, and others out of the grid."""
    grid = [dict(zip(row.search, values, strict=True)) for values in itertools.product(*row.search.values())]
    grid = [grid[i] for i in np.random.default_rng(0).permutation(len(grid))]
    own = {name: row.settings_for(dataset).get(name) for name in row.search}
    grid.sort(key=lambda values: values != own)
    return grid[:trials]


def _first(protocols: Sequence[str], wanted: Collection[str] | None) -> Sequence[str]:
    """Return the protocol to search under: the first that is wanted."""
    return [name for name in protocols if wanted is None or name in wanted][:1]


@dataclass(frozen=True, eq=False)
class _Study:
    """The search of one row on one data set, with one value of what the table varies."""

    row: Row
    dataset: str
    protocol: str
    variant: str
    varied: dict[str, Any]
    candidates: list[dict[str, Any]]

    def cells(self, values: dict[str, Any], n_seeds: int) -> list[Cell]:
        settings = {**self.row.settings_for(self.dataset), **self.varied, **values}
        # A refit on all documents would leave no held-out documents to judge by.
        settings.update({"refit": False} if "refit" in settings else {})
        return [
            make_cell(self.dataset, self.protocol, self.row.method, settings, seed, self.variant)
            for seed in range(n_seeds)
        ]


class _Log:
    """All trials, saved after each."""

    def __init__(self, path: Path, table: str, final_seeds: int) -> None:
        self.path, self.table, self.final_seeds = path, table, final_seeds
        self.accuracies: dict[str, float] = {}
        self._entries: list[dict[str, Any]] = []
        self._chosen: list[dict[str, Any]] = []
        self._environments: list[dict[str, str]] = []
        try:
            document = json.loads(path.read_bytes())
            if document.get("format") == _FORMAT:
                self._chosen = document["chosen"]
                self._entries = document["evaluations"]
                self._environments = document["environments"]
                self.accuracies = {entry["key"]: entry["accuracy"] for entry in self._entries}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path} cannot be read: {error}. Move it away to begin anew.") from error

    def add(self, cell: Cell, judged: tuple[float, dict[str, str]]) -> None:
        accuracy, where = judged
        self.accuracies[cell.key] = accuracy
        if where not in self._environments:
            self._environments.append(where)
        entry = {"key": cell.key, "row": cell.variant, "dataset": cell.dataset, "seed": cell.seed, "accuracy": accuracy}
        entry["environment"] = self._environments.index(where)
        self._entries.append({**entry, "settings": cell.settings})
        self.save()

    def mean(self, cells: Sequence[Cell]) -> float | None:
        """Return the mean accuracy of those cells that were judged."""
        known = [self.accuracies[cell.key] for cell in cells if cell.key in self.accuracies]
        return mean(known) if known else None

    def best(self, study: _Study, trials: Sequence[dict[str, Any]], n: int) -> list[dict[str, Any]]:
        """Return the best trials so far, of equal ones the first; those that have not been judged are kept."""
        if n >= len(trials):
            return list(trials)
        return sorted(trials, key=lambda values: -(self.mean(study.cells(values, self.final_seeds)) or 0.0))[:n]

    def choose(self, study: _Study, finalists: Sequence[dict[str, Any]]) -> None:
        """Keep the finalist with the highest mean."""

        def judged(values: dict[str, Any]) -> dict[str, Any]:
            figures = [self.accuracies[cell.key] for cell in study.cells(values, self.final_seeds)]
            return {"settings": values, "mean": mean(figures), "sd": stdev(figures), "seeds": len(figures)}

        key = study.variant.replace(study.row.name, study.dataset, 1)  # such as "r8; order 2"
        place = {"row": study.row.name, "set": key, "protocol": study.protocol}
        self._chosen = [one for one in self._chosen if any(one.get(name) != place[name] for name in place)]
        found = sorted(map(judged, finalists), key=lambda one: -float(one["mean"]))
        why = "the highest mean validation accuracy of the finalists"
        trials = len(study.candidates)
        self._chosen.append({**place, "chosen": found[0]["settings"], "why": why, "trials": trials, "finalists": found})

    def save_settings(self) -> None:
        """Write what was chosen as settings."""
        lines = [f"# Made by: wgcn-paper reproduce {self.table} --search. Chosen on validation documents."]
        for one in sorted(self._chosen, key=lambda one: (one["row"], one["set"])):
            lines += ["", "[[chosen]]", *(f"{name} = {json.dumps(one[name])}" for name in ("row", "set"))]
            values = ", ".join(f"{name} = {json.dumps(value)}" for name, value in one["chosen"].items())
            lines.append(f"settings = {{ {values} }}")
        text = "\n".join(lines) + "\n"
        write_file(self.path.with_suffix(".toml"), lambda file: file.write(text.encode()))

    def save(self) -> None:
        lines = [",\n".join(f"  {json.dumps(entry)}" for entry in part) for part in (self._chosen, self._entries)]
        text = (
            f'{{"format": "{_FORMAT}", "table": "{self.table}", "environments": {json.dumps(self._environments)},\n'
            f' "chosen": [\n{lines[0]}\n],\n "evaluations": [\n{lines[1]}\n]}}\n'
        )
        write_file(self.path, lambda file: file.write(text.encode()))


# The report


def search_report(table: Table, folder: Path) -> str:
    """Return a table of the searches of a table's rows, or nothing if there were none."""
    try:
        document = json.loads((folder / f"{table.name}-search.json").read_bytes())
        chosen = {(one["row"], one["set"]): one for one in document["chosen"]}
        evaluations = document["evaluations"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    rows = [
        _row(row.name, place, one, evaluations)
        for row in table.rows
        for (name, place), one in chosen.items()
        if name == row.name
    ]
    if not rows:
        return ""
    return (
        "\n### The search\n\n"
        f"Validation accuracy in percent, {len(evaluations):,} trainings in all. All trials have one seed, the better "
        "ones three, the best three those in square brackets; the worst and the best are by the seeds that they have.\n"
        f"Every one is in [{table.name}-search.json]({table.name}-search.json).\n\n"
        + markdown_table(["row", "set", "trials", "worst to best", "the best three", "chosen"], rows)
    )


def _row(name: str, place: str, one: Mapping[str, Any], evaluations: Sequence[Mapping[str, Any]]) -> list[str]:
    dataset, _, varied = place.partition("; ")
    variant = f"{name}; {varied}" if varied else name
    trials: dict[str, list[float]] = {}
    for entry in evaluations:
        if entry["row"] == variant and entry["dataset"] == dataset:
            values = {key: entry["settings"].get(key) for key in one["chosen"]}
            trials.setdefault(json.dumps(values, sort_keys=True), []).append(100 * entry["accuracy"])
    means = sorted(map(mean, trials.values()))
    finalists = one["finalists"][:3]
    best = " / ".join(f"{100 * found['mean']:.2f}" for found in finalists)
    seeds = f" [{finalists[0]['seeds']}]" if finalists else ""
    return [
        name,
        f"{TITLES[row_name(place)]}{f', {varied}' if varied else ''}",
        str(len(trials)),
        f"{means[0]:.1f} to {means[-1]:.1f}" if means else NOTHING,
        best + seeds,
        ", ".join(f"{key} {value}" for key, value in one["chosen"].items()),
    ]
