"""The paper element by element: equations, methods, data sets, tables, figures and claims, each beside its result.

``settings/elements.toml`` has one ``[[element]]`` per line of the report: its ``group`` and ``name``, the ``files``
that implement it, the ``commands`` that make its result, perhaps a ``note``, and ``results``: lists of figures, each
computed from the committed runs of another table and, in the same way, from the published figures. ``common`` holds for
all of them. A result names a ``table`` and a ``row`` of it, or several, and:

- ``kind``: how the figures are made, a key of `KINDS`; without it one figure of the row per data set.
- ``set``, ``protocol``, ``metric``: by default all data sets that the row has, "corpus", since the published figures
  are of this kind, and the accuracy. The table "datasets" has one row per size.
- ``minus``, ``over``: other rows. ``setting``: what the table varies. ``by``, ``take``: see `_ahead`.
- ``label``: what the figures are of, with ``{row}`` for the name of the row, which is also the default.
- ``claimed``: figures of the paper's text, in place of those of its tables. ``none``: why there is no published figure;
  ``absent``: what the paper has instead of a figure on some data sets.
- ``above``, ``below``: where the figures are so, a claim of the text holds.
- ``digits``: decimal places, one if it is not given; whole numbers have none. ``as_quotient``: divide the published
  figures by the measured ones, instead of subtracting.

Nothing is run here. An element without a result is an error.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from functools import cache, lru_cache, partial
from importlib import resources
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

from wgcn.base.errors import InputError, WGCNError
from wgcn_paper.experiments import published as paper
from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.comparisons import compare
from wgcn_paper.experiments.report import NOTHING, markdown_table
from wgcn_paper.experiments.results import ResultFile
from wgcn_paper.experiments.statistics import published_sizes, read_sizes
from wgcn_paper.experiments.table import Row, Table, load_table, row_name, variant_name

Figure = float | None
Read = Callable[[str, str], Figure]  # of a row on a data set
Runs = Callable[[str], Sequence[Run]]  # of a table

_ROOT = "../.."  # of the checkout, seen from paper/results and from docs/results
_HEADER = ["element", "files", "committed result", "published", "difference", "made by"]
_LEGEND = """\
One line per element of the paper. Lists have one figure per data set, in the order 20NG / MR / Ohsumed / R52 / R8 or
Citeseer / Pubmed, unless their label names others. Letters mark lists that belong together; what is the same for all
stands once. Accuracies are means in percent under the protocol corpus, that of the published figures, unless the label
says otherwise. Differences are measured minus published, in points, taken before rounding. "Holds on" counts the data
sets on which the measured figures say what the paper says. Deviations, numbers of seeds and package versions are in the
reports that the commands write."""
_LEVEL = 0.05
_COSTS = ("ms_per_epoch", "gpu_memory")  # the order of `published.EFFICIENCY`

_table = lru_cache(load_table)


@dataclass(frozen=True)
class Element:
    """An equation, a method, a data set, a table, a figure or a claim of the paper."""

    group: str
    name: str
    files: Sequence[str]
    commands: Sequence[str]
    results: Sequence[Mapping[str, Any]]
    common: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def lists(self, runs: Runs, folder: Path) -> list[Result]:
        """Return its results, from the runs of the tables in a folder."""
        return [Result({**self.common, **own}, runs, folder) for own in self.results]


@dataclass(frozen=True)
class Line:
    """A list of figures, and those that the paper has in their place; None where it has none."""

    label: str
    measured: Sequence[float]
    published: Sequence[Figure]


@dataclass(frozen=True)
class Result:
    """An entry of ``results``, with what is common to all of them."""

    says: Mapping[str, Any]
    runs: Runs
    folder: Path

    def names(self, key: str) -> list[str]:
        """Return the rows or data sets under a key."""
        given = self.says.get(key, [])
        return [given] if isinstance(given, str) else given

    @property
    def table(self) -> str:
        """The table that its figures are from."""
        name: str = self.says["table"]
        return name

    @property
    def sets(self) -> list[str]:
        """The data sets that it names, or else those on which its table runs one of its rows, and one of ``minus``."""
        if "set" in self.says:
            return self.names("set")
        sides = [side for side in (self.names("row"), self.names("minus")) if side]
        known = _table(self.table).datasets
        return [name for name in known if all(any(self.is_run(row, name) for row in side) for side in sides)]

    def is_run(self, row: str, dataset: str) -> bool:
        """Return whether the table runs a row on a data set."""
        return row_of(self.table, row).seeds.get(dataset) != 0

    def cells(self, row: str, dataset: str) -> list[Run]:
        """Return the runs of a row on a data set. A row without any is an error."""
        [protocol, *_] = row_of(self.table, row).protocols or ["corpus"]  # that of the published figures
        protocol = self.says.get("protocol", protocol)
        variant = f"{row}; cuda" if self.table == "efficiency" else row
        own = [run for run in self.runs(self.table) if (run.cell.variant, run.cell.dataset) == (variant, dataset)]
        found = [run for run in own if self.table == "efficiency" or run.cell.protocol == protocol]
        if not found:
            raise InputError(f"There is no run on {dataset}: table {self.table}, row {row}, protocol {protocol}")
        return found

    def measured(self, row: str, dataset: str) -> float:
        """Return the mean of the runs of a row; of costs the median, as their report does; of a data set a size."""
        if self.table == "datasets":
            sizes = read_sizes(self.folder)
            if dataset not in sizes:
                raise InputError(f"There are no sizes of {paper.TITLES[dataset]}: table datasets")
            return sizes[dataset][row]
        runs, metric = self.cells(row, dataset), self.says.get("metric")
        if metric is None:
            return mean(100 * run.accuracy for run in runs)
        known = [float(value) for run in runs if (value := getattr(run, metric)) is not None]
        if not known:
            raise InputError(f"There is no run on {dataset}: table {self.table}, row {row}, metric {metric}")
        return median(known) if self.table == "efficiency" else mean(known)

    def published(self, row: str, dataset: str) -> Figure:
        """Return the figure that the paper's tables have for a row, if there is one."""
        if self.table == "datasets":
            return published_sizes(dataset).get(row)
        name = row_of(self.table, row).published
        if self.table == "efficiency":
            costs = paper.EFFICIENCY.get(name, {}).get(dataset)
            return None if costs is None else costs[_COSTS.index(self.says["metric"])]
        if "metric" in self.says:
            return None
        if self.table in ("orders", "citation-orders"):
            orders = (paper.ORDERS if self.table == "orders" else paper.CITATION_ORDERS).get(dataset)
            return None if orders is None else orders[int(row.rpartition(" ")[2])]
        tables: Mapping[str, Mapping[str, Mapping[str, tuple[float, Figure]]]]
        tables = {"accuracy": paper.ACCURACY, "citations": paper.CITATIONS}
        return tables.get(self.table, {}).get(name, {}).get(dataset, (None,))[0]

    @property
    def values(self) -> list[Any]:
        """The values of the setting that its table varies."""
        return list(dict(_table(self.table).vary)[self.says["setting"]])

    @property
    def variants(self) -> list[str]:
        """The variants of its row by these values."""
        return [variant_name(self.says["row"], self.says["setting"], value) for value in self.values]

    def lines(self) -> list[Line]:
        """Return its figures; of a whole table two lines."""
        kind = self.says.get("kind", "row")
        if kind == "whole":
            return _whole(self)
        if kind in _BESIDE:
            measured, published = _BESIDE[kind](self)
        else:
            found, published = KINDS[kind](self, self.measured), KINDS[kind](self, self.published)
            measured = [value for value in found if value is not None]
        claimed = self.says.get("claimed")
        if claimed is not None:
            published = claimed if isinstance(claimed, list) else [claimed] * len(measured)
        return [Line(self._label(kind), measured, published)]

    def _label(self, kind: str) -> str:
        """Return the label, with the data sets of the figures if they are not all of the table."""
        given: str = self.says.get("label", "{row}")
        if kind == "varied" and "label" not in self.says:
            given = f"{paper.TITLES[self.sets[0]]}, {self.says['setting'].rpartition('_')[2]} "
            return given + " / ".join(map(str, self.values))
        label = given.replace("{row}", str(self.says.get("row")))
        whole = self.table == "datasets" or kind in ("varied", "times") or "take" in self.says
        if whole or self.sets == list(_table(self.table).datasets):
            return label
        titles = " / ".join(paper.TITLES[name] for name in self.sets)
        return f"{label}, {titles}" if label else titles


def _runs(folder: Path, table: str) -> Sequence[Run]:
    """Return the runs of a table that have the settings of today."""
    return ResultFile(folder, table, reuse=table != "efficiency").runs(load_table(table).all_cells())


def row_of(table: str, name: str) -> Row:
    """Return the row that a variant belongs to; for the table of costs, the row of accuracies that it is like."""
    for row in _table("accuracy" if table == "efficiency" else table).rows:
        if row.name == row_name(name):
            return row
    raise InputError(f"There is no row {name!r} in the table {table}.")


# Kinds of figures, each made alike of what is measured and of what is published


def _row(result: Result, read: Read) -> list[Figure]:
    """Return one figure per data set, and of each if there are several rows."""
    return [read(row, name) for row in result.names("row") for name in result.sets]


def _sizes(result: Result, read: Read) -> list[Figure]:
    """Return the sizes of a data set that the paper has."""
    return [read(size, name) for name in result.sets for size in published_sizes(name)]


def _varied(result: Result, read: Read) -> list[Figure]:
    """Return one figure per value of the setting that the table varies."""
    return [read(variant, result.sets[0]) for variant in result.variants]


def _ahead(result: Result, read: Read) -> list[Figure]:
    """Return by how much ``row`` is ahead of ``minus``, per data set, or with ``take`` the mean of all.

    Of several rows the best counts, or with ``by`` their mean.
    """
    of = mean if result.says.get("by") == "mean" else max
    gaps: list[Figure] = []
    for dataset in result.sets:
        ours, theirs = (
            [value for row in rows if result.is_run(row, dataset) and (value := read(row, dataset)) is not None]
            for rows in (result.names("row"), result.names("minus"))
        )
        gaps.append(of(ours) - of(theirs) if ours and theirs else None)
    if result.says.get("take") != "mean":
        return gaps
    known = [gap for gap in gaps if gap is not None]
    return [mean(known) if known else None]


def _times(result: Result, read: Read) -> list[Figure]:
    """Return a figure as a multiple of that of the row ``over``: the mean over the data sets."""
    known = _quotients(result, read)
    return [mean(value for value in known if value is not None)]


def _quotients(result: Result, read: Read) -> list[Figure]:
    """Return a figure divided by that of the row ``over``, per data set."""
    pairs = [(read(result.says["row"], name), read(result.says["over"], name)) for name in result.sets]
    return [own / other if own and other else None for own, other in pairs]


def _of_values(choose: Callable[[Sequence[float], Sequence[Any]], float]) -> Callable[[Result, Read], list[Figure]]:
    """Return a kind that makes one figure per data set of the accuracies by the values of a setting."""

    def kind(result: Result, read: Read) -> list[Figure]:
        found: list[Figure] = []
        for name in result.sets:
            known = [value for variant in result.variants if (value := read(variant, name)) is not None]
            found.append(choose(known, result.values) if known else None)
        return found

    return kind


KINDS: Mapping[str, Callable[[Result, Read], list[Figure]]] = {
    "row": _row,
    "sizes": _sizes,
    "varied": _varied,
    "ahead": _ahead,
    "times": _times,
    "quotients": _quotients,
    "best": _of_values(lambda accuracies, values: values[accuracies.index(max(accuracies))]),
    "spread": _of_values(lambda accuracies, _: max(accuracies) - min(accuracies)),
    "rises": _of_values(lambda accuracies, _: sum(after > before for before, after in pairwise(accuracies))),
}


# Kinds that compare what is measured with what is published


def _beaten(result: Result) -> tuple[list[float], list[Figure]]:
    """Return how many of the rows ``minus`` a row is ahead of with p < 0.05; the paper says all that it has."""
    counts: list[float] = []
    claimed: list[Figure] = []
    for dataset in result.sets:
        others = [row for row in result.names("minus") if result.published(row, dataset) is not None]
        found = [compare(result.cells(result.says["row"], dataset), result.cells(row, dataset)) for row in others]
        counts.append(
            sum(1 for each in found if each and each.difference > 0 and each.p is not None and each.p < _LEVEL)
        )
        claimed.append(len(others))
    return counts, claimed


def _equal(result: Result) -> tuple[list[float], list[Figure]]:
    """Return how many sizes of data sets are as published, and how many there are."""
    pairs = [
        (result.measured(size, name), value) for name in result.sets for size, value in published_sizes(name).items()
    ]
    return [sum(measured == value for measured, value in pairs)], [len(pairs)]


_BESIDE: Mapping[str, Callable[[Result], tuple[list[float], list[Figure]]]] = {"beaten": _beaten, "equal": _equal}


def _whole(result: Result) -> list[Line]:
    """Return of a table of the paper the mean of its figures, and the one that is farthest from the published."""
    found = [
        (f"{row} on {paper.TITLES[name]}", result.measured(row, name), value)
        for row in result.names("row")
        for name in result.sets
        if (value := result.published(row, name)) is not None
    ]
    where, far, value = max(found, key=lambda one: abs(one[1] - one[2]))
    means = [mean(own for _, own, _ in found)], [mean(other for _, _, other in found)]
    return [Line(f"mean of {len(found)} figures", *means), Line(f"farthest: {where}", [far], [value])]


# The report


def load_elements() -> list[Element]:
    """Return all elements, in the order of the report."""
    text = resources.files("wgcn_paper").joinpath("settings", "elements.toml").read_text("utf-8")
    return [Element(**entry) for entry in tomllib.loads(text)["element"]]


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return a table per group of elements. If elements have no result, the error names them all."""
    runs_of = cache(partial(_runs, folder))
    groups: dict[str, list[list[str]]] = {}
    failed: dict[str, list[str]] = {}
    for element in load_elements():
        try:
            groups.setdefault(element.group, []).append(_cells(element, runs_of, folder))
        except WGCNError as error:
            failed.setdefault(str(error), []).append(element.name)
    if failed:
        reasons = ". ".join(f"{reason} (for: {'; '.join(names)})" for reason, names in failed.items())
        raise InputError(
            f"{sum(map(len, failed.values()))} elements of the paper have no result. Run their tables first, which "
            f"may need wgcn-paper data prepare all. {reasons}."
        )
    tables = [f"## {group}\n\n{markdown_table(_HEADER, lines)}" for group, lines in groups.items()]
    return "\n".join([" ".join(_LEGEND.split()) + "\n", *tables])


def _cells(element: Element, runs: Runs, folder: Path) -> list[str]:
    """Return the line of an element; letters mark which of several lists of figures belong together."""
    shown = [_shown(line, result.says) for result in element.lists(runs, folder) for line in result.lines()]
    columns = [_together(column) for column in zip(*shown, strict=True)]
    files = "<br>".join(f"[{Path(file).name}]({_ROOT}/{file})" for file in element.files)
    name = f"{element.name}. {element.note}" if element.note else element.name
    return [name, files, *columns, "<br>".join(f"`{command}`" for command in element.commands)]


def _together(cells: Sequence[str]) -> str:
    """Return several cells as one: with a letter each, unless all are the same."""
    if len(set(cells)) == 1:
        return cells[0]
    return "<br>".join(f"({chr(ord('a') + i)}) {cell}" for i, cell in enumerate(cells))


def _shown(line: Line, says: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return figures, published figures and differences as cells."""
    digits = says.get("digits", 1)
    ours = " / ".join(_number(value, digits) for value in line.measured)
    measured = f"{line.label}: {ours}" if line.label else ours
    verdict = _verdict(line.measured, says)
    if "none" in says:
        return measured, f"none published: {says['none']}", f"{NOTHING} (none published){verdict}"
    absent = says.get("absent", "")
    if None in line.published and not absent:
        raise InputError(f"The paper has no figure for {line.label!r} on some data set, and no reason is given.")
    theirs = " / ".join(absent if value is None else _number(value, digits) for value in line.published)
    differences = " / ".join(
        f"{NOTHING} ({absent})" if value is None else _difference(own, value, says)
        for own, value in zip(line.measured, line.published, strict=True)
    )
    return measured, theirs, differences + verdict


def _number(value: float, digits: int) -> str:
    """Return a figure; a half is rounded up, so that the published 88.85 is 88.9."""
    if isinstance(value, int):
        return f"{value:,}"
    rounded = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded:,}" if rounded else f"{abs(rounded)}"


def _difference(own: float, other: float, says: Mapping[str, Any]) -> str:
    if says.get("as_quotient"):
        return f"{_number(other / own, 0 if other >= 10 * own else 1)}\u00d7"
    gap = own - other
    text = _number(gap, says.get("digits", 1))
    return f"+{text}" if gap > 0 and text.strip("0.") else text


def _verdict(values: Sequence[float], says: Mapping[str, Any]) -> str:
    """Return on how many data sets a claim holds, if the part is one."""
    if not {"above", "below"} & set(says):
        return ""
    low, high = says.get("above", float("-inf")), says.get("below", float("inf"))
    held = sum(low < value < high for value in values)
    if len(values) == 1:
        return "; holds" if held else "; does not hold"
    return f"; holds on {held} of {len(values)}"
