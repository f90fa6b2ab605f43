"""The choice of the linear model's settings by cross-validation on labelled documents.

Trials are judged on the same documents, part by part, the default first. One that falls behind the best is given up, so
a bad one costs a fit or two. The best takes the place of the default only if it is right on more documents than chance
would make it: the luckiest of many trials is rarely the best.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from warnings import warn

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from wgcn.errors import InputError, WGCNWarning, needs
from wgcn.linear.splits import folds

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from wgcn.inference.scorer import Scorer

__all__ = ["Trial", "TrialCallback", "Tuned", "Tuning", "cross_validation_parts", "tune"]

Floats = npt.NDArray[Any]
Places = npt.NDArray[np.int64]
Settings = dict[str, float]

_VALUES: dict[str, Sequence[float]] = {
    "alpha": (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0),
    "naive_bayes": (0.0, 0.25, 0.5, 0.75, 1.0),
    "teacher": (0.0, 0.5, 1.0, 2.0, 3.0, 4.0),
}
_FACTORS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)  # of C
_FOLDS = 5
_ENOUGH = 2000  # documents to judge a trial by: where there are more, some folds are never held out
_FEW, _REPEATS = 100, 3  # fewer documents than this are split so often
_BEHIND = 1.0  # standard errors behind the best at which a trial is given up
_AHEAD = 2.0  # standard errors that the best must be ahead of the default; with 1, what was chosen gained nothing


class Tuned(NamedTuple):
    """What was chosen, and why. Accuracies are weighted shares of the documents that were held out in turn."""

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
    accuracy: float  # on the folds that it was judged by, not all if it was given up
    best_accuracy: float  # of all trials so far


class TrialCallback(Protocol):
    """Something that is told of every trial."""

    def on_trial(self, trial: Trial) -> None:
        """See the end of a trial."""


@dataclass(frozen=True)
class Tuning:
    """How long settings are chosen.

    Parameters
    ----------
    seconds : float
        No fit begins after this time. A fit that runs then is ended first.
    trials : int
        Most settings to try, the default among them. If there is time for all, the choice depends on the seed alone.
    callbacks : sequence of TrialCallback
    """

    seconds: float = 120.0
    trials: int = 25
    callbacks: Sequence[TrialCallback] = ()

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise InputError(f"The seconds of tuning must be above 0, got {self.seconds}.")
        if self.trials < 1:
            raise InputError(f"The trials of tuning must be at least 1, got {self.trials}.")
        _optuna()


def _optuna() -> Any:
    with needs("Tuning"):
        import optuna
    return optuna


def tune(
    fit: Callable[[Places, Settings], Scorer],
    terms: csr_array,
    targets: Floats,
    weight: Floats,
    default: Settings,
    tuning: Tuning,
    *,
    multilabel: bool = False,
    random_state: Any = 0,
) -> Tuned:
    """Choose settings.

    Parameters
    ----------
    fit : callable
        Fits the model to some of the documents, with some settings.
    terms : csr_array of shape (documents, words)
        The labelled documents.
    targets : array of shape (documents, classes)
    weight : array of shape (documents,)
        What each document counts, in fitting and in judging.
    default : dict
        The settings to choose, and the values to begin with: some of alpha, naive_bayes, teacher and C.
    tuning : Tuning
    multilabel : bool
        Whether a document may have several classes.
    random_state : int, RandomState or None
        Splits the documents and proposes trials.
    """
    optuna, started = _optuna(), time.perf_counter()
    random = check_random_state(random_state)
    codes = np.zeros(len(targets), np.int64) if multilabel else targets.argmax(axis=1)
    parts = cross_validation_parts(codes, targets, random)
    if not parts:
        _warn("Tuning has nothing to choose settings by: half of the classes or more have but one labelled document.")
        return Tuned(default, None, None, 0, time.perf_counter() - started)
    race = _Race(fit, terms, targets, weight, parts, default)
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
        while n_done < tuning.trials:
            trial = study.ask(distributions)
            settings = {name: space[name][trial.params[name]] for name in space}
            key = tuple(settings.values())
            if key not in judged:
                result = race.judge(settings, started + tuning.seconds)
                if result is None:
                    break
                judged[key] = result
            study.tell(trial, race.gain(judged[key]).mean)
            n_done += 1
            accuracy = race.accuracy(judged[key])
            for callback in tuning.callbacks:
                callback.on_trial(Trial(n_done, tuning.trials, settings, accuracy, race.accuracy(race.best)))
    if n_done < min(tuning.trials, 2):
        _warn(f"Tuning could compare nothing in {tuning.seconds:g} seconds: give it more time.")
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
        targets: Floats,
        weight: Floats,
        parts: Sequence[Places],
        default: Settings,
    ) -> None:
        self._fit, self._terms, self._targets, self._weight, self._parts = fit, terms, targets, weight, parts
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
        rest = np.setdiff1d(np.arange(len(self._weight)), part)
        scorer = self._fit(rest, settings)
        return scorer.are_right(scorer.scores_of(self._terms[part]), self._targets[part]).astype(np.float64)

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


def cross_validation_parts(codes: Places, targets: Floats, random: np.random.RandomState) -> list[Places]:
    """Return parts of the documents to hold out in turn; none if half of the classes or more have but one document.

    Parameters
    ----------
    codes : int64 array of shape (documents,)
        The class of each document, for stratification.
    targets : array of shape (documents, classes)
    random : RandomState
    """
    if np.mean(targets.sum(axis=0) < 2) >= 0.5:
        return []
    n_common = int(np.sum(np.bincount(codes)[codes] > 1))
    repeats = _REPEATS if n_common < _FEW else 1
    parts = [part for _ in range(repeats) for part in folds(codes, _FOLDS, random)]
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


def _warn(message: str) -> None:
    warn(f"{message} The model has the settings that were given.", WGCNWarning, stacklevel=2)
