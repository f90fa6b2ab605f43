"""Arrays of bounded size: their types, rows in batches, columns in blocks, and a word before memory is short.

Needs numpy alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError

BATCH_VALUES = 1 << 24  # values of documents by classes at a time: 64 MB in single precision
_MOST_OF_MEMORY = 0.5  # that a model may take
WIDE_BYTES = 1 << 28  # bytes that labels of one width, that of the longest, may take
LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container

Floats = npt.NDArray[Any]  # single precision, or double where a model was fitted in it
Ints = npt.NDArray[Any]


def row_batches(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Cut rows into batches of a bounded number of values; there is at least one, and no row is cut."""
    size = max(BATCH_VALUES // max(n_columns, 1), 1)
    for begin in range(0, max(n_rows, 1), size):
        yield slice(begin, min(begin + size, n_rows))


def column_blocks(n_columns: int, bytes_per_column: int, limit: int) -> list[slice]:
    """Cut columns into about equal blocks, none of which takes more than a number of bytes unless it is one column."""
    most = max(limit // max(bytes_per_column, 1), 1)
    edges = np.linspace(0, n_columns, -(-n_columns // most) + 1).round().astype(int).tolist()
    return [slice(begin, end) for begin, end in pairwise(edges)]


class BlockArrays:
    """Arrays whose columns (of the last axis) come in blocks. An only block is the array itself."""

    def __init__(self, n_columns: int) -> None:
        self.arrays: dict[str, npt.NDArray[Any]] = {}
        self._n_columns = n_columns

    def put(self, columns: slice, **blocks: npt.NDArray[Any]) -> None:
        """Take a block of each array; one without columns stays without."""
        for name, block in blocks.items():
            if block.shape[-1] in (0, self._n_columns):
                self.arrays[name] = block
                continue
            if name not in self.arrays:
                self.arrays[name] = np.empty((*block.shape[:-1], self._n_columns), block.dtype)
            self.arrays[name][..., columns] = block


def machine_memory(limit_files: Iterable[str] = LIMIT_FILES) -> int:
    """Return the bytes of memory that this machine, or this container, has; a large number where nothing tells."""
    found = [1 << 62]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in map(Path, limit_files):
        if path.is_file() and (limit := path.read_text().strip()).isdecimal():
            found.append(int(limit))
    return min(size for size in found if size > 0)


def check_memory(what: str, n_bytes: int, advice: str) -> None:
    """Raise an InputError if something would take more than half of the memory."""
    memory = machine_memory()
    if n_bytes > _MOST_OF_MEMORY * memory:
        raise InputError(
            f"{what} would take {n_bytes / 1e9:,.1f} GB, more than half of the {memory / 1e9:,.1f} GB of this machine. "
            f"{advice}"
        )


def check_table(n_words: int, n_subwords: int, n_classes: int, n_bytes: int) -> None:
    """Raise an InputError if a model of so many words, or its subwords, is too large; `n_bytes` is that of a number."""
    check_memory(
        f"A model of {n_words:,} words and {n_subwords:,} subwords by {n_classes:,} classes",
        (2 * n_words + n_subwords) * n_classes * n_bytes,  # each word once with and once without its neighbours
        "Use fewer classes, a larger min_count, ngram_range=(1, 1) or subwords=0.",
    )


def labels_array(labels: Sequence[Any]) -> npt.NDArray[Any]:
    """Return labels as an array; of objects where strings, all of the width of the longest, would take too much."""
    longest = max((len(label) for label in labels if isinstance(label, str)), default=0)
    return np.array(labels) if 4 * longest * len(labels) <= WIDE_BYTES else np.array(labels, object)


def row_blocks(offsets: Ints, n_terms: int) -> Iterator[tuple[int, int]]:
    """Cut rows into blocks of at most `n_terms` entries, or of one row that has more."""
    first, n_rows = 0, len(offsets) - 1
    while first < n_rows:
        last = int(np.searchsorted(offsets, offsets[first] + n_terms, side="right")) - 1
        last = min(max(last, first + 1), n_rows)
        yield first, last
        first = last
