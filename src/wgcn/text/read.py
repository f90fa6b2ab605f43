"""Rows of chosen columns, streamed out of text files of any size.

The ending of the name says what a file holds: .txt, .csv, .tsv, .jsonl, .ndjson or .parquet, each also with .gz. One
row is in memory at a time (a batch of rows for parquet) and no row of a text file may be longer than
:data:`MAX_CHARACTERS`, so memory is bounded whatever the file holds.

A file that cannot be used raises :class:`~wgcn.errors.InputError`: for its name, head, header or columns when the
function is called, and for a later row when that row is reached.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import json
import re
import shutil
import tempfile
import warnings
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeVar

from wgcn.errors import InputError, WGCNWarning, needs

__all__ = ["ENDINGS", "MAX_CHARACTERS", "read_rows", "read_texts"]

Row = tuple[str | None, ...]
Columns = Sequence[str | int]
Item = TypeVar("Item")

ENDINGS = (".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
MAX_CHARACTERS = 64 * 2**20
_HEAD_BYTES = 64 * 2**10  # looked at for signs of a binary file
_LOOK_AHEAD_ROWS = 1000  # of a jsonl file, in which every column must appear
_BOM = b"\xef\xbb\xbf"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_MAGIC = {
    b"\x1f\x8b": "gzip; does the name lack .gz?",
    b"PAR1\x15": "parquet; does the name lack .parquet?",
    b"PK\x03\x04": "a zip archive or an Excel workbook (.xlsx). Unpack it, or save the sheet as .csv.",
    b"\xff\xfe": "UTF-16 text. Convert it: iconv -f UTF-16 -t UTF-8",
    b"\xfe\xff": "UTF-16 text. Convert it: iconv -f UTF-16 -t UTF-8",
}
_UNCLOSED = "Is a quote opened here and never closed? A quote inside a quoted field is written twice."
_BROKEN = (
    "held text that is not UTF-8; U+FFFD now stands for each broken byte. "
    "If the file has another encoding, convert it: iconv -f LATIN1 -t UTF-8"
)
_TOO_WIDE = (
    "had more fields than the first, and the extra ones were left out. "
    "If they are part of a text, quote it (.csv) or take the tabs out of it (.tsv)."
)


def read_rows(path: str | Path, columns: Columns, *, header: bool = True) -> Generator[Row, None, None]:
    r"""Stream the chosen columns of a file: one tuple of texts per row, None where .jsonl or .parquet has no value.

    A column is a name, or a position counted from 0; a name of digits is a position where no column has that name. A
    .txt file has one column, ``text``; the columns of .jsonl are the keys of its objects; .tsv knows no quoting.
    Without a `header`, the columns of .csv and .tsv files are positions.

    Bytes that are not UTF-8 become U+FFFD, and one :class:`~wgcn.errors.WGCNWarning` at the end of the file counts the
    rows that had any. A blank line is an empty value in a file of one column and no row in a wider one or in .jsonl.
    Closing the generator closes the file.

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
    return _started(_rows(_source(path, columns, header)))


def read_texts(
    path: str | Path, *, text_column: str | int | None = None, header: bool = True
) -> Generator[str, None, None]:
    """Stream the documents of a file: the column `text_column`, by default the one named ``text``, or the only one.

    A missing text is an empty document, and one :class:`~wgcn.errors.WGCNWarning` at the end counts them.
    """
    return _started(_texts(_source(path, None if text_column is None else [text_column], header)))


def _started(generator: Generator[Item, None, None]) -> Generator[Item, None, None]:
    """Run a generator up to its first, empty item: errors come at the call, and to close it closes its file."""
    next(generator)
    return generator


def _texts(source: _Source) -> Generator[str, None, None]:
    missing = 0
    with closing(_started(_rows(source))) as rows:
        yield ""
        for (text,) in rows:
            missing += text is None
            yield text or ""
    source.warn(missing, "had no text; each became an empty document.")


def _rows(source: _Source) -> Generator[Row, None, None]:
    with _explained(source.path), _opened(source) as stream:
        rows = _READERS.get(source.kind, _read_table)(stream, source)
        if (first := next(rows, None)) is None:
            also = "; in .csv and .tsv, below a header line, if you do not say header=False"
            raise InputError(f"{source.path} has no rows. Expected at least one{also}.")
        yield ()
        yield first
        yield from rows
    source.warn(source.broken, _BROKEN)
    source.warn(source.too_wide, _TOO_WIDE)


@dataclass
class _Source:
    """A file that is being read: what it is, where the reader stands, and what had to be repaired so far."""

    path: Path
    columns: Columns | None  # None stands for the text column
    header: bool
    kind: str  # one of ENDINGS
    zipped: bool
    line: int = 0  # where the current row began, from 1 (parquet: the row itself)
    held: int = 0  # characters of the current row so far
    broken: int = 0  # rows with text that is not UTF-8
    last_broken: int = 0  # its line, so that a row counts once
    too_wide: int = 0  # rows with more fields than the first

    def fault(self, what: str) -> InputError:
        return InputError(f"{self.path}, {'row' if self.kind == '.parquet' else 'line'} {self.line}: {what}")

    def warn(self, rows: int, what: str) -> None:
        if rows:
            warnings.warn(f"{rows} {'row' if rows == 1 else 'rows'} of {self.path} {what}", WGCNWarning, stacklevel=3)

    def positions(self, names: Sequence[str]) -> list[int]:
        """Find the chosen columns among the names."""
        only_one = len(names) == 1 and self.columns is None
        return [self._position(names, column) for column in ([0] if only_one else self.columns or ["text"])]

    def _position(self, names: Sequence[str], column: str | int) -> int:
        if isinstance(column, str) and column in names:
            if (times := names.count(column)) > 1:
                raise InputError(f"{self.path} has {times} columns {_short(column)}. Give a position, from 0, instead.")
            return names.index(column)
        if re.fullmatch("[0-9]{1,9}", str(column)) and int(column) < len(names):
            return int(column)
        listed = ", ".join(map(_short, names[:20])) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
        message = f"{self.path} has no column {_short(column)}. Its columns are {listed}."
        folded = {name.casefold(): name for name in names}
        if close := difflib.get_close_matches(str(column).casefold(), folded, n=1):
            message += f" Did you mean {_short(folded[close[0]])}?"
        if self.kind == ".jsonl":
            message += f" (At most {_LOOK_AHEAD_ROWS} rows were searched; give an early one the key, with null.)"
        if self.columns is None:
            message += " Name the one that holds the text: text_column=… (--text-column on the command line)."
        raise InputError(message)


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"


def _source(path: str | Path, columns: Columns | None, header: bool) -> _Source:
    path = Path(path)
    with _explained(path):
        path.stat()
    if path.is_dir():
        raise InputError(f"{path} is a folder; expected a file. Name one of the files in it.")
    name = path.name.lower()
    ending = Path(name.removesuffix(".gz")).suffix
    if ending not in ENDINGS:
        raise InputError(
            f"{path} has an ending that does not say how to read it. Expected one of {', '.join(ENDINGS)}, "
            "each also with .gz. Rename or convert the file."
        )
    return _Source(path, columns, header, ".jsonl" if ending == ".ndjson" else ending, name.endswith(".gz"))


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn an error of the system into one that says what the user can do."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path} is not a whole gzip file ({error}). It may be cut short or damaged: fetch it again. "
            "If it is not compressed, take .gz off its name."
        ) from error
    except (FileNotFoundError, NotADirectoryError):
        close = difflib.get_close_matches(path.name, [entry.name for entry in path.parent.glob("*")])
        advice = f"Did you mean {' or '.join(close)}?" if close else "Check the path."
        raise InputError(f"There is no file {path}. {advice}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error


@contextmanager
def _opened(source: _Source) -> Iterator[io.BufferedReader]:
    """Open a file, decompressed, and look at its head."""
    with ExitStack() as files:
        raw: Any = files.enter_context(gzip.GzipFile(source.path) if source.zipped else io.FileIO(source.path))
        stream = files.enter_context(io.BufferedReader(raw, _HEAD_BYTES))
        head = stream.peek()
        if not head:
            raise InputError(f"{source.path} has no rows: it is empty. Expected at least one.")
        is_parquet, should_be = head.startswith(b"PAR1"), source.kind == ".parquet"
        for magic, what in _MAGIC.items():
            if head.startswith(magic) and not (is_parquet and should_be):
                raise InputError(f"{source.path} should hold {source.kind} by its name, but looks like {what}")
        if should_be and not is_parquet:
            raise InputError(f"{source.path} is not parquet, though its name says so. Rename it to what it is.")
        if not should_be and b"\0" in head:
            raise InputError(f"{source.path} looks like a binary file (it has NUL bytes); expected text in UTF-8.")
        if source.zipped and source.kind == ".parquet":  # parquet is read from its end, gzip only from its start
            copy: Any = files.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(stream, copy)
            stream = copy
        yield stream


def _lines(stream: io.BufferedReader, source: _Source, *, joined: bool = False) -> Iterator[str]:
    """Yield lines with their ends. If they may be joined into rows (csv), the caller says where each row begins."""
    if stream.peek().startswith(_BOM):
        stream.read(len(_BOM))
    with io.TextIOWrapper(stream, "utf-8", "surrogateescape", newline="" if joined else "\n") as text:
        for number in count(1):
            if not (line := text.readline(MAX_CHARACTERS + 1)):
                return
            if not joined:
                source.line, source.held = number, 0
            source.held += len(line)
            if source.held > MAX_CHARACTERS:
                advice = _UNCLOSED if joined else "Is the file really in this format? Split what is on this line."
                raise source.fault(f"the row is longer than {MAX_CHARACTERS} characters. {advice}")
            yield _repaired(line, source)


def _repaired(text: str, source: _Source) -> str:
    """Replace lone surrogates, which are bytes that are not UTF-8 or escaped in JSON, by U+FFFD."""
    if text.isascii() or not _LONE_SURROGATE.search(text):
        return text
    source.broken += source.line != source.last_broken
    source.last_broken = source.line
    return _LONE_SURROGATE.sub("\ufffd", text)


def _csv_records(stream: io.BufferedReader, source: _Source) -> Iterator[list[str]]:
    # This limit holds for the whole process, and its 128 KiB are less than real documents have. It is only ever raised,
    # so that nobody else's reader breaks; what bounds memory here is _lines.
    csv.field_size_limit(max(MAX_CHARACTERS, csv.field_size_limit()))
    # Without strict, an unclosed quote takes in the rest of the file unnoticed.
    reader = csv.reader(_lines(stream, source, joined=True), strict=True)
    while True:
        source.line, source.held = reader.line_num + 1, 0
        try:
            yield next(reader) or [""]
        except StopIteration:
            return
        except csv.Error as error:
            raise source.fault(f"not valid csv ({error}). {_UNCLOSED}") from error


def _read_table(stream: io.BufferedReader, source: _Source) -> Iterator[Row]:
    if source.kind == ".csv":
        records = _csv_records(stream, source)
    else:
        separator = "\t" if source.kind == ".tsv" else "\n"  # which no line of a .txt file has in it
        records = (line.rstrip("\r\n").split(separator) for line in _lines(stream, source))
    if (first := next(records, None)) is None:
        return
    width, header = len(first), source.header and source.kind != ".txt"
    names = first if header else ["text"] if source.kind == ".txt" else list(map(str, range(width)))
    positions = source.positions(names)
    last = max(positions)
    for fields in records if header else chain([first], records):
        if len(fields) != width:
            if fields == [""]:
                continue
            if len(fields) <= last:
                what = f"column {_short(names[last])} is missing"
                raise source.fault(f"{what}: the row has {len(fields)} of {width} fields.")
            source.too_wide += len(fields) > width
        yield tuple([fields[position] for position in positions])


def _read_jsonl(stream: io.BufferedReader, source: _Source) -> Iterator[Row]:
    rows = _json_objects(_lines(stream, source), source)
    ahead: list[tuple[int, dict[str, object]]] = []
    names: dict[str, None] = {}  # in the order in which they appear
    held = 0
    for row in rows:  # any row may leave keys out, so the first need not have them all
        ahead.append(row)
        names.update(dict.fromkeys(row[1]))
        held += source.held
        found = all(
            name in names if isinstance(name, str) else name < len(names) for name in source.columns or ["text"]
        )
        if found or len(ahead) == _LOOK_AHEAD_ROWS or held > MAX_CHARACTERS:
            break
    if ahead:
        keys = [list(names)[position] for position in source.positions(list(names))]
        for source.line, values in chain(ahead, rows):
            yield tuple([_plain(values.get(key), key, source) for key in keys])


def _json_objects(lines: Iterator[str], source: _Source) -> Iterator[tuple[int, dict[str, object]]]:
    # Numbers stay as they were written: 1 is "1", 1e3 is "1e3", and a long one loses no digit.
    # NaN is no JSON, but what Python writes for a missing number.
    constant = {"NaN": None, "Infinity": "Infinity", "-Infinity": "-Infinity"}.get
    decode = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=constant).decode
    for line in lines:
        if line.isspace():
            continue
        try:
            value = decode(line)
        except (ValueError, RecursionError) as error:
            why = "nested too deeply" if isinstance(error, RecursionError) else error
            raise source.fault(f"not valid JSON ({why}). Expected one object per line.") from error
        if not isinstance(value, dict):
            what = f"{_short(line.rstrip())} is not an object"
            raise source.fault(f'{what}. Expected one per line, like {{"text": "…"}}.')
        yield source.line, value


def _plain(value: object, column: str, source: _Source) -> str | None:
    """Return a value of jsonl or parquet as text. To accept more kinds of values, add them here."""
    if value is None or value != value:  # NaN, NaT
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        kind = "a list" if isinstance(value, list) else "an object"
        raise source.fault(f"column {_short(column)} holds {kind}; expected text, a number, true, false or null.")
    text = value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)
    return _repaired(text, source)


def _read_parquet(stream: io.BufferedReader, source: _Source) -> Iterator[Row]:
    with needs("Reading parquet files"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        # Both settings are needed for a row group to be streamed rather than loaded whole.
        file = pq.ParquetFile(stream, buffer_size=2**20, pre_buffer=False)
        names = [file.schema_arrow.names[i] for i in source.positions(file.schema_arrow.names)]
        for batch in file.iter_batches(1024, columns=names):
            for values in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
                source.line += 1
                yield tuple([_plain(value, name, source) for value, name in zip(values, names, strict=True)])
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError) as error:
        raise InputError(
            f"{source.path} is damaged or not plain parquet ({error}). Write or fetch it again."
        ) from error


_READERS = {".jsonl": _read_jsonl, ".parquet": _read_parquet}  # and _read_table for the others
