"""The linear model against a dense reference in double precision."""

import warnings
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.sparse import csr_array, random_array
from sklearn.exceptions import ConvergenceWarning

from wgcn.base import products
from wgcn.base.errors import InputError
from wgcn.labels.targets import Targets
from wgcn.linear import model as linear_model
from wgcn.linear.model import Blocks, LinearSettings, Scales, block_scales, fit_linear
from wgcn.linear.naive_bayes import NaiveBayesScales, word_counts
from wgcn.linear.solver import Problem, Solution
from wgcn.semi.teacher import Taught


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
    return scales_of_counts((x != 0).astype(float), targets, weight, share)


def subword_scales_by_the_definition(
    x: np.ndarray, subwords: np.ndarray, targets: np.ndarray, weight: np.ndarray, share: float
) -> np.ndarray:
    """Return R_s: a subword counts once per word of a document that has it."""
    return scales_of_counts((x != 0).astype(float) @ (subwords != 0), targets, weight, share)


def scales_of_counts(n: np.ndarray, targets: np.ndarray, weight: np.ndarray, share: float) -> np.ndarray:
    contrast = np.zeros((n.shape[1], targets.shape[1]))
    for column in range(targets.shape[1]):
        sides = []
        for label in (1, 0):
            counts = [
                sum(weight[i] * n[i, word] for i in range(len(n)) if targets[i, column] == label)
                for word in range(n.shape[1])
            ]
            sides.append(np.array(counts, float))
        total = sides[0].sum() + sides[1].sum()
        if sides[0].sum() == 0 or sides[1].sum() == 0:
            continue
        for word in range(n.shape[1]):
            logs = [np.log((side[word] + 2 * side.sum() / total) / side.sum()) for side in sides]
            contrast[word, column] = abs(logs[0] - logs[1])
    mean = np.sqrt(np.mean(contrast**2))
    if mean < 1e-12:
        return np.ones_like(contrast)
    return 1 - share + share * contrast / mean


def dense_objective(flat, x, spread, scales, given, targets, c, weight):  # type: ignore[no-untyped-def]
    w, b = flat[:-targets.shape[1]].reshape(spread.shape[1], -1), flat[-targets.shape[1]:]  # fmt: skip
    scores = x @ spread @ (scales * w) + given + b
    each = np.maximum(0, 1 - (2 * targets - 1) * scores) ** 2
    return c * np.sum(weight[:, None] * each) + 0.5 * np.sum(w**2)


def subwords_of(v: int, n: int = 6, seed: int = 3) -> csr_array:
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((v, n)) < 0.4, rng.random((v, n)) + 0.5, 0)
    dense[1] = 0  # a word without subwords
    return csr_array(dense)


@pytest.mark.parametrize(("naive_bayes", "with_teacher"), [(0.0, False), (0.5, True)])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.0), (0.7, 0.0), (0.0, 1.5), (0.7, 1.5)])
def test_the_fit_is_the_minimum_of_the_dense_objective(
    columns: int, alpha: float, beta: float, naive_bayes: float, with_teacher: bool
) -> None:
    x, a, targets = problem(v=8, c=max(columns, 2))
    s = subwords_of(8)
    targets = targets[:, :1] if columns == 1 else targets
    weight = np.random.default_rng(1).random(len(targets)) + 0.5
    taught = teacher_of(8, columns) if with_teacher else None
    settings = LinearSettings(alpha=alpha, subwords=beta, naive_bayes=naive_bayes, C=2.0, max_iter=2000, tol=1e-14)
    fitted = fit_linear(x, targets, Blocks(a, s), settings, sample_weight=weight, taught=taught)
    scale = block_scales(x, Blocks(a, s), weight)
    # The words as they are, with the graph, and the subwords beside them: one plain linear model of a wider matrix.
    spread = np.hstack([np.eye(8) + alpha * scale.graph * a.toarray(), beta * scale.subwords * s.toarray()])
    scales = np.vstack(
        [
            scales_by_the_definition(x.toarray(), targets, weight, naive_bayes),
            subword_scales_by_the_definition(x.toarray(), s.toarray(), targets, weight, naive_bayes),
        ]
    )
    table, given = (taught.word_scores, x @ taught.word_scores + taught.bias) if taught is not None else (0, 0)
    arguments = (x.toarray(), spread, scales, given, targets, 2.0, weight)
    weights = scales * (spread.T @ x.T @ fitted.dual)
    found = np.concatenate([weights.ravel(), fitted.bias - (0 if taught is None else taught.bias)])
    best = minimize(dense_objective, np.zeros(len(found)), args=arguments, method="BFGS", options={"gtol": 1e-6})
    assert dense_objective(found, *arguments) == pytest.approx(best.fun, rel=1e-6)
    np.testing.assert_allclose(fitted.word_embeddings, spread @ (scales * weights) + table, atol=1e-8)
    assert (fitted.subword_rows is None) == (beta == 0)
    if fitted.subword_rows is not None:
        learnt = beta * scale.subwords * (scales * weights)[8:]
        np.testing.assert_allclose(fitted.subword_rows, learnt, atol=1e-8)
    expected = x @ spread @ (scales * best.x[:-columns].reshape(14, -1)) + given + best.x[-columns:]
    np.testing.assert_allclose(x @ fitted.word_embeddings + fitted.bias, expected, atol=1e-3)


@pytest.mark.parametrize("n", [9, 200])
@pytest.mark.parametrize("columns", [1, 3])
def test_subwords_are_more_columns_of_a_plain_model(n: int, columns: int) -> None:
    x, a, targets = problem(n, 12, max(columns, 2))
    targets, s = targets[:, :columns], subwords_of(12)
    settings = LinearSettings(alpha=0.7, subwords=1.2, naive_bayes=0, max_iter=5000, tol=1e-12)
    fitted = fit_linear(x, targets, Blocks(a, s), settings, scales=Scales(0.3, 0.4))
    wider = csr_array(np.hstack([x @ (np.eye(12) + 0.7 * 0.3 * a.toarray()), 1.2 * 0.4 * (x @ s).toarray()]))
    plain = fit_linear(wider, targets, Blocks(), settings)
    scores = wider @ plain.word_embeddings + plain.bias
    np.testing.assert_allclose(x @ fitted.word_embeddings + fitted.bias, scores, atol=1e-4)
    assert fitted.subword_rows is not None
    np.testing.assert_allclose(fitted.subword_rows, 1.2 * 0.4 * plain.word_embeddings[12:], atol=1e-4)
    assert fitted.factor == pytest.approx(0.7 * 0.3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("naive_bayes", [0.0, 0.5])
def test_without_subwords_or_with_none_that_any_word_has_nothing_changes(dtype: type, naive_bayes: float) -> None:
    x, a, targets = problem()
    x = x.astype(dtype)
    alone = fit_linear(x, targets, Blocks(a), LinearSettings(naive_bayes=naive_bayes))
    without = LinearSettings(naive_bayes=naive_bayes, subwords=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for blocks, settings in (
            (Blocks(a, subwords_of(12)), without),
            (Blocks(a, csr_array((12, 0))), LinearSettings(naive_bayes=naive_bayes)),
            (Blocks(a, csr_array((12, 4))), LinearSettings(naive_bayes=naive_bayes)),
        ):
            fitted = fit_linear(x, targets, blocks, settings)
            assert fitted.word_embeddings.tobytes() == alone.word_embeddings.tobytes()
            assert fitted.subword_rows is None


def test_words_that_are_spelt_alike_learn_from_each_other() -> None:
    # Words 0 and 1 are in documents; word 2 is in none, but is spelt like word 0.
    x = csr_array(np.array([[1, 0, 0]] * 5 + [[0, 1, 0]] * 5, float))
    s = csr_array(np.array([[1, 1, 0], [0, 0, 1], [1, 1, 0]], float))
    targets = np.repeat([[1.0], [0.0]], 5, axis=0)
    table = fit_linear(x, targets, Blocks(None, s), LinearSettings()).word_embeddings[:, 0]
    assert table[0] > table[2] > 0 > table[1]


def test_labels_that_hardly_count_leave_the_scores_of_the_teacher_and_a_bias() -> None:
    x, a, targets = problem()
    taught = teacher_of(12, 3)
    fitted = fit_linear(x, targets, Blocks(a), LinearSettings(C=1e-6, tol=1e-12), taught=taught)
    np.testing.assert_allclose(fitted.word_embeddings, taught.word_scores, atol=1e-4)
    beyond = x @ fitted.word_embeddings + fitted.bias - x @ taught.word_scores
    np.testing.assert_allclose(beyond, np.tile(beyond.mean(axis=0), (30, 1)), atol=1e-4)


def test_from_a_teacher_who_is_right_nothing_is_left_to_learn() -> None:
    targets = np.eye(3)[np.arange(30) % 3]
    x = csr_array(targets)
    fitted = fit_linear(x, targets, Blocks(), LinearSettings(), taught=Taught(3 * np.eye(3) - 1.5, np.zeros(3)))
    assert not fitted.dual.any()
    assert [record["loss"] for record in fitted.history] == [0]


def test_a_teacher_of_zeros_changes_no_bit() -> None:
    x, a, targets = problem()
    zeros = fit_linear(x, targets, Blocks(a), LinearSettings(), taught=Taught(np.zeros((12, 3)), np.zeros(3)))
    alone = fit_linear(x, targets, Blocks(a), LinearSettings())
    assert zeros.word_embeddings.tobytes() == alone.word_embeddings.tobytes()
    assert zeros.bias.tobytes() == alone.bias.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_fit_has_the_type_of_the_documents(dtype: type) -> None:
    x, a, targets = problem()
    blocks = Blocks(a, subwords_of(12).astype(np.float32))
    fitted = fit_linear(x.astype(dtype), targets.astype(np.float32), blocks, LinearSettings(), taught=teacher_of(12, 3))
    assert fitted.subword_rows is not None
    parts = (fitted.dual, fitted.word_embeddings, fitted.bias, fitted.own_rows, fitted.subword_rows)
    assert {part.dtype for part in parts} == {np.dtype(dtype)}


def naive_bayes_scales(
    transposed: csr_array, targets: np.ndarray, weight: np.ndarray, share: float, subwords: csr_array | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return R and R_s of all columns, 1 where there are none."""
    every, count = slice(0, targets.shape[1]), word_counts(transposed, Targets.of(targets), weight)
    own, spelt = NaiveBayesScales(count, share, None, subwords, [every])(every)
    if own is not None:
        return own, spelt
    ones = None if subwords is None else np.ones((subwords.shape[1], targets.shape[1]), transposed.dtype)
    return np.ones((transposed.shape[0], targets.shape[1]), transposed.dtype), ones


class Counted(NamedTuple):
    """Documents, classes and weights for naive_bayes_scales."""

    x: np.ndarray
    targets: np.ndarray
    weight: np.ndarray

    def scales(self, share: float = 0.5) -> np.ndarray:
        scales, spelt = naive_bayes_scales(csr_array(self.x.T), self.targets, self.weight, share)
        assert spelt is None
        return scales


@st.composite
def counted(draw: st.DrawFn) -> Counted:
    """Draw a few documents, in all of which the weights are whole numbers."""
    n, v, c = draw(st.integers(1, 8)), draw(st.integers(1, 6)), draw(st.integers(1, 3))
    x = draw(arrays(np.float64, (n, v), elements=st.sampled_from([0.0, 0.0, 0.5, 2.0])))
    targets = draw(arrays(np.float64, (n, c), elements=st.sampled_from([0.0, 1.0])))
    return Counted(x, targets, draw(arrays(np.float64, n, elements=st.sampled_from([1.0, 2.0, 3.0]))))


@given(counted(), st.floats(0, 1))
@settings(max_examples=40)
def test_the_scales_are_those_of_the_definition(documents: Counted, share: float) -> None:
    expected = scales_by_the_definition(*documents, share)
    np.testing.assert_allclose(documents.scales(share), expected, rtol=1e-6, atol=1e-9)


@given(counted(), st.floats(0, 1), st.integers(1, 5), st.integers(0, 100))
@settings(max_examples=40)
def test_the_scales_of_subwords_are_those_of_the_definition(
    documents: Counted, share: float, n_subwords: int, seed: int
) -> None:
    s = (np.random.default_rng(seed).random((documents.x.shape[1], n_subwords)) < 0.5) * 2.5
    scales, spelt = naive_bayes_scales(
        csr_array(documents.x.T), documents.targets, documents.weight, share, subwords=csr_array(s)
    )
    np.testing.assert_array_equal(scales, documents.scales(share))
    assert spelt is not None
    expected = subword_scales_by_the_definition(documents.x, s, documents.targets, documents.weight, share)
    np.testing.assert_allclose(spelt, expected, rtol=1e-6, atol=1e-9)


def test_scales_of_a_worked_example() -> None:
    # Word 0 is in both documents of the class, word 1 in both of the others, word 2 in one of each, word 3 in none.
    x = np.array([[1, 0, 1, 0], [1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0]], float)
    got = Counted(x, np.array([[1], [1], [0], [0.0]]), np.ones(4)).scales(1.0)
    # Of three words a side, with one more document of all words on either: (2 + 1) / 3 against (0 + 1) / 3.
    contrast = np.array([np.log(3), np.log(3), 0, 0])
    np.testing.assert_allclose(got.ravel(), contrast / np.sqrt(np.mean(contrast**2)), atol=1e-12)


@given(counted(), st.floats(0, 1))
@settings(max_examples=40)
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
@settings(max_examples=40)
def test_words_that_all_classes_use_alike_have_all_scales_one(
    rows: np.ndarray, inside: int, outside: int, share: float
) -> None:
    targets = np.repeat([[1.0], [0.0]], [3 * inside, 3 * outside], axis=0)
    documents = Counted(np.tile(rows, (inside + outside, 1)), targets, np.ones(len(targets)))
    np.testing.assert_allclose(documents.scales(share), 1, atol=1e-9)


@given(counted())
@settings(max_examples=40)
def test_a_share_of_zero_makes_all_scales_one_and_a_larger_one_blends(documents: Counted) -> None:
    assert np.array_equal(documents.scales(0.0), np.ones_like(documents.scales(0.0)))
    whole = documents.scales(1.0)
    np.testing.assert_allclose(documents.scales(0.25), 0.75 + 0.25 * whole, atol=1e-12)
    assert np.sqrt(np.mean(whole**2)) == pytest.approx(1)


@given(counted())
@settings(max_examples=40)
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
@settings(max_examples=40)
def test_the_order_of_documents_and_the_side_of_a_class_do_not_matter(documents: Counted, random: Random) -> None:
    order = list(range(len(documents.x)))
    random.shuffle(order)
    scales = documents.scales()
    np.testing.assert_allclose(Counted(*(part[order] for part in documents)).scales(), scales, atol=1e-9)
    np.testing.assert_allclose(documents._replace(targets=1 - documents.targets).scales(), scales, atol=1e-9)


@given(counted())
@settings(max_examples=40)
def test_documents_of_no_weight_and_zeros_that_are_stored_do_not_count(documents: Counted) -> None:
    rows = csr_array(documents.x.T)
    full = csr_array(np.ones_like(documents.x.T))
    full.data[:] = documents.x.T.ravel()
    got = naive_bayes_scales(full, documents.targets, documents.weight, 0.5)[0]
    np.testing.assert_array_equal(got, naive_bayes_scales(rows, documents.targets, documents.weight, 0.5)[0])
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
        fit_linear(x, targets, Blocks(), LinearSettings(naive_bayes=share, tol=1e-12)).word_embeddings[:, 0]
        for share in (0.0, 1.0)
    )
    assert freer[0] - freer[1] > plain[0] - plain[1]
    assert abs(freer[2]) < abs(plain[2])


def test_alpha_zero_leaves_the_graph_out() -> None:
    x, a, targets = problem()
    without = fit_linear(x, targets, Blocks(), LinearSettings())
    zero = fit_linear(x, targets, Blocks(a), LinearSettings(alpha=0))
    assert np.array_equal(without.word_embeddings, zero.word_embeddings)
    plain = fit_linear(x, targets, Blocks(a), LinearSettings(alpha=0, naive_bayes=0))
    np.testing.assert_allclose(plain.word_embeddings, x.T @ plain.dual, atol=1e-12)


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_the_number_of_threads_does_not_change_a_bit(n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_SMALL", 0)
    x, a, targets = problem(200, 60)
    blocks = Blocks(a, subwords_of(60, 100))
    one = fit_linear(x, targets, blocks, LinearSettings(), n_jobs=1)
    many = fit_linear(x, targets, blocks, LinearSettings(), n_jobs=n_jobs)
    assert one.word_embeddings.tobytes() == many.word_embeddings.tobytes()


def test_starting_from_another_fit_ends_at_the_same_place() -> None:
    x, a, targets = problem()
    settings = LinearSettings(max_iter=1000, tol=1e-14)
    taught = teacher_of(12, 3)
    cold = fit_linear(x, targets, Blocks(a), settings, taught=taught)
    start = fit_linear(x[:20], targets[:20], Blocks(a), settings, taught=teacher_of(12, 3, seed=5))
    padded = np.vstack([start.dual, np.zeros((10, 3))])
    warm = fit_linear(x, targets, Blocks(a), settings, taught=taught, start=padded)
    np.testing.assert_allclose(warm.bias, cold.bias, atol=1e-4)
    np.testing.assert_allclose(warm.word_embeddings, cold.word_embeddings, atol=1e-4)


def test_starting_from_its_own_answer_a_fit_is_done() -> None:
    x, a, targets = problem()
    settings = LinearSettings(max_iter=1000, tol=1e-10)
    cold = fit_linear(x, targets, Blocks(a), settings, taught=teacher_of(12, 3))
    warm = fit_linear(x, targets, Blocks(a), settings, taught=teacher_of(12, 3), start=cold.dual)
    assert len(cold.history) > 10
    assert len(warm.history) <= 3


def test_a_fit_that_is_broken_off_says_so() -> None:
    x, a, targets = problem()
    with pytest.warns(ConvergenceWarning, match="after 2 iterations"):
        fit_linear(x, targets, Blocks(a), LinearSettings(max_iter=2))


def test_the_objective_never_rises() -> None:
    x, a, targets = problem()
    losses = [record["loss"] for record in fit_linear(x, targets, Blocks(a), LinearSettings()).history]
    assert len(losses) > 1
    assert losses == sorted(losses, reverse=True)


def test_the_scales_make_all_parts_equally_long() -> None:
    x, a, _ = problem()
    s, weight = csr_array(subwords_of(12) + np.ones((12, 6))), np.arange(1.0, 31)  # all words have subwords
    scales = block_scales(x, Blocks(a, s), weight)
    parts = (x, scales.graph * (x @ a), scales.subwords * (x @ s))
    lengths = [weight @ np.linalg.norm(matrix.toarray(), axis=1) for matrix in parts]
    assert lengths == pytest.approx([lengths[0]] * 3)


def test_words_without_an_edge_or_without_subwords_do_not_count_in_the_scales() -> None:
    x, a, _ = problem()
    s, weight = subwords_of(12), np.arange(1.0, 31)
    wide = csr_array(np.hstack([x.toarray(), np.ones((30, 5))]))
    graph = csr_array((a.data, a.indices, np.append(a.indptr, [a.nnz] * 5)), shape=(17, 17))
    subwords = csr_array((s.data, s.indices, np.append(s.indptr, [s.nnz] * 5)), shape=(17, 6))
    wider = block_scales(wide, Blocks(graph, subwords), weight)
    assert wider == pytest.approx(block_scales(x, Blocks(a, s), weight))
    assert block_scales(wide, Blocks(csr_array((17, 17)), csr_array((17, 0))), weight) == (0, 0)
    assert block_scales(wide, Blocks(), weight) == (0, 0)
    assert block_scales(wide, Blocks(None, subwords), weight) == (0, pytest.approx(wider.subwords))


@pytest.mark.parametrize(
    "settings",
    [{"alpha": -1}, {"subwords": -0.5}, {"C": 0}, {"C": float("nan")}, {"max_iter": 0}]
    + [{"naive_bayes": value} for value in (-0.1, 1.5, float("nan"))],
)
def test_senseless_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(settings))} must be.*{next(iter(settings.values()))}"):
        LinearSettings(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("naive_bayes", [0.0, 0.5])
@pytest.mark.parametrize("most", [1, 3])
def test_columns_in_blocks_are_those_solved_together(
    most: int, naive_bayes: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, a, targets = problem(40, 12, 7)
    s, taught = subwords_of(12), teacher_of(12, 7)
    settings = LinearSettings(naive_bayes=naive_bayes, tol=1e-10)
    arguments = x, targets, Blocks(a, s), settings
    together = fit_linear(*arguments, taught=taught)
    column = x.dtype.itemsize * (linear_model.DOCUMENT_ARRAYS * 40 + linear_model.WORD_ARRAYS * (12 + s.shape[1]))
    monkeypatch.setattr(linear_model, "SOLVED_BYTES", most * column)
    blocks = fit_linear(*arguments, taught=taught)
    for name in ("dual", "word_embeddings", "bias", "own_rows", "subword_rows"):
        np.testing.assert_allclose(getattr(blocks, name), getattr(together, name), atol=1e-4)
    assert blocks.history[-1]["loss"] == pytest.approx(together.history[-1]["loss"], rel=1e-8)
    warm = fit_linear(*arguments, taught=taught, start=together.dual)
    assert len(warm.history) < len(blocks.history)
    np.testing.assert_allclose(warm.word_embeddings, together.word_embeddings, atol=1e-4)


def test_few_columns_are_solved_at_once_even_if_more_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    x, a, targets = problem(40, 12, 7)
    together = fit_linear(x, targets, Blocks(a), LinearSettings(tol=1e-10))
    widths, solve = list[int](), linear_model.minimize

    def watched(problem: Problem, **given: Any) -> Solution:
        widths.append(problem.signs.shape[1])
        return solve(problem, **given)

    monkeypatch.setattr(linear_model, "minimize", watched)
    monkeypatch.setattr(linear_model, "SOLVED_COLUMNS", 3)
    blocks = fit_linear(x, targets, Blocks(a), LinearSettings(tol=1e-10))
    assert (sum(widths), max(widths)) == (7, 3)
    np.testing.assert_allclose(blocks.word_embeddings, together.word_embeddings, atol=1e-4)


def test_a_dual_that_would_be_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    x, a, targets = problem()
    kept = fit_linear(x, targets, Blocks(a), LinearSettings())
    monkeypatch.setattr(linear_model, "DUAL_BYTES", kept.dual.nbytes - 1)
    fitted = fit_linear(x, targets, Blocks(a), LinearSettings())
    assert fitted.dual.shape == (len(kept.dual), 0)
    assert np.array_equal(fitted.word_embeddings, kept.word_embeddings)
    again = fit_linear(x, targets, Blocks(a), LinearSettings(), start=fitted.dual)
    assert np.array_equal(again.word_embeddings, kept.word_embeddings)
