"""Pretrained word vectors: from a file, or from a sentence encoder that encodes each word alone.

A file is text, optionally with .gz: one word per line, followed by its values, separated by spaces. This is the format
of GloVe (Pennington, Socher and Manning, GloVe: global vectors for word representation, EMNLP 2014); the text format of
word2vec has one more line at the top, with the number of words and of values. The file is streamed, and only the words
that are needed are kept.

Results name a file by its name and digest, never by its path: `register_word_vectors` returns that name, and the
environment variable ``WGCN_WORD_VECTORS`` holds the path.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import warnings
import zlib
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError, WGCNWarning

Vector = npt.NDArray[np.float32]
Vectors = tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]
Line = tuple[int, bytes]  # with its number

DISTILLED = "distilled"
VARIABLE = "WGCN_WORD_VECTORS"
_NAMED = re.compile(r"(?P<name>[^/\\]+):(?P<digest>[0-9a-f]{16})")
_SIZES = range(2, 10_001)
_MAX_LINE_BYTES = 2**20
_BOM = b"\xef\xbb\xbf"
_FORMAT = "Expected lines of a word and its values, separated by spaces, as GloVe and word2vec (text) write them."


def word_vectors(words: Sequence[str], source: str) -> Vectors:
    """Return the vectors (n_words, size) of words, and which are known (n_words,); others have zeros.

    The source is "distilled"; or NAME:DIGEST, as `register_word_vectors` returns it; or the path of a file.
    """
    if source == DISTILLED:
        return _distilled(words)
    path = _find(source)
    vectors, known = _read(path, _stamp(path), tuple(words))
    if len(words) and not known.any():
        warnings.warn(
            f"None of the {len(words):,} words is among the word vectors of {path.name}. Are they of another language?",
            WGCNWarning,
            stacklevel=2,
        )
    return vectors.copy(), known.copy()


def read_word_vectors(path: str | Path, words: Collection[str] | None = None) -> dict[str, Vector]:
    """Read a file of word vectors in the format of GloVe or word2vec (text), for `WGCNTextClassifier.fit(vectors=)`.

    Only `words` are read, or all words of the file, which takes its size in memory. Words that it lacks are left out.
    """
    if isinstance(words, str):
        raise InputError(f"words must be a collection of words, got the single string {words!r:.50}.")
    return _entries(Path(path).expanduser(), None if words is None else frozenset(words))[0]


def check_word_vectors(source: str) -> None:
    """Raise the errors of `word_vectors` about a source, reading only the beginning of a file."""
    if source == DISTILLED:
        from wgcn_paper.vectors.encoder import check_encoder

        check_encoder()
        return
    path = _find(source)
    with closing(_lines(path)) as lines:
        _begin(path, lines)


def register_word_vectors(path: str | Path) -> str:
    """Return NAME:DIGEST of a file of word vectors; its path goes into the variable ``WGCN_WORD_VECTORS``.

    Child processes find the file there too.
    """
    path = Path(path).expanduser().absolute()
    with closing(_lines(path)) as lines:
        _begin(path, lines)
    os.environ[VARIABLE] = str(path)
    return f"{path.name}:{_digest(path, _stamp(path))}"


def _distilled(words: Sequence[str]) -> Vectors:
    """Encode each word as a text of its own."""
    from wgcn_paper.vectors.encoder import encode_cached

    return encode_cached(words, "words"), np.ones(len(words), bool)


def _find(source: str) -> Path:
    """Return the path of the file that a source names."""
    match = _NAMED.fullmatch(source)
    if not match:
        path = Path(source).expanduser()
        if not path.is_file():
            raise InputError(f"There are no word vectors {source!r}. Use {DISTILLED!r}, or the path of a file.")
        return path
    place = os.environ.get(VARIABLE)
    if not place:
        raise InputError(
            f"The word vectors {source} are in a file whose path is not known. Set {VARIABLE} to it, "
            "or use: wgcn-paper reproduce --word-vectors FILE"
        )
    path = Path(place).expanduser()
    found = _digest(path, _stamp(path))
    if found != match["digest"]:
        raise InputError(
            f"{VARIABLE} names {path}, whose digest is {found}; expected {source}. "
            f"Set it to the path of {match['name']}."
        )
    return path


def _stamp(path: Path) -> tuple[int, int]:
    """Return modification time and size: other values mean another content."""
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=8)
def _digest(path: Path, stamp: tuple[int, int]) -> str:
    try:
        return file_digest(path)[:16]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error


# Consecutive runs of a table need the same words, and a file may have millions of lines.
@lru_cache(maxsize=2)
def _read(path: Path, stamp: tuple[int, int], words: tuple[str, ...]) -> Vectors:
    found, size = _entries(path, frozenset(words))
    vectors = np.zeros((len(words), size), np.float32)
    for row, word in zip(vectors, words, strict=True):
        row[:] = found.get(word, 0)
    return vectors, np.array([word in found for word in words], bool)


def _entries(path: Path, words: frozenset[str] | None) -> tuple[dict[str, Vector], int]:
    """Return the vectors of a file, or only of some words, and the number of values per word."""
    vectors: dict[str, Vector] = {}
    line_of: dict[str, int] = {}
    count = 0
    with closing(_lines(path)) as lines:
        size, n_words, first = _begin(path, lines)
        for number, line in chain(first, lines):
            count += 1
            word, values = _split(path, number, line, size)
            if words is not None and word not in words:
                continue
            vector = _parse(path, number, values)
            if word in vectors and not np.array_equal(vectors[word], vector):
                raise InputError(
                    f"{path}, line {number}: {word!r} has another vector already, in line {line_of[word]}."
                )
            line_of.setdefault(word, number)
            vectors[word] = vector
    if n_words is not None and count != n_words:
        raise InputError(f"{path} has {count:,} words, but its line 1 says {n_words:,}. Download it again.")
    return vectors, size


def _begin(path: Path, lines: Iterator[Line]) -> tuple[int, int | None, list[Line]]:
    """Return the number of values per word, the number of words if there is a header, and the first line with a word.

    The values of that line are checked even if the word is not needed, to recognise files of another kind.
    """
    first = next(lines, None)
    if first is None:
        raise InputError(f"{path} is empty. {_FORMAT}")
    size, n_words = _shape(path, first[1])
    if n_words is not None:
        first = next(lines, None)
    if first is not None:
        _parse(path, first[0], _split(path, *first, size)[1])
    return size, n_words, [] if first is None else [first]


def _lines(path: Path) -> Generator[Line, None, None]:
    """Stream the lines with their numbers, without blank ones and without the white space at their ends."""
    try:
        with cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else path.open("rb")) as file:
            number = 0
            while line := file.readline(_MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > _MAX_LINE_BYTES:
                    raise InputError(f"{path}, line {number} is longer than {_MAX_LINE_BYTES:,} bytes. {_FORMAT}")
                line = (line.removeprefix(_BOM) if number == 1 else line).rstrip(b" \t\r\n")
                if line:
                    yield number, line
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read: {reason}. Download it again.") from error


def _shape(path: Path, line: bytes) -> tuple[int, int | None]:
    """Return the number of values per word and, if the first line is a header, the number of words."""
    fields = line.split(b" ")
    header = len(fields) == 2 and all(field.isdigit() and len(field) < 16 for field in fields)
    size = int(fields[1]) if header else len(fields) - 1
    if size not in _SIZES:
        raise InputError(
            f"{path}, line 1 gives words {size} values; expected {_SIZES.start} to {_SIZES.stop - 1:,}. {_FORMAT}"
        )
    return size, int(fields[0]) if header else None


def _split(path: Path, number: int, line: bytes, size: int) -> tuple[str, bytes]:
    """Return the word of a line and its values, the last fields: a few words of GloVe contain spaces."""
    n_values = line.count(b" ")
    if n_values < size:
        raise InputError(f"{path}, line {number} has {n_values} values; expected {size}, as in line 1.")
    raw = line[: line.index(b" ")] if n_values == size else line.rsplit(b" ", size)[0]
    # A decimal number before the values is one value too many rather than the end of a word.
    if n_values > size and b"." in (extra := raw.rpartition(b" ")[2]) and _is_number(extra):
        raise InputError(f"{path}, line {number} has more values than {size}, which line 1 has.")
    try:
        return raw.decode(), line[len(raw) + 1 :]
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, line {number} is not UTF-8. Convert the file: iconv -f LATIN1 -t UTF-8") from error


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _parse(path: Path, number: int, values: bytes) -> npt.NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):
            vector = np.array([float(value) for value in values.split(b" ")]).astype(np.float32)
    except ValueError as error:
        raise InputError(f"{path}, line {number} has a value that is not a number. {_FORMAT}") from error
    if not np.isfinite(vector).all():
        raise InputError(f"{path}, line {number} has a value that is not finite.")
    return vector


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
