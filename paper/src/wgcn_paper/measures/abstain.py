"""When a model does not know: risk and coverage, sets of labels, and texts of another kind."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from wgcn import WGCNTextClassifier
from wgcn.trust.abstention import risk_coverage
from wgcn_paper.datasets import Dataset
from wgcn_paper.measures.measure import Measure, load_data, share, split_of
from wgcn_paper.protocol import Protocol

_COVERAGES = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)  # percent


class Abstain(Measure):
    """How well a model knows what it does not know, with all labels or, with `fraction`, with a drawn share of them.

    The seed also draws the training documents that wgcn is calibrated by.

    - ``at 10`` to ``at 100``: accuracy on that many percent of the test texts, those with the highest probability;
    - ``area``: mean share of errors over all such parts of the test texts (area under the risk-coverage curve);
    - ``covered`` and ``size``: of wgcn's sets of labels for a coverage of 90 %, the share that hold the true label, and
      the mean number of labels; ``empty``: the share without a label;
    - ``auroc SET``: how well the out-of-scope score separates the test texts of another set from those of this one;
      ``auroc-probability SET``: the same with 1 - the highest probability.
    """

    name = "abstain"
    defaults: ClassVar = {
        **Measure.defaults,
        "method": "wgcn",
        "fraction": 1.0,
        "coverage": 0.9,
        "others": ["20ng", "mr", "ohsumed", "r52", "r8"],
    }

    def measure(self, dataset: Dataset) -> dict[str, Any]:
        """Return all figures of one model."""
        split = split_of(dataset)
        labels = Protocol("few-label", self.settings["fraction"]).task(dataset, self.seed).labels
        model: Any = _Logistic() if self.settings["method"] == "logistic" else WGCNTextClassifier()
        vars(model)["random_state"] = self.seed  # of the classifier inside: it draws the documents to calibrate by
        model.fit(split.train, labels)
        probabilities = model.predict_proba(split.test)
        right = model.classes_[probabilities.argmax(axis=1)] == split.test_labels
        found = {"accuracy": share(right), **_risk_coverage(right, probabilities.max(axis=1))}
        inside = {"auroc-probability": 1 - probabilities.max(axis=1)}
        # With one label for half of the classes, it holds out none, and does not know.
        knows = isinstance(model, WGCNTextClassifier) and model.model_.trust is not None
        if knows:
            found |= _sets(model.predict_set(split.test, coverage=self.settings["coverage"]), split.test_labels)
            inside["auroc"] = np.asarray(model.out_of_scope(split.test))
        for name in self.settings["others"]:
            if name == dataset.name:
                continue
            texts = split_of(load_data(name, self.settings["held_out"])).test
            outside = {"auroc-probability": 1 - model.predict_proba(texts).max(axis=1)}
            if knows:
                outside["auroc"] = np.asarray(model.out_of_scope(texts))
            found |= {f"{kind} {name}": _auroc(inside[kind], outside[kind]) for kind in outside}
        return found


class _Logistic:
    """tf-idf and logistic regression, as people have it."""

    def fit(self, texts: list[str], labels: npt.NDArray[Any]) -> None:
        labelled = np.flatnonzero([label is not None for label in labels])
        self._vectorizer = TfidfVectorizer(sublinear_tf=True)
        terms = self._vectorizer.fit_transform(texts)[labelled]
        self._model = LogisticRegression(max_iter=1000).fit(terms, np.array(labels[labelled].tolist()))
        self.classes_: npt.NDArray[Any] = self._model.classes_

    def predict_proba(self, texts: list[str]) -> npt.NDArray[np.float64]:
        return np.asarray(self._model.predict_proba(self._vectorizer.transform(texts)))


def _risk_coverage(right: npt.NDArray[np.bool_], confidence: npt.NDArray[np.float64]) -> dict[str, float]:
    curve = risk_coverage(confidence, right)
    points = {f"at {c}": 1 - float(curve.risk[max(round(c / 100 * len(right)), 1) - 1]) for c in _COVERAGES}
    return {**points, "area": curve.area}


def _sets(sets: Any, truth: npt.NDArray[Any]) -> dict[str, float]:
    sizes = np.array([len(each) for each in sets])
    covered = [label in set(each) for each, label in zip(sets, truth.tolist(), strict=True)]
    return {"covered": share(covered), "size": float(sizes.mean()), "empty": share(sizes == 0)}


def _auroc(inside: npt.NDArray[np.float64], outside: npt.NDArray[np.float64]) -> float:
    truth = np.repeat([0, 1], [len(inside), len(outside)])
    return float(roc_auc_score(truth, np.concatenate([inside, outside])))
