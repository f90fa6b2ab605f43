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
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from wgcn_paper.methods.baseline import Baseline, Fit, array_digest, in_fixed_order
from wgcn_paper.methods.cross_validation import choose_c, deal_out, enough_folds

if TYPE_CHECKING:
    from wgcn_paper.protocol import Query, Task


class _Choice(NamedTuple):
    """An n-gram range with its vectoriser and the C that is best for it."""

    ngrams: int
    vectorizer: Any
    terms: csr_matrix  # one row per labelled document
    c: float
    accuracy: float | None


class LinearBaseline(Baseline):
    """A linear model of scikit-learn on tf-idf. Vocabulary and idf come from all text that may be seen.

    With C = 0 the constant is chosen among `choices` by cross-validation on the labelled documents, or on the
    validation documents of the task; it is 1 where every class has a single document.

    With ngrams = 0 the same folds also choose between single words, with every C, and single words with pairs of words,
    with every C from the best one of single words on. Documents with pairs are less alike, so they need no smaller C
    than without, and the fits that this saves are the longest. Of equally good ones the smaller range is taken, then
    the smaller C. Where fewer than two classes have a document per fold, single words are taken, and 1 for C = 0.

    After `fit`, `chosen` holds the longest n-grams and C.
    """

    seeded = False
    choices: ClassVar[tuple[float, ...]]
    chosen: tuple[int, float]

    def fit(self, task: Task) -> Fit:
        """Fit on the labelled documents."""
        ngrams, c = self.settings["ngrams"], self.settings["C"]
        if not (ngrams and c):
            # The folds must not depend on the order of documents. With given settings the order is not changed: the
            # problem is convex, so it shows only within the tolerance of the solver.
            task, _ = in_fixed_order(task)
        labelled = np.flatnonzero([label is not None for label in task.labels])
        labels = np.array(task.labels[labelled].tolist())
        set_apart = np.isin(labelled, task.validation)
        parts: list[npt.NDArray[np.int64]] = []
        if not (ngrams and c):
            deal = deal_out if ngrams else enough_folds
            parts = [np.flatnonzero(set_apart)] if set_apart.any() else deal(labels)
        best = self._choose(task, labelled, labels, parts)
        self.chosen, self._vectorizer = (best.ngrams, best.c), best.vectorizer
        self._model = self._classifier(best.c).fit(best.terms[~set_apart], labels[~set_apart])
        words = self._vectorizer.get_feature_names_out()
        digest = array_digest(words, self._vectorizer.idf_, self._model.coef_, self._model.intercept_)
        return Fit(validation_accuracy=best.accuracy, digest=digest)

    def _choose(
        self,
        task: Task,
        labelled: npt.NDArray[np.int64],
        labels: npt.NDArray[Any],
        parts: Sequence[npt.NDArray[np.int64]],
    ) -> _Choice:
        """Return the n-gram range and C that are given, or the best on the held-out parts."""
        ngrams, c = self.settings["ngrams"], self.settings["C"]
        best: _Choice | None = None
        for longest in (ngrams,) if ngrams else (1, 2) if parts else (1,):
            vectorizer, rows = self._vectorize(task, longest)
            terms = rows[labelled]
            choices = (c,) if c else [c for c in self.choices if best is None or c >= best.c]
            found, accuracy = choose_c(self._classifier, choices, terms, labels, parts, otherwise=c or 1.0)
            if best is None or (accuracy or 0) > (best.accuracy or 0):
                best = _Choice(longest, vectorizer, terms, found, accuracy)
        assert best is not None
        return best

    def _vectorize(self, task: Task, longest: int) -> tuple[Any, csr_matrix]:
        """Return a fitted vectoriser with n-grams of up to `longest` words, and the rows of all documents."""
        assert task.texts is not None
        vectorizer = TfidfVectorizer(
            sublinear_tf=self.settings["sublinear"], ngram_range=(1, longest), dtype=np.float32
        )
        rows = vectorizer.fit_transform(task.texts)
        return vectorizer, rows

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
