"""How certain scores are: the factor that makes probabilities of them, and the weight of documents in self-training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from wgcn.labelling.splits import Rows
from wgcn.products import Floats

__all__ = ["SHARPNESS", "Calibration", "HeldOut", "calibrate", "certainty"]

SHARPNESS = 2.0  # factor of the scores where nothing can be held out
# Standard deviation of the prior of the log of the calibration factor. Without it, a few documents that are all right
# would make the model certain of everything. Chosen on training documents.
_PRIOR_LOG_DEVIATION = 0.7


class HeldOut(NamedTuple):
    """Scores of labelled documents by a model, or with few labels a teacher, that was fitted without them."""

    rows: Rows  # which of the labelled documents; with few labels, some come several times
    scores: Floats  # (rows, classes), of the size of the final model's scores


class Calibration(NamedTuple):
    """The calibration factor of scores, and the accuracy on the held-out documents that gave it, if any."""

    sharpness: float = SHARPNESS
    accuracy: float | None = None
    n_documents: int = 0
    held_out: HeldOut | None = None


def certainty(scores: Floats) -> Floats:
    """Return how certain the decisions of scores are, of shape (documents,): 1 on average within a class.

    It is the distance between the two highest scores, at most twice the median of those that get the same class.
    """
    best, codes = np.sort(scores, axis=1), scores.argmax(axis=1)
    distances = (best[:, -1] - best[:, -2]).astype(np.float64) if scores.shape[1] > 1 else np.ones(len(scores))
    for code in np.unique(codes):
        own = distances[codes == code]
        own = np.minimum(own, 2 * np.median(own)) + 1e-12
        distances[codes == code] = own / own.mean()
    return distances


def calibrate(scorer: Any, scores: Floats, targets: Floats, n_documents: int | None = None) -> Calibration:
    """Find the factor of scores that makes held-out documents, and the factor itself, as likely as possible.

    The factor of `scorer` is the centre of the prior. `scores` and `targets` are of shape (documents, classes).
    `n_documents` is the number of different documents, if some occur several times.
    """
    n_documents = len(scores) if n_documents is None else n_documents
    centre = float(np.log(scorer.sharpness))

    def loss(log_sharpness: float) -> float:
        trial = replace(scorer, sharpness=float(np.exp(log_sharpness)))
        likely = np.clip(trial.probabilities(scores), 1e-12, 1 - 1e-12)
        each = -np.log(np.where(targets > 0, likely, 1 - likely if scorer.multilabel else 1.0)).sum(axis=1)
        return float(np.mean(each) + ((log_sharpness - centre) / _PRIOR_LOG_DEVIATION) ** 2 / (2 * n_documents))

    best = float(np.exp(minimize_scalar(loss, bounds=(-4.0, 4.0), method="bounded").x))
    return Calibration(best, float(np.mean(scorer.are_right(scores, targets))), n_documents)
