"""The operator and its products against dense matrices."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from wgcn.base import products
from wgcn.base.products import multiply, product_lengths, with_edges, with_entries
from wgcn.linear.operator import DocumentOperator, GraphBlock, Memory, SubwordBlock

POOL = ThreadPoolExecutor(3)
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture(params=["one thread", "threads"], autouse=True)
def _threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """Products of this size are not worth a thread: take them both ways."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "threads":
            patch.setattr(products, "_SMALL", 0)
        yield


class Problem:
    """Random documents, graph, subwords, scales and duals; few documents or many beside the entries of the graph."""

    def __init__(
        self, seed: int, n: int, v: int, k: int, factor: float, with_scales: bool, n_subwords: int = 0, b: float = 1.0
    ) -> None:
        rng = np.random.default_rng(seed)
        half = np.where(rng.random((v, v)) < 0.4, rng.random((v, v)), 0)
        half[:, ::3] = half[::3] = 0  # words without an edge
        x, a = csr_array(random_array((n, v), density=0.4, rng=rng)), csr_array(half + half.T)
        s = np.where(rng.random((v, n_subwords)) < 0.5, rng.random((v, n_subwords)), 0)
        s[1::4] = 0  # words without subwords
        scales, spelt = (rng.random((rows, k)) + 0.5 if with_scales else None for rows in (v, n_subwords))
        memory = Memory(np.float64)
        copies = (None if each is None else each.copy() for each in (scales, spelt))
        graph = GraphBlock(a, factor, POOL, memory)
        subwords = SubwordBlock(csr_array(s), b, POOL, memory)
        self.operator = DocumentOperator(x, csr_array(x.T), (graph, subwords), POOL, memory)
        self.operator.scale(*copies)
        self.spread = np.eye(v) + factor * a.toarray()
        self.x, self.scales = x.toarray(), np.ones((v, k)) if scales is None else scales
        self.spelt = np.ones((n_subwords, k)) if spelt is None else spelt
        self.s, self.b = s, b
        self.dual = rng.normal(size=(n, k))

    def learnt(self) -> np.ndarray:
        """Return V."""
        return np.asarray(self.b**2 * self.spelt**2 * (self.s.T @ self.x.T @ self.dual))

    def table(self) -> np.ndarray:
        own = self.spread @ (self.scales**2 * (self.spread @ self.x.T @ self.dual))
        return np.asarray(own + self.s @ self.learnt())


problems = st.builds(
    Problem,
    seed=st.integers(0, 10_000),
    n=st.integers(1, 20),
    v=st.integers(1, 12),
    k=st.integers(1, 4),
    factor=st.sampled_from([0.0, 0.3, 2.0]),
    with_scales=st.booleans(),
    n_subwords=st.sampled_from([0, 1, 9]),
    b=st.sampled_from([0.0, 0.7, 3.0]),
)
moderately = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(problems)
@moderately
def test_table_and_product_are_those_of_the_dense_formula(p: Problem) -> None:
    everything = np.arange(p.dual.shape[1])
    np.testing.assert_allclose(p.operator.tables(p.dual)[0], p.table(), atol=1e-10)
    np.testing.assert_allclose(p.operator.product(everything)(p.dual), p.x @ p.table(), atol=1e-10)


@given(problems)
@moderately
def test_own_rows_and_subword_rows_are_what_is_spread_at_last(p: Problem) -> None:
    p.operator.product(np.arange(p.dual.shape[1]))(2 * p.dual)  # leaves other content in the memory
    table, own, learnt = p.operator.tables(p.dual)
    before = p.scales**2 * (p.spread @ p.x.T @ p.dual)
    linked = (p.spread - np.eye(len(p.spread))).any(axis=1)
    np.testing.assert_allclose(own, before[linked], atol=1e-10)
    assert (learnt is None) == (p.b == 0 or not p.s.any())
    if learnt is not None:
        np.testing.assert_allclose(learnt, p.learnt(), atol=1e-10)
    p.operator.tables(3 * p.dual)
    assert np.array_equal(table, p.operator.tables(p.dual)[0])


@given(problems, st.integers(0, 10_000))
@moderately
def test_the_product_is_symmetric_and_never_negative(p: Problem, seed: int) -> None:
    product = p.operator.product(np.arange(p.dual.shape[1]))
    other = np.random.default_rng(seed).normal(size=p.dual.shape)
    one, two = product(p.dual).copy(), product(other)
    np.testing.assert_allclose(np.sum(one * other, axis=0), np.sum(p.dual * two, axis=0), atol=1e-8)
    assert (np.sum(one * p.dual, axis=0) >= -1e-10).all()


@given(problems)
@moderately
def test_some_columns_alone_have_the_same_product(p: Problem) -> None:
    some = np.arange(p.dual.shape[1])[::2]
    dual = np.ascontiguousarray(p.dual[:, some])
    np.testing.assert_allclose(p.operator.product(some)(dual), (p.x @ p.table())[:, some], atol=1e-10)


@given(problems)
@moderately
def test_a_second_call_gives_the_same_bits_and_leaves_its_argument(p: Problem) -> None:
    dual, product = p.dual.copy(), p.operator.product(np.arange(p.dual.shape[1]))
    first = product(p.dual).copy(), p.operator.tables(p.dual)[0]
    second = product(p.dual), p.operator.tables(p.dual)[0]
    assert all(one.tobytes() == two.tobytes() for one, two in zip(first, second, strict=True))
    assert np.array_equal(p.dual, dual)


@pytest.mark.parametrize("n", [5, 500])
@pytest.mark.parametrize("n_subwords", [0, 30])
def test_the_product_with_the_graph_is_formed_where_it_is_smaller(n: int, n_subwords: int) -> None:
    p = Problem(0, n, 40, 3, 0.5, True, n_subwords)
    assert (p.operator._dense is not None) == (n == 5)
    for columns in (np.arange(3), np.array([1]), np.array([0, 2])):
        product = p.operator.product(columns)(np.ascontiguousarray(p.dual[:, columns]))
        np.testing.assert_allclose(product, (p.x @ p.table())[:, columns], atol=1e-8)


def test_rows_without_entries_are_left_out_and_the_others_are_the_same() -> None:
    dense = np.zeros((5, 3))
    dense[1], dense[4, 2] = [1, 0, 2], 3
    rows, matrix = with_entries(csr_array(dense))
    assert rows.tolist() == [1, 4]
    assert matrix.toarray().tolist() == [[1, 0, 2], [0, 0, 3]]
    rows, matrix = with_entries(csr_array((4, 0)))
    assert (rows.tolist(), matrix.shape) == ([], (0, 0))


def test_a_graph_without_the_words_that_have_no_edge_is_the_same_graph() -> None:
    a = np.zeros((6, 6))
    a[1, 4] = a[4, 1] = 2
    a[4, 4] = 3
    words, graph = with_edges(csr_array(a))
    assert words.tolist() == [1, 4]
    assert graph.toarray().tolist() == [[0, 2], [2, 3]]


@DTYPES
def test_lengths_of_the_rows_of_a_sparse_product(dtype: type) -> None:
    rng = np.random.default_rng(0)
    x, a = (csr_array(random_array((30, 30), density=0.2, rng=rng), dtype=dtype) for _ in range(2))
    x.data[x.indptr[3] : x.indptr[4]] = 0
    np.testing.assert_allclose(product_lengths(x, a, POOL), np.linalg.norm((x @ a).toarray(), axis=1), rtol=1e-5)


@DTYPES
def test_products_equal_those_of_scipy(dtype: type) -> None:
    rng = np.random.default_rng(0)
    x = csr_array(random_array((50, 20), density=0.4, rng=rng), dtype=dtype)
    dense = rng.random((20, 7)).astype(dtype)
    np.testing.assert_allclose(multiply(x, dense, POOL), x @ dense, rtol=1e-5)
    assert np.array_equal(multiply(x, dense, POOL), multiply(x, dense))


@pytest.mark.parametrize("width", [1, 2, 8, 21])
def test_entries_are_added_one_after_the_other_however_many_a_row_has(width: int) -> None:
    rng = np.random.default_rng(width)
    x = csr_array(np.tri(30, 29, -1) * rng.standard_normal((30, 29)), dtype=np.float32)  # 0 to 29 entries per row
    dense = rng.standard_normal((29, width)).astype(np.float32)
    expected = np.zeros((30, width), np.float32)
    for row, total in enumerate(expected):
        for k in range(x.indptr[row], x.indptr[row + 1]):
            total += x.data[k] * dense[x.indices[k]]
    assert np.array_equal(multiply(x, dense), expected)


@DTYPES
def test_a_product_is_added_to_the_rows_at_some_places(dtype: type) -> None:
    rng = np.random.default_rng(0)
    a = csr_array(np.where(rng.random((50, 50)) < 0.04, rng.random((50, 50)), 0).astype(dtype))
    assert 0 < (np.diff(a.indptr) == 0).sum() < 50
    dense, places, before = (
        rng.random((50, 7)).astype(dtype),
        rng.permutation(60)[:50],
        rng.random((60, 7)).astype(dtype),
    )
    total = multiply(a, dense, POOL, room := before.copy(), places=places, factor=0.3)
    assert total is room
    expected = before.copy()
    expected[places] += dtype(0.3) * multiply(a, dense)
    assert np.array_equal(total, expected)
    assert np.array_equal(multiply(a, dense, None, before, places=places, factor=0.3), total)
