"""Counting windows and building the word graph: by set, by window, against plain Python, and as a corpus grows."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import wgcn
from benchmarks import sets
from benchmarks.measure import Cell, Section, Target, in_seconds, peak_megabytes, run_cell, timed, whole

WINDOW = 20
WINDOWS = (5, 10, 20, 30, 40, 50)

LIMIT_SECONDS = 3.0  # for the windows of 20ng
LIMIT_GIGABYTES = 1.5
LIMIT_SPEED_UP = 200  # over a dictionary of pairs
LIMIT_GROWTH = 9  # times the time for 8 times the tokens

# The synthetic corpus that grows.
FACTORS = (1, 2, 4, 8)
N_TYPES = 50_000
EXPONENT = 1.1
MEAN_LENGTH = 200
DOCUMENTS = 5_000  # so about a million tokens
SEED = 0


# The sets


def measure_sets() -> Section:
    names = sets.SETS if sets.available() else (sets.DOCS,)
    cells = [run_cell(f"graph: {name}", count_and_build, name=name) for name in names]
    sizes_shown = ("documents", "tokens", "words", "pairs")
    header = ("set", *sizes_shown, "count s", "tokens/s", "graph s", "count peak MB", "graph peak MB")
    rows = [
        (
            cell["set"],
            *(whole(cell[key]) for key in sizes_shown),
            in_seconds(cell["count_seconds"]),
            whole(cell["tokens"] / cell["count_seconds"]),
            in_seconds(cell["graph_seconds"]),
            whole(cell["count_peak_mb"]),
            whole(cell["graph_peak_mb"]),
        )
        for cell in cells
    ]
    remark = (
        "count: windows counted from word ids; graph: normalised PMI graph made from these counts. "
        "peak: memory until then, with reading and tokenising the set."
    )
    targets = [target for cell in cells if cell["set"] == "20ng" for target in set_targets(cell)]
    return Section(f"Word graph, window {WINDOW}", header, rows, cells, targets, [remark])


def set_targets(cell: Cell) -> list[Target]:
    seconds, gigabytes = cell["count_seconds"], cell["graph_peak_mb"] / 1e3
    return [
        Target(f"20ng counted in at most {LIMIT_SECONDS:g} s", f"{in_seconds(seconds)} s", seconds <= LIMIT_SECONDS),
        Target(
            f"20ng counted and made a graph in at most {LIMIT_GIGABYTES:g} GB",
            f"{gigabytes:.2f} GB",
            gigabytes <= LIMIT_GIGABYTES,
        ),
    ]


def count_and_build(name: str) -> Cell:
    corpus = sets.corpus(name)
    warm_up()
    count_times, counts = timed(lambda: wgcn.WindowCounts.from_corpus(corpus, WINDOW))
    count_peak = peak_megabytes()
    graph_times, graph = timed(lambda: wgcn.WordGraph.from_counts(counts, weight="pmi"))
    return {
        "set": name,
        **sizes(corpus, counts),
        "edges": graph.info().edges,
        "count_seconds": min(count_times),
        "graph_seconds": min(graph_times),
        "count_times": count_times,
        "graph_times": graph_times,
        "count_peak_mb": count_peak,
        "graph_peak_mb": peak_megabytes(),
    }


# The window


def measure_windows() -> Section:
    title = "Window sizes, 20ng"
    if not sets.available():
        return Section(title, remarks=["Left out: 20ng is not there."])
    cells = [run_cell(f"windows: 20ng, {window}", count_set, name="20ng", window=window) for window in WINDOWS]
    header = ("window", "pairs", "count s", "tokens/s", "peak MB")
    rows = [
        (
            str(cell["window"]),
            whole(cell["pairs"]),
            in_seconds(cell["seconds"]),
            whole(cell["tokens"] / cell["seconds"]),
            whole(cell["peak_mb"]),
        )
        for cell in cells
    ]
    return Section(title, header, rows, cells)


def count_set(name: str, window: int) -> Cell:
    corpus = sets.corpus(name)
    warm_up()
    return {"set": name, "window": window, **count(corpus, window)}


# Against a dictionary


@dataclass(frozen=True)
class DictionaryCounts:
    """What `count_by_dictionary` finds: #W, #W(i) by word and #W(i, j) by pair with i < j."""

    n_windows: int
    words: dict[int, int]
    pairs: dict[tuple[int, int], int]


def measure_dictionary() -> Section:
    name = "r8" if sets.available() else sets.DOCS
    cell = run_cell(f"dictionary: {name} (plain Python: be patient)", compare_with_dictionary, name=name)
    speed_up = cell["dictionary_seconds"] / cell["seconds"]
    rows = [
        ("plain Python", in_seconds(cell["dictionary_seconds"]), "1.0", whole(cell["dictionary_peak_mb"])),
        ("wgcn", in_seconds(cell["seconds"]), f"{speed_up:.1f}", whole(cell["peak_mb"])),
    ]
    pairs = f"{cell['pairs']:,} pairs and {cell['words']:,} words"
    return Section(
        f"Against a dictionary of pairs, {name}, window {WINDOW}",
        ("counter", "seconds", "times as fast", "peak MB"),
        rows,
        [{**cell, "speed_up": speed_up}],
        [Target(f"at least {LIMIT_SPEED_UP} times as fast", f"{speed_up:.1f} times", speed_up >= LIMIT_SPEED_UP)],
        [
            "Plain Python goes window by window: the set of its words, and a dictionary of pairs; it is timed once.",
            *([] if cell["differences"] else [f"All counts are equal: {pairs}."]),
        ],
        [f"{name}: {difference}" for difference in cell["differences"]],
    )


def compare_with_dictionary(name: str) -> Cell:
    corpus = sets.corpus(name)
    warm_up()
    times, counts = timed(lambda: wgcn.WindowCounts.from_corpus(corpus, WINDOW))
    peak = peak_megabytes()  # before the dictionary, which needs more
    documents = [corpus.ids[begin:end].tolist() for begin, end in zip(corpus.offsets, corpus.offsets[1:], strict=False)]
    (dictionary_seconds,), expected = timed(lambda: count_by_dictionary(documents, WINDOW), repeats=1)
    return {
        "set": name,
        **sizes(corpus, counts),
        "seconds": min(times),
        "times": times,
        "dictionary_seconds": dictionary_seconds,
        "peak_mb": peak,
        "dictionary_peak_mb": peak_megabytes(),
        "differences": differences(counts, expected),
    }


def count_by_dictionary(documents: list[list[int]], window: int) -> DictionaryCounts:
    """Count windows as their definition reads."""
    n_windows = 0
    words: defaultdict[int, int] = defaultdict(int)
    pairs: defaultdict[tuple[int, int], int] = defaultdict(int)
    for document in documents:
        if not document:
            continue
        for begin in range(max(len(document) - window, 0) + 1):
            n_windows += 1
            held = sorted(set(document[begin : begin + window]))
            for word in held:
                words[word] += 1
            for pair in combinations(held, 2):
                pairs[pair] += 1
    return DictionaryCounts(n_windows, words, pairs)


def differences(counts: wgcn.WindowCounts, expected: DictionaryCounts) -> list[str]:
    """Say which of our counts are not those of the dictionary."""
    found = []
    if counts.n_windows != expected.n_windows:
        found.append(f"{counts.n_windows:,} windows, but the dictionary has {expected.n_windows:,}.")
    words = {word: number for word, number in enumerate(counts.word_windows.tolist()) if number}
    entries = counts.pair_windows.tocoo()
    places = zip(entries.row.tolist(), entries.col.tolist(), strict=True)
    pairs = dict(zip(places, entries.data.tolist(), strict=True))
    comparisons: list[tuple[str, dict[Any, int], dict[Any, int]]] = [
        ("words", words, expected.words),
        ("pairs", pairs, expected.pairs),
    ]
    for what, ours, theirs in comparisons:
        # Not theirs[key]: a defaultdict would grow by what is only looked up.
        wrong = [key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)]
        if wrong:
            key = min(wrong)
            found.append(f"{len(wrong):,} {what} differ; {key}: {ours.get(key)}, in the dictionary {theirs.get(key)}.")
    return found


# Growth


def measure_growth() -> Section:
    cells = [run_cell(f"growth: {factor}x", count_synthetic, factor=factor) for factor in FACTORS]
    base = cells[0]["seconds"]
    header = ("size", "documents", "tokens", "pairs", "count s", "times 1x", "tokens/s", "peak MB")
    rows = [
        (
            f"{cell['factor']}x",
            *(whole(cell[key]) for key in ("documents", "tokens", "pairs")),
            in_seconds(cell["seconds"]),
            f"{cell['seconds'] / base:.2f}",
            whole(cell["tokens"] / cell["seconds"]),
            whole(cell["peak_mb"]),
        )
        for cell in cells
    ]
    growth = cells[-1]["seconds"] / base
    target = Target(
        f"{FACTORS[-1]} times the tokens in at most {LIMIT_GROWTH} times the time",
        f"{growth:.2f} times",
        growth <= LIMIT_GROWTH,
    )
    remark = (
        f"Synthetic: {N_TYPES:,} words by Zipf's law with exponent {EXPONENT}, documents of {MEAN_LENGTH} tokens on "
        f"average, seed {SEED}."
    )
    return Section(f"Growth, window {WINDOW}", header, rows, cells, [target], [remark])


def count_synthetic(factor: int) -> Cell:
    corpus = synthetic_corpus(factor)
    warm_up()
    return {"factor": factor, **count(corpus, WINDOW)}


def synthetic_corpus(factor: int) -> wgcn.Corpus:
    """Draw a corpus; a larger one begins with the smaller ones."""
    import numpy as np

    random = np.random.default_rng(SEED)
    weights = np.arange(1, N_TYPES + 1) ** -EXPONENT
    shares = weights / weights.sum()
    ids, lengths = [], []
    for _ in range(factor):
        lengths.append(random.poisson(MEAN_LENGTH, DOCUMENTS))
        ids.append(random.choice(N_TYPES, lengths[-1].sum(), p=shares).astype(np.int32))
    offsets = np.concatenate(([0], np.cumsum(np.concatenate(lengths)))).astype(np.int64)
    return wgcn.Corpus(np.concatenate(ids), offsets, wgcn.Vocabulary([f"w{i}" for i in range(N_TYPES)]))


# Shared


def warm_up() -> None:
    """Compile the kernels, or load them from numba's cache."""
    counts = wgcn.WindowCounts.from_corpus(wgcn.Corpus.from_texts(["a b c", "b c d"]), 2)
    wgcn.WordGraph.from_counts(counts, weight="pmi")


def count(corpus: wgcn.Corpus, window: int) -> Cell:
    times, counts = timed(lambda: wgcn.WindowCounts.from_corpus(corpus, window))
    return {**sizes(corpus, counts), "seconds": min(times), "times": times, "peak_mb": peak_megabytes()}


def sizes(corpus: wgcn.Corpus, counts: wgcn.WindowCounts) -> Cell:
    return {
        "documents": len(corpus),
        "tokens": corpus.n_tokens,
        "words": len(corpus.vocabulary),
        "windows": counts.n_windows,
        "pairs": counts.pair_windows.nnz,
    }
