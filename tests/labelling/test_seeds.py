from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from wgcn import Corpus
from wgcn.errors import InputError, WGCNWarning
from wgcn.labelling.seeds import (
    SeedRows,
    SeedWord,
    agreement,
    evidence,
    expand,
    find_seeds,
    label_evidence,
    near_words,
    nearness,
    problems,
    read_seed_options,
    read_seeds,
    seed_evidence,
    seed_report,
    seed_shares,
    shown_words,
)
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import TermWeighting, document_terms

TEXTS = ["game team score", "game team", "vote party law", "vote party", "hard disk drive", "disk drive", "hard work"]


def _found(seeds: object, classes: list[str], ngram_range: tuple[int, int] = (1, 2)) -> SeedRows:
    corpus = Corpus.from_texts(TEXTS, ngram_range=ngram_range)
    weighting = TermWeighting.from_counts(corpus.vocabulary.document_counts, len(corpus))
    terms = document_terms(corpus, weighting)
    return find_seeds(read_seeds(seeds), classes, corpus.vocabulary, weighting, terms, "words", ngram_range)


def _rows(names: list[str], classes: list[int], struck: list[bool] | None = None, n_words: int = 0) -> SeedRows:
    n = len(names)
    n_words = n_words or n
    rows = csr_array((np.ones(n, np.float32), np.arange(n), np.arange(n + 1)), shape=(n, n_words))
    words = [f"w{i}" for i in range(n_words)]
    flags = np.array(struck or [False] * n)
    counts = np.full(n, 9)
    vocabulary = Vocabulary(words, np.full(n_words, 9), np.full(n_words, 9))
    return SeedRows(tuple(names), np.array(classes), flags, rows, counts, max(classes) + 1, vocabulary)


# Reading


def test_words_with_a_minus_are_struck_and_a_list_of_names_is_its_own_seeds() -> None:
    given = read_seeds({"sport": ["game", "-card", "game"], "law": "court"})
    assert given.classes == ("sport", "law")
    assert given.seeds == (("game",), ("court",))
    assert given.struck == (("card",), ())
    assert read_seeds(["sport", "law"]).seeds == (("sport",), ("law",))
    assert read_seeds(given) is given


@pytest.mark.parametrize("wrong", ["sport", 3, {}, [], ["a", "a"], {"a": []}, {"a": ["-b"]}, {"a": [""]}, {"a": [3]}])
def test_what_is_no_seeds_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match=r"seed"):
        read_seeds(wrong)


def test_options_and_a_file_give_the_same(tmp_path: Path) -> None:
    file = tmp_path / "seeds.txt"
    file.write_text("# a note\nsport: game, free kick\n\nlaw\n", encoding="utf-8")
    assert read_seed_options(None, file) == {"sport": ["game", "free kick"], "law": ["law"]}
    assert read_seed_options(["sport=game,free kick", "law"]) == read_seed_options(None, file)
    assert read_seed_options(["sport=-card"], file)["sport"] == ["-card", "game", "free kick"]
    with pytest.raises(InputError, match="class=word"):
        read_seed_options(["sport="])
    with pytest.raises(InputError, match="cannot be read"):
        read_seed_options([], tmp_path / "none.txt")


def test_seeds_are_rows_of_their_words_and_count_their_texts() -> None:
    found = _found({"b": ["Game", "hard disk"], "a": ["vote", "-law"]}, ["a", "b"])
    assert found.names == ("Game", "hard disk", "vote", "law")
    assert found.classes.tolist() == [1, 1, 0, 0]
    assert found.struck.tolist() == [False, False, False, True]
    assert found.counts.tolist() == [2, 1, 2, 1]
    words = [found.vocabulary[i] for i in found.rows[[1]].indices]
    assert sorted(words) == ["disk", "hard", "hard disk"]
    np.testing.assert_allclose(np.sqrt(found.rows.power(2).sum(axis=1)), 1, rtol=1e-6)


def test_a_phrase_that_is_no_term_needs_a_text_with_all_its_words() -> None:
    assert _found({"a": ["hard drive"], "b": ["vote"]}, ["a", "b"]).counts.tolist() == [1, 2]
    with pytest.raises(InputError, match="'hard vote' of class 'a' is in no text"):
        _found({"a": ["hard vote"], "b": ["vote"]}, ["a", "b"])


def test_a_seed_in_no_text_is_an_error_with_near_words() -> None:
    with pytest.raises(InputError, match=r"'gaem' of class 'a' is in no text\. Near it are 'game'") as caught:
        _found({"a": ["gaem", "team"], "b": ["xyzzy"]}, ["a", "b"])
    assert "'xyzzy'" in str(caught.value)  # all of them at once


def test_near_words_are_those_spelt_alike_frequent_ones_first() -> None:
    vocabulary = Vocabulary(["the", "cryptography", "crypt", "crypts", "game"])
    assert near_words("crypto", vocabulary) == ["cryptography", "crypt", "crypts"]
    assert near_words("zzz", vocabulary) == []


# Arrays


def test_nearness_is_a_power_of_the_cosine_and_never_negative() -> None:
    places = np.array([[1, 0], [0, 1], [-1, 0], [0.6, 0.8]])
    np.testing.assert_allclose(nearness(places, places[:1]).ravel(), [1, 0, 0, 0.6**6])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(2, 4))
def test_evidence_equals_a_sum_over_seeds(seed: int, n_seeds: int, n_classes: int) -> None:
    random = np.random.default_rng(seed)
    near, weights = random.random((5, n_seeds)), random.uniform(-1, 1, n_seeds)
    classes = random.integers(0, n_classes, n_seeds)
    expected = np.zeros((5, n_classes))
    for s in range(n_seeds):
        expected[:, classes[s]] += weights[s] * near[:, s]
    np.testing.assert_allclose(evidence(near, weights, classes, n_classes), np.maximum(expected, 0), atol=1e-12)


def _topics(*topics: int) -> np.ndarray:
    """Return how near 30 documents of three topics are to seeds, each of one topic."""
    near = np.full((30, len(topics)), 0.01)
    for column, topic in enumerate(topics):
        near[10 * topic : 10 * topic + 10, column] = 1
    return near


def test_a_seed_of_another_class_agrees_least() -> None:
    weights = agreement(_topics(0, 0, 1, 1, 1, 1), _rows(list("abcdef"), [0, 0, 0, 1, 1, 1]))
    assert weights[2] < 0.2
    assert (weights[[0, 1, 3, 4, 5]] > 0.9).all()


def test_a_word_that_two_classes_share_counts_where_it_belongs() -> None:
    weights = agreement(_topics(0, 0, 1, 1, 1), _rows(["a", "b", "x", "x", "c"], [0, 0, 0, 1, 1]))
    assert weights[2] < 0.2 < 0.9 < weights[3]


def test_the_seeds_of_a_wide_class_are_not_wrong() -> None:
    weights = agreement(_topics(0, 1, 2, 2), _rows(["a", "b", "c", "d"], [0, 0, 1, 1]))
    np.testing.assert_allclose(weights[:2], 1, atol=0.05)


def test_a_seed_alone_counts_and_a_struck_word_counts_against() -> None:
    seeds = _rows(["a", "b", "c"], [0, 1, 0], [False, False, True])
    assert agreement(_topics(0, 1, 2), seeds).tolist() == [1, 1, -1]


def test_shares_follow_the_prior_and_are_0_without_evidence() -> None:
    found = np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    shares = seed_shares(found, np.zeros_like, lambda some: some, np.array([0.8, 0.2]))
    np.testing.assert_allclose(shares, [[0.8, 0.2], [0.8, 0.2], [0.0, 0.0]], rtol=1e-6)


def test_similar_documents_and_the_model_correct_the_shares() -> None:
    found, prior = np.array([[1.0, 0.0], [0.0, 1.0], [0.2, 0.3]]), np.array([0.5, 0.5])
    alone = seed_shares(found, np.zeros_like, lambda some: some, prior)
    assert alone[2, 1] > 0.5
    beside = seed_shares(found, np.zeros_like, lambda some: some[[0, 1, 0]], prior)
    assert beside[2, 1] < 0.5
    answers = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    asked = seed_shares(found, lambda shares: answers, lambda some: some, prior)
    assert asked[2, 1] < 0.01


def test_without_a_prior_the_model_of_equal_shares_gives_it() -> None:
    found = np.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 2 + [[0.3, 0.2]])
    asked = []

    def fit(shares: np.ndarray) -> np.ndarray:
        asked.append(shares)
        return 100 * (shares - 0.5)

    seed_shares(found, fit, lambda some: some)
    equal, fitted = (each[-1] for each in asked)
    raw = found[-1] / found.sum(axis=0)
    np.testing.assert_allclose(equal, raw / raw.sum(), rtol=1e-5)
    raw *= np.array([6 / 9, 3 / 9])  # the last document goes to the second class
    np.testing.assert_allclose(fitted, raw / raw.sum(), rtol=1e-5)


def _identity(terms: csr_array) -> np.ndarray:
    rows = terms.toarray()
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))


def test_evidence_of_documents_and_the_words_that_seeds_draw_in() -> None:
    near_word = np.eye(5, dtype=np.float32)
    near_word[2, 0] = near_word[3, 0] = near_word[4, 1] = 0.9  # w2 and w3 stand beside w0, w4 beside w1

    def place(terms: csr_array) -> np.ndarray:
        return _identity(csr_array(terms @ csr_array(near_word)))

    seeds = _rows(["w0", "w1"], [0, 1], n_words=5)
    documents = csr_array(np.array([[1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]], np.float32))
    found = seed_evidence(seeds, documents, place)
    np.testing.assert_array_equal(found.evidence.argmax(axis=1)[:2], [0, 1])
    np.testing.assert_array_equal(found.evidence[2], 0)
    assert [word.word for word in found.words[0]] == ["w0", "w2", "w3"]
    assert [word.given for word in found.words[1]] == [True, False]
    struck = _rows(["w0", "w1", "w2"], [0, 1, 0], [False, False, True], n_words=5)
    words = expand(struck, np.array([1.0, 1, -1]), place(struck.rows), place)
    assert [word.word for word in words[0]] == ["w0", "w3"]


def test_labelled_documents_count_as_seeds() -> None:
    documents = csr_array(np.eye(3, dtype=np.float32))
    found = label_evidence(documents, csr_array(documents[[2]]), np.array([[0.0, 1.0]]), _identity)
    np.testing.assert_array_equal(found, [[0, 0], [0, 0], [0, 1]])
    assert not label_evidence(documents, csr_array(documents[:0]), np.zeros((0, 2)), _identity).any()


# What the user sees


def test_problems_and_the_report_name_seeds_to_look_at() -> None:
    words = {
        "a": [SeedWord("x", 1.0, 20, True), SeedWord("rare", 1.0, 1, True), SeedWord("near", 0.1, 1, False)],
        "b": [SeedWord("x", 0.1, 20, True)],
    }
    found = problems(words)
    assert len(found) == 3
    assert "'x' is a seed of 'a' and 'b'" in found[0]
    assert "Only 1 text has 'rare'" in found[1]
    assert "another class than 'b'" in found[2]
    with pytest.warns(WGCNWarning, match="rare"):
        report = seed_report(read_seeds({"a": ["x", "rare", "-y"], "b": ["x"]}), words)
    assert report == {"seeds": {"a": ["x", "rare", "-y"], "b": ["x"]}, "seed_problems": found}


def test_words_are_shown_with_the_number_of_their_texts() -> None:
    shown = shown_words({"a": [SeedWord("x", 1.0, 2000, True)], "b": [SeedWord("y", 1.0, 1, True)]})
    assert shown.splitlines() == [
        "a",
        "  given  x (2,000)",
        "  added  no word",
        "b",
        "  given  y (1)",
        "  added  no word",
    ]
