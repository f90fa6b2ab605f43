"""Both numberings of n-grams are held equal to `ngrams` and a dictionary, id for id."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wgcn.text.ngrams import NgramTable, ngrams, number_ngrams

ranges = st.sampled_from([(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 5), (1, 5), (5, 5)])
word = st.sampled_from("abcd")
entries = st.lists(st.lists(word, min_size=1, max_size=6).map(" ".join), unique=True, max_size=60)
documents = st.lists(st.lists(st.sampled_from("abcdef"), max_size=12))


def looked_up(
    vocabulary: list[str], ngram_range: tuple[int, int], tokens: list[list[str]], stop_words: str = ""
) -> list[list[int]]:
    table = NgramTable(vocabulary, ngram_range, stop_words)
    ids = np.array([table.index.get(token, -1) for document in tokens for token in document], np.int32)
    found, offsets = table.look_up(ids, np.cumsum([0, *map(len, tokens)], dtype=np.int64))
    assert (found.dtype, offsets.dtype, offsets[-1]) == (np.int32, np.int64, len(found))
    return [found[a:b].tolist() for a, b in pairwise(offsets)]


@given(entries, ranges, documents)
@example(["a b c"], (1, 3), [["a", "b", "c"], ["a", "b"], ["c"]])  # a beginning that is no entry
@example(["a b c", "b c"], (2, 3), [["a", "z", "b", "c"], [], ["a"]])
@example([], (1, 2), [["a", "b"]])
@example(["a"], (2, 3), [["a", "a"]])
@example(["a b"], (1, 2), [])
def test_ids_are_those_of_the_joined_words(
    vocabulary: list[str], ngram_range: tuple[int, int], tokens: list[list[str]]
) -> None:
    index = {entry: i for i, entry in enumerate(vocabulary)}
    expected = [[index.get(ngram, -1) for ngram in ngrams(document, ngram_range)] for document in tokens]
    assert looked_up(vocabulary, ngram_range, tokens) == expected


@given(ranges, documents)
@example((3, 3), [["a", "b"]])
@example((1, 2), [])
def test_a_corpus_has_the_ngrams_of_its_documents(ngram_range: tuple[int, int], tokens: list[list[str]]) -> None:
    words = list("fedcba")
    ids = np.array([words.index(token) for document in tokens for token in document], np.int32)
    offsets = np.cumsum([0, *map(len, tokens)], dtype=np.int64)
    numbered, offsets, distinct = number_ngrams(ids, offsets, words, ngram_range)
    assert (numbered.dtype, offsets.dtype, len(set(distinct))) == (np.int32, np.int64, len(distinct))
    found = [[distinct[i] for i in numbered[a:b]] for a, b in pairwise(offsets)]
    assert found == [ngrams(document, ngram_range) for document in tokens]


@given(entries, ranges, documents, st.text("abef"))
@example(["a", "a c"], (1, 2), [["a", "b", "c"], ["b"], ["a", "b"], ["c"]], "b")
def test_ngrams_go_across_stop_words(
    vocabulary: list[str], ngram_range: tuple[int, int], tokens: list[list[str]], stop_words: str
) -> None:
    kept = [[token for token in document if token not in stop_words] for document in tokens]
    found = looked_up(vocabulary, ngram_range, tokens, stop_words)
    without = looked_up(vocabulary, ngram_range, kept)
    assert [[i for i in ids if i >= 0] for ids in found] == [[i for i in ids if i >= 0] for ids in without]
    # A stop word is itself an n-gram of one word, which is not known.
    n_stopped = [ngram_range[0] == 1 and len(all_) - len(some) for all_, some in zip(tokens, kept, strict=True)]
    assert [len(ids) for ids in found] == [len(ids) + n for ids, n in zip(without, n_stopped, strict=True)]


def test_a_stop_word_stands_in_its_place() -> None:
    assert looked_up(["a", "c", "a c"], (1, 2), [["a", "b", "c"], ["b"]], "b") == [[0, 2, -1, 1], [-1]]


def test_words_of_two_documents_do_not_join() -> None:
    assert looked_up(["a b"], (2, 2), [["a"], ["b", "a"], ["b"], ["a", "b"]]) == [[], [-1], [], [0]]


@pytest.mark.parametrize("entry", ["a  b", " a", "a ", "", " "])
def test_an_entry_that_is_not_words_joined_by_one_space_is_never_found(entry: str) -> None:
    assert looked_up([entry, "b"], (1, 3), [["a", "b", "a"]]) == [[-1, -1, -1, 1, -1, -1]]


def test_many_ngrams_are_found() -> None:
    rng = np.random.default_rng(0)
    document = [f"w{i}" for i in rng.integers(300, size=20_000)]
    vocabulary = sorted(set(ngrams(document, (1, 3))))[::2]
    index = {entry: i for i, entry in enumerate(vocabulary)}
    assert looked_up(vocabulary, (1, 3), [document]) == [[index.get(ngram, -1) for ngram in ngrams(document, (1, 3))]]
