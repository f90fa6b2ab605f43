"""Choice of the linear model's hyper-parameters on labelled documents that are held out, in about the time of a fit.

The default is compared with a few other settings in a race. All are judged on the same held-out documents, first on a
part of them; then only the best of the others goes on to the next part, and only if it is half a standard error ahead
of the default. It replaces the default if it is two standard errors ahead on all parts: the luckiest of several
candidates is rarely the best. As in McNemar's test, the standard error of a difference is that of two equally good
models, and counts only the documents on which they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wgcn.labelling.splits import Rows

__all__ = ["Settings", "Tuned", "candidates", "tune"]

Floats = npt.NDArray[Any]
Settings = dict[str, float]
# Fits a model with some settings without the documents of a part, and returns for which of these it is right.
Judge = Callable[[int, Settings], npt.NDArray[np.bool_]]

_GO_ON, _REPLACE_DEFAULT = 0.5, 2.0  # standard errors ahead of the default
_C_FACTOR = 2.5
_PLAIN_C_FACTOR = 4.0  # without naive Bayes scales, which make the rows of documents longer


class Tuned(NamedTuple):
    """What was chosen, and why. Accuracies are weighted shares of the documents that were held out in turn."""

    settings: Settings
    accuracy: float
    default_accuracy: float
    n_held_out: int  # documents on which the chosen settings, or the best of the others, were compared
    n_fits: int  # beside that of the default on the first part, which calibration needs anyway


def candidates(default: Settings, short: bool) -> list[Settings]:
    """Return what is compared with the default: a smaller and a larger C.

    For short texts, also a plain model without naive Bayes scales: with many classes it may be better.
    """
    C = default["C"]
    others = [{**default, "C": C / _C_FACTOR}, {**default, "C": C * _C_FACTOR}]
    if short and default["naive_bayes"] > 0:
        others.append({**default, "naive_bayes": 0.0, "C": C * _PLAIN_C_FACTOR})
    return others


def tune(judge: Judge, parts: Sequence[Rows], weight: Floats, default: Settings, others: Sequence[Settings]) -> Tuned:
    """Choose between the default and others.

    `parts` are documents to hold out in turn, and `weight`, of shape (documents,), is what each document
    counts.
    """
    rights, n_fits = {"default": [judge(0, default)]}, len(others)
    first = [judge(0, settings) for settings in others]
    gains = [_gain(weight, parts, [right], rights["default"])[0] for right in first]
    best = int(np.argmax(gains))
    rights["best"] = [first[best]]
    for part in range(1, len(parts)):
        gain, error = _gain(weight, parts, rights["best"], rights["default"])
        if gain <= _GO_ON * error or gain <= 0:
            break
        rights["default"].append(judge(part, default))
        rights["best"].append(judge(part, others[best]))
        n_fits += 2
    gain, error = _gain(weight, parts, rights["best"], rights["default"])
    finished = len(rights["best"]) == len(parts)
    chosen = others[best] if finished and gain > max(_REPLACE_DEFAULT * error, 0) else default
    before = _gain(weight, parts, rights["default"])[0]
    n_held_out = sum(map(len, rights["best"]))
    return Tuned(chosen, before + gain * (chosen is not default), before, n_held_out, n_fits)


def _gain(
    weight: Floats, parts: Sequence[Rows], ones: Sequence[Floats], others: Sequence[Floats] | None = None
) -> tuple[float, float]:
    """Return an accuracy, or the difference of two, and the standard error of this."""
    others = [np.zeros(len(one)) for one in ones] if others is None else others
    rows = np.concatenate(list(parts[: len(ones)]))
    mean = np.concatenate(ones).astype(np.float64) - np.concatenate(others)
    whole = max(float(weight[rows].sum()), 1e-12)
    return float(weight[rows] @ mean) / whole, float(np.linalg.norm(weight[rows] * mean)) / whole
