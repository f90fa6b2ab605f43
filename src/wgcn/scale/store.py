"""The work folder of a build: what was asked, what is done, and the files in between.

Every file takes its place whole. A task that is done leaves a small file in `done/`, with the sizes and digests of what
it wrote, with its result, and with a digest of this record, so that no file grows with the number of tasks. A build
that was killed goes on from there: it repeats only the tasks that were under way, and those whose record or files are
not as they were written.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt
from filelock import FileLock, Timeout

from wgcn.base.errors import InputError, StoreError
from wgcn.base.files import open_whole, read_whole, sync_folder, writing

_BUILD, _DONE, _FILES, _LOCK = "build.json", "done", "files", "wgcn-build.lock"  # which no other folder has
_FORMAT = "wgcn-build-2"
_RESULT = "result"  # the last task
_BLOCK = 1 << 24
_MOST_OF_RECORD = 1 << 26  # bytes; the largest are those of fits, with their history
_UNREADABLE = OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError  # what a damaged record leads to

Json = dict[str, Any]
Result = TypeVar("Result")
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class WorkFolder:
    """A folder of files of tasks. Workers share it, and it can be sent to them."""

    path: Path
    build: str = ""  # key of what was asked

    def once(self, task: str, kind: type[Result], make: Callable[[Outputs], Result]) -> Result:
        """Return the result of a task, a dataclass that JSON can hold: make it unless the task is done."""
        done = self.result(task)
        if done is None:
            outputs = Outputs(self, task)
            done = outputs.finish(**asdict(make(outputs)))  # type: ignore[call-overload]
        return kind(**done)

    def result(self, task: str) -> Json | None:
        """Return the result of a task if it is done, and what it wrote is there as it was written."""
        with suppress(*_UNREADABLE):
            document = json.loads(read_whole(self.path / _DONE / f"{task}.json", _MOST_OF_RECORD))
            outputs, result = document["outputs"], document["result"]
            if document["digest"] == _record_digest(task, outputs, result) and all(
                self._digest(name, size) == digest for name, (size, digest) in outputs.items()
            ):
                return dict(result)
        return None

    def read(self, name: str, dtype: npt.DTypeLike, first: int = 0, count: int = -1) -> Array:
        """Return some numbers of a file, from the place `first` on; all by default."""
        size = np.dtype(dtype).itemsize
        with self._opened(name) as file:
            found = np.fromfile(file, dtype, count, offset=first * size)
            if len(found) < count or (count < 0 and os.fstat(file.fileno()).st_size % size):
                raise OSError("it was cut")
            return found

    def mapped(self, name: str, dtype: npt.DTypeLike) -> Array:
        """Return all numbers of a file, of which only those that are looked at are read."""
        with self._opened(name) as file:
            return np.memmap(file, dtype, "r") if os.fstat(file.fileno()).st_size else np.empty(0, dtype)

    def read_spans(self, name: str, starts: Sequence[int], ends: Sequence[int]) -> bytes:
        """Return the bytes of some spans of a file, one after another."""
        with self._opened(name) as file:
            return b"".join(file.read(end - file.seek(start)) for start, end in zip(starts, ends, strict=True))

    @contextmanager
    def scratch(self, name: str) -> Iterator[Path]:
        """Give an empty folder for the time of a fit."""
        path = self.file(f"scratch-{name}")
        with writing(path):
            remove(path)
            path.mkdir()
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def size(self) -> int:
        """Return the number of bytes of all files."""
        return sum(path.stat().st_size for path in self.path.rglob("*") if path.is_file())

    def file(self, name: str) -> Path:
        """Return the path of a file of a task."""
        return self.path / _FILES / name

    @contextmanager
    def _opened(self, name: str) -> Iterator[BinaryIO]:
        """Open a file of a task that is done; if that fails, it has changed since."""
        try:
            with _open_plain(self.file(name)) as file:
                yield file
        except (OSError, ValueError) as error:
            raise StoreError(
                f"{self.file(name)} cannot be read ({error}). It was whole when this build began to use it. Repeat "
                "the command: what is damaged is made again."
            ) from error

    def _digest(self, name: str, size: int) -> str | None:
        digest = hashlib.sha256()
        with _open_plain(self.file(name)) as file:
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

    def save(self, what: str, *arrays: Array | bytes) -> None:
        """Write a file of arrays, one after another; its name is that of the task with `what` as its ending."""
        self.save_all(what, arrays)

    def save_all(self, what: str, arrays: Iterable[Array | bytes]) -> None:
        """Write a file of arrays as they come."""
        name, size, digest = f"{self.task}.{what}", 0, hashlib.sha256()
        _make_room(self.work.file(name))
        with open_whole(self.work.file(name)) as file:
            for array in arrays:
                flat = array if isinstance(array, bytes) else np.ascontiguousarray(array).reshape(-1).data
                data = memoryview(flat).cast("B")
                file.write(data)
                digest.update(data)
                size += len(data)
        self._files[name] = size, digest.hexdigest()

    def finish(self, **result: object) -> Json:
        """Write down that the task is done, with a result that JSON can hold, and return it as JSON has it."""
        sync_folder(self.work.path / _FILES)
        record, digest = self.work.path / _DONE / f"{self.task}.json", _record_digest(self.task, self._files, result)
        document = json.dumps({"outputs": self._files, "result": result, "digest": digest})
        _make_room(record)
        with open_whole(record) as file:
            file.write(document.encode())
        sync_folder(self.work.path / _DONE)
        return dict(json.loads(document)["result"])


@contextmanager
def open_work(
    path: Path, settings: Mapping[str, object], inputs: Sequence[Json], *, restart: bool = False
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
    with _locked(path):
        with writing(path):
            work = WorkFolder(path, key_of(asked))
            for name in (_DONE, _FILES):
                if (path / name).is_symlink():  # what it leads to may be anything, and would be removed
                    raise InputError(f"{path / name} is a link. Choose another place: --work DIR.")
                (path / name).mkdir(exist_ok=True)
            if not restart:
                _check_same(path, asked)
            is_known = os.path.lexists(path / _BUILD) or (work.result(_RESULT) or {}).get("build") == work.build
            if restart or not is_known:
                _clear(path)
                with open_whole(path / _BUILD) as file:
                    file.write((json.dumps(asked, indent=1) + "\n").encode())
            for folder in (path, path / _DONE, path / _FILES):
                for entry in folder.glob(".wgcn-*"):  # of writers that were killed
                    remove(entry)
        try:
            yield work
        except BaseException:
            with suppress(OSError, InputError):
                if not any((path / _DONE).iterdir()):  # nothing to go on from
                    remove_work(work)
            raise


def end_work(work: WorkFolder, digest: str) -> None:
    """Write down that the result, which has this digest, is saved: from here on, nothing else is needed.

    The record says which build it is of: it is the last that is removed.
    """
    Outputs(work, _RESULT).finish(digest=digest, build=work.build)


def is_ended(work: WorkFolder, result: Path) -> bool:
    """Whether the result of the build is saved in a folder, so that only the work folder is left to be removed."""
    with suppress(*_UNREADABLE):
        digest = json.loads(read_whole(result / "config.json", _MOST_OF_RECORD))["digest"]
        return bool((work.result(_RESULT) or {}).get("digest") == digest)
    return False


def remove_work(work: WorkFolder) -> None:
    """Remove a work folder after its build. What else was put there stays."""
    record = work.path / _DONE / f"{_RESULT}.json"
    with writing(work.path):
        for entry in (*(work.path / _FILES).iterdir(), *(work.path / _DONE).iterdir()):
            if entry != record:
                remove(entry)
        _clear(work.path)  # what says that the build has ended goes last, at once
        for name in (_DONE, _FILES):
            (work.path / name).rmdir()
        (work.path / _LOCK).unlink(missing_ok=True)
    with suppress(OSError):
        work.path.rmdir()


def key_of(*parameters: object) -> str:
    """Return a short name for parameters that JSON can hold, to tell tasks with others apart."""
    return hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()[:12]


def _check_same(path: Path, asked: Json) -> None:
    """Raise an InputError if the build in a folder is another one, which names what is different."""
    file = path / _BUILD
    if not os.path.lexists(file):
        return
    is_option = asked["settings"].get("result") != "predictions"  # there is no --restart for these
    advice = f"{'Start again with --restart, or remove' if is_option else 'Remove'} that folder."
    try:
        before = json.loads(read_whole(file, _MOST_OF_RECORD + 4 * len(json.dumps(asked))))
        changed = [key for key in asked if before[key] != asked[key]]
        inputs = {str(each["path"]): each for each in before["inputs"]}
        settings = [key for key, value in asked["settings"].items() if before["settings"].get(key) != value]
    except _UNREADABLE as error:
        raise InputError(f"{file} is damaged ({error!r}). {advice}") from error
    if not changed:
        return
    if changed == ["inputs"]:
        what = [each["path"] for each in asked["inputs"] if inputs.pop(each["path"], None) != each]
        what = [*what, *inputs] or ["their order"]  # those that are left are no longer given
        raise InputError(
            f"The files are not those that the build in {path} began with: {', '.join(what[:3])} changed. {advice}"
        )
    raise InputError(
        f"The build in {path} began with other settings ({', '.join(settings) or 'format'}). Repeat it as it was. "
        f"Otherwise: {advice[0].lower()}{advice[1:]}"
    )


def _clear(path: Path) -> None:
    remove(path / _BUILD)  # first: without it, nothing here counts but that a build has ended
    for folder in (_FILES, _DONE):
        for entry in (path / folder).iterdir():
            remove(entry)


def remove(path: Path) -> None:
    """Remove whatever is there; of a link, not what it leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _make_room(path: Path) -> None:
    """Remove what is no plain file that can be written: a file is only written where its task is not done."""
    with writing(path):
        if os.path.lexists(path) and not (stat.S_ISREG(path.lstat().st_mode) and os.access(path, os.W_OK)):
            remove(path)


@contextmanager
def _open_plain(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading; anything else, such as a pipe that nobody writes to, is an OSError."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it is not a plain file")
        yield file


def _record_digest(task: str, outputs: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """Return what tells a record that was changed, or that is of another task."""
    return hashlib.sha256(json.dumps([task, outputs, result], sort_keys=True).encode()).hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other builds out of a folder, where its file system can do that; the lock ends with the process."""
    lock = FileLock(path / _LOCK)
    with writing(path):
        try:
            lock.acquire(timeout=0)
        except Timeout:
            message = f"Another build is at work in {path}. Wait for it, or choose another place: --work DIR."
            raise InputError(message) from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
                raise
    try:
        yield
    finally:
        lock.release()
