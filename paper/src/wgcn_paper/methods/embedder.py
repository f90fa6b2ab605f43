"""Representations learnt without labels, with a simple classifier on top.

    wgcn     Z = X [V, g B], rows of length 1 (`wgcn.estimators.embedder`)
    svd      Z = X V, rows of length 1: latent semantic analysis
    tf-idf   Z = X

All three have the same tokens and the same X: sublinear tf-idf, rows of length 1. The representation is learnt from all
texts that may be seen, the classifier from the labels: "probe" is logistic regression, which minimises
|W|^2 / 2 - C sum_i log P(y_i | z_i); "nearest" gives a document the label of the nearest labelled one.

S. Deerwester, S. Dumais, G. Furnas, T. Landauer, R. Harshman: Indexing by Latent Semantic Analysis. Journal of the
American Society for Information Science 41(6), 1990.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression

from wgcn.base.errors import InputError
from wgcn.estimators.embedder import WGCNEmbedder
from wgcn.estimators.preparation import Preparation
from wgcn.model.embedding import EmbeddingModel
from wgcn_paper.methods.baseline import Baseline, Fit, array_digest, in_fixed_order
from wgcn_paper.methods.cross_validation import choose_c, enough_folds
from wgcn_paper.methods.preparation import Kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wgcn_paper.protocol import Query, Task


REPRESENTATIONS = ("wgcn", "svd", "tf-idf")
HEADS = ("probe", "nearest")

# With few labels, smaller constants are worse for all representations, but cross-validation chooses them.
_CHOICES = (10.0, 100.0, 1000.0)
_WITHOUT_CHOICE = 100.0

Rows = Any  # array or csr_array of shape (documents, columns)


class _Representation(NamedTuple):
    model: EmbeddingModel  # without columns for tf-idf
    rows: Rows  # of the documents that it was learnt from

    def transform(self, texts: Sequence[str]) -> Rows:
        if self.model.word_embeddings.shape[1]:
            return self.model.transform(texts)
        terms = self.model.terms(texts)
        shape = (len(texts), len(self.model.vocabulary))
        return csr_array((terms.weights, terms.words, terms.offsets), shape=shape)


# A representation does not depend on the labels, so all draws of labels share it.
_kept: Kept[_Representation] = Kept(most=len(REPRESENTATIONS))


class EmbeddingMethod(Baseline):
    """A representation learnt without labels, and logistic regression or the nearest document on top.

    C is chosen by cross-validation unless it is given. There is no seed.
    """

    name = "embedding"
    seeded = False
    defaults: ClassVar = {"representation": "wgcn", "n_components": 200, "head": "probe", "C": 0.0}
    block = 1000  # documents at a time in the search for the nearest

    def fit(self, task: Task) -> Fit:
        """Fit the representation on all texts, and the classifier on the labelled ones."""
        task, _ = in_fixed_order(task)
        kind, width, head, c = (self.settings[name] for name in ("representation", "n_components", "head", "C"))
        if kind not in REPRESENTATIONS or head not in HEADS:
            raise InputError(
                f"representation is one of {', '.join(REPRESENTATIONS)}, head one of {', '.join(HEADS)}; "
                f"got {kind!r} and {head!r}."
            )
        assert task.texts is not None
        texts = task.texts
        self._space = _kept.find([task.digest, kind, width], lambda: _represent(texts, kind, width))
        labelled = np.flatnonzero([label is not None for label in task.labels])
        labels = np.array(task.labels[labelled].tolist())
        rows = self._space.rows[labelled]
        set_apart = np.isin(labelled, task.validation)
        accuracy = None
        if head == "probe":
            rows = rows.astype(np.float64)  # the solver converges sooner
            if not c:
                parts = [np.flatnonzero(set_apart)] if set_apart.any() else enough_folds(labels)
                c, accuracy = choose_c(_regression, _CHOICES, rows, labels, parts, otherwise=_WITHOUT_CHOICE)
            self._probe = _regression(c).fit(rows[~set_apart], labels[~set_apart])
            learnt = (self._probe.coef_, self._probe.intercept_)
        else:
            self._known, self._labels = rows[~set_apart], labels[~set_apart]
            learnt = (labelled[~set_apart], self._labels)
            if set_apart.any():
                accuracy = float(np.mean(self._nearest(rows[set_apart]) == labels[set_apart]))
        model = self._space.model
        digest = array_digest(model.vocabulary.words, model.weighting.idf, model.word_embeddings, *learnt)
        return Fit(validation_accuracy=accuracy, digest=digest)

    def predict(self, query: Query) -> npt.NDArray[Any]:
        """Return one label per text."""
        assert query.texts is not None
        labels = self._probe.classes_ if self.settings["head"] == "probe" else self._labels
        if not query.texts:
            return labels[:0]
        rows = self._space.transform(query.texts)
        if self.settings["head"] == "nearest":
            return self._nearest(rows)
        guesses: npt.NDArray[Any] = self._probe.predict(rows.astype(np.float64))
        return guesses

    def _nearest(self, rows: Rows) -> npt.NDArray[Any]:
        """Return the label of the nearest document by cosine; of equally near ones, the first."""
        nearest = []
        for begin in range(0, rows.shape[0], self.block):
            cosines = rows[begin : begin + self.block] @ self._known.T
            nearest.append((cosines.toarray() if isinstance(cosines, csr_array) else cosines).argmax(axis=1))
        return np.asarray(self._labels[np.concatenate(nearest)])


def _represent(texts: Sequence[str], kind: str, width: int) -> _Representation:
    embedder = WGCNEmbedder(width)
    if kind == "wgcn":
        return _Representation(rows=embedder.fit_transform(texts), model=embedder.model_)
    prepared = Preparation(ngram_range=embedder.ngram_range).prepare(texts, with_graph=False)
    terms = prepared.document_terms
    words = np.empty((terms.shape[1], 0), np.float32)
    if kind == "svd":
        rank = min(width, *terms.shape)
        words = TruncatedSVD(rank, random_state=0).fit(terms).components_.T.astype(np.float32, order="C")
    model = EmbeddingModel(embedder.tokenizer, embedder.ngram_range, prepared.vocabulary, prepared.weighting, words)
    return _Representation(model, model.embed(terms.data, terms.indices, terms.indptr) if kind == "svd" else terms)


def _regression(c: float) -> LogisticRegression:
    # In cross-validation, each fit is warm-started from the next smaller C.
    return LogisticRegression(C=c, max_iter=2000, warm_start=True)
