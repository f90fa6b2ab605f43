"""The paper element by element: equations, methods, data sets, tables, figures and claims, each beside its result.

``settings/elements.toml`` has one ``[[element]]`` per line of the report: its ``group`` and ``name``, the ``files``
that implement it, the ``commands`` that make its result, perhaps a ``note``, and ``parts``, which say how its figures
are computed from the committed runs of the other tables (`wgcn_paper.experiments.element_parts`); ``common`` holds for
all of them. How a part is shown:

- ``none``: why there is no published figure. ``absent``: what the paper has instead of a figure on some data sets.
- ``above``, ``below``: where the figures are so, a claim of the text holds.
- ``digits``: decimal places, one if it is not given; whole numbers have none.
- ``as_quotient``: divide the published figures by the measured ones, instead of subtracting.

Nothing is run here. An element without a result is an error.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from importlib import resources
from pathlib import Path

from wgcn.base.errors import InputError, WGCNError
from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.element_parts import Keys, Line, Part
from wgcn_paper.experiments.recipes import Sources
from wgcn_paper.experiments.report import NOTHING, markdown_table
from wgcn_paper.experiments.table import Table

__all__ = ["Element", "load_elements", "report"]

_ROOT = "../.."  # of the checkout, seen from paper/results and from docs/results
_HEADER = ["element", "files", "committed result", "published", "difference", "made by"]
_LEGEND = """\
One line per element of the paper. Lists have one figure per data set, in the order 20NG / MR / Ohsumed / R52 / R8 or
Citeseer / Pubmed, unless their label names others. Letters mark lists that belong together; what is the same for all
stands once. Accuracies are means in percent under the protocol corpus, that of the published figures, unless the label
says otherwise. Differences are measured minus published, in points, taken before rounding. "Holds on" counts the data
sets on which the measured figures say what the paper says. Deviations, numbers of seeds and package versions are in the
reports that the commands write."""


@dataclass(frozen=True)
class Element:
    """An equation, a method, a data set, a table, a figure or a claim of the paper.

    Parameters
    ----------
    group, name : str
    files : sequence of str
        Paths in the checkout.
    commands : sequence of str
    parts : sequence of Keys
        How its figures are computed.
    common : Keys
        What all parts have in common.
    note : str
        What a reader of the figures must know.
    """

    group: str
    name: str
    files: Sequence[str]
    commands: Sequence[str]
    parts: Sequence[Keys]
    common: Keys = field(default_factory=dict)
    note: str = ""

    @property
    def whole_parts(self) -> list[Keys]:
        """The parts with what they have in common."""
        return [{**self.common, **part} for part in self.parts]


class _Folder(Sources):
    """Runs of a folder of results, which need not be that of a checkout."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._results = folder


def load_elements() -> list[Element]:
    """Return all elements, in the order of the report."""
    text = resources.files("wgcn_paper").joinpath("settings", "elements.toml").read_text("utf-8")
    return [Element(**entry) for entry in tomllib.loads(text)["element"]]


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return a table per group of elements.

    Raises
    ------
    InputError
        If elements have no result; it names them all.
    """
    sources = _Folder(folder)
    groups: dict[str, list[list[str]]] = {}
    failed: dict[str, list[str]] = {}
    for element in load_elements():
        try:
            groups.setdefault(element.group, []).append(_cells(element, sources, folder))
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


def _cells(element: Element, sources: Sources, folder: Path) -> list[str]:
    """Return the line of an element; letters mark which of several lists of figures belong together."""
    shown = [_shown(line, part) for part in element.whole_parts for line in Part(part, sources, folder).lines()]
    columns = [_together(column) for column in zip(*shown, strict=True)]
    files = "<br>".join(f"[{Path(file).name}]({_ROOT}/{file})" for file in element.files)
    name = f"{element.name}. {element.note}" if element.note else element.name
    return [name, files, *columns, "<br>".join(f"`{command}`" for command in element.commands)]


def _together(cells: Sequence[str]) -> str:
    """Return several cells as one: with a letter each, unless all are the same."""
    if len(set(cells)) == 1:
        return cells[0]
    return "<br>".join(f"({chr(ord('a') + i)}) {cell}" for i, cell in enumerate(cells))


def _shown(line: Line, part: Keys) -> tuple[str, str, str]:
    """Return figures, published figures and differences as cells."""
    digits = part.get("digits", 1)
    ours = " / ".join(_number(value, digits) for value in line.measured)
    measured = f"{line.label}: {ours}" if line.label else ours
    verdict = _verdict(line.measured, part)
    if "none" in part:
        return measured, f"none published: {part['none']}", f"{NOTHING} (none published){verdict}"
    absent = part.get("absent", "")
    if None in line.published and not absent:
        raise InputError(f"The paper has no figure for {line.label!r} on some data set, and no reason is given.")
    theirs = " / ".join(absent if value is None else _number(value, digits) for value in line.published)
    differences = " / ".join(
        f"{NOTHING} ({absent})" if value is None else _difference(own, value, part)
        for own, value in zip(line.measured, line.published, strict=True)
    )
    return measured, theirs, differences + verdict


def _number(value: float, digits: int) -> str:
    """Return a figure; a half is rounded up, so that the published 88.85 is 88.9."""
    if isinstance(value, int):
        return f"{value:,}"
    rounded = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded:,}" if rounded else f"{abs(rounded)}"


def _difference(own: float, other: float, part: Keys) -> str:
    if part.get("as_quotient"):
        return f"{_number(other / own, 0 if other >= 10 * own else 1)}\u00d7"
    gap = own - other
    text = _number(gap, part.get("digits", 1))
    return f"+{text}" if gap > 0 and text.strip("0.") else text


def _verdict(values: Sequence[float], part: Keys) -> str:
    """Return on how many data sets a claim holds, if the part is one."""
    if not {"above", "below"} & set(part):
        return ""
    low, high = part.get("above", float("-inf")), part.get("below", float("inf"))
    held = sum(low < value < high for value in values)
    if len(values) == 1:
        return "; holds" if held else "; does not hold"
    return f"; holds on {held} of {len(values)}"
