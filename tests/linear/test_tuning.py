"""The choice of settings: against made models whose right answers are known, and in the estimators."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from wgcn import TextModel, WGCNClassifier, WGCNTextClassifier, WordGraph
from wgcn.labels.targets import Targets
from wgcn.linear import training as linear_training
from wgcn.linear import tuning
from wgcn.linear.model import Blocks, LinearSettings
from wgcn.linear.task import LinearTask, LinearTrained, LinearTraining, Thresholds
from wgcn.linear.training import train_linear
from wgcn.linear.tuning import Candidate, Round, Tuned, margins_of, refine, rounds, tune
from wgcn.semi.teacher import Taught, Teacher

DEFAULT = {"C": 0.5, "naive_bayes": 0.5, "lead": 0}
NO_LEADS = rounds((), short=True)
OTHERS = NO_LEADS[1](DEFAULT)[0]
SMALLER, LARGER, PLAIN = OTHERS
SURE = 99.0  # a margin so large that a document counts 1 if it is right, and 0 if not


@pytest.fixture(scope="module", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    """Matrices so small take a hundred times longer on several threads of a busy machine."""
    with threadpool_limits(1, "blas"):
        yield


class Judge:
    """A made model with given margins of documents; it notes what it was asked."""

    def __init__(self, n: int, margins: Callable[[Candidate], np.ndarray], n_parts: int = 2) -> None:
        self.margins, self.asked = margins, list[tuple[int, Candidate]]()
        self.parts = [np.arange(n)[place::n_parts] for place in range(n_parts)]

    def __call__(self, place: int, settings: Candidate) -> np.ndarray:
        self.asked.append((place, settings))
        return np.asarray(self.margins(settings)[self.parts[place]])

    def tune(self, weight: np.ndarray | None = None, rounds: Sequence[Round] = NO_LEADS) -> Tuned:
        n = sum(map(len, self.parts))
        return tune(self, self.parts, np.ones(n) if weight is None else weight, DEFAULT, rounds)


def better_with(
    n: int, better: Candidate, per_part: tuple[int, ...], worse: int = 0, n_parts: int = 2
) -> Callable[[Candidate], np.ndarray]:
    """Return a rule: half are right; with one setting so many more per part, and `worse` others are wrong."""

    def margins(settings: Candidate) -> np.ndarray:
        answers = np.where(np.arange(n) // n_parts % 2 == 0, SURE, -SURE)
        if settings == better:
            for place, n_more in enumerate(per_part):
                own = np.arange(n)[place::n_parts]
                answers[own[1::2][:n_more]] = SURE
                answers[own[::2][:worse]] = -SURE
        return answers

    return margins


def any_of(*rules: Callable[[Candidate], np.ndarray]) -> Callable[[Candidate], np.ndarray]:
    """Return a rule that is right where one of several is."""
    return lambda settings: np.max([rule(settings) for rule in rules], axis=0)


def one_round(*others: Candidate, least: float = 0.0) -> list[Round]:
    return [lambda best: ([{**best, **other} for other in others], least)]


def test_the_others_are_a_smaller_and_a_larger_c_and_for_short_texts_a_plain_model() -> None:
    assert [{**each, "C": 0.5} for each in (SMALLER, LARGER)] == [DEFAULT] * 2
    assert SMALLER["C"] < 0.5 < LARGER["C"] < PLAIN["C"]
    assert {**PLAIN, "C": 0.5} == {**DEFAULT, "naive_bayes": 0.0}
    assert rounds((), short=False)[1](DEFAULT)[0] == OTHERS[:2]
    plain = {"C": 1.0, "naive_bayes": 0.0, "lead": 7}
    assert NO_LEADS[1](plain)[0] == [{**plain, "C": 2 * each["C"]} for each in OTHERS[:2]]


def test_leads_come_first_and_need_no_least_gain_but_another_c_does() -> None:
    leads, penalties = rounds((50, 200), short=False)
    assert leads(DEFAULT) == ([{**DEFAULT, "lead": 50}, {**DEFAULT, "lead": 200}], 0.0)
    assert [each["lead"] for each in penalties({**DEFAULT, "lead": 50})[0]] == [50, 50]
    assert penalties(DEFAULT)[1] > 0
    assert NO_LEADS[0](DEFAULT) == ([], 0.0)


@pytest.mark.parametrize("better", OTHERS)
@pytest.mark.parametrize("n_parts", [1, 2, 3])
def test_what_is_better_on_all_parts_replaces_the_default(better: Candidate, n_parts: int) -> None:
    judge = Judge(600, better_with(600, better, (30,) * n_parts, n_parts=n_parts), n_parts)
    tuned = judge.tune()
    assert tuned.settings == better
    assert (tuned.accuracy, tuned.default_accuracy) == (pytest.approx(0.5 + n_parts * 30 / 600), 0.5)
    assert (tuned.n_held_out, tuned.n_fits) == (600, 3 + 2 * (n_parts - 1))
    first = [(0, settings) for settings in (DEFAULT, *OTHERS)]
    assert judge.asked == first + [(place, each) for place in range(1, n_parts) for each in (DEFAULT, better)]


def test_where_nothing_is_ahead_the_default_stays_after_one_part() -> None:
    for rule in (better_with(400, {}, ()), better_with(400, LARGER, (0, 50)), better_with(400, LARGER, (0,), 9)):
        judge = Judge(400, rule)
        tuned = judge.tune()
        assert tuned.settings == DEFAULT
        assert (tuned.accuracy, tuned.default_accuracy) == (0.5, 0.5)
        assert (tuned.n_held_out, tuned.n_fits, len(judge.asked)) == (200, 3, 4)


@pytest.mark.parametrize(
    ("per_part", "worse", "n_parts", "chosen"),
    [
        ((2, 2), 0, 2, False),  # 4 documents: 2 standard errors, and no more
        ((3, 2), 0, 2, True),  # 5 documents: 2.2
        ((30, 50), 28, 1, False),  # 2 of 58: 0.3, given up after the first part
        ((35, 0), 28, 2, False),  # 7 of 63: 0.9, then -21 of 91
        ((40, 40), 28, 2, True),  # 24 of 136: 2.06
        ((39, 40), 28, 2, False),  # 23 of 135: 1.98
    ],
)
def test_luck_is_not_enough(per_part: tuple[int, ...], worse: int, n_parts: int, chosen: bool) -> None:
    judge = Judge(400, better_with(400, LARGER, per_part, worse))
    tuned = judge.tune()
    assert tuned.settings == (LARGER if chosen else DEFAULT)
    assert tuned.n_fits == 3 + 2 * (n_parts - 1)
    assert tuned.n_held_out == 200 * n_parts
    assert (tuned.accuracy > tuned.default_accuracy) == chosen


def test_only_the_best_on_the_first_part_goes_on() -> None:
    judge = Judge(400, any_of(better_with(400, LARGER, (20, 60)), better_with(400, PLAIN, (25, 20))))
    tuned = judge.tune()
    assert tuned.settings == PLAIN
    assert tuned.accuracy == pytest.approx(0.5 + 45 / 400)
    assert (1, LARGER) not in judge.asked


def test_what_falls_back_on_a_later_part_is_given_up_before_the_next() -> None:
    judge = Judge(600, better_with(600, LARGER, (35, 0, 90), 28, n_parts=3), 3)
    tuned = judge.tune()
    assert tuned.settings == DEFAULT
    assert (tuned.n_held_out, tuned.n_fits) == (400, 5)
    assert all(place < 2 for place, _ in judge.asked)


LEAD, LEAD_AND_LARGER = {**DEFAULT, "lead": 50}, {**LARGER, "lead": 50}
WITH_LEADS = rounds((50, 200), short=False)


def test_a_round_varies_what_was_best_before_it() -> None:
    lead, both = better_with(400, LEAD, (20, 20)), better_with(400, LEAD_AND_LARGER, (40, 40))
    judge = Judge(400, any_of(lead, both))
    tuned = judge.tune(rounds=WITH_LEADS)
    assert tuned.settings == LEAD_AND_LARGER
    assert (tuned.accuracy, tuned.default_accuracy) == (pytest.approx(0.5 + 80 / 400), 0.5)
    assert tuned.n_fits == 2 + 2 + 2
    of_first = [DEFAULT, LEAD, {**DEFAULT, "lead": 200}, {**SMALLER, "lead": 50}, LEAD_AND_LARGER]
    assert judge.asked == [(0, each) for each in of_first] + [(1, DEFAULT), (1, LEAD_AND_LARGER)]


def test_a_lead_that_is_no_better_leaves_the_next_round_to_the_default() -> None:
    judge = Judge(400, better_with(400, LARGER, (30, 30)))
    assert judge.tune(rounds=WITH_LEADS).settings == LARGER
    assert [each for place, each in judge.asked if place == 0][3:] == [SMALLER, LARGER]


def test_a_round_is_compared_with_the_best_before_it_and_not_with_the_default() -> None:
    for n_more, chosen in ((10, LEAD), (30, LEAD), (50, LEAD_AND_LARGER)):
        lead, both = better_with(400, LEAD, (30, 30)), better_with(400, LEAD_AND_LARGER, (n_more, n_more))
        assert Judge(400, any_of(lead, both)).tune(rounds=WITH_LEADS).settings == chosen


def test_what_was_best_in_the_end_is_compared_with_the_default_on_all_parts() -> None:
    # Each round is half a standard error ahead on the first part, and the second part says otherwise.
    lead, both = better_with(400, LEAD, (20, 0), 5), better_with(400, LEAD_AND_LARGER, (40, 0), 20)
    judge = Judge(400, lambda given: (both if given == LEAD_AND_LARGER else lead)(given))
    assert judge.tune(rounds=WITH_LEADS).settings == DEFAULT
    assert judge.asked[-2:] == [(1, DEFAULT), (1, LEAD_AND_LARGER)]


@pytest.mark.parametrize("better", [LEAD, LARGER, SMALLER])
def test_another_c_has_to_gain_more_than_a_lead(better: Candidate) -> None:
    least = WITH_LEADS[1](DEFAULT)[1]
    n = int(2 * 9 / least)  # in two parts, and 8 documents more in each are less than the least gain
    for n_more in (8, 10):
        tuned = Judge(n, better_with(n, better, (n_more, n_more))).tune(rounds=WITH_LEADS)
        assert tuned.settings == (better if better is LEAD or n_more > 9 else DEFAULT)


@pytest.mark.parametrize("least", [0.0, 0.049, 0.051])
def test_a_round_needs_its_least_gain(least: float) -> None:
    judge = Judge(400, better_with(400, LARGER, (10, 10)))  # a gain of 0.05
    tuned = judge.tune(rounds=one_round(LARGER, least=least))
    assert tuned.settings == (DEFAULT if least > 0.05 else LARGER)
    assert tuned.n_fits == (1 if least > 0.05 else 3)


def test_a_document_counts_as_much_as_its_weight() -> None:
    rule = better_with(400, LARGER, (30, 30))
    weight = np.where(rule(LARGER) != rule(DEFAULT), 0.0, 2.0)
    assert Judge(400, rule).tune(weight).settings == DEFAULT
    weight = 1.0 + np.arange(400)
    tuned = Judge(400, rule).tune(weight)
    assert tuned.default_accuracy == pytest.approx(np.average(rule(DEFAULT) > 0, weights=weight))
    assert tuned.accuracy == pytest.approx(np.average(rule(LARGER) > 0, weights=weight))
    # What is better about documents of little weight, and worse about few that weigh much, is worse.
    rule = better_with(400, LARGER, (60, 60), worse=20)
    assert Judge(400, rule).tune().settings == LARGER
    assert Judge(400, rule).tune(np.where(rule(LARGER) < rule(DEFAULT), 9.0, 1.0)).settings == DEFAULT


def test_weights_are_relative_and_a_part_may_have_none() -> None:
    rule = better_with(400, LARGER, (30, 30))
    assert Judge(400, rule).tune(np.full(400, 1e-3)).settings == LARGER
    second = np.arange(400) % 2 == 1
    judge = Judge(400, lambda given: np.where(second & (given == LARGER), -SURE, rule(given)))
    assert judge.tune().settings == DEFAULT
    assert judge.tune(np.where(second, 0.0, 1.0)).settings == LARGER


def test_a_document_that_is_clearly_right_counts_more_than_one_that_is_barely_so() -> None:
    def clearer_with_a_larger_c(size: float) -> Tuned:
        return Judge(400, lambda given: np.full(400, 0.1 + size * (given == LARGER))).tune()

    assert clearer_with_a_larger_c(0.5).settings == LARGER
    assert clearer_with_a_larger_c(-0.05).settings == DEFAULT
    assert clearer_with_a_larger_c(0.5).accuracy == clearer_with_a_larger_c(0.5).default_accuracy == 1.0


@given(st.integers(0, 2**32 - 1), st.integers(10, 80), st.integers(1, 3), st.booleans())
@settings(max_examples=50)
def test_what_is_chosen_is_two_standard_errors_ahead_on_all_parts(
    seed: int, n: int, n_parts: int, with_leads: bool
) -> None:
    good = {**PLAIN, "lead": 50 * with_leads}

    def judge_of() -> tuple[Judge, dict[str, np.ndarray]]:
        rng, known = np.random.default_rng(seed), dict[str, np.ndarray]()

        def margins(given: Candidate) -> np.ndarray:
            share = 0.5 + 0.2 * (given["lead"] == 50) + 0.25 * (given == good)
            return known.setdefault(str(given), np.where(rng.random(n) < share, SURE, -SURE))

        return Judge(n, margins, n_parts), known

    (judge, known), (again, _) = judge_of(), judge_of()
    proposed = rounds((50, 200) if with_leads else (), short=True)
    weight = np.random.default_rng(seed).random(n) + 0.1
    tuned = judge.tune(weight, proposed)
    assert again.tune(weight, proposed) == tuned
    assert tuned.accuracy >= tuned.default_accuracy
    assert len(judge.asked) == tuned.n_fits + 1
    if tuned.settings == DEFAULT:
        assert tuned.accuracy == tuned.default_accuracy
    else:
        difference = weight * ((known[str(tuned.settings)] > 0) - 1.0 * (known[str(DEFAULT)] > 0))
        assert difference.sum() > 2 * np.sqrt(np.square(difference).sum())
        assert tuned.accuracy == pytest.approx(np.average(known[str(tuned.settings)] > 0, weights=weight))
        assert tuned.n_held_out == n


def margins(scores: np.ndarray, targets: np.ndarray, multilabel: bool) -> np.ndarray:
    """Return the margins by two batches, which are those by one."""
    known, half = Targets.of(targets), len(scores) // 2
    found = margins_of([(slice(0, len(scores)), scores)], known, multilabel)
    parts = [(slice(0, half), scores[:half]), (slice(half, len(scores)), scores[half:])]
    assert np.array_equal(margins_of(parts, known, multilabel), found)
    return found


def test_the_margin_of_two_classes_is_the_distance_of_their_scores() -> None:
    scores, targets = np.array([[-1.0, 1.0], [-3.0, 3.0], [2.0, -2.0]]), np.array([[0, 1], [1, 0], [1, 0]])
    assert margins(scores, targets, False).tolist() == [2 / 4, -6 / 4, 4 / 4]


def test_the_margin_of_several_classes_is_the_distance_from_the_best_wrong_one() -> None:
    scores = np.array([[1.0, 4.0, 2.0], [1.0, 4.0, 2.0], [5.0, 5.0, -9.0]])
    targets = np.array([[0, 1, 0], [1, 0, 0], [1, 0, 0]])
    assert margins(scores, targets, False).tolist() == [2 / 2, -3 / 2, 0]


def test_the_margin_of_several_labels_is_the_least_distance_from_a_wrong_decision() -> None:
    scores = np.array([[1.0, -4.0, 2.0], [1.0, -4.0, 2.0], [3.0, -5.0, -4.0], [-1.0, -2.0, -4.0]])
    targets = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 0], [0, 0, 0]])
    assert margins(scores, targets, True).tolist() == [1 / 1.5, -2 / 1.5, 3 / 1.5, 1 / 1.5]


@given(st.integers(0, 2**32 - 1), st.integers(0, 20), st.integers(2, 5), st.booleans())
def test_margins_are_above_zero_where_the_model_is_right_whatever_the_size_of_its_scores(
    seed: int, n: int, n_classes: int, multilabel: bool
) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((n, n_classes))
    targets = np.eye(n_classes)[rng.integers(0, n_classes, n)]
    right = scores.argmax(axis=1) == targets.argmax(axis=1)
    if multilabel:
        targets = (rng.random((n, n_classes)) < 0.5).astype(float)
        right = ((scores > 0) == (targets > 0)).all(axis=1)
    found = margins(scores, targets, multilabel)
    assert found.shape == (n,)
    assert np.array_equal(found > 0, right)
    assert np.allclose(margins(scores * 1000, targets, multilabel), found)
    if n:
        assert np.median(np.abs(found)) == pytest.approx(1)


def test_scores_that_are_all_alike_have_finite_margins() -> None:
    assert margins(np.zeros((3, 2)), np.eye(2)[[0, 1, 1]], False).tolist() == [0, 0, 0]
    assert margins(np.zeros((3, 2)), np.eye(2)[[0, 1, 1]], True).tolist() == [0, 0, 0]


# Where documents are many


class ManyJudge(Judge):
    """A made model whose documents are right with given settings; it notes which fits were accepted."""

    def __init__(self, right: dict[tuple[float, float], int]) -> None:
        def margins(settings: Candidate) -> np.ndarray:
            return np.where(np.arange(1000) < right.get((settings["C"], settings["naive_bayes"]), 0), SURE, -SURE)

        super().__init__(1000, margins, 1)
        self.accepted: list[Candidate] = []

    def accept(self) -> None:
        self.accepted.append(self.asked[-1][1])

    def refine(self, tuned: Candidate) -> Tuned:
        before = Tuned(tuned, 0.0, 0.0, 0, 3)
        return refine(self, self.parts[0], np.ones(1000), DEFAULT, before)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("right", "tuned", "chosen", "n_tried"),
    [
        ({(0.5, 0.5): 700, (0.125, 0.5): 600}, DEFAULT, (0.5, 0.5), 2),
        ({(0.5, 0.5): 700, (0.125, 0.5): 600}, SMALLER, (0.5, 0.5), 2),  # what few documents chose is not tried twice
        ({(0.5, 0.5): 700, (0.125, 0.5): 800, (0.03125, 0.5): 750}, PLAIN, (0.125, 0.5), 4),
        ({(0.5, 0.5): 700, (2.0, 0.0): 800, (0.5, 0.0): 900}, PLAIN, (0.5, 0.0), 4),
        ({(0.5 * 4.0**-i, 0.5): 700 + 20 * i for i in range(9)}, DEFAULT, (0.5 * 4.0**-5, 0.5), 6),
    ],
    ids=["default", "default again", "smaller", "plain", "at most six"],
)
def test_many_documents_choose_between_default_and_race_and_lower_c(
    right: dict[tuple[float, float], int], tuned: Candidate, chosen: tuple[float, float], n_tried: int
) -> None:
    judge = ManyJudge(right)
    found = judge.refine(tuned)
    assert (found.settings["C"], found.settings["naive_bayes"]) == chosen
    assert judge.accepted[-1] == found.settings
    assert (len(judge.asked), found.n_fits) == (n_tried, 3 + n_tried)
    assert (found.accuracy, found.default_accuracy) == (right[chosen] / 1000, 0.7)


# In the training and the estimators


def made(
    n: int, n_classes: int = 2, noise: float = 0.0, seed: int = 0, n_words: int = 60
) -> tuple[np.ndarray, np.ndarray]:
    """Return documents of ten words, three of them of the ten of their class; some have a random label."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    x = np.zeros((n, n_words), np.float32)
    for i, code in enumerate(y):
        np.add.at(x[i], 10 * code + rng.integers(0, 10, 3), 1.0)
        np.add.at(x[i], rng.integers(0, n_words, 7), 1.0)
    wrong = rng.random(n) < noise
    y = np.where(wrong, rng.integers(0, n_classes, n), y)
    return x / np.linalg.norm(x, axis=1, keepdims=True), y


def bits(model: WGCNClassifier) -> tuple[bytes, bytes, float]:
    return model.word_embeddings_.tobytes(), model.scorer_.bias.tobytes(), model.scorer_.sharpness


@pytest.mark.parametrize("n_classes", [2, 3])
def test_where_labels_are_wrong_a_smaller_c_is_chosen_and_helps(n_classes: int) -> None:
    # A C far too large for labels of which four in ten are random.
    x, y = made(1200, n_classes, 0.4, n_words=400)
    new, truth = made(1000, n_classes, seed=1, n_words=400)
    tuned, given_c = WGCNClassifier(C=20.0).fit(x, y), WGCNClassifier(C=20.0, tune=False).fit(x, y)
    assert given_c.tuned_ is None
    assert tuned.tuned_ is not None
    assert tuned.tuned_.settings == {**DEFAULT, "C": 20.0 * SMALLER["C"] / DEFAULT["C"]}
    assert tuned.tuned_.n_fits == 5
    assert tuned.tuned_.accuracy > tuned.tuned_.default_accuracy
    assert tuned.score(new, truth) > given_c.score(new, truth)
    assert bits(WGCNClassifier(C=20.0).fit(x, y)) == bits(tuned)
    assert tuned.get_params()["C"] == 20.0
    # What was chosen is what the model is fitted with, up to the tolerance: warm starts differ.
    chosen = WGCNClassifier(C=tuned.tuned_.settings["C"], tune=False).fit(x, y)
    np.testing.assert_allclose(tuned.decision_function(new), chosen.decision_function(new), atol=0.1)


def test_many_documents_with_wrong_labels_get_a_smaller_c_than_few_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = made(3000, 3, 0.4, n_words=400)
    new, truth = made(1000, 3, seed=1, n_words=400)
    few = WGCNClassifier(C=20.0).fit(x, y)
    monkeypatch.setattr("wgcn.linear.task.THRESHOLDS", Thresholds(many=3000))
    many = WGCNClassifier(C=20.0).fit(x, y)
    assert many.tuned_ is not None
    assert few.tuned_ is not None
    assert many.tuned_.settings["C"] < few.tuned_.settings["C"]
    assert many.score(new, truth) > few.score(new, truth)
    chosen = WGCNClassifier(C=many.tuned_.settings["C"], tune=False).fit(x, y)
    np.testing.assert_allclose(many.decision_function(new), chosen.decision_function(new), atol=0.1)
    monkeypatch.setattr("wgcn.linear.task.THRESHOLDS", Thresholds(many=3001))
    assert bits(WGCNClassifier(C=20.0).fit(x, y)) == bits(few)


def training_of(n: int, *, n_unlabelled: int = 0, tune: bool = True, **more: Any) -> LinearTrained:
    x, y = made(n + n_unlabelled)
    terms = csr_array(x)
    targets, graph = Targets.single(y[:n], 2), csr_array(x.T @ x)
    task = LinearTask(terms=terms[:n], targets=targets, weight=np.ones(n), unlabelled=terms[n:], adjacency=graph)
    return train_linear(task, LinearTraining(LinearSettings(), tune=tune, **more))


def test_too_few_labels_choose_nothing() -> None:
    n = Thresholds().tune
    few, enough, off = training_of(n - 1), training_of(n), training_of(n, tune=False)
    assert few.tuned is off.tuned is None
    assert enough.tuned is not None
    assert training_of(200, limits=Thresholds(tune=10)).tuned is not None


def test_documents_of_the_first_part_are_those_that_calibrate(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    fit_linear = linear_training.fit_linear

    def watched(terms: csr_array, *given: Any, **named: Any) -> Any:
        sizes.append(terms.shape[0])
        return fit_linear(terms, *given, **named)

    monkeypatch.setattr(linear_training, "fit_linear", watched)
    trained = training_of(1000)
    assert trained.tuned is not None
    # The second part has two fifths of documents: the default and what was best on the first are fitted to the rest.
    assert sizes == [800] * 4 + [600] * (trained.tuned.n_fits - 3) + [800, 1000]
    assert trained.n_held_out == 200
    assert trained.held_out is not None
    assert len(np.unique(trained.held_out.rows)) == 200


def test_nothing_is_held_out_for_calibration_where_no_part_is_asked_for() -> None:
    trained = training_of(1000, validation_fraction=0)
    assert trained.tuned is not None
    assert (trained.held_out_accuracy, trained.n_held_out, trained.held_out) == (None, 0, None)


def test_the_teacher_is_made_once_and_teaches_the_trials_of_a_part_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made_teachers: list[Teacher] = []
    taught: list[bytes] = []

    class Counting(Teacher):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made_teachers.append(self)

        def teach(self, targets: np.ndarray, labelled: np.ndarray, *prior: Any) -> Taught:
            taught.append(labelled.tobytes())
            return super().teach(targets, labelled, *prior)

    monkeypatch.setattr(linear_training, "Teacher", Counting)
    trained = training_of(1000, n_unlabelled=60)
    assert trained.tuned is not None
    assert len(made_teachers) == 1
    n_parts = 1 + (trained.tuned.n_fits - 3) // 2
    # Once for each part, and again for the calibration, on the same documents as the first, and the final fit.
    assert len(taught) == n_parts + 2
    assert len(set(taught)) == n_parts + 1


def test_of_many_documents_trials_are_fitted_to_some(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    fit_linear = linear_training.fit_linear

    def watched(terms: csr_array, targets: np.ndarray, blocks: Blocks, *given: Any, **named: Any) -> Any:
        asked.append((terms.shape[0], blocks.graph is None))
        return fit_linear(terms, targets, blocks, *given, **named)

    monkeypatch.setattr(linear_training, "fit_linear", watched)
    trained = training_of(1000, limits=Thresholds(trial=300))
    assert trained.tuned is not None
    assert asked == [(300, True)] * (1 + trained.tuned.n_fits) + [(800, False), (1000, False)]


@pytest.mark.parametrize("short", [True, False])
def test_a_plain_model_is_tried_for_short_texts(short: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[Candidate]] = []

    def watched(*arguments: Any) -> Tuned:
        given.append(arguments[-1][-1](DEFAULT)[0])
        return tune(*arguments)

    monkeypatch.setattr(linear_training, "tune", watched)
    training_of(1000, limits=Thresholds(short=40 if short else 5))  # about nine different words each
    assert given == [OTHERS if short else OTHERS[:2]]


def test_it_works_with_weights_of_documents_and_classes() -> None:
    x, y = made(1000)
    model = WGCNClassifier(class_weight="balanced").fit(x, y, sample_weight=1.0 + np.arange(len(y)))
    assert model.tuned_ is not None
    assert model.score(x, y) > 0.8


def test_it_works_with_several_labels_a_document() -> None:
    x, y = made(1000, 4)
    targets = np.eye(4, dtype=int)[y]
    targets[::3, 0] = 1
    model = WGCNClassifier().fit(x, targets)
    assert model.tuned_ is not None
    # Shares of documents whose labels are all right. What is chosen is more clearly right, which may be a few fewer.
    assert model.tuned_.accuracy == pytest.approx(model.tuned_.default_accuracy, abs=0.05)
    assert 0.4 < model.tuned_.accuracy < np.mean((model.predict(x) == targets).all(axis=1))
    assert model.predict(x).shape == (1000, 4)


def test_classes_that_cannot_be_held_out_leave_the_settings_as_they_are() -> None:
    x, y = made(1000)
    labels = np.where(np.arange(1000) < 900, np.arange(1000), y)  # most classes have one document
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = WGCNClassifier(self_training=0).fit(x[:, :20], labels)
    assert model.tuned_ is None


def test_a_tuned_model_is_the_same_with_any_number_of_threads() -> None:
    x, y = made(1000, 3, 0.3)
    one, two = (WGCNClassifier(C=20.0, n_jobs=n).fit(x, y) for n in (1, 2))
    assert one.tuned_ == two.tuned_
    assert bits(one) == bits(two)


def few_labels_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgcn.linear.task.THRESHOLDS", Thresholds(tune=50, hold_out=50))


TEXTS = [  # no near-copies, which would be held out together
    " ".join(["wine" if i % 2 else "car", *(f"number{k}" for k in np.random.default_rng(i).integers(0, 30, 4))])
    for i in range(60)
]
LABELS = ["drink" if i % 2 else "drive" for i in range(60)]


def test_a_text_model_says_what_was_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few_labels_are_enough(monkeypatch)
    estimator = WGCNTextClassifier(C=1e-3)
    assert clone(estimator).get_params()["tune"] is True
    tuned = estimator.fit(TEXTS, LABELS).tuned_
    assert tuned is not None
    estimator.save(tmp_path / "model")
    model = TextModel.load(tmp_path / "model")
    assert {name: model.settings[name] for name in tuned.settings} == tuned.settings
    assert model.report["tuned"] == tuned._asdict()
    card = (tmp_path / "model/README.md").read_text()
    assert f"C {tuned.settings['C']:g}" in card
    assert f"{tuned.accuracy:.2%}" in card


def test_an_update_keeps_what_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    few_labels_are_enough(monkeypatch)
    estimator = WGCNTextClassifier(C=1e-3).fit(TEXTS, LABELS)
    tuned = estimator.tuned_
    assert tuned is not None
    monkeypatch.setattr(linear_training, "tune", None)  # would fail if it were called
    assert estimator.update(["old wine number9"], ["drink"]).tuned_ == tuned


def test_a_text_model_without_tune_has_nothing_of_it() -> None:
    estimator = WGCNTextClassifier().fit(TEXTS, LABELS)
    assert estimator.tuned_ is None
    assert "tuned" not in estimator.model_.report
    assert not [name for name in estimator.model_.settings if name.startswith("tune")]


def test_the_word_graph_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    few_labels_are_enough(monkeypatch)
    calls: list[object] = []
    from_corpus = WordGraph.from_corpus
    monkeypatch.setattr(WordGraph, "from_corpus", lambda *a, **k: (calls.append(a), from_corpus(*a, **k))[1])
    assert WGCNTextClassifier().fit(TEXTS, LABELS).tuned_ is not None
    assert len(calls) == 1


def test_no_warning_where_all_is_well() -> None:
    x, y = made(1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WGCNClassifier().fit(x, y)


@pytest.mark.parametrize("with_subwords", [True, False])
def test_a_trial_with_the_columns_of_its_documents_is_one_with_all_columns(
    with_subwords: bool,
) -> None:
    rng = np.random.default_rng(3)
    codes, n_words = np.arange(90) % 3, 200  # most words are in few documents, so that many are not in those of a trial
    x = np.where(rng.random((90, n_words)) < np.where(np.arange(n_words) % 3 == codes[:, None], 0.06, 0.02), 1.0, 0.0)
    subwords = csr_array(np.where(rng.random((n_words, 30)) < 0.1, 1.0, 0.0)) if with_subwords else None
    graph = csr_array((n_words, n_words))
    own = LinearTask(
        terms=csr_array(x),
        targets=Targets.of(np.eye(3)[codes]),
        weight=np.ones(90),
        unlabelled=csr_array((0, n_words)),
        adjacency=graph,
        subwords=subwords,
    )
    exact = LinearTraining(LinearSettings(tol=1e-9), limits=Thresholds(trial=30, trial_tol=1e-9))
    trainer = linear_training.Trainer(own, exact)
    held_out = np.arange(0, 90, 4)
    default = {"C": 0.5, "naive_bayes": 0.5, "lead": 0}
    margins = tuning.Trials(trainer, [held_out], default)(0, default)
    known = tuning.evenly(np.setdiff1d(np.arange(90), held_out), 30)
    assert set(csr_array(x)[held_out].indices) - set(csr_array(x)[known].indices)
    fitted = linear_training.fit_linear(
        csr_array(x)[known],
        np.eye(3)[codes[known]],
        Blocks(None, subwords),
        LinearSettings(tol=1e-9),
        scales=trainer.scale[0],
    )
    scores = csr_array(x)[held_out] @ fitted.word_embeddings + fitted.bias
    expected = margins_of([(slice(0, len(scores)), scores)], Targets.of(np.eye(3)[codes[held_out]]), False)
    assert margins == pytest.approx(expected, abs=1e-3)
