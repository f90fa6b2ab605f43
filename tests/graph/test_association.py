"""Edge weights against dense formulas in float64."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from wgcn.base.errors import InputError
from wgcn.graph.association import EdgeRules, from_documents, from_windows, normalize, product
from wgcn.graph.counts import WindowCounts
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import Vocabulary

corpora = st.lists(st.lists(st.integers(0, 5), max_size=15), min_size=1, max_size=8)
matrices = st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=7)


def counts_of(sequences: list[list[int]], window: int = 4) -> WindowCounts:
    ids = np.array([i for sequence in sequences for i in sequence], np.int32)
    offsets = np.cumsum([0, *map(len, sequences)], dtype=np.int64)
    return WindowCounts.from_corpus(Corpus(ids, offsets, Vocabulary(list("abcdef"))), window)


def dense_counts(counts: WindowCounts) -> np.ndarray:
    upper = counts.pair_windows.toarray().astype(float)
    return upper + upper.T + np.diag(counts.word_windows)


def dense_weights(counts: WindowCounts, weight: str) -> np.ndarray:
    n_ij = dense_counts(counts)
    p_ij, p = n_ij / counts.n_windows, counts.word_windows / counts.n_windows
    with np.errstate(divide="ignore", invalid="ignore"):
        pmi = np.log(p_ij / np.outer(p, p))
        npmi = np.where(p_ij < 1, pmi / -np.log(p_ij), 1)
    return {"count": n_ij, "pmi": np.where(n_ij > 0, pmi, 0), "npmi": np.where(n_ij > 0, npmi, 0)}[weight]


def assert_symmetric_and_clean(adjacency: csr_array) -> None:
    assert (adjacency != adjacency.T).nnz == 0
    assert adjacency.has_sorted_indices
    assert np.all(adjacency.data != 0)
    assert np.isfinite(adjacency.data).all()


@pytest.mark.parametrize("weight", ["pmi", "npmi", "count"])
@given(sequences=corpora, threshold=st.sampled_from([0.0, 0.3, -1.0]), min_count=st.integers(1, 3))
def test_window_weights_equal_the_dense_formula(
    weight: str, sequences: list[list[int]], threshold: float, min_count: int
) -> None:
    if not any(sequences):
        return
    counts = counts_of(sequences)
    rules = EdgeRules(threshold=threshold, min_count=min_count, diagonal="none")
    expected = dense_weights(counts, weight)
    seen = dense_counts(counts)
    # float32 against float64: an edge that lies on the threshold may fall on either side.
    near = np.abs(expected - threshold) < 1e-6
    expected = np.where((expected > threshold) & (seen >= min_count), expected, 0)
    np.fill_diagonal(expected, 0)
    got = from_windows(counts, weight, rules)  # type: ignore[arg-type]
    assert_symmetric_and_clean(got)
    np.testing.assert_allclose(np.where(near, 0, got.toarray()), np.where(near, 0, expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("weight", "diagonal", "expected"),
    [
        ("pmi", "self", [0, np.log(3 / 2), np.log(3)]),
        ("npmi", "self", [1, 1, 1]),
        ("count", "self", [3, 2, 1]),
        ("pmi", "one", [1, 1, 1]),
        ("pmi", "none", [0, 0, 0]),
    ],
)
def test_diagonal(weight: str, diagonal: str, expected: list[float]) -> None:
    # Windows: {a, b}, {a, b}, {a, c}.
    counts = counts_of([[0, 1], [1, 0], [0, 2]])
    got = from_windows(counts, weight, EdgeRules(diagonal=diagonal)).diagonal()  # type: ignore[arg-type]
    np.testing.assert_allclose(got[:3], expected, rtol=1e-6)


def test_a_word_in_no_window_has_no_edge() -> None:
    adjacency = from_windows(counts_of([[0, 1]]), "npmi", EdgeRules())
    assert adjacency[[2, 3, 4, 5]].nnz == 0


@given(
    matrix=matrices, weight=st.sampled_from(["product", "cosine"]), min_count=st.integers(1, 3), least=st.integers(0, 6)
)
def test_document_weights_equal_the_dense_formula(
    matrix: list[list[int]], weight: str, min_count: int, least: int
) -> None:
    x = np.array(matrix, float)
    lengths = np.linalg.norm(x, axis=0)
    columns = x / np.where(lengths > 0, lengths, 1) if weight == "cosine" else x
    expected = columns.T @ columns
    shared = (x > 0).astype(int).T @ (x > 0).astype(int)
    threshold = 0 if weight == "cosine" else least  # an edge must be above it, and counts can be equal to it
    expected = np.where((shared >= min_count) & (expected > threshold) | np.eye(5, dtype=bool), expected, 0)
    got = from_documents(csr_array(x), weight, EdgeRules(threshold, min_count))  # type: ignore[arg-type]
    assert_symmetric_and_clean(got)
    np.testing.assert_allclose(got.toarray(), expected, rtol=1e-5)


@given(matrices, st.integers(1, 30))
def test_blocks_do_not_change_the_product(matrix: list[list[int]], entries: int) -> None:
    x = csr_array(np.array(matrix, np.float32))
    whole = product(x, x, EdgeRules())
    assert (whole != product(x, x, EdgeRules(), block_entries=entries)).nnz == 0


@given(sequences=corpora.filter(any), k=st.integers(1, 5))
def test_top_k_keeps_an_edge_that_either_word_holds_strong(sequences: list[list[int]], k: int) -> None:
    counts = counts_of(sequences)
    full = from_windows(counts, "count", EdgeRules()).toarray()
    expected = np.diag(np.diag(full))
    for i, row in enumerate(full):
        others = sorted((j for j in range(6) if j != i and row[j]), key=lambda j: (-row[j], j))[:k]
        expected[i, others] = expected[others, i] = row[others]
    got = from_windows(counts, "count", EdgeRules(top_k=k))
    assert_symmetric_and_clean(got)
    np.testing.assert_array_equal(got.toarray(), expected)


@given(sequences=corpora.filter(any), threshold=st.sampled_from([0.0, -5.0]))
def test_normalisation_divides_by_the_roots_of_both_degrees(sequences: list[list[int]], threshold: float) -> None:
    adjacency = from_windows(counts_of(sequences), "pmi", EdgeRules(threshold))  # below 0, with negative edges
    dense = adjacency.toarray().astype(float)
    degrees = np.abs(dense).sum(axis=1)
    scale = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
    normalized, got_degrees = normalize(adjacency)
    np.testing.assert_allclose(normalized.toarray(), scale[:, None] * dense * scale, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(got_degrees, degrees, rtol=1e-6)
    assert (normalized != normalized.T).nnz == 0


@pytest.mark.parametrize("rules", [{"threshold": float("nan")}, {"min_count": 0}, {"top_k": 0}, {"diagonal": "two"}])
def test_senseless_rules_are_refused(rules: dict[str, object]) -> None:
    with pytest.raises(InputError):
        EdgeRules(**rules)  # type: ignore[arg-type]


def test_a_weight_of_the_wrong_kind_lists_the_right_ones() -> None:
    with pytest.raises(InputError, match="pmi, npmi, count"):
        from_windows(counts_of([[0, 1]]), "cosine", EdgeRules())
    with pytest.raises(InputError, match="cosine, product"):
        from_documents(csr_array(np.eye(2)), "pmi", EdgeRules())
