"""tf-idf and a linear support vector machine, the usual baseline.

A document x has a weight (1 + log(count)) (log((1 + n) / (1 + n_w)) + 1) for each word w, where n_w of n documents have
the word, and is scaled to length 1. For each class against the rest, the machine minimises
|w|^2 / 2 + b^2 / 2 + C sum_i max(0, 1 - y_i (w x_i + b))^2.

T. Joachims: Text Categorization with Support Vector Machines: Learning with Many Relevant Features. ECML 1998.
R.-E. Fan, K.-W. Chang, C.-J. Hsieh, X.-R. Wang, C.-J. Lin: LIBLINEAR: A Library for Large Linear Classification.
Journal of Machine Learning Research 9, 2008.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from wgcn_paper.methods.baseline import Baseline, Fit, array_digest, in_fixed_order
from wgcn_paper.methods.cross_validation import choose_c, deal_out

if TYPE_CHECKING:
    from wgcn_paper.protocol import Query, Task

__all__ = ["LinearBaseline", "LinearSVCMethod"]


class LinearBaseline(Baseline):
    """A linear model of scikit-learn on tf-idf. Vocabulary and idf come from all text that may be seen.

    With C = 0 the constant is chosen among `choices` by cross-validation on the labelled documents, or on the
    validation documents of the task; it is 1 where every class has a single document.
    """

    seeded = False
    choices: ClassVar[tuple[float, ...]]

    def fit(self, task: Task) -> Fit:
        """Fit on the labelled documents."""
        c, accuracy = self.settings["C"], None
        if not c:
            # The folds must not depend on the order of documents. With a given C the order is not changed: the
            # problem is convex, so it shows only within the tolerance of the solver.
            task, _ = in_fixed_order(task)
        assert task.texts is not None
        self._vectorizer = TfidfVectorizer(
            sublinear_tf=self.settings["sublinear"], ngram_range=(1, self.settings["ngrams"]), dtype=np.float32
        )
        labelled = np.flatnonzero([label is not None for label in task.labels])
        terms = self._vectorizer.fit_transform(task.texts)[labelled]
        labels = np.array(task.labels[labelled].tolist())
        set_apart = np.isin(labelled, task.validation)
        if not c:
            parts = [np.flatnonzero(set_apart)] if set_apart.any() else deal_out(labels)
            c, accuracy = choose_c(self._classifier, self.choices, terms, labels, parts, otherwise=1.0)
        self._model = self._classifier(c).fit(terms[~set_apart], labels[~set_apart])
        words = self._vectorizer.get_feature_names_out()
        digest = array_digest(words, self._vectorizer.idf_, self._model.coef_, self._model.intercept_)
        return Fit(validation_accuracy=accuracy, digest=digest)

    def predict(self, query: Query) -> npt.NDArray[Any]:
        """Return one label per text."""
        guesses: npt.NDArray[Any] = self._model.predict(self._vectorizer.transform(query.texts))
        return guesses

    @abstractmethod
    def _classifier(self, c: float) -> Any:
        """Return the model with this constant, not yet fitted."""


class LinearSVCMethod(LinearBaseline):
    """Sublinear tf-idf and LinearSVC."""

    name = "linear-svc"
    defaults: ClassVar = {"C": 1.0, "ngrams": 1, "sublinear": True}
    choices = (0.1, 0.3, 1.0, 3.0, 10.0)

    def _classifier(self, c: float) -> LinearSVC:
        return LinearSVC(C=c, random_state=0)
