"""The operator and its products against dense matrices, and its adjoint against the definition of one."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from wgcn.linear import kernels
from wgcn.linear.kernels import multiply
from wgcn.linear.operator import DocumentOperator, GraphBlock

POOL = ThreadPoolExecutor(3)
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture(params=["one thread", "threads"], autouse=True)
def _threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """Products of this size are not worth a thread: take them both ways."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "threads":
            patch.setattr(kernels, "_SMALL", 0)
        yield


class Problem:
    """Random documents, graph, scales, weights and slopes; few documents or many beside the entries of the graph."""

    def __init__(self, seed: int, n: int, v: int, k: int, factor: float, with_scales: bool) -> None:
        rng = np.random.default_rng(seed)
        half = random_array((v, v), density=0.6, rng=rng)
        x, a = csr_array(random_array((n, v), density=0.4, rng=rng)), csr_array(half + half.T)
        scales = rng.random((v, k)) + 0.5 if with_scales else None
        self.operator = DocumentOperator(x, GraphBlock(a, factor, POOL), scales, k, POOL)
        self.matrix = x.toarray() @ (np.eye(v) + factor * a.toarray())  # X M
        self.table = np.eye(v) + factor * a.toarray()
        self.scales = np.ones((v, k)) if scales is None else scales
        self.weights, self.slopes = rng.normal(size=(v, k)), rng.normal(size=(n, k))


problems = st.builds(
    Problem,
    seed=st.integers(0, 10_000),
    n=st.integers(1, 20),
    v=st.integers(1, 12),
    k=st.integers(1, 4),
    factor=st.sampled_from([0.0, 0.3, 2.0]),
    with_scales=st.booleans(),
)
moderately = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(problems)
@moderately
def test_forward_table_and_adjoint_are_those_of_the_dense_formula(p: Problem) -> None:
    np.testing.assert_allclose(p.operator.forward(p.weights), p.matrix @ (p.scales * p.weights), atol=1e-10)
    np.testing.assert_allclose(p.operator.table(p.weights), p.table @ (p.scales * p.weights), atol=1e-10)
    out = np.full_like(p.weights, np.nan)
    assert p.operator.adjoint(p.slopes, out) is out
    np.testing.assert_allclose(out, p.scales * (p.matrix.T @ p.slopes), atol=1e-10)


@given(problems)
@moderately
def test_the_adjoint_is_the_adjoint_of_forward(p: Problem) -> None:
    back = p.operator.adjoint(p.slopes, np.empty_like(p.weights))
    assert np.vdot(p.operator.forward(p.weights), p.slopes) == pytest.approx(np.vdot(p.weights, back), abs=1e-9)


@given(problems)
@moderately
def test_a_second_call_gives_the_same_bits_and_leaves_its_arguments(p: Problem) -> None:
    weights, slopes = p.weights.copy(), p.slopes.copy()
    first = p.operator.forward(p.weights).copy(), p.operator.adjoint(p.slopes, np.empty_like(p.weights))
    second = p.operator.forward(p.weights), p.operator.adjoint(p.slopes, np.empty_like(p.weights))
    assert all(one.tobytes() == two.tobytes() for one, two in zip(first, second, strict=True))
    assert np.array_equal(p.weights, weights)
    assert np.array_equal(p.slopes, slopes)


@pytest.mark.parametrize("n", [5, 500])
def test_the_product_with_the_graph_is_formed_where_it_is_smaller(n: int) -> None:
    operator = Problem(0, n, 40, 2, 0.5, True).operator
    assert (operator._dense is not None) == (n == 5)


@DTYPES
def test_products_equal_those_of_scipy(dtype: type) -> None:
    rng = np.random.default_rng(0)
    x = csr_array(random_array((50, 20), density=0.4, rng=rng), dtype=dtype)
    dense = rng.random((20, 7)).astype(dtype)
    np.testing.assert_allclose(multiply(x, dense, POOL), x @ dense, rtol=1e-5)
    assert np.array_equal(multiply(x, dense, POOL), multiply(x, dense))


@DTYPES
def test_a_product_is_added_to_rows_with_entries_and_to_rows_without(dtype: type) -> None:
    rng = np.random.default_rng(0)
    a = csr_array(np.where(rng.random((50, 50)) < 0.04, rng.random((50, 50)), 0).astype(dtype))
    assert 0 < (np.diff(a.indptr) == 0).sum() < 50
    dense = rng.random((50, 7)).astype(dtype)
    room = np.full_like(dense, np.nan)
    total = multiply(a, dense, POOL, room, 0.3)
    assert total is room
    np.testing.assert_allclose(total, dense + 0.3 * (a @ dense), rtol=1e-5)
    assert np.array_equal(multiply(a, dense, factor=0.3), total)
