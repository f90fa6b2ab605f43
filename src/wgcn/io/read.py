"""Rows of chosen columns, streamed out of files of any size or out of standard input.

The ending of the name says what a file holds: .txt, .csv, .tsv, .jsonl, .ndjson, .json, .parquet or .xlsx, each but
parquet also with .gz. One row is in memory at a time (a batch of rows for parquet) and no row may be longer than
:data:`MAX_CHARACTERS`, so memory is bounded whatever the file holds. A .json array is read whole, up to as many
characters, and a workbook may unpack to 512 MiB, as what is no text may that comes through a pipe.

A file that cannot be used raises :class:`~wgcn.base.errors.InputError`: for its name, head, header or columns when the
function is called, and for a later row when that row is reached.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Generator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, TypedDict, Unpack

from wgcn.base.errors import InputError
from wgcn.io.formats import LOOK_AHEAD_ROWS, READERS
from wgcn.io.source import (
    MAX_COLUMNS,
    NAME_ENCODING,
    Columns,
    Source,
    explained,
    opened,
    short,
)

Rows = Generator[tuple[Any, ...], None, None]

_BROKEN = f"held text that is not {{}}; U+FFFD now stands for each broken byte. {NAME_ENCODING}"
_TOO_WIDE = (
    "had more fields than the first, and the extra ones were left out. "
    "If they are part of a text, quote it (.csv) or take the tabs out of it (.tsv)."
)
_UNCALCULATED = (
    "held a formula without a value, such as =B2 or '=good wine'; the text of the formula was read. If its value is "
    "meant, open the workbook in a spreadsheet program and save it there."
)
_INEXACT = "held a number of more than 15 digits, of which Excel keeps 15: two may have become one. Store them as text."
_NEW_KEYS = f"had keys that none of the first {LOOK_AHEAD_ROWS} has, which were left out."


class Reading(TypedDict, total=False):
    """How a file is read. Every entry may be left out."""

    header: bool  # whether .csv, .tsv and .xlsx begin with the names of the columns; without, columns are positions
    delimiter: str | None  # of .csv and .tsv; by default found from the first rows of .csv, a tab in .tsv
    encoding: str | None  # by default UTF-8, UTF-16 with a mark, or Windows-1252 where the file is no UTF-8
    format: str | None  # "csv" and so on, where the ending does not say it


def read_rows(path: str | Path, columns: Columns, *, lists: Columns = (), **reading: Unpack[Reading]) -> Rows:
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
    return read_source(Source(Path(path), columns, **reading), lists)[1]


def read_source(source: Source, lists: Columns = ()) -> tuple[list[str], Rows]:
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


def _rows(source: Source, lists: Columns = ()) -> Rows:
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
        columns = source.columns or ([0] if len(names) == 1 else ["text"])
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
    source.warn(_BROKEN.format((source.encoding or "utf-8").upper()), source.broken)
    source.warn(_UNCALCULATED, source.uncalculated)
    source.warn(_INEXACT, source.inexact)
    source.warn(_NEW_KEYS if source.kind in (".jsonl", ".json") else _TOO_WIDE, source.too_wide)


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
