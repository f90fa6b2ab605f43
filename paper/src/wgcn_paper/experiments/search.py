"""Search for hyper-parameters by validation accuracy; every trial is saved.

For each row and data set, Optuna's tree-structured Parzen estimator proposes settings out of the row's ranges, each
judged by the mean accuracy on the validation documents of a few seeds. The best few are then judged again with more
seeds, because the highest of many noisy figures is rarely the best.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from wgcn.errors import InputError
from wgcn.files import write_file
from wgcn_paper.experiments.cells import Cell, environment, make_cell, validate_cell
from wgcn_paper.experiments.runner import Workers
from wgcn_paper.experiments.table import Options, Row, Table
from wgcn_paper.packages import packages_for

__all__ = ["search"]

Progress = Callable[[int, int, str], Any]

_FORMAT = "wgcn-search-1"
_FIRST_SEEDS, _FINAL_SEEDS, _FINALISTS, _BATCH = 3, 10, 5, 4


def search(
    table: Table,
    options: Options,
    folder: Path,
    pool: Workers,
    *,
    trials: int = 40,
    device: str = "auto",
    progress: Progress | None = None,
) -> Path:
    """Search the ranges of the rows that have any, and write all trials and the choice to ``<table>-search.json``.

    It continues an interrupted search. Test documents are not used.

    Returns
    -------
    path of the file
    """
    with packages_for("A search for settings"):
        import optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    log = _Log(folder / f"{table.name}-search.json", table.name)
    studies = [
        _Study(row, dataset, protocol, optuna)
        for row in table.rows
        if row.search and not row.retired and (options.rows is None or row.name in options.rows)
        if options.models is None or row.method in options.models
        for protocol in _first(row.protocols or table.protocols, options.protocols)
        for dataset in table.datasets
        if options.datasets is None or dataset in options.datasets
    ]
    if not studies:
        raise InputError(f"No row of '{table.name}' that was selected has ranges to search.")
    total = len(studies) * (trials * _FIRST_SEEDS + _FINALISTS * (_FINAL_SEEDS - _FIRST_SEEDS))
    done = 0

    def judge(cells: Sequence[Cell]) -> None:
        nonlocal done
        todo = list({cell.key: cell for cell in cells if cell.key not in log.accuracies}.values())
        done += len(cells) - len(todo)
        for cell, accuracy in pool.each(validate_cell, todo, device, group=lambda cell: str(cell.settings)):
            log.add(cell, accuracy)
            done += 1
            if progress:
                progress(done, max(total, done), f"{cell.dataset} {cell.variant}")

    for first in range(0, trials, _BATCH):
        asked = [(study, study.ask()) for study in studies for _ in range(min(_BATCH, trials - first))]
        judge([cell for study, trial in asked for cell in study.cells(trial.params, _FIRST_SEEDS)])
        for study, trial in asked:
            study.study.tell(trial, log.mean(study.cells(trial.params, _FIRST_SEEDS)))
    finals = [(study, values) for study in studies for values in study.best(_FINALISTS)]
    judge([cell for study, values in finals for cell in study.cells(values, _FINAL_SEEDS)])
    for study in studies:
        candidates = [values for other, values in finals if other is study]
        chosen = max(candidates, key=lambda values: log.mean(study.cells(values, _FINAL_SEEDS)))
        log.choose(study, chosen, candidates)
    log.save()
    return log.path


def _first(protocols: Sequence[str], wanted: Collection[str] | None) -> Sequence[str]:
    """Return the protocol to search under: the first that is wanted."""
    return [name for name in protocols if wanted is None or name in wanted][:1]


class _Study:
    """The search of one row on one data set."""

    def __init__(self, row: Row, dataset: str, protocol: str, optuna: Any) -> None:
        self.row, self.dataset, self.protocol = row, dataset, protocol
        self.study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
        self._space = {
            name: optuna.distributions.CategoricalDistribution(values) for name, values in row.search.items()
        }
        start = {name: row.settings_for(dataset).get(name) for name in row.search}
        if all(start[name] in values for name, values in row.search.items()):
            self.study.enqueue_trial(start)

    def ask(self) -> Any:
        return self.study.ask(self._space)

    def cells(self, values: dict[str, Any], n_seeds: int) -> list[Cell]:
        settings = {**self.row.settings_for(self.dataset), **values}
        # A refit on all documents would leave no held-out documents to judge by.
        settings.update({"refit": False} if "refit" in settings else {})
        return [
            make_cell(self.dataset, self.protocol, self.row.method, settings, seed, self.row.name)
            for seed in range(n_seeds)
        ]

    def best(self, n: int) -> list[dict[str, Any]]:
        """Return the best settings so far, each once."""
        trials = sorted(self.study.trials, key=lambda trial: trial.value, reverse=True)
        different = {json.dumps(trial.params, sort_keys=True): trial.params for trial in trials}
        return list(different.values())[:n]


class _Log:
    """All trials, saved after each."""

    def __init__(self, path: Path, table: str) -> None:
        self.path, self.table = path, table
        self.accuracies: dict[str, float] = {}
        self._entries: list[dict[str, Any]] = []
        self._chosen: list[dict[str, Any]] = []
        try:
            document = json.loads(path.read_bytes())
            if document.get("format") == _FORMAT:
                self._chosen = document["chosen"]
                self._entries = document["evaluations"]
                self.accuracies = {entry["key"]: entry["accuracy"] for entry in self._entries}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path} cannot be read: {error}. Move it away to begin anew.") from error

    def add(self, cell: Cell, accuracy: float) -> None:
        self.accuracies[cell.key] = accuracy
        self._entries.append(
            {
                "key": cell.key,
                "row": cell.variant,
                "dataset": cell.dataset,
                "seed": cell.seed,
                "accuracy": accuracy,
                "settings": cell.settings,
            }
        )
        self.save()

    def mean(self, cells: Sequence[Cell]) -> float:
        return mean(self.accuracies[cell.key] for cell in cells)

    def choose(self, study: _Study, chosen: dict[str, Any], candidates: Sequence[dict[str, Any]]) -> None:
        def judged(values: dict[str, Any]) -> dict[str, Any]:
            figures = [self.accuracies[cell.key] for cell in study.cells(values, _FINAL_SEEDS)]
            return {"settings": values, "mean": mean(figures), "sd": stdev(figures), "seeds": len(figures)}

        place = {"row": study.row.name, "dataset": study.dataset, "protocol": study.protocol}
        self._chosen = [one for one in self._chosen if any(one.get(name) != place[name] for name in place)]
        self._chosen.append(
            {
                **place,
                "chosen": chosen,
                "why": "the highest mean validation accuracy of the finalists",
                "trials": len(study.study.trials),
                "finalists": [judged(values) for values in candidates],
            }
        )

    def save(self) -> None:
        lines = [",\n".join(f"  {json.dumps(entry)}" for entry in part) for part in (self._chosen, self._entries)]
        text = (
            f'{{"format": "{_FORMAT}", "table": "{self.table}", "environment": {json.dumps(environment())},\n'
            f' "chosen": [\n{lines[0]}\n],\n "evaluations": [\n{lines[1]}\n]}}\n'
        )
        write_file(self.path, lambda file: file.write(text.encode()))
