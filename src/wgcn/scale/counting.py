"""Windows counted out of core: chunks of documents become sorted runs of pair counts on disk, which are added up.

A chunk is as many documents as memory allows, of any pieces. Its counts are exact, and counts of chunks add up, so the
result does not depend on how the documents are cut. The files of a run, in the work folder:

- `NAME.rows`: the rows of the upper triangle of #W(i, j), as bytes: for each pair the gap to the column before it (in
  the first pair of a row, the column itself) and the count, both as numbers of seven bits per byte, the lowest first,
  where all bytes but the last have their highest bit set. Most pairs of a row take two or three bytes this way, instead
  of eight.
- `NAME.starts`: int64, where the bytes of each row begin, and the end
- `NAME.words`: int64, #W(i)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from wgcn.base.arrays import row_blocks
from wgcn.base.errors import InputError
from wgcn.base.progress import stage
from wgcn.base.threads import compiled
from wgcn.graph.counts import Windows, raised_limit, sampled_words
from wgcn.scale.corpus import Coding, Piece, Span
from wgcn.scale.store import Outputs, WorkFolder, key_of
from wgcn.scale.workers import Site
from wgcn.text.kernels import sort_words
from wgcn.text.tokenize import Offsets

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


def count_runs(pieces: Sequence[Piece], site: Site, n_words: int, coding: Coding, window: int) -> list[Run]:
    """Count the windows of all pieces, into at most as many runs as are merged at a time."""
    if window < 2:
        raise InputError(f"window must be at least 2 tokens, got {window}: a pair of words needs two places.")
    work, limits = site.work, site.limits
    with stage("Counting windows") as step:
        chunks = cut_chunks(pieces, work, limits.tokens, site.workers.n_workers)
        runs = site.watched(count_chunk, chunks, work, coding, coding.digest(), n_words, window)
        step.detail = f"{sum(run.n_tokens for run in runs):,} tokens in {len(runs):,} runs"
    while len(runs) > limits.fan_in:
        with stage("Merging runs", f"{len(runs):,} of them"):
            groups = np.array_split(np.arange(len(runs)), -(-len(runs) // limits.fan_in))
            runs = site.watched(merge_runs, [[runs[i] for i in group] for group in groups], work, limits.merged)
    return runs


def cut_chunks(pieces: Sequence[Piece], work: WorkFolder, tokens: int, n_workers: int = 1) -> list[list[Span]]:
    """Cut the documents of pieces into chunks of about equal size, of about so many tokens at most.

    There are as many for each worker, unless there is little text.
    """
    ends = np.cumsum([piece.n_tokens for piece in pieces])
    n_chunks = int(max(-(-ends[-1] // tokens), min(ends[-1] // _FEW_TOKENS, n_workers), 1))
    n_chunks = -(-n_chunks // n_workers) * n_workers if n_chunks > n_workers else n_chunks
    bounds = (ends[-1] * np.arange(1, n_chunks) // n_chunks).tolist()
    chunks = [list[Span]()]
    for piece, end in zip(pieces, ends.tolist(), strict=True):
        first, begin = 0, end - piece.n_tokens
        while bounds and bounds[0] < end:
            last = int(np.searchsorted(piece.offsets(work), bounds.pop(0) - begin))
            chunks[-1].append(Span(piece, first, last))
            chunks.append([])
            first = last
        chunks[-1].append(Span(piece, first, piece.n_documents))
    chunks = [[span for span in chunk if span.first < span.last] for chunk in chunks]
    return [chunk for chunk in chunks if chunk]


def count_chunk(chunk: Sequence[Span], work: WorkFolder, coding: Coding, digest: str, n_words: int, window: int) -> Run:
    """Count the windows of a chunk into a run. `digest` is that of the coding."""

    def count(outputs: Outputs) -> Run:
        ids, offsets = coding.encode(work, chunk)
        windows = Windows(ids, offsets, n_words, window)
        scratch, word_windows = windows.scratch(), list[Offsets]()

        def rows() -> Iterator[tuple[npt.NDArray[np.uint8], Offsets]]:
            for block in windows.blocks:
                of_words, *pairs = windows.count(block, 1, scratch)
                word_windows.append(of_words)
                yield pack_rows(*pairs)

        _save_rows(outputs, rows())
        outputs.save("words", *word_windows)
        return Run(outputs.task, n_words, windows.n_windows, len(ids))

    spans = [(span.piece.name, span.first, span.last) for span in chunk]
    return work.once(f"run-{key_of(digest, window, spans)}", Run, count)


def merge_runs(runs: Sequence[Run], work: WorkFolder, merged: int) -> Run:
    """Add up runs into one, with at most so many bytes of them in memory."""

    def merge(outputs: Outputs) -> Run:
        n_words, ranges = runs[0].n_words, row_ranges(work, runs, merged)
        _save_rows(outputs, (pack_rows(*merge_rows(*read_rows(work, runs, *rows), n_words, 1)) for rows in ranges))
        outputs.save("words", added([run.word_windows(work) for run in runs]))
        return Run(outputs.task, n_words, sum(run.n_windows for run in runs), sum(run.n_tokens for run in runs))

    return work.once(f"run-{key_of([run.name for run in runs])}", Run, merge)


def least_pairs(runs: Sequence[Run], site: Site, min_pairs: int, max_pairs: int | None) -> int:
    """Return how many windows a pair must share to be kept: more than asked where there would be too many pairs."""
    if max_pairs is None:
        return min_pairs
    work, sampled = site.work, np.array(sampled_words(runs[0].n_words), np.int64)
    sizes = added([np.diff(run.starts(work))[sampled] for run in runs])
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    groups = [sampled[first:last] for first, last in row_blocks(ends, site.limits.merged)]
    found = [(np.empty(0, np.int64),) * 2, *site.workers.map(_sampled_counts, groups, work, runs, min_pairs)]
    values, times = (np.concatenate(each) for each in zip(*found, strict=True))
    distinct, places = np.unique(values, return_inverse=True)
    return raised_limit(distinct, np.bincount(places, times, len(distinct)).astype(np.int64), min_pairs, max_pairs)


def _sampled_counts(rows: Offsets, work: WorkFolder, runs: Sequence[Run], min_pairs: int) -> tuple[Offsets, Offsets]:
    """Return the distinct counts of the pairs in some rows, and how many pairs have each."""
    data, all_starts, n = list[bytes](), [], 0
    for run in runs:
        starts = run.starts(work)
        begins, ends = starts[rows], starts[rows + 1]
        data.append(work.read_spans(f"{run.name}.rows", begins.tolist(), ends.tolist()))
        all_starts.append(n + np.concatenate([np.zeros(1, np.int64), np.cumsum(ends - begins)]))
        n += len(data[-1])
    together = np.frombuffer(b"".join(data), np.uint8).copy()
    counts = merge_rows(together, np.array(all_starts), runs[0].n_words, min_pairs)[2]
    values, times = np.unique(counts, return_counts=True)
    return values, times


def row_ranges(work: WorkFolder, runs: Sequence[Run], merged: int, least: int = 1) -> list[tuple[int, int]]:
    """Cut rows into ranges for which the runs have at most so many bytes in all, or one row; `least` of them."""
    starts = added([run.starts(work) for run in runs])
    return list(row_blocks(starts, min(merged, int(starts[-1]) // least + 1)))


def read_rows(work: WorkFolder, runs: Sequence[Run], first: int, last: int) -> tuple[npt.NDArray[np.uint8], Offsets]:
    """Return the bytes of rows of several runs, and where each row begins, as `merge_rows` takes them."""
    starts = np.array([run.starts(work, first, last) for run in runs])  # (runs, rows + 1)
    sizes = starts[:, -1] - starts[:, 0]
    data = [
        work.read(f"{run.name}.rows", np.uint8, int(own[0]), int(size))
        for run, own, size in zip(runs, starts, sizes, strict=True)
    ]
    starts += (np.cumsum(sizes) - sizes - starts[:, 0])[:, None]
    return np.concatenate(data), starts


def added(arrays: Sequence[Offsets]) -> Offsets:
    """Return the sum of counts of several runs."""
    return reduce(np.add, arrays)


def _save_rows(outputs: Outputs, packed: Iterable[tuple[npt.NDArray[np.uint8], Offsets]]) -> None:
    """Write bytes of rows as they come, and where the rows begin."""
    sizes = [np.zeros(1, np.int64)]

    def data() -> Iterator[npt.NDArray[np.uint8]]:
        for own, starts in packed:
            sizes.append(np.diff(starts))
            yield own

    outputs.save_all("rows", data())
    outputs.save("starts", np.cumsum(np.concatenate(sizes)))


@compiled
def pack_rows(indptr, columns, values):  # type: ignore[no-untyped-def]
    """Return rows, sorted by column, as bytes, and where the bytes of each row begin, and the end."""
    data, n = np.empty(4 * len(columns) + 32, np.uint8), 0
    starts = np.zeros(len(indptr), np.int64)
    for row in range(len(indptr) - 1):
        before = np.int64(0)
        for k in range(indptr[row], indptr[row + 1]):
            if n + 20 > len(data):
                data = np.concatenate((data[:n], np.empty(n // 2 + 20, np.uint8)))
            for number in (np.int64(columns[k]) - before, np.int64(values[k])):
                while number >= 128:
                    data[n] = number & 127 | 128
                    number >>= 7
                    n += 1
                data[n] = number
                n += 1
            before = np.int64(columns[k])
        starts[row + 1] = n
    return data[:n].copy(), starts


@compiled
def merge_rows(data, starts, n_words, min_count):  # type: ignore[no-untyped-def]
    """Add up rows of several runs, and leave out counts below `min_count`.

    `starts`, of shape (runs, rows + 1), says where the bytes of each row begin and end in `data`. Returns indptr,
    columns and values of sorted rows.
    """
    n_runs, n_rows = len(starts), starts.shape[1] - 1
    totals, touched = np.zeros(n_words, np.int64), np.empty(n_words + 1, np.int32)
    bitmap, summary = np.zeros((n_words >> 6) + 1, np.uint64), np.zeros((n_words >> 12) + 1, np.uint64)
    indptr = np.zeros(n_rows + 1, np.int64)
    columns, values, n = np.empty(1 << 14, np.int32), np.empty(1 << 14, np.int64), 0
    for row in range(n_rows):
        n_touched = 0
        for run in range(n_runs):
            at, end, column = starts[run, row], starts[run, row + 1], np.int64(0)
            while at < end:
                number, shift = np.int64(data[at] & 127), 7
                while data[at] >= 128:
                    at += 1
                    number |= np.int64(data[at] & 127) << shift
                    shift += 7
                at += 1
                column += number
                number, shift = np.int64(data[at] & 127), 7
                while data[at] >= 128:
                    at += 1
                    number |= np.int64(data[at] & 127) << shift
                    shift += 7
                at += 1
                touched[n_touched] = column
                n_touched += totals[column] == 0
                totals[column] += number
        if n + n_touched > len(columns):
            columns = np.concatenate((columns[:n], np.empty(n // 2 + n_touched, np.int32)))
            values = np.concatenate((values[:n], np.empty(n // 2 + n_touched, np.int64)))
        sort_words(touched, n_touched, bitmap, summary)
        for t in range(n_touched):
            column = touched[t]
            columns[n], values[n] = column, totals[column]
            n += totals[column] >= min_count
            totals[column] = 0
        indptr[row + 1] = n
    return indptr, columns[:n].copy(), values[:n].copy()
