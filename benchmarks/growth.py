"""How the time and the memory of a fit grow with the number of texts: 20 to 200 tokens each, ten classes.

Two corpora, both endless: a larger one begins with the smaller ones. "zipf" is drawn from Zipf's law with topics;
"real" repeats real texts, and every copy spells a share of the words anew, so that the vocabulary grows as well.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count, islice
from statistics import median
from typing import Any

from benchmarks import sets
from benchmarks.fit import FEW, fit_wgcn, warm_up
from benchmarks.measure import Cell, Section, Target, in_seconds, peak_megabytes, resident_megabytes, run_cell, whole

SIZES = (10_000, 100_000, 1_000_000)
REPEATS = {10_000: 3}  # of larger sizes one
LENGTHS = (20, 200)  # tokens
LIMIT_GROWTH = 1.5  # times the time, and the memory, per text, from the second size to the third
LIMIT_SECONDS, LIMIT_GIGABYTES = 240.0, 6.0  # for a million texts with all labels
SEED = 0

N_CLASSES = 10
N_TYPES = 200_000
TOPIC_TYPES = 2_000  # words of a topic, drawn by Zipf's law too
TOPIC_SHARE = 0.2  # of the tokens
CHUNK = 5_000  # texts that are drawn at a time
REAL = ("r8", "mr")  # ten classes together
NEW_SPELLINGS = 0.2  # of the words of a copy


def measure_fit_growth(sizes: tuple[int, ...] = SIZES) -> Section:
    cells = []
    for source in CORPORA:
        for few in (False, True):
            for size in sizes:
                what = f"fit-growth: {source}, {shares(few)}, {size:,} texts"
                repeats = [
                    run_cell(what, fit_corpus, source=source, few=few, size=size) for _ in range(REPEATS.get(size, 1))
                ]
                times = [cell["seconds"] for cell in repeats]
                cells.append({**repeats[-1], "seconds": median(times), "times": times})
    header = ("corpus", "labels", "texts", "tokens", "seconds", "ms/text", "fit MB", "KB/text", "texts MB", "peak MB")
    rows = [
        (
            cell["source"],
            shares(cell["few"]),
            whole(cell["texts"]),
            whole(cell["tokens"]),
            in_seconds(cell["seconds"]),
            f"{1e3 * cell['seconds'] / cell['texts']:.3f}",
            whole(cell["fit_mb"]),
            f"{1e3 * cell['fit_mb'] / cell['texts']:.2f}",
            whole(cell["texts_mb"]),
            whole(cell["peak_mb"]),
        )
        for cell in cells
    ]
    repeated = [f"{n} fits of {size:,} texts" for size, n in REPEATS.items()]
    remarks = [
        f"Texts of {LENGTHS[0]} to {LENGTHS[1]} tokens in {N_CLASSES} classes. zipf: {N_TYPES:,} words by Zipf's law, "
        f"{TOPIC_SHARE:.0%} of the tokens from {TOPIC_TYPES:,} words of the class. real: {' and '.join(REAL)} again "
        f"and again, every copy with new spellings of {NEW_SPELLINGS:.0%} of the words.",
        f"Strings in memory are fitted. Seconds are the median of {' and '.join(repeated)}, and of one fit of more. "
        "texts MB: what the strings themselves take. fit MB: the peak of the process, less what it had before the fit.",
    ]
    return Section("Growth of fitting", header, rows, cells, growth_targets(cells), remarks)


def shares(few: bool) -> str:
    return f"{FEW:.0%}" if few else "all"


def growth_targets(cells: list[Cell]) -> list[Target]:
    """Compare a million texts with a hundred thousand, and with the limits."""
    by_key = {(cell["source"], cell["few"], cell["texts"]): cell for cell in cells}
    targets = []
    for (source, few, size), cell in by_key.items():
        name = f"{source}, {shares(few)} labels"
        before = by_key.get((source, few, SIZES[1]))
        if size != SIZES[2]:
            continue
        if before is not None:
            for key, what in (("seconds", "time"), ("fit_mb", "memory")):
                growth = times_per_text(cell, before, key)
                wish = f"{name}: {what} per text at most {LIMIT_GROWTH:g} times that of {SIZES[1]:,} texts"
                targets.append(Target(wish, f"{growth:.2f} times", growth <= LIMIT_GROWTH))
        if not few:
            seconds, gigabytes = cell["seconds"], cell["peak_mb"] / 1e3
            met = seconds <= LIMIT_SECONDS and gigabytes <= LIMIT_GIGABYTES
            wish = f"{name}: {size:,} texts in at most {LIMIT_SECONDS:g} s and {LIMIT_GIGABYTES:g} GB"
            targets.append(Target(wish, f"{seconds:.0f} s and {gigabytes:.1f} GB", met))
    return targets


def times_per_text(cell: Cell, before: Cell, key: str) -> float:
    """Return how much more a text takes than in a smaller fit.

    A fit that stays below the peak that the process had before has a memory of 0: any memory is infinitely more.
    """
    few, many = (each[key] / each["texts"] for each in (before, cell))
    if few:
        return float(many / few)
    return math.inf if many else 1.0


def fit_corpus(source: str, few: bool, size: int) -> Cell:
    pairs = CORPORA[source]()
    texts, labels, n_tokens = [], [], 0
    for text, label in islice(pairs, size):
        texts.append(text)
        labels.append(label)
        n_tokens += text.count(" ") + 1
    given = sets.few_labels(labels, FEW) if few else labels
    warm_up(fit_wgcn, texts, labels, few)
    before = resident_megabytes()
    begin = time.perf_counter()
    fit_wgcn(texts, given)
    seconds = time.perf_counter() - begin
    peak = peak_megabytes()
    return {
        "source": source,
        "few": few,
        "texts": len(texts),
        "tokens": n_tokens,
        "seconds": seconds,
        "texts_mb": (sys.getsizeof(texts) + sum(map(sys.getsizeof, texts))) / 1e6,
        "fit_mb": max(peak - before, 0.0),  # the system's two figures may differ by a little
        "peak_mb": peak,
    }


# The corpora: texts with their labels, without end.


def zipf_corpus() -> Iterator[tuple[str, str]]:
    """Draw texts whose lengths are log-uniform and whose words follow Zipf's law with exponent 1."""
    import numpy as np

    random = np.random.default_rng(SEED)
    words, names = [spelling(i) for i in range(N_TYPES)], [f"class {i}" for i in range(N_CLASSES)]
    # The hundred most frequent words belong to no topic.
    topics = np.array([random.choice(np.arange(100, N_TYPES), TOPIC_TYPES, replace=False) for _ in range(N_CLASSES)])

    def ranks(n_types: int, n: int) -> Any:
        return (n_types ** random.random(n)).astype(np.int64) - 1  # a log-uniform number, rounded down: Zipf's law

    while True:
        classes = random.integers(N_CLASSES, size=CHUNK)
        low, high = LENGTHS
        lengths = (low * ((high + 1) / low) ** random.random(CHUNK)).astype(np.int64)
        ids, of_topic = ranks(N_TYPES, lengths.sum()), random.random(lengths.sum()) < TOPIC_SHARE
        ids[of_topic] = topics[np.repeat(classes, lengths)[of_topic], ranks(TOPIC_TYPES, of_topic.sum())]
        tokens, end = list(map(words.__getitem__, ids.tolist())), 0
        for label, length in zip(classes.tolist(), lengths.tolist(), strict=True):
            begin, end = end, end + length
            yield " ".join(tokens[begin:end]), names[label]


def real_corpus() -> Iterator[tuple[str, str]]:
    """Repeat the texts of real sets; in every copy but the first, some words are spelt in the copy's own way."""
    import numpy as np

    random, index = np.random.default_rng(SEED), dict[str, int]()
    documents = []
    for name in REAL if sets.available() else (sets.DOCS,):
        for text, label in zip(*sets.split(name)[:2], strict=True):
            tokens = text.split()
            if LENGTHS[0] <= len(tokens) <= LENGTHS[1]:
                documents.append(([index.setdefault(token, len(index)) for token in tokens], f"{name} {label}"))
    words, can_change = list(index), np.array([word.isalpha() for word in index])
    for copy in count():
        spelt = words.copy()
        changed = can_change & (random.random(len(words)) < (NEW_SPELLINGS if copy else 0))
        for i in np.flatnonzero(changed).tolist():
            spelt[i] = f"{words[i]}x{spelling(copy)}"
        for i in random.permutation(len(documents)).tolist():
            ids, label = documents[i]
            yield " ".join(map(spelt.__getitem__, ids)), label


def spelling(number: int) -> str:
    """Return a word for a number, in letters."""
    letters = ""
    while number >= 0:
        letters += chr(ord("a") + number % 26)
        number = number // 26 - 1
    return letters


CORPORA: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {"zipf": zipf_corpus, "real": real_corpus}
