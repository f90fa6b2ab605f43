"""The choice of settings: against made models whose right answers are known, and in the estimators."""

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, eye_array
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from wgcn import TextModel, WGCNClassifier, WGCNTextClassifier, WordGraph
from wgcn.errors import InputError, MissingDependencyError, WGCNWarning
from wgcn.estimators.labels import read_labels
from wgcn.linear import training as linear_training
from wgcn.linear import tuning
from wgcn.linear.teacher import Taught, Teacher
from wgcn.linear.tuning import Settings, Trial, Tuned, tune

optuna = pytest.importorskip("optuna", reason="tune needs Optuna")

DEFAULT = {"alpha": 0.5, "naive_bayes": 0.5, "C": 0.5}


@pytest.fixture(scope="module", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    """Matrices so small take a hundred times longer on several threads of a busy machine."""
    with threadpool_limits(1, "blas"):
        yield


class Oracle:
    """A made model that is right about given documents: the only word of document i is word i."""

    def __init__(self, labels: np.ndarray, right: Callable[[Settings], np.ndarray]) -> None:
        self.labels, self.right = labels, right
        self.tried: list[Settings] = []
        self.fits: list[tuple[np.ndarray, Settings]] = []

    def __call__(self, rows: np.ndarray, settings: Settings) -> Any:
        if settings not in self.tried:
            self.tried.append(settings)
        self.fits.append((rows, settings))
        answers = np.where(self.right(settings), self.labels, 1 - self.labels)
        scores = np.eye(2)[answers]
        return type("Made", (), {"scores": staticmethod(lambda data, indices, indptr: scores[indices])})

    def tune(self, **arguments: Any) -> Tuned:
        n = len(self.labels)
        given = {"seconds": np.inf, "trials": 12, "default": DEFAULT, "weight": np.ones(n), **arguments}
        terms = csr_array(eye_array(n, format="csr"))
        return tune(self, terms, read_labels(self.labels), given.pop("weight"), given.pop("default"), **given)


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


def test_the_default_comes_first_and_what_is_better_is_chosen() -> None:
    oracle = Oracle(balanced(200), better_with(200, 40))
    tuned = oracle.tune()
    assert oracle.tried[0] == DEFAULT
    assert tuned.settings["C"] != DEFAULT["C"]
    assert (tuned.default_accuracy, tuned.accuracy, tuned.n_trials) == (0.5, 0.7, 12)
    assert set(tuned.settings) == set(DEFAULT)


@pytest.mark.parametrize(
    ("n_better", "n_worse", "chosen"),
    [(0, 0, False), (1, 0, False), (4, 0, False), (5, 0, True), (9, 9, False), (12, 4, False), (14, 4, True)],
)
def test_luck_is_not_enough(n_better: int, n_worse: int, chosen: bool) -> None:
    tuned = Oracle(balanced(200), better_with(200, n_better, n_worse)).tune()
    assert (tuned.settings != DEFAULT) == chosen
    assert (tuned.accuracy != tuned.default_accuracy) == chosen


@given(st.integers(0, 2**32 - 1), st.integers(8, 60))
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


def test_the_same_settings_are_not_judged_twice() -> None:
    oracle = Oracle(balanced(200), better_with(200, 0))
    default = {"naive_bayes": 0.5}
    oracle.right = lambda settings: np.arange(200) % 4 < 2
    assert oracle.tune(default=default, trials=30).n_trials == 30
    assert len(oracle.fits) == 5 * len(oracle.tried) <= 25


def test_the_choice_depends_on_the_seed_alone() -> None:
    def tried(seed: int, trials: int) -> list[Settings]:
        oracle = Oracle(balanced(200), lambda settings: np.arange(200) < 100 + 20 * settings["alpha"])
        oracle.tune(random_state=seed, trials=trials)
        return oracle.tried

    assert tried(0, 20) == tried(0, 20)
    assert tried(0, 20) != tried(1, 20)
    longer = tried(0, 20)
    assert tried(0, 14) == longer[: len(tried(0, 14))]


@pytest.mark.parametrize("limit", [0, 1, 5, 8, 9, 31])
def test_no_fit_begins_when_time_is_over(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    oracle = Oracle(balanced(200), better_with(200, 40))
    monkeypatch.setattr("wgcn.linear.tuning.time.perf_counter", lambda: float(len(oracle.fits)))
    if limit < 9:  # two trials by five parts are ten fits
        with pytest.warns(WGCNWarning, match=r"tune could compare nothing in .* seconds.*settings that were given"):
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
    with pytest.warns(WGCNWarning, match="tune could compare nothing"):
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

    class Watching:
        def on_trial(self, trial: Trial) -> None:
            seen.append(trial)
            if trial.number == 4:
                raise KeyboardInterrupt

    oracle = Oracle(balanced(200), better_with(200, 40))
    before = optuna.logging.get_verbosity()
    with pytest.raises(KeyboardInterrupt):
        oracle.tune(callbacks=[Watching()])
    assert optuna.logging.get_verbosity() == before
    assert [trial.settings for trial in seen] == oracle.tried
    assert [trial.best_accuracy for trial in seen[1:]] == [0.7, 0.7, 0.7]
    assert seen[0].accuracy == seen[0].best_accuracy == pytest.approx(0.5, abs=0.1)


# What is held out


@given(st.lists(st.integers(1, 30), min_size=2, max_size=6), st.integers(0, 100))
def test_parts_leave_something_of_each_class(counts: list[int], seed: int) -> None:
    codes = np.repeat(np.arange(len(counts)), counts)
    labels = read_labels(codes)
    parts = tuning.deal_out(labels, np.random.RandomState(seed))
    if np.mean(np.array(counts) < 2) >= 0.5:
        assert parts == []
        return
    common = np.flatnonzero(np.array(counts)[codes] > 1)
    repeats = 3 if len(common) < 100 else 1
    assert sorted(np.concatenate(parts).tolist()) == np.repeat(common, repeats).tolist()
    size = min(5, len(common))
    assert len(parts) == repeats * size
    for i in range(repeats):
        held = [np.bincount(codes[part], minlength=len(counts)) for part in parts[i * size : (i + 1) * size]]
        assert np.ptp(held, axis=0).max() <= 1
        assert np.all(np.array(counts) - np.max(held, axis=0) >= 1)


def test_of_many_documents_a_part_is_enough() -> None:
    parts = tuning.deal_out(read_labels(balanced(30_000)), np.random.RandomState(0))
    assert [len(part) for part in parts] == [6000]
    parts = tuning.deal_out(read_labels(balanced(5000)), np.random.RandomState(0))
    assert [len(part) for part in parts] == [1000, 1000]


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
    return WGCNClassifier(**{"tune": True, "tune_seconds": np.inf, "tune_trials": 8, **settings})


def bits(model: WGCNClassifier) -> tuple[bytes, bytes, float]:
    return model.word_embeddings_.tobytes(), model.scorer_.bias.tobytes(), model.scorer_.sharpness


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_tuned_model_is_the_model_with_the_chosen_settings(n_classes: int) -> None:
    x, y = made(n_classes=n_classes)
    y = np.where(np.arange(len(y)) % 3 == 2, -1, y)
    model = quick(C=0.01).fit(x, y)
    assert model.tuned_ is not None
    assert set(model.tuned_.settings) == {"alpha", "naive_bayes", "C", "teacher"}
    assert bits(WGCNClassifier(**model.tuned_.settings).fit(x, y)) == bits(model)
    assert bits(quick(C=0.01).fit(x, y)) == bits(model)
    assert model.get_params()["C"] == 0.01


@pytest.mark.parametrize("learn_alpha", ["shared", "word"])
def test_alpha_may_be_learnt_from_the_value_that_is_chosen(learn_alpha: Literal["shared", "word"]) -> None:
    x, y = made()
    model = quick(C=0.01, learn_alpha=learn_alpha).fit(x, y)
    assert model.tuned_ is not None
    assert bits(WGCNClassifier(**model.tuned_.settings, learn_alpha=learn_alpha).fit(x, y)) == bits(model)


def test_settings_that_do_harm_are_left() -> None:
    x, y = made(400)
    new, truth = made(400, seed=1)
    given = WGCNClassifier(C=8, alpha=8).fit(x, y)
    tuned = quick(C=8, alpha=8, tune_trials=15).fit(x, y)
    assert tuned.tuned_ is not None
    assert tuned.tuned_.accuracy > tuned.tuned_.default_accuracy  # type: ignore[operator]
    assert tuned.score(new, truth) > given.score(new, truth)


def test_without_tune_a_model_is_as_ever() -> None:
    x, y = made()
    plain = WGCNClassifier().fit(x, y)
    assert plain.tuned_ is None
    assert bits(WGCNClassifier(tune_seconds=-1, tune_trials=0).fit(x, y)) == bits(plain)
    model = quick().fit(x, y)
    assert model.tuned_ is not None
    assert model.set_params(tune=False).fit(x, y).tuned_ is None


def test_only_what_matters_is_chosen() -> None:
    x, y = made()
    assert set(quick().fit(x, y).tuned_.settings) == {"alpha", "naive_bayes", "C"}  # type: ignore[union-attr]
    assert set(quick(order=0).fit(x, y).tuned_.settings) == {"naive_bayes", "C"}  # type: ignore[union-attr]


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
    x, y = made(120)
    model = quick(validation_fraction=0).fit(x, np.where(np.arange(120) < 60, y, -1))
    assert model.tuned_ is not None
    assert model.tuned_.n_trials == 8
    assert len(made_teachers) == 1
    assert len(taught) == len(set(taught)) <= 15 + 1


@pytest.mark.parametrize("argument", ["sample_weight", "class_weight", "softmax"])
def test_it_works_with(argument: str) -> None:
    x, y = made()
    model = quick(class_weight="balanced") if argument == "class_weight" else quick()
    if argument == "softmax":
        model.set_params(loss="softmax")
    model.fit(x, y, sample_weight=1.0 + np.arange(len(y)) if argument == "sample_weight" else None)
    assert model.tuned_ is not None
    assert model.tuned_.n_trials == 8
    assert model.score(x, y) > 0.8


def test_it_works_with_several_labels_a_document() -> None:
    x, y = make_multilabel_classification(200, 30, n_classes=4, random_state=0)
    model = quick(C=0.001, tune_trials=12).fit(x, np.where(np.arange(200)[:, None] < 150, y, -1))
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
        ({"model": "network"}, "tune is for the linear model, got model='network'"),
        ({"tune_seconds": 0}, "tune_seconds must be above 0, got 0"),
        ({"tune_seconds": np.nan}, "tune_seconds must be above 0, got nan"),
        ({"tune_trials": 0}, "tune_trials must be at least 1, got 0"),
    ],
)
def test_what_cannot_be_tuned_is_said_before_the_work(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr(WGCNTextClassifier, "prepare", lambda *_, **__: pytest.fail("the work has begun"))
    with pytest.raises(InputError, match=message):
        quick(**settings).fit(np.eye(4), [0, 0, 1, 1])
    with pytest.raises(InputError, match=message):
        WGCNTextClassifier(classifier=quick(**settings)).fit(["a", "b"], [0, 1])


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    WGCNClassifier().fit(np.eye(4), [0, 0, 1, 1])
    with pytest.raises(MissingDependencyError, match=r"tune=True needs the package 'optuna'.*\.\[search\]"):
        WGCNTextClassifier(tune=True).fit(["a", "b"], [0, 1])


TEXTS = [f"{'red' if i % 3 else 'old'} {'wine' if i % 2 else 'car'} number{i % 7}" for i in range(40)]
LABELS = ["drink" if i % 2 else "drive" for i in range(40)]


def test_a_text_model_says_what_was_chosen(tmp_path: Path) -> None:
    estimator = WGCNTextClassifier(tune=True, tune_seconds=np.inf, tune_trials=3, classifier=WGCNClassifier(C=1e-4))
    assert clone(estimator).get_params()["tune_trials"] == 3
    estimator.fit(TEXTS, [*LABELS[:30], *[None] * 10])
    tuned = estimator.tuned_
    assert tuned is not None
    assert estimator.classifier_.tune_trials == tuned.n_trials == 3
    assert estimator.classifier is not None
    assert not estimator.classifier.tune
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
    WGCNTextClassifier(tune=True, tune_trials=3).fit(TEXTS, LABELS)
    assert len(calls) == 1


@parametrize_with_checks([quick(tune_trials=2)])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator, check) -> None:  # type: ignore[no-untyped-def]
    check(estimator)


def test_no_warning_where_all_is_well() -> None:
    x, y = made()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(tune_trials=1).fit(x, y)
