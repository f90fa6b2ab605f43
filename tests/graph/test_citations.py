import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array, random_array

from wgcn.base.errors import InputError
from wgcn.graph.association import EdgeRules
from wgcn.graph.citations import attach_citations, from_citations, normalize_documents

graphs = arrays(np.int8, (6, 6), elements=st.integers(0, 1))
terms = arrays(np.int8, (6, 4), elements=st.integers(0, 2))
ALL = EdgeRules(threshold=-1.0)


def dense_normalised(a: np.ndarray, directed: bool) -> np.ndarray:
    a = a.astype(float)
    a = (a if directed else np.maximum(a, a.T)) + np.eye(len(a))
    return a / np.sqrt(np.outer(a.sum(axis=1), a.sum(axis=0)))


@given(graphs, st.booleans())
def test_normalisation_equals_the_dense_formula(a: np.ndarray, directed: bool) -> None:
    got = normalize_documents(csr_array(a), directed=directed).toarray()
    np.testing.assert_allclose(got, dense_normalised(a, directed), rtol=1e-5)


@given(graphs, terms, st.integers(0, 4))
def test_undirected_order_is_equation_4(a: np.ndarray, x: np.ndarray, k: int) -> None:
    dense = dense_normalised(a, directed=False)
    expected = x.T @ np.linalg.matrix_power(dense, k) @ x
    got = from_citations(csr_array(x), csr_array(a), order=k, rules=ALL)
    np.testing.assert_allclose(got.toarray(), expected, rtol=1e-4, atol=1e-6)
    assert (got != got.T).nnz == 0


@given(graphs, terms, st.integers(0, 2), st.integers(0, 2))
def test_directed_orders_are_the_symmetric_part_of_equation_3(a: np.ndarray, x: np.ndarray, m: int, n: int) -> None:
    dense = dense_normalised(a, directed=True)
    one_way = x.T @ np.linalg.matrix_power(dense, m) @ np.linalg.matrix_power(dense.T, n) @ x
    got = from_citations(csr_array(x), csr_array(a), order=(m, n), directed=True, rules=ALL)
    np.testing.assert_allclose(got.toarray(), (one_way + one_way.T) / 2, rtol=1e-4, atol=1e-6)


def test_order_zero_is_the_product_of_equation_2() -> None:
    x = csr_array(random_array((8, 5), density=0.5, rng=np.random.default_rng(0)), dtype=np.float32)
    got = from_citations(x, csr_array((8, 8)), order=0, rules=ALL)
    np.testing.assert_allclose(got.toarray(), (x.T @ x).toarray(), rtol=1e-5)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.ones((3, 2)), "as many rows as columns"),
        (-np.ones((3, 3)), "not negative"),
        (np.full((3, 3), np.nan), "finite"),
        (np.ones((4, 4)), "3 documents in document_terms but 4"),
    ],
)
def test_unusable_document_graphs_are_explained(graph: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_citations(csr_array(np.eye(3)), csr_array(graph))


def test_negative_order_is_refused() -> None:
    with pytest.raises(InputError, match="order must not be negative"):
        from_citations(csr_array(np.eye(3)), csr_array(np.eye(3)), order=-1)


@given(graphs, terms, st.integers(0, 3), st.integers(0, 6))
def test_attached_rows_are_the_first_of_the_dense_product(a: np.ndarray, x: np.ndarray, hops: int, n_new: int) -> None:
    new, known = csr_array(x[:n_new]), csr_array(x[n_new:])
    among, own = np.zeros_like(a), np.zeros_like(a)
    among[:n_new, :n_new] = a[:n_new, :n_new]
    own[:n_new, n_new:] = a[:n_new, n_new:]
    for got, links in (
        (attach_citations(new, csr_array(a), known, hops=hops), a),
        (attach_citations(new, csr_array(own[:n_new, n_new:]), known, hops=hops), own),
        (attach_citations(new, csr_array(among[:n_new, :n_new]), hops=hops), among),
    ):
        expected = np.linalg.matrix_power(dense_normalised(links, directed=False), hops) @ x
        np.testing.assert_allclose(got.toarray(), expected[:n_new], rtol=1e-5, atol=1e-6)


@given(graphs, st.integers(0, 3), st.sampled_from([np.float32, np.float64]))
def test_a_document_without_citations_keeps_its_row(a: np.ndarray, hops: int, dtype: type) -> None:
    x = csr_array(random_array((6, 9), density=0.5, rng=np.random.default_rng(0)), dtype=dtype)
    apart = (a + a.T).sum(axis=1) == 0
    for graph in (a, np.zeros_like(a)):
        alone = apart if graph is a else np.ones(6, bool)
        got = attach_citations(x[:4], csr_array(graph), x[4:], hops=hops)
        assert got.dtype == dtype
        assert np.array_equal(got.toarray()[alone[:4]], x.toarray()[:4][alone[:4]])


def test_attaching_leaves_what_it_was_given_alone() -> None:
    x = csr_array((np.ones(3), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    attached = attach_citations(x, csr_array(np.array([[0, 1], [0, 0]])), hops=2)
    assert attached.has_sorted_indices
    assert x.indices.tolist() == [2, 0, 1]


def test_documents_out_of_reach_do_not_count() -> None:
    # A chain of citations: the new document 0 reaches one more of them a hop.
    chain = csr_array(np.eye(5, k=1))
    attached = [
        attach_citations(csr_array(np.eye(1, 5)), chain, csr_array(np.eye(4, 5, k=1)), hops=h) for h in range(5)
    ]
    assert [row.indices.tolist() for row in attached] == [list(range(h + 1)) for h in range(5)]


@pytest.mark.parametrize(
    ("graph", "documents", "message"),
    [
        (np.ones((2, 4)), np.eye(3), "2 by 4 but there are 2 new documents and 3 in .* 2 by 3 or 5 by 5"),
        (np.ones((2, 3)), None, "0 in `documents` .* must be 2 by 2"),
        (np.ones(2), None, "document_graph is 2 but"),
        (np.ones((2, 1)), np.ones((1, 4)), "have 3 words but those they cite have 4"),
        (-np.ones((2, 3)), np.eye(3), "not negative"),
        (np.full((5, 5), np.inf), np.eye(3), "finite"),
    ],
)
def test_unusable_citations_are_explained(graph: np.ndarray, documents: np.ndarray | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        attach_citations(np.ones((2, 3)), graph, documents)


def test_negative_hops_are_refused() -> None:
    with pytest.raises(InputError, match="hops must not be negative"):
        attach_citations(csr_array(np.eye(3)), csr_array(np.eye(3)), hops=-1)
