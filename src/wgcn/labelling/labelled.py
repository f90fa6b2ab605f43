"""Labels out of files: the same table gives the same labels in whichever format it was saved."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from wgcn.errors import InputError
from wgcn.labelling.tables import cell_text
from wgcn.text.read import Reading, read_source
from wgcn.text.source import Source, short

__all__ = ["LabelledTable", "label_text", "read_labelled", "read_labelled_table", "texts_and_labels"]

_WHOLE_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")


def label_text(text: str) -> str:
    """Return a label in the form that it has in every format.

    True, TRUE and true are written "true", as JSON does, and likewise "false". A whole number loses its ".0": pandas
    writes 1 as 1.0 into a csv file if another value of the column is missing, and Excel knows no difference. Other
    labels stay as they are.

    Examples
    --------
    >>> [label_text(text) for text in ("TRUE", "1.0", "007", "1.5", "v1.0", "Sport")]
    ['true', '1', '007', '1.5', 'v1.0', 'Sport']
    """
    if (lower := text.lower()) in ("true", "false"):
        return lower
    number = _WHOLE_NUMBER.fullmatch(text) if "." in text else None
    return number[1] if number else text


def read_labelled(
    path: str | Path,
    *,
    text_column: str | int | None = None,
    label_column: str | int = "label",
    separator: str | None = None,
    optional: bool = False,
    **reading: Unpack[Reading],
) -> Iterator[tuple[str, str | list[str] | None]]:
    """Read texts with their labels: a str, a list of str, or None for an empty label.

    A label is a list where the file has a list (JSON or parquet), or if there is a `separator`, at which it is split.
    The file is opened when the first row is asked for. If labels are `optional`, a file without a column "label" has
    unlabelled texts.
    """
    source = _source(path, text_column, label_column, optional, **reading)
    _, rows = read_source(source, [label_column])
    for label, text in rows:
        yield text or "", _given(label, separator)


def _source(
    path: str | Path, text_column: str | int | None, label_column: str | int, optional: bool, **reading: Any
) -> Source:
    """Return a file whose rows begin with label and text; the file is opened once, as it may be a pipe."""
    if optional and label_column == "label":
        return Source(Path(path), None if text_column is None else [text_column], optional="label", **reading)
    return Source(Path(path), [label_column, "text" if text_column is None else text_column], **reading)


def _given(label: Any, separator: str | None = None) -> Any:
    """Return a label as it is used: a str, a list of str, or None."""
    if isinstance(label, list):
        return [label_text(part) for part in label if part.strip()]
    if label is None or not label.strip():
        return None
    if separator is None:
        return label_text(label)
    return [label_text(part.strip()) for part in label.split(separator) if part.strip()]


class LabelledTable(NamedTuple):
    """Texts and labels with the other columns of their file."""

    names: list[str]  # of all columns; those of texts and labels come last where the file has none of their own
    text: int  # the place of the column of texts
    label: int  # and of that of labels
    rows: Iterator[tuple[str, str | list[str] | None, list[str]]]  # text, label, and the others in their order


def read_labelled_table(
    path: str | Path,
    *,
    text_column: str | int | None = None,
    label_column: str = "label",
    seen: Callable[[bytes], object] | None = None,
    **reading: Unpack[Reading],
) -> LabelledTable:
    """Read texts, their labels, if there is such a column, and the values of all other columns as text.

    `seen` is called with all bytes of the file, unpacked, as they are read.
    """
    source = _source(path, text_column, label_column, optional=True, whole=True, seen=seen, **reading)
    names, rows = read_source(source, [label_column])
    label, text = [-1, *source.chosen][-2:]
    if text == label:
        raise InputError(
            f"The column {short(names[text])} of {path} has texts and labels at once. Name two: --text-column for the "
            "texts, --label-column for the labels."
        )
    n = len(names)
    others = [place for place in range(n) if place not in (text, label)]
    if text >= n:  # inside another one
        names, text = [*names, str(text_column)], len(names)
    if not 0 <= label < n:
        names, label = [*names, label_column], len(names)
    table = ((row[1] or "", _given(row[0]), [cell_text(row[2 + place]) for place in others]) for row in rows)
    return LabelledTable(names, text, label, table)


def texts_and_labels(rows: Iterable[tuple[str, str | list[str] | None]]) -> tuple[list[str], list[Any]]:
    """Read rows of `read_labelled` to the end: if some labels are lists, one that is none becomes a list of one."""
    pairs = list(rows)
    several = any(isinstance(label, list) for _, label in pairs)
    labels = [[label] if several and isinstance(label, str) else label for _, label in pairs]
    return [text for text, _ in pairs], labels
