"""L-BFGS against what linear algebra and scipy say."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize

from wgcn.errors import InputError
from wgcn.linear.solver import minimize

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]
seeds = st.integers(0, 10_000)


def quadratic(n: int, seed: int, condition: float = 100.0) -> tuple[Objective, np.ndarray, np.ndarray]:
    """Return 1/2 x H x - g x with a random H, its start and its minimum."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    hessian = basis * np.geomspace(1, condition, n) @ basis.T
    minimum = rng.standard_normal(n)

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        away = x.astype(np.float64) - minimum
        return 0.5 * float(away @ hessian @ away), (hessian @ away).astype(x.dtype)

    return objective, rng.standard_normal(n), minimum


def logistic(n: int = 60, v: int = 6, c: int = 3, seed: int = 0) -> tuple[Objective, np.ndarray]:
    """Return the cross-entropy of random labels with a penalty, over a matrix of weights, and a start."""
    rng = np.random.default_rng(seed)
    x, signs = rng.standard_normal((n, v)), rng.choice([-1, 1], (n, c))

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        margin = signs * (x @ w)
        value = float(np.logaddexp(0, -margin).sum() + 0.5 * np.sum(w.astype(np.float64) ** 2))
        return value, (x.T @ (-signs * np.exp(-np.logaddexp(0, margin))) + w).astype(w.dtype)

    return objective, np.zeros((v, c))


@given(n=st.integers(1, 12), seed=seeds)
def test_it_finds_the_minimum_of_a_quadratic(n: int, seed: int) -> None:
    objective, start, minimum = quadratic(n, seed)
    found = minimize(objective, start, max_iter=1000, tol=1e-16)
    np.testing.assert_allclose(found, minimum, atol=1e-6)


@given(seed=seeds)
def test_it_finds_what_scipy_finds_of_a_logistic_loss(seed: int) -> None:
    objective, start = logistic(seed=seed)
    found = minimize(objective, start, max_iter=1000, tol=1e-16)

    def flat(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(w.reshape(start.shape))
        return value, gradient.ravel()

    best = scipy_minimize(flat, start.ravel(), jac=True, method="BFGS", options={"gtol": 1e-8})
    assert objective(found)[0] == pytest.approx(best.fun, rel=1e-12)
    np.testing.assert_allclose(found, best.x.reshape(start.shape), atol=1e-6)


@given(n=st.integers(1, 12), seed=seeds)
def test_single_precision_comes_as_near_as_it_can(n: int, seed: int) -> None:
    objective, start, minimum = quadratic(n, seed, condition=10)
    found = minimize(objective, start.astype(np.float32), max_iter=1000, tol=0)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, minimum, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=seeds)
def test_type_and_shape_are_those_of_the_start_which_stays_as_it_is(dtype: type, seed: int) -> None:
    objective, start = logistic(seed=seed)
    start = start.astype(dtype)
    found = minimize(objective, start, max_iter=100, tol=1e-7)
    assert (found.dtype, found.shape) == (start.dtype, start.shape)
    assert not start.any()
    np.testing.assert_allclose(found, minimize(objective, start.astype(float), max_iter=500, tol=1e-16), atol=5e-3)


@given(n=st.integers(2, 12), seed=seeds)
def test_the_values_never_rise_and_the_last_is_that_of_the_answer(n: int, seed: int) -> None:
    objective, start, _ = quadratic(n, seed, condition=1e4)
    values: list[float] = []
    found = minimize(objective, start, max_iter=300, tol=0, callback=values.append)
    assert values == sorted(values, reverse=True)
    assert values[0] < objective(start)[0]
    assert values[-1] == objective(found)[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_at_a_minimum_nothing_is_tried(dtype: type) -> None:
    calls: list[np.ndarray] = []
    values: list[float] = []

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        calls.append(x)
        return float(np.sum(x**2)), 2 * x

    found = minimize(objective, np.zeros(3, dtype), max_iter=50, tol=0, callback=values.append)
    assert found.tolist() == [0, 0, 0]
    assert len(calls) == 1
    assert values == []


@given(n=st.integers(1, 12), seed=seeds)
def test_a_second_call_gives_the_same_bits(n: int, seed: int) -> None:
    objective, start, _ = quadratic(n, seed, condition=1e3)
    once, twice = (minimize(objective, start, max_iter=30, tol=1e-10) for _ in range(2))
    assert once.tobytes() == twice.tobytes()


def test_how_matrices_lie_in_memory_does_not_matter() -> None:
    objective, start = logistic()
    expected: list[float] = []
    minimize(objective, start, max_iter=8, tol=0, callback=expected.append)

    def transposed(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(w)
        return value, np.asfortranarray(gradient)

    for begin in (start, np.asfortranarray(start)):
        values: list[float] = []
        minimize(transposed, begin, max_iter=8, tol=0, callback=values.append)
        np.testing.assert_allclose(values, expected, rtol=1e-9)


@pytest.mark.parametrize("max_iter", [0, 1, 2, 7])
def test_there_are_no_more_iterations_than_allowed(max_iter: int) -> None:
    objective, start, _ = quadratic(12, 0, condition=1e6)
    values: list[float] = []
    short = minimize(objective, start, max_iter=max_iter, tol=0, callback=values.append)
    assert len(values) == max_iter
    assert np.array_equal(short, start) == (max_iter == 0)


def test_a_longer_run_begins_like_a_shorter_one() -> None:
    objective, start, _ = quadratic(12, 0, condition=1e6)
    short: list[float] = []
    long: list[float] = []
    minimize(objective, start, max_iter=4, tol=0, callback=short.append)
    minimize(objective, start, max_iter=9, tol=0, callback=long.append)
    assert long[:4] == short


def test_one_iteration_that_gains_little_does_not_stop_it() -> None:
    # A long valley: the first step goes to its bottom or not far, the second along it.
    curvature = np.array([1e4, 1.0])

    def valley(x: np.ndarray) -> tuple[float, np.ndarray]:
        return float(0.5 * x @ (curvature * x)) + 100, curvature * x

    values = [valley(np.array([1e-4, 10.0]))[0]]
    found = minimize(valley, np.array([1e-4, 10.0]), max_iter=50, tol=0.1, callback=values.append)
    gains = [(a - b) / a for a, b in pairwise(values)]
    assert gains[0] < 0.1 < max(gains)
    np.testing.assert_allclose(found, [0, 0], atol=1)


def test_a_looser_tolerance_stops_sooner_after_three_small_decreases_in_a_row() -> None:
    objective, start, _ = quadratic(12, 1, condition=1e4)
    lengths = []
    for tol in (1e-2, 1e-4, 1e-8):
        values = [objective(start)[0]]
        minimize(objective, start, max_iter=500, tol=tol, callback=values.append)
        small = [(a - b) / max(abs(a), abs(b), 1) <= tol for a, b in pairwise(values)]
        assert small[-3:] == [True] * 3
        assert not any(all(small[i : i + 3]) for i in range(len(small) - 3))
        lengths.append(len(values))
    assert lengths == sorted(set(lengths))


@pytest.mark.parametrize("outside", [np.inf, np.nan])
def test_a_step_to_where_the_function_is_not_defined_is_taken_back(outside: float) -> None:
    tried_outside = []

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        if x[0] <= 0:
            tried_outside.append(x)
            return outside, np.full(1, outside)
        return float(x[0] - np.log(x[0])), 1 - 1 / x

    found = minimize(objective, np.array([10.0]), max_iter=100, tol=1e-16)
    assert tried_outside
    np.testing.assert_allclose(found, [1.0], atol=1e-6)


def test_a_function_whose_gradient_lies_ends_where_it_began() -> None:
    found = minimize(lambda x: (float(np.sum(x**2)), -2 * x), np.ones(2), max_iter=100, tol=0)
    assert found.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("value", "gradient"),
    [(np.nan, 1.0), (np.inf, 1.0), (1.0, np.nan), (1.0, np.inf), (1.0, 1e200)],
    ids=["value NaN", "value infinite", "gradient NaN", "gradient infinite", "square of the gradient infinite"],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_function_that_is_not_finite_is_refused(value: float, gradient: float) -> None:
    with pytest.raises(InputError, match="not finite"):
        minimize(lambda point: (value, np.full_like(point, gradient)), np.zeros(3), max_iter=10, tol=1e-4)


def test_a_start_too_steep_for_any_step_is_refused() -> None:
    def hinge(point: np.ndarray) -> tuple[float, np.ndarray]:
        short = np.maximum(1 - 1e18 * point, 0)
        return float(short @ short + 0.5 * point @ point), -2e18 * short + point

    with pytest.raises(InputError, match="too steep"):
        minimize(hinge, np.zeros(3), max_iter=10, tol=1e-4)
