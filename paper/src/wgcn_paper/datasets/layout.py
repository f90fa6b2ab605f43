"""Where the benchmark sets are, and how their files are read and written.

Layout of a data folder:

- ``text/<name>/train.tsv.gz`` and ``test.tsv.gz``: UTF-8, one document per line: label, tab, text;
- ``citation/<name>/features.npz`` and ``adjacency.npz`` (scipy sparse), ``labels.npy`` (-1: no label) and
  ``split.npz`` (``train_idx``, ``val_idx``, ``test_idx``);
- ``stopwords_english.txt``: one word per line.

Reading executes nothing. A file that is damaged or does not match the others raises an
:class:`~wgcn.base.errors.InputError` that names it.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError
from wgcn.base.files import write_file
from wgcn.io.read import read_rows
from wgcn.store.folder import check_csr
from wgcn_paper.cache import cache_folder
from wgcn_paper.datasets.dataset import Dataset
from wgcn_paper.datasets.derived import SOURCES, derived
from wgcn_paper.datasets.docs import docs_corpus
from wgcn_paper.datasets.registry import (
    DOCS,
    STOP_WORDS,
    STOP_WORDS_COUNT,
    STOP_WORDS_DIGEST,
    CitationSet,
    TextSet,
    known_set,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array


FILES = {
    "text": ("train.tsv.gz", "test.tsv.gz"),
    "citation": ("features.npz", "adjacency.npz", "labels.npy", "split.npz"),
}
STOP_WORDS_FILE = "stopwords_english.txt"
# The largest set has 36 million characters and 8 million bytes of arrays.
MAX_CHARACTERS = 2**29
MAX_ARRAY_BYTES = 2**30
_MAX_STOP_WORDS_BYTES = 2**20
_DAMAGED = "It is damaged or of another kind. Download it again."


def load_dataset(name: str) -> Dataset:
    """Return a benchmark set, one of :func:`wgcn_paper.datasets.dataset_names`.

    It is looked for in the folder that the environment variable ``WGCN_DATA`` names, then in ``data`` in
    :func:`wgcn_paper.cache.cache_folder`, where ``wgcn-paper data prepare`` puts it. Its content is not verified: only
    ``wgcn-paper data prepare`` compares it with the published content.

    A text set has texts, those for training first. A citation set has features, a symmetric document graph, validation
    documents and integer labels; a document with the label -1 is in no part of the split. ``docs`` is
    :func:`wgcn_paper.datasets.docs_corpus`; ``20ng-coarse`` is 20ng in five groups, ``mr-thinned`` MR with a tenth of
    negative reviews.
    """
    if name == DOCS:
        return docs_corpus()
    if name in SOURCES:
        return derived(name, load_dataset(SOURCES[name]))
    return read_set(name, find_folder(name))


def stop_words() -> frozenset[str]:
    """Return the 179 English stop words that the published cleaning of the text sets removes.

    They are looked for where :func:`load_dataset` looks, in ``stopwords_english.txt``.
    """
    return read_stop_words(find_stop_words())


# Where the sets are


def data_folders() -> tuple[Path, ...]:
    """Return the folders to look in: that of ``WGCN_DATA`` if set, then that of ``wgcn-paper data prepare``."""
    own = os.environ.get("WGCN_DATA")
    prepared = prepared_folder()
    return (*([Path(own).expanduser()] if own else []), *([prepared] if prepared else []))


def prepared_folder() -> Path | None:
    """Return the folder that ``wgcn-paper data prepare`` fills, or None for a user without a home folder."""
    try:
        return cache_folder() / "data"
    except RuntimeError:
        return None


def set_path(folder: Path, known: TextSet | CitationSet) -> Path:
    """Return the path of a set in a data folder."""
    return folder / known.kind / known.name


def find_folder(name: str) -> Path:
    """Return the first data folder that has all files of a set."""
    known = known_set(name)
    looked: list[str] = []
    for folder in data_folders():
        path = set_path(folder, known)
        missing = [file for file in FILES[known.kind] if not (path / file).is_file()]
        if not missing:
            return folder
        looked.append(f"{path} (lacks {', '.join(missing)})" if path.is_dir() else f"{path}")
    raise InputError(_not_here(f"The data set '{name}'", looked, name))


def find_stop_words() -> Path:
    """Return the first list of stop words in the data folders."""
    paths = [folder / STOP_WORDS_FILE for folder in data_folders()]
    for path in paths:
        if path.is_file():
            return path
    raise InputError(_not_here("The list of stop words", [f"{path}" for path in paths], STOP_WORDS))


def _not_here(what: str, looked: list[str], name: str) -> str:
    return (
        f"{what} is not on this machine. Looked for {' and '.join(looked) or 'no folder: there is no home folder'}. "
        f"Get it with: wgcn-paper data prepare {name}  (or set WGCN_DATA to a folder that has it)"
    )


# Reading


def read_set(name: str, folder: Path) -> Dataset:
    """Return a set from a data folder."""
    known = known_set(name)
    path = set_path(folder, known)
    return _read_text_set(name, path) if known.kind == "text" else _read_citation_set(name, path)


def _read_text_set(name: str, path: Path) -> Dataset:
    labels: list[str] = []
    texts: list[str] = []
    ends: list[int] = []
    held = 0
    for file in FILES["text"]:
        for label, text in read_rows(path / file, [0, 1], header=False):
            assert label is not None and text is not None  # noqa: PT018 only jsonl and parquet have nulls
            held += len(text)
            if held > MAX_CHARACTERS:
                raise InputError(f"{path / file} holds more than {MAX_CHARACTERS:,} characters. {_DAMAGED}")
            if not label:
                raise InputError(f"{path / file}: document {len(labels) - sum(ends) + 1} has no label. {_DAMAGED}")
            labels.append(label)
            texts.append(text)
        ends.append(len(labels))
    return Dataset(
        name, tuple(texts), None, np.array(labels), np.arange(ends[0], dtype=np.int64), np.arange(*ends, dtype=np.int64)
    )


def _read_citation_set(name: str, path: Path) -> Dataset:
    from scipy.sparse import load_npz

    labels = _integers(path / "labels.npy", _load_arrays(path / "labels.npy", _load_npy))
    features = _csr(path / "features.npz", _load_arrays(path / "features.npz", load_npz))
    graph = _csr(path / "adjacency.npz", _load_arrays(path / "adjacency.npz", load_npz))
    for file, shape, expected in (
        ("features.npz", features.shape, (len(labels), features.shape[1])),
        ("adjacency.npz", graph.shape, (len(labels), len(labels))),
    ):
        if shape != expected:
            raise InputError(
                f"{path / file} has the shape {shape}, but {path / 'labels.npy'} has {len(labels)} labels. {_DAMAGED}"
            )
    split = path / "split.npz"
    parts = _load_arrays(split, _load_split)
    train, validation, test = (_integers(split, parts[part]) for part in ("train_idx", "val_idx", "test_idx"))
    try:
        dataset = Dataset(name, None, features, labels, train, test, graph, None, validation)
    except InputError as error:
        raise InputError(f"{split} does not fit: {error}") from None
    if (labels[np.concatenate([train, validation, test])] < 0).any():
        raise InputError(f"{split} holds documents that have no label in {path / 'labels.npy'}. {_DAMAGED}")
    return dataset


def _load_npy(path: Path) -> Any:
    with path.open("rb") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _load_split(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        return {part: file[part] for part in ("train_idx", "val_idx", "test_idx")}


def _load_arrays(path: Path, load: Any) -> Any:
    """Load a file of arrays without unpickling, after a check of the size that it claims."""
    try:
        size = path.stat().st_size
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                size = sum(member.file_size for member in archive.infolist())
        if size > MAX_ARRAY_BYTES:
            raise InputError(f"{path} holds more than {MAX_ARRAY_BYTES:,} bytes. {_DAMAGED}")
        return load(path)
    except InputError:
        raise
    except Exception as error:  # whatever the damage, the message is the same
        raise InputError(f"{path} cannot be read ({_first_line(error)}). {_DAMAGED}") from error


def _first_line(error: Exception) -> str:
    return f"{error}".partition("\n")[0][:200] or type(error).__name__


def _integers(path: Path, array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"{path} holds {array.ndim}-dimensional {array.dtype}; expected flat integers. {_DAMAGED}")
    if array.size and array.min() < -1:
        raise InputError(f"{path} holds {array.min()}; expected nothing below -1. {_DAMAGED}")
    return array.astype(np.int64)


def _csr(path: Path, matrix: Any) -> csr_array:
    from scipy.sparse import csr_array

    if matrix.format != "csr" or matrix.dtype.kind not in "biuf":
        raise InputError(f"{path} holds {matrix.format} of {matrix.dtype}; expected csr of numbers. {_DAMAGED}")
    try:
        check_csr(matrix)
    except ValueError as error:
        raise InputError(f"{path} is not a sparse matrix: {error}. {_DAMAGED}") from error
    matrix = csr_array(matrix, dtype=np.float32)
    matrix.sum_duplicates()
    return matrix


def read_stop_words(path: Path) -> frozenset[str]:
    """Return the words of a list, if it is the one of the published cleaning."""
    try:
        if path.stat().st_size > _MAX_STOP_WORDS_BYTES:
            raise InputError(f"{path} is larger than {_MAX_STOP_WORDS_BYTES:,} bytes. {_DAMAGED}")
        words = path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({_first_line(error)}). {_DAMAGED}") from error
    check_words(words, f"{path}")
    return frozenset(words)


# Content


def text_digest(labels: Iterable[object], texts: Iterable[str]) -> str:
    """Return a SHA-256 of documents that does not depend on compression or on the kind and number of spaces.

    It is that of the UTF-8 lines ``label TAB text``, each ended by a line feed, with the words of a text joined by one
    space: first the training documents, then the test documents.
    """
    digest = hashlib.sha256()
    for label, text in zip(labels, texts, strict=True):
        digest.update(f"{label}\t{' '.join(text.split())}\n".encode())
    return digest.hexdigest()


def citation_digest(dataset: Dataset) -> str:
    """Return a SHA-256 of the arrays of a citation set that does not depend on how they were compressed.

    It is that of their little-endian bytes: shape, ``indptr``, ``indices`` (int64) and ``data`` (float32) of the
    features and of the graph, then labels, training, validation and test documents (int64).
    """
    assert dataset.features is not None
    assert dataset.document_graph is not None
    assert dataset.validation is not None
    digest = hashlib.sha256()
    for matrix in (dataset.features, dataset.document_graph):
        for integers in (matrix.shape, matrix.indptr, matrix.indices):
            digest.update(np.asarray(integers, dtype="<i8").tobytes())
        digest.update(np.asarray(matrix.data, dtype="<f4").tobytes())
    for integers in (dataset.labels, dataset.train, dataset.validation, dataset.test):
        digest.update(np.asarray(integers, dtype="<i8").tobytes())
    return digest.hexdigest()


def words_digest(words: Iterable[str]) -> str:
    """Return the SHA-256 of words, sorted, each ended by a line feed."""
    return hashlib.sha256("".join(f"{word}\n" for word in sorted(words)).encode()).hexdigest()


def check_content(dataset: Dataset, origin: str) -> None:
    """Raise an error unless a set has the content that was published; `origin` is its source."""
    known = known_set(dataset.name)
    sizes = {"training": (len(dataset.train), known.train), "test": (len(dataset.test), known.test)}
    for part, (found, published) in sizes.items():
        if found != published:
            raise InputError(
                f"{origin} gives {found:,} {part} documents of '{dataset.name}'; {published:,} were published. "
                "It is another version, or not whole."
            )
    if known.kind == "text":
        assert dataset.texts is not None
        digest = text_digest(dataset.labels, dataset.texts)
    else:
        digest = citation_digest(dataset)
    if digest != known.digest:
        raise InputError(
            f"{origin} gives other content for '{dataset.name}' than was published (SHA-256 {digest}, expected "
            f"{known.digest}). It is damaged or another version."
        )


def check_words(words: list[str], origin: str) -> None:
    """Raise an error unless words are the published stop words."""
    if words_digest(words) != STOP_WORDS_DIGEST:
        raise InputError(
            f"{origin} has {len(words):,} words that are not the {STOP_WORDS_COUNT} stop words of the published "
            "cleaning. Other versions of the list have more words; with them the figures in the literature do not "
            "come out. Get the right one from a copy: wgcn-paper data prepare stopwords --from PATH"
        )


# Writing


def write_text_set(path: Path, dataset: Dataset) -> None:
    """Write a text set into an existing folder. The same documents give the same bytes."""
    assert dataset.texts is not None
    for file, part in zip(FILES["text"], (dataset.train, dataset.test), strict=True):
        lines = [f"{dataset.labels[i]}\t{dataset.texts[i]}\n" for i in part]
        (path / file).write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


def write_citation_set(path: Path, dataset: Dataset) -> None:
    """Write a citation set into an existing folder."""
    from scipy.sparse import save_npz

    save_npz(path / "features.npz", dataset.features)
    save_npz(path / "adjacency.npz", dataset.document_graph)
    np.save(path / "labels.npy", dataset.labels, allow_pickle=False)
    split = {"train_idx": dataset.train, "val_idx": dataset.validation, "test_idx": dataset.test}
    np.savez(path / "split.npz", allow_pickle=False, **split)  # type: ignore[arg-type]


def write_stop_words(path: Path, words: Iterable[str]) -> None:
    """Write a list of words, sorted, atomically."""
    text = "".join(f"{word}\n" for word in sorted(words))
    write_file(path, lambda file: file.write(text.encode()))
