"""The choice of the constant C of a linear model, by documents that are held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["N_FOLDS", "choose_c", "deal_out", "enough_folds"]

N_FOLDS = 5


def deal_out(labels: npt.NDArray[Any]) -> list[npt.NDArray[np.int64]]:
    """Deal documents out to folds, class by class, so that some of each class are always left to learn from.

    The only document of a class is in no fold: without it nobody could know the class.
    """
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.argsort(codes, kind="stable")
    order = order[counts[codes[order]] > 1]
    return [order[i::N_FOLDS] for i in range(min(N_FOLDS, len(order)))]


def enough_folds(labels: npt.NDArray[Any]) -> list[npt.NDArray[np.int64]]:
    """Deal documents out to folds, or to none where fewer than two classes have a document for each of them."""
    _, counts = np.unique(labels, return_counts=True)
    return deal_out(labels) if np.sum(counts >= N_FOLDS) >= 2 else []


def choose_c(
    classifier: Callable[[float], Any],
    choices: Sequence[float],
    rows: Any,
    labels: npt.NDArray[Any],
    parts: Sequence[npt.NDArray[np.int64]],
    *,
    otherwise: float,
) -> tuple[float, float | None]:
    """Return the smallest of the constants that are right most often, and its share of right answers.

    Parameters
    ----------
    classifier : callable
        Makes an estimator of scikit-learn with a given C. If it has a warm start, a fit begins where that with the next
        smaller C ended.
    choices : sequence of float
        In ascending order.
    rows : matrix
        A row a document.
    labels : array
        A label a document.
    parts : sequence of int64 arrays
        Documents that are held out in turn, while all others are learnt from.
    otherwise : float
        The constant where there are no parts.
    """
    if not parts:
        return otherwise, None
    right = dict.fromkeys(choices, 0)
    for part in parts:
        rest = np.setdiff1d(np.arange(len(labels)), part)
        model = classifier(choices[0])
        for c in choices:
            model.set_params(C=c).fit(rows[rest], labels[rest])
            right[c] += int(np.sum(model.predict(rows[part]) == labels[part]))
    best = max(choices, key=lambda c: right[c])
    return best, right[best] / sum(map(len, parts))
