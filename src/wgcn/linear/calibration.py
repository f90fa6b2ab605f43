"""How certain scores are: the factor that makes probabilities of them, and the weight of documents in self-training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

from wgcn.base.arrays import row_batches
from wgcn.base.products import Floats
from wgcn.labels.splits import Rows
from wgcn.labels.targets import Targets
from wgcn.scoring.scorer import Scorer

SHARPNESS = 2.0  # factor of the scores where nothing can be held out
# Standard deviation of the prior of the log of the calibration factor. Without it, a few documents that are all right
# would make the model certain of everything. Chosen on training documents.
_PRIOR_LOG_DEVIATION = 0.7
# Judged documents for which a prior counts; labels with which half of what is beyond chance is expected by this prior;
# and labels that count beside those that are there, of classes that several have. Chosen on training documents.
_DOUBT, _HALF_WAY, _UNSEEN = 8, 20, 2
_LEAST_LOG = -6.0  # logarithm of the most by which a factor is lowered
_MOST_DOCUMENTS = 50_000  # that are held out
MOST_SCORES = 1 << 26  # of held-out documents by classes, which are kept


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
    n_alone: int = 0  # documents that cross-validation could not hold out, because no other one has their class

    @property
    def claimed(self) -> tuple[float | None, int]:
        """The accuracy on all documents, and their number: those that are alone in their class are all wrong."""
        n = self.n_documents + self.n_alone
        return None if self.accuracy is None else self.accuracy * self.n_documents / n, n


def most_held_out(n_classes: int) -> int:
    """Return how many documents may be held out at most: more tell no more, and scores of many classes take memory."""
    return min(MOST_SCORES // n_classes, _MOST_DOCUMENTS)


def score_batches(scorer: Scorer, rows: csr_array) -> Iterator[tuple[slice, Floats]]:
    """Yield some rows of a sparse matrix of documents by words at a time, and their scores, where classes are many."""
    for batch in row_batches(rows.shape[0], len(scorer.bias)):
        whole = batch.stop - batch.start == rows.shape[0]
        yield batch, scorer.scores_of(rows if whole else rows[batch])


def guesses(batches: Iterable[tuple[slice, Floats]]) -> tuple[Rows, Floats]:
    """Return the class of each document, and how certain it is; `batches` are those of `score_batches`."""
    codes, distances = decisions(batches)
    return codes, certainty(codes, distances)


def decisions(batches: Iterable[tuple[slice, Floats]]) -> tuple[Rows, Floats]:
    """Return the class of each document, and the distance between the two highest scores."""
    decided, apart = [], []
    for _, scores in batches:
        decided.append(scores.argmax(axis=1))
        best = np.partition(scores, [-2, -1], axis=1)[:, -2:] if scores.shape[1] > 1 else scores[:, [0, 0]] + [0, 1]
        apart.append((best[:, 1] - best[:, 0]).astype(np.float64))
    return np.concatenate(decided), np.concatenate(apart)


def certainty(codes: Rows, distances: Floats) -> Floats:
    """Return how certain decisions are: 1 on average within a class.

    It is the distance between the two highest scores, at most twice the median of those that get the same class.
    """
    certain, order = np.empty(len(codes)), np.argsort(codes, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(codes) else ():
        own = np.minimum(distances[rows], 2 * np.median(distances[rows])) + 1e-12
        certain[rows] = own / own.mean()
    return certain


def calibrate(scorer: Scorer, scores: Floats, targets: Targets | Floats, n_documents: int | None = None) -> Calibration:
    """Find the factor of scores that makes held-out documents, and the factor itself, as likely as possible.

    The factor of `scorer` is the centre of the prior. `scores` and `targets` are of shape (documents, classes).
    `n_documents` is the number of different documents, if some occur several times.
    """
    n_documents = len(scores) if n_documents is None else n_documents
    centre, known, batches = float(np.log(scorer.sharpness)), Targets.of(targets), list(row_batches(*scores.shape))

    def losses(trial: Scorer, rows: slice) -> Floats:
        likely = np.clip(trial.probabilities(scores[rows]), 1e-12, 1 - 1e-12)
        others = 1 - likely if scorer.multilabel else 1.0
        return np.asarray(-np.log(np.where(known[rows].toarray() > 0, likely, others)).sum(axis=1))

    def loss(log_sharpness: float) -> float:
        trial = replace(scorer, sharpness=float(np.exp(log_sharpness)))
        each = np.concatenate([losses(trial, rows) for rows in batches])
        return float(np.mean(each) + ((log_sharpness - centre) / _PRIOR_LOG_DEVIATION) ** 2 / (2 * n_documents))

    best = float(np.exp(minimize_scalar(loss, bounds=(-4.0, 4.0), method="bounded").x))
    right = np.concatenate([scorer.are_right(scores[rows], known[rows]) for rows in batches])
    return Calibration(best, float(np.mean(right)), n_documents)


def expected_accuracy(accuracy: float | None, n_judged: int, counts: Floats) -> float:
    """Return what accuracy may be expected of new documents after few labels, by cross-validation if there was one.

    `counts` are the labels of each class, `accuracy` that of documents whose class has several. A prior by the number
    of labels counts as `_DOUBT` judged documents; it begins at the accuracy of guesses by the shares of the classes. A
    standard error is taken off, so that few labels are rather believed too little. Documents of classes that no label
    names yet, and of those that have one label in the part that judges, are all wrong; their share is about that of the
    classes with one label among the labels (Good and Turing).
    """
    n_classes, n_labels = max(len(counts), 1), max(float(np.sum(counts)), 1.0)
    shares = (counts + 1 / n_classes) / (n_labels + 1)
    chance, n_known = float(np.sum(shares**2)), float(_DOUBT)
    within = chance + (1 - chance) * n_labels / (n_labels + _HALF_WAY)
    if accuracy is not None:
        n_known += n_judged
        within = (n_judged * accuracy + _DOUBT * within) / n_known
    within -= np.sqrt(within * (1 - within) / n_known)
    return float(max(within * (1 - np.sum(counts == 1) / (n_labels + _UNSEEN)), 1 / n_classes))


def believable(scorer: Scorer, scores: Floats, accuracy: float, judged: Floats | None = None) -> float:
    """Return the factor of scores with which decisions are as certain, on average, as they are expected to be right.

    It is never larger than that of `scorer`. `scores` are those of unlabelled documents, `judged` those of documents in
    cross-validation. The certainty of the first, which training has seen, is lowered by the ratio in which the second,
    which it has not, claim more than the expected `accuracy`.
    """

    def mean_certainty(of: Floats, log_sharpness: float) -> float:
        likely = replace(scorer, sharpness=float(np.exp(log_sharpness))).probabilities(of)
        return float(likely.max(axis=1).mean())

    most = float(np.log(scorer.sharpness))
    if not len(scores):
        return float(scorer.sharpness)
    now = mean_certainty(scores, most)
    claimed = now if judged is None else mean_certainty(judged, most)
    if claimed <= accuracy:
        return float(scorer.sharpness)
    wanted, least = now * accuracy / claimed, most + _LEAST_LOG
    for _ in range(30):
        middle = (least + most) / 2
        least, most = (least, middle) if mean_certainty(scores, middle) > wanted else (middle, most)
    return float(np.exp(least))
