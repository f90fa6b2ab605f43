"""Predictions as columns, and tables read and written batch by batch: a file's columns, and some that are added."""

from __future__ import annotations

import csv
import io
import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError, WGCNWarning, needs
from wgcn.text.tokenize import Tokenizer, resolve_tokenizer

Column = tuple[str, list[Any]]  # its name, and one value per text
Batch = tuple[list[str], list[Sequence[Any]]]  # texts, and the values of the columns that are kept

KINDS = ("txt", "csv", "tsv", "jsonl", "parquet")
_OTHERS = (".json", ".xlsx", ".xls", ".gz", ".zip", ".bz2", ".xz")  # endings that promise what is not written
_BATCH_CHARACTERS = 1 << 20
MAX_LINE = 64 * 2**20  # bytes; as many as a row of a file may have characters
_BLANKS = str.maketrans("\t\n\r", "   ")
DIGITS = 4  # of numbers that are added
LABEL_SEPARATOR = ";"  # between several labels of a text, where nothing else is asked for


class Table(NamedTuple):
    """A file in batches, of which there is always one."""

    names: list[str]  # of the columns that are kept
    schema: Any  # of a parquet file whose columns are kept, otherwise None
    batches: Iterator[Batch]


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


def read_batches(path: str, *, keep: bool, **reading: Any) -> Table:
    """Read texts in batches, with the values of all columns if they are to be kept: numbers and lists too.

    Where the path is "-" and nothing is said about columns or format, standard input has one text per line.
    """
    asked = ("format", "text_column", "delimiter", "encoding")
    if path == "-" and all(reading.get(name) is None for name in asked):
        size = 1 if sys.stdin.isatty() else _BATCH_CHARACTERS  # answer after every line
        lines = ((line, [line] * keep) for line in _lines(sys.stdin.buffer))
        return Table(["text"] * keep, None, _batches(lines, size))
    from wgcn.io.read import stream_texts  # lines of standard input are answered without it
    from wgcn.io.source import Source

    text_column = reading.pop("text_column", None)
    source = Source(Path(path), None if text_column is None else [text_column], whole=keep, **reading)
    rows = stream_texts(source)
    names = list(next(rows))
    if not keep:
        return Table([], None, _batches(((text, []) for text in rows), _BATCH_CHARACTERS))
    return Table(names, source.schema, _batches(rows, _BATCH_CHARACTERS))


def _lines(file: BinaryIO) -> Iterator[str]:
    """Read lines of UTF-8, none of them longer than a row of a file may be."""
    for number in count(1):
        line = file.readline(MAX_LINE + 1)
        if len(line) > MAX_LINE:
            raise InputError(f"Standard input, line {number}: the line is longer than {MAX_LINE} bytes. Split it.")
        if not line:
            return
        yield line.decode(errors="replace").rstrip("\r\n")


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
    """Writes rows to an open file: columns that are `kept`, with the values of a file, and columns that are added.

    `kind` is one of `KINDS`: as "txt", rows are separated by tabs as in "tsv", and a single column has no header.
    `schema` is the arrow schema of the kept columns, if they come from parquet. The `separator` stands between several
    values, except in jsonl and parquet, which have lists. Where a name is taken already, the added column gets another
    one, and a `WGCNWarning` says so. In txt and tsv, which know no quoting, a tab or line break in a value becomes a
    space. Added numbers have four decimals.
    """

    def __init__(
        self, file: BinaryIO, kind: str, kept: Sequence[str] = (), schema: Any = None, separator: str = LABEL_SEPARATOR
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
        pairs = zip(rows, zip(*columns, strict=True), strict=True)
        if self._kind == "jsonl":
            self._put("".join([self._json_line([*row, *extra]) for row, extra in pairs]))
        else:
            shown = partial(_shown, separator=self._separator)
            self._put_rows([[*map(cell_text, row), *map(shown, extra)] for row, extra in pairs])
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
            with needs("Writing parquet files"):
                import pyarrow as pa
                import pyarrow.parquet as pq
            own = [pa.string()] * len(self._kept) if self._schema is None else list(self._schema.types)
            types = [*own, *(_arrow_type(pa, name, values) for name, values in added)]
            self._parquet = pq.ParquetWriter(self._file, pa.schema(list(zip(self._names, types, strict=True))))
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

    def _write_parquet(self, rows: Sequence[Sequence[Any]], added: list[list[Any]]) -> None:
        import pyarrow as pa

        kept = [list(values) for values in zip(*rows, strict=True)] or [[] for _ in self._kept]
        if self._schema is None:
            kept = [[None if value is None else cell_text(value) for value in values] for values in kept]
        schema = self._parquet.schema
        try:
            arrays = [pa.array(values, kind) for values, kind in zip([*kept, *added], schema.types, strict=True)]
            self._parquet.write_batch(pa.record_batch(arrays, schema=schema))
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


class Tally:
    """What was seen in texts that were classified: their number, and which words are not in the vocabulary."""

    def __init__(self) -> None:
        self.n_texts = self.n_empty = self.n_words = self.n_new = self.n_spelt = 0

    def add(self, n_words: int, n_new: int, n_spelt: int, n_terms: npt.NDArray[Any]) -> None:
        """Add texts, given the numbers in `wgcn.scoring.terms.Terms` and that of the terms of each text."""
        self.n_texts += len(n_terms)
        self.n_empty += int((n_terms == 0).sum())
        self.n_words += n_words
        self.n_new += n_new
        self.n_spelt += n_spelt

    def summary(self) -> str:
        """Return one line for people to read. Words of the training texts may be too rare for the vocabulary."""
        said = [f"{self.n_texts:,} text{'s' * (self.n_texts != 1)}."]
        if self.n_new:
            spelt, ignored = self.n_spelt, self.n_new - self.n_spelt
            parts = [f"{spelt / self.n_words:.1%} are read by their spelling"] * (spelt > 0)
            parts += [f"{ignored / self.n_words:.1%} are ignored"] * (ignored > 0)
            share = f"{self.n_new / self.n_words:.1%} of their words are not in the vocabulary"
            said.append(f"{share}, as new or too rare in training: {', '.join(parts)}.")
        if self.n_empty:
            have = "has" if self.n_empty == 1 else "have"
            said.append(f"{self.n_empty:,} {have} no word that the model can read, and got the most frequent class.")
        return " ".join(said)


def known_words(vocabulary: Iterable[str]) -> frozenset[str]:
    """Return the words of a vocabulary, those of its n-grams too."""
    return frozenset(word for entry in vocabulary for word in (entry, *entry.split(" ")))


def unknown_words(texts: Iterable[str], tokenizer: str | Tokenizer, known: Set[str]) -> npt.NDArray[np.float64]:
    """Return for each text the share of its words that are not among the `known` ones; 1 for a text without words.

    Examples
    --------
    >>> unknown_words(["Red car", "zzz car", ""], "words", known_words(["red car"])).tolist()
    [0.0, 0.5, 1.0]
    """
    words = map(resolve_tokenizer(tokenizer), texts)
    return np.array([sum(word not in known for word in each) / len(each) if each else 1.0 for each in words], float)


def prediction_columns(
    classes: Sequence[str],
    decided: npt.NDArray[np.int64],
    probabilities: npt.NDArray[np.float64] | None = None,
    unknown: npt.NDArray[np.float64] | None = None,
    *,
    top: int = 1,
    proba: bool = False,
    nested: bool = False,
) -> list[Column]:
    """Return the columns label, confidence, unknown_words, and those of further classes.

    `decided` has the class of each text, or is a 0/1 matrix of shape (texts, classes) if a text may have several: then
    labels and confidences are lists. Without `probabilities`, (texts, classes), there are labels alone. `unknown` is
    the share of the words of each text that the model does not know. `top` is a number of classes, the most likely
    first: label_2, confidence_2 and so on, or, if `nested`, one list ``top``. With `proba`, there is one column per
    class: probability_a is that of the class a.
    """
    if decided.ndim == 2:
        several = [row.nonzero()[0].tolist() for row in decided]
        columns: list[Column] = [("label", [[classes[i] for i in row] for row in several])]
    else:
        columns = [("label", [classes[i] for i in decided.tolist()])]
    if probabilities is None:
        return columns
    rounded = np.round(probabilities, DIGITS)
    if decided.ndim == 2:
        columns.append(("confidence", [rounded[i, row].tolist() for i, row in enumerate(several)]))
    else:
        columns.append(("confidence", rounded[np.arange(len(decided)), decided].tolist()))
    if unknown is not None:
        columns.append(("unknown_words", np.round(unknown, DIGITS).tolist()))
    if top > 1:
        order = np.argsort(-probabilities, axis=1, kind="stable")[:, :top]  # (texts, top)
        names = [[classes[i] for i in row] for row in order.tolist()]
        likely = np.take_along_axis(rounded, order, axis=1).tolist()
        if nested:
            rows = (zip(*each, strict=True) for each in zip(names, likely, strict=True))
            columns.append(("top", [[{"label": name, "confidence": p} for name, p in row] for row in rows]))
        for place in () if nested else range(1, order.shape[1]):
            columns.append((f"label_{place + 1}", [row[place] for row in names]))
            columns.append((f"confidence_{place + 1}", [row[place] for row in likely]))
    if proba:
        columns += [(f"probability_{name}", rounded[:, i].tolist()) for i, name in enumerate(classes)]
    return columns
