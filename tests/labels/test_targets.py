"""Targets hold the ones of a 0/1 matrix, and answer as the dense matrix does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from wgcn.labels.targets import Targets

SHAPES = st.tuples(st.integers(1, 8), st.integers(1, 6))


@st.composite
def dense_targets(draw: st.DrawFn) -> np.ndarray:
    """A 0/1 matrix, with one class per document or with any number."""
    n, n_classes = draw(SHAPES)
    if draw(st.booleans()):
        codes = draw(arrays(np.int64, n, elements=st.integers(-1, n_classes - 1)))
        return np.vstack([np.eye(n_classes), np.zeros(n_classes)])[codes]
    return draw(arrays(np.float64, (n, n_classes), elements=st.sampled_from([0.0, 1.0])))


@given(dense_targets(), st.data())
def test_targets_are_as_the_dense_matrix(dense: np.ndarray, data: st.DataObject) -> None:
    n, n_classes = dense.shape
    weight = np.random.default_rng(0).random(n) + 0.5
    begin = data.draw(st.integers(0, n_classes))
    end = data.draw(st.integers(begin, n_classes))
    rows = data.draw(arrays(np.int64, st.integers(0, 6), elements=st.integers(0, n - 1)))
    order = np.random.default_rng(1).permutation(n_classes)
    found = [Targets.of(dense), Targets.of(csr_array(dense)), Targets(csr_array(dense.astype(np.float32)), n_classes)]
    if (dense.sum(axis=1) <= 1).all():
        found.append(Targets.single(np.where(dense.any(axis=1), dense.argmax(axis=1), -1), n_classes))
    for targets in found:
        assert targets.shape == dense.shape
        assert len(targets) == n
        assert targets.toarray().dtype == np.float32
        assert np.array_equal(targets.toarray(), dense)
        assert np.array_equal(targets.matrix.toarray(), dense)
        assert np.array_equal(targets.codes, dense.argmax(axis=1))
        assert np.array_equal(targets.columns(begin, end), dense[:, begin:end])
        assert np.array_equal(targets.sums(), dense.sum(axis=0))
        assert targets.sums(weight) == pytest.approx(weight @ dense)
        assert targets.shares(weight) == pytest.approx(np.average(dense, axis=0, weights=weight))
        assert np.array_equal(targets[rows].toarray(), dense[rows])
        assert np.array_equal(targets[dense[:, 0] > 0].toarray(), dense[dense[:, 0] > 0])
        assert np.array_equal(targets[1:3].toarray(), dense[1:3])
        assert np.array_equal(targets.without_first().toarray(), dense[:, 1:])
        assert np.array_equal(targets.without_first().unlike(0), (dense[:, 1:] != dense[0, 1:]).any(axis=1))
        renumbered = targets.renumbered(order, n_classes)
        assert np.array_equal(renumbered.toarray()[:, order], dense)
        assert np.array_equal(renumbered.codes, renumbered.toarray().argmax(axis=1))  # the first of several
        assert renumbered.matrix.has_sorted_indices
        assert np.array_equal(targets.unlike(0), (dense != dense[0]).any(axis=1))
        for other in found:
            assert np.array_equal(Targets.stacked([targets, other]).toarray(), np.vstack([dense, dense]))


def test_targets_of_targets_are_the_same() -> None:
    targets = Targets.single([0, 1], 2)
    assert Targets.of(targets) is targets


def test_a_million_documents_of_a_hundred_thousand_classes_take_four_bytes_each() -> None:
    targets = Targets.single(np.arange(1_000_000) % 100_000, 100_000)
    assert targets.held.nbytes == 4_000_000
    assert np.array_equal(targets.sums(), np.full(100_000, 10))
    assert targets.columns(99_998, 100_000).sum() == 20
