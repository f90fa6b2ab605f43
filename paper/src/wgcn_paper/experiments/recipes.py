"""Recipes: how a figure that the documentation quotes is computed from the committed runs.

A recipe is a table of a TOML file. What it is about:

- ``table``, ``row``, ``set``, ``protocol``: runs of a table of results. ``set`` is one data set or a list of them;
  without it, all sets on which the row has runs. ``row`` may be a list too. Without ``protocol``, the only one that the
  row has.
- ``metric``: what of the runs, ``accuracy`` (default), one of ``Run.metrics``, or a field of ``Run`` such as
  ``fit_seconds``. Shares are in percent; ``scale = 1`` leaves them as they are. ``per`` is a metric to divide by, run
  by run.
- ``published``: a row of the paper's tables, such as "Text-GCN" or "order 1", instead of ``row``.
- ``report`` and ``find``: the number at ``{}`` of a line of a report, which is written anew from the runs.
- ``bench``, ``part``, ``where`` and ``key``: a figure of ``benchmarks/results``, such as the part ``fit`` of
  ``bench-fit.json``, in the cell that has all of ``where``.
- ``number``: a number itself, such as a target, to subtract from.

What is done with it:

- ``stat``: over the draws ``mean`` (default), ``sd``, ``min`` or ``max``.
- ``minus``, ``over``: keys of another recipe, whose figures are subtracted or divided by. What it does not say is as in
  the recipe itself. The ``stat`` of a difference may be ``p``, ``low`` or ``high``, as `comparisons.compare` has them:
  without a correction for the number of comparisons.
- ``take``: of the figures of several sets the ``min``, ``max``, ``mean``, ``range`` (smallest and largest), ``spread``
  (their difference) or ``farthest`` (the largest without its sign), or the ``count`` of those above 0. Without it, one
  figure per set.
- ``above``, ``below``: what all figures must be, for the sentence to be true.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from wgcn.base.errors import InputError, WGCNError
from wgcn_paper.experiments import published
from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.comparisons import Comparison, compare, paired
from wgcn_paper.experiments.reproduce import all_cells, report_text, table_of
from wgcn_paper.experiments.results import ResultFile

__all__ = ["NUMBER", "Recipe", "Sources", "UntrueError", "figures"]

Recipe = Mapping[str, Any]

NUMBER = r"[+\-\u2212]?\d+(?:,\d{3})*(?:\.\d+)?"

_KINDS = {"row", "published", "number"}
_SOURCE = {"table", "set", "protocol", "metric", "per", "scale", *_KINDS}
_READ = {"report", "find", "bench", "part", "where", "key"}
_STEPS = {"stat", "minus", "over", "take", "above", "below"}
_PUBLISHED: dict[str, Mapping[str, Mapping[str, tuple[float, float | None]]]] = {
    "accuracy": published.ACCURACY,
    "summary": published.ACCURACY,
    "citations": published.CITATIONS,
    **{
        table: {f"order {k}": {name: (of[k], None) for name, of in orders.items()} for k in range(4)}
        for table, orders in (("orders", published.ORDERS), ("citation-orders", published.CITATION_ORDERS))
    },
}
_OF_DIFFERENCE = {"mean": "difference", "p": "p", "low": "low", "high": "high"}
_OVER_DRAWS: dict[str, Callable[[Sequence[float]], float]] = {"mean": mean, "sd": stdev, "min": min, "max": max}
_OVER_SETS: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "min": lambda values: [min(values)],
    "max": lambda values: [max(values)],
    "mean": lambda values: [mean(values)],
    "range": lambda values: [min(values), max(values)],
    "spread": lambda values: [max(values) - min(values)],
    "farthest": lambda values: [max(map(abs, values))],
    "count": lambda values: [float(sum(value > 0 for value in values))],
}


class UntrueError(WGCNError):
    """A sentence says what its figures do not."""


class Sources:
    """What figures are made of: the result files of a checkout, each read when it is first needed.

    Parameters
    ----------
    root : path
        The folder of the checkout.
    """

    def __init__(self, root: Path) -> None:
        self._results = root / "paper" / "results"
        self._benchmarks = root / "benchmarks" / "results"
        self.runs = cache(self._runs)
        self.report = cache(self._report)
        self.benchmark = cache(self._benchmark)

    def _runs(self, table: str) -> Sequence[Run]:
        """Return the runs of a table that have the settings of today."""
        results = ResultFile(self._results, table, reuse=table != "efficiency")
        return results.runs(all_cells(table_of(table)))

    def _report(self, table: str) -> str:
        """Return the report of a table, made from its runs."""
        return report_text(table_of(table), self.runs(table), self._results)

    def _benchmark(self, name: str) -> Any:
        """Return the content of a file of benchmarks."""
        path = self._benchmarks / f"bench-{name}.json"
        try:
            return json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise InputError(f"{path.name} cannot be read: {error}") from error


def figures(recipe: Recipe, sources: Sources) -> list[float]:
    """Return the figures of a recipe.

    Raises
    ------
    UntrueError
        If a figure is not ``above`` or ``below`` what the recipe says.
    InputError
        If the recipe is not one, or there are no runs for it.
    """
    _check_keys(recipe)
    try:
        values = _values(recipe, sources)
        if "take" in recipe:
            values = _OVER_SETS[recipe["take"]](values)
    except KeyError as error:
        raise InputError(f"{error} is missing or not known: {_short(recipe)}") from error
    for value in values:
        if value <= recipe.get("above", float("-inf")) or value >= recipe.get("below", float("inf")):
            limits = " and ".join(f"{key} {recipe[key]}" for key in ("above", "below") if key in recipe)
            raise UntrueError(f"{value:.4g} is not {limits}: {_short(recipe)}")
    return values


def _check_keys(recipe: Recipe) -> None:
    unknown = set(recipe) - _SOURCE - _READ - _STEPS
    for operation in ("minus", "over"):
        unknown |= set(recipe.get(operation, ())) - _SOURCE
    if unknown:
        raise InputError(f"A recipe has no {', '.join(sorted(unknown))}: {_short(recipe)}")


def _short(recipe: Recipe) -> str:
    return ", ".join(f"{key} {value}" for key, value in recipe.items())


@dataclass(frozen=True)
class _Sample:
    """A figure of one data set: a value per draw, with the runs that it is of, if it is of runs."""

    values: tuple[float, ...]
    runs: tuple[Run, ...] = ()
    are_accuracies: bool = False

    @property
    def mean(self) -> float:
        return mean(self.values)

    @property
    def seeds(self) -> list[int]:
        return [run.cell.seed for run in self.runs]

    @property
    def what(self) -> tuple[set[tuple[str, str]], bool]:
        """What two samples must have in common for `compare`."""
        return {(run.cell.dataset, run.cell.protocol) for run in self.runs}, self.are_accuracies


def _values(recipe: Recipe, sources: Sources) -> list[float]:
    """Return the figures of a recipe, one per set, before any are taken together."""
    ours = _samples(recipe, sources)
    operation = next((key for key in ("minus", "over") if key in recipe), None)
    stat = recipe.get("stat", "mean")
    if operation is None:
        return [_OVER_DRAWS[stat](sample.values) for _, sample in ours]
    theirs = _samples(_other(recipe, operation, [name for name, _ in ours]), sources)
    if len(theirs) != len(ours):
        raise InputError(f"{len(ours)} figures stand against {len(theirs)}: {_short(recipe)}")
    pairs = [(own, other) for (_, own), (_, other) in zip(ours, theirs, strict=True)]
    if operation == "over":
        return [own.mean / other.mean for own, other in pairs]
    found = [getattr(_difference(*pair), _OF_DIFFERENCE[stat]) for pair in pairs]
    if None in found:
        raise InputError(f"Nothing varies, so there is no {stat}: {_short(recipe)}")
    return found


def _other(recipe: Recipe, operation: str, sets: list[str]) -> Recipe:
    """Return what a recipe is compared with: what it does not say is as in the recipe itself."""
    other = recipe[operation]
    # A row takes the place of a published one, and the other way round.
    inherited = _SOURCE - _KINDS if _KINDS & set(other) else _SOURCE
    own = {key: value for key, value in recipe.items() if key in inherited}
    return {**own, "set": sets, **other}


def _difference(ours: _Sample, theirs: _Sample) -> Comparison:
    """Return a difference with its interval and p, where there are some; draws with the same seed are a pair."""
    if ours.are_accuracies and ours.what == theirs.what:
        found = compare(ours.runs, theirs.runs)
        if found is not None:
            return found
    if len(ours.runs) > 1 and ours.seeds == theirs.seeds:
        return paired([own - other for own, other in zip(ours.values, theirs.values, strict=True)])
    return Comparison(ours.mean - theirs.mean)


def _samples(recipe: Recipe, sources: Sources) -> list[tuple[str, _Sample]]:
    """Return data sets and the figures of a recipe on them, before anything is compared."""
    if "report" in recipe:
        return [("", _Sample((_of_report(recipe, sources),)))]
    if "bench" in recipe:
        return [("", _Sample((_of_benchmark(recipe, sources),)))]
    wanted = recipe.get("set")
    sets = [wanted] if isinstance(wanted, str) else wanted
    if "number" in recipe:
        return [(name, _Sample((float(recipe["number"]),))) for name in sets or [""]]
    if "published" in recipe:
        row = _PUBLISHED[recipe["table"]][recipe["published"]]
        return [(name, _Sample((row[name][0],))) for name in sets or row]
    rows = [recipe["row"]] if isinstance(recipe["row"], str) else recipe["row"]
    return [found for row in rows for found in _of_row(row, recipe, sets, sources)]


def _of_row(row: str, recipe: Recipe, sets: Sequence[str] | None, sources: Sources) -> list[tuple[str, _Sample]]:
    """Return data sets and what the runs of a row have on them."""
    runs = [run for run in sources.runs(recipe["table"]) if run.cell.variant == row]
    protocols = sorted({run.cell.protocol for run in runs})
    if "protocol" not in recipe and len(protocols) > 1:
        raise InputError(f"Which protocol, {' or '.join(protocols)}? {_short(recipe)}")
    found: dict[str, list[Run]] = {name: [] for name in sets or ()}
    for run in runs:
        name = run.cell.dataset
        if run.cell.protocol == recipe.get("protocol", run.cell.protocol) and (sets is None or name in sets):
            found.setdefault(name, []).append(run)
    if not found or not all(found.values()):
        lacking = ", ".join(name for name, own in found.items() if not own) or "any set"
        raise InputError(f"There is no run on {lacking}: {_short(recipe)}")
    accuracies = "metric" not in recipe and "scale" not in recipe
    return [
        (name, _Sample(tuple(_measured(run, recipe) for run in own), tuple(own), accuracies))
        for name, own in found.items()
    ]


def _measured(run: Run, recipe: Recipe) -> float:
    """Return what a recipe asks of a run."""
    name = recipe.get("metric", "accuracy")
    is_share = name == "accuracy" or name in run.metrics
    value = run.metrics[name] if name in run.metrics else getattr(run, name, None)
    if value is None:
        raise KeyError(name)
    if "per" in recipe:
        value = value / run.metrics[recipe["per"]]
    return float(value) * float(recipe.get("scale", 100.0 if is_share else 1.0))


def _of_report(recipe: Recipe, sources: Sources) -> float:
    """Return the number that stands at ``{}`` in a report."""
    before, after = (r"\s+".join(map(re.escape, part.split(" "))) for part in recipe["find"].split("{}"))
    found = re.search(f"{before}({NUMBER}){after}", sources.report(recipe["report"]))
    if found is None:
        raise InputError(f"The report has no such line: {_short(recipe)}")
    return float(found[1].replace(",", "").replace("\u2212", "-"))


def _of_benchmark(recipe: Recipe, sources: Sources) -> float:
    """Return a figure of the one cell of a benchmark that is asked for."""
    cells = sources.benchmark(recipe["bench"])["parts"][recipe.get("part", recipe["bench"])]["cells"]
    chosen = [cell for cell in cells if recipe["where"].items() <= cell.items()]
    if len(chosen) != 1:
        raise InputError(f"{len(chosen)} cells of the benchmark are so, not one: {_short(recipe)}")
    return float(chosen[0][recipe["key"]])
