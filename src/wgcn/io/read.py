"""Rows, texts and labels, streamed out of files of any size or out of standard input.

The ending of the name says what a file holds: .txt, .csv, .tsv, .jsonl, .ndjson, .json, .parquet or .xlsx, each but
parquet also with .gz. One row is in memory at a time (a batch of rows for parquet) and no row may be longer than
:data:`MAX_CHARACTERS`, so memory is bounded whatever the file holds. A .json array is read whole, up to as many
characters, and a workbook may unpack to 512 MiB, as what is no text may that comes through a pipe.

A file that cannot be used raises :class:`~wgcn.base.errors.InputError`: for its name, head, header or columns when the
function is called, and for a later row when that row is reached. The same table gives the same labels in whichever
format it was saved.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack

from wgcn.base.errors import InputError
from wgcn.io.formats import READERS
from wgcn.io.source import (
    LOOK_AHEAD_ROWS,
    MAX_COLUMNS,
    REPAIRS,
    ColumnNames,
    Source,
    explained,
    number_text,
    opened,
    short,
)
from wgcn.io.tables import cell_text, check_separator, split_labels

RowStream = Generator[tuple[Any, ...], None, None]
LabelledRow = TypeVar("LabelledRow", bound=tuple[Any, ...])  # of a text, its label and perhaps more

# What pandas reads as missing, and what people write for it.
_OF_PANDAS = ("#N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "NaT", "None", "n/a", "nan", "null")
MISSING_SIGNS = frozenset([*_OF_PANDAS, "-", "--", "?"])
_WHOLE_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
FIRST_ROWS, _FEWEST = 1000, 20  # labelled rows by which columns are told apart, at most and at least
_MOST_DIFFER = 0.9  # share of labels of swapped columns that differ
_WITH_EXPONENT = re.compile(r"-?[1-9](\.[0-9]+)?[eE][+-][0-9]{1,3}")  # as programs write numbers: 1e-07, 1.5E+16


class Reading(TypedDict, total=False):
    """How a file is read. Every entry may be left out."""

    header: bool  # whether .csv, .tsv and .xlsx begin with the names of the columns; without, columns are positions
    delimiter: str | None  # of .csv and .tsv; by default found from the first rows of .csv, a tab in .tsv
    encoding: str | None  # by default UTF-8, UTF-16 with a mark, or Windows-1252 where the file is no UTF-8
    format: str | None  # "csv" and so on, where the ending does not say it


def read_rows(
    path: str | Path, columns: ColumnNames, *, lists: ColumnNames = (), **reading: Unpack[Reading]
) -> RowStream:
    r"""Stream the chosen columns of a file: one tuple of texts per row, None where there is no value.

    A column is a name, or a position counted from 0; a name of digits is a position where no column has that name. A
    .txt file has one column, ``text``; the columns of JSON are the keys of its objects, and ``a.b`` is the key ``b`` of
    the object ``a`` where no key has that name; .tsv knows no quoting; of a workbook, the first sheet is read. The path
    ``-`` is standard input, whose format must be given. A list, in one of the columns `lists`, is a list of texts.

    Bytes that cannot be decoded become U+FFFD, and one `WGCNWarning` at the end of the file counts
    the rows that had any; others tell which delimiter and encoding were found, if not commas and UTF-8. A blank line is
    an empty value in a file of one column and no row in a wider one or in .jsonl. Closing the generator closes the
    file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pets.csv")
    ...     _ = path.write_text('label,text\ncat,"Purrs, mostly"\n', encoding="utf-8")
    ...     list(read_rows(path, ["text", "label"]))
    [('Purrs, mostly', 'cat')]
    """
    if not columns:
        raise InputError(f"No column of {path} was chosen. Name at least one.")
    return _opened_rows(Source(Path(path), columns, **reading), lists)[1]


def _opened_rows(source: Source, lists: ColumnNames = ()) -> tuple[list[str], RowStream]:
    """Return the names of all columns, if all are wanted, and the rows: the chosen columns, and after them all."""
    rows = _rows(source, lists)
    return list(next(rows)), rows


def read_texts(
    path: str | Path, *, text_column: str | int | None = None, **reading: Unpack[Reading]
) -> Generator[str, None, None]:
    """Stream the documents of a file: the column `text_column`, by default the one named ``text``, or the only one.

    A missing text is an empty document, and one `WGCNWarning` at the end counts them.
    """
    texts = stream_texts(Source(Path(path), None if text_column is None else [text_column], **reading))
    next(texts)
    return texts


def stream_texts(source: Source) -> Generator[Any, None, None]:
    """Yield the names of all columns, if wanted, and then the text of each row, with all columns and their values."""
    missing = 0
    with closing(_rows(source)) as rows:
        yield next(rows)
        for row in rows:
            missing += row[0] is None
            yield (row[0] or "", row[1:]) if source.whole else row[0] or ""
    source.warn("had no text; each became an empty document.", missing)


def _rows(source: Source, lists: ColumnNames = ()) -> RowStream:
    """Yield the names of the columns, and then the rows: the values of the chosen columns, or of these and all."""
    with explained(source.path), opened(source) as stream:
        also = "; in .csv, .tsv and .xlsx, below a header line, if you do not say header=False"
        nothing = InputError(f"{source.name} has no rows. Expected at least one{also}.")
        if (found := READERS[source.kind](stream, source)) is None:
            raise nothing
        names, select = found
        if source.whole and len(names) > MAX_COLUMNS:
            what = f"has {len(names):,} columns, of which {MAX_COLUMNS:,} can be kept"
            raise InputError(f"{source.name} {what}. Leave out those that you do not need.")
        given = [name for name in names if name == source.optional][:1]
        lacking = () if given or source.optional is None else (None,)
        source.labelled &= not lacking
        columns = [*given, *(source.columns or ([0] if len(names) == 1 and not given else ["text"]))]
        chosen = [_position(source, names, column) for column in columns]
        source.chosen, source.last = chosen, max(chosen)
        own = [place for place, name in enumerate(names) if name not in source.inner] if source.whole else []
        rows = select([*chosen, *own])
        if (first := next(rows, None)) is None:
            raise nothing
        yield tuple(names[place] for place in own)
        rows, n = chain([first], rows), len(chosen)
        kinds = [(names[place], not {names[place], str(place)}.isdisjoint(map(str, lists))) for place in chosen]
        if source.kind in (".txt", ".csv", ".tsv"):  # all of it is text
            yield from ((*lacking, *row) for row in rows) if lacking else rows
        for row in rows:
            yield (*lacking, *map(source.plain, row[:n], *zip(*kinds, strict=True)), *row[n:])
    for kind, what in REPAIRS.items():
        source.warn(what.format(encoding=(source.encoding or "utf-8").upper()), source.repairs[kind])


def _position(source: Source, names: Sequence[str], column: str | int) -> int:
    """Find a chosen column among the names."""
    if isinstance(column, str) and column in names:
        if (times := names.count(column)) > 1:
            raise InputError(f"{source.name} has {times} columns {short(column)}. Give a position, from 0, instead.")
        return names.index(column)
    if re.fullmatch("[0-9]{1,9}", str(column)) and int(column) < len(names):
        return int(column)
    listed = ", ".join(map(short, names[:20])) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    message = f"{source.name} has no column {short(column)}. Its columns are {listed}."
    folded = {name.casefold(): name for name in names}
    if close := difflib.get_close_matches(str(column).casefold(), folded, n=1):
        message += f" Did you mean {short(folded[close[0]])}?"
    if source.kind == ".csv" and len(names) == 1:
        message += " If another character separates its fields, give it: delimiter=… (--delimiter on the command line)."
    if source.kind == ".jsonl":
        message += f" (At most {LOOK_AHEAD_ROWS} rows were searched; give an early one the key, with null.)"
    if source.columns is None:
        message += " Name the one that holds the text: text_column=… (--text-column on the command line)."
    raise InputError(message)


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
    source, _, rows = _open_labelled(path, text_column, label_column, optional, **reading)
    absent = _absent(missing)
    yield from _watched(((text or "", _given(label, absent, separator)) for label, text in rows), source)


def _open_labelled(
    path: str | Path, text_column: str | int | None, label_column: str | int, optional: bool, **reading: Any
) -> tuple[Source, list[str], RowStream]:
    """Open a file, once, as it may be a pipe; its rows begin with label and text."""
    text = None if text_column is None else [text_column]
    if optional and label_column == "label":
        source = Source(Path(path), text, optional="label", labelled=True, **reading)
    else:
        source = Source(Path(path), [label_column, *(text or ["text"])], labelled=True, **reading)
    names, rows = _opened_rows(source, [label_column])
    if source.columns and len(set(source.chosen)) < len(source.chosen):
        raise InputError(
            f"The column {short(source.columns[-1])} of {source.name} has texts and labels at once. Name two: "
            "--text-column for the texts, --label-column for the labels."
        )
    return source, names, rows


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


def _watched(rows: Iterable[LabelledRow], source: Source) -> Iterator[LabelledRow]:
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


def distinct_columns(rows: Iterable[LabelledRow]) -> Iterator[LabelledRow]:
    """Yield rows of a text, its label and perhaps more; an InputError if the columns are the same or look swapped.

    That is where nearly all labels of the first rows differ and are longer than the texts, most of which come again.
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
    source, names, rows = _open_labelled(path, text_column, label_column, True, whole=True, seen=seen, **reading)
    (label, text), n = [-1, *source.chosen][-2:], len(names)
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
