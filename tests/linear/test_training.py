"""The two fits of the linear model: to what has a label, and to what the first has labelled."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from scipy.sparse import csr_array, vstack

from wgcn.base.errors import InputError
from wgcn.labels.targets import Targets
from wgcn.linear import training as linear_training
from wgcn.linear.calibration import SHARPNESS, calibrate, expected_accuracy, guesses
from wgcn.linear.model import Blocks, LinearSettings, block_scales, fit_linear
from wgcn.linear.task import LinearTask, LinearTrained, LinearTraining, Thresholds
from wgcn.linear.training import train_linear
from wgcn.scoring.scorer import Scorer

SETTINGS = LinearSettings(tol=1e-8, max_iter=500)


def documents(n: int, n_classes: int, seed: int) -> tuple[csr_array, np.ndarray]:
    """Return documents of three words out of the eight of their class, and of one of any; and their classes."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n) % n_classes
    x = np.zeros((n, 8 * n_classes), np.float64)
    for row, own in zip(x, classes, strict=True):
        row[8 * own + rng.choice(8, 3, replace=False)] = 1
        row[rng.integers(len(row))] += 1
    return csr_array(x / np.linalg.norm(x, axis=1, keepdims=True)), classes


def graph(x: csr_array) -> csr_array:
    shared = (x.T @ x).toarray()
    np.fill_diagonal(shared, 1)
    scale = 1 / np.sqrt(shared.sum(axis=1))
    return csr_array(scale[:, None] * shared * scale)


def training(**changes: Any) -> LinearTraining:
    return LinearTraining(
        **{"settings": SETTINGS, "teacher": 2.0, "self_training": 0.3, "validation_fraction": 0, **changes}
    )


def task(
    terms: csr_array, codes: Any, unlabelled: csr_array, adjacency: csr_array, weight: np.ndarray | None = None
) -> LinearTask:
    targets = Targets.single(codes, int(np.max(codes)) + 1)
    weight = np.ones(len(targets)) if weight is None else weight
    return LinearTask(terms=terms, targets=targets, weight=weight, unlabelled=unlabelled, adjacency=adjacency)


def trained(n_classes: int = 3, n: int = 12, weight: np.ndarray | None = None, **changes: Any) -> LinearTrained:
    x, classes = documents(n + 90, n_classes, 0)
    own = replace(task(x[:n], classes[:n], x[n:], graph(x), weight), class_prior=changes.pop("class_prior", None))
    return train_linear(own, training(**changes))


def shift_to(prior: np.ndarray, scorer: Scorer, scores: np.ndarray) -> np.ndarray:
    """Return what is added to scores so that mean probabilities of documents are the shares that are given."""
    shift = np.zeros(len(prior))
    for _ in range(500):
        shift += (np.log(prior) - np.log(scorer.probabilities(scores + shift).mean(axis=0))) / scorer.sharpness
    return shift


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("strength", [0.0, 2.0])
@pytest.mark.parametrize("skewed", [False, True])
def test_the_second_fit_is_one_to_all_documents_with_the_labels_of_the_first(
    n_classes: int, strength: float, skewed: bool
) -> None:
    n = 12
    x, classes = documents(n + 90, n_classes, 0)
    weight = np.linspace(0.5, 2, n)
    shares = np.average(np.eye(n_classes)[classes[:n]], axis=0, weights=weight)
    prior = np.arange(1.0, n_classes + 1) / np.arange(1, n_classes + 1).sum() if skewed else None
    first = trained(n_classes, n, weight, teacher=strength, self_training=0, class_prior=prior).scorer
    if prior is not None:  # which shifts the scores where there is no second fit
        first = first.with_prior(shares)
    others = x[n:]
    scores = np.asarray(others @ first.word_embeddings + first.bias)
    if prior is not None:  # the shares are given for the unlabelled documents: labels are guessed with these
        scores = scores + shift_to(prior, replace(first, sharpness=SHARPNESS), scores) / 2
    guessed = scores.argmax(axis=1)
    own_weight = np.array([weight[classes[:n] == c].mean() for c in range(n_classes)])
    targets = np.eye(n_classes)[np.concatenate([classes[:n], guessed])]
    expected = fit_linear(
        csr_array(vstack([x[:n], others])),
        targets[:, 1:] if n_classes == 2 else targets,
        Blocks(graph(x)),
        SETTINGS,
        sample_weight=np.concatenate([weight, 0.3 * own_weight[guessed] * certainty(scores)]),
        scales=block_scales(x[:n], Blocks(graph(x)), weight),
    )
    found = trained(n_classes, n, weight, teacher=strength, class_prior=prior)
    table, bias = found.scorer.word_embeddings, found.scorer.bias
    atol = 1e-6 if prior is None else 1e-4  # the shift ends after some steps
    np.testing.assert_allclose(table[:, 1:] if n_classes == 2 else table, expected.word_embeddings, atol=atol)
    np.testing.assert_allclose(found.scorer.prior, shares if prior is None else prior)
    np.testing.assert_allclose(bias[1:] if n_classes == 2 else bias, expected.bias, atol=atol)
    assert prior is not None or found.history == expected.history


def test_a_word_that_no_labelled_document_has_is_learnt_from_the_others() -> None:
    x = np.zeros((24, 4))
    x[:2, :2] = np.eye(2)
    x[2:13, [0, 2]] = x[13:, [1, 3]] = 1  # word 2 goes with word 0, word 3 with word 1
    terms, empty = csr_array(x), csr_array((4, 4))
    tables = [
        train_linear(task(terms[:2], [0, 1], terms[2:], empty), training(teacher=0, self_training=w))
        for w in (0.0, 0.3)
    ]
    first, second = (each.scorer.word_embeddings for each in tables)
    assert not first[2:].any()
    assert second[2, 0] > 0.1 > -0.1 > second[2, 1]
    assert second[3, 1] > 0.1 > -0.1 > second[3, 0]


def test_a_heavier_document_without_a_label_counts_more_and_none_counts_nothing() -> None:
    plain = trained(self_training=0).scorer.word_embeddings
    light, heavy = (trained(self_training=share).scorer.word_embeddings for share in (1e-9, 1.0))
    fitted_alone = trained(self_training=0, teacher=0).scorer.word_embeddings
    np.testing.assert_allclose(light, fitted_alone, atol=1e-4)  # the second fit has no teacher
    assert np.abs(heavy - light).max() > 0.05
    assert np.abs(plain - light).max() > 0.05


def test_documents_that_are_held_out_have_no_label_in_either_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 120
    x, classes = documents(n + 90, 3, 0)
    sizes = []

    def watched(terms: csr_array, targets: np.ndarray, *given: Any, **named: Any) -> Any:
        sizes.append(terms.shape[0])
        return fit_linear(terms, targets, *given, **named)

    monkeypatch.setattr(linear_training, "fit_linear", watched)
    how = training(validation_fraction=0.1, limits=Thresholds(beside_teacher=0))
    found = train_linear(task(x[:n], classes[:n], x[n:], graph(x)), how)
    assert sizes == [108, 108 + 90, 120, 120 + 90]
    assert found.n_held_out == 12
    assert found.held_out_accuracy is not None
    assert found.held_out_accuracy > 0.8


@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_labels_are_all_fitted_and_the_teacher_tells_how_good_it_is(n_classes: int) -> None:
    asked, not_asked = (trained(n_classes, 20, validation_fraction=share) for share in (0.1, 0))
    assert np.array_equal(asked.scorer.word_embeddings, not_asked.scorer.word_embeddings)
    assert (not_asked.held_out_accuracy, not_asked.n_held_out) == (None, 0)
    assert asked.n_held_out == 20
    assert asked.held_out_accuracy is not None
    assert asked.held_out_accuracy > 0.8
    x, classes = documents(400, n_classes, 1)
    truth = np.eye(n_classes)[classes]
    losses = []
    for found in (asked, not_asked):
        scores = found.scorer.scores_of(x)
        losses.append(-np.mean(np.log((found.scorer.probabilities(scores) * truth).sum(axis=1))))
    assert losses[0] < losses[1] + 0.05


def test_labels_that_say_nothing_make_the_model_doubt() -> None:
    x, _ = documents(200, 3, 0)
    random = np.random.default_rng(0).permutation(np.arange(60) % 3)
    found = train_linear(task(x[:60], random, x[60:], graph(x)), training(validation_fraction=0.1))
    assert found.held_out_accuracy is not None
    assert found.held_out_accuracy < 0.6
    scores = found.scorer.scores_of(x[60:])
    assert found.scorer.probabilities(scores).max(axis=1).mean() < 0.6


def test_a_few_documents_that_are_all_right_do_not_make_the_model_certain() -> None:
    scorer = Scorer(np.zeros((1, 3)), None, np.zeros(3), np.full(3, 1 / 3), 2.0)
    for n in (1, 10, 100, 10_000):
        targets = np.eye(3)[np.arange(n) % 3]
        sharpness = calibrate(scorer, 2 * targets - 1, targets, n).sharpness
        assert 2 <= sharpness < 8
    wrong = calibrate(scorer, 1 - 2 * targets, targets, 10_000).sharpness
    assert wrong < 0.1


@pytest.mark.parametrize("n", [200, 20_000])
def test_sharpness_is_found_where_the_documents_tell(n: int) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(n, 4))
    scorer = Scorer(np.zeros((1, 4)), None, np.zeros(4), np.full(4, 1 / 4), 2.0)
    likely = replace(scorer, sharpness=5.0).probabilities(scores)
    codes = (likely.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    found = calibrate(scorer, scores, np.eye(4)[codes], n).sharpness
    assert found == pytest.approx(5, rel=0.3 if n == 200 else 0.05)


def test_classes_of_one_document_each_tell_nothing() -> None:
    x, _ = documents(40, 3, 0)
    found = train_linear(task(x[:3], [0, 1, 2], x[3:], graph(x)), training(validation_fraction=0.1))
    assert (found.held_out_accuracy, found.n_held_out) == (None, 0)
    likely = found.scorer.probabilities(found.scorer.scores_of(x[3:])).max(axis=1).mean()
    assert likely <= expected_accuracy(None, 0, np.ones(3)) + 0.01


def test_a_document_alone_in_its_class_counts_as_wrong() -> None:
    x, classes = documents(120, 3, 0)
    alone = np.append(classes[:30], [3, 4])
    found = train_linear(task(x[:32], alone, x[32:], graph(x)), training(validation_fraction=0.1))
    assert found.n_held_out == 32
    assert found.held_out_accuracy is not None
    assert found.held_out_accuracy <= 30 / 32


def test_classes_without_a_label_have_probability_and_few_labels_claim_little() -> None:
    x, classes = documents(120, 3, 0)
    targets = Targets.single(classes[:6], 20)
    own = replace(task(x[:6], classes[:6], x[6:], graph(x)), targets=targets)
    found = train_linear(own, training(validation_fraction=0.1)).scorer
    likely = found.probabilities(found.scores_of(x[6:]))
    assert (likely > 1e-4).all()
    assert (likely.argmax(axis=1) < 3).mean() > 0.95
    assert likely.max(axis=1).mean() < 0.75  # six documents are all right in cross-validation
    nothing = found.probabilities(found.scores_of(csr_array((1, x.shape[1]))))
    np.testing.assert_allclose(nothing, [(np.array([3, 3, 3, *[1] * 17])) / 26])


def test_classes_with_one_label_tell_of_classes_without_any() -> None:
    """Good and Turing: as many labels are their class's only one as new documents have a class that no label names."""
    settled = expected_accuracy(0.9, 30, np.array([10.0, 10.0, 10.0, 0.0]))
    assert expected_accuracy(0.9, 30, np.array([10.0, 10.0, 9.0, 1.0])) < settled - 0.02
    assert expected_accuracy(0.9, 30, np.array([10.0, 10.0, 8.0, 2.0])) > settled - 0.02


@drawn(st.integers(2, 40), st.integers(1, 200), st.data())
def test_expected_accuracy_lies_between_chance_and_what_was_judged(n_classes: int, n: int, data: st.DataObject) -> None:
    counts = np.bincount(
        data.draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n)), minlength=n_classes
    )
    none, all_right, all_wrong = (expected_accuracy(a, n, counts) for a in (None, 1.0, 0.0))
    assert 1 / n_classes <= all_wrong <= none <= all_right <= 1


@pytest.mark.parametrize("n_labelled", [2, 120])
@pytest.mark.parametrize("n_others", [0, 5])
def test_one_document_a_class_can_be_learnt(n_labelled: int, n_others: int) -> None:
    terms, others = csr_array(np.eye(n_labelled, 130)), csr_array(np.eye(n_others, 130))
    adjacency = csr_array(np.ones((130, 130)) / 130)
    trained = train_linear(task(terms, np.arange(n_labelled), others, adjacency), LinearTraining(LinearSettings()))
    assert trained.n_held_out == 0
    scores = trained.scorer.scores_of(terms)
    assert np.array_equal(scores.argmax(axis=1), np.arange(n_labelled))


def test_documents_of_weight_0_are_as_if_they_were_not_there() -> None:
    rng = np.random.default_rng(0)
    terms, codes = csr_array(rng.random((260, 8))), np.arange(260) % 2
    weight = (np.arange(260) < 6).astype(float)  # hardly a part of them that has any weight
    training = LinearTraining(LinearSettings())
    graph, others = csr_array((8, 8)), csr_array((0, 8))
    all_of_them = train_linear(task(terms, codes, others, graph, weight), training)
    few = train_linear(task(terms[:6], codes[:6], others, graph), training)
    assert np.array_equal(all_of_them.scorer.word_embeddings, few.scorer.word_embeddings)


@pytest.mark.parametrize("name", ["teacher", "self_training"])
@pytest.mark.parametrize("value", [-1.0, float("inf"), float("nan")])
def test_senseless_weights_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"{name} must be (at least 0|below 2\*\*63), got"):
        training(**{name: value})


def test_several_classes_a_document_leave_the_others_out() -> None:
    x, _ = documents(30, 3, 0)
    targets = np.array([[1, 0], [1, 1], [0, 1], [0, 0]] * 3, float)
    found = [
        train_linear(
            LinearTask(
                terms=x[:12],
                targets=Targets.of(targets),
                multilabel=True,
                weight=np.ones(12),
                unlabelled=others,
                adjacency=graph(x),
            ),
            training(),
        )
        for others in (x[12:], x[12:12])
    ]
    assert np.array_equal(found[0].scorer.word_embeddings, found[1].scorer.word_embeddings)


def certainty(scores: np.ndarray) -> np.ndarray:
    """Return how certain the guesses of two batches of scores are."""
    half = len(scores) // 2
    codes, found = guesses([(slice(0, half), scores[:half]), (slice(half, len(scores)), scores[half:])])
    assert np.array_equal(codes, scores.argmax(axis=1))
    return found


@drawn(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 4), st.sampled_from([np.float32, np.float64]))
def test_certainty_is_one_on_average_within_each_class_and_never_much_larger(
    seed: int, n: int, n_classes: int, dtype: type
) -> None:
    scores = np.random.default_rng(seed).standard_normal((n, n_classes)).astype(dtype) ** 3
    weights, codes = certainty(scores), scores.argmax(axis=1)
    best = np.sort(scores.astype(float), axis=1)
    for code in np.unique(codes):
        own = codes == code
        assert weights[own].mean() == pytest.approx(1)
        if n_classes > 1:
            distances = best[own, -1] - best[own, -2]
            capped = np.minimum(distances, 2 * np.median(distances))
            np.testing.assert_allclose(weights[own], capped / capped.mean(), rtol=1e-4)


def test_certainty_of_one_class_of_ties_and_of_nothing() -> None:
    assert certainty(np.array([[3.0], [-1.0]])).tolist() == [1, 1]
    assert certainty(np.zeros((3, 2))).tolist() == [1, 1, 1]
    # More than half are ties: twice their median is 0, so all count alike.
    np.testing.assert_allclose(certainty(np.array([[1.0, 1], [1, 1], [9, 1], [0, 4]])), 1)
    assert certainty(np.empty((0, 3))).shape == (0,)


def test_one_document_that_is_far_more_certain_than_the_others_counts_little_more() -> None:
    scores = np.array([[1.0, 0], [1, 0], [1, 0], [1000, 0], [0, 5]])
    np.testing.assert_allclose(certainty(scores), [0.8, 0.8, 0.8, 1.6, 1])


def subwords_of(n_words: int) -> csr_array:
    dense = np.zeros((n_words, n_words // 2))
    dense[np.arange(n_words), np.arange(n_words) % (n_words // 2)] = 1.0
    return csr_array(dense)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_subwords_have_a_column_per_class(n_classes: int, dtype: type) -> None:
    x, classes = documents(60, n_classes, 0)
    x, s = x.astype(dtype), subwords_of(x.shape[1])
    given = replace(task(x[:40], classes[:40], x[40:], graph(x)), subwords=s)
    found = train_linear(given, training())
    assert found.subword_rows is not None
    assert found.subword_rows.shape == (s.shape[1], n_classes)
    assert found.subword_rows.dtype == dtype
    if n_classes == 2:
        np.testing.assert_array_equal(found.subword_rows[:, 0], -found.subword_rows[:, 1])
    # The table without what subwords say is what graph and words say.
    rest = found.scorer.word_embeddings - s @ found.subword_rows
    spread = np.eye(len(rest)) + found.factor * graph(x).toarray()
    np.testing.assert_allclose(spread @ found.own_rows, rest, atol=1e-4)
    assert train_linear(replace(given, subwords=None), training()).subword_rows is None


def test_several_classes_a_document_have_subwords_too() -> None:
    x, _ = documents(30, 3, 0)
    targets = np.array([[1, 0], [1, 1], [0, 1], [0, 0]] * 3, float)
    given = LinearTask(
        terms=x[:12],
        targets=Targets.of(targets),
        multilabel=True,
        weight=np.ones(12),
        unlabelled=x[12:],
        adjacency=graph(x),
        subwords=subwords_of(x.shape[1]),
    )
    found = train_linear(given, training())
    assert found.subword_rows is not None
    assert found.subword_rows.shape == (12, 2)
    assert not np.allclose(found.subword_rows[:, 0], -found.subword_rows[:, 1])
