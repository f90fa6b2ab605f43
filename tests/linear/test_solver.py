"""Newton's method against scipy, and against what the theory says about its duality gap."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize
from sklearn.svm import LinearSVC

from wgcn.base.errors import InputError
from wgcn.linear import solver
from wgcn.linear.solver import Problem, Solution, State, descend, minimize

seeds = st.integers(0, 10_000)


class Documents:
    """Random documents Z, one matrix per column, with classes, costs and given scores."""

    def __init__(self, seed: int = 0, n: int = 40, v: int = 6, k: int = 3, dtype: type = np.float64) -> None:
        rng = np.random.default_rng(seed)
        self.z = [rng.standard_normal((n, v)) * rng.random(v) for _ in range(k)]
        self.signs = rng.choice([-1.0, 1.0], (n, k)).astype(dtype)
        self.signs[:2] = [[-1.0], [1.0]]
        self.cost = (rng.random((n, 1)) + 0.1).astype(dtype)
        self.given = rng.normal(0, 0.3, (n, k)).astype(dtype)
        self.n_products = 0

    def problem(self) -> Problem:
        def product(columns: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
            def multiply(dual: np.ndarray) -> np.ndarray:
                self.n_products += 1
                assert dual.flags.c_contiguous
                parts = [self.z[c] @ (self.z[c].T @ dual[:, i]) for i, c in enumerate(columns)]
                return np.stack(parts, axis=1).astype(dual.dtype)

            return multiply

        return Problem(product, self.signs, self.cost, self.given)

    def objective(self, column: int, flat: np.ndarray) -> float:
        scores = self.z[column] @ flat[:-1] + flat[-1] + self.given[:, column]
        slack = np.maximum(0, 1 - self.signs[:, column] * scores)
        return float(0.5 * flat[:-1] @ flat[:-1] + 0.5 * self.cost[:, 0] @ slack**2)

    def minimum(self, column: int) -> np.ndarray:
        start = np.zeros(self.z[column].shape[1] + 1)
        return np.asarray(scipy_minimize(lambda w: self.objective(column, w), start, options={"gtol": 1e-7}).x)

    def weights(self, found: Solution, column: int) -> np.ndarray:
        return np.append(self.z[column].T @ found.dual[:, column], found.bias[column])


@given(seed=seeds, n=st.integers(2, 40), v=st.integers(1, 8), k=st.integers(1, 4))
@settings(max_examples=40)
def test_it_finds_what_scipy_finds(seed: int, n: int, v: int, k: int) -> None:
    documents = Documents(seed, n, v, k)
    found = minimize(documents.problem(), tol=1e-9, max_iter=2000)
    for column in range(k):
        best = documents.objective(column, documents.minimum(column))
        assert documents.objective(column, documents.weights(found, column)) <= best + 1e-7 * max(best, 1)


@given(seed=seeds, tol=st.sampled_from([0.3, 0.03, 1e-3, 1e-6]))
@settings(max_examples=40)
def test_the_gap_bounds_what_is_left_and_is_within_the_tolerance(seed: int, tol: float) -> None:
    documents = Documents(seed)
    found = minimize(documents.problem(), tol=tol, max_iter=1000)
    assert found.converged
    best = sum(documents.objective(column, documents.minimum(column)) for column in range(3))
    reached = sum(documents.objective(column, documents.weights(found, column)) for column in range(3))
    assert found.history[-1]["loss"] == pytest.approx(reached)
    assert reached - best <= found.history[-1]["gap"] + 1e-9
    assert found.history[-1]["gap"] <= tol * best * (1 + 1e-6)


def test_it_is_the_support_vector_machine_of_liblinear() -> None:
    documents = Documents(v=3, k=1)
    documents.given[:] = 0
    found = documents.weights(minimize(documents.problem(), tol=1e-8, max_iter=1000), 0)
    svc = LinearSVC(C=0.5, tol=1e-8, dual=False, intercept_scaling=100)
    svc.fit(documents.z[0], documents.signs[:, 0], documents.cost[:, 0])
    np.testing.assert_allclose(found, [*svc.coef_[0], *svc.intercept_], atol=2e-3)


def test_each_column_is_a_problem_of_its_own() -> None:
    documents = Documents(k=4)
    together = minimize(documents.problem(), tol=1e-9, max_iter=1000)
    for column in range(4):
        alone = Documents(k=4)
        alone.z, alone.signs, alone.given = [alone.z[column]], alone.signs[:, [column]], alone.given[:, [column]]
        found = minimize(alone.problem(), tol=1e-9, max_iter=1000)
        np.testing.assert_allclose(together.bias[column], found.bias[0], atol=1e-4)


def test_the_objective_never_rises_and_each_iteration_is_one_product() -> None:
    documents = Documents(n=200, v=30)
    found = minimize(documents.problem(), tol=1e-10, max_iter=1000)
    assert len(found.history) == documents.n_products > 10
    losses = [record["loss"] for record in found.history]
    assert all(after <= before for before, after in pairwise(losses))


def test_finished_columns_are_left_out_of_the_products(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []
    documents = Documents(n=100, v=20, k=4)
    for column, scale in enumerate((0.01, 0.01, 0.01, 5.0)):  # the first three are done at once
        documents.z[column] *= scale
    problem = documents.problem()

    def watched(columns: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        widths.append(len(columns))
        return problem.product(columns)

    found = minimize(problem._replace(product=watched), tol=1e-6, max_iter=1000)
    assert widths[0] == 4
    assert widths[-1] == 1
    monkeypatch.setattr(solver, "NARROWER", 0.0)
    wide = minimize(documents.problem(), tol=1e-6, max_iter=1000)
    np.testing.assert_allclose(found.bias, wide.bias, atol=1e-3)


def test_in_single_precision_it_comes_as_near_as_that_allows() -> None:
    exact = Documents(n=100, v=20)
    rough = Documents(n=100, v=20, dtype=np.float32)
    found = minimize(rough.problem(), tol=1e-12, max_iter=1000)
    best = minimize(exact.problem(), tol=1e-12, max_iter=1000)
    assert found.dual.dtype == np.float32
    assert len(found.history) < 1000  # it notices that nothing moves any more
    np.testing.assert_allclose(found.bias, best.bias, atol=1e-4)


def test_a_warm_start_from_the_answer_needs_no_step() -> None:
    documents = Documents(n=100, v=20)
    cold = minimize(documents.problem(), tol=1e-6, max_iter=1000)
    warm = minimize(documents.problem(), tol=1e-5, max_iter=1000, start=cold.dual)
    assert len(cold.history) > 5
    assert len(warm.history) == 1
    assert np.array_equal(warm.dual, cold.dual)


def test_the_same_problem_gives_the_same_bits() -> None:
    once, twice = (minimize(Documents().problem(), tol=1e-6, max_iter=1000) for _ in range(2))
    assert once.dual.tobytes() == twice.dual.tobytes()
    assert once.bias.tobytes() == twice.bias.tobytes()


def test_a_few_new_documents_are_learnt_even_if_the_gap_is_within_the_tolerance_without() -> None:
    documents = Documents(n=400, v=20, k=2)
    documents.given[-2:] = 0
    documents.z = [0.1 * z for z in documents.z]  # two of so many documents make little difference
    known = minimize(documents.problem(), tol=1e-5, max_iter=1000)
    start = known.dual.copy()
    start[-2:] = 0  # of documents that the earlier fit did not have
    found = minimize(documents.problem(), tol=0.2, max_iter=1000, start=start)
    assert found.history[0]["gap"] < 0.1 * found.history[0]["loss"]
    assert known.dual[-2:].any(axis=0).all()
    assert found.dual[-2:].any(axis=0).all()


def test_a_column_of_one_sign_is_answered_by_the_bias() -> None:
    documents = Documents(k=2)
    documents.signs[:, 0] = -1
    documents.signs[:, 1] = 1
    found = minimize(documents.problem(), tol=1e-6, max_iter=100)
    assert found.converged
    assert not found.dual.any()
    assert (documents.signs * (documents.given + found.bias) > 1 - 1e-6).all()


@pytest.mark.parametrize("max_iter", [1, 2, 7])
def test_there_are_no_more_iterations_than_allowed(max_iter: int) -> None:
    found = minimize(Documents(n=200, v=30).problem(), tol=1e-12, max_iter=max_iter)
    assert len(found.history) == max_iter
    assert not found.converged


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_documents_that_are_not_finite_are_refused(bad: float) -> None:
    documents = Documents()
    documents.z[1][3, 2] = bad
    with pytest.raises(InputError, match="not finite"):
        minimize(documents.problem(), tol=1e-4, max_iter=10)


@pytest.mark.filterwarnings("error")
def test_costs_whose_products_overflow_are_no_reason_to_stop_at_the_start() -> None:
    documents = Documents(dtype=np.float32)
    problem = documents.problem()

    def scores(size: float) -> np.ndarray:
        found = minimize(problem._replace(cost=np.float32(size) * problem.cost), tol=1e-3, max_iter=1000)
        return problem.product(np.arange(3))(found.dual) + found.bias

    usual = scores(1e6)
    for size in (1e12, 1e15):
        assert np.corrcoef(usual.ravel(), scores(size).ravel())[0, 1] > 0.99
    with pytest.raises(InputError, match="Give a smaller C"):
        scores(1e30)


@given(seed=seeds, k=st.integers(1, 5))
@settings(max_examples=40)
def test_a_root_depends_on_its_own_column_alone(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    corners = rng.normal(size=(30, k))  # where the slopes of hinges begin

    def values(point: np.ndarray, columns: list[int]) -> tuple[np.ndarray, np.ndarray]:
        beyond = point - corners[:, columns]
        return np.maximum(beyond, 0).sum(axis=0) - 3.0, (beyond > 0).sum(axis=0).astype(float)

    def root(columns: list[int]) -> np.ndarray:
        n = len(columns)
        return solver._root(lambda point: values(point, columns), np.full(n, -9.0), np.full(n, 9.0), np.zeros(n))

    together = root(list(range(k)))
    assert np.abs(values(together, list(range(k)))[0]).max() < 1e-5
    assert together.tolist() == [float(root([column])[0]) for column in range(k)]


def test_a_root_that_the_guess_is_next_to_takes_few_trials() -> None:
    # In single precision the values around a root do not shrink further: what ends the search is the size of its step.
    rng, n_calls = np.random.default_rng(0), 0
    scores = rng.normal(size=(5_000, 50)).astype(np.float32)

    def slope(shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nonlocal n_calls
        n_calls += 1
        slack = np.maximum(scores + shift.astype(np.float32), 0)
        return slack.sum(axis=0, dtype=np.float64) - 2_000, (slack > 0).sum(axis=0).astype(float)

    low, high = np.full(50, -9.0), np.full(50, 9.0)
    best = solver._root(slope, low, high, np.zeros(50))
    n_calls = 0
    again = solver._root(slope, low, high, best)
    assert n_calls <= 4
    np.testing.assert_allclose(again, best, atol=1e-6)


@given(seed=seeds)
@settings(max_examples=20)
def test_steps_that_gain_little_end_a_column_near_its_minimum(seed: int) -> None:
    documents = Documents(seed, n=300, v=20, k=4)
    exact = minimize(documents.problem(), tol=1e-9, max_iter=500)
    moves = []

    class Counted(State):
        def move(self, columns: np.ndarray, step: np.ndarray, image: np.ndarray) -> np.ndarray:
            moves.append(len(columns))
            return super().move(columns, step, image)

    found = descend(Counted(documents.problem(), None), tol=1e-9, max_iter=500, negligible=1e-3)
    assert found.converged
    least, reached = exact.history[-1]["loss"], found.history[-1]["loss"]
    assert least <= reached * (1 + 1e-9)
    assert reached <= least * (1 + 4e-3)
    assert moves[0] == 4  # all step together
