from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from wgcn.semi.seed_words import SeedRows, SeedTrust
from wgcn.semi.seeds import (
    SeedEvidence,
    agreement,
    class_shares,
    evidence,
    expand,
    faith,
    hidden_agreement,
    hit_shares,
    label_evidence,
    nearness,
    seed_evidence,
    seed_hits,
    seed_shares,
)
from wgcn.text.vocabulary import Vocabulary


def _rows(names: list[str], classes: list[int], struck: list[bool] | None = None, n_words: int = 0) -> SeedRows:
    n = len(names)
    n_words = n_words or n
    rows = csr_array((np.ones(n, np.float32), np.arange(n), np.arange(n + 1)), shape=(n, n_words))
    words = [f"w{i}" for i in range(n_words)]
    flags = np.array(struck or [False] * n)
    counts = np.full(n, 9)
    vocabulary = Vocabulary(words, np.full(n_words, 9), np.full(n_words, 9))
    return SeedRows(tuple(names), np.array(classes), flags, rows, counts, max(classes) + 1, vocabulary)


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
    near = np.full((30, len(topics)), 1e-4)  # a cosine of 0.2
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


def test_a_word_of_two_classes_counts_in_the_one_it_agrees_with_better_and_not_at_all_in_the_other() -> None:
    near = _topics(0, 0, 2, 1, 1, 2)
    near[:2, [2, 5]] = 0.1  # it has a topic of its own, and a little of the first
    rows = _rows(["a", "b", "x", "c", "d", "x"], [0, 0, 0, 1, 1, 1])
    weights = agreement(near, rows)
    assert weights[2] > 0
    assert weights[5] == 0


def test_a_word_of_two_classes_stays_where_it_is_the_only_seed() -> None:
    rows = _rows(["x", "x", "b", "c"], [0, 1, 1, 2])
    np.testing.assert_array_equal(agreement(_topics(0, 0, 1, 2), rows)[:2], [1, 0])


def test_a_class_does_not_lose_all_its_seeds_to_another() -> None:
    near = _topics(0, 1, 0, 0, 1)
    near[10:20, 2] = 1  # z has both topics, so that x and y agree better with the first class
    weights = agreement(near, _rows(["x", "y", "z", "x", "y"], [0, 0, 0, 1, 1]))
    assert (weights > 0).all()


def test_a_word_that_is_struck_elsewhere_is_not_shared() -> None:
    rows = _rows(["x", "b", "c", "x"], [0, 0, 1, 1], [False, False, False, True])
    weights = agreement(_topics(0, 1, 2, 0), rows)
    assert weights[0] > 0
    assert weights[3] == -1


def test_the_seeds_of_a_wide_class_are_not_wrong() -> None:
    weights = agreement(_topics(0, 1, 2, 2), _rows(["a", "b", "c", "d"], [0, 0, 1, 1]))
    np.testing.assert_allclose(weights[:2], 1, atol=0.05)


def test_a_word_unlike_all_seeds_stays_in_the_wide_class() -> None:
    near = _topics(0, 1, 2, 0, 0, 2)
    near[:10, [2, 5]] = 1e-3  # a little nearer to the narrow class, whose other seeds are alike
    weights = agreement(near, _rows(["b", "c", "x", "d", "e", "x"], [0, 0, 0, 1, 1, 1]))
    assert weights[2] > 0.9
    assert weights[5] == 0


def test_what_is_hardly_like_any_class_is_not_wrong() -> None:
    near = np.eye(30)[:, :4]  # each seed is near to one text of its own
    near[20, [0, 2]] = 1e-9
    weights = agreement(near, _rows(list("abcd"), [0, 0, 1, 1]))
    np.testing.assert_allclose(weights, 1, atol=0.05)


def test_a_seed_alone_counts_and_a_struck_word_counts_against() -> None:
    seeds = _rows(["a", "b", "c"], [0, 1, 0], [False, False, True])
    assert agreement(_topics(0, 1, 2), seeds).tolist() == [1, 1, -1]


TRUST = SeedTrust(0.5, 0.0, 1.0, 0.5, 1.0, 500)  # other words tell the classes


def _found(evidence: np.ndarray, hits: np.ndarray | None = None, trust: SeedTrust = TRUST) -> SeedEvidence:
    return SeedEvidence(evidence, np.zeros_like(evidence) if hits is None else hits, [], trust)


def _no_model(shares: np.ndarray) -> np.ndarray:
    return np.zeros_like(shares)


def test_shares_are_0_without_evidence_and_equal_where_nothing_tells_more() -> None:
    found = _found(np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]))
    shares = seed_shares(found, _no_model, lambda some: some, np.array([0.5, 0.5]))
    np.testing.assert_allclose(shares, [[0.5, 0.5], [0.5, 0.5], [0.0, 0.0]], rtol=1e-6)


def test_given_shares_count_alone_where_words_tell_nothing_and_a_third_where_they_do() -> None:
    evidence, prior = np.array([[1.0, 1.0]] * 4), np.array([0.8, 0.2])
    alone, both = (
        seed_shares(_found(evidence, None, trust), _no_model, lambda some: some, prior)[0]
        for trust in (TRUST._replace(kappa=0.0), TRUST)
    )
    np.testing.assert_allclose(alone, prior, rtol=1e-6)
    np.testing.assert_allclose(both, np.cbrt(prior) / np.cbrt(prior).sum(), rtol=1e-6)  # estimated: equal shares


def test_similar_documents_and_the_model_correct_the_shares() -> None:
    found, prior = _found(np.array([[1.0, 0.0], [0.0, 1.0], [0.2, 0.3]])), np.array([0.5, 0.5])
    alone = seed_shares(found, _no_model, lambda some: some, prior)
    assert alone[2, 1] > 0.5
    beside = seed_shares(found, _no_model, lambda some: some[[0, 1, 0]], prior)
    assert beside[2, 1] < 0.5
    answers = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    asked = seed_shares(found, lambda shares: answers, lambda some: some, prior)
    assert asked[2, 1] < 0.01


def test_a_seed_that_a_document_has_counts() -> None:
    evidence, hits = np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 0.0]])
    shares = seed_shares(_found(evidence, hits), _no_model, lambda some: some, np.array([0.5, 0.5]))
    np.testing.assert_allclose(shares, [[0.8, 0.2], [0.5, 0.5]], rtol=1e-5)  # four times as likely


def test_shares_are_no_more_certain_than_hidden_seeds_are_told() -> None:
    random = np.random.default_rng(0)
    evidence, equal = random.random((200, 3)) ** 8, np.full(3, 1 / 3)
    sure, unsure = (
        seed_shares(_found(evidence, None, TRUST._replace(agreement=right)), _no_model, lambda some: some, equal)
        for right in (1.0, 0.5)
    )
    assert sure.max(axis=1).mean() > 0.7
    assert unsure.max(axis=1).mean() == pytest.approx(0.5, abs=1e-3)
    np.testing.assert_array_equal(sure.argmax(axis=1), unsure.argmax(axis=1))


def test_class_sizes_come_from_a_model_only_where_it_can_tell_classes() -> None:
    hits = np.array([[1.0, 0.0]] * 30 + [[0.0, 1.0]] * 10)
    found = np.ones((40, 2))

    def fit(shares: np.ndarray) -> np.ndarray:
        return np.tile([0.0, 2.0], (len(shares), 1))  # nearly all documents are of the second class

    by_model, by_hits = (class_shares(found, hits, kappa, fit) for kappa in (0.9, 0.1))
    assert by_model[1] > 0.9
    np.testing.assert_allclose(by_hits, hit_shares(hits))
    np.testing.assert_allclose(by_hits, [31 / 42, 11 / 42])
    np.testing.assert_allclose(class_shares(found, hits, 0.9, _no_model), [0.5, 0.5])  # no more than chance


def test_a_document_has_the_classes_of_its_seeds_and_a_phrase_needs_all_its_words() -> None:
    rows = csr_array(np.array([[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]], np.float32))
    seeds = replace(_rows(list("abc"), [0, 1, 1], n_words=4), rows=rows)
    terms = csr_array(np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0]], np.float32))
    hits = seed_hits(terms, seeds, np.ones(3))
    np.testing.assert_allclose(hits, [[1, 0], [0, 0], [0, 1], [0.5, 0.5], [0, 0]])
    wide = replace(seeds, rows=csr_array(rows @ np.eye(4, 200)))
    assert seed_hits(csr_array(np.ones((1, 200), np.float32)), wide, np.ones(3)).sum() == pytest.approx(0.5)  # long


@pytest.mark.parametrize("topics", [True, False])
def test_hidden_seeds_tell_topics_from_opinions(topics: bool) -> None:
    random, n = np.random.default_rng(0), 400
    own = random.integers(0, 2, n)
    terms = np.zeros((n, 62), np.float32)
    terms[np.arange(n), own] = 1  # its seed
    for row, topic in zip(terms, own, strict=True):
        row[2 + 30 * (topic if topics else random.integers(2)) + random.integers(0, 30, 6)] = 1
    seeds = _rows(["w0", "w1"], [0, 1], n_words=62)
    hits = seed_hits(csr_array(terms), seeds, np.ones(2))
    trust = hidden_agreement(csr_array(terms), seeds, hits)
    assert (trust.coverage, trust.conflicts) == (1, 0)
    assert trust.is_low is not topics
    assert (faith(trust.kappa), trust.doubt() is None) == ((1, True) if topics else (0, False))
    assert trust.by_chance == pytest.approx(0.5, abs=0.02)
    assert trust.expected() <= trust.agreement


def test_seeds_of_very_few_texts_are_taken_for_topics_and_not_for_useless() -> None:
    seeds, terms = _rows(["w0", "w1"], [0, 1]), csr_array(np.eye(2, dtype=np.float32))
    trust = hidden_agreement(terms, seeds, seed_hits(terms, seeds, np.ones(2)))
    assert (trust.n_judged, trust.kappa, trust.is_low) == (0, 0.5, False)
    assert "too few to tell" in trust.told()
    assert hidden_agreement(csr_array((3, 2)), seeds, np.zeros((3, 2))).coverage == 0


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
    found = seed_evidence(seeds, documents, place, np.arange(5))
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
