"""The choice of the linear model's settings, by documents with labels that are held out in turn.

Trials are judged on the same documents, part by part, the default first. One that falls behind the best is given up, so
a bad one costs a fit or two. The best takes the place of the default only if it is right on more documents than
chance would make it: the luckiest of many trials is rarely the best.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from warnings import warn

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from wgcn.errors import InputError, WGCNWarning, needs

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from wgcn.estimators.labels import Labels
    from wgcn.inference.model import Scorer
    from wgcn.network.callbacks import TrialCallback

__all__ = ["Trial", "Tuned", "check_tuning", "deal_out", "tune"]

Floats = npt.NDArray[Any]
Places = npt.NDArray[np.int64]
Settings = dict[str, float]

_VALUES: dict[str, Sequence[float]] = {
    "alpha": (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0),
    "naive_bayes": (0.0, 0.25, 0.5, 0.75, 1.0),
    "teacher": (0.0, 0.5, 1.0, 2.0, 3.0, 4.0),
}
_FACTORS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)  # of C
_PARTS = 5  # into which the documents are dealt out
_ENOUGH = 2000  # documents to judge a trial by: where there are more, some parts are never held out
_FEW, _REPEATS = 100, 3  # fewer documents than this are dealt out so often
_BEHIND = 1.0  # standard errors behind the best at which a trial is given up
_AHEAD = 2.0  # standard errors that the best must be ahead of the default; with 1, what was chosen gained nothing


class Tuned(NamedTuple):
    """What was chosen, and why. Accuracies are shares of the documents that were held out in turn, by their weights."""

    settings: Settings
    accuracy: float | None  # None where nothing could be held out
    default_accuracy: float | None
    n_trials: int  # with the default; those that were given up count
    seconds: float


class Trial(NamedTuple):
    """A trial that ended, for callbacks."""

    number: int  # from 1
    n_trials: int  # at most
    settings: Settings
    accuracy: float  # on the parts that it was judged by, not all if it was given up
    best_accuracy: float  # of all trials so far


def check_tuning(model: str, seconds: float, trials: int) -> Any:
    """Return Optuna; raise what the user should know before anything takes long."""
    if model not in ("linear", "average"):
        raise InputError(f"tune is for the linear model, got model={model!r}. Leave tune out, or use model='linear'.")
    if not seconds > 0:
        raise InputError(f"tune_seconds must be above 0, got {seconds}.")
    if trials < 1:
        raise InputError(f"tune_trials must be at least 1, got {trials}.")
    with needs("tune=True"):
        import optuna
    return optuna


def tune(
    fit: Callable[[Places, Settings], Scorer],
    terms: csr_array,
    labels: Labels,
    weight: Floats,
    default: Settings,
    *,
    seconds: float,
    trials: int,
    random_state: Any = 0,
    callbacks: Sequence[TrialCallback] = (),
) -> Tuned:
    """Choose settings.

    Parameters
    ----------
    fit : callable
        Fits the model to some of the documents, with some settings.
    terms : csr_array of shape (documents, words)
        The documents with labels.
    labels : Labels
    weight : array of shape (documents,)
        What each document counts, in fitting and in judging.
    default : dict
        The settings to choose, and the values to begin with: some of alpha, naive_bayes, teacher and C.
    seconds : float
        No fit begins after this time.
    trials : int
        Most trials, with the default.
    random_state : int, RandomState or None
        Deals out documents and proposes trials.
    callbacks : sequence of TrialCallback
    """
    optuna = check_tuning("linear", seconds, trials)
    started = time.perf_counter()
    random = check_random_state(random_state)
    parts = deal_out(labels, random)
    if not parts:
        _tell("tune has nothing to choose settings by: half of the classes or more have but one document with a label.")
        return Tuned(default, None, None, 0, time.perf_counter() - started)
    race = _Race(fit, terms, labels, weight, parts, default)
    space = {name: _values(name, value) for name, value in default.items()}
    distributions = {name: optuna.distributions.IntDistribution(0, len(space[name]) - 1) for name in space}
    judged: dict[tuple[float, ...], _Judged] = {}
    n_done = 0
    with _quiet(optuna):
        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=random.randint(2**31 - 1))
        )
        for settings in _first(space, default):
            study.enqueue_trial({name: space[name].index(settings[name]) for name in space})
        while n_done < trials:
            trial = study.ask(distributions)
            settings = {name: space[name][trial.params[name]] for name in space}
            key = tuple(settings.values())
            if key not in judged:
                result = race.judge(settings, started + seconds)
                if result is None:
                    break
                judged[key] = result
            study.tell(trial, race.gain(judged[key]).mean)
            n_done += 1
            for callback in callbacks:
                accuracy = race.accuracy(judged[key])
                callback.on_trial(Trial(n_done, trials, settings, accuracy, race.accuracy(race.best)))
    if n_done < min(trials, 2):
        _tell(f"tune could compare nothing in {seconds:g} seconds: give it more (tune_seconds).")
    if n_done == 0:
        return Tuned(default, None, None, 0, time.perf_counter() - started)
    chosen = race.chosen()
    accuracy, default_accuracy = (race.accuracy(one) for one in (chosen, race.default))
    return Tuned(chosen.settings, accuracy, default_accuracy, n_done, time.perf_counter() - started)


class _Judged(NamedTuple):
    """Settings, and for each part of the documents whether the model was right about them."""

    settings: Settings
    right: list[Floats]  # fewer than there are parts if it was given up, or never had to be compared by all


class _Gain(NamedTuple):
    """By how much settings are better, and the standard error that this would have if they were equally good."""

    mean: float
    error: float


class _Race:
    """Trials that are judged on the same documents."""

    def __init__(
        self,
        fit: Callable[[Places, Settings], Scorer],
        terms: csr_array,
        labels: Labels,
        weight: Floats,
        parts: Sequence[Places],
        default: Settings,
    ) -> None:
        self._fit, self._terms, self._labels, self._weight, self._parts = fit, terms, labels, weight, parts
        self.default = self.best = _Judged(default, [])

    def judge(self, settings: Settings, deadline: float) -> _Judged | None:
        """Judge a trial, until it falls behind the best; None if time is over before that.

        The default is the first, and is judged by one part. The best is judged by another when a trial comes that far.
        """
        first = not self.default.right
        judged = self.default if first else _Judged(settings, [])
        for place in range(1 if first else len(self._parts)):
            for one in (self.best, judged):
                if len(one.right) > place:
                    continue
                if time.perf_counter() >= deadline:
                    return None
                one.right.append(self._right(self._parts[place], one.settings))
            gain = self.gain(judged, self.best)
            if gain.mean < -_BEHIND * gain.error:
                return judged
        if not first and self.gain(judged, self.best).mean > 0:
            self.best = judged
        return judged

    def _right(self, part: Places, settings: Settings) -> Floats:
        """Fit without a part of the documents, and return 1 for those that the model is right about, else 0."""
        rows, targets = self._terms[part], self._labels.targets[part]
        rest = np.setdiff1d(np.arange(len(self._weight)), part)
        scores = self._fit(rest, settings).scores(rows.data, rows.indices, rows.indptr)
        if self._labels.multilabel:
            return np.asarray(np.all((scores > 0) == targets, axis=1), np.float64)
        return np.asarray(scores.argmax(axis=1) == targets.argmax(axis=1), np.float64)

    def gain(self, one: _Judged, other: _Judged | None = None) -> _Gain:
        """Compare with other settings, by default the default, on the documents that both were judged by."""
        other = other or self.default
        pairs = zip(one.right, other.right, strict=False)
        difference, weight = self._by_document([right - before for right, before in pairs])
        total = max(float(weight.sum()), 1e-12)
        return _Gain(float(weight @ difference) / total, float(np.linalg.norm(weight * difference)) / total)

    def accuracy(self, judged: _Judged) -> float:
        """Return the share of right answers."""
        right, weight = self._by_document(judged.right)
        return float(weight @ right) / max(float(weight.sum()), 1e-12)

    def chosen(self) -> _Judged:
        """Return the best, if it is better than the default by more than chance."""
        gain = self.gain(self.best)
        return self.best if gain.mean > _AHEAD * gain.error else self.default

    def _by_document(self, values: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Return the mean of each document over the parts that it was in, and its weight: 0 if it was in none."""
        total, times = np.zeros(len(self._weight)), np.zeros(len(self._weight))
        for part, value in zip(self._parts, values, strict=False):
            total[part] += value
            times[part] += 1
        return total / np.maximum(times, 1), np.where(times > 0, self._weight, 0.0)


def deal_out(labels: Labels, random: np.random.RandomState) -> list[Places]:
    """Return parts of the documents to hold out in turn, class by class, so that of each class some are always left.

    The only document of a class is in no part. Without classes enough of which two documents are known, there are none.
    """
    targets = labels.targets
    counts = targets.sum(axis=0)
    if np.mean(counts < 2) >= 0.5:
        return []
    codes = np.zeros(len(targets), np.int64) if labels.multilabel else targets.argmax(axis=1)
    common = np.flatnonzero(np.bincount(codes)[codes] > 1)
    parts: list[Places] = []
    for _ in range(_REPEATS if len(common) < _FEW else 1):
        order = random.permutation(common)
        order = order[np.argsort(codes[order], kind="stable")]
        parts += [np.sort(order[i::_PARTS]) for i in range(min(_PARTS, len(order)))]
    n_parts = int(np.searchsorted(np.cumsum([len(part) for part in parts]), _ENOUGH)) + 1
    return parts[:n_parts]


def _values(name: str, default: float) -> list[float]:
    """Return what a setting may be, in order."""
    values = [default * factor for factor in _FACTORS] if name == "C" else _VALUES[name]
    return sorted({*values, default})


def _first(space: dict[str, list[float]], default: Settings) -> Iterator[Settings]:
    """Give the trials to begin with: the default, then each setting moved, C farthest because it matters most."""
    yield default
    for name in sorted(space, key=lambda name: name != "C"):
        place, step = space[name].index(default[name]), 2
        for other in (place - step, place + step):
            other = min(max(other, 0), len(space[name]) - 1)
            if other != place:
                yield {**default, name: space[name][other]}


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Keep Optuna from telling of each study, as it does unless it is asked not to."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _tell(message: str) -> None:
    warn(f"{message} The model has the settings that were given.", WGCNWarning, stacklevel=2)
