"""The work folder of a build: what was asked, what is done, and the files in between.

Every file takes its place whole. A task that is done leaves a small file in `done/`, with the sizes and digests of what
it wrote and with its result, so that no file grows with the number of tasks. A build that was killed goes on from
there: it repeats only the tasks that were under way.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.errors import InputError, StoreError
from wgcn.files import open_whole, sync_folder, writing

__all__ = ["Outputs", "WorkFolder", "end_work", "is_ended", "key_of", "open_work", "remove_work"]

_BUILD, _DONE, _FILES, _LOCK = "build.json", "done", "files", "wgcn-build.lock"  # which no other folder has
_FORMAT = "wgcn-build-1"
_RESULT = "result"  # the last task
_BLOCK = 1 << 24


@dataclass(frozen=True)
class WorkFolder:
    """A folder of files of tasks. Workers share it, and it can be sent to them."""

    path: Path

    def result(self, task: str) -> dict[str, Any] | None:
        """Return the result of a task if it is done, and what it wrote is there as it was written."""
        try:
            document = json.loads((self.path / _DONE / f"{task}.json").read_bytes())
            outputs, result = document["outputs"], document["result"]
            if all(self._digest(name, size) == digest for name, (size, digest) in outputs.items()):
                return dict(result)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def read(self, name: str, dtype: npt.DTypeLike, first: int = 0, count: int = -1) -> npt.NDArray[Any]:
        """Return some numbers of a file, from the place `first` on; all by default."""
        try:
            return np.fromfile(self._file(name), dtype, count, offset=first * np.dtype(dtype).itemsize)
        except OSError as error:
            raise StoreError(f"{self._file(name)} cannot be read ({error}). Start again with --restart.") from error

    def mapped(self, name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return all numbers of a file, of which only those that are looked at are read."""
        path = self._file(name)
        return np.memmap(path, dtype, "r") if path.stat().st_size else np.empty(0, dtype)

    def read_spans(self, name: str, starts: Sequence[int], ends: Sequence[int]) -> bytes:
        """Return the bytes of some spans of a file, one after another."""
        with self._file(name).open("rb") as file:
            return b"".join(file.read(end - file.seek(start)) for start, end in zip(starts, ends, strict=True))

    def remove(self, names: Sequence[str]) -> None:
        """Remove files that are no longer needed."""
        for name in names:
            self._file(name).unlink(missing_ok=True)

    def size(self) -> int:
        """Return the number of bytes of all files."""
        return sum(path.stat().st_size for path in self.path.rglob("*") if path.is_file())

    def _file(self, name: str) -> Path:
        return self.path / _FILES / name

    def _digest(self, name: str, size: int) -> str | None:
        digest = hashlib.sha256()
        with self._file(name).open("rb") as file:
            if os.fstat(file.fileno()).st_size != size:
                return None
            while block := file.read(_BLOCK):
                digest.update(block)
        return digest.hexdigest()


class Outputs:
    """What a task writes. It is done when `finish` is called, and not before."""

    def __init__(self, work: WorkFolder, task: str) -> None:
        self.work, self.task = work, task
        self._files: dict[str, tuple[int, str]] = {}

    def save(self, name: str, *parts: npt.NDArray[Any] | bytes) -> None:
        """Write a file of arrays, one after another."""
        self.save_all(name, parts)

    def save_all(self, name: str, parts: Iterable[npt.NDArray[Any] | bytes]) -> None:
        """Write a file of arrays as they come."""
        size, digest = 0, hashlib.sha256()
        with open_whole(self.work._file(name)) as file:
            for part in parts:
                flat: Any = part if isinstance(part, bytes) else np.ascontiguousarray(part).reshape(-1)
                data = memoryview(flat).cast("B")
                file.write(data)
                digest.update(data)
                size += len(data)
        self._files[name] = size, digest.hexdigest()

    def finish(self, **result: Any) -> dict[str, Any]:
        """Write down that the task is done, with a result that JSON can hold, and return it."""
        sync_folder(self.work.path / _FILES)
        document = {"outputs": self._files, "result": result}
        with open_whole(self.work.path / _DONE / f"{self.task}.json") as file:
            file.write(json.dumps(document).encode())
        sync_folder(self.work.path / _DONE)
        return result


@contextmanager
def open_work(
    path: Path, settings: Mapping[str, Any], inputs: Sequence[Mapping[str, Any]], *, restart: bool = False
) -> Iterator[WorkFolder]:
    """Use a folder for a build, alone: a new one, or one in which the same build was interrupted.

    `settings` are what was asked, and `inputs` are the identities of the files that are read, both as JSON has them. If
    they are not those of the earlier build, that is an error, unless it is to `restart`.
    """
    asked = json.loads(json.dumps({"format": _FORMAT, "settings": settings, "inputs": inputs}))
    with writing(path):
        if path.exists() and (not path.is_dir() or (any(path.iterdir()) and not (path / _LOCK).exists())):
            raise InputError(f"{path} is there and is no work folder. Choose another place: --work DIR.")
        path.mkdir(parents=True, exist_ok=True)
        lock = _lock(path)
    try:
        with writing(path):
            for name in (_DONE, _FILES):
                (path / name).mkdir(exist_ok=True)
            if not restart:
                _check_same(path, asked)
            is_known = (path / _BUILD).exists() or (WorkFolder(path).result(_RESULT) or {}).get("build") == key_of(
                asked
            )
            if restart or not is_known:
                _clear(path)
                with open_whole(path / _BUILD) as file:
                    file.write((json.dumps(asked, indent=1) + "\n").encode())
            for folder in (path, path / _DONE, path / _FILES):
                for entry in folder.glob(".wgcn-*"):  # of writers that were killed
                    entry.unlink(missing_ok=True)
        work = WorkFolder(path)
        try:
            yield work
        except BaseException:
            with suppress(OSError):
                if not any((path / _DONE).iterdir()):  # nothing to go on from
                    remove_work(work)
            raise
    finally:
        os.close(lock)


def end_work(work: WorkFolder, digest: str) -> None:
    """Write down that the result, which has this digest, is saved: from here on, nothing else is needed.

    The record says which build it is of: it is the last that is removed.
    """
    Outputs(work, _RESULT).finish(digest=digest, build=key_of(json.loads((work.path / _BUILD).read_bytes())))


def is_ended(work: WorkFolder, result: Path) -> bool:
    """Whether the result of the build is saved in a folder, so that only the work folder is left to be removed."""
    try:
        digest = json.loads((result / "config.json").read_bytes())["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool((work.result(_RESULT) or {}).get("digest") == digest)


def remove_work(work: WorkFolder) -> None:
    """Remove a work folder after its build. What else was put there stays."""
    record = work.path / _DONE / f"{_RESULT}.json"
    for entry in (*(work.path / _FILES).iterdir(), *(work.path / _DONE).iterdir()):
        if entry != record and not entry.is_dir():  # a fit that was killed has left folders
            entry.unlink()
    _clear(work.path)  # what says that the build has ended goes last, at once
    for name in (_DONE, _FILES):
        (work.path / name).rmdir()
    (work.path / _LOCK).unlink(missing_ok=True)
    with suppress(OSError):
        work.path.rmdir()


def key_of(*parameters: Any) -> str:
    """Return a short name for parameters that JSON can hold, to tell tasks with others apart."""
    return hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()[:12]


def _check_same(path: Path, asked: Mapping[str, Any]) -> None:
    file = path / _BUILD
    if not file.exists():
        return
    try:
        before = json.loads(file.read_bytes())
        changed = [key for key in asked if before[key] != asked[key]]
        inputs = {each["path"]: each for each in before["inputs"]}
        settings = [key for key, value in asked["settings"].items() if before["settings"].get(key) != value]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{file} is damaged ({error!r}). Start again with --restart.") from error
    if not changed:
        return
    if changed == ["inputs"]:
        what = [each["path"] for each in asked["inputs"] if inputs.pop(each["path"], None) != each]
        what = [*what, *inputs] or ["their order"]  # those that are left are no longer given
        raise InputError(
            f"The files are not those that the build in {path} began with: {', '.join(what[:3])} "
            "changed. Start again with --restart, or remove that folder."
        )
    raise InputError(
        f"The build in {path} began with other settings ({', '.join(settings) or 'format'}). Repeat it "
        "as it was, start again with --restart, or remove that folder."
    )


def _clear(path: Path) -> None:
    (path / _BUILD).unlink(missing_ok=True)  # first: without it, nothing here counts but that a build has ended
    for folder in (_FILES, _DONE):
        for entry in (path / folder).iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def _lock(path: Path) -> int:
    """Keep other builds out of a folder, where the system can do that; the lock ends with the process."""
    handle = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    with suppress(ImportError):  # Windows
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            message = f"Another build is at work in {path}. Wait for it, or choose another place: --work DIR."
            raise InputError(message) from None
        except OSError:  # some file systems have no locks
            pass
    return handle
