"""Pass 2: windows are counted chunk by chunk into sorted runs on disk, and runs are added up by ranges of rows.

A chunk is as many documents as memory allows, of any pieces. Its counts are exact, and counts of chunks add up, so the
result does not depend on how the documents are cut. The files of a run, in the work folder:

- `NAME.rows`: the rows of the upper triangle of #W(i, j), as bytes (`wgcn.scale.kernels`)
- `NAME.starts`: int64, where the bytes of each row begin, and the end
- `NAME.words`: int64, #W(i)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.base.arrays import row_blocks
from wgcn.graph.counts import Windows
from wgcn.scale.kernels import merge_rows, pack_rows
from wgcn.scale.store import Outputs, WorkFolder, key_of
from wgcn.scale.tokens import Piece
from wgcn.scale.vocabulary import Coding
from wgcn.text.tokenize import Offsets

Part = tuple[Piece, int, int]  # documents first, ..., last - 1 of a piece
Chunk = list[Part]

_FEW_TOKENS = 1 << 20  # a chunk for each worker is worth it from here on


@dataclass(frozen=True)
class Run:
    """Sorted counts of pairs on disk."""

    name: str  # of its files
    n_words: int  # of the vocabulary
    n_windows: int
    n_tokens: int

    def starts(self, work: WorkFolder, first: int = 0, last: int | None = None) -> Offsets:
        """Return where the bytes of the rows first, ..., last - 1 begin, and the end."""
        return work.read(f"{self.name}.starts", np.int64, first, (self.n_words if last is None else last) - first + 1)

    def word_windows(self, work: WorkFolder) -> Offsets:
        """Return #W(i) of all words."""
        return work.read(f"{self.name}.words", np.int64)


def cut_chunks(pieces: Sequence[Piece], work: WorkFolder, tokens: int, n_workers: int = 1) -> list[Chunk]:
    """Cut the documents of pieces into chunks of about equal size, of about so many tokens at most.

    There are as many for each worker, unless there is little text.
    """
    ends = np.cumsum([piece.n_tokens for piece in pieces])
    n_chunks = int(max(-(-ends[-1] // tokens), min(ends[-1] // _FEW_TOKENS, n_workers), 1))
    n_chunks = -(-n_chunks // n_workers) * n_workers if n_chunks > n_workers else n_chunks
    bounds = (ends[-1] * np.arange(1, n_chunks) // n_chunks).tolist()
    chunks: list[Chunk] = [[]]
    for piece, end in zip(pieces, ends.tolist(), strict=True):
        first, begin = 0, end - piece.n_tokens
        while bounds and bounds[0] < end:
            last = int(np.searchsorted(piece.offsets(work), bounds.pop(0) - begin))
            chunks[-1].append((piece, first, last))
            chunks.append([])
            first = last
        chunks[-1].append((piece, first, piece.n_documents))
    chunks = [[part for part in chunk if part[1] < part[2]] for chunk in chunks]
    return [chunk for chunk in chunks if chunk]


def count_chunk(chunk: Chunk, work: WorkFolder, coding: Coding, digest: str, n_words: int, window: int) -> Run:
    """Count the windows of a chunk into a run. `digest` is that of the coding."""
    name = f"run-{key_of(digest, window, [(piece.name, *part) for piece, *part in chunk])}"
    if (found := work.result(name)) is not None:
        return Run(**found)
    outputs = Outputs(work, name)
    ids, offsets = zip(*(coding.encode(work, *part) for part in chunk), strict=True)
    all_offsets = np.cumsum(np.concatenate([np.zeros(1, np.int64), *map(np.diff, offsets)]))
    windows = Windows(np.concatenate(ids), all_offsets, n_words, window)
    del ids, offsets
    scratch, word_windows = windows.scratch(), list[Offsets]()

    def rows() -> Iterator[Any]:
        for block in windows.blocks:
            of_words, *pairs = windows.count(block, 1, scratch)
            word_windows.append(of_words)
            yield pack_rows(*pairs)

    _save_rows(outputs, rows())
    outputs.save(f"{name}.words", *word_windows)
    run = Run(name, n_words, windows.n_windows, int(all_offsets[-1]))
    outputs.finish(**asdict(run))
    return run


def row_ranges(work: WorkFolder, runs: Sequence[Run], merged: int, least: int = 1) -> list[tuple[int, int]]:
    """Cut rows into ranges for which the runs have at most so many bytes in all, or one row; `least` of them."""
    starts = reduce(np.add, (run.starts(work) for run in runs))
    return list(row_blocks(starts, min(merged, int(starts[-1]) // least + 1)))


def read_rows(work: WorkFolder, runs: Sequence[Run], first: int, last: int) -> tuple[npt.NDArray[np.uint8], Offsets]:
    """Return the bytes of rows of several runs, and where each row begins, as `merge_rows` takes them."""
    starts = np.array([run.starts(work, first, last) for run in runs])  # (runs, rows + 1)
    sizes = starts[:, -1] - starts[:, 0]
    parts = [
        work.read(f"{run.name}.rows", np.uint8, int(own[0]), int(size))
        for run, own, size in zip(runs, starts, sizes, strict=True)
    ]
    starts += (np.cumsum(sizes) - sizes - starts[:, 0])[:, None]
    return np.concatenate(parts), starts


def merge_runs(runs: Sequence[Run], work: WorkFolder, merged: int) -> Run:
    """Add up runs into one, with at most so many bytes of them in memory."""
    name, n_words = f"run-{key_of([run.name for run in runs])}", runs[0].n_words
    if (found := work.result(name)) is not None:
        return Run(**found)
    outputs = Outputs(work, name)
    ranges = row_ranges(work, runs, merged)
    _save_rows(outputs, (pack_rows(*merge_rows(*read_rows(work, runs, *rows), n_words, 1)) for rows in ranges))
    outputs.save(f"{name}.words", reduce(np.add, (run.word_windows(work) for run in runs)))
    run = Run(name, n_words, sum(run.n_windows for run in runs), sum(run.n_tokens for run in runs))
    outputs.finish(**asdict(run))
    return run


def _save_rows(outputs: Outputs, packed: Iterable[tuple[npt.NDArray[np.uint8], Offsets]]) -> None:
    """Write bytes of rows as they come, and where the rows begin."""
    sizes = [np.zeros(1, np.int64)]

    def data() -> Iterator[npt.NDArray[np.uint8]]:
        for part, starts in packed:
            sizes.append(np.diff(starts))
            yield part

    outputs.save_all(f"{outputs.task}.rows", data())
    outputs.save(f"{outputs.task}.starts", np.cumsum(np.concatenate(sizes)))
