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
from sklearn.datasets import make_multilabel_classification
from threadpoolctl import threadpool_limits

from wgcn import TextModel, WGCNClassifier, WGCNTextClassifier, WordGraph
from wgcn.errors import InputError, WGCNWarning
from wgcn.labelling.splits import cross_validation_parts
from wgcn.labelling.tuning import Settings, Trial, Tuned, Tuning, tune
from wgcn.linear import training as linear_training
from wgcn.linear.model import LinearSettings
from wgcn.linear.teacher import Taught, Teacher
from wgcn.linear.training import LinearTask, LinearTraining, train_linear

DEFAULT = {"alpha": 0.5, "naive_bayes": 0.5, "C": 0.5}


@pytest.fixture(scope="module", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    """Matrices so small take a hundred times longer on several threads of a busy machine."""
    with threadpool_limits(1, "blas"):
        yield


class Oracle:
    """A made model that is right about given documents."""

    def __init__(self, labels: np.ndarray, right: Callable[[Settings], np.ndarray]) -> None:
        self.labels, self.right = labels, right
        self.tried: list[Settings] = []
        self.fits: list[tuple[np.ndarray, Settings]] = []

    def __call__(self, part: np.ndarray, settings: Settings) -> np.ndarray:
        if settings not in self.tried:
            self.tried.append(settings)
        self.fits.append((part, settings))
        return self.right(settings)[part]

    def tune(
        self,
        *,
        seconds: float = np.inf,
        trials: int = 12,
        callbacks: Sequence[Callable[[Trial], object]] = (),
        default: Settings = DEFAULT,
        weight: np.ndarray | None = None,
        random_state: int = 0,
    ) -> Tuned:
        weight = np.ones(len(self.labels)) if weight is None else weight
        parts = cross_validation_parts(self.labels, np.eye(2)[self.labels], np.random.RandomState(random_state))
        return tune(self, parts, weight, default, Tuning(seconds, trials, callbacks))


def balanced(n: int) -> np.ndarray:
    return np.arange(n) % 2


def better_with(n: int, n_better: int, n_worse: int = 0, name: str = "C") -> Callable[[Settings], np.ndarray]:
    """Return a rule: half of the documents are right, and some more or others if a setting is not the default."""

    def right(settings: Settings) -> np.ndarray:
        answers = np.arange(n) % 4 < 2
        if settings[name] != DEFAULT[name]:
            answers[np.flatnonzero(~answers)[:n_better]] = True
            answers[np.flatnonzero(np.arange(n) % 4 < 2)[:n_worse]] = False
        return answers

    return right


def as_good_as(n: int, quality: Callable[[Settings], float]) -> Callable[[Settings], np.ndarray]:
    """Return a rule: the share of documents that the model is right about, the same first ones each time."""
    order = np.random.default_rng(0).permutation(n)
    return lambda settings: order < quality(settings) * n


def test_the_default_comes_first_and_what_is_better_is_chosen() -> None:
    oracle = Oracle(balanced(200), better_with(200, 40))
    tuned = oracle.tune()
    assert oracle.tried[0] == DEFAULT
    assert tuned.settings["C"] != DEFAULT["C"]
    assert (tuned.default_accuracy, tuned.accuracy, tuned.n_trials) == (0.5, 0.7, 12)
    assert set(tuned.settings) == set(DEFAULT)


def test_each_setting_is_moved_by_two_steps_and_then_the_best_by_one() -> None:
    # The more alpha, the better; C and naive_bayes do nothing.
    oracle = Oracle(balanced(400), as_good_as(400, lambda settings: 0.5 + 0.2 * settings["alpha"]))
    tuned = oracle.tune(trials=30)
    assert oracle.tried[:7] == [
        DEFAULT,
        *({**DEFAULT, "C": value} for value in (0.125, 2.0)),
        *({**DEFAULT, "alpha": value} for value in (0.0, 1.0)),
        *({**DEFAULT, "naive_bayes": value} for value in (0.0, 1.0)),
    ]
    # From alpha 1 on, which was best: neighbours until none is better and all were tried.
    assert oracle.tried[7:12] == [
        *({**DEFAULT, "alpha": 1.0, "C": value} for value in (0.25, 1.0)),
        *({**DEFAULT, "alpha": value} for value in (0.75, 1.5)),
        {**DEFAULT, "alpha": 1.5, "C": 0.25},
    ]
    assert tuned.settings == {**DEFAULT, "alpha": 2.0}
    assert tuned.n_trials == len(oracle.tried) < 30


def test_at_the_end_of_a_grid_there_is_one_way_to_go() -> None:
    default = {"alpha": 0.0, "C": 0.5, "naive_bayes": 0.75}
    oracle = Oracle(balanced(200), better_with(200, 0))
    oracle.tune(default=default, trials=6)
    assert [settings["alpha"] for settings in oracle.tried] == [0, 0, 0, 0.5, 0, 0]
    assert [settings["naive_bayes"] for settings in oracle.tried] == [0.75, 0.75, 0.75, 0.75, 0.25, 1.0]


def test_a_default_between_the_values_of_the_grid_is_one_of_them() -> None:
    oracle = Oracle(balanced(200), as_good_as(200, lambda settings: 0.6))
    oracle.tune(default={"alpha": 0.6, "C": 3.0}, trials=99)
    assert {settings["alpha"] for settings in oracle.tried} == {0.25, 0.5, 0.6, 0.75, 1.0}
    assert {settings["C"] for settings in oracle.tried} == {0.75, 1.5, 3.0, 6.0, 12.0}


@pytest.mark.parametrize(
    ("n_better", "n_worse", "chosen"),
    [(0, 0, False), (4, 0, False), (5, 0, True), (9, 9, False), (12, 4, False), (14, 4, True)],
)
def test_luck_is_not_enough(n_better: int, n_worse: int, chosen: bool) -> None:
    tuned = Oracle(balanced(200), better_with(200, n_better, n_worse)).tune()
    assert (tuned.settings != DEFAULT) == chosen
    assert (tuned.accuracy != tuned.default_accuracy) == chosen


@given(st.integers(0, 2**32 - 1), st.integers(8, 60))
@settings(max_examples=30)
def test_what_is_chosen_is_never_worse_than_the_default(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    known: dict[str, np.ndarray] = {}
    oracle = Oracle(balanced(n), lambda settings: known.setdefault(str(settings), rng.random(n) < 0.7))
    tuned = oracle.tune(trials=6, random_state=seed % 1000)
    assert tuned.accuracy >= tuned.default_accuracy  # type: ignore[operator]
    if tuned.settings != DEFAULT:
        difference = known[str(tuned.settings)].astype(float) - known[str(DEFAULT)]
        assert tuned.default_accuracy == pytest.approx(known[str(DEFAULT)].mean())
        assert tuned.accuracy == pytest.approx(known[str(tuned.settings)].mean())
        assert difference.sum() > 2 * np.sqrt(np.abs(difference).sum())


def test_a_bad_trial_is_given_up_early() -> None:
    n = 500
    oracle = Oracle(balanced(n), lambda settings: np.full(n, settings == DEFAULT))
    tuned = oracle.tune()
    assert tuned.settings == DEFAULT
    assert len(oracle.fits) == len(oracle.tried)
    assert all(np.array_equal(rows, oracle.fits[0][0]) for rows, _ in oracle.fits)


def test_no_settings_are_judged_twice_and_it_ends_when_nothing_new_is_left() -> None:
    oracle = Oracle(balanced(200), as_good_as(200, lambda settings: 0.5))
    tuned = oracle.tune(default={"naive_bayes": 0.5}, trials=30)
    assert tuned.n_trials == len(oracle.tried) == 5
    assert len(oracle.fits) == 25


def test_a_shorter_race_is_the_beginning_of_a_longer_one() -> None:
    def tried(trials: int, seed: int = 0) -> list[Settings]:
        oracle = Oracle(balanced(200), as_good_as(200, lambda settings: 0.5 + 0.1 * settings["alpha"]))
        oracle.tune(random_state=seed, trials=trials)
        return oracle.tried

    longer = tried(20)
    assert tried(20) == longer
    assert tried(14) == longer[:14]


@pytest.mark.parametrize("limit", [0, 1, 8, 9, 31])
def test_no_fit_begins_when_time_is_over(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    oracle = Oracle(balanced(200), better_with(200, 40))
    monkeypatch.setattr("wgcn.labelling.tuning.time.perf_counter", lambda: float(len(oracle.fits)))
    if limit < 9:  # two trials by five folds are ten fits
        with pytest.warns(WGCNWarning, match=r"could compare nothing in .* seconds.*settings that were given"):
            tuned = oracle.tune(seconds=limit + 0.5)
        assert tuned.settings == DEFAULT
        assert tuned.accuracy == tuned.default_accuracy
        assert tuned.n_trials == 1
    else:
        tuned = oracle.tune(seconds=limit + 0.5)
        assert tuned.settings != DEFAULT
        assert 2 <= tuned.n_trials < 12
    assert len(oracle.fits) == limit + 1
    assert tuned.seconds == limit + 1


def test_no_time_at_all_is_no_trial() -> None:
    oracle = Oracle(balanced(200), better_with(200, 40))
    with pytest.warns(WGCNWarning, match="could compare nothing"):
        assert oracle.tune(seconds=1e-300)[:4] == (DEFAULT, None, None, 0)
    assert oracle.fits == []


def test_a_document_counts_as_much_as_its_weight() -> None:
    weight = np.ones(200)
    weight[np.flatnonzero(np.arange(200) % 4 >= 2)[:40]] = 0
    assert Oracle(balanced(200), better_with(200, 40)).tune(weight=weight).settings == DEFAULT
    heavy = Oracle(balanced(200), better_with(200, 40)).tune(weight=2.0 * np.arange(200))
    right = better_with(200, 40)(DEFAULT)
    assert heavy.default_accuracy == pytest.approx(np.average(right, weights=np.arange(200)))


def test_callbacks_see_the_trials_and_may_end_them() -> None:
    seen: list[Trial] = []

    def watch(trial: Trial) -> None:
        seen.append(trial)
        if trial.number == 4:
            raise KeyboardInterrupt

    oracle = Oracle(balanced(200), better_with(200, 40))
    with pytest.raises(KeyboardInterrupt):
        oracle.tune(callbacks=[watch])
    assert [trial.settings for trial in seen] == oracle.tried
    assert [trial.best_accuracy for trial in seen[1:]] == [0.7, 0.7, 0.7]
    assert seen[0].accuracy == seen[0].best_accuracy == pytest.approx(0.5, abs=0.1)


# In the estimators


def made(n: int = 160, n_classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return documents of ten words out of 40, three of them of the ten of their class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    x = np.zeros((n, 40))
    for i, code in enumerate(y):
        np.add.at(x[i], 10 * code + rng.integers(0, 10, 3), 1.0)
        np.add.at(x[i], rng.integers(0, 40, 7), 1.0)
    return x / np.linalg.norm(x, axis=1, keepdims=True), y


def quick(**settings: Any) -> WGCNClassifier:
    return WGCNClassifier(tune=Tuning(np.inf, settings.pop("trials", 8)), **settings)


def bits(model: WGCNClassifier) -> tuple[bytes, bytes, float]:
    return model.word_embeddings_.tobytes(), model.scorer_.bias.tobytes(), model.scorer_.sharpness


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_tuned_model_is_the_model_with_the_chosen_settings(n_classes: int) -> None:
    x, y = made(n_classes=n_classes)
    y = np.where(np.arange(len(y)) % 3 == 2, -1, y)
    model = quick(C=0.01, trials=4).fit(x, y)
    assert model.tuned_ is not None
    assert set(model.tuned_.settings) == {"alpha", "naive_bayes", "C", "teacher"}
    assert bits(WGCNClassifier(**model.tuned_.settings).fit(x, y)) == bits(model)
    assert bits(quick(C=0.01, trials=4).fit(x, y)) == bits(model)
    assert model.get_params()["C"] == 0.01


def test_settings_that_do_harm_are_left() -> None:
    x, y = made(400)
    new, truth = made(400, seed=1)
    given = WGCNClassifier(alpha=30).fit(x, y)
    tuned = quick(alpha=30, trials=12).fit(x, y)
    assert tuned.tuned_ is not None
    assert tuned.tuned_.accuracy > tuned.tuned_.default_accuracy  # type: ignore[operator]
    assert tuned.score(new, truth) > given.score(new, truth)


def test_without_tune_a_model_is_as_ever() -> None:
    x, y = made()
    plain = WGCNClassifier().fit(x, y)
    assert plain.tuned_ is None
    model = quick(trials=2).fit(x, y)
    assert model.tuned_ is not None
    assert model.set_params(tune=False).fit(x, y).tuned_ is None


def tuned_task(n_unlabelled: int = 0, *, with_graph: bool = True, trials: int = 2) -> Tuned:
    """Tune on the first of 120 documents, the others being unlabelled, and calibrate nothing."""
    x, y = made(120)
    terms, n = csr_array(x), 120 - n_unlabelled
    graph = csr_array(x.T @ x) if with_graph else csr_array((40, 40))
    task = LinearTask(terms[:n], np.eye(2)[y[:n]], False, np.ones(n), terms[n:], graph)
    training = LinearTraining(LinearSettings(), validation_fraction=0, tuning=Tuning(np.inf, trials))
    tuned = train_linear(task, training).tuned
    assert tuned is not None
    return tuned


def test_only_what_matters_is_chosen() -> None:
    assert set(tuned_task().settings) == {"alpha", "naive_bayes", "C"}
    assert set(tuned_task(60, with_graph=False).settings) == {"naive_bayes", "C"}
    assert set(tuned_task(60).settings) == {"alpha", "naive_bayes", "C", "teacher"}


def test_the_teacher_is_made_once_and_teaches_a_part_once(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert tuned_task(60, trials=8).n_trials == 8
    assert len(made_teachers) == 1
    assert len(taught) == len(set(taught)) <= 15 + 1


def test_it_works_with_weights_of_documents_and_classes() -> None:
    x, y = made()
    model = quick(class_weight="balanced", trials=4).fit(x, y, sample_weight=1.0 + np.arange(len(y)))
    assert model.tuned_ is not None
    assert model.tuned_.n_trials == 4
    assert model.score(x, y) > 0.8


def test_it_works_with_several_labels_a_document() -> None:
    x, y = make_multilabel_classification(200, 30, n_classes=4, random_state=0)
    model = quick(C=0.001, trials=6).fit(x, np.where(np.arange(200)[:, None] < 150, y, -1))
    assert model.tuned_ is not None
    assert "teacher" not in model.tuned_.settings
    assert model.tuned_.accuracy >= model.tuned_.default_accuracy  # type: ignore[operator]
    assert model.predict(x).shape == (200, 4)


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "c", "c"], ["a", *"bbbbbbb"]])
def test_where_nothing_can_be_held_out_it_says_so(labels: list[str]) -> None:
    x = np.eye(len(labels), 9)
    with pytest.warns(WGCNWarning, match="nothing to choose settings by.*settings that were given"):
        model = quick().fit(x, labels)
    assert model.tuned_ is not None
    assert (model.tuned_.accuracy, model.tuned_.n_trials) == (None, 0)
    assert bits(model) == bits(WGCNClassifier().fit(x, labels))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seconds": 0}, "seconds of tuning must be above 0, got 0"),
        ({"seconds": np.nan}, "seconds of tuning must be above 0, got nan"),
        ({"trials": 0}, "trials of tuning must be at least 1, got 0"),
    ],
)
def test_senseless_limits_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Tuning(**settings)


TEXTS = [f"{'red' if i % 3 else 'old'} {'wine' if i % 2 else 'car'} number{i % 7}" for i in range(40)]
LABELS = ["drink" if i % 2 else "drive" for i in range(40)]


def test_a_text_model_says_what_was_chosen(tmp_path: Path) -> None:
    estimator = WGCNTextClassifier(C=1e-4, tune=Tuning(np.inf, 3))
    assert clone(estimator).get_params()["tune"] == Tuning(np.inf, 3)
    estimator.fit(TEXTS, [*LABELS[:30], *[None] * 10])
    tuned = estimator.tuned_
    assert tuned is not None
    assert tuned.n_trials == 3
    estimator.save(tmp_path / "model")
    model = TextModel.load(tmp_path / "model")
    assert {name: model.settings[name] for name in tuned.settings} == tuned.settings
    assert model.report["tuned"] == tuned._asdict()
    card = (tmp_path / "model/README.md").read_text()
    assert f"C {tuned.settings['C']:g}" in card
    assert f"{tuned.accuracy:.2%} in cross-validation" in card


def test_a_text_model_without_tune_has_nothing_of_it() -> None:
    estimator = WGCNTextClassifier().fit(TEXTS, LABELS)
    assert estimator.tuned_ is None
    assert "tuned" not in estimator.model_.report
    assert not [name for name in estimator.model_.settings if name.startswith("tune")]


def test_the_word_graph_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    from_corpus = WordGraph.from_corpus
    monkeypatch.setattr(WordGraph, "from_corpus", lambda *a, **k: (calls.append(a), from_corpus(*a, **k))[1])
    WGCNTextClassifier(tune=Tuning(trials=3)).fit(TEXTS, LABELS)
    assert len(calls) == 1


def test_no_warning_where_all_is_well() -> None:
    x, y = made()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(trials=1).fit(x, y)
