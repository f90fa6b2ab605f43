"""Shards: the files that a corpus is spread over, read row by row."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wgcn.base.errors import InputError, WGCNWarning
from wgcn.io.read import read_labelled, read_texts
from wgcn.io.source import explained

Label = str | list[str] | None

_SAMPLES, _SAMPLE_BYTES = 16, 1 << 16  # of a file, spread over it: enough to know it again


@dataclass(frozen=True)
class Shard:
    """A file of texts, each with a label or none.

    Parameters
    ----------
    path : Path
        As for `wgcn.io.read.read_rows`, but not standard input, which cannot be read twice.
    reading : dict
        How it is read: the parameters of `read_texts`.
    label_column : str or int, optional
        The column with the labels; by default the texts have none.
    separator : str, optional
        Between the labels of a text, if it may have several.
    missing : str or collection of str, optional
        Labels that stand for none.
    """

    path: Path
    reading: Mapping[str, Any] = field(default_factory=dict)
    label_column: str | int | None = None
    separator: str | None = None
    missing: str | Collection[str] | None = None

    def rows(self) -> Iterator[tuple[str, Label]]:
        """Open the file, and yield its texts with their labels."""
        if self.label_column is None:
            return ((text, None) for text in read_texts(self.path, **self.reading))
        return read_labelled(
            self.path,
            label_column=self.label_column,
            separator=self.separator,
            missing=self.missing,
            **self.reading,
        )

    def identity(self) -> dict[str, Any]:
        """Return what the file is known by: name, size, time of change, and a digest of 16 parts of 64 KiB.

        A file that was changed without any of these changing is taken for the same.
        """
        with explained(self.path), self.path.open("rb") as file:
            there = self.path.stat()
            digest = hashlib.sha256()
            step = max(there.st_size - _SAMPLE_BYTES, 0) / (_SAMPLES - 1)
            for place in sorted({round(step * i) for i in range(_SAMPLES)}):
                file.seek(place)
                digest.update(file.read(_SAMPLE_BYTES))
        size, changed = there.st_size, there.st_mtime_ns
        return {"path": str(self.path.absolute()), "size": size, "mtime_ns": changed, "sample": digest.hexdigest()}


def find_shards(
    paths: Iterable[str | Path],
    reading: Mapping[str, Any] | None = None,
    *,
    label_column: str | int | None = None,
    separator: str | None = None,
    missing: str | Collection[str] | None = None,
) -> list[Shard]:
    """Return the shards of a corpus; each is opened, so that what is wrong with its head or columns is said at once."""
    shards = [Shard(Path(path), dict(reading or {}), label_column, separator, missing) for path in paths]
    if not shards:
        raise InputError("There are no files to read. Name at least one.")
    places = set[str]()
    for shard in shards:
        if (place := os.path.realpath(shard.path)) in places:
            raise InputError(f"{shard.path} is given twice, so its texts would count twice. Name it once.")
        places.add(place)
    for shard in shards:
        if str(shard.path) == "-" or shard.path.is_fifo() or shard.path.is_char_device():
            name = "Standard input" if str(shard.path) == "-" else shard.path
            raise InputError(f"{name} cannot be read out of core, since it is read twice. Write it to a file.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WGCNWarning)  # they come when the file is read
            rows = shard.rows()
            if label_column is not None:
                next(rows, None)  # a labelled file is opened when the first row is asked for
            getattr(rows, "close", lambda: None)()
    return shards


def check_unchanged(shards: Sequence[Shard], identities: Sequence[Mapping[str, Any]]) -> None:
    """Raise an InputError if a file, which was read since, has not the size and the time of change that it had."""
    for shard, before in zip(shards, identities, strict=True):
        with explained(shard.path):
            there = shard.path.stat()
        if (there.st_size, there.st_mtime_ns) != (before["size"], before["mtime_ns"]):
            raise InputError(
                f"{shard.path} changed while it was read. When nothing writes to it any more, begin anew, with "
                "--restart, or remove the work folder first."
            )
