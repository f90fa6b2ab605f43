import json
import sys
from collections import Counter
from hashlib import sha256
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from wgcn.base.errors import InputError, StoreError
from wgcn.graph.counts import WindowCounts, count_type, raised_limit
from wgcn.io.read import read_texts
from wgcn.store import folder as store
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import Vocabulary
from wgcn_paper.datasets.docstrings import DocsCorpus

Sequences = list[list[int]]
corpora = st.lists(st.lists(st.integers(0, 6), max_size=25), min_size=1, max_size=8)


def corpus_of(sequences: Sequences, n_words: int = 7) -> Corpus:
    ids = np.array([i for sequence in sequences for i in sequence], np.int32)
    offsets = np.cumsum([0, *map(len, sequences)], dtype=np.int64)
    return Corpus(ids, offsets, Vocabulary([f"w{i}" for i in range(n_words)]))


def brute_force(sequences: Sequences, window: int) -> tuple[int, Counter[int], Counter[tuple[int, int]]]:
    """Look at every window, one by one."""
    n_windows = 0
    words: Counter[int] = Counter()
    pairs: Counter[tuple[int, int]] = Counter()
    for sequence in filter(None, sequences):
        for start in range(max(len(sequence) - window, 0) + 1):
            inside = sorted(set(sequence[start : start + window]))
            n_windows += 1
            words.update(inside)
            pairs.update(combinations(inside, 2))
    return n_windows, words, pairs


def as_counters(counts: WindowCounts) -> tuple[int, Counter[int], Counter[tuple[int, int]]]:
    pairs = counts.pair_windows.tocoo()
    cells = zip(pairs.row.tolist(), pairs.col.tolist(), pairs.data.tolist(), strict=True)
    return (
        counts.n_windows,
        Counter({i: n for i, n in enumerate(counts.word_windows.tolist()) if n}),
        Counter({(i, j): n for i, j, n in cells}),
    )


@given(corpora, st.integers(2, 12))
def test_counts_equal_brute_force(sequences: Sequences, window: int) -> None:
    counts = WindowCounts.from_corpus(corpus_of(sequences), window)
    assert as_counters(counts) == brute_force(sequences, window)
    assert counts.pair_windows.has_sorted_indices


@given(corpora, corpora, st.integers(2, 12))
def test_merging_shards_equals_counting_the_whole(first: Sequences, second: Sequences, window: int) -> None:
    shards = [WindowCounts.from_corpus(corpus_of(part), window) for part in (first, second)]
    whole = WindowCounts.from_corpus(corpus_of(first + second), window)
    assert as_counters(shards[0].merge(shards[1])) == as_counters(whole)


def test_short_document_is_one_window() -> None:
    counts = WindowCounts.from_corpus(corpus_of([[0, 1, 0]]), window=5)
    assert as_counters(counts) == (1, Counter({0: 1, 1: 1}), Counter({(0, 1): 1}))


def test_document_as_long_as_the_window_is_one_window() -> None:
    assert WindowCounts.from_corpus(corpus_of([[0, 1, 2]]), window=3).n_windows == 1


@given(corpora, st.sampled_from([10**6, sys.maxsize, 10**30]))
def test_in_windows_longer_than_every_document_each_document_is_one(sequences: Sequences, window: int) -> None:
    counts = WindowCounts.from_corpus(corpus_of(sequences), window)
    assert as_counters(counts) == brute_force(sequences, window)
    assert counts.n_windows == sum(map(bool, sequences))
    assert counts.window == window


def test_empty_document_has_no_window() -> None:
    assert WindowCounts.from_corpus(corpus_of([[], [0, 1], []]), window=3).n_windows == 1


@pytest.mark.parametrize("n_jobs", [1, 2, 7])
def test_docs_corpus_equals_brute_force_on_any_number_of_threads(docs: DocsCorpus, n_jobs: int) -> None:
    assert docs.texts is not None
    corpus = Corpus.from_texts(docs.texts[:120])
    sequences = [corpus.ids[a:b].tolist() for a, b in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True)]
    counts = WindowCounts.from_corpus(corpus, 20, n_jobs=n_jobs)
    assert as_counters(counts) == brute_force(sequences, 20)


def test_r8_equals_brute_force(data_folder: Path) -> None:
    corpus = Corpus.from_texts(read_texts(data_folder / "text/r8/test.tsv.gz", text_column=1, header=False))
    sequences = [corpus.ids[a:b].tolist() for a, b in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True)]
    assert as_counters(WindowCounts.from_corpus(corpus, 20)) == brute_force(sequences, 20)


def test_pair_is_the_same_both_ways_and_with_itself_the_word_count() -> None:
    counts = WindowCounts.from_corpus(corpus_of([[0, 1, 2, 0]]), window=2)
    assert counts.pair("w0", "w1") == counts.pair("w1", "w0") == 1
    assert counts.pair("w0", "w0") == 2


def test_counts_above_int32_get_int64() -> None:
    assert count_type(2**31 - 1) is np.int32
    assert count_type(2**31) is np.int64


def test_merging_beyond_int32_does_not_overflow() -> None:
    counts = WindowCounts.from_corpus(corpus_of([[0, 1]]), window=2)
    many = 2**31 - 2
    counts.pair_windows.data[:] = many
    large = WindowCounts(counts.vocabulary, 2, many, counts.word_windows * many, counts.pair_windows)
    merged = large.merge(large)
    assert merged.pair("w0", "w1") == merged.n_windows == 2 * many


@pytest.mark.parametrize("window", [1, 0, -3])
def test_window_below_two_is_refused(window: int) -> None:
    with pytest.raises(InputError, match="window must be at least 2"):
        WindowCounts.from_corpus(corpus_of([[0, 1]]), window)


def test_different_vocabularies_or_windows_are_not_merged() -> None:
    counts = WindowCounts.from_corpus(corpus_of([[0, 1]]), 2)
    with pytest.raises(InputError, match=r"vocabulary=first\.vocabulary"):
        counts.merge(WindowCounts.from_corpus(corpus_of([[0, 1]], n_words=8), 2))
    with pytest.raises(InputError, match="windows of 2 and 3"):
        counts.merge(WindowCounts.from_corpus(corpus_of([[0, 1]]), 3))


def test_merging_adds_word_frequencies() -> None:
    first = Corpus.from_texts(["a b a"])
    second = Corpus.from_texts(["b c"], vocabulary=first.vocabulary)
    counts = WindowCounts.from_corpus(first, 2).merge(WindowCounts.from_corpus(second, 2))
    assert counts.vocabulary.counts.tolist() == [2, 2]
    assert counts.vocabulary.document_counts.tolist() == [1, 2]


def test_saved_counts_come_back(tmp_path: Path) -> None:
    counts = WindowCounts.from_corpus(corpus_of([[0, 1, 2, 0], [3, 3, 1]]), window=2)
    counts.save(tmp_path / "counts")
    loaded = WindowCounts.load(tmp_path / "counts")
    assert as_counters(loaded) == as_counters(counts)
    assert loaded.vocabulary == counts.vocabulary
    assert loaded.window == 2


def test_a_graph_folder_is_not_taken_for_counts(tmp_path: Path) -> None:
    from wgcn import WordGraph

    WordGraph.from_corpus(Corpus.from_texts(["a b"])).save(tmp_path / "graph")
    with pytest.raises(StoreError, match=r"holds 'wgcn-graph', but 'wgcn-counts'"):
        WindowCounts.load(tmp_path / "graph")


@given(st.lists(st.lists(st.integers(0, 5), max_size=12), min_size=1, max_size=6), st.integers(1, 4))
def test_rare_pairs_can_be_left_out_while_counting(documents: list[list[int]], min_pairs: int) -> None:
    corpus = Corpus.from_texts([" ".join(f"w{i}" for i in document) for document in [*documents, [0, 1]]])
    everything = WindowCounts.from_corpus(corpus, 3)
    some, used = WindowCounts.of_frequent_pairs(corpus, 3, min_pairs=min_pairs)
    expected = everything.pair_windows.toarray()
    np.testing.assert_array_equal(some.pair_windows.toarray(), np.where(expected >= min_pairs, expected, 0))
    np.testing.assert_array_equal(some.word_windows, everything.word_windows)
    assert used == min_pairs


def test_in_more_text_a_pair_has_to_be_seen_more_often() -> None:
    rng = np.random.default_rng(0)
    ranks = (400 ** rng.random((500, 30))).astype(int)
    corpus = Corpus.from_texts([" ".join(f"w{i}" for i in row) for row in ranks])
    all_pairs = WindowCounts.from_corpus(corpus, 10).pair_windows
    counts, least = WindowCounts.of_frequent_pairs(corpus, 10, min_pairs=2, max_pairs=8_000)
    assert least > 2
    assert counts.pair_windows.nnz == (all_pairs.data >= least).sum()
    assert 4_000 < counts.pair_windows.nnz < 16_000  # it is estimated from few words
    assert WindowCounts.of_frequent_pairs(corpus, 10, min_pairs=2, max_pairs=10**6)[1] == 2


@given(st.dictionaries(st.integers(1, 9), st.integers(1, 30), min_size=1), st.integers(1, 2000))
def test_a_raised_limit_is_the_least_that_keeps_few_enough_pairs(times_of: dict[int, int], max_pairs: int) -> None:
    sizes = np.array(sorted(times_of))
    times = np.array([times_of[size] for size in sizes.tolist()])

    def kept(limit: int) -> int:
        return 64 * int(times[sizes >= limit].sum())  # one word in 64 is sampled

    limit = raised_limit(sizes, times, 1, max_pairs)
    assert kept(limit) <= max_pairs
    assert limit == 1 or kept(limit - 1) > max_pairs


def test_two_dimensional_counts_and_counts_that_no_text_gives_are_refused(tmp_path: Path) -> None:
    counts = WindowCounts.from_corpus(Corpus.from_texts(["red white wine", "red wine"]), 2)
    counts.save(tmp_path / "counts")
    file, document = tmp_path / "counts" / "counts.safetensors", tmp_path / "counts" / "config.json"
    tensors, config = load_file(file), json.loads(document.read_text())
    assert counts.n_windows == 3
    pairs = tensors["pair_windows.data"]
    for changed, settings in (
        ({"word_windows": tensors["word_windows"][:, None]}, {}),
        ({"word_windows": -tensors["word_windows"]}, {}),
        ({"word_windows": tensors["word_windows"].astype(np.float64)}, {}),
        ({"pair_windows.data": np.stack([pairs, pairs])}, {}),
        ({"pair_windows.data": pairs.astype(np.float32)}, {}),
        ({"pair_windows.data": pairs + 5}, {}),
        ({"pair_windows.data": 0 * pairs}, {}),
        ({"pair_windows.data": -pairs}, {}),
        ({"pair_windows.indices": tensors["pair_windows.indices"][::-1].copy()}, {}),
        ({"pair_windows.indices": 0 * tensors["pair_windows.indices"]}, {}),
        ({"vocabulary.document_counts": tensors["vocabulary.document_counts"] + 99}, {}),
        ({}, {"n_windows": 2**62}),
        ({}, {"n_windows": -1}),
        ({}, {"n_windows": 1}),
        ({}, {"window": 1}),
        ({}, {"window": True}),
    ):
        save_file({**tensors, **changed}, file)
        resigned = {**config, "config": {**config["config"], **settings}}
        resigned["files"] = {
            name: sha256((document.parent / name).read_bytes()).hexdigest() for name in config["files"]
        }
        document.write_text(json.dumps({**resigned, "digest": store._digest(resigned)}))
        with pytest.raises(StoreError):
            WindowCounts.load(tmp_path / "counts")
