"""Sources of the files of a data set: a folder or an archive on this machine, or the network.

Every source returns the content of files by name. An archive is read, never extracted.
"""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Protocol

from wgcn.base.errors import InputError
from wgcn_paper.datasets.download import Report, download

GITHUB = "https://raw.githubusercontent.com"
TEXT_GCN = "yao8839836/text_gcn/5fa0c35dbe09453a8f724c3f3eb8b6f172deb18c"
PLANETOID = "kimiyoung/planetoid/master"
NLTK_DATA = "nltk/nltk_data/gh-pages"
MAX_MEMBER_BYTES = 2**28
MAX_ARCHIVE_BYTES = 2**33  # of all members of a .tar archive together
MAX_MEMBERS = 10**6


class Source(Protocol):
    """A place that has files by name."""

    def read(self, names: tuple[str, ...]) -> dict[str, bytes] | None:
        """Return the content of the files, or None if the source does not have all of them."""
        ...


def open_source(path: Path) -> Source:
    """Return a folder or an archive as a source."""
    if path.is_dir():
        return Folder(path)
    if not path.is_file():
        raise InputError(f"There is no folder or archive {path}. Check the path.")
    return Archive(path)


class Folder:
    """A folder in the layout of this package, or a checkout of a repository."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}"

    def read(self, names: tuple[str, ...]) -> dict[str, bytes] | None:
        """Return the content of the files, or None if the source does not have all of them."""
        if not all((self.path / name).is_file() for name in names):
            return None
        found = {}
        for name in names:
            try:
                with (self.path / name).open("rb") as file:
                    found[name] = _read_limited(file, f"{self.path / name}")
            except OSError as error:
                raise InputError(f"{self.path / name} cannot be read: {error.strerror or error}.") from error
        return found


class Archive:
    """A .zip file or a .tar file, compressed or not, of a folder.

    A member is found by its exact name, with or without one top folder that holds all members. It must be a plain
    file: a link is refused, whatever its target. Other members are ignored.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}"

    def read(self, names: tuple[str, ...]) -> dict[str, bytes] | None:
        """Return the content of the files, or None if the source does not have all of them."""
        try:
            if zipfile.is_zipfile(self.path):
                with zipfile.ZipFile(self.path) as archive:
                    return self._read_zip(archive, names)
            with tarfile.open(self.path) as tar:
                return self._read_tar(tar, names)
        except InputError:
            raise
        except Exception as error:  # whatever the damage, the message is the same
            why = f"{error}".partition("\n")[0][:200] or type(error).__name__
            raise InputError(f"{self.path} cannot be read as a .zip or .tar.gz archive ({why}).") from error

    def _read_zip(self, archive: zipfile.ZipFile, names: tuple[str, ...]) -> dict[str, bytes] | None:
        members = {member.filename: member for member in archive.infolist()}
        chosen = _choose(list(members), names)
        if chosen is None:
            return None
        found = {}
        for name, member_name in chosen.items():
            member = members[member_name]
            kind = stat.S_IFMT(member.external_attr >> 16)
            self._check(member_name, kind in (0, stat.S_IFREG) and not member.is_dir(), member.file_size)
            with archive.open(member) as file:
                found[name] = _read_limited(file, f"{self.path}: {member_name}")
        return found

    def _read_tar(self, archive: tarfile.TarFile, names: tuple[str, ...]) -> dict[str, bytes] | None:
        members: dict[str, tarfile.TarInfo] = {}
        held = 0
        for member in archive:
            held += member.size
            if held > MAX_ARCHIVE_BYTES or len(members) >= MAX_MEMBERS:
                raise InputError(f"{self.path} holds more than {MAX_ARCHIVE_BYTES:,} bytes or {MAX_MEMBERS:,} members.")
            members[member.name] = member
        chosen = _choose(list(members), names)
        if chosen is None:
            return None
        found = {}
        # In the order in which they are stored, so that a compressed archive is not read from its start each time.
        for name, member_name in sorted(chosen.items(), key=lambda pair: members[pair[1]].offset):
            member = members[member_name]
            self._check(member_name, member.isreg() and not member.issparse(), member.size)
            file = archive.extractfile(member)
            assert file is not None
            with file:
                found[name] = _read_limited(file, f"{self.path}: {member_name}")
        return found

    def _check(self, name: str, plain: bool, size: int) -> None:
        if not plain:
            raise InputError(f"{self.path}: {name} is not a plain file but a link or a special file, which is refused.")
        if size > MAX_MEMBER_BYTES:
            raise InputError(f"{self.path}: {name} has {size:,} bytes; at most {MAX_MEMBER_BYTES:,} are read.")


class Repository:
    """A repository on GitHub, of which single files are downloaded.

    `base` is its owner, name and version; `digests` has the SHA-256 of the files that are pinned. Downloads are kept in
    `folder`, which its owner removes.
    """

    def __init__(self, base: str, folder: Path, digests: Mapping[str, str], report: Report | None) -> None:
        self.base = f"{(os.environ.get('WGCN_MIRROR') or GITHUB).rstrip('/')}/{base}"
        self.folder = folder
        self.digests = digests
        self.report = report

    def __str__(self) -> str:
        return self.base

    def read(self, names: tuple[str, ...]) -> dict[str, bytes]:
        """Download files and return their content."""
        download(self.base, {name: self.digests.get(name) for name in names}, self.folder, self.report)
        found = {}
        for name in names:
            with (self.folder / name).open("rb") as file:
                found[name] = _read_limited(file, f"{self.base}/{name}")
        return found


def read_member(path: Path, name: str) -> bytes:
    """Return the content of one member of an archive."""
    found = Archive(path).read((name,))
    if found is None:
        raise InputError(f"{path} has no member {name}.")
    return found[name]


def _choose(present: list[str], names: tuple[str, ...]) -> dict[str, str] | None:
    """Return the member for each name, or None if a name has no member."""
    known = set(present)
    tops = {member.partition("/")[0] for member in present}
    prefixes = [""]
    if len(tops) == 1 and not tops & {"", ".."}:
        prefixes.append(f"{tops.pop()}/")
    for prefix in prefixes:
        if all(f"{prefix}{name}" in known for name in names):
            return {name: f"{prefix}{name}" for name in names}
    return None


def _read_limited(file: IO[bytes], name: str) -> bytes:
    data = file.read(MAX_MEMBER_BYTES + 1)
    if len(data) > MAX_MEMBER_BYTES:
        raise InputError(f"{name} has more than {MAX_MEMBER_BYTES:,} bytes, which are the most that are read.")
    return data
