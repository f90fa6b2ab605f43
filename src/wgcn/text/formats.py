"""The formats of files of rows. To read a further one, add a function to `READERS`.

A reader takes an open file and returns the names of its columns and a function that gives the rows of some of them, by
their positions; or None where there is no row.
"""

from __future__ import annotations

import csv
import io
import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from typing import Any

from wgcn.errors import InputError, needs
from wgcn.text.source import HEAD_BYTES, MAX_CHARACTERS, MAX_UNPACKED, UNCLOSED, Source, lines, short

__all__ = ["LOOK_AHEAD_ROWS", "READERS"]

Rows = Iterator[tuple[Any, ...]]
Objects = Iterator[tuple[int, dict[str, Any]]]  # with their places
Opened = tuple[list[str], Callable[[list[int]], Rows]] | None

LOOK_AHEAD_ROWS = 1000  # of a jsonl file, in which every column must appear
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_DETECTION_ROWS = 100
_BATCH_ROWS, _BATCH_BYTES = 1024, 2**27  # of parquet, at most
_MAX_SHEET_ROWS = 2**20  # Excel has no more


def _read_delimited(stream: Any, source: Source) -> Opened:
    """Read .txt, .csv or .tsv."""
    if source.kind == ".csv":
        return _as_table(_csv_records(stream, source), source)
    separator = (source.delimiter or "\t") if source.kind == ".tsv" else "\n"  # which no line has in it
    return _as_table((line.rstrip("\r\n").split(separator) for line in lines(stream, source)), source)


def _as_table(records: Iterator[list[Any]], source: Source) -> Opened:
    """Take the names of the columns from the first record."""
    if (first := next(records, None)) is None:
        return None
    if source.header and source.kind != ".txt":
        names = ["" if name is None else str(name) for name in first]
    else:
        names, records = list(map(str, range(len(first)))), chain([first], records)
    names = ["text"] if source.kind == ".txt" else names
    return names, partial(_fields, records, names, source)


def _fields(records: Iterator[list[Any]], names: list[str], source: Source, positions: list[int]) -> Rows:
    width, in_sheet = len(names), source.kind == ".xlsx"
    for fields in records:
        if len(fields) != width:
            if fields == [""] and not in_sheet:
                continue
            if len(fields) <= source.last and not in_sheet:  # a sheet does not keep empty cells at the end of a row
                what = f"column {short(names[source.last])} is missing"
                raise source.fault(f"{what}: the row has {len(fields)} of {width} fields.")
            source.too_wide += len(fields) > width
            fields = [*fields, *[None if in_sheet else ""] * (width - len(fields))]
        yield tuple([fields[position] for position in positions])


def _csv_records(stream: Any, source: Source) -> Iterator[list[str]]:
    # This limit holds for the whole process, and its 128 KiB are less than real documents have. It is only ever raised,
    # so that nobody else's reader breaks; what bounds memory here is `lines`.
    csv.field_size_limit(max(MAX_CHARACTERS, csv.field_size_limit()))
    # Without strict, an unclosed quote takes in the rest of the file unnoticed.
    delimiter = source.delimiter or _detect_delimiter(source)
    reader = csv.reader(lines(stream, source, joined=True), strict=True, delimiter=delimiter)
    while True:
        source.line, source.held = reader.line_num + 1, 0
        try:
            yield next(reader) or [""]
        except StopIteration:
            return
        except csv.Error as error:
            raise source.fault(f"not valid csv ({error}). {UNCLOSED}") from error


def _detect_delimiter(source: Source) -> str:
    """Return the delimiter by which the first rows are as wide as the header; a comma if there is no other."""
    assert source.encoding is not None
    text = source.head.decode(source.encoding, "replace").removeprefix("\ufeff")
    best, fit = ",", (0.0, 1)
    for delimiter in _DELIMITERS:
        records = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        widths = [len(record) for record in islice(records, _DETECTION_ROWS) if record]
        if len(source.head) == HEAD_BYTES and 1 < len(widths) < _DETECTION_ROWS:
            widths.pop()  # the head may end inside it
        found = (round(widths.count(widths[0]) / len(widths), 1), widths[0]) if widths else fit
        if found[1] > 1 and found > fit and (delimiter == "," or found[0] > 0.8):
            best, fit = delimiter, found
    if best != ",":
        advice = "If that is wrong, give the character: delimiter=… (--delimiter on the command line)."
        source.warn(f"is read with {_DELIMITERS[best]} between its fields. {advice}")
    return best


def _read_json(stream: Any, source: Source) -> Opened:
    """Read one object per line or, in .json, an array of objects, or an object that has one such array."""
    if source.kind == ".jsonl":
        return _from_objects(_objects(lines(stream, source), source), source)
    text = "".join(lines(stream, source, joined=True))
    try:
        value = _decode(text, source)
    except InputError:
        return _from_objects(_objects(text.split("\n"), source), source)
    if isinstance(value, dict):
        arrays = [each for each in value.values() if isinstance(each, list) and isinstance((each or [0])[0], dict)]
        value = arrays[0] if len(arrays) == 1 else None if arrays else [value]
    if not isinstance(value, list):
        raise InputError(f"{source.name} has no array of objects, or several. Expected one, or one object per line.")
    return _from_objects(_objects(value, source), source)


def _objects(items: Iterable[Any], source: Source) -> Objects:
    for source.line, item in enumerate(items, 1):
        if isinstance(item, str) and not item.strip():
            continue
        value = _decode(item, source) if isinstance(item, str) else item
        if not isinstance(value, dict):
            shown = short(item.rstrip() if isinstance(item, str) else item)
            raise source.fault(f'{shown} is not an object. Expected one per line, like {{"text": "…"}}.')
        yield source.line, value


def _decode(text: str, source: Source) -> Any:
    # Numbers stay as they were written: 1 is "1", 1e3 is "1e3", and a long one loses no digit. NaN is no JSON, but what
    # Python writes for a missing number.
    number, constant = _number if source.whole else str, {"NaN": None, "Infinity": "Infinity", "-Infinity": "-Infinity"}
    try:
        return json.loads(text, parse_int=number, parse_float=number, parse_constant=constant.get)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else error
        raise source.fault(f"not valid JSON ({why}). Expected one object per line.") from error


def _number(text: str) -> int | float | str:
    """Return a number, or its text if Python cannot hold it."""
    if len(text) > 300:
        return text
    number = int(text) if text.lstrip("-").isdigit() else float(text)
    return number if abs(number) < math.inf else text


def _from_objects(rows: Objects, source: Source) -> Opened:
    """Look for the columns: any row may leave keys out, so the first need not have them all."""
    ahead: list[tuple[int, dict[str, Any]]] = []
    names: dict[str, None] = {}  # in the order in which they appear
    wanted, found, held = [*([source.optional] if source.optional else ()), *(source.columns or ["text"])], set(), 0
    for row in rows:
        ahead.append(row)
        names.update(dict.fromkeys(row[1]))
        held += source.held
        found |= {name for name in wanted if isinstance(name, str) and _value(row[1], name, rows) is not rows}
        has_all = all(name in found if isinstance(name, str) else name < len(names) for name in wanted)
        if (has_all and not source.whole) or len(ahead) == LOOK_AHEAD_ROWS or held > MAX_CHARACTERS:
            break
    source.inner = found - names.keys()
    columns = [*names, *sorted(source.inner)]
    return (columns, partial(_object_values, chain(ahead, rows), columns, source)) if ahead else None


def _object_values(rows: Objects, names: list[str], source: Source, positions: list[int]) -> Rows:
    keys, known = [names[position] for position in positions], set(names)
    for source.line, values in rows:
        source.too_wide += source.whole and not values.keys() <= known
        yield tuple([_value(values, key, None) for key in keys])


def _value(values: dict[str, Any], path: str, missing: Any) -> Any:
    """Return what a dotted path leads to, if anything; a key that has the dots in it comes first."""
    while path not in values:
        first, dot, path = path.partition(".")
        if not (dot and isinstance(inner := values.get(first), dict)):
            return missing
        values = inner
    return values[path]


def _read_parquet(stream: Any, source: Source) -> Opened:
    with needs("Reading parquet files"):
        import pyarrow.parquet as pq
    with _undamaged(source):
        # Both settings are needed for a row group to be streamed rather than loaded whole.
        file = pq.ParquetFile(stream, buffer_size=2**20, pre_buffer=False)
        source.schema = file.schema_arrow
        return list(source.schema.names), partial(_parquet_rows, file, stream, source)


def _parquet_rows(file: Any, stream: Any, source: Source, positions: list[int]) -> Rows:
    names = [source.schema.names[position] for position in positions]
    with _undamaged(source):
        for group in range(file.num_row_groups):
            size = _batch_rows(file.metadata.row_group(group), stream, names)
            for batch in file.iter_batches(size, row_groups=[group], columns=names):
                columns, may_be_long = [batch.column(name) for name in names], batch.nbytes > MAX_CHARACTERS
                for values in zip(*(columns if may_be_long else [each.to_pylist() for each in columns]), strict=True):
                    source.line += 1
                    if may_be_long:
                        values = tuple([value.as_py() for value in values])
                        lengths = (len(each if isinstance(each, str | bytes) else str(each)) for each in values)
                        if sum(lengths) > MAX_CHARACTERS:
                            raise source.too_long()
                    yield values


def _batch_rows(group: Any, stream: Any, names: list[str]) -> int:
    """Return how many rows of a row group fit in memory, though few bytes of a file can stand for very many.

    All rows may hold the longest value of a dictionary, so that this counts once per row. What is not in a dictionary
    counts with its size; the square is for files in which most of that belongs to few rows.
    """
    chunks = [group.column(place) for place in range(group.num_columns)]
    wanted = [each for each in chunks if any(f"{each.path_in_schema}.".startswith(f"{name}.") for name in names)]
    repeated = max(1, sum(_dictionary_bytes(each, stream) for each in wanted))
    share = _BATCH_BYTES / max(_BATCH_BYTES, sum(max(each.total_uncompressed_size, each.num_values) for each in wanted))
    return max(1, min(int(_BATCH_ROWS * share**2), _BATCH_BYTES // repeated))


def _dictionary_bytes(chunk: Any, stream: Any) -> int:
    """Return the unpacked size of the dictionary of a column, 0 if it has none, out of the head of its first page."""
    stream.seek(min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset))
    kind, size = stream.read(3), 0
    for place in range(5):  # Thrift: seven bits per byte, the last one below 128
        (byte,) = stream.read(1)
        size |= (byte & 127) << 7 * place
        if byte < 128:
            break
    return size >> 1 if kind == b"\x15\x04\x15" else 0  # field 1, the kind of page, is 2; field 2 follows


def _read_excel(stream: Any, source: Source) -> Opened:
    """Read the first sheet of a workbook."""
    import zipfile  # which takes as long to load as all of the above

    with needs("Reading Excel files"):
        import openpyxl
    with _undamaged(source):
        with zipfile.ZipFile(stream) as parts:  # which never unpacks more of a part than is declared
            if sum(part.file_size for part in parts.infolist()) > MAX_UNPACKED:
                raise InputError(f"{source.name} unpacks to more than {MAX_UNPACKED >> 20} MiB. Save it as .csv.")
        with warnings.catch_warnings():  # of styles and the like
            warnings.simplefilter("ignore")
            sheet = openpyxl.load_workbook(stream, read_only=True, data_only=True).worksheets[0]
        sheet.reset_dimensions()  # what a file says of its size is often wrong
        return _as_table(_sheet_records(sheet, source), source)


def _sheet_records(sheet: Any, source: Source) -> Iterator[list[Any]]:
    with _undamaged(source):
        for source.line, row in enumerate(sheet.iter_rows(values_only=True), 1):
            if source.line > _MAX_SHEET_ROWS:
                raise source.fault("a sheet has no more than 1,048,576 rows. Save it as .csv.")
            last = max((place for place, value in enumerate(row, 1) if value is not None), default=0)
            if last:
                yield list(row[:last])


@contextmanager
def _undamaged(source: Source) -> Iterator[None]:
    """Turn what a library says about a damaged file, which may be any exception, into an InputError."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        what = f"damaged or not plain {source.kind[1:]} ({error})"
        raise InputError(f"{source.name} is {what}. Write or fetch it again.") from error


READERS = dict.fromkeys((".txt", ".csv", ".tsv"), _read_delimited) | dict.fromkeys((".jsonl", ".json"), _read_json)
READERS |= {".parquet": _read_parquet, ".xlsx": _read_excel}
