"""Labels out of files: the same table gives the same labels in whichever format it was saved."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, Unpack

from wgcn.base.errors import InputError
from wgcn.io.read import Reading, read_source
from wgcn.io.source import Source, number_text, short
from wgcn.io.tables import cell_text, check_separator, split_labels

Row = TypeVar("Row", bound=tuple[Any, ...])  # of a text, its label and perhaps more

# What pandas reads as missing, and what people write for it.
_OF_PANDAS = ("#N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "NaT", "None", "n/a", "nan", "null")
MISSING_SIGNS = frozenset([*_OF_PANDAS, "-", "--", "?"])
_WHOLE_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
FIRST_ROWS, _FEWEST = 1000, 20  # labelled rows by which columns are told apart, at most and at least
_MOST_DIFFER = 0.9  # share of labels of swapped columns that differ
_WITH_EXPONENT = re.compile(r"-?[1-9](\.[0-9]+)?[eE][+-][0-9]{1,3}")  # as programs write numbers: 1e-07, 1.5E+16


def label_text(text: str) -> str:
    """Return a label in the form that it has in every format.

    True, TRUE and true are written "true", as JSON does, and likewise "false". A whole number loses its ".0": pandas
    writes 1 as 1.0 into a csv file if another value of the column is missing, and Excel knows no difference. A number
    with a signed exponent, such as 1e-07, is written without one. Other labels stay as they are, 1e7 and 1.50 too: they
    may be names.

    Examples
    --------
    >>> [label_text(text) for text in ("TRUE", "1.0", "1e+16", "1e-07", "007", "1.50", "1e7", "Sport")]
    ['true', '1', '10000000000000000', '0.0000001', '007', '1.50', '1e7', 'Sport']
    """
    if (lower := text.lower()) in ("true", "false"):
        return lower
    if _WITH_EXPONENT.fullmatch(text):
        text = number_text(text)
    number = _WHOLE_NUMBER.fullmatch(text) if "." in text else None
    return (number[1] if number[1] != "-0" else "0") if number else text


def read_labelled(
    path: str | Path,
    *,
    text_column: str | int | None = None,
    label_column: str | int = "label",
    separator: str | None = None,
    missing: str | Iterable[str] | None = None,
    optional: bool = False,
    **reading: Unpack[Reading],
) -> Iterator[tuple[str, str | list[str] | None]]:
    """Read texts with their labels: a str, a list of str, or None for a blank label or one that is `missing`.

    A label is a list where the file has a list (JSON or parquet), or if there is a `separator`, at which it is split.
    `missing` are labels that stand for none, as a list or separated by commas; a warning counts those of
    :data:`MISSING_SIGNS` that are not among them, which are classes. The file is opened when the first row is asked
    for. If labels are `optional`, a file without a column "label" has unlabelled texts.

    An InputError are one column for texts and labels, columns that look swapped, and, in .csv and .tsv, a row with more
    fields than the header, since its label may be part of its text.
    """
    if separator is not None:
        check_separator(separator)
    source = _source(path, text_column, label_column, optional, **reading)
    _, rows = read_source(source, [label_column])
    _check_two(source)
    absent = _absent(missing)
    yield from _watched(((text or "", _given(label, absent, separator)) for label, text in rows), source)


def _source(
    path: str | Path, text_column: str | int | None, label_column: str | int, optional: bool, **reading: Any
) -> Source:
    """Return a file whose rows begin with label and text; the file is opened once, as it may be a pipe."""
    if optional and label_column == "label":
        columns = None if text_column is None else [text_column]
        return Source(Path(path), columns, optional="label", labelled=True, **reading)
    return Source(Path(path), [label_column, "text" if text_column is None else text_column], labelled=True, **reading)


def _check_two(source: Source) -> None:
    """Raise an InputError if one column has texts and labels."""
    if source.columns and len(set(source.chosen)) < len(source.chosen):
        raise InputError(
            f"The column {short(source.columns[-1])} of {source.name} has texts and labels at once. Name two: "
            "--text-column for the texts, --label-column for the labels."
        )


def _absent(missing: str | Iterable[str] | None) -> frozenset[str]:
    """Return labels that stand for none in the form of `label_text`."""
    given = missing.split(",") if isinstance(missing, str) else missing or ()
    return frozenset(label_text(label.strip()) for label in given)


def _given(label: Any, absent: frozenset[str], separator: str | None = None) -> Any:
    """Return a label as it is used: a str, a list of str, or None."""
    if separator is None and not isinstance(label, list):
        name = label_text(label or "")
        return None if not (bare := name.strip()) or bare in absent else name
    parts = label if isinstance(label, list) else split_labels(label or "", str(separator)) or [""]
    names = [name for part in parts if (name := _given(part, absent)) is not None]
    return names if names or not parts else None


def _watched(rows: Iterable[Row], source: Source) -> Iterator[Row]:
    """Yield rows whose columns are not mixed up; at the end, warn of labels that often stand for none."""
    signs, n_rows = Counter[str](), 0
    for row in distinct_columns(rows):
        label = row[1]
        found = {label.strip()} if isinstance(label, str) else set(map(str.strip, label or ()))
        if not found.isdisjoint(MISSING_SIGNS):
            signs.update(found & MISSING_SIGNS)
            n_rows += 1
        yield row
    shown = ", ".join(f"{sign!r} ({n:,})" for sign, n in sorted(signs.items()))
    what = f"had a label that often stands for a missing one: {shown}. They count as classes. "
    source.warn(f"{what}If there is no label, say so: missing=… (--missing {','.join(sorted(signs))}).", n_rows)


def distinct_columns(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows of a text, its label and perhaps more; an InputError if the columns are the same or look swapped.

    The first thousand rows with a label are looked at, if there are twenty. Columns look swapped where nearly all
    labels differ and are longer than the texts, most of which are there several times: nothing could be learnt.
    """
    first: list[tuple[str, str]] = []
    for row in rows:
        if row[1] and len(first) < FIRST_ROWS:
            first.append((row[0], row[1] if isinstance(row[1], str) else " ".join(row[1])))
            if len(first) == FIRST_ROWS:
                _check_distinct(first)
        yield row
    if _FEWEST <= len(first) < FIRST_ROWS:
        _check_distinct(first)


def _check_distinct(pairs: list[tuple[str, str]]) -> None:
    texts, labels = zip(*pairs, strict=True)
    n_texts, n_labels = len(set(texts)), len(set(labels))
    if all(text.strip() == label.strip() for text, label in pairs):
        raise InputError(
            f"Each of the first {len(pairs):,} labels is the text itself: there is nothing to learn. Name another "
            "column for the labels (--label-column), or for the texts (--text-column)."
        )
    length, text_length = (sum(map(len, each)) / len(pairs) for each in (labels, texts))
    if n_labels >= _MOST_DIFFER * len(pairs) and n_texts <= len(pairs) / 2 and length > text_length:
        raise InputError(
            f"Texts and labels look swapped: the first {len(pairs):,} rows have {n_labels:,} different labels, of "
            f"{length:.0f} characters on average, and {n_texts:,} different texts, of {text_length:.0f}. Exchange them "
            "(--text-column, --label-column; in Python, texts come first)."
        )


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
    missing: str | Iterable[str] | None = None,
    seen: Callable[[bytes], object] | None = None,
    **reading: Unpack[Reading],
) -> LabelledTable:
    """Read texts, their labels, if there is such a column, and the values of all other columns as text.

    Labels are read as by `read_labelled`. `seen` is called with all bytes of the file, unpacked, as they are read.
    """
    source = _source(path, text_column, label_column, optional=True, whole=True, seen=seen, **reading)
    names, rows = read_source(source, [label_column])
    _check_two(source)
    label, text = [-1, *source.chosen][-2:]
    n = len(names)
    others = [place for place in range(n) if place not in (text, label)]
    if text >= n:  # inside another one
        names, text = [*names, str(text_column)], len(names)
    if not 0 <= label < n:
        names, label = [*names, label_column], len(names)
    absent = _absent(missing)
    table = ((row[1] or "", _given(row[0], absent), [cell_text(row[2 + place]) for place in others]) for row in rows)
    return LabelledTable(names, text, label, _watched(table, source))


def texts_and_labels(rows: Iterable[tuple[str, str | list[str] | None]]) -> tuple[list[str], list[Any]]:
    """Read rows of `read_labelled` to the end: if some labels are lists, one that is none becomes a list of one."""
    pairs = list(rows)
    several = any(isinstance(label, list) for _, label in pairs)
    labels = [[label] if several and isinstance(label, str) else label for _, label in pairs]
    return [text for text, _ in pairs], labels
