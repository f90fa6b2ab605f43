"""The formats of files of rows. To read a further one, add a function to `READERS`.

A reader takes an open file and returns the names of its columns and a function that gives the rows of some of them, by
their positions; or None where there is no row.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, chain, islice
from typing import Any

from wgcn.base.errors import InputError, needs
from wgcn.io.source import (
    HEAD_BYTES,
    LOOK_AHEAD_ROWS,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_DOCUMENT_VALUES,
    MAX_FIELDS,
    MAX_UNPACKED,
    MAX_VALUES,
    UNCLOSED,
    Source,
    lines,
    short,
)

RowIterator = Iterator[tuple[Any, ...]]
Objects = Iterator[tuple[int, dict[str, Any]]]  # with their places
Opened = tuple[list[str], Callable[[list[int]], RowIterator]] | None

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_DETECTION_ROWS = 100
_BATCH_ROWS, BATCH_BYTES = 1024, 2**27  # of parquet, at most
MAX_SHEET_ROWS = 2**20  # Excel has no more
_UNCALCULATED = re.compile(rb"(?:</\w*:?f>|<\w*:?f\b[^<>]*/>)\s*<(?:/|\w*:?v\s*/|\w*:?v>\s*</)")  # formula, no value
_MAX_SPANNED = 2**26  # cells up to the last one of each row, empty ones too
_MAX_TAGS, _TAGS_PER_BYTE, _MAX_ROW_TAGS = 2**21, 8, 2**19  # of a workbook, more if it is large; in a row or a text
_UNIT_END = re.compile(rb"</(?:\w+:)?(?:row|si)\s*>")  # of a row, and of a text that cells share
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)  # of JSON
_VALUE_BYTES = 64  # that a value of JSON takes at least


def _read_delimited(stream: Any, source: Source) -> Opened:
    """Read .txt, .csv or .tsv."""
    if source.kind == ".csv":
        return _as_table(_csv_records(stream, source), source)
    separator = (source.delimiter or "\t") if source.kind == ".tsv" else "\n"  # which no line has in it
    parts = _counted(lines(stream, source), source, separator)
    return _as_table((line.rstrip("\r\n").split(separator) for line in parts), source)


def _counted(parts: Iterator[str], source: Source, separator: str) -> Iterator[str]:
    """Yield lines; raise an error before a row is cut into very many fields."""
    for line in parts:
        source.values = line.count(separator) + (source.values if source.kind == ".csv" else 0)
        if source.values > MAX_FIELDS:
            raise source.too_large(MAX_FIELDS)
        yield line


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


def _fields(records: Iterator[list[Any]], names: list[str], source: Source, positions: list[int]) -> RowIterator:
    width, in_sheet = len(names), source.kind == ".xlsx"
    for fields in records:
        if len(fields) != width:
            if fields == [""] and not in_sheet:
                continue
            if len(fields) <= source.last and not in_sheet:  # a sheet does not keep empty cells at the end of a row
                what = f"column {short(names[source.last])} is missing"
                raise source.fault(f"{what}: the row has {len(fields)} of {width} fields.")
            if len(fields) > width and source.labelled and not in_sheet:
                head = f"the {'header' if source.header else 'first row'} has {width}"
                advice = "If a text has the character between the fields in it, put the text in quotes (.csv)."
                raise source.fault(f"the row has {len(fields)} fields, but {head}. {advice}")
            source.repairs["too wide"] += len(fields) > width
            n, empty = len(fields), None if in_sheet else ""
            yield tuple([fields[position] if position < n else empty for position in positions])
            continue
        yield tuple([fields[position] for position in positions])


def _csv_records(stream: Any, source: Source) -> Iterator[list[str]]:
    # This limit holds for the whole process, and its 128 KiB are less than real documents have. It is only ever raised,
    # so that nobody else's reader breaks; what bounds memory here is `lines`.
    csv.field_size_limit(max(MAX_CHARACTERS, csv.field_size_limit()))
    # Without strict, an unclosed quote takes in the rest of the file unnoticed.
    delimiter = source.delimiter or _detect_delimiter(source)
    parts = _counted(lines(stream, source, joined=True), source, delimiter)
    reader = csv.reader(parts, strict=True, delimiter=delimiter)
    while True:
        source.line, source.held, source.values = reader.line_num + 1, 0, 0
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
    source.line, source.held = 1, 0  # rows that are in memory already take no more
    try:
        value = _decode(text, source, MAX_DOCUMENT_VALUES)
    except InputError:
        if text.lstrip().startswith("["):
            raise
        return _from_objects(_objects(text.split("\n"), source), source)
    source.values = 0
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


def _decode(text: str, source: Source, most: int = MAX_VALUES) -> Any:
    _check_values(text, source, most)
    # NaN is no JSON, but what Python writes for a missing number.
    constant = {"NaN": None, "Infinity": "Infinity", "-Infinity": "-Infinity"}
    try:
        return json.loads(text, parse_int=_number, parse_float=_number, parse_constant=constant.get)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else error
        raise source.fault(f"not valid JSON ({why}). Expected one object per line.") from error


def _check_values(text: str, source: Source, most: int) -> None:
    """Raise an error for JSON of very many values or levels, before they take memory. What strings hold is no value."""
    n_levels, source.values = text.count("[") + text.count("{"), text.count(",")
    if n_levels <= MAX_DEPTH and source.values <= most:
        return
    bare = _STRING.sub("", text)
    source.values = bare.count(",") + bare.count("[") + bare.count("{")
    if source.values > most:
        raise source.too_large(most)
    steps = ({"[": 1, "{": 1}.get(mark, -1) for mark in re.findall(r"[][{}]", bare))
    if max(accumulate(steps), default=0) > MAX_DEPTH:
        raise source.fault(f"nested more than {MAX_DEPTH} levels. Write the inner ones as a string.")


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
        held += source.held + _VALUE_BYTES * source.values
        found |= {name for name in wanted if isinstance(name, str) and _value(row[1], name, rows) is not rows}
        has_all = all(name in found if isinstance(name, str) else name < len(names) for name in wanted)
        if (has_all and not source.whole) or len(ahead) == LOOK_AHEAD_ROWS or held > MAX_CHARACTERS:
            break
    source.inner = found - names.keys()
    columns = [*names, *sorted(source.inner)]
    return (columns, partial(_object_values, chain(ahead, rows), columns, source)) if ahead else None


def _object_values(rows: Objects, names: list[str], source: Source, positions: list[int]) -> RowIterator:
    keys, known = [names[position] for position in positions], set(names)
    for source.line, values in rows:
        source.repairs["new keys"] += source.whole and not values.keys() <= known
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


def _parquet_rows(file: Any, stream: Any, source: Source, positions: list[int]) -> RowIterator:
    names = [source.schema.names[position] for position in positions]
    with _undamaged(source):
        for group in range(file.num_row_groups):
            size = _batch_rows(file.metadata.row_group(group), stream, names)
            for batch in file.iter_batches(size, row_groups=[group], columns=names):
                columns, may_be_long = [_shortest(batch.column(name)) for name in names], batch.nbytes > MAX_CHARACTERS
                for values in zip(*(columns if may_be_long else [each.to_pylist() for each in columns]), strict=True):
                    source.line += 1
                    if may_be_long:
                        values = tuple([value.as_py() for value in values])
                        lengths = (len(each if isinstance(each, str | bytes) else str(each)) for each in values)
                        if sum(lengths) > MAX_CHARACTERS:
                            raise source.too_large()
                    yield values


def _shortest(column: Any) -> Any:
    """Return numbers of single precision as doubles of the same text: 0.1 is not to become 0.10000000149011612."""
    import pyarrow as pa

    return column.cast(pa.string()).cast(pa.float64()) if pa.types.is_float32(column.type) else column


def _batch_rows(group: Any, stream: Any, names: list[str]) -> int:
    """Return how many rows of a row group fit in memory, though few bytes of a file can stand for very many.

    All rows may hold the longest value of a dictionary, so that this counts once per row. What is not in a dictionary
    counts with its size; the square is for files in which most of that belongs to few rows.
    """
    chunks = [group.column(place) for place in range(group.num_columns)]
    wanted = [each for each in chunks if any(f"{each.path_in_schema}.".startswith(f"{name}.") for name in names)]
    repeated = max(1, sum(_dictionary_bytes(each, stream) for each in wanted))
    share = BATCH_BYTES / max(BATCH_BYTES, sum(max(each.total_uncompressed_size, each.num_values) for each in wanted))
    return max(1, min(int(_BATCH_ROWS * share**2), BATCH_BYTES // repeated))


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
            has_uncalculated = _check_parts(parts, stream.seek(0, io.SEEK_END), source)
        with warnings.catch_warnings():  # of styles and the like
            warnings.simplefilter("ignore")
            load = partial(openpyxl.load_workbook, stream, read_only=True)
            sheets = [load(data_only=each).worksheets[0] for each in (True, False)[: 1 + has_uncalculated]]
        for sheet in sheets:
            sheet.reset_dimensions()  # what a file says of its size is often wrong
        return _as_table(_sheet_records(sheets, source), source)


def _sheet_rows(sheets: Sequence[Any], source: Source) -> Iterator[Sequence[Any]]:
    """Yield the values of rows; where formulas without a value are in a second sheet, the text of those."""
    if len(sheets) == 1:
        yield from sheets[0].iter_rows(values_only=True)
        return
    for cells, written in zip(sheets[0].iter_rows(), sheets[1].iter_rows(values_only=True), strict=True):
        values = [cell.value for cell in cells]
        without = [place for place, cell in enumerate(cells) if cell.value is None and cell.data_type != "str"]
        for place in without:  # those of type "str" were calculated: to nothing
            formula = written[place]
            values[place] = formula if isinstance(formula, str) else getattr(formula, "text", None)
        source.repairs["uncalculated"] += any(values[place] is not None for place in without if place in source.chosen)
        yield values


def _check_parts(parts: Any, size: int, source: Source) -> bool:
    """Raise an error for a workbook of very many tags, of which few bytes can stand for millions, before it is parsed.

    Those of one row, or of what is in no row, are in memory together. Return whether a sheet has formulas without a
    value, as libraries write them, also for a text such as '=good'.
    """
    most, n_tags, has_uncalculated = _MAX_TAGS + _TAGS_PER_BYTE * size, 0, False
    for name in parts.namelist():
        is_sheet = name.startswith("xl/worksheets/") and name.endswith(".xml")
        with parts.open(name) as part:
            n_here, head = 0, b""
            while block := part.read(2**20):
                n_tags += block.count(b"<")
                *units, rest = _UNIT_END.split(head + block)
                n_here, most_here = n_here - head.count(b"<"), n_here
                for unit in units:
                    most_here, n_here = max(most_here, n_here + unit.count(b"<")), 0
                has_uncalculated = has_uncalculated or (is_sheet and bool(_UNCALCULATED.search(head + block)))
                n_here, head = n_here + rest.count(b"<"), rest[-100:]
                if n_tags > most or max(most_here, n_here) > _MAX_ROW_TAGS:
                    what = f"{most:,} tags" if n_tags > most else f"{_MAX_ROW_TAGS:,} tags in one row or part"
                    raise InputError(f"{source.name} is no plain workbook: it has more than {what}. Save it as .csv.")
                if b"<!DOCTYPE" in head + block:
                    raise InputError(f"{source.name} is no plain workbook: its XML defines entities. Save it as .csv.")
    return has_uncalculated


def _sheet_records(sheets: Sequence[Any], source: Source) -> Iterator[list[Any]]:
    spanned = 0
    with _undamaged(source):
        rows = _sheet_rows(sheets, source)
        for source.line, row in enumerate(rows, 1):
            if source.line > MAX_SHEET_ROWS:
                raise source.fault("a sheet has no more than 1,048,576 rows. Save it as .csv.")
            spanned += len(row)
            if spanned > _MAX_SPANNED:
                advice = "Delete the cells far to the right, or save it as .csv."
                raise source.fault(f"the rows so far reach over {_MAX_SPANNED:,} cells, most of them empty. {advice}")
            if sum(len(value) for value in filter(None, row) if isinstance(value, str)) > MAX_CHARACTERS:
                raise source.too_large()
            last = len(row)
            while last and row[last - 1] is None:
                last -= 1
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
