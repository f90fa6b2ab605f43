"""Window counts and word graphs from runs on disk, the same to the last bit as those in memory.

Runs are merged by ranges of rows, and what is merged is pruned before it is written: pairs that share too few windows,
then those whose weight is too low, then all but the strongest edges of each word. Only the graph itself is ever whole
in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.arrays import row_blocks
from wgcn.base.errors import InputError
from wgcn.base.progress import stage
from wgcn.graph.association import WINDOW_WEIGHTS, EdgeRules, Weight, symmetric, weigh_windows
from wgcn.graph.counts import WindowCounts, count_type, raised_limit, sampled_words
from wgcn.graph.word_graph import WordGraph
from wgcn.scale.kernels import add_to_strongest, are_strongest, merge_rows
from wgcn.scale.memory import Limits
from wgcn.scale.runs import Run, count_chunk, cut_chunks, merge_runs, read_rows, row_ranges
from wgcn.scale.store import Outputs, WorkFolder, key_of
from wgcn.scale.tokens import Piece
from wgcn.scale.vocabulary import Coding
from wgcn.scale.workers import Workers
from wgcn.text.tokenize import Offsets
from wgcn.text.vocabulary import Vocabulary

Progress = Callable[[int, int], object] | None  # called with the numbers of tasks that are done, and of all

_BLOCKS = 4  # of edges, at least, for each worker: so that all end together
_PASSES = 8  # over all edges at a time, each for some of the words
_BYTES_PER_EDGE = 56  # of a graph, while it is mirrored, normalised and saved


@dataclass(frozen=True)
class Block:
    """Rows of an upper triangle on disk: `NAME.sizes`, int64, `NAME.columns`, int32, and `NAME.values`."""

    name: str
    first: int  # row
    n: int  # entries

    def read(self, work: WorkFolder, dtype: npt.DTypeLike) -> tuple[Offsets, npt.NDArray[np.int32], npt.NDArray[Any]]:
        """Return indptr, columns and values."""
        sizes = work.read(f"{self.name}.sizes", np.int64)
        columns, values = work.read(f"{self.name}.columns", np.int32), work.read(f"{self.name}.values", dtype)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), columns, values


@dataclass(frozen=True, eq=False)
class Pruning:
    """Which pairs are kept: those of at least `min_pairs` windows and, if there is a weight, those that it keeps."""

    min_pairs: int
    n_windows: int
    word_windows: Offsets
    weight: Weight | None = None
    rules: EdgeRules | None = None

    def weigh(self, pairs: csr_array) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return the weights of pairs, and of each word with itself."""
        assert self.weight is not None
        assert self.rules is not None
        counts = WindowCounts(Vocabulary(()), 2, self.n_windows, self.word_windows, pairs)  # of which no word is used
        return weigh_windows(counts, self.weight, replace(self.rules, min_count=self.min_pairs), 1)

    def key(self) -> str:
        """Return what tells it from others of the same runs."""
        return key_of(self.min_pairs, self.weight, self.rules and [self.rules.threshold, self.rules.diagonal])


def count_windows(
    pieces: Sequence[Piece],
    work: WorkFolder,
    workers: Workers,
    vocabulary: Vocabulary,
    coding: Coding,
    window: int = 20,
    *,
    min_pairs: int = 1,
    max_pairs: int | None = None,
    limits: Limits | None = None,
    progress: Progress = None,
) -> tuple[WindowCounts, int]:
    """Do what `WindowCounts.of_frequent_pairs` does, with pieces on disk. The counts that are kept must fit memory."""
    limits = limits or Limits()
    runs = _count_runs(pieces, work, workers, len(vocabulary), coding, window, limits, progress)
    pruning = _pruning(runs, work, workers, min_pairs, max_pairs, limits)
    blocks = _merge_blocks(runs, work, workers, pruning, limits, progress)
    value_type = count_type(sum(run.n_tokens for run in runs))
    indptr, columns, values = _joined(blocks, work, np.int64, value_type)
    if indptr[-1] <= np.iinfo(np.int32).max:  # the index type that scipy would choose
        indptr = indptr.astype(np.int32)
    pairs = csr_array((values, columns, indptr), shape=(len(vocabulary), len(vocabulary)))
    pairs.has_canonical_format = True
    return WindowCounts(vocabulary, window, pruning.n_windows, pruning.word_windows, pairs), pruning.min_pairs


def build_graph(
    pieces: Sequence[Piece],
    work: WorkFolder,
    workers: Workers,
    vocabulary: Vocabulary,
    coding: Coding,
    *,
    window: int = 20,
    weight: Weight = "npmi",
    rules: EdgeRules | None = None,
    normalized: bool = True,
    max_pairs: int | None = None,
    limits: Limits | None = None,
    progress: Progress = None,
) -> WordGraph:
    """Do what `WordGraph.from_corpus` does, with pieces on disk. The graph itself must fit memory."""
    check_weight(weight)
    rules, limits = rules or EdgeRules(), limits or Limits()
    runs = _count_runs(pieces, work, workers, len(vocabulary), coding, window, limits, progress)
    found = _pruning(runs, work, workers, rules.min_count, max_pairs, limits)
    rules = replace(rules, min_count=found.min_pairs)
    pruning = replace(found, weight=weight, rules=rules)
    blocks = _merge_blocks(runs, work, workers, pruning, limits, progress)
    if rules.top_k is not None:
        with stage("Choosing the strongest edges"):
            blocks = _strongest(blocks, work, workers, len(vocabulary), rules.top_k, limits)
    n_edges, most = sum(block.n for block in blocks), limits.graph // _BYTES_PER_EDGE
    if n_edges > most:
        raise InputError(
            f"The graph would have {n_edges:,} edges, and {most:,} fit the memory that was given. Keep fewer, by a "
            "higher --min-pairs or --threshold or by --top-k, or give more memory. What was counted is kept."
        )
    empty = csr_array((len(vocabulary), len(vocabulary)), dtype=np.int32)
    diagonal = pruning.weigh(empty)[1]
    adjacency = symmetric(*_joined(blocks, work, np.float32), diagonal, replace(rules, top_k=None))
    return WordGraph.of_edges(vocabulary, adjacency, normalized, rules, weight=weight, window=window)


def check_weight(weight: Weight) -> None:
    """Raise an InputError if a weight of edges is not made out of core."""
    if weight not in WINDOW_WEIGHTS:
        raise InputError(f"The weight {weight!r} is not made out of core. Use one of {', '.join(WINDOW_WEIGHTS)}.")


def _count_runs(
    pieces: Sequence[Piece],
    work: WorkFolder,
    workers: Workers,
    n_words: int,
    coding: Coding,
    window: int,
    limits: Limits,
    progress: Progress,
) -> list[Run]:
    """Count the windows of all pieces, into at most as many runs as are merged at a time."""
    if window < 2:
        raise InputError(f"window must be at least 2 tokens, got {window}: a pair of words needs two places.")
    with stage("Counting windows") as step:
        chunks = cut_chunks(pieces, work, limits.tokens, workers.n_workers)
        counted = workers.map(count_chunk, chunks, work, coding, coding.digest(), n_words, window)
        runs = list(watched(counted, len(chunks), progress))
        step.detail = f"{sum(run.n_tokens for run in runs):,} tokens in {len(runs):,} runs"
    while len(runs) > limits.fan_in:
        with stage("Merging runs", f"{len(runs):,} of them"):
            n_groups = -(-len(runs) // limits.fan_in)
            groups = [[runs[i] for i in group] for group in np.array_split(np.arange(len(runs)), n_groups)]
            runs = list(watched(workers.map(merge_runs, groups, work, limits.merged), n_groups, progress))
    return runs


def _pruning(
    runs: Sequence[Run], work: WorkFolder, workers: Workers, min_pairs: int, max_pairs: int | None, limits: Limits
) -> Pruning:
    """Add up the counts of words, and raise the limit of pairs where there would be too many."""
    words = reduce(np.add, (run.word_windows(work) for run in runs))
    if max_pairs is not None:
        sampled = np.array(sampled_words(len(words)), np.int64)
        sizes = reduce(np.add, (np.diff(run.starts(work))[sampled] for run in runs))
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        groups = [sampled[first:last] for first, last in row_blocks(ends, limits.merged)]
        parts = list(workers.map(_sample_sizes, groups, work, runs, min_pairs))
        values, times = (np.concatenate([np.empty(0, np.int64), *each]) for each in zip(*parts, ([], []), strict=True))
        distinct, places = np.unique(values, return_inverse=True)
        times = np.bincount(places, times, len(distinct)).astype(np.int64)
        min_pairs = raised_limit(distinct, times, min_pairs, max_pairs)
    return Pruning(min_pairs, sum(run.n_windows for run in runs), words)


def _sample_sizes(rows: Offsets, work: WorkFolder, runs: Sequence[Run], min_pairs: int) -> tuple[Offsets, Offsets]:
    """Return the distinct counts of the pairs in some rows, and how many pairs have each."""
    parts, all_starts, n = [], [], 0
    for run in runs:
        starts = run.starts(work)
        begins, ends = starts[rows], starts[rows + 1]
        parts.append(work.read_spans(f"{run.name}.rows", begins.tolist(), ends.tolist()))
        all_starts.append(n + np.concatenate([np.zeros(1, np.int64), np.cumsum(ends - begins)]))
        n += len(parts[-1])
    data = np.frombuffer(b"".join(parts), np.uint8).copy()
    values, times = np.unique(merge_rows(data, np.array(all_starts), runs[0].n_words, min_pairs)[2], return_counts=True)
    return values, times


def _merge_blocks(
    runs: Sequence[Run], work: WorkFolder, workers: Workers, pruning: Pruning, limits: Limits, progress: Progress
) -> list[Block]:
    with stage("Merging and pruning") as step:
        ranges = row_ranges(work, runs, limits.merged, _BLOCKS * workers.n_workers)
        key = key_of(pruning.key(), [run.name for run in runs])
        blocks = list(watched(workers.map(_merge_block, ranges, work, runs, pruning, key), len(ranges), progress))
        step.detail = f"{sum(block.n for block in blocks):,} pairs"
    return blocks


def _merge_block(rows: tuple[int, int], work: WorkFolder, runs: Sequence[Run], pruning: Pruning, key: str) -> Block:
    """Add up some rows of runs, and keep what the pruning keeps."""
    first, last = rows
    name = f"block-{key}-{first}-{last}"
    if (found := work.result(name)) is not None:
        return Block(**found)
    outputs, n_words = Outputs(work, name), runs[0].n_words
    indptr, columns, values = merge_rows(*read_rows(work, runs, first, last), n_words, pruning.min_pairs)
    if pruning.weight is not None:
        counts = values.astype(count_type(pruning.n_windows))
        whole = np.concatenate([np.zeros(first, np.int64), indptr, np.full(n_words - last, indptr[-1])])
        values = pruning.weigh(csr_array((counts, columns, whole), shape=(n_words, n_words)))[0]
        indptr, columns, values = _kept(indptr, columns, values, values != 0)
    return _save_block(outputs, first, indptr, columns, values)


def _kept(indptr: Offsets, columns: Any, values: Any, keep: npt.NDArray[np.bool_]) -> tuple[Offsets, Any, Any]:
    kept = np.flatnonzero(keep)
    return np.searchsorted(kept, indptr), columns[kept], values[kept]


def _save_block(outputs: Outputs, first: int, indptr: Offsets, columns: Any, values: Any) -> Block:
    for what, array in (("sizes", np.diff(indptr)), ("columns", columns), ("values", values)):
        outputs.save(f"{outputs.task}.{what}", array)
    block = Block(outputs.task, first, len(columns))
    outputs.finish(**asdict(block))
    return block


def _strongest(
    blocks: Sequence[Block], work: WorkFolder, workers: Workers, n_words: int, k: int, limits: Limits
) -> list[Block]:
    """Keep the edges that are among the k strongest of one of their words."""
    key = key_of(k, [block.name for block in blocks])
    n = min(workers.n_workers, _PASSES)
    step = max(min(limits.chosen // (8 * k * n), -(-n_words // n)), 1)
    ranges = [(first, min(first + step, n_words)) for first in range(0, n_words, step)]
    names = list(workers.map(_find_bounds, ranges, work, blocks, k, key))
    bounds = np.concatenate([work.read(f"{name}.bounds", np.float32) for name in names])
    lasts = np.concatenate([work.read(f"{name}.lasts", np.int32) for name in names])
    return list(workers.map(_keep_strongest, blocks, work, bounds, lasts, key))


def _find_bounds(words: tuple[int, int], work: WorkFolder, blocks: Sequence[Block], k: int, key: str) -> str:
    """Find the weakest edge that is among the k strongest of each word, in a pass over all edges."""
    first, last = words
    name, n = f"bounds-{key}-{first}-{last}", last - first
    if work.result(name) is None:
        outputs = Outputs(work, name)
        best, places, sizes = np.empty((n, k), np.float32), np.empty((n, k), np.int32), np.zeros(n, np.int64)
        bounds = np.full(n, -np.inf, np.float32)
        for block in blocks:
            if block.n:
                add_to_strongest(*block.read(work, np.float32), block.first, first, best, places, sizes, bounds)
        outputs.save(f"{name}.bounds", bounds)
        outputs.save(f"{name}.lasts", np.where(sizes == k, places[:, 0], 0).astype(np.int32))
        outputs.finish()
    return name


def _keep_strongest(block: Block, work: WorkFolder, bounds: Any, lasts: Any, key: str) -> Block:
    name = f"strongest-{key}-{block.first}"
    if (found := work.result(name)) is not None:
        return Block(**found)
    outputs, edges = Outputs(work, name), block.read(work, np.float32)
    return _save_block(outputs, block.first, *_kept(*edges, are_strongest(*edges, block.first, bounds, lasts)))


def _joined(
    blocks: Sequence[Block], work: WorkFolder, dtype: npt.DTypeLike, kept_as: npt.DTypeLike | None = None
) -> tuple[Offsets, npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Put the rows of all blocks together."""
    n = sum(block.n for block in blocks)
    columns, values = np.empty(n, np.int32), np.empty(n, kept_as or dtype)
    indptrs, at = [np.zeros(1, np.int64)], 0
    for block in blocks:
        indptr, columns[at : at + block.n], values[at : at + block.n] = block.read(work, dtype)
        indptrs.append(indptr[1:] + at)
        at += block.n
    return np.concatenate(indptrs), columns, values


def watched(results: Iterable[Any], total: int, progress: Progress) -> Iterator[Any]:
    """Yield results of tasks, and say how many there are."""
    for done, result in enumerate(results, 1):
        if progress is not None:
            progress(done, total)
        yield result
