"""Parts of elements of the paper: how their figures are computed from the committed runs of the tables.

A part is a table of ``settings/elements.toml``. It names a ``table`` and a ``row`` of it, or several, and:

- ``kind``: how the figures are made, a key of `KINDS`; without it, ``row``.
- ``set``, ``protocol``, ``metric``: as in `wgcn_paper.experiments.recipes`; by default all data sets that the row has,
  "corpus", since the published figures are of this kind, and the accuracy.
- ``label``: what the figures are of, with ``{row}`` for the name of the row, which is also the default. Data sets are
  added to it, unless the figures are of all sets of the table.
- ``minus``, ``over``: other rows. ``setting``: what the table varies. ``take``, ``by``: see `KINDS`.
- ``claimed``: figures that the paper's text has, in place of those of its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

from wgcn.base.errors import InputError
from wgcn_paper.experiments import published as paper
from wgcn_paper.experiments.recipes import Sources, figures
from wgcn_paper.experiments.table import Row, load_table, row_name, variant_name

__all__ = ["KINDS", "Figure", "Keys", "Line", "Part", "row_of"]

Keys = Mapping[str, Any]
Figure = float | None

_LEVEL = 0.05
_COSTS = ("ms_per_epoch", "gpu_memory")  # the order of `published.EFFICIENCY`

_table = lru_cache(load_table)


@dataclass(frozen=True)
class Line:
    """Figures of a part and those that the paper has in their place; None where it has none."""

    label: str
    measured: Sequence[float]
    published: Sequence[Figure]


@dataclass(frozen=True)
class Part:
    """A part, and where its runs are.

    Parameters
    ----------
    keys : Keys
        What the settings file says.
    sources : Sources
        Runs of tables.
    folder : path
        Of the reports, for the sizes of data sets.
    """

    keys: Keys
    sources: Sources = field(repr=False)
    folder: Path = field(repr=False)

    def __getitem__(self, key: str) -> Any:
        return self.keys[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return what the part says, or a default."""
        return self.keys.get(key, default)

    @property
    def rows(self) -> list[str]:
        """The rows that it names."""
        return _several(self["row"])

    @property
    def sets(self) -> list[str]:
        """The data sets that it names, or else those on which its table runs one of its rows, and one of ``minus``."""
        if "set" in self.keys:
            return _several(self["set"])
        sides = [side for side in (self.rows, _several(self.get("minus", []))) if side]
        known = _table(self["table"]).datasets
        return [name for name in known if all(any(self.runs(row, name) for row in side) for side in sides)]

    def runs(self, row: str, dataset: str) -> bool:
        """Return whether the table runs a row on a data set."""
        return row_of(self["table"], row).seeds.get(dataset) != 0

    def measured(self, row: str, dataset: str) -> float:
        """Return the mean of the runs of a row; of costs the median, as their report does."""
        if self["table"] == "efficiency":
            return self._cost(row, dataset)
        [protocol, *_] = row_of(self["table"], row).protocols or ["corpus"]  # that of the published figures
        recipe = {"row": row, "set": dataset, "protocol": protocol, **self._chosen("table", "protocol", "metric")}
        [value] = figures(recipe, self.sources)
        return value

    def _cost(self, row: str, dataset: str) -> float:
        variant, metric = f"{row}; cuda", self["metric"]
        own = [run for run in self.sources.runs("efficiency") if run.cell.variant == variant]
        known = [value for run in own if run.cell.dataset == dataset and (value := getattr(run, metric)) is not None]
        if not known:
            raise InputError(f"There is no run on {dataset}: table efficiency, row {variant}, metric {metric}")
        return float(median(known))

    def published(self, row: str, dataset: str) -> Figure:
        """Return the figure that the paper's tables have for a row, if there is one."""
        table = self["table"]
        name = row_of(table, row).published
        if table == "efficiency":
            costs = paper.EFFICIENCY.get(name, {}).get(dataset)
            return None if costs is None else costs[_COSTS.index(self["metric"])]
        if "metric" in self.keys:
            return None
        if table in ("orders", "citation-orders"):
            orders = (paper.ORDERS if table == "orders" else paper.CITATION_ORDERS).get(dataset)
            return None if orders is None else orders[int(row.rpartition(" ")[2])]
        tables: Mapping[str, Mapping[str, Mapping[str, tuple[float, Figure]]]]
        tables = {"accuracy": paper.ACCURACY, "citations": paper.CITATIONS}
        return tables.get(table, {}).get(name, {}).get(dataset, (None,))[0]

    def _chosen(self, *keys: str) -> dict[str, Any]:
        return {key: self[key] for key in keys if key in self.keys}

    def variants(self) -> tuple[list[str], list[Any]]:
        """Return the variants of a row by the values of a setting, and the values."""
        values = list(dict(_table(self["table"]).vary)[self["setting"]])
        return [variant_name(self["row"], self["setting"], value) for value in values], values

    def line(self, measured: Sequence[float], published: Sequence[Figure], label: str = "") -> Line:
        """Return figures under the label of the part, beside those that the text claims, if it claims any."""
        claimed = self.get("claimed")
        if claimed is not None:
            published = claimed if isinstance(claimed, list) else [claimed] * len(measured)
        shown = self.get("label", label or "{row}").replace("{row}", str(self.get("row")))
        return Line(shown, measured, published)

    def by_set(self, measured: Sequence[float], published: Sequence[Figure]) -> Line:
        """Return a `line` of one figure per data set, which names the sets if they are not all of the table."""
        line, sets = self.line(measured, published), self.sets
        if "table" not in self.keys or sets == list(_table(self["table"]).datasets):
            return line
        titles = " / ".join(paper.TITLES[name] for name in sets)
        return replace(line, label=f"{line.label}, {titles}" if line.label else titles)

    def lines(self) -> list[Line]:
        """Return its figures."""
        return KINDS[self.get("kind", "row")](self)


def _several(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) else given


def row_of(table: str, name: str) -> Row:
    """Return the row that a variant belongs to; for the table of costs, the row of accuracies that it is like."""
    for row in _table("accuracy" if table == "efficiency" else table).rows:
        if row.name == row_name(name):
            return row
    raise InputError(f"There is no row {name!r} in the table {table}.")


# Kinds of parts


def _row(part: Part) -> list[Line]:
    """Return a row: one figure per data set."""
    [row] = part.rows
    measured = [part.measured(row, name) for name in part.sets]
    return [part.by_set(measured, [part.published(row, name) for name in part.sets])]


def _varied(part: Part) -> list[Line]:
    """Return a row on one data set: one figure per value of the setting that its table varies."""
    [dataset] = part.sets
    rows, values = part.variants()
    label = f"{paper.TITLES[dataset]}, {part['setting'].rpartition('_')[2]} {' / '.join(map(str, values))}"
    return [
        part.line([part.measured(row, dataset) for row in rows], [part.published(row, dataset) for row in rows], label)
    ]


def _ahead(part: Part) -> list[Line]:
    """Return by how much ``row`` is ahead of ``minus``, per data set, or with ``take`` the mean of all.

    Of several rows the best counts, or with ``by`` their mean.
    """
    measured = [gap for gap in _gaps(part, part.measured) if gap is not None]
    published = _gaps(part, part.published)
    if part.get("take") == "mean":
        known = [gap for gap in published if gap is not None]
        return [part.line([mean(measured)], [mean(known)] if known else [None])]
    return [part.by_set(measured, published)]


def _gaps(part: Part, read: Callable[[str, str], Figure]) -> list[Figure]:
    """Return the differences of `_ahead` in what is measured, or in what is published."""
    of = mean if part.get("by") == "mean" else max
    gaps: list[Figure] = []
    for dataset in part.sets:
        ours, theirs = (
            [value for row in rows if part.runs(row, dataset) and (value := read(row, dataset)) is not None]
            for rows in (part.rows, _several(part["minus"]))
        )
        gaps.append(of(ours) - of(theirs) if ours and theirs else None)
    return gaps


def _beaten(part: Part) -> list[Line]:
    """Return how many of the rows ``minus`` a row is ahead of with p < 0.05; the paper says all that it has."""
    counts, claimed = [], []
    for dataset in part.sets:
        others = [row for row in part["minus"] if part.published(row, dataset) is not None]
        counts.append(sum(_is_beaten(part, row, dataset) for row in others))
        claimed.append(len(others))
    return [part.by_set(counts, claimed)]


def _is_beaten(part: Part, other: str, dataset: str) -> bool:
    keys = {"table": part["table"], "row": part["row"], "set": dataset, "protocol": "corpus", "minus": {"row": other}}
    [[ahead], [p]] = (figures({**keys, "stat": stat}, part.sources) for stat in ("mean", "p"))
    return ahead > 0 and p < _LEVEL


def _best(part: Part) -> list[Line]:
    """Return the value of a setting with the highest accuracy, per data set."""
    rows, values = part.variants()
    best = []
    for dataset in part.sets:
        found = [part.measured(row, dataset) for row in rows]
        best.append(values[found.index(max(found))])
    return [part.by_set(best, [None] * len(best))]


def _spread(part: Part) -> list[Line]:
    """Return the highest accuracy minus the lowest over the values of a setting, per data set."""
    rows, _ = part.variants()
    found = [[part.measured(row, name) for row in rows] for name in part.sets]
    return [part.by_set([max(values) - min(values) for values in found], [None] * len(found))]


def _rises(part: Part) -> list[Line]:
    """Return how many steps from one value of a setting to the next raise the accuracy, per data set."""
    rows, _ = part.variants()
    found = [[part.measured(row, name) for row in rows] for name in part.sets]
    steps = [sum(after > before for before, after in pairwise(values)) for values in found]
    return [part.by_set(steps, [len(rows) - 1] * len(steps))]


def _times(part: Part) -> list[Line]:
    """Return a cost as a multiple of that of the row ``over``: the mean over the data sets."""
    both = (part["row"], part["over"])
    measured = [part.measured(both[0], name) / part.measured(both[1], name) for name in part.sets]
    known = [[part.published(row, name) for row in both] for name in part.sets]
    return [part.line([mean(measured)], [mean(own / other for own, other in known if own and other)])]


def _whole(part: Part) -> list[Line]:
    """Return of a table of the paper the mean of its figures, and the one that is farthest from the published."""
    found = [
        (f"{row} on {paper.TITLES[name]}", part.measured(row, name), value)
        for row in part.rows
        for name in part.sets
        if (value := part.published(row, name)) is not None
    ]
    where, far, value = max(found, key=lambda one: abs(one[1] - one[2]))
    return [
        Line(
            f"mean of {len(found)} figures", [mean(own for _, own, _ in found)], [mean(other for _, _, other in found)]
        ),
        Line(f"farthest: {where}", [far], [value]),
    ]


def _sizes(part: Part) -> list[Line]:
    """Return the sizes of a data set."""
    [dataset] = part.sets
    return [part.line(_counted(part.folder, dataset), _statistics(dataset), part["label"])]


def _equal(part: Part) -> list[Line]:
    """Return how many sizes of data sets are as published."""
    same = [
        measured == value
        for name in part.sets
        for measured, value in zip(_counted(part.folder, name), _statistics(name), strict=True)
    ]
    return [part.line([sum(same)], [len(same)])]


def _documents_per_word(part: Part) -> list[Line]:
    """Return the number of documents divided by that of words, per data set."""
    both = [(_counted(part.folder, name), _statistics(name)) for name in part.sets]
    return [part.line([ours[0] / ours[3] for ours, _ in both], [theirs[0] / theirs[3] for _, theirs in both])]


KINDS: dict[str, Callable[[Part], list[Line]]] = {
    "row": _row,
    "varied": _varied,
    "ahead": _ahead,
    "beaten": _beaten,
    "best": _best,
    "spread": _spread,
    "rises": _rises,
    "times": _times,
    "whole": _whole,
    "sizes": _sizes,
    "equal": _equal,
    "documents per word": _documents_per_word,
}


def _statistics(dataset: str) -> Sequence[float]:
    found = paper.STATISTICS.get(dataset) or paper.CITATION_STATISTICS.get(dataset)
    if found is None:
        raise InputError(f"The paper has no statistics of {dataset}.")
    return found


def _counted(folder: Path, dataset: str) -> list[float]:
    """Return the sizes of a data set from the report on them, without the published ones in brackets."""
    path, title = folder / "datasets.md", paper.TITLES[dataset]
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    found = [line.strip("| ").split(" | ")[1:] for line in lines if line.startswith(f"| {title} |")]
    if len(found) != 1:
        raise InputError(f"{path.name} has no sizes of {title}: table datasets")
    numbers = [cell.partition(" ")[0].replace(",", "") for cell in found[0]]
    return [float(n) if "." in n else int(n) for n in numbers[: len(_statistics(dataset))]]
