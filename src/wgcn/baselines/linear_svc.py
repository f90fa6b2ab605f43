"""tf-idf and a linear support vector machine: what most people would try first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from wgcn.baselines.baseline import Baseline, Fit, array_digest

if TYPE_CHECKING:
    from wgcn.protocol import Query, Task

__all__ = ["LinearSVCMethod"]


class LinearSVCMethod(Baseline):
    """Sublinear tf-idf and LinearSVC, both of scikit-learn. Vocabulary and idf come from all text that may be seen."""

    name = "linear-svc"
    seeded = False
    defaults: ClassVar = {"C": 1.0, "ngrams": 1, "sublinear": True}

    def fit(self, task: Task) -> Fit:
        """Learn from the documents with labels."""
        assert task.texts is not None
        self._vectorizer = TfidfVectorizer(
            sublinear_tf=self.settings["sublinear"], ngram_range=(1, self.settings["ngrams"]), dtype=np.float32
        )
        terms = self._vectorizer.fit_transform(task.texts)
        labelled = np.flatnonzero([label is not None for label in task.labels])
        self._svc = LinearSVC(C=self.settings["C"], random_state=0)
        self._svc.fit(terms[labelled], np.array(task.labels[labelled].tolist()))
        words = self._vectorizer.get_feature_names_out()
        return Fit(digest=array_digest(words, self._vectorizer.idf_, self._svc.coef_, self._svc.intercept_))

    def predict(self, query: Query) -> npt.NDArray[Any]:
        """Return a label a text."""
        guesses: npt.NDArray[Any] = self._svc.predict(self._vectorizer.transform(query.texts))
        return guesses
