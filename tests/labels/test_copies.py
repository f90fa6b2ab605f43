"""Documents in an order of their own, and copies among them, against comparisons of all pairs."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from wgcn.labels.splits import canonical_order, copy_groups, folds, held_out_mask, row_digests
from wgcn.labels.targets import Targets


def _documents(n: int, n_words: int, seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).random((n, n_words)) < 0.3).astype(np.float32)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_equal_rows_have_equal_digests_and_others_have_others(seed: int, n: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 3, (n, 4)).astype(np.float32)
    digests = row_digests(csr_array(rows))
    same = (rows[:, None] == rows[None]).all(axis=2)
    np.testing.assert_array_equal(digests[:, None] == digests[None], same)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_the_order_of_documents_is_one_whatever_rows_they_were_in(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    digests, codes, weight = random.integers(0, 5, n), random.integers(0, 3, n), random.integers(1, 3, n).astype(float)
    moved = random.permutation(n)
    found = []
    for rows in (np.arange(n), moved):
        order = rows[canonical_order(digests[rows], Targets.single(codes[rows], 3), weight[rows])]
        found.append([(digests[i], codes[i], weight[i]) for i in order])
    assert found[0] == found[1]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_groups_hold_copies_and_nothing_that_is_unlike(seed: int) -> None:
    rows = _documents(60, 25, seed)
    rows[40:50] = rows[:10]  # copies
    rows[50:] = 0  # no copies of each other
    groups = copy_groups(csr_array(rows))
    np.testing.assert_array_equal(groups[40:50], groups[:10])
    assert len(np.unique(groups[50:])) == 10
    shared = rows @ rows.T
    sizes = rows.sum(axis=1)
    alike = shared >= 0.6 * np.maximum(sizes[:, None] + sizes - shared, 1e-9)
    chains = connected_components(csr_array(alike & (shared > 0)), directed=False)[1]
    for group in np.unique(groups):  # only chains of near-copies are one group
        assert len(np.unique(chains[groups == group])) == 1


def test_nearly_all_near_copies_are_found() -> None:
    random = np.random.default_rng(0)
    rows = (random.random((300, 400)) < 0.1).astype(np.float32)
    near = rows.copy()
    near[np.arange(300), random.integers(0, 400, 300)] = 1  # at most a term more, of about 40
    groups = copy_groups(csr_array(np.vstack([rows, near])))
    assert np.mean(groups[:300] == groups[300:]) > 0.95
    assert len(np.unique(groups)) >= 300


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.sampled_from([12, 60]))
def test_copies_are_held_out_together_and_no_class_is_held_out_whole(seed: int, n_folds: int, n: int) -> None:
    random = np.random.default_rng(seed)
    codes, groups = random.integers(0, 3, n), random.integers(0, 2 * n // 5, n)
    masks = [held_out_mask(codes, 0.5 if n < 60 else 0.2, seed, groups)]
    for part in folds(codes, n_folds, np.random.RandomState(seed), groups):
        masks.append(np.isin(np.arange(n), part))
    for mask in masks:
        assert set(codes[mask]) <= set(codes[~mask])
        kept = np.isin(codes, codes[~mask])
        torn = set(groups[mask & kept]) & set(groups[~mask & kept])
        whole_class = set(groups[np.isin(codes, list(set(codes) - set(codes[mask])))])
        assert torn <= whole_class
