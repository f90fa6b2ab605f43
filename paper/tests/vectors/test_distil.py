"""Distilled vectors of words against ridge regression."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from wgcn_paper.vectors.distil import distil


def documents(n: int, v: int, seed: int) -> csr_array:
    rng = np.random.default_rng(seed)
    dense = random_array((n, v), density=0.3, rng=rng).toarray()
    dense[np.arange(n), rng.integers(0, v, n)] += 0.5
    return csr_array((dense / np.linalg.norm(dense, axis=1, keepdims=True)).astype(np.float32))


@pytest.mark.parametrize(("n", "v"), [(30, 12), (10, 40)])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=20)
def test_it_is_ridge_regression_on_the_centred_vectors(n: int, v: int, seed: int) -> None:
    terms = documents(n, v, seed)
    vectors = np.random.default_rng(seed).normal(size=(n, 4)).astype(np.float32)
    dense = terms.toarray().astype(float)
    expected = np.linalg.solve(dense.T @ dense + np.eye(v), dense.T @ (vectors - vectors.mean(axis=0)))
    np.testing.assert_allclose(distil(terms, vectors), expected, atol=0.01 * np.abs(expected).max())


def test_documents_come_near_to_what_the_encoder_says_of_them() -> None:
    rng = np.random.default_rng(0)
    terms, words = documents(400, 60, 1), rng.normal(size=(60, 8)).astype(np.float32)
    vectors = terms @ words + rng.normal(scale=0.05, size=(400, 8))
    table = distil(terms[:300], vectors[:300])
    new = vectors[300:] - vectors[:300].mean(axis=0)
    left = np.linalg.norm(terms[300:] @ table - new) / np.linalg.norm(new)
    assert left < 0.5


def test_vectors_that_are_all_the_same_say_nothing() -> None:
    assert not distil(documents(10, 5, 0), np.ones((10, 3), np.float32)).any()


def test_a_second_call_gives_the_same_bits() -> None:
    terms, vectors = documents(50, 20, 0), np.random.default_rng(0).normal(size=(50, 6))
    assert distil(terms, vectors).tobytes() == distil(terms, vectors).tobytes()
