"""Saved folders: tensors in safetensors, words as plain text, settings as JSON, and a digest over all of them.

Loading executes nothing, opens plain files only, takes at most four times their size in memory and 48 MiB, and
raises a StoreError for anything unexpected: a digest vouches for bytes, not for what they mean, so each value has its
range. A folder is checked in the same way before it is saved, so what can be saved can be loaded.

Saving changes no file that it did not write, and a crash at any moment leaves the old or the new version complete:

1. The new files are written to `.wgcn-new-*` inside the folder. The old version counts.
2. That folder is renamed to `.wgcn-pending`. From here on the new version counts: readers look there first.
3. The files are moved from there into the folder, `config.json` last. If this is interrupted, the next save finishes.

A process that saves has the lock of the folder, so what it finds there of another was left by one that was killed. A
reader sees that the config is another file than before and reads again; it takes the lock only after that.

A folder may have a session beside what it holds: `session.json` and `session.safetensors`. These are read only where
they are asked for, and removed in step 3 if the new version has none.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from wgcn.base.errors import LARGEST, InputError, StoreError
from wgcn.base.files import (
    check_replaced,
    check_writable,
    create_file,
    file_target,
    locked_folder,
    made_folder,
    read_whole,
    sync_folder,
    writing,
)
from wgcn.store.contents import read_json, read_vocabulary
from wgcn.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Schema = Mapping[str, type | tuple[type, ...]]

VERSION = 3
CONFIG, VOCABULARY, README = "config.json", "vocabulary.txt", "README.md"
SESSION = frozenset({"session.json", "session.safetensors"})
_NEW, _PENDING = ".wgcn-new-", ".wgcn-pending"
MAX_CONFIG_BYTES = 1 << 23  # stop words and classes are stored there; reading it takes up to ten times its size
_MAX_HEADER_BYTES = 1 << 16  # of tensors, which are few; what is read of one takes twenty times its size
_ATTEMPTS = 20  # to read a folder that is being saved at the same time
_DOCUMENT = {"format": str, "version": int, "config": dict, "files": dict, "digest": str}


@dataclass(frozen=True)
class Folder:
    """The content of a folder whose digests are right. Tensors are checked as they are taken out."""

    path: Path
    config: dict[str, Any]
    tensors: dict[str, npt.NDArray[Any]]
    vocabulary: Vocabulary
    session: Folder | None = None  # of its own config and tensors, if there is one and it was asked for

    def tensor(
        self,
        name: str,
        *shape: int | None,
        dtype: npt.DTypeLike = np.float32,
        within: tuple[float, float] = (-LARGEST, LARGEST),
    ) -> npt.NDArray[Any]:
        """Return a tensor after checking its type, its range and its shape, where None fits any length."""
        tensor, (least, most) = self._get(name), within
        fits = (
            tensor.dtype == dtype
            and tensor.ndim == len(shape)
            and all(expected in (None, size) for expected, size in zip(shape, tensor.shape, strict=True))
            and (tensor.size == 0 or least <= float(tensor.min()) <= float(tensor.max()) <= most)
        )
        if not fits:
            expected_shape = ", ".join("any" if size is None else str(size) for size in shape)
            raise StoreError(
                f"{self.path}: '{name}' is {tensor.dtype} of shape {tensor.shape}; expected finite {np.dtype(dtype)} "
                f"from {least:g} to {most:g} of shape ({expected_shape}). Save it again."
            )
        return tensor

    def csr(
        self,
        name: str,
        shape: tuple[int, int],
        dtypes: tuple[npt.DTypeLike, ...] = (np.float32, np.float64),
        *,
        within: tuple[float, float] = (-np.inf, np.inf),
        in_order: bool = True,
    ) -> csr_array:
        """Return a sparse matrix of a given shape, finite values of one of these types, and rows `in_order`."""
        from scipy.sparse import csr_array

        data, indices, indptr = (self._get(f"{name}.{part}") for part in ("data", "indices", "indptr"))
        try:
            if not indices.dtype == indptr.dtype in (np.int32, np.int64):
                raise ValueError(f"its indices are {indices.dtype} and {indptr.dtype}")
            if data.dtype not in dtypes:
                raise ValueError(f"its values are {data.dtype}")
            if any(part.ndim != 1 for part in (data, indices, indptr)):
                raise ValueError("one of its parts has more than one dimension")
            matrix = csr_array((data, indices, indptr), shape=shape)
            check_csr(matrix)
            if matrix.nnz and not within[0] <= float(data.min()) <= float(data.max()) <= within[1]:
                raise ValueError(f"it has values that are not from {within[0]:g} to {within[1]:g}")
            if in_order and not matrix.has_canonical_format:
                raise ValueError("its rows are not sorted")
        except (ValueError, TypeError) as error:
            raise StoreError(f"{self.path}: '{name}' is not a sparse matrix of shape {shape} ({error}).") from error
        return matrix

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Turn what is wrong with the config into a StoreError."""
        try:
            yield
        except InputError as error:
            raise StoreError(f"{self.path}: {CONFIG} cannot be used. {error} Save or fetch it again.") from error

    def _get(self, name: str) -> npt.NDArray[Any]:
        if name not in self.tensors:
            raise StoreError(f"{self.path} has no tensor '{name}'. It was not written by this version of wgcn.")
        return self.tensors[name]


@dataclass(frozen=True)
class SessionFiles:
    """What is saved beside what a folder holds. `check` is what loading does with the folder that has it."""

    config: Mapping[str, Any]
    tensors: Mapping[str, npt.NDArray[Any]]
    check: Callable[[Folder], object]


def check_csr(matrix: csr_array) -> None:
    """Raise a ValueError unless the arrays of a sparse matrix are consistent and its values finite."""
    # scipy's full check skips all indices if the last entry of `indptr` is not positive, and differences may overflow.
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
    """Return the arrays of a sparse matrix under the names that `Folder.csr` expects."""
    return {f"{name}.data": matrix.data, f"{name}.indices": matrix.indices, f"{name}.indptr": matrix.indptr}


def save_folder(
    path: str | Path,
    kind: str,
    config: Mapping[str, Any],
    tensors: Mapping[str, npt.NDArray[Any]],
    vocabulary: Vocabulary,
    readme: str | None = None,
    *,
    schema: Schema | None = None,
    check: Callable[[Folder], object] = lambda folder: None,
    session: SessionFiles | None = None,
) -> str:
    """Write a folder, completely or not at all; return its digest.

    `kind` says what it holds and names its .safetensors file; the digest covers the README too. An existing folder of
    the same kind is updated: other files and all modes stay, and so does a link to it. Any other folder that is not
    empty is an error. `schema` and `check` are what loading does with the folder: where they raise an error, nothing is
    written. Without a `session`, that of an earlier save is removed.
    """
    path = Path(path)
    with writing(path):
        folder, _ = _folder_target(path, kind)
    all_tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    all_tensors |= {"vocabulary.counts": vocabulary.counts, "vocabulary.document_counts": vocabulary.document_counts}
    try:
        words = "".join(f"{word}\n" for word in vocabulary.words).encode()
        if read_vocabulary(words, all_tensors) != vocabulary:
            raise ValueError("a word has a line break in it")
        saved_config = read_json(json.dumps(dict(config)).encode())
        if schema is not None:
            check_keys(path, "config", saved_config, schema)
        folder_there = Folder(path, saved_config, all_tensors, vocabulary)
        check(folder_there)
        contents = {VOCABULARY: words, f"{kind}.safetensors": save(all_tensors)}
        if session is not None:
            more = {name: np.ascontiguousarray(tensor) for name, tensor in session.tensors.items()}
            text = json.dumps(dict(session.config), ensure_ascii=False).encode()
            _check_size(path, "session.json", text)
            session.check(replace(folder_there, session=Folder(path, read_json(text), more, vocabulary)))
            contents |= {"session.json": text, "session.safetensors": save(more)}
    except (StoreError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"This cannot be saved, because it could not be read back: {error}") from error
    with writing(path), made_folder(folder), locked_folder(folder) as is_locked:
        old = _files_of(_folder_target(folder, kind)[1])
        if strange := [name for name in sorted(SESSION & contents.keys() - old) if os.path.lexists(folder / name)]:
            raise InputError(
                f"{folder / strange[0]} was not written by wgcn and is not replaced. Choose another place."
            )
        if readme is not None and (README in old or not os.path.lexists(folder / README)):  # a user's own stays
            contents[README] = readme.encode()
        files = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        document = {"format": f"wgcn-{kind}", "version": VERSION, "config": saved_config, "files": files}
        document["digest"] = _digest(document)
        contents[CONFIG] = (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
        _check_size(path, CONFIG, contents[CONFIG])
        _put(folder, contents, is_locked)
    return str(document["digest"])


def _check_size(path: Path, name: str, content: bytes) -> None:
    if len(content) > MAX_CONFIG_BYTES:
        raise InputError(
            f"{path}: {len(content):,} bytes of settings ({name}) could not be read back: {MAX_CONFIG_BYTES:,} is the "
            "limit. Use fewer stop words, classes or seeds."
        )


def load_folder(path: str | Path, kind: str, schema: Schema, *, with_session: bool = False) -> Folder:
    """Read a folder and check its digest. Its config must have exactly the keys of the schema, of these types."""
    path = Path(path)
    if not os.path.isdir(path):  # noqa: PTH112 - which raises nothing
        raise StoreError(f"There is no {kind} folder {path}. Check the path.")
    for attempt in range(_ATTEMPTS):
        # Without the lock first: whoever has it may have been stopped, and what is only read needs none.
        with locked_folder(path, shared=True) if attempt > 1 else nullcontext():
            before = _version(path)
            try:
                return _load(path, kind, schema, with_session)
            except StoreError:
                if _version(path) == before:
                    raise
    raise StoreError(f"{path} is saved again and again while it is read. Try again later.")


def _version(path: Path) -> list[tuple[int, int, int]]:
    """Return which files the configs of a folder are: each save writes new ones, whatever they hold."""
    found = []
    for place in (path / _PENDING / CONFIG, path / CONFIG):
        with suppress(OSError):
            there = place.stat()
            found.append((there.st_ino, there.st_mtime_ns, there.st_ctime_ns))
    return found


def _load(path: Path, kind: str, schema: Schema, with_session: bool) -> Folder:
    content = read_file(path, CONFIG, MAX_CONFIG_BYTES)
    try:
        document = read_json(content)
    except ValueError as error:
        raise StoreError(f"{path / CONFIG} is not valid JSON ({error}). Save or fetch the folder again.") from error
    if not isinstance(document, dict) or not str(document.get("format", "")).startswith("wgcn-"):
        raise StoreError(f"{path} was not written by wgcn: its {CONFIG} names no wgcn format.")
    if document["format"] != f"wgcn-{kind}":
        raise StoreError(f"{path} holds {document['format']!r:.60}, but 'wgcn-{kind}' is expected here.")
    if (version := document.get("version")) != VERSION:
        raise StoreError(
            f"{path} has format version {version!r:.60}, but this wgcn reads version {VERSION} alone. "
            "Fit and save it again."
        )
    check_keys(path, CONFIG, document, _DOCUMENT)
    if document["digest"] != _digest(document):
        raise StoreError(f"{path} is damaged: {CONFIG} does not match its digest. Save or fetch it again.")
    check_keys(path, "config", document["config"], schema)
    tensor_file, files = f"{kind}.safetensors", dict(document["files"])
    has_session = with_session and not SESSION.isdisjoint(files)
    if not has_session:
        files = {name: digest for name, digest in files.items() if name not in SESSION}
    names = {VOCABULARY, tensor_file, *({README} & files.keys()), *(SESSION if has_session else ())}
    limits = {"session.json": MAX_CONFIG_BYTES}
    contents = {name: read_file(path, name, limits.get(name)) for name in sorted(names)}
    if files != {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}:
        raise StoreError(f"{path} is damaged: its files do not match their digests. Save or fetch it again.")
    try:
        tensors = _read_tensors(tensor_file, contents)
        vocabulary, session = read_vocabulary(contents.pop(VOCABULARY), tensors), None
        if has_session:
            more = _read_tensors("session.safetensors", contents)
            session = Folder(path, read_json(contents.pop("session.json")), more, vocabulary)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged: {error}. Save or fetch it again.") from error
    return Folder(path, document["config"], tensors, vocabulary, session)


def _read_tensors(name: str, contents: dict[str, bytes]) -> dict[str, npt.NDArray[Any]]:
    if int.from_bytes(contents[name][:8], "little") > _MAX_HEADER_BYTES:
        raise ValueError(f"the header of {name} is too long")
    tensors: dict[str, npt.NDArray[Any]] = load(contents.pop(name))
    return tensors


def check_target(
    path: str | Path, kind: str | None = None, *, overwrite: bool = True, inputs: Iterable[str | Path] = ()
) -> None:
    """Raise an InputError if a file (kind None) or a folder of a kind could not be written there: before long work.

    It may not be one of the `inputs`, and what is there is replaced only with `overwrite`.
    """
    path, held = Path(path), ""
    with writing(path):
        if kind is None:
            file_target(path)
        else:
            held = _described(kind, _folder_target(path, kind)[1])
        check_replaced(path, held, overwrite=overwrite, inputs=inputs)


def _described(kind: str, document: dict[str, Any]) -> str:
    """Say what a folder of a kind holds, for people to read; nothing where there is none."""
    config = document.get("config")
    report = config.get("report", {}) if isinstance(config, dict) else None
    if not isinstance(config, dict) or not isinstance(report, dict):
        return f"holds a damaged {kind}" if document else ""
    n_documents, classes, date = report.get("n_documents"), config.get("classes"), report.get("date")
    held = f"holds {'an' if kind == 'embedder' else 'a'} {kind}"
    held += f" of {n_documents:,} documents" if isinstance(n_documents, int) else ""
    held += f", {len(classes):,} classes" if isinstance(classes, list) else ""
    return held + (f", fitted on {date:.40}" if isinstance(date, str) else "")


def _folder_target(path: Path, kind: str) -> tuple[Path, dict[str, Any]]:
    """Return the folder to save to, links followed, and the config that was saved there before, empty for none."""
    if not os.path.lexists(path):
        check_writable(path)
        return path, {}
    if not path.exists():
        raise InputError(f"{path} is a link that leads nowhere. Create the folder it names, or choose another place.")
    if not path.is_dir():
        raise InputError(f"{path} exists and is not a folder. Choose another place.")
    folder = path.resolve()
    if all(entry.name.startswith(_NEW) for entry in folder.iterdir()):
        check_writable(folder)
        return folder, {}
    document: Any = None
    with suppress(ValueError):
        document = read_json(read_file(folder, CONFIG, MAX_CONFIG_BYTES))
    held = str(document.get("format", "")) if isinstance(document, dict) else ""
    if not held.startswith("wgcn-"):
        raise InputError(f"{path} is a folder with other files in it, not a saved {kind}. Choose another place.")
    if held != f"wgcn-{kind}":
        raise InputError(f"{path} holds {held!r:.60}, which 'wgcn-{kind}' must not replace. Choose another place.")
    version = document.get("version")
    if isinstance(version, int) and version > VERSION:
        raise InputError(f"{path} was saved by a newer wgcn and is not replaced. Update wgcn, or choose another place.")
    check_writable(folder)
    return folder, document


def _files_of(document: Any) -> frozenset[str]:
    """Return the names of the files that a config lists; none if it is not sound."""
    files = document.get("files") if isinstance(document, dict) else None
    return frozenset(files) if isinstance(files, dict) else frozenset()


def _put(folder: Path, contents: Mapping[str, bytes], is_locked: bool) -> None:
    """Put files into a folder, all or none of them: steps 1 to 3 above."""
    _move_pending(folder)
    for entry in list(folder.iterdir()):
        if is_locked and entry.name.startswith(_NEW):
            shutil.rmtree(entry)  # of a save that was killed
    for name in contents:
        if (folder / name).is_dir():
            raise InputError(f"{folder / name} is a folder, where a file is to be written. Choose another place.")
    new = folder / f"{_NEW}{secrets.token_hex(8)}"
    try:
        new.mkdir()
        for name, content in contents.items():
            there = folder / name
            with create_file(new / name, there.stat() if there.exists() and not there.is_symlink() else None) as file:
                file.write(content)
        sync_folder(new)
        new.rename(folder / _PENDING)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    sync_folder(folder)
    _move_pending(folder)


def _move_pending(folder: Path) -> None:
    """Move the files of a pending version into their folder, the config last."""
    pending = folder / _PENDING
    if not pending.is_dir():
        return
    new = _listed(pending)
    for name in (_listed(folder) - new) & SESSION if new else ():
        (folder / name).unlink(missing_ok=True)
    for file in sorted(pending.iterdir(), key=lambda file: file.name == CONFIG):
        file.replace(folder / file.name)
    sync_folder(folder)
    pending.rmdir()


def _listed(folder: Path) -> frozenset[str]:
    """Return the names of the files that the config of a folder lists; none if there is no sound one."""
    try:
        return _files_of(read_json(read_whole(folder / CONFIG, MAX_CONFIG_BYTES)))
    except (OSError, ValueError):
        return frozenset()


def check_keys(path: Path, where: str, given: Mapping[str, Any], schema: Schema) -> None:
    """Raise a StoreError unless the keys are those of a schema, and the values of its types."""
    if given.keys() != schema.keys():
        extra, missing = sorted(given.keys() - schema.keys()), sorted(schema.keys() - given.keys())
        raise StoreError(f"{path}: {where} has unknown keys {extra!r:.200} or lacks {missing!r:.200}. Update wgcn?")
    for key, kind in schema.items():
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if type(given[key]) not in kinds:  # bool is a subclass of int in Python
            raise StoreError(f"{path}: {key!r} in {where} is {given[key]!r:.60}, which is of the wrong type.")


def _digest(document: Mapping[str, Any]) -> str:
    """Return the digest of the config, which holds the digests of all other files."""
    covered, digest = {key: value for key, value in document.items() if key != "digest"}, hashlib.sha256()
    for part in json.JSONEncoder(sort_keys=True, separators=(",", ":")).iterencode(covered):
        digest.update(part.encode())
    return digest.hexdigest()


def read_file(folder: Path, name: str, limit: int | None = None) -> bytes:
    """Read a file of a folder, of the pending version if there is one."""
    try:
        with suppress(FileNotFoundError):
            return read_whole(folder / _PENDING / name, limit)
        return read_whole(folder / name, limit)
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"{folder / name} cannot be read: {reason}. Save or fetch the folder again.") from error
