"""Weights of held-out texts: about 1 in a random order, less for texts with siblings if siblings lie together."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from wgcn.trust import abstention as novelty
from wgcn.trust.abstention import novelty_weights


def threads(n_threads: int, size: int, rng: np.random.Generator) -> csr_array:
    """Texts in threads, which lie together: those of the first half of the threads are alike, others are not."""
    own = random_array((n_threads * size, 4000), density=0.01, rng=rng, format="csr").toarray()
    shared = np.repeat(random_array((n_threads, 4000), density=0.01, rng=rng).toarray(), size, axis=0)
    shared[len(shared) // 2 :] = 0
    rows = own + 3 * shared
    return csr_array(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def test_texts_with_siblings_beside_them_count_less() -> None:
    rng = np.random.default_rng(0)
    terms, codes = threads(80, 10, rng), np.zeros(800, np.int64)
    interleaved = np.argsort(np.tile(np.arange(400), 2), kind="stable")  # both kinds everywhere
    terms = terms[interleaved]
    has_sibling = interleaved < 400
    held_out = np.sort(rng.permutation(800)[:160])
    weights = novelty_weights(terms, codes, held_out)
    assert weights.sum() == pytest.approx(160)
    assert weights[has_sibling[held_out]].mean() < 0.5 * weights[~has_sibling[held_out]].mean()


def test_in_a_random_order_the_weights_are_about_equal() -> None:
    rng = np.random.default_rng(0)
    terms, codes = threads(80, 10, rng)[rng.permutation(800)], rng.integers(3, size=800)
    weights = novelty_weights(terms, codes, np.sort(rng.permutation(800)[:160]))
    assert weights.min() > 0.5
    assert weights.max() < 1.6


def test_far_away_means_far_in_the_own_class() -> None:
    codes = np.array([0, 1, 0, 1, 0, 0])
    np.testing.assert_allclose(novelty._places(codes), [0.125, 0.25, 0.375, 0.75, 0.625, 0.875])


def test_similarities_equal_brute_force() -> None:
    rng = np.random.default_rng(0)
    terms = threads(6, 5, rng)
    own, other = rng.random(10), rng.random(20)
    cosines = (terms[:10] @ terms[10:].T).toarray()
    far = np.where(np.abs(own[:, None] - other) > 0.1, cosines, 0).max(axis=1)
    found = novelty._similarities(terms[:10], terms[10:], [(own, other)])
    np.testing.assert_allclose(found, [cosines.max(axis=1), far])


def test_of_very_many_held_out_texts_some_are_compared() -> None:
    rng = np.random.default_rng(0)
    weights = novelty_weights(threads(20, 10, rng), rng.integers(2, size=200), np.arange(0, 200, 4), 20)
    assert np.count_nonzero(weights) <= 20
    assert weights.sum() == pytest.approx(20)


def test_in_cross_validation_a_text_counts_once_however_often_it_comes() -> None:
    weights = novelty_weights(csr_array(np.eye(3)), np.zeros(3, np.int64), np.array([0, 1, 2, 0, 1]))
    assert weights.tolist() == [0.5, 0.5, 1, 0.5, 0.5]


def test_words_that_many_texts_have_do_not_make_siblings() -> None:
    rows = np.column_stack([np.full((200, 1), 0.6), np.eye(200) * 0.8])
    assert novelty._without_common(csr_array(rows)).toarray().tolist() == (np.eye(200, 201, 1) * 0.8).tolist()
