"""The linear model against a dense reference in double precision."""

from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.sparse import csr_array, random_array

from wgcn.errors import InputError
from wgcn.linear import model as linear
from wgcn.linear.kernels import add_product, multiply
from wgcn.linear.model import LearnAlpha, LinearFit, LinearSettings, Loss, fit_linear, graph_scale, naive_bayes_scales
from wgcn.linear.teacher import Taught


def problem(n: int = 30, v: int = 12, c: int = 3, seed: int = 0) -> tuple[csr_array, csr_array, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = csr_array(random_array((n, v), density=0.4, rng=rng))
    half = random_array((v, v), density=0.3, rng=rng)
    a = csr_array(half + half.T)
    return x, a, np.eye(c)[rng.integers(0, c, n)]


def teacher_of(v: int, c: int, seed: int = 2) -> Taught:
    rng = np.random.default_rng(seed)
    return Taught(rng.normal(0, 0.5, (v, c)), rng.normal(0, 0.2, c))


def scales_by_the_definition(x: np.ndarray, targets: np.ndarray, weight: np.ndarray, share: float) -> np.ndarray:
    """Return R word by word: a word counts once a document, and two documents of all words are shared out."""
    contrast = np.zeros((x.shape[1], targets.shape[1]))
    for column in range(targets.shape[1]):
        sides = []
        for label in (1, 0):
            counts = [
                sum(weight[i] for i in range(len(x)) if targets[i, column] == label and x[i, word] != 0)
                for word in range(x.shape[1])
            ]
            sides.append(np.array(counts, float))
        total = sides[0].sum() + sides[1].sum()
        if sides[0].sum() == 0 or sides[1].sum() == 0:
            continue
        for word in range(x.shape[1]):
            logs = [np.log((side[word] + 2 * side.sum() / total) / side.sum()) for side in sides]
            contrast[word, column] = abs(logs[0] - logs[1])
    mean = np.sqrt(np.mean(contrast**2))
    if mean < 1e-12:
        return np.ones_like(contrast)
    return 1 - share + share * contrast / mean


def dense_objective(flat, x, spread, scales, given, targets, c, weight, loss, multilabel):  # type: ignore[no-untyped-def]
    w, b = flat[:-targets.shape[1]].reshape(x.shape[1], -1), flat[-targets.shape[1]:]  # fmt: skip
    scores = x @ spread @ (scales * w) + given + b
    sign = 2 * targets - 1
    if loss == "squared_hinge":
        each = np.maximum(0, 1 - sign * scores) ** 2
    elif multilabel or targets.shape[1] == 1:
        each = np.logaddexp(0, -sign * scores)
    else:
        each = -targets * (scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
    return c * np.sum(weight[:, None] * each) + 0.5 * np.sum(w**2)


@pytest.mark.parametrize(("naive_bayes", "with_teacher"), [(0.0, False), (0.5, True)])
@pytest.mark.parametrize("loss", ["squared_hinge", "softmax"])
@pytest.mark.parametrize(("columns", "multilabel"), [(1, False), (3, False), (3, True)])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_fit_is_the_minimum_of_the_dense_objective(
    loss: Loss, columns: int, multilabel: bool, order: int, naive_bayes: float, with_teacher: bool
) -> None:
    x, a, targets = problem(v=8, c=max(columns, 2))
    targets = targets[:, :1] if columns == 1 else targets
    weight = np.random.default_rng(1).random(len(targets)) + 0.5
    taught = teacher_of(8, columns) if with_teacher else None
    settings = LinearSettings(
        alpha=0.7, order=order, naive_bayes=naive_bayes, C=2.0, loss=loss, max_iter=2000, tol=1e-14
    )
    fitted = fit_linear(x, targets, a, settings, multilabel=multilabel, sample_weight=weight, taught=taught)
    factor = 0.7 * graph_scale(x, a, order, weight) if order else 0
    spread = np.eye(8) + factor * np.linalg.matrix_power(a.toarray(), order)
    scales = scales_by_the_definition(x.toarray(), targets, weight, naive_bayes)
    table, given = (taught.word_scores, x @ taught.word_scores + taught.bias) if taught is not None else (0, 0)
    arguments = (x.toarray(), spread, scales, given, targets, 2.0, weight, loss, multilabel)
    found = np.concatenate([fitted.word_weights.ravel(), fitted.own_bias])
    best = minimize(dense_objective, np.zeros(len(found)), args=arguments, method="BFGS", options={"gtol": 1e-6})
    assert dense_objective(found, *arguments) == pytest.approx(best.fun, rel=1e-6)
    np.testing.assert_allclose(
        fitted.word_embeddings, spread @ (scales * fitted.word_weights) + table, rtol=1e-8, atol=1e-10
    )
    expected = x @ spread @ (scales * best.x[:-columns].reshape(8, -1)) + given + best.x[-columns:]
    scores = x @ fitted.word_embeddings + fitted.bias
    if loss == "softmax" and columns > 1 and not multilabel:
        # The same number added to all scores of a document changes no probability.
        expected, scores = (each - each.mean(axis=1, keepdims=True) for each in (expected, scores))
    np.testing.assert_allclose(scores, expected, atol=1e-3)


def test_the_bias_is_its_own_and_that_of_the_teacher() -> None:
    x, a, targets = problem()
    taught = teacher_of(12, 3)
    fitted = fit_linear(x, targets, a, LinearSettings(), taught=taught)
    np.testing.assert_allclose(fitted.bias, fitted.own_bias + taught.bias, rtol=1e-12)
    alone = fit_linear(x, targets, a, LinearSettings())
    assert np.array_equal(alone.bias, alone.own_bias)


@pytest.mark.parametrize("loss", ["squared_hinge", "softmax"])
def test_labels_that_hardly_count_leave_the_scores_of_the_teacher_and_a_bias(loss: Loss) -> None:
    x, a, targets = problem()
    taught = teacher_of(12, 3)
    fitted = fit_linear(x, targets, a, LinearSettings(C=1e-6, loss=loss, tol=0), taught=taught)
    np.testing.assert_allclose(fitted.word_embeddings, taught.word_scores, atol=1e-4)
    beyond = x @ fitted.word_embeddings + fitted.bias - x @ taught.word_scores
    np.testing.assert_allclose(beyond, np.tile(beyond.mean(axis=0), (30, 1)), atol=1e-4)


def test_from_a_teacher_who_is_right_nothing_is_left_to_learn() -> None:
    targets = np.eye(3)[np.arange(30) % 3]
    x = csr_array(targets)
    fitted = fit_linear(x, targets, None, LinearSettings(), taught=Taught(3 * np.eye(3) - 1.5, np.zeros(3)))
    assert not fitted.word_weights.any()
    assert fitted.history == []


def test_a_teacher_of_zeros_changes_no_bit() -> None:
    x, a, targets = problem()
    zeros = fit_linear(x, targets, a, LinearSettings(), taught=Taught(np.zeros((12, 3)), np.zeros(3)))
    alone = fit_linear(x, targets, a, LinearSettings())
    assert zeros.word_embeddings.tobytes() == alone.word_embeddings.tobytes()
    assert zeros.bias.tobytes() == alone.bias.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_fit_has_the_type_of_the_documents(dtype: type) -> None:
    x, a, targets = problem()
    fitted = fit_linear(x.astype(dtype), targets.astype(np.float32), a, LinearSettings(), taught=teacher_of(12, 3))
    parts = (fitted.word_weights, fitted.word_embeddings, fitted.bias, fitted.own_bias)
    assert {part.dtype for part in parts} == {np.dtype(dtype)}


class Counted(NamedTuple):
    """Documents, classes and weights for naive_bayes_scales."""

    x: np.ndarray
    targets: np.ndarray
    weight: np.ndarray

    def scales(self, share: float = 0.5) -> np.ndarray:
        return naive_bayes_scales(csr_array(self.x), self.targets, self.weight, share)


@st.composite
def counted(draw: st.DrawFn) -> Counted:
    """Draw a few documents, in all of which the weights are whole numbers."""
    n, v, c = draw(st.integers(1, 8)), draw(st.integers(1, 6)), draw(st.integers(1, 3))
    x = draw(arrays(np.float64, (n, v), elements=st.sampled_from([0.0, 0.0, 0.5, 2.0])))
    targets = draw(arrays(np.float64, (n, c), elements=st.sampled_from([0.0, 1.0])))
    return Counted(x, targets, draw(arrays(np.float64, n, elements=st.sampled_from([1.0, 2.0, 3.0]))))


@given(counted(), st.floats(0, 1))
def test_the_scales_are_those_of_the_definition(documents: Counted, share: float) -> None:
    expected = scales_by_the_definition(*documents, share)
    np.testing.assert_allclose(documents.scales(share), expected, rtol=1e-6, atol=1e-9)


def test_scales_of_a_worked_example() -> None:
    # Word 0 is in both documents of the class, word 1 in both of the others, word 2 in one of each, word 3 in none.
    x = np.array([[1, 0, 1, 0], [1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0]], float)
    got = Counted(x, np.array([[1], [1], [0], [0.0]]), np.ones(4)).scales(1.0)
    # Of three words a side, with one more document of all words on either: (2 + 1) / 3 against (0 + 1) / 3.
    contrast = np.array([np.log(3), np.log(3), 0, 0])
    np.testing.assert_allclose(got.ravel(), contrast / np.sqrt(np.mean(contrast**2)), atol=1e-12)


@given(counted(), st.floats(0, 1))
def test_a_word_that_no_labelled_document_has_is_held_back_most(documents: Counted, share: float) -> None:
    x = np.hstack([documents.x, np.zeros((len(documents.x), 1))])
    scales = documents._replace(x=x).scales(share)
    if np.ptp(scales) > 1e-9:
        np.testing.assert_allclose(scales[-1], 1 - share, atol=1e-9)
        assert scales.min() >= 1 - share - 1e-9


@given(
    rows=arrays(np.float64, (3, 4), elements=st.sampled_from([0.0, 1.0])).filter(np.any),
    inside=st.integers(1, 4),
    outside=st.integers(1, 4),
    share=st.floats(0, 1),
)
def test_words_that_all_classes_use_alike_have_all_scales_one(
    rows: np.ndarray, inside: int, outside: int, share: float
) -> None:
    targets = np.repeat([[1.0], [0.0]], [3 * inside, 3 * outside], axis=0)
    documents = Counted(np.tile(rows, (inside + outside, 1)), targets, np.ones(len(targets)))
    np.testing.assert_allclose(documents.scales(share), 1, atol=1e-9)


@given(counted())
def test_a_share_of_zero_makes_all_scales_one_and_a_larger_one_blends(documents: Counted) -> None:
    assert np.array_equal(documents.scales(0.0), np.ones_like(documents.scales(0.0)))
    whole = documents.scales(1.0)
    np.testing.assert_allclose(documents.scales(0.25), 0.75 + 0.25 * whole, atol=1e-12)
    assert np.sqrt(np.mean(whole**2)) == pytest.approx(1)


@given(counted())
def test_a_document_of_weight_two_counts_as_if_it_were_there_twice(documents: Counted) -> None:
    repeats = documents.weight.astype(int)
    repeated = Counted(*(np.repeat(part, repeats, axis=0) for part in documents))._replace(
        weight=np.ones(repeats.sum())
    )
    np.testing.assert_allclose(documents.scales(), repeated.scales(), atol=1e-9)


def test_twice_the_weight_trusts_the_counts_more() -> None:
    # Not the same scales: what is added to the counts stays the same, so rare words are believed sooner.
    x = np.array([[1, 1, 0]] * 9 + [[1, 0, 1]] + [[0, 1, 0]] * 10, float)
    documents = Counted(x, np.repeat([[1.0], [0.0]], 10, axis=0), np.ones(20))
    rare = [documents._replace(weight=weight * documents.weight).scales()[2, 0] for weight in (1, 2, 1000)]
    assert rare == sorted(set(rare))


@given(counted(), st.randoms())
def test_the_order_of_documents_and_the_side_of_a_class_do_not_matter(documents: Counted, random: Random) -> None:
    order = list(range(len(documents.x)))
    random.shuffle(order)
    scales = documents.scales()
    np.testing.assert_allclose(Counted(*(part[order] for part in documents)).scales(), scales, atol=1e-9)
    np.testing.assert_allclose(documents._replace(targets=1 - documents.targets).scales(), scales, atol=1e-9)


@given(counted())
def test_documents_of_no_weight_and_zeros_that_are_stored_do_not_count(documents: Counted) -> None:
    rows = csr_array(documents.x)
    full = csr_array(np.ones_like(documents.x))
    full.data[:] = documents.x.ravel()
    got = naive_bayes_scales(full, documents.targets, documents.weight, 0.5)
    np.testing.assert_array_equal(got, naive_bayes_scales(rows, documents.targets, documents.weight, 0.5))
    more = Counted(
        np.vstack([documents.x, np.ones((1, documents.x.shape[1]))]),
        np.vstack([documents.targets, np.ones((1, documents.targets.shape[1]))]),
        np.append(documents.weight, 0),
    )
    np.testing.assert_allclose(more.scales(), documents.scales(), atol=1e-9)


def test_a_class_that_all_documents_have_tells_words_nothing() -> None:
    x = np.array([[1, 0], [1, 1], [0, 1.0]])
    targets = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0.0]])
    scales = Counted(x, targets, np.ones(3)).scales()
    assert np.array_equal(scales[:, [0, 2]], np.full((2, 2), 0.5))
    assert (scales[:, 1] > 0.5).all()


def test_freer_words_are_used_more() -> None:
    # Words 0 and 1 tell the classes apart, word 2 only by its one document.
    x = csr_array(np.array([[1, 0, 0]] * 5 + [[1, 0, 1]] + [[0, 1, 0]] * 6, float))
    targets = np.repeat([[1.0], [0.0]], 6, axis=0)
    plain, freer = (
        fit_linear(x, targets, None, LinearSettings(naive_bayes=share, tol=1e-12)).word_embeddings[:, 0]
        for share in (0.0, 1.0)
    )
    assert freer[0] - freer[1] > plain[0] - plain[1]
    assert abs(freer[2]) < abs(plain[2])


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
    plain = fit_linear(x, targets, a, LinearSettings(alpha=0, naive_bayes=0))
    assert np.array_equal(plain.word_embeddings, plain.word_weights)


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fixed_alpha_takes_the_path_it_took_before_it_could_be_learnt(
    small: bool, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear, "_small", lambda *_: small)
    x, a, targets = (part.astype(dtype) for part in problem(200, 60))
    factor = dtype(0.5 * graph_scale(x, a, 1, np.ones(200)))
    transposed = csr_array(x.T)
    dense = x.toarray().T.copy()
    dense = np.ascontiguousarray((dense + factor * multiply(a, dense)).T)

    def objective(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        w, bias = parameters[:-1], parameters[-1]
        scores = (dense @ w if small else multiply(x, w + factor * multiply(a, w))) + bias
        value, slope = linear._squared_hinge(scores, targets, np.full((200, 1), 0.5, dtype))
        back = dense.T @ slope if small else multiply(transposed, slope)
        gradient = np.empty_like(parameters)
        gradient[:-1] = (back if small else back + factor * multiply(a, back)) + w
        gradient[-1] = slope.sum(axis=0, dtype=np.float64)
        return value + 0.5 * float(np.vdot(w, w)), gradient

    expected = linear.minimize(objective, np.zeros((61, 3), dtype), max_iter=100, tol=3e-4)
    fitted = fit_linear(x, targets, a, LinearSettings(naive_bayes=0.0))
    assert fitted.word_weights.tobytes() == expected[:-1].tobytes()
    assert fitted.bias.tobytes() == expected[-1].tobytes()
    assert fitted.alpha == 0.5


LEARNT = pytest.mark.parametrize("learn_alpha", ["shared", "word"])


@LEARNT
@pytest.mark.parametrize("loss", ["squared_hinge", "softmax"])
@pytest.mark.parametrize(("columns", "multilabel"), [(1, False), (3, False), (3, True)])
@pytest.mark.parametrize("order", [1, 2])
def test_the_slope_with_a_learnt_alpha_is_that_of_finite_differences(
    learn_alpha: LearnAlpha, loss: Loss, columns: int, multilabel: bool, order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = []

    def check(objective, start, **options):  # type: ignore[no-untyped-def]
        point = np.random.default_rng(4).normal(0, 1, start.shape)
        differences = [
            (objective(point + step)[0] - objective(point - step)[0]) / 2e-6 for step in 1e-6 * np.eye(len(point))
        ]
        np.testing.assert_allclose(objective(point)[1], differences, rtol=1e-5, atol=1e-5)
        checked.append(len(point))
        return point

    monkeypatch.setattr(linear, "minimize", check)
    # Freer than it is, so that alpha matters as much as the words do.
    monkeypatch.setattr(linear, "_FREEDOM", {"shared": 1.0, "word": 1.0})
    x, a, targets = problem(v=8, c=max(columns, 2))
    targets = targets[:, :1] if columns == 1 else targets
    settings = LinearSettings(alpha=0.7, order=order, loss=loss, learn_alpha=learn_alpha)
    fit_linear(x, targets, a, settings, multilabel=multilabel, taught=teacher_of(8, columns))
    assert checked == [9 * columns + (8 if learn_alpha == "word" else 1)]


@LEARNT
@pytest.mark.parametrize("naive_bayes", [0.0, 0.5])
@pytest.mark.parametrize("order", [1, 2])
def test_the_table_of_a_learnt_alpha_is_that_of_the_dense_formula(
    learn_alpha: LearnAlpha, naive_bayes: float, order: int
) -> None:
    x, a, targets = problem()
    taught = teacher_of(12, 3)
    settings = LinearSettings(alpha=0.7, order=order, naive_bayes=naive_bayes, C=20.0, learn_alpha=learn_alpha)
    fitted = fit_linear(x, targets, a, settings, taught=taught)
    assert np.shape(fitted.alpha) == ((12,) if learn_alpha == "word" else ())
    assert np.abs(np.asarray(fitted.alpha) / 0.7 - 1).max() > 1e-4
    scaled = naive_bayes_scales(x, targets, np.ones(30), naive_bayes) * fitted.word_weights
    strength = np.broadcast_to(fitted.alpha, 12) * graph_scale(x, a, order, np.ones(30))
    expected = scaled + np.diag(strength) @ np.linalg.matrix_power(a.toarray(), order) @ scaled + taught.word_scores
    np.testing.assert_allclose(fitted.word_embeddings, expected, rtol=1e-10, atol=1e-12)


def pairs_of_words(alike: bool, seed: int) -> LinearFit:
    """Fit, with a shared alpha, to words in pairs with an edge, which speak for the same class or each for its own."""
    rng = np.random.default_rng(seed)
    speaks_for = np.repeat(rng.choice([-1.0, 1.0], 30), 2) if alike else rng.choice([-1.0, 1.0], 60)
    x = (rng.random((400, 60)) < 0.15).astype(float)
    a = csr_array(np.kron(np.eye(30), [[0.0, 1.0], [1.0, 0.0]]))
    targets = (x @ speaks_for > 0).astype(float)[:, None]
    return fit_linear(csr_array(x), targets, a, LinearSettings(learn_alpha="shared", tol=1e-8))


@pytest.mark.parametrize("seed", range(4))
def test_alpha_rises_where_neighbours_mean_the_same_and_falls_where_the_graph_is_noise(seed: int) -> None:
    assert pairs_of_words(alike=True, seed=seed).alpha > 0.501
    assert pairs_of_words(alike=False, seed=seed).alpha < 0.497


def test_the_words_whose_neighbours_mislead_listen_less() -> None:
    # Word 1 means what its neighbour 0 means; words 2 and 3 are neighbours and mean the opposite of each other.
    rng = np.random.default_rng(0)
    x = (rng.random((400, 4)) < 0.4).astype(float)
    a = csr_array(np.kron(np.eye(2), [[0.0, 1.0], [1.0, 0.0]]))
    targets = (x @ [1.0, 1.0, 1.0, -1.0] > 0).astype(float)[:, None]
    alpha = fit_linear(csr_array(x), targets, a, LinearSettings(learn_alpha="word", C=5.0)).alpha
    assert isinstance(alpha, np.ndarray)
    assert alpha[:2].min() > 0.5 > alpha[2:].max()


@LEARNT
def test_a_learnt_alpha_fits_closer_than_a_fixed_one(learn_alpha: LearnAlpha) -> None:
    x, a, targets = problem()
    fixed, learnt = (
        fit_linear(x, targets, a, LinearSettings(C=20.0, max_iter=2000, tol=1e-12, learn_alpha=each)).history
        for each in (None, learn_alpha)
    )
    assert learnt[-1]["loss"] < fixed[-1]["loss"]
    losses = [record["loss"] for record in learnt]
    assert losses == sorted(losses, reverse=True)


@LEARNT
@pytest.mark.parametrize("case", ["alpha 0", "order 0", "no graph", "no edges"])
def test_where_there_is_no_graph_nothing_is_learnt_of_alpha(learn_alpha: LearnAlpha, case: str) -> None:
    x, a, targets = problem()
    alpha, order = (0.0 if case == "alpha 0" else 0.5), (0 if case == "order 0" else 1)
    graph = {"no graph": None, "no edges": csr_array((12, 12))}.get(case, a)
    plain = fit_linear(x, targets, None, LinearSettings(alpha=alpha, order=order))
    fitted = fit_linear(x, targets, graph, LinearSettings(alpha=alpha, order=order, learn_alpha=learn_alpha))
    assert fitted.word_embeddings.tobytes() == plain.word_embeddings.tobytes()
    assert np.array_equal(fitted.alpha, np.full(12, alpha) if learn_alpha == "word" else alpha)


def test_a_word_without_an_edge_keeps_the_alpha_of_the_beginning() -> None:
    x, a, targets = problem()
    wide = csr_array(np.hstack([x.toarray(), np.random.default_rng(5).random((30, 2))]))
    graph = csr_array((a.data, a.indices, np.append(a.indptr, [a.nnz] * 2)), shape=(14, 14))
    alpha = fit_linear(wide, targets, graph, LinearSettings(C=20.0, learn_alpha="word")).alpha
    assert isinstance(alpha, np.ndarray)
    assert np.array_equal(alpha[12:], [0.5, 0.5])
    assert (alpha[:12] != 0.5).any()


@LEARNT
def test_few_documents_do_not_fold_an_alpha_that_is_learnt(
    learn_alpha: LearnAlpha, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, a, targets = problem()
    fits = []
    for small in (False, True):
        monkeypatch.setattr(linear, "_small", lambda *_, small=small: small)
        fits.append(fit_linear(x, targets, a, LinearSettings(learn_alpha=learn_alpha)))
    assert fits[0].word_embeddings.tobytes() == fits[1].word_embeddings.tobytes()
    assert np.array_equal(fits[0].alpha, fits[1].alpha)


@LEARNT
def test_starting_from_its_own_answer_alpha_stays(learn_alpha: LearnAlpha) -> None:
    x, a, targets = problem()
    settings = LinearSettings(C=5.0, max_iter=2000, tol=1e-13, learn_alpha=learn_alpha)
    cold = fit_linear(x, targets, a, settings)
    warm = fit_linear(x, targets, a, settings, start=cold)
    assert len(cold.history) > len(warm.history)
    np.testing.assert_allclose(warm.alpha, cold.alpha, rtol=1e-4)
    np.testing.assert_allclose(warm.word_embeddings, cold.word_embeddings, atol=1e-4)


@LEARNT
def test_a_fit_with_a_fixed_alpha_can_be_the_start(learn_alpha: LearnAlpha) -> None:
    x, a, targets = problem()
    start = fit_linear(x, targets, a, LinearSettings())
    warm = fit_linear(x, targets, a, LinearSettings(learn_alpha=learn_alpha), start=start)
    assert warm.history[-1]["loss"] <= start.history[-1]["loss"]


@LEARNT
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_with_a_learnt_alpha_has_the_type_of_the_documents(learn_alpha: LearnAlpha, dtype: type) -> None:
    x, a, targets = problem()
    settings = LinearSettings(alpha=np.float64(0.5), learn_alpha=learn_alpha)
    fitted = fit_linear(x.astype(dtype), targets, a, settings, taught=teacher_of(12, 3))
    parts = [fitted.word_weights, fitted.word_embeddings, fitted.bias, fitted.own_bias, fitted.theta]
    parts += [fitted.alpha] if isinstance(fitted.alpha, np.ndarray) else []
    assert {part.dtype for part in parts} == {np.dtype(dtype)}


@LEARNT
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_alpha_stays_within_bounds_however_strong_the_documents_are(learn_alpha: LearnAlpha, dtype: type) -> None:
    x, a, targets = problem()
    settings = LinearSettings(C=1e8, learn_alpha=learn_alpha)
    fitted = fit_linear((1e3 * x).astype(dtype), targets, a, settings)
    assert np.isfinite(fitted.word_embeddings).all()
    assert 0.5 * np.exp(-3.001) < np.min(fitted.alpha) <= np.max(fitted.alpha) < 0.5 * np.exp(3.001)


@LEARNT
def test_the_number_of_threads_does_not_change_a_bit_of_a_learnt_alpha(learn_alpha: LearnAlpha) -> None:
    x, a, targets = problem(200, 60)
    one, many = (fit_linear(x, targets, a, LinearSettings(learn_alpha=learn_alpha), n_jobs=n) for n in (1, 5))
    assert one.word_embeddings.tobytes() == many.word_embeddings.tobytes()
    assert np.array_equal(one.alpha, many.alpha)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_the_number_of_threads_does_not_change_a_bit(n_jobs: int) -> None:
    x, a, targets = problem(200, 60)
    one = fit_linear(x, targets, a, LinearSettings(), n_jobs=1)
    many = fit_linear(x, targets, a, LinearSettings(), n_jobs=n_jobs)
    assert one.word_embeddings.tobytes() == many.word_embeddings.tobytes()


def test_starting_from_another_fit_ends_at_the_same_place() -> None:
    x, a, targets = problem()
    settings = LinearSettings(max_iter=1000, tol=1e-14)
    taught = teacher_of(12, 3)
    cold = fit_linear(x, targets, a, settings, taught=taught)
    start = fit_linear(x[:20], targets[:20], a, settings, taught=teacher_of(12, 3, seed=5))
    warm = fit_linear(x, targets, a, settings, taught=taught, start=start)
    np.testing.assert_allclose(warm.bias, cold.bias, atol=1e-4)
    np.testing.assert_allclose(warm.word_embeddings, cold.word_embeddings, atol=1e-4)


def test_starting_from_its_own_answer_a_fit_is_done() -> None:
    x, a, targets = problem()
    settings = LinearSettings(max_iter=1000, tol=1e-10)
    cold = fit_linear(x, targets, a, settings, taught=teacher_of(12, 3))
    warm = fit_linear(x, targets, a, settings, taught=teacher_of(12, 3), start=cold)
    assert len(cold.history) > 10
    assert len(warm.history) <= 3


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


def test_words_without_an_edge_do_not_count_in_the_scale() -> None:
    x, a, _ = problem()
    weight = np.arange(1.0, 31)
    wide = csr_array(np.hstack([x.toarray(), np.ones((30, 5))]))
    graph = csr_array((a.data, a.indices, np.append(a.indptr, [a.nnz] * 5)), shape=(17, 17))
    assert graph_scale(wide, graph, 1, weight) == pytest.approx(graph_scale(x, a, 1, weight))
    assert graph_scale(wide, csr_array((17, 17)), 1, weight) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_equal_those_of_scipy(dtype: type) -> None:
    x, _, _ = problem(50, 20)
    dense = np.random.default_rng(0).random((20, 7)).astype(dtype)
    np.testing.assert_allclose(multiply(x.astype(dtype), dense), x.astype(dtype) @ dense, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_product_is_added_to_rows_with_entries_and_to_rows_without(dtype: type, threads: int) -> None:
    rng = np.random.default_rng(0)
    x = csr_array(np.where(rng.random((50, 20)) < 0.1, rng.random((50, 20)), 0).astype(dtype))
    assert 0 < (np.diff(x.indptr) == 0).sum() < 50
    dense, base = rng.random((20, 7)).astype(dtype), rng.random((50, 7)).astype(dtype)
    room = np.full_like(base, np.nan)
    with ThreadPoolExecutor(threads) as pool:
        total = add_product(base, 0.3, x, dense, pool, room)
    assert total is room
    np.testing.assert_allclose(total, base + 0.3 * (x @ dense), rtol=1e-5)
    assert np.array_equal(add_product(base, 0.3, x, dense), total)


@pytest.mark.parametrize(
    "settings",
    [{"alpha": -1}, {"order": -1}, {"C": 0}, {"C": float("nan")}, {"loss": "log"}, {"max_iter": 0}]
    + [{"learn_alpha": "each"}]
    + [{"naive_bayes": value} for value in (-0.1, 1.5, float("nan"))],
)
def test_senseless_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(settings))} must be.*{next(iter(settings.values()))}"):
        LinearSettings(**settings)  # type: ignore[arg-type]
