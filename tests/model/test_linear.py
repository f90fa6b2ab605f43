"""The linear model against a dense reference in double precision."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array, random_array

from wgcn.errors import InputError
from wgcn.model import linear
from wgcn.model.kernels import multiply
from wgcn.model.linear import LinearSettings, fit_linear, graph_scale


def problem(n: int = 30, v: int = 12, c: int = 3, seed: int = 0) -> tuple[csr_array, csr_array, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = csr_array(random_array((n, v), density=0.4, rng=rng))
    half = random_array((v, v), density=0.3, rng=rng)
    a = csr_array(half + half.T)
    return x, a, np.eye(c)[rng.integers(0, c, n)]


def dense_objective(flat, x, spread, targets, c, weight, loss, multilabel):  # type: ignore[no-untyped-def]
    w, b = flat[:-targets.shape[1]].reshape(x.shape[1], -1), flat[-targets.shape[1]:]  # fmt: skip
    scores = x @ spread @ w + b
    sign = 2 * targets - 1
    if loss == "squared_hinge":
        each = np.maximum(0, 1 - sign * scores) ** 2
    elif multilabel or targets.shape[1] == 1:
        each = np.logaddexp(0, -sign * scores)
    else:
        each = -targets * (scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
    return c * np.sum(weight[:, None] * each) + 0.5 * np.sum(w**2)


@pytest.mark.parametrize("loss", ["squared_hinge", "softmax"])
@pytest.mark.parametrize(("columns", "multilabel"), [(1, False), (3, False), (3, True)])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_fit_is_the_minimum_of_the_dense_objective(loss: str, columns: int, multilabel: bool, order: int) -> None:
    x, a, targets = problem(c=max(columns, 2))
    targets = targets[:, :1] if columns == 1 else targets
    weight = np.random.default_rng(1).random(len(targets)) + 0.5
    settings = LinearSettings(0.7, order, 2.0, loss, max_iter=2000, tol=1e-14)  # type: ignore[arg-type]
    fitted = fit_linear(x, targets, a, settings, multilabel=multilabel, sample_weight=weight)
    factor = 0.7 * graph_scale(x, a, order, weight) if order else 0
    spread = np.eye(12) + factor * np.linalg.matrix_power(a.toarray(), order)
    arguments = (x.toarray(), spread, targets, 2.0, weight, loss, multilabel)
    found = np.concatenate([fitted.word_weights.ravel(), fitted.bias])
    best = minimize(dense_objective, np.zeros(len(found)), args=arguments, method="BFGS", options={"gtol": 1e-6})
    assert dense_objective(found, *arguments) == pytest.approx(best.fun, rel=1e-6)
    np.testing.assert_allclose(fitted.word_embeddings, spread @ fitted.word_weights, rtol=1e-8, atol=1e-10)


def test_forming_the_product_first_gives_the_same_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    x, a, targets = problem()
    settings = LinearSettings(max_iter=500, tol=1e-13)
    monkeypatch.setattr(linear, "_small", lambda *_: False)
    through = fit_linear(x, targets, a, settings)
    monkeypatch.setattr(linear, "_small", lambda *_: True)
    formed = fit_linear(x, targets, a, settings)
    np.testing.assert_allclose(formed.word_embeddings, through.word_embeddings, atol=1e-5)


def test_alpha_zero_leaves_the_graph_out() -> None:
    x, a, targets = problem()
    without = fit_linear(x, targets, None, LinearSettings())
    zero = fit_linear(x, targets, a, LinearSettings(alpha=0))
    assert np.array_equal(without.word_embeddings, zero.word_embeddings)
    assert np.array_equal(zero.word_embeddings, zero.word_weights)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_the_number_of_threads_does_not_change_a_bit(n_jobs: int) -> None:
    x, a, targets = problem(200, 60)
    one = fit_linear(x, targets, a, LinearSettings(), n_jobs=1)
    many = fit_linear(x, targets, a, LinearSettings(), n_jobs=n_jobs)
    assert one.word_embeddings.tobytes() == many.word_embeddings.tobytes()


def test_starting_from_another_fit_ends_at_the_same_place() -> None:
    x, a, targets = problem()
    settings = LinearSettings(max_iter=1000, tol=1e-14)
    cold = fit_linear(x, targets, a, settings)
    warm = fit_linear(x, targets, a, settings, start=fit_linear(x[:20], targets[:20], a, settings))
    np.testing.assert_allclose(warm.word_embeddings, cold.word_embeddings, atol=1e-4)


def test_the_objective_never_rises() -> None:
    x, a, targets = problem()
    losses = [record["loss"] for record in fit_linear(x, targets, a, LinearSettings()).history]
    assert len(losses) > 1
    assert losses == sorted(losses, reverse=True)


def test_the_scale_makes_both_parts_equally_long() -> None:
    x, a, _ = problem()
    weight = np.arange(1.0, 31)
    scale = graph_scale(x, a, 1, weight)
    lengths = [weight @ np.linalg.norm(matrix.toarray(), axis=1) for matrix in (x, scale * (x @ a))]
    assert lengths[0] == pytest.approx(lengths[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_equal_those_of_scipy(dtype: type) -> None:
    x, _, _ = problem(50, 20)
    dense = np.random.default_rng(0).random((20, 7)).astype(dtype)
    np.testing.assert_allclose(multiply(x.astype(dtype), dense), x.astype(dtype) @ dense, rtol=1e-5)


@pytest.mark.parametrize(
    "settings", [{"alpha": -1}, {"order": -1}, {"C": 0}, {"C": float("nan")}, {"loss": "log"}, {"max_iter": 0}]
)
def test_senseless_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InputError):
        LinearSettings(**settings)  # type: ignore[arg-type]
