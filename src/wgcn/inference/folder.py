"""Saved folders: tensors in safetensors, words as plain text, settings as JSON, and a digest over all of them.

A folder is written beside its place and renamed into it, so that a crash leaves the old one whole. Loading executes
nothing, reads no more than the files' sizes, and answers anything unexpected with one :class:`~wgcn.errors.StoreError`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from wgcn.errors import InputError, StoreError
from wgcn.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Folder", "check_csr", "csr_tensors", "load_folder", "open_whole", "save_folder", "write_file"]

VERSION = 1
CONFIG, VOCABULARY, README = "config.json", "vocabulary.txt", "README.md"
_MAX_CONFIG_BYTES = 1 << 24  # a model has its stop words there


@dataclass(frozen=True)
class Folder:
    """What was read from a folder. The digest is right; what the tensors hold is checked as it is taken out."""

    path: Path
    config: dict[str, Any]
    tensors: dict[str, npt.NDArray[Any]]
    vocabulary: Vocabulary
    digest: str

    def vector(self, name: str, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Take out a one-dimensional tensor of a given size and type with finite values."""
        tensor = self._tensor(name)
        if tensor.shape != (size,) or tensor.dtype != dtype or not np.isfinite(tensor).all():
            raise StoreError(
                f"{self.path}: '{name}' is {tensor.dtype} of shape {tensor.shape}; expected finite {np.dtype(dtype)} "
                f"of shape ({size},). Save it again."
            )
        return tensor

    def matrix(self, name: str, n_rows: int, n_columns: int | None) -> npt.NDArray[np.float32]:
        """Take out a two-dimensional float32 tensor with finite values; None for any number of columns."""
        tensor = self._tensor(name)
        fits = tensor.ndim == 2 and tensor.shape[0] == n_rows and n_columns in (None, tensor.shape[1])
        if not fits or tensor.dtype != np.float32 or not np.isfinite(tensor).all():
            raise StoreError(
                f"{self.path}: '{name}' is {tensor.dtype} of shape {tensor.shape}; expected finite float32 of shape "
                f"({n_rows}, {n_columns or 'any'}). Save it again."
            )
        return tensor

    def csr(self, name: str, shape: tuple[int, int]) -> csr_array:
        """Take out a sparse matrix of a given shape with finite values."""
        from scipy.sparse import csr_array

        parts = [self._tensor(f"{name}.{part}") for part in ("data", "indices", "indptr")]
        try:
            if not parts[1].dtype == parts[2].dtype in (np.int32, np.int64):
                raise ValueError(f"its indices are {parts[1].dtype} and {parts[2].dtype}")
            if parts[0].dtype not in (np.float32, np.float64, np.int32, np.int64):
                raise ValueError(f"its values are {parts[0].dtype}")
            matrix = csr_array(tuple(parts), shape=shape)
            check_csr(matrix)
        except (ValueError, TypeError) as error:
            raise StoreError(f"{self.path}: '{name}' is not a sparse matrix of shape {shape} ({error}).") from error
        return matrix

    def _tensor(self, name: str) -> npt.NDArray[Any]:
        if name not in self.tensors:
            raise StoreError(f"{self.path} has no tensor '{name}'. It was not written by this version of wgcn.")
        return self.tensors[name]


def check_csr(matrix: csr_array) -> None:
    """Raise a ValueError unless the arrays of a sparse matrix fit each other and its values are finite.

    The full check of scipy is not enough: it passes over all indices if the last entry of `indptr` is not positive, and
    the differences that it takes of the entries may overflow.
    """
    starts, ends = matrix.indptr[:-1], matrix.indptr[1:]
    if matrix.indptr[0] != 0 or (ends < starts).any() or matrix.indptr[-1] != len(matrix.indices):
        raise ValueError("its rows do not follow one another")
    if len(matrix.data) != len(matrix.indices):
        raise ValueError("it has another number of values than of indices")
    if matrix.nnz and (matrix.indices.min() < 0 or matrix.indices.max() >= matrix.shape[1]):
        raise ValueError("it has indices outside its shape")
    if not np.isfinite(matrix.data).all():
        raise ValueError("it has values that are not finite")


def csr_tensors(name: str, matrix: csr_array) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a sparse matrix under the names that `Folder.csr` looks for."""
    return {f"{name}.data": matrix.data, f"{name}.indices": matrix.indices, f"{name}.indptr": matrix.indptr}


def save_folder(
    path: str | Path,
    kind: str,
    config: Mapping[str, Any],
    tensors: Mapping[str, npt.NDArray[Any]],
    vocabulary: Vocabulary,
    readme: str | None = None,
) -> str:
    """Write a folder, whole or not at all, replacing one that was saved there before; return its digest.

    A folder that is there and is not a saved one is never replaced.

    Parameters
    ----------
    path : path
    kind : str
        What it holds; also the name of its .safetensors file.
    config : mapping
        Settings that JSON can hold.
    tensors : mapping from str to array
    vocabulary : Vocabulary
    readme : str, optional
        Text of a README.md for people, which is covered by the digest too.
    """
    path = Path(path)
    _check_replaceable(path)
    contents = {
        VOCABULARY: "".join(f"{word}\n" for word in vocabulary.words).encode(),
        f"{kind}.safetensors": save(
            {
                **{name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()},
                "vocabulary.counts": vocabulary.counts,
                "vocabulary.document_counts": vocabulary.document_counts,
            }
        ),
    }
    if readme is not None:
        contents[README] = readme.encode()
    document: dict[str, Any] = {
        "format": f"wgcn-{kind}",
        "version": VERSION,
        "config": dict(config),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
    }
    document["digest"] = _digest(document)
    contents[CONFIG] = (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
    if len(contents[CONFIG]) > _MAX_CONFIG_BYTES:
        raise InputError(
            f"{path}: {len(contents[CONFIG]):,} bytes of settings could not be read back: {_MAX_CONFIG_BYTES:,} is the "
            "limit. Have fewer stop words or classes."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            temporary.chmod(0o777 & ~_umask())
            for name, content in contents.items():
                with (temporary / name).open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            _move_into_place(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error
    return str(document["digest"])


def load_folder(path: str | Path, kind: str, schema: Mapping[str, type | tuple[type, ...]]) -> Folder:
    """Read a folder and check its digest.

    Parameters
    ----------
    path : path
    kind : str
        What it must hold, such as "graph".
    schema : mapping from str to type
        The keys of its config, all of which must be there and no others, with the types of their values.
    """
    path = Path(path)
    _finish_move(path)
    document = _read_config(path, kind)
    config = document["config"]
    _check_keys(path, "config", config, schema)
    tensor_file = f"{kind}.safetensors"
    names = {VOCABULARY, tensor_file, *({README} & document["files"].keys())}
    contents = {name: _read(path / name) for name in sorted(names)}
    if document["files"] != {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}:
        raise StoreError(f"{path} is damaged: its files do not match their digests. Save or fetch it again.")
    try:
        tensors = load(contents[tensor_file])
        words = contents[VOCABULARY].decode().split("\n")
        if words.pop() != "":
            raise ValueError("the vocabulary does not end in a line break")
        counts = [tensors[f"vocabulary.{name}"] for name in ("counts", "document_counts")]
        if any(array.dtype != np.int64 or array.shape != (len(words),) or (array < 0).any() for array in counts):
            raise ValueError("the counts of the vocabulary are not one number for each word")
        vocabulary = Vocabulary(words, *counts)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged: {error}. Save or fetch it again.") from error
    return Folder(path, config, tensors, vocabulary, document["digest"])


def write_file(path: str | Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file, whole or not at all: `write` is given a file beside it, which then takes its place."""
    with open_whole(path) as file:
        write(file)


@contextmanager
def open_whole(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its place only when all went well."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error


def _read_config(path: Path, kind: str) -> dict[str, Any]:
    if not path.is_dir():
        raise StoreError(f"There is no {kind} folder {path}. Check the path.")
    content = _read(path / CONFIG, limit=_MAX_CONFIG_BYTES)
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path / CONFIG} is not valid JSON ({error}). Save or fetch the folder again.") from error
    if not isinstance(document, dict) or not str(document.get("format", "")).startswith("wgcn-"):
        raise StoreError(f"{path} was not written by wgcn: its {CONFIG} names no wgcn format.")
    if document["format"] != f"wgcn-{kind}":
        raise StoreError(f"{path} holds {document['format']!r:.60}, but 'wgcn-{kind}' is expected here.")
    version = document.get("version")
    if not isinstance(version, int) or version < 1:
        raise StoreError(f"{path} has the format version {version!r:.60}; expected a number.")
    if version > VERSION:
        raise StoreError(f"{path} has format version {version}, newer than this wgcn reads ({VERSION}). Update wgcn.")
    keys = {"format": str, "version": int, "config": dict, "files": dict, "digest": str}
    _check_keys(path, CONFIG, document, keys)
    if document["digest"] != _digest(document):
        raise StoreError(f"{path} is damaged: {CONFIG} does not match its digest. Save or fetch it again.")
    return document


def _check_keys(
    path: Path, where: str, given: Mapping[str, Any], schema: Mapping[str, type | tuple[type, ...]]
) -> None:
    if given.keys() != schema.keys():
        extra, missing = sorted(given.keys() - schema.keys()), sorted(schema.keys() - given.keys())
        raise StoreError(f"{path}: {where} has unknown keys {extra!r:.200} or lacks {missing!r:.200}. Update wgcn?")
    for key, kind in schema.items():
        # bool is an int to Python, but never to a file.
        if not isinstance(given[key], kind) or (isinstance(given[key], bool) and kind is int):
            raise StoreError(f"{path}: {key!r} in {where} is {given[key]!r:.60}, which is of the wrong type.")


def _digest(document: Mapping[str, Any]) -> str:
    """Digest of the config, which holds the digests of all other files."""
    covered = {key: value for key, value in document.items() if key != "digest"}
    return hashlib.sha256(json.dumps(covered, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _read(path: Path, limit: int | None = None) -> bytes:
    try:
        if limit is not None and path.stat().st_size > limit:
            raise StoreError(f"{path} is larger than {limit:,} bytes, which no such file is.")
        return path.read_bytes()
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read: {error.strerror or error}. Save or fetch the folder again."
        ) from error


def _check_replaceable(path: Path) -> None:
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise InputError(f"{path} exists and is not a folder. Choose another place.")
    entries = {entry.name for entry in path.iterdir()}
    if not entries:
        return
    try:
        ours = str(json.loads(_read(path / CONFIG, _MAX_CONFIG_BYTES)).get("format")).startswith("wgcn-")
    except (StoreError, ValueError, AttributeError, RecursionError):
        ours = False
    if not ours:
        raise InputError(f"{path} is a folder with other files in it, which would be lost. Choose another place.")


def _previous(path: Path) -> Path:
    return path.with_name(f".{path.name}.previous")


def _move_into_place(new: Path, path: Path) -> None:
    """Put a folder into its place. No system call swaps two folders everywhere, so the old one steps aside first."""
    _finish_move(path)
    try:
        if path.exists():
            path.replace(_previous(path))
        new.replace(path)
    finally:
        _finish_move(path)


def _finish_move(path: Path) -> None:
    """Remove the old folder if the new one is in its place; else put it back: it is whole, under another name."""
    previous = _previous(path)
    if previous.is_dir():
        if path.exists():
            shutil.rmtree(previous, ignore_errors=True)
        else:
            previous.replace(path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
