"""Builds out of core: what they may use, and the word graph of texts in files, the same to the last bit as in memory.

Runs (`wgcn.scale.counting`) are merged by ranges of rows, and what is merged is pruned before it is written: pairs that
share too few windows, then those whose weight is too low, then all but the strongest edges of each word. Only the graph
itself is ever whole in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.errors import InputError
from wgcn.base.progress import stage
from wgcn.base.threads import compiled
from wgcn.graph.association import WINDOW_WEIGHTS, EdgeRules, Weight, symmetric, weigh_windows
from wgcn.graph.counts import WindowCounts, count_type
from wgcn.graph.word_graph import WordGraph
from wgcn.io.read import read_texts
from wgcn.scale.corpus import Coding, Piece, Shard, choose_vocabulary, find_shards, tokenised
from wgcn.scale.counting import Run, added, count_runs, least_pairs, merge_rows, read_rows, row_ranges
from wgcn.scale.store import Outputs, WorkFolder, end_work, is_ended, key_of, open_work, remove_work
from wgcn.scale.workers import DaskWorkers, Limits, Progress, Site, connect, memory_bytes
from wgcn.text.corpus import Corpus
from wgcn.text.tokenize import Offsets
from wgcn.text.vocabulary import Vocabulary, VocabularyRules

_BLOCKS = 4  # of pairs, at least, for each worker: so that all end together
_PASSES = 8  # over all edges at a time, each for some of the words
_BYTES_PER_EDGE = 56  # of a graph, while it is mirrored, normalised and saved


@dataclass(frozen=True)
class Resources:
    """What a build out of core may use."""

    memory: str  # of all processes on this machine, such as "4GB"; with a scheduler elsewhere, of each worker there
    scheduler: str | None = None  # as for `wgcn.scale.workers.connect`
    n_workers: int | None = None  # likewise
    work: Path | None = None  # the folder for files in between, by default one beside the result
    restart: bool = False  # whether to begin anew where an earlier build was interrupted
    keep: bool = False  # whether the work folder stays after the build

    @classmethod
    def of(cls, memory: str | None, workers: int | None, **given: Any) -> Resources | None:
        """Return the resources that options name; None if there is no limit of memory, and so nothing out of core."""
        if memory is None:
            if workers or any(given.values()):
                raise InputError(
                    "--scheduler, --workers, --work and --restart are for work out of core: give --memory."
                )
            return None
        memory_bytes(memory)
        return cls(memory, n_workers=workers, **given)

    def work_folder(self, result: Path) -> Path:
        """Return the folder for files in between, for a result."""
        work = self.work or Path(f"{result if result.name else result.absolute()}.work")  # "." has no name
        places = tuple(Path(os.path.realpath(each)) for each in (work, result))  # which raises nothing
        if any(one.is_relative_to(other) for one, other in (places, places[::-1])):
            raise InputError(
                f"{work} is for files in between, and {result} for the result: neither can hold the other."
            )
        return work

    @contextmanager
    def opened(
        self, shards: Sequence[Shard], settings: Mapping[str, object], result: Path, progress: Progress = None
    ) -> Iterator[Site]:
        """Begin a build, or go on with it; when all went well, the work folder is removed."""
        memory, path, inputs = memory_bytes(self.memory), self.work_folder(result), [each.identity() for each in shards]
        with open_work(path, settings, inputs, restart=self.restart) as work:
            with connect(self.scheduler, self.n_workers) as workers:
                elsewhere = self.scheduler not in (None, "local")
                n_processes = workers.n_workers if isinstance(workers, DaskWorkers) else 0
                limits = Limits.of(memory, *((1, 0) if elsewhere else (workers.n_workers, n_processes)))
                yield Site(work, workers, limits, inputs, progress)
            if not self.keep:
                remove_work(work)


def graph_from_files(
    files: Sequence[Path],
    output: Path,
    resources: Resources | None = None,
    *,
    reading: Mapping[str, Any] | None = None,
    tokenizer: str = "words",
    rules: VocabularyRules | None = None,
    window: int = 20,
    weight: Weight = "npmi",
    edges: EdgeRules | None = None,
    normalized: bool = True,
    progress: Progress = None,
) -> WordGraph:
    """Build the word graph of texts in files, save it to a folder, and return it.

    Without `resources` the texts are in memory; with them the graph is the same, to the last bit.
    """
    rules, edges = rules or VocabularyRules(), edges or EdgeRules()
    how: dict[str, Any] = {"window": window, "weight": weight, "normalized": normalized}
    if resources is None:
        corpus = _corpus_in_memory(files, reading, tokenizer, rules)
        with stage("Counting pairs"):
            graph = WordGraph.from_corpus(corpus, rules=edges, **how)
        graph.save(output)
        return graph
    _check_weight(weight)
    shards = find_shards(files, reading)
    settings = {
        "result": "graph",
        "reading": dict(reading or {}),
        "tokenizer": tokenizer,
        "words": asdict(rules) | {"stop_words": sorted(rules.stop_words)},
        "edges": asdict(edges),
        **how,
    }
    with resources.opened(shards, settings, output, progress) as site:
        if is_ended(site.work, output):
            return WordGraph.load(output)
        pieces = tokenised(shards, site, tokenizer)
        with stage("Choosing words") as step:
            vocabulary, coding = choose_vocabulary(pieces, site, rules=rules)
            step.detail = f"{len(vocabulary):,} of {coding.n_words:,}"
        graph = build_graph(pieces, site, vocabulary, coding, rules=edges, **how)
        with stage("Saving the graph"):
            end_work(site.work, graph.save(output))
    return graph


def _corpus_in_memory(
    files: Sequence[Path], reading: Mapping[str, Any] | None, tokenizer: str, rules: VocabularyRules
) -> Corpus:
    texts = chain.from_iterable([read_texts(path, **(reading or {})) for path in files])  # all are opened first
    with stage("Reading text") as step:
        corpus = Corpus.from_texts(texts, tokenizer=tokenizer, rules=rules)
        step.detail = f"{len(corpus):,} documents, {corpus.n_tokens:,} tokens, {len(corpus.vocabulary):,} words"
    return corpus


def build_graph(
    pieces: Sequence[Piece],
    site: Site,
    vocabulary: Vocabulary,
    coding: Coding,
    *,
    window: int = 20,
    weight: Weight = "npmi",
    rules: EdgeRules | None = None,
    normalized: bool = True,
    max_pairs: int | None = None,
) -> WordGraph:
    """Do what `WordGraph.from_corpus` does, with pieces on disk. The graph itself must fit memory."""
    _check_weight(weight)
    rules = rules or EdgeRules()
    runs = count_runs(pieces, site, len(vocabulary), coding, window)
    rules = replace(rules, min_count=least_pairs(runs, site, rules.min_count, max_pairs))
    word_windows = added([run.word_windows(site.work) for run in runs])
    pruning = Pruning(sum(run.n_windows for run in runs), word_windows, weight, rules)
    blocks = _merge_blocks(runs, site, pruning)
    if rules.top_k is not None:
        with stage("Choosing the strongest edges"):
            blocks = _strongest(blocks, site, len(vocabulary), rules.top_k)
    n_edges, most = sum(block.n for block in blocks), site.limits.graph // _BYTES_PER_EDGE
    if n_edges > most:
        raise InputError(
            f"The graph would have {n_edges:,} edges, and {most:,} fit the memory that was given. Keep fewer, by a "
            "higher --min-pairs or --threshold or by --top-k, or give more memory. What was counted is kept."
        )
    diagonal = pruning.weigh(csr_array((len(vocabulary), len(vocabulary)), dtype=np.int32))[1]
    adjacency = symmetric(*_joined(blocks, site.work), diagonal, replace(rules, top_k=None))
    return WordGraph.of_edges(vocabulary, adjacency, normalized, rules, weight=weight, window=window)


def _check_weight(weight: Weight) -> None:
    if weight not in WINDOW_WEIGHTS:
        raise InputError(f"The weight {weight!r} is not made out of core. Use one of {', '.join(WINDOW_WEIGHTS)}.")


Triangle = tuple[Offsets, npt.NDArray[np.int32], npt.NDArray[np.float32]]  # indptr, columns and weights


@dataclass(frozen=True)
class EdgeBlock:
    """Rows of an upper triangle on disk: `NAME.sizes`, int64, `NAME.columns`, int32, and `NAME.weights`, float32."""

    name: str
    first: int  # row
    n: int  # entries

    def read(self, work: WorkFolder) -> Triangle:
        """Return indptr, columns and weights."""
        sizes = work.read(f"{self.name}.sizes", np.int64)
        columns, weights = work.read(f"{self.name}.columns", np.int32), work.read(f"{self.name}.weights", np.float32)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), columns, weights


@dataclass(frozen=True, eq=False)
class Pruning:
    """Which pairs are kept: those of enough windows to which the rules give a weight."""

    n_windows: int
    word_windows: Offsets  # #W(i)
    weight: Weight
    rules: EdgeRules

    def weigh(self, pairs: csr_array) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return the weights of pairs, and of each word with itself."""
        counts = WindowCounts(Vocabulary(()), 2, self.n_windows, self.word_windows, pairs)  # of which no word is used
        return weigh_windows(counts, self.weight, self.rules, 1)

    def key(self) -> str:
        """Return what tells it from others of the same runs."""
        return key_of(self.rules.min_count, self.weight, self.rules.threshold, self.rules.diagonal)


def _merge_blocks(runs: Sequence[Run], site: Site, pruning: Pruning) -> list[EdgeBlock]:
    with stage("Merging and pruning") as step:
        ranges = row_ranges(site.work, runs, site.limits.merged, _BLOCKS * site.workers.n_workers)
        key = key_of(pruning.key(), [run.name for run in runs])
        blocks = site.watched(_merge_block, ranges, site.work, runs, pruning, key)
        step.detail = f"{sum(block.n for block in blocks):,} pairs"
    return blocks


def _merge_block(rows: tuple[int, int], work: WorkFolder, runs: Sequence[Run], pruning: Pruning, key: str) -> EdgeBlock:
    """Add up some rows of runs, and keep what the pruning keeps."""
    (first, last), n_words = rows, runs[0].n_words

    def merge(outputs: Outputs) -> EdgeBlock:
        packed = read_rows(work, runs, first, last)
        indptr, columns, counts = merge_rows(*packed, n_words, pruning.rules.min_count)
        whole = np.concatenate([np.zeros(first, np.int64), indptr, np.full(n_words - last, indptr[-1])])
        pairs = csr_array((counts.astype(count_type(pruning.n_windows)), columns, whole), shape=(n_words, n_words))
        weights = pruning.weigh(pairs)[0]
        return _save_block(outputs, first, (indptr, columns, weights), weights != 0)

    return work.once(f"block-{key}-{first}-{last}", EdgeBlock, merge)


def _save_block(outputs: Outputs, first: int, edges: Triangle, keep: npt.NDArray[np.bool_]) -> EdgeBlock:
    (indptr, columns, weights), kept = edges, np.flatnonzero(keep)
    outputs.save("sizes", np.diff(np.searchsorted(kept, indptr)))
    outputs.save("columns", columns[kept])
    outputs.save("weights", weights[kept])
    return EdgeBlock(outputs.task, first, len(kept))


@dataclass(frozen=True)
class Bounds:
    """The weakest of the k strongest edges of some words: `NAME.bounds`, float32, and its end, `NAME.lasts`, int32."""

    name: str


def _strongest(blocks: Sequence[EdgeBlock], site: Site, n_words: int, k: int) -> list[EdgeBlock]:
    """Keep the edges that are among the k strongest of one of their words."""
    work, workers, key = site.work, site.workers, key_of(k, [block.name for block in blocks])
    n = min(workers.n_workers, _PASSES)
    step = max(min(site.limits.chosen // (8 * k * n), -(-n_words // n)), 1)
    ranges = [(first, min(first + step, n_words)) for first in range(0, n_words, step)]
    found = list(workers.map(_find_bounds, ranges, work, blocks, k, key))
    bounds = np.concatenate([work.read(f"{each.name}.bounds", np.float32) for each in found])
    lasts = np.concatenate([work.read(f"{each.name}.lasts", np.int32) for each in found])
    return list(workers.map(_keep_strongest, blocks, work, bounds, lasts, key))


def _find_bounds(words: tuple[int, int], work: WorkFolder, blocks: Sequence[EdgeBlock], k: int, key: str) -> Bounds:
    """Find the weakest edge that is among the k strongest of each word, in a pass over all edges."""
    first, last = words

    def find(outputs: Outputs) -> Bounds:
        n = last - first
        best, places, sizes = np.empty((n, k), np.float32), np.empty((n, k), np.int32), np.zeros(n, np.int64)
        bounds = np.full(n, -np.inf, np.float32)
        for block in blocks:
            if block.n:
                add_to_strongest(*block.read(work), block.first, first, best, places, sizes, bounds)
        outputs.save("bounds", bounds)
        outputs.save("lasts", np.where(sizes == k, places[:, 0], 0).astype(np.int32))
        return Bounds(outputs.task)

    return work.once(f"bounds-{key}-{first}-{last}", Bounds, find)


def _keep_strongest(
    block: EdgeBlock, work: WorkFolder, bounds: npt.NDArray[np.float32], lasts: npt.NDArray[np.int32], key: str
) -> EdgeBlock:
    def keep(outputs: Outputs) -> EdgeBlock:
        edges = indptr, columns, weights = block.read(work)
        words = block.first + np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        strong = weights > np.minimum(bounds[words], bounds[columns])
        strong |= (weights == bounds[words]) & (columns <= lasts[words])
        strong |= (weights == bounds[columns]) & (words <= lasts[columns])
        return _save_block(outputs, block.first, edges, strong)

    return work.once(f"strongest-{key}-{block.first}", EdgeBlock, keep)


def _joined(blocks: Sequence[EdgeBlock], work: WorkFolder) -> Triangle:
    """Put the rows of all blocks together."""
    n = sum(block.n for block in blocks)
    columns, weights = np.empty(n, np.int32), np.empty(n, np.float32)
    indptrs, at = [np.zeros(1, np.int64)], 0
    for block in blocks:
        indptr, columns[at : at + block.n], weights[at : at + block.n] = block.read(work)
        indptrs.append(indptr[1:] + at)
        at += block.n
    return np.concatenate(indptrs), columns, weights


@compiled
def add_to_strongest(  # type: ignore[no-untyped-def]
    indptr, columns, weights, first_row, first_word, best, places, sizes, bounds
):
    """Put the edges of rows from `first_row` on into heaps of the strongest edges of some words.

    `best` and `places`, of shape (words, k), are the heaps of the words from `first_word` on, of which the first
    `sizes` entries count: weights, and the words at the other end. At the root is the weakest edge; of equal ones, that
    to the last word. Edges must come by rows, so that those of a word come by the place of the other. `bounds` are the
    weights at the roots of full heaps, otherwise -inf: an array that fits the caches, since most edges are too weak.
    """
    n_words, k = best.shape
    for row in range(len(indptr) - 1):
        for i in range(indptr[row], indptr[row + 1]):
            for side in range(2):
                word, other = (first_row + row, columns[i]) if side == 0 else (columns[i], first_row + row)
                word -= first_word
                if word < 0 or word >= n_words or weights[i] <= bounds[word]:
                    continue
                heap, ends, size, weight = best[word], places[word], sizes[word], weights[i]
                if size < k:
                    child = size
                    sizes[word] += 1
                    while child > 0:
                        parent = (child - 1) >> 1
                        if heap[parent] < weight or (heap[parent] == weight and ends[parent] > other):
                            break
                        heap[child], ends[child] = heap[parent], ends[parent]
                        child = parent
                    heap[child], ends[child] = weight, other
                else:
                    parent = 0
                    while 2 * parent + 1 < k:
                        child = 2 * parent + 1
                        if child + 1 < k and (
                            heap[child + 1] < heap[child]
                            or (heap[child + 1] == heap[child] and ends[child + 1] > ends[child])
                        ):
                            child += 1
                        if weight < heap[child] or (weight == heap[child] and other > ends[child]):
                            break
                        heap[parent], ends[parent] = heap[child], ends[child]
                        parent = child
                    heap[parent], ends[parent] = weight, other
                if sizes[word] == k:
                    bounds[word] = heap[0]
