"""The look-up of n-grams, plain and compiled, is held equal to `ngrams` and a dictionary, id for id."""

from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wgcn.text.kernels import LookUpTable
from wgcn.text.ngrams import NgramTable, ngrams
from wgcn.text.tokenize import TextBytes

ranges = st.sampled_from([(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 5), (1, 5), (5, 5)])
word = st.sampled_from("abcd")
entries = st.lists(st.lists(word, min_size=1, max_size=6).map(" ".join), unique=True, max_size=60)
documents = st.lists(st.lists(st.sampled_from("abcdef"), max_size=12))


def looked_up(
    vocabulary: list[str], ngram_range: tuple[int, int], tokens: list[list[str]], stop_words: str = ""
) -> list[list[int]]:
    table = NgramTable(vocabulary, ngram_range, stop_words)
    ids = np.array([table.index.get(token, -1) for document in tokens for token in document], np.int32)
    found, offsets, new_tokens, new_places = table.look_up(ids, np.cumsum([0, *map(len, tokens)], dtype=np.int64))
    all_tokens = list(chain(*tokens))
    lines = "".join(f"{token}\n" for token in all_tokens).encode()
    ends = np.cumsum([0, *(sum(len(token) + 1 for token in document) for document in tokens)], dtype=np.int64)
    given = TextBytes(np.frombuffer(lines, np.uint8), ends, by_words=False, n_replaced=0)
    ids, starts, places, numbers, words, n_words = LookUpTable(table).encode(given)
    assert n_words == len(all_tokens)
    assert (ids.tolist(), starts.tolist()) == (found.tolist(), offsets.tolist())
    assert [words.decoded()[i] for i in numbers] == [all_tokens[i] for i in new_tokens]
    assert places.tolist() == new_places.tolist()
    is_new = ngram_range[0] == 1 and [token not in stop_words and token not in vocabulary for token in all_tokens]
    assert new_tokens.tolist() == np.flatnonzero(is_new).tolist()
    assert (found[new_places] == -1).all()
    assert (np.diff(new_places) > 0).all()
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
