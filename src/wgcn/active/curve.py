"""How good a model is with more and more labels, and what more of them might bring: the learning curve.

Folds of the labelled texts are held out in turn. The other labelled texts are shuffled, and models are fitted with the
labels of the first ten, twenty, forty and so on, so that a larger set contains the smaller ones. What has no label in a
fit is unlabelled text in it, but for the texts that are held out: no model has seen them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from wgcn.base.errors import InputError
from wgcn.base.progress import stage
from wgcn.labels.reading import Labels
from wgcn.labels.splits import Rows, folds
from wgcn.labels.targets import Targets
from wgcn.linear.calibration import score_batches
from wgcn.scoring.scorer import Scorer
from wgcn.trust.accuracy import accuracy_interval

_FOLDS = 5
_ENOUGH_TEXTS = 1000  # held out: with this many the interval is at most 6 points wide, and no more folds are needed
_FEWEST_LABELS = 10  # in the smallest fit
_MOST_SIZES = 6

Judge = Callable[[Rows, Rows], int]


class CurvePoint(NamedTuple):
    """Accuracy of models that were fitted with so many labels, on texts that they had not seen."""

    n_labels: int
    n_right: int
    n_texts: int  # held out

    @property
    def accuracy(self) -> float:
        """The share of the texts that are right."""
        return self.n_right / self.n_texts

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the accuracy."""
        return accuracy_interval(self.n_right, self.n_texts)


def learning_curve(labels: Labels, judge: Judge, sizes: Sequence[int] | None = None, seed: int = 0) -> list[CurvePoint]:
    """Return the accuracy for growing numbers of labels, smallest first.

    `judge` fits a model with the labels of some texts and without others at all, and returns about how many of these
    it is right: judge(rows with a label, rows held out) with rows of all texts, labelled or not.
    """
    rows, random = np.flatnonzero(labels.labelled), np.random.RandomState(seed)
    targets = labels.targets
    codes = targets.matrix @ (1 + np.arange(targets.n_classes)) if labels.multilabel else targets.codes
    parts = folds(np.unique(codes, return_inverse=True)[1], _FOLDS, random)
    if len(parts) < 2:
        raise InputError("A learning curve needs classes with at least two labelled texts. Label more texts.")
    n_enough = int(np.searchsorted(np.cumsum([len(part) for part in parts]), _ENOUGH_TEXTS)) + 1
    most = len(rows) - max(len(part) for part in parts)
    sizes = default_sizes(most) if sizes is None else sorted(set(sizes))
    if not sizes or sizes[0] < 2 or sizes[-1] > most:
        raise InputError(f"Sizes must be between 2 and {most:,}, the labels outside of a fold, got {list(sizes)}.")
    right, n_texts = np.zeros(len(sizes), int), 0
    for number, part in enumerate(parts[:n_enough], 1):
        rest = _two_classes_first(random.permutation(np.setdiff1d(np.arange(len(rows)), part)), labels.targets)
        n_texts += len(part)
        with stage(f"Measuring, part {number} of {min(n_enough, len(parts))}", f"{len(sizes)} models"):
            right += [judge(rows[rest[:size]], rows[part]) for size in sizes]
    return [CurvePoint(int(size), int(n), n_texts) for size, n in zip(sizes, right, strict=True)]


def judging(terms: csr_array, labels: Labels, fit: Callable[[csr_array, Labels], Scorer]) -> Judge:
    """Return the function that `learning_curve` needs, for texts of shape (texts, words)."""
    place = np.cumsum(labels.labelled) - 1  # of a text among the targets

    def judge(known: Rows, held_out: Rows) -> int:
        kept = np.delete(np.arange(terms.shape[0]), held_out)
        targets = labels.targets[place[np.sort(known)]]
        scorer = fit(terms[kept], labels._replace(labelled=np.isin(kept, known), targets=targets))
        truth, batches = labels.targets[place[held_out]], score_batches(scorer, terms[held_out])
        return sum(int(scorer.are_right(s, truth[rows]).sum()) for rows, s in batches)

    return judge


def default_sizes(most: int) -> list[int]:
    """Return at most six numbers of labels, each about half of the next, up to `most`."""
    halves = [most // 2**i for i in range(_MOST_SIZES)]
    return sorted({size for size in halves if size >= _FEWEST_LABELS} or {most})


def _two_classes_first(order: Rows, targets: Targets) -> Rows:
    """Return the order with the first text of another class than the first text's in the second place."""
    others = np.flatnonzero(targets.unlike(int(order[0]))[order])
    if not len(others):
        return order
    return np.concatenate([order[:1], order[others[:1]], np.delete(order, [0, others[0]])])


def extrapolate(points: Sequence[CurvePoint], n_labels: int) -> float | None:
    """Return the accuracy that a power law expects with `n_labels`; None with fewer than three points.

    The error is taken to fall as a * n^-b with b at least 0, fitted to the logarithms by least squares.
    """
    if len(points) < 3:
        return None
    n = np.log([point.n_labels for point in points])
    error = np.log([(point.n_texts - point.n_right + 0.5) / (point.n_texts + 1) for point in points])
    slope = min(float(np.polyfit(n, error, 1)[0]), 0.0)
    return float(1 - np.exp(error.mean() + slope * (np.log(n_labels) - n.mean())))


def curve_lines(points: Iterable[CurvePoint], n_labelled: int) -> list[str]:
    """Return the curve as a table for a terminal, with what twice the labels might bring."""
    points = list(points)
    lines = [f"{'labels':>8}  accuracy  95% interval   held-out texts"]
    for point in points:
        low, high = (100 * end for end in point.interval)
        lines.append(f"{point.n_labels:>8,}  {point.accuracy:>8.1%}  {low:>4.1f} to {high:>5.1f}  {point.n_texts:>15,}")
    now, twice = (extrapolate(points, factor * n_labelled) for factor in (1, 2))
    if now is not None and twice is not None:
        lines.append(
            f"Extrapolated by a power law: {now:.1%} with all {n_labelled:,} labels, {twice:.1%} with twice as many."
        )
    return lines
