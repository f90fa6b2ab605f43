"""Files that are written whole or not at all, and locks. Links, modes, pipes and device nodes stay as they are.

Every file that the package writes goes through `write_file` or `open_whole`, or is part of a saved folder
(`wgcn.store.folder`). A folder is locked itself, without a library: the file that `filelock` needs would stay in the
folders of users, and a reader could not make it where it may only read.
"""

import errno
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import date
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO

from wgcn.base.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_TEMPORARY, _ABANDONED_SECONDS = ".wgcn-", 60


def write_file(path: str | Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file, whole or not at all, as `open_whole` does; `write` is given a file that it may seek in."""
    with open_whole(path) as file:
        if file.seekable():
            write(file)
        else:
            with tempfile.TemporaryFile() as copy:
                write(copy)
                copy.seek(0)
                shutil.copyfileobj(copy, file)


@contextmanager
def open_whole(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its place, and keeps its mode, only when all went well.

    What is not a plain file, such as a named pipe, /dev/null or /dev/stdout, is written to directly.
    """
    path = Path(path)
    with writing(path):
        place, there = file_target(path)
        if there is not None and (place.is_symlink() or not stat.S_ISREG(there.st_mode)):
            with os.fdopen(os.open(place, os.O_WRONLY | os.O_APPEND), "wb") as file:
                yield file
            return
        with made_folder(place.parent), ExitStack() as owned:
            _remove_abandoned(place.parent)
            temporary = place.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
            try:
                with create_file(temporary, there) as file:
                    owned.enter_context(locked_folder(temporary))
                    yield file
                temporary.replace(place)
            finally:
                temporary.unlink(missing_ok=True)


def _remove_abandoned(folder: Path) -> None:
    """Remove temporary files of processes that were killed: no one holds their locks, nor has just made them."""
    for path in folder.glob(f"{_TEMPORARY}{'[0-9a-f]' * 16}") if fcntl else ():
        with suppress(OSError), locked_folder(path, wait=False) as is_locked:
            if is_locked and time.time() - path.stat().st_mtime > _ABANDONED_SECONDS and path.is_file():
                path.unlink()


def read_whole(path: Path, limit: int | None = None) -> bytes:
    """Return the content of a plain file, or of one that a link names; anything else, such as a pipe, is an OSError."""
    is_plain = stat.S_ISREG(path.stat().st_mode)  # a device is not even opened
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
        there = os.fstat(file.fileno())
        if not (is_plain and stat.S_ISREG(there.st_mode)):
            raise OSError(errno.EINVAL, "it is not a plain file")
        if limit is not None and there.st_size > limit:
            raise OSError(errno.EFBIG, f"it is larger than {limit:,} bytes, which no such file is")
        return file.read(there.st_size)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system says about a place into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error


def file_target(path: Path) -> tuple[Path, os.stat_result | None]:
    """Return where to write a file, links followed, and what is there."""
    try:
        there = path.stat()
    except FileNotFoundError:
        there = None
    place = path.absolute()
    # Links such as /dev/stdout stand for an open file: what they name need not be the path of anything.
    while place.is_symlink() and place.parts[1:2] != ("proc",) and place.parts[1:3] != ("dev", "fd"):
        place = place.parent / place.readlink()
    if there is not None:
        if stat.S_ISDIR(there.st_mode):
            raise InputError(f"{path} is a folder; a file is to be written. Choose another place.")
        if stat.S_IFMT(there.st_mode) not in (stat.S_IFREG, stat.S_IFIFO, stat.S_IFCHR):
            raise InputError(f"{path} is neither a file nor a pipe. Choose another place.")
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if there is None or (stat.S_ISREG(there.st_mode) and not place.is_symlink()):
        check_writable(place.parent)
    return place, there


def check_replaced(path: Path, held: str = "", *, overwrite: bool, inputs: Iterable[str | Path]) -> None:
    """Raise an InputError if what is there, links followed, is an input or, unless `overwrite`, `held` something.

    Pipes and devices are never replaced. The input "-" is standard input, which may be a file too.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        there = path.stat()
        if not (stat.S_ISREG(there.st_mode) or stat.S_ISDIR(there.st_mode)):
            return
        for each in inputs:
            with suppress(OSError):
                if os.path.samestat(there, os.fstat(0) if str(each) == "-" else os.stat(each)):  # noqa: PTH116
                    raise InputError(
                        f"{path} is an input of this command, which it would replace. Choose another place."
                    )
        if stat.S_ISREG(there.st_mode) and there.st_size:
            held = f"is there already, {there.st_size:,} bytes from {date.fromtimestamp(there.st_mtime)}"
        if held and not overwrite:
            raise InputError(f"{path} {held}. Give --overwrite to replace it, or choose another place.")


def check_writable(folder: Path) -> None:
    """Raise an OSError unless a file can be made in a folder, or in the first one above it that is there."""
    folder = folder.absolute()
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"{folder} is not a folder")
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"no file can be made in {folder} ({reason})") from error


@contextmanager
def create_file(path: Path, like: os.stat_result | None) -> Iterator[BinaryIO]:
    """Make a file, with the mode of another, and write it."""
    mode = 0o666 if like is None else 0o600
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        if like is not None:
            path.chmod(stat.S_IMODE(like.st_mode))
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; if the work fails, those that were made go again."""
    missing = list(takewhile(lambda each: not each.exists(), (folder, *folder.parents)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        with suppress(OSError):
            for each in missing:
                each.rmdir()
        raise


@contextmanager
def locked_folder(path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
    """Let one process at a time save to a folder or a file, or several read it; yield whether it could be locked.

    The lock ends with the process at the latest. Not all systems, and not all file systems, have locks.
    """
    is_locked = False
    with ExitStack() as held:
        with suppress(OSError):
            if fcntl:
                handle = held.enter_context(_opened(path))
                fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
                is_locked = True
        yield is_locked


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last, where the system can do that."""
    with suppress(OSError), _opened(folder) as handle:
        os.fsync(handle)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a folder or a file for its handle; opening a pipe does not wait."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        yield handle
    finally:
        os.close(handle)
