"""A file of rows or standard input while it is read: opened, decompressed, decoded, and what is wrong with it."""

from __future__ import annotations

import codecs
import difflib
import gzip
import io
import re
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

from wgcn.base.errors import InputError, WGCNWarning

ColumnNames = Sequence[str | int]

ENDINGS = (".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx")
MAX_CHARACTERS = 64 * 2**20
MAX_UNPACKED = 2**29  # bytes of a workbook, and of what comes through a pipe but must be read from its end
MAX_VALUES, MAX_DOCUMENT_VALUES = 2**20, 2**22  # of JSON in a row, and in a .json file
MAX_FIELDS, MAX_COLUMNS = 2**22, 2**14  # separators of a row, which texts may have too; columns that are all kept
MAX_DEPTH = 100  # of JSON
LOOK_AHEAD_ROWS = 1000  # of a jsonl file, in which every column must appear
_INEXACT = 10**15  # from which on Excel does not keep every digit
_LONGEST_NUMBER = 400  # digits of a number that is written without an exponent: those of a float are fewer
HEAD_BYTES = 64 * 2**10  # looked at for encoding, delimiter and signs of a binary file
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_MAGIC = {  # how files begin, what they are, and the ending that may have it
    b"\x1f\x8b": ("gzip; does the name lack .gz?", ""),
    b"PAR1\x15": ("parquet; does the name lack .parquet?", ".parquet"),
    b"PK\x03\x04": ("a zip archive or an Excel workbook. Unpack it, or give it the ending .xlsx.", ".xlsx"),
    b"\xd0\xcf\x11\xe0": ("an old Excel or Word file. Save it as .xlsx or .csv.", ""),
}
_BINARY = {".parquet": b"PAR1", ".xlsx": b"PK"}  # how these must begin
_MARKS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
_MARKS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}  # after the longer ones, which begin alike
UNCLOSED = "Is a quote opened here and never closed? A quote inside a quoted field is written twice."
_TOO_LARGE = {".csv": UNCLOSED, ".json": "Write the objects as .jsonl, one per line."}
NAME_ENCODING = "If it has another encoding, name it: encoding=… (--encoding on the command line)."
REPAIRS = {  # what is said of the rows in which something had to be repaired
    "undecoded": f"held text that is not {{encoding}}; U+FFFD now stands for each broken byte. {NAME_ENCODING}",
    "uncalculated": "held a formula without a value, such as =B2 or '=good wine'; the text of the formula was read. "
    "If its value is meant, open the workbook in a spreadsheet program and save it there.",
    "inexact": "held a number of more than 15 digits, of which Excel keeps 15: two may have become one. "
    "Store them as text.",
    "too wide": "had more fields than the first, and the extra ones were left out. "
    "If they are part of a text, quote it (.csv) or take the tabs out of it (.tsv).",
    "new keys": f"had keys that none of the first {LOOK_AHEAD_ROWS} has, which were left out.",
}


@dataclass
class Source:
    """A file that is being read: what it is, where the reader stands, and what had to be repaired so far."""

    path: Path
    columns: ColumnNames | None  # None stands for the text column
    whole: bool = False  # all columns are wanted beside `columns`, with numbers of JSON as numbers
    labelled: bool = False  # a row of .csv or .tsv with more fields than the first is an error: its label may be wrong
    header: bool = True
    delimiter: str | None = None
    encoding: str | None = None
    format: str | None = None
    optional: str | None = None  # a column before `columns` that the file may lack: it is empty then
    seen: Callable[[bytes], object] | None = None  # is called with the bytes, unpacked, as they are read
    kind: str = ""  # one of ENDINGS
    head: bytes = b""
    line: int = 0  # where the current row began, from 1, or the number of the row
    held: int = 0  # characters of the current row so far
    values: int = 0  # of the current row: separators, or values of JSON
    last: int = 0  # position of the last column that every row must have
    repairs: Counter[str] = field(default_factory=Counter)  # rows by what had to be repaired, a key of REPAIRS
    last_broken: int = 0  # the last line that could not be decoded, so that a row counts once
    schema: Any = None  # of parquet
    chosen: Sequence[int] = ()  # positions of `columns`
    inner: Set[str] = frozenset()  # columns that are dotted paths into objects

    def __post_init__(self) -> None:
        """Check the options, and find out from the name what the file is."""
        self.piped, lower = str(self.path) == "-", self.path.name.lower()
        self.name, self.zipped = "Standard input" if self.piped else str(self.path), lower.endswith(".gz")
        if not self.piped:
            with explained(self.path):
                self.path.stat()
            if self.path.is_dir():
                raise InputError(f"{self.path} is a folder; expected a file. Name one of the files in it.")
        given = self.format and "." + self.format.lower().removeprefix(".")
        self.kind = given or Path(lower.removesuffix(".gz")).suffix
        if self.kind not in ENDINGS:
            what = f"has the format {self.format!r}" if given else "has no ending that says how to read it"
            advice = "Name the format" if self.piped else "Rename or convert the file, or name the format"
            raise InputError(
                f"{self.name} {what}. Expected one of {', '.join(ENDINGS)}, each but parquet also with .gz. {advice}: "
                "format=… (--format on the command line)."
            )
        if self.zipped and self.kind == ".parquet":
            advice = "Unpack it first. If it is not zipped, take .gz off its name."
            raise InputError(f"{self.name} is zipped parquet, which is compressed in itself already. {advice}")
        self.kind = ".jsonl" if self.kind == ".ndjson" else self.kind
        self.delimiter = "\t" if self.delimiter in ("\\t", "tab") else self.delimiter
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n\0'):
            raise InputError(f"The delimiter is one character, such as ';' or '\\t', got {self.delimiter!r}.")
        try:
            io.TextIOWrapper(io.BytesIO(), self.encoding or "utf-8").close()
            self.encoding = self.encoding and codecs.lookup(self.encoding).name
        except (LookupError, ValueError):
            raise InputError(f"There is no encoding {self.encoding!r}. Name one, such as cp1252 or utf-16.") from None

    def fault(self, what: str) -> InputError:
        """Return an error at the current row."""
        unit = "row" if self.kind in (*_BINARY, ".json") else "line"
        return InputError(f"{self.name}, {unit} {self.line}: {what}")

    def too_large(self, most: int | None = None) -> InputError:
        """Return an error at the current row, which is too long, or has more than `most` fields or values."""
        what = f"is longer than {MAX_CHARACTERS} characters" if most is None else f"has more than {most:,} values"
        advice = _TOO_LARGE.get(self.kind, "Is the file really in this format? Split this row.")
        return self.fault(f"the row {what}. {advice}")

    def warn(self, what: str, rows: int | None = None) -> None:
        """Say what was assumed about the file, or what was repaired in a number of rows, unless it is 0."""
        of_rows = "" if rows is None else "1 row of " if rows == 1 else f"{rows} rows of "
        if rows != 0:
            warnings.warn(f"{of_rows}{self.name} {what}", WGCNWarning, stacklevel=4)

    def repaired(self, text: str) -> str:
        """Replace lone surrogates, which are bytes that cannot be decoded or escaped in JSON, by U+FFFD."""
        if text.isascii() or not _LONE_SURROGATE.search(text):
            return text
        self.repairs["undecoded"] += self.line != self.last_broken
        self.last_broken = self.line
        return _LONE_SURROGATE.sub("\ufffd", text)

    def plain(self, value: object, column: str, may_be_list: bool = False) -> Any:
        """Return a value of JSON, parquet or Excel as text, or a list of them: all kinds of values are listed here."""
        if value is None or value != value:  # NaN, NaT
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if may_be_list and isinstance(value, list):
            texts = [text for each in value if (text := self.plain(each, column)) is not None]
            return texts if texts or not value else None
        if isinstance(value, list | dict):
            kind = "a list" if isinstance(value, list) else "an object"
            raise self.fault(f"column {short(column)} holds {kind}; expected text, a number, true, false or null.")
        if isinstance(value, int | float):
            self.repairs["inexact"] += self.kind == ".xlsx" and abs(value) >= _INEXACT
            return number_text(repr(value))
        text = value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)
        return self.repaired(text)


def number_text(written: str) -> str:
    """Return a number, written as Python does, without an exponent, so that it is the same text in every format.

    Examples
    --------
    >>> [number_text(each) for each in ("1e-07", "1.5E+16", "12345678901234567", "2.50")]
    ['0.0000001', '15000000000000000', '12345678901234567', '2.50']
    """
    if not {"e", "E"} & {*written}:
        return written
    try:
        number = Decimal(written)
    except ArithmeticError:  # its exponent is beyond everything
        return written
    return format(number, "f") if abs(number.adjusted()) < _LONGEST_NUMBER else written


def short(value: object) -> str:
    """Return a value for a message, cut."""
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"


@contextmanager
def explained(path: Path) -> Iterator[None]:
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


class _Rejoined(io.RawIOBase):
    """The head of a stream, which was read, and the rest; `seen` is called with what is read."""

    def __init__(self, head: bytes, rest: Any, seen: Callable[[bytes], object] | None) -> None:
        self._head, self._rest, self._seen = io.BytesIO(head), rest, seen

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size: int = self._head.readinto(buffer) or self._rest.readinto1(buffer)
        if self._seen is not None:
            self._seen(bytes(buffer[:size]))
        return size


@contextmanager
def opened(source: Source) -> Iterator[Any]:
    """Open a file, decompressed, and look at its head. Text is streamed, even through a pipe."""
    with ExitStack() as files:
        stream: Any = sys.stdin.buffer
        if not source.piped:
            raw: Any = files.enter_context(gzip.GzipFile(source.path) if source.zipped else io.FileIO(source.path))
            stream = files.enter_context(io.BufferedReader(raw, HEAD_BYTES))
        source.head = stream.read(HEAD_BYTES)
        _check_head(source)
        rejoined = io.BufferedReader(_Rejoined(source.head, stream, source.seen), HEAD_BYTES)
        if source.kind not in _BINARY:
            yield rejoined
        elif stream.seekable() and not source.zipped and source.seen is None:
            stream.seek(-len(source.head), io.SEEK_CUR)
            yield stream
        else:
            yield _copy(rejoined, source, files.enter_context(tempfile.TemporaryFile()))


def _copy(stream: Any, source: Source, copy: Any) -> Any:
    """Copy what must be read from its end, up to a limit."""
    while part := stream.read(2**20):
        if copy.tell() + len(part) > MAX_UNPACKED:
            what = f"holds more than {MAX_UNPACKED >> 20} MiB of {source.kind[1:]}"
            raise InputError(f"{source.name} {what}. Give a plain file, neither zipped nor through a pipe.")
        copy.write(part)
    copy.seek(0)
    return copy


def _check_head(source: Source) -> None:
    """Raise an InputError if the head is not what the name says; find the encoding."""
    head, kind = source.head, source.kind
    if not head:
        raise InputError(f"{source.name} has no rows: it is empty. Expected at least one.")
    for magic, (what, ending) in _MAGIC.items():
        if head.startswith(magic) and kind != ending:
            raise InputError(f"{source.name} should hold {kind} by its name, but looks like {what}")
    if not head.startswith(_BINARY.get(kind, b"")):
        raise InputError(f"{source.name} is not {kind[1:]}, though its name says so. Rename it to what it is.")
    if kind in _BINARY:
        return
    if source.encoding is None:
        source.encoding = _detect_encoding(head)
        if source.encoding == "cp1252":
            source.warn(f"is not UTF-8 and is read as Windows-1252 (Western European). {NAME_ENCODING}")
        elif source.encoding != "utf-8":
            source.warn(f"is read as {source.encoding.upper()}, as its first bytes say. {NAME_ENCODING}")
    if b"\0" in head and not source.encoding.startswith(("utf-16", "utf-32")):
        raise InputError(f"{source.name} looks like a binary file (it has NUL bytes); expected text. {NAME_ENCODING}")


def _detect_encoding(head: bytes) -> str:
    """Return the encoding that a mark names, or else UTF-8, unless most of what is not ASCII reads as Windows-1252.

    The few letters of Western European languages that are not ASCII stand alone or in pairs; in Cyrillic, Greek or
    Asian encodings most stand in longer runs, and then nothing is guessed.
    """
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return name
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(head)  # may end inside a character
    n_broken = len(_LONE_SURROGATE.findall(text))
    if 2 * n_broken <= len(re.findall(r"[^\0-\x7f]", text)):
        return "utf-8"
    runs = [len(run) for run in re.findall(rb"[\x80-\xff]+", head)]
    undefined = re.search(rb"[\x81\x8d\x8f\x90\x9d]", head)
    return "utf-8" if undefined or 2 * sum(run for run in runs if run > 2) > sum(runs) else "cp1252"


def lines(stream: Any, source: Source, *, joined: bool = False) -> Iterator[str]:
    """Yield lines with their ends. If they may be joined into rows (csv), the caller says where each row begins."""
    newline = "" if joined else "\n"
    with io.TextIOWrapper(stream, source.encoding, "surrogateescape", newline=newline) as text:
        for number in count(1):
            try:
                line = text.readline(MAX_CHARACTERS + 1).removeprefix("\ufeff" if number == 1 else "")
            except UnicodeError as error:  # not every encoding lets a broken byte pass
                raise InputError(f"{source.name} is not whole {source.encoding} ({error}). {NAME_ENCODING}") from error
            if not line:
                return
            if not joined:
                source.line, source.held = number, 0
            source.held += len(line)
            if source.held > MAX_CHARACTERS:
                raise source.too_large()
            yield source.repaired(line)
