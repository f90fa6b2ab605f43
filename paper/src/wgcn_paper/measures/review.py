"""Which labels look wrong: wgcn beside cleanlab on labels of which a tenth is wrong, with the time of both."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from wgcn import WGCNTextClassifier
from wgcn_paper.datasets import Dataset
from wgcn_paper.measures.measure import Clock, Measure, share, small_fit, split_of

# What cleanlab calls its two rankings by out-of-fold probabilities.
_RANKINGS = {"cleanlab_confidence": "self_confidence", "cleanlab_margin": "normalized_margin"}


class Review(Measure):
    """Average precision with which wrong labels are ranked first, and seconds, all in one run.

    A share of the training labels is replaced by another class, drawn uniformly. ``wgcn`` is `review` after a fit to
    all texts and labels; ``cleanlab_confidence`` and ``cleanlab_margin`` are cleanlab's rankings on out-of-fold
    probabilities of logistic regression on tf-idf, in five folds. CPU seconds end in ``_cpu``, wall seconds in
    ``_wall``: of the fit of wgcn, of the review alone, and of cleanlab with tf-idf and folds.
    """

    name = "review"
    packages = ("cleanlab",)
    defaults: ClassVar = {**Measure.defaults, "flipped": 0.1, "folds": 5}

    @property
    def cost(self) -> float:
        """The folds of logistic regression take most of the time."""
        return 12.0

    def measure(self, dataset: Dataset) -> dict[str, Any]:
        """Return average precisions and seconds; the accuracy is that of wgcn with the wrong labels."""
        split = split_of(dataset)
        rng = np.random.default_rng(self.seed)
        labels, wrong = flipped(split.train_labels, self.settings["flipped"], rng)
        import_module("cleanlab.rank")  # which takes seconds
        small_fit().review()
        clock = Clock()
        model = WGCNTextClassifier().fit(split.train, labels)
        clock.stop("fit")
        found = model.review()
        clock.stop("review")
        scores = np.full(len(labels), -np.inf)
        for entry in found:
            scores[entry.index] = entry.score
        precision = {"wgcn": _average_precision(wrong, scores)}
        accuracy = share(model.predict(split.test) == split.test_labels)
        clock.restart()
        qualities = self._cleanlab(split.train, labels)
        clock.stop("cleanlab")
        precision |= {name: _average_precision(wrong, -quality) for name, quality in qualities.items()}
        return {"accuracy": accuracy, **precision, **clock.seconds}

    def _cleanlab(self, texts: list[str], labels: npt.NDArray[Any]) -> dict[str, npt.NDArray[np.float64]]:
        """Return cleanlab's quality of each label, low for those that look wrong, by both rankings."""
        from cleanlab.rank import get_label_quality_scores

        terms = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
        codes = np.unique(labels, return_inverse=True)[1]
        folds = StratifiedKFold(self.settings["folds"], shuffle=True, random_state=self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # classes with fewer documents than folds
            model = LogisticRegression(max_iter=1000)
            probabilities = cross_val_predict(model, terms, codes, cv=folds, method="predict_proba")
            return {
                name: np.asarray(get_label_quality_scores(codes, probabilities, method=method))
                for name, method in _RANKINGS.items()
            }


def flipped(
    labels: npt.NDArray[Any], fraction: float, rng: np.random.Generator
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return labels of which a share is replaced by another class, drawn uniformly, and which these are."""
    classes, codes = np.unique(labels, return_inverse=True)
    wrong = np.zeros(len(labels), bool)
    wrong[rng.permutation(len(labels))[: round(fraction * len(labels))]] = True
    steps = rng.integers(1, len(classes), len(labels))
    return classes[np.where(wrong, (codes + steps) % len(classes), codes)], wrong


def _average_precision(wrong: npt.NDArray[np.bool_], scores: npt.NDArray[np.float64]) -> float:
    """Return the average precision; a text that is not ranked comes last."""
    lowest = scores[np.isfinite(scores)].min(initial=0.0) - 1.0
    return float(average_precision_score(wrong, np.where(np.isfinite(scores), scores, lowest)))
