"""Choice of the linear model's hyper-parameters by cross-validation on the labelled documents.

It is a race on a grid. The default settings come first, then each setting moved by two grid steps up and down, C first
because it matters most, and then hill climbing: the best settings so far, with one setting moved by one step.

Candidates are judged on the same held-out documents, fold by fold. One that is a standard error behind the best is
given up, so that a bad one costs a fit or two. In the end the best replaces the default only if it is two standard
errors ahead: the luckiest of many candidates is rarely the best. As in McNemar's test, the standard error of a
difference is that of two equally good models, and counts only the documents on which they differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple
from warnings import warn

import numpy as np
import numpy.typing as npt

from wgcn.errors import InputError, WGCNWarning
from wgcn.labelling.splits import Rows

__all__ = ["Trial", "Tuned", "Tuning", "tune"]

Floats = npt.NDArray[Any]
Settings = dict[str, float]
Judge = Callable[[Rows, Settings], Floats]

_GRID: dict[str, Sequence[float]] = {
    "alpha": (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0),
    "naive_bayes": (0.0, 0.25, 0.5, 0.75, 1.0),
    "teacher": (0.0, 0.5, 1.0, 2.0, 3.0, 4.0),
}
_C_FACTORS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)  # C is the given one times one of these
_GIVE_UP = 1.0  # standard errors behind the best
_REPLACE_DEFAULT = 2.0  # standard errors ahead of the default; with 1, what was chosen gained nothing on test sets


class Tuned(NamedTuple):
    """What was chosen, and why. Accuracies are weighted shares of the documents that were held out in turn."""

    settings: Settings
    accuracy: float | None  # None where nothing could be held out
    default_accuracy: float | None
    n_trials: int  # with the default; those that were given up count
    seconds: float


class Trial(NamedTuple):
    """A finished trial, for callbacks."""

    number: int  # from 1
    n_trials: int  # at most
    settings: Settings
    accuracy: float  # on the folds it was judged by: not all of them if it was given up
    best_accuracy: float  # of all trials so far


@dataclass(frozen=True)
class Tuning:
    """How long settings are chosen."""

    seconds: float = 120.0  # no fit begins after this time; one that is running then is completed
    trials: int = 25  # most settings to try, the default among them
    callbacks: Sequence[Callable[[Trial], object]] = ()  # called with every trial

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise InputError(f"The seconds of tuning must be above 0, got {self.seconds}.")
        if self.trials < 1:
            raise InputError(f"The trials of tuning must be at least 1, got {self.trials}.")


def tune(judge: Judge, parts: Sequence[Rows], weight: Floats, default: Settings, tuning: Tuning) -> Tuned:
    """Choose settings.

    `judge` fits a model with some settings without some documents, and returns for which of these it is right: 1 or 0.
    `parts` are the folds to hold out in turn, and `weight`, of shape (documents,), is what each document counts.
    `default` names the settings to choose, with the values to begin with: some of alpha, naive_bayes, teacher and C.
    """
    started, n_done = time.perf_counter(), 0
    race = _Race(judge, parts, weight, default)
    for settings in islice(_candidates(race), tuning.trials if parts else 0):
        judged = race.judge(settings, started + tuning.seconds)
        if judged is None:
            break
        n_done += 1
        trial = Trial(n_done, tuning.trials, settings, race.gain(judged)[0], race.gain(race.best)[0])
        for callback in tuning.callbacks:
            callback(trial)
    if n_done < min(tuning.trials, 2):
        why = f"could compare nothing in {tuning.seconds:g} seconds: give it more time"
        if not parts:
            why = "has nothing to choose settings by: half of the classes or more have only one labelled document"
        warn(f"Tuning {why}. The model has the settings that were given.", WGCNWarning, stacklevel=2)
    if n_done == 0:
        return Tuned(default, None, None, 0, time.perf_counter() - started)
    ahead, error = race.gain(race.best, race.default)
    chosen = race.best if ahead > _REPLACE_DEFAULT * error else race.default
    accuracies = race.gain(chosen)[0], race.gain(race.default)[0]
    return Tuned(chosen.settings, *accuracies, n_done, time.perf_counter() - started)


class _Judged(NamedTuple):
    """Settings, and for each fold in turn whether the model was right about its documents: 1 or 0."""

    settings: Settings
    right: list[Floats]  # shorter than the list of folds if the settings were given up


class _Race:
    """Candidates judged on the same documents."""

    def __init__(self, judge: Judge, parts: Sequence[Rows], weight: Floats, default: Settings) -> None:
        self._judge, self._parts, self._weight = judge, parts, weight
        self.default = self.best = _Judged(default, [])

    def judge(self, settings: Settings, deadline: float) -> _Judged | None:
        """Judge a candidate until it falls behind the best; None if time is over first."""
        first = not self.default.right  # it is judged by one fold, and by others when a candidate gets that far
        judged = self.default if first else _Judged(settings, [])
        gain = 0.0
        for place, part in enumerate(self._parts[:1] if first else self._parts):
            for one in (self.best, judged):
                if len(one.right) > place:
                    continue
                if time.perf_counter() >= deadline:
                    return None
                one.right.append(self._judge(part, one.settings).astype(np.float64))
            gain, error = self.gain(judged, self.best)
            if gain < -_GIVE_UP * error:
                return judged
        if gain > 0:
            self.best = judged
        return judged

    def gain(self, one: _Judged, other: _Judged | None = None) -> tuple[float, float]:
        """Return an accuracy, or the difference of two on the folds of both, and the standard error of this."""
        others = [0.0] * len(one.right) if other is None else other.right
        total, times = np.zeros(len(self._weight)), np.zeros(len(self._weight))
        for part, right, before in zip(self._parts, one.right, others, strict=False):
            total[part] += right - before
            times[part] += 1
        mean, weight = total / np.maximum(times, 1), np.where(times > 0, self._weight, 0.0)
        whole = max(float(weight.sum()), 1e-12)
        return float(weight @ mean) / whole, float(np.linalg.norm(weight * mean)) / whole


def _candidates(race: _Race) -> Iterator[Settings]:
    """Yield settings that were not tried before, until all neighbours of the best were tried."""
    default = race.default.settings
    factors = {"C": [default["C"] * factor for factor in _C_FACTORS]} if "C" in default else {}
    grid = {name: sorted({*(_GRID | factors)[name], value}) for name, value in default.items()}
    tried: list[Settings] = []
    for settings in (default, *_moved(default, grid, 2)):
        tried.append(settings)
        yield settings
    while new := [settings for settings in _moved(race.best.settings, grid, 1) if settings not in tried]:
        tried.append(new[0])
        yield new[0]


def _moved(settings: Settings, grid: dict[str, list[float]], steps: int) -> Iterator[Settings]:
    """Yield settings with one value moved down and up by grid steps, at most to the end of the grid; C first."""
    for name in sorted(grid, key=lambda name: name != "C"):
        place = grid[name].index(settings[name])
        for other in (max(place - steps, 0), min(place + steps, len(grid[name]) - 1)):
            if other != place:
                yield {**settings, name: grid[name][other]}
