"""Cross-validated choice of C for a linear model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

N_FOLDS = 5


def deal_out(labels: npt.NDArray[Any]) -> list[npt.NDArray[np.int64]]:
    """Deal documents out to folds, class by class, so that some of each class are always left for training.

    The only document of a class is in no fold. StratifiedKFold would put it into one, so that the class is missing in
    training; the committed runs also depend on these folds.
    """
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.argsort(codes, kind="stable")
    order = order[counts[codes[order]] > 1]
    return [order[i::N_FOLDS] for i in range(min(N_FOLDS, len(order)))]


def enough_folds(labels: npt.NDArray[Any]) -> list[npt.NDArray[np.int64]]:
    """Return the folds of `deal_out`, or none if fewer than two classes have a document per fold."""
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
    """Return the C with the highest accuracy, the smallest of equally good ones, and that accuracy.

    `classifier` makes an estimator of scikit-learn with a given C; with a warm start, each fit begins with the result
    of the next smaller of the ascending `choices`. Each of `parts` is held out in turn, and all other documents train.
    Without parts C is `otherwise`.
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
