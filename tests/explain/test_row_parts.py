"""The neighbours that a model keeps of its graph."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from wgcn.explain.explanation import make_split


@given(seed=st.integers(0, 1000), n=st.integers(1, 12), k=st.integers(1, 6), ties=st.booleans())
@settings(max_examples=60)
def test_the_strongest_neighbours_are_kept_and_equal_ones_by_their_order(seed: int, n: int, k: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    a = rng.choice([0.0, 0.25, 0.5], (n, n)) if ties else rng.random((n, n)) * (rng.random((n, n)) < 0.5)
    a = np.triu(a) + np.triu(a, 1).T
    u = np.ones((n, 2)) if ties else rng.standard_normal((n, 2))
    linked = a.any(axis=1)
    split = make_split(csr_array(a.astype(np.float32)), u[linked].astype(np.float32), 0.5, k)
    others = a * (1 - np.eye(n))
    assert split.words.tolist() == np.flatnonzero(others.any(axis=1)).tolist()
    own = u * (1 + 0.5 * np.diag(a))[:, None]
    np.testing.assert_allclose(split.own, own[split.words], rtol=1e-3, atol=1e-6)
    sizes = others.astype(np.float32) * np.linalg.norm(u, axis=1).astype(np.float32)
    for word, places, strengths in zip(split.words, split.neighbours, split.strengths, strict=True):
        best = [j for j in np.argsort(-sizes[word], kind="stable")[:k] if sizes[word, j] > 0]
        found = split.words[places[strengths != 0]]
        assert found.tolist() == best
        parts = strengths[strengths != 0, None].astype(float) * split.own[places[strengths != 0]]
        np.testing.assert_allclose(parts, 0.5 * a[word, best][:, None] * u[best], rtol=5e-3, atol=1e-5)


def test_values_beyond_half_precision_stay_finite() -> None:
    a = csr_array(np.array([[0, 1], [1, 0]], np.float32))
    split = make_split(a, np.array([[1e9], [-1e9]], np.float32), 1.0)
    assert np.isfinite(split.own).all()


def test_without_a_graph_there_is_nothing_to_keep() -> None:
    linked, empty = csr_array(np.ones((3, 3), np.float32)), csr_array((3, 3), dtype=np.float32)
    for graph, rows, factor in ((linked, np.empty((0, 2), np.float32), 0.0), (empty, np.empty((0, 2)), 1.0)):
        split = make_split(graph, rows, factor)
        assert (len(split.words), split.own.shape, split.neighbours.shape) == (0, (0, 2), (0, 5))
