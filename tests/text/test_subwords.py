"""Subwords against a brute-force reference in plain Python."""

from collections import Counter
from math import log

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wgcn.estimators.preparation import Preparation
from wgcn.scoring.scorer import add_up
from wgcn.text.kernels import add_subwords
from wgcn.text.subwords import (
    Subwords,
    compiled_parts,
    find_subwords,
    subword_hashes,
    subword_places,
)
from wgcn.text.tokenize import WordBytes
from wgcn.text.vocabulary import Vocabulary

# Few different characters, so that words share subwords; and any: beyond the first plane, surrogates, spaces.
some_words = st.one_of(
    st.text("ab", max_size=7),
    st.text("aé今😀\ud800<>", max_size=9),
    st.text(st.characters(), max_size=12),
    st.integers(60, 70).map(lambda n: "ab" * (n // 2) + "c" * (n % 2)),
)
words_of_texts = st.lists(some_words, max_size=20)
single_words = st.text("abc", min_size=1, max_size=6)


def ngrams_of(word: str) -> list[str]:
    """Return the subwords of a word, the short ones first."""
    if not word or len(word) > 64 or " " in word:
        return []
    whole = f"<{word}>"
    return [whole[i : i + n] for n in (2, 3, 4, 5) for i in range(len(whole) - n + 1)]


def hash_of(ngram: str) -> int:
    """Return FNV-1a over code points in 32 bits, mixed as in the first half of MurmurHash3's last step."""
    value = 0x811C9DC5
    for character in ngram:
        value = (value ^ ord(character)) * 0x01000193 % 2**32
    value = (value ^ value >> 16) * 0x85EBCA6B % 2**32
    return value ^ value >> 13


@given(words_of_texts)
@example(["", "a" * 64, "b" * 65, "", "😀"])
@example(["two words", "two"])
@example([])
def test_hashes_are_those_of_the_reference_word_by_word(words: list[str]) -> None:
    hashes, offsets = subword_hashes(words)
    expected = [[hash_of(ngram) for ngram in ngrams_of(word)] for word in words]
    assert offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert hashes.tolist() == [value for own in expected for value in own]
    assert (hashes.dtype, offsets.dtype) == (np.uint32, np.int64)


@given(words_of_texts, st.integers(0, 20))
def test_a_word_has_the_same_hashes_alone_and_among_others(words: list[str], place: int) -> None:
    hashes, offsets = subword_hashes([*words[:place], "banana", *words[place:]])
    place = min(place, len(words))
    assert np.array_equal(hashes[offsets[place] : offsets[place + 1]], subword_hashes(["banana"])[0])


def test_no_two_subwords_of_a_few_characters_share_a_hash() -> None:
    words = [a + b + c for a in "abcdefghij" for b in "abcdefghij" for c in "abcdefghij"]
    ngrams = {ngram for word in words for ngram in ngrams_of(word)}
    hashes = {hash_of(ngram) for ngram in ngrams}
    assert len(hashes) == len(ngrams)
    low_bits = Counter(value % 16 for value in hashes)
    high_bits = Counter(value >> 28 for value in hashes)
    for counts in (low_bits, high_bits):  # spread over all bits
        assert min(counts.values()) > 0.7 * len(hashes) / 16


def test_there_are_at_most_four_subwords_per_character_and_end() -> None:
    words = ["a" * n for n in range(66)] * 20
    hashes, _ = subword_hashes(words)
    assert len(hashes) == 20 * sum(sum(max(n + 2 - k + 1, 0) for k in (2, 3, 4, 5)) for n in range(1, 65))
    assert len(hashes) <= 4 * sum(len(word) + 2 for word in words)


def kept_by_the_definition(words: list[str], counts: list[int], n_documents: int) -> dict[int, float]:
    """Return the idf of the subwords that are kept, by their hashes."""
    n_words, n_in = Counter[int](), Counter[int]()
    for word, count in zip(words, counts, strict=True):
        for ngram in ngrams_of(word):
            n_words[hash_of(ngram)] += 1
            n_in[hash_of(ngram)] += count
    kept = [value for value in n_words if n_words[value] >= 2 and n_in[value] >= 3]
    return {value: log((1 + n_documents) / (1 + min(n_in[value], n_documents))) + 1 for value in kept}


def assert_are_those_of(found: Subwords, words: list[str], expected: dict[int, float]) -> None:
    assert found.hashes.tolist() == sorted(expected)
    np.testing.assert_allclose(found.weights, [expected[value] for value in sorted(expected)], rtol=1e-6)
    place_of = {value: place for place, value in enumerate(sorted(expected))}
    places = [[place_of[value] for ngram in ngrams_of(word) if (value := hash_of(ngram)) in place_of] for word in words]
    assert found.offsets.tolist() == np.cumsum([0, *map(len, places)]).tolist()
    assert found.places.tolist() == [place for own in places for place in own]
    assert tuple(part.dtype for part in found) == (np.uint32, np.float32, np.int32, np.int64)


@given(
    st.lists(st.one_of(single_words, st.builds("{} {}".format, single_words, single_words)), unique=True, max_size=25),
    st.lists(st.integers(1, 9), min_size=25, max_size=25),
    st.integers(9, 40),
)
@example([], [1] * 25, 9)
@example(["aa aa", "aa ab"], [9] * 25, 9)
def test_subwords_of_a_vocabulary_are_those_of_the_definition(
    words: list[str], counts: list[int], n_documents: int
) -> None:
    counts = counts[: len(words)]
    found = find_subwords(Vocabulary(words, np.array(counts, int), np.array(counts, int)), n_documents)
    assert_are_those_of(found, words, kept_by_the_definition(words, counts, n_documents))


def test_ngrams_have_no_subwords_and_do_not_count_for_those_of_words() -> None:
    words = ["red", "reds", "red wine", "reds wine"]
    counts = np.full(4, 5)
    found = find_subwords(Vocabulary(words, counts, counts), 20)
    assert np.diff(found.offsets).tolist() == [6, 6, 0, 0]  # <r, re, ed, <re, red and <red
    alone = find_subwords(Vocabulary(words[:2], counts[:2], counts[:2]), 20)
    assert all(np.array_equal(one, two) for one, two in zip(found[:3], alone[:3], strict=True))


@given(words_of_texts, st.lists(single_words, max_size=10))
@example(["a"], [])
@example([], ["a"])
def test_places_are_found_among_known_hashes_and_others_are_left_out(words: list[str], known: list[str]) -> None:
    hashes = np.array(sorted({hash_of(ngram) for word in known for ngram in ngrams_of(word)}), np.uint32)
    places, offsets = subword_places(words, hashes)
    expected = [
        [hashes.tolist().index(value) for ngram in ngrams_of(word) if (value := hash_of(ngram)) in hashes.tolist()]
        for word in words
    ]
    assert places.tolist() == [place for own in expected for place in own]
    assert offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert (places.dtype, offsets.dtype) == (np.int32, np.int64)  # those of words, for which code is compiled


@pytest.mark.parametrize("known", [[0], [2**32 - 1], [0, 2**32 - 1]])
def test_the_smallest_and_the_largest_hash_are_found_only_where_they_are(known: list[int]) -> None:
    places, offsets = subword_places(["red", "wine"], np.array(known, np.uint32))
    assert places.tolist() == []
    assert offsets.tolist() == [0, 0, 0]


def test_the_matrix_has_the_subwords_of_a_word_by_their_own_idf() -> None:
    texts = ["red wine", "redder wines", "red reds", "a wine redder", "reddest wined"]
    prepared = Preparation().prepare(texts)
    matrix = prepared.subword_matrix(0.5)
    assert matrix is not None
    words, idf = prepared.vocabulary.words, prepared.weighting.idf
    expected = kept_by_the_definition(list(words), prepared.vocabulary.document_counts.tolist(), len(texts))
    columns = {value: place for place, value in enumerate(sorted(expected))}
    dense = np.zeros((len(words), len(columns)))
    for row, word in enumerate(words):
        for ngram in ngrams_of(word):
            if (value := hash_of(ngram)) in columns:
                dense[row, columns[value]] += expected[value] / idf[row]
    assert len(columns) > 10
    np.testing.assert_allclose(matrix.toarray(), dense, rtol=1e-5)
    assert prepared.subword_matrix(0) is None


def test_a_tiny_corpus_has_no_subwords() -> None:
    matrix = Preparation().prepare(["red", "blue"]).subword_matrix()
    assert matrix is not None
    assert matrix.shape == (2, 0)


@given(st.lists(st.text(max_size=70), max_size=8), st.lists(st.text(max_size=12), max_size=8))
def test_compiled_code_finds_the_same_subwords(known: list[str], words: list[str]) -> None:
    hashes = np.unique(subword_hashes(known)[0])
    table = np.random.default_rng(0).standard_normal((len(hashes), 3)).astype(np.float32)
    places, offsets = subword_places(words, hashes)
    expected = add_up(table, np.ones(len(places), np.float32), places, offsets)
    assert np.array_equal(add_subwords(*WordBytes.of(words), table, *compiled_parts(hashes)), expected)


def test_hashes_of_one_bucket_and_those_at_its_ends_are_found() -> None:
    hashes = np.array([0, 1, 2**14 - 1, 2**14, 2**31, 2**32 - 2, 2**32 - 1], np.uint32)
    padded, starts = compiled_parts(hashes)[:2]
    assert padded[:-1].tolist() == hashes.tolist()
    assert starts[:3].tolist() == [0, 3, 4]
    assert starts[-2:].tolist() == [5, 7]
