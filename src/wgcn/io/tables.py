"""Tables read and written batch by batch, as csv, tsv, jsonl or parquet: a file's columns, and some that are added."""

from __future__ import annotations

import csv
import io
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from wgcn.base.errors import InputError, WGCNWarning, needs
from wgcn.io.predictions import DIGITS, Column

Batch = tuple[list[str], list[Sequence[Any]]]  # texts, and the values of the columns that are kept

KINDS = ("txt", "csv", "tsv", "jsonl", "parquet")
_OTHERS = (".json", ".xlsx", ".xls", ".gz", ".zip", ".bz2", ".xz")  # endings that promise what is not written
MAX_LINE = 64 * 2**20  # bytes; as many as a row of a file may have characters
_BLANKS = str.maketrans("\t\n\r", "   ")
LABEL_SEPARATOR = ";"  # between several labels of a text, where nothing else is asked for


class Table(NamedTuple):
    """A file with all its columns."""

    names: list[str]
    schema: Any  # of a parquet file, otherwise None
    rows: Iterator[tuple[str, Sequence[Any]]]  # the text of each row, and the values of all columns


def table_kind(output: Path | None, given: str | None = None) -> str:
    """Return how to write a table: as `given`, or as the ending of its file says, or as plain lines, "txt"."""
    ending = "" if output is None else output.suffix.lower()
    kind = (given or "").lower().removeprefix(".") or ("jsonl" if ending == ".ndjson" else ending.removeprefix("."))
    if given is None and kind not in KINDS and ending not in _OTHERS:
        return "txt"
    if kind not in KINDS:
        raise InputError(f"A table is written as {', '.join(KINDS)}, got {given or ending}. Choose one of these.")
    return kind


def free_names(names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """Return names that occur once, and not among those `taken`: with the suffix _predicted, or a number too.

    Examples
    --------
    >>> free_names(["label", "confidence", "label"], ["text", "label"])
    ['label_predicted', 'confidence', 'label_predicted_2']
    """
    used, free = set(taken), []
    for name in names:
        base = tried = f"{name}_predicted" if name in taken else name
        for number in count(2):
            if tried not in used:
                break
            tried = f"{base}_{number}"
        used.add(tried)
        free.append(tried)
    return free


def read_batches(texts: str, *, keep: bool, **reading: Any) -> tuple[list[str], Any, Iterator[Batch]]:
    """Read a file in batches: the names of its columns, their arrow schema if it is parquet, and the batches.

    A batch has the texts, and the values of all columns for each, if they are to be `kept`, otherwise none. Where
    `texts` is "-" and nothing is said about columns or format, standard input has one text per line. There is always a
    batch.
    """
    names, schema, size = [], None, 1 << 20
    rows: Iterator[tuple[str, Sequence[Any]]]
    asked = ("format", "text_column", "delimiter", "encoding")
    if texts == "-" and all(reading.get(name) is None for name in asked):
        if sys.stdin.isatty():
            size = 1  # answer after every line
        names, rows = ["text"] * keep, ((line, [line] * keep) for line in _lines(sys.stdin.buffer))
    else:
        from wgcn.io.read import read_texts  # lines of standard input are answered without it

        if keep:
            names, schema, rows = read_table(texts, **reading)
        else:
            rows = ((text, []) for text in read_texts(texts, **reading))
    return names, schema, _batches(rows, size)


def _lines(file: BinaryIO) -> Iterator[str]:
    """Read lines of UTF-8, none of them longer than a row of a file may be."""
    for number in count(1):
        line = file.readline(MAX_LINE + 1)
        if len(line) > MAX_LINE:
            raise InputError(f"Standard input, line {number}: the line is longer than {MAX_LINE} bytes. Split it.")
        if not line:
            return
        yield line.decode(errors="replace").rstrip("\r\n")


def read_table(path: str, *, text_column: str | int | None = None, **reading: Any) -> Table:
    """Read a file with all its columns; their values are those of the file, numbers and lists too."""
    from wgcn.io.read import stream_texts
    from wgcn.io.source import Source

    source = Source(Path(path), None if text_column is None else [text_column], whole=True, **reading)
    rows = stream_texts(source)
    return Table(list(next(rows)), source.schema, rows)


def _batches(rows: Iterator[tuple[str, Sequence[Any]]], size: int) -> Iterator[Batch]:
    """Cut rows into lists of about so many characters, in all of their columns; there is at least one list."""
    texts: list[str] = []
    kept: list[Sequence[Any]] = []
    held, first = 0, True
    for text, values in rows:
        texts.append(text)
        kept.append(values)
        held += len(text) + sum(len(value) for value in values if isinstance(value, str)) + 1
        if held >= size:
            yield texts, kept
            texts, kept, held, first = [], [], 0, False
    if texts or first:
        yield texts, kept


class TableWriter:
    """Writes rows to an open file: `kept` columns with the values of a file, and columns that are added.

    As "txt", rows are separated by tabs as in "tsv", and a single column has no header. Where a name is taken already,
    the added column gets another one, and a `WGCNWarning` says so. In txt and tsv, which know no
    quoting, a tab or line break in a value becomes a space. Added numbers have four decimals.

    Parameters
    ----------
    file : binary file
    kind : one of `KINDS`
    kept : names of the columns that are kept
    schema : the arrow schema of the kept columns, if they come from parquet
    separator : what is written between several values, except in jsonl and parquet, which have lists
    """

    def __init__(
        self,
        file: BinaryIO,
        kind: str,
        kept: Sequence[str] = (),
        schema: Any = None,
        separator: str = LABEL_SEPARATOR,
    ) -> None:
        self._file, self._kind, self._schema, self._separator = file, kind, schema, separator
        # The keys of an object and the columns of parquet must differ; a csv file may name two columns alike.
        self._kept = free_names(kept) if kind in ("jsonl", "parquet") else list(kept)
        self._names: list[str] = []
        self._parquet: Any = None

    def write(self, rows: Sequence[Sequence[Any]], added: Sequence[Column]) -> None:
        """Write rows of kept values, with the added columns, which are the same at every call."""
        if not self._names:
            self._begin(added)
        columns = [values for _, values in added]
        if self._kind == "parquet":
            self._write_parquet(rows, columns)
            return
        more = zip(*columns, strict=True)
        if self._kind == "jsonl":
            lines = [self._json_line([*row, *extra]) for row, extra in zip(rows, more, strict=True)]
            self._put("".join(lines))
        else:
            pairs = zip(rows, more, strict=True)
            self._put_rows(
                [[*map(cell_text, row), *(_shown(each, self._separator) for each in extra)] for row, extra in pairs]
            )
        self._file.flush()

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._parquet is not None:
            self._parquet.close()  # which writes the end of the file

    def _begin(self, added: Sequence[Column]) -> None:
        wanted = [name for name, _ in added]
        free = free_names(wanted, self._kept)
        self._names = [*self._kept, *free]
        renamed = [f"{new!r}" for new, name in zip(free, wanted, strict=True) if new != name]
        if renamed:
            listed = ", ".join(renamed[:5]) + (f" and {len(renamed) - 5} more" if len(renamed) > 5 else "")
            warnings.warn(f"Columns were there already, so new ones are named {listed}.", WGCNWarning, stacklevel=4)
        if self._kind == "parquet":
            self._begin_parquet(added)
        elif self._kind in ("csv", "tsv") or (self._kind == "txt" and len(self._names) > 1):
            self._put_rows([self._names])

    def _put(self, text: str) -> None:
        self._file.write(text.encode(errors="replace"))  # JSON can hold half a character

    def _put_rows(self, rows: list[list[str]]) -> None:
        if self._kind != "csv":
            self._put("".join("\t".join(value.translate(_BLANKS) for value in row) + "\n" for row in rows))
            return
        buffer = io.StringIO(newline="")
        usual = csv.writer(buffer, lineterminator="\n")
        quoting = csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_ALL)
        for row in rows:  # older versions of Python do not quote a field for a carriage return
            (quoting if any("\r" in value for value in row) else usual).writerow(row)
        self._put(buffer.getvalue())

    def _json_line(self, values: list[Any]) -> str:
        row = {name: None if value != value else value for name, value in zip(self._names, values, strict=True)}
        return json.dumps(row, ensure_ascii=False, default=cell_text) + "\n"

    def _begin_parquet(self, added: Sequence[Column]) -> None:
        with needs("Writing parquet files"):
            import pyarrow as pa
            import pyarrow.parquet as pq
        own = [pa.string()] * len(self._kept) if self._schema is None else list(self._schema.types)
        types = [*own, *(_arrow_type(pa, name, values) for name, values in added)]
        self._schema_out = pa.schema(list(zip(self._names, types, strict=True)))
        self._is_text = self._schema is None
        self._parquet = pq.ParquetWriter(self._file, self._schema_out)

    def _write_parquet(self, rows: Sequence[Sequence[Any]], added: list[list[Any]]) -> None:
        import pyarrow as pa

        kept = [list(values) for values in zip(*rows, strict=True)] or [[] for _ in self._kept]
        if self._is_text:
            kept = [[None if value is None else cell_text(value) for value in values] for values in kept]
        try:
            arrays = [pa.array(v, t) for v, t in zip([*kept, *added], self._schema_out.types, strict=True)]
            self._parquet.write_batch(pa.record_batch(arrays, schema=self._schema_out))
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise InputError(f"A column cannot be kept in parquet ({error}). Write .csv or .jsonl instead.") from error


def _arrow_type(pa: Any, name: str, values: list[Any]) -> Any:
    """Return the type of an added column: numbers, texts, or lists of them."""
    several = any(isinstance(value, list) for value in values)
    single = [each for value in values if isinstance(value, list) for each in value] if several else values
    first = next((value for value in single if value is not None), "" if name.startswith(("label", "set")) else 0.0)
    kind = pa.float64() if isinstance(first, float) else pa.string()
    return pa.list_(kind) if several else kind


def cell_text(value: Any) -> str:
    """Return a value of the input as text."""
    if isinstance(value, str):
        return value
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=cell_text)
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def check_separator(separator: str) -> None:
    """Raise an InputError unless labels can be separated by this."""
    if not separator:
        raise InputError("The separator of labels is empty. Give a character, such as ';'.")


def split_labels(text: str, separator: str) -> list[str]:
    """Return the labels that a cell holds; blanks around them do not count."""
    return [part.strip() for part in text.split(separator) if part.strip()]


def _shown(value: Any, separator: str) -> str:
    """Return an added value as text: numbers with four decimals, several values with a separator between them."""
    if isinstance(value, list):
        return separator.join(_shown(each, separator) for each in value)
    return f"{value:.{DIGITS}f}" if isinstance(value, float) else cell_text(value)
