"""What documents without a label teach: labels spread to near documents, and words learn from all of them.

    F  <- s S F + (1 - s) Y           S: nearest documents in the space of `wgcn.linear.space`, normalised
    W' = argmin |Z W' + c' - P|^2     P: shares of the classes that a document got
    scores' = X E W' + c'             a table of words again, so a new document needs nothing else

Label spreading is that of Zhou et al. (2004), the rescaling to the known shares of the classes that of Zhu et al.
(2003). Words without an edge, such as n-grams, take no part: they would draw documents together that share a phrase. At
most `_MOST_DOCUMENTS` documents do, so that time and memory stay bounded.

Vectors of words from elsewhere give the space more columns; a logistic regression on what they
make of the labelled documents alone speaks beside what has spread.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, diags_array
from sklearn.linear_model import LogisticRegression

from wgcn.linear.space import find_space, given_space
from wgcn.linear.splits import few_labels

__all__ = ["Taught", "Teacher", "sample_unlabelled"]

Floats = npt.NDArray[Any]

_MOST_DOCUMENTS = 20_000
_COMPONENTS = 300
_NEIGHBOURS = 40
_SHARPNESS = 3  # the power of a cosine that an edge weighs
_SPREADING = 0.5  # s: how much a document takes from its neighbours in a step
_STEPS = 20
_PENALTY = 0.1  # of the least squares, beside the mean square of a column
_ROUNDING = 1e-5  # a cosine below is 0
_BLOCK = 2000  # documents whose neighbours are sought at a time
_GRAPH = 1.5  # how much a word's neighbours count in the space, where the words themselves count 1
_VECTORS = 3.0  # how much vectors from outside count there
_REGRESSION = 0.75  # what the regression on such vectors says, beside what has spread
_REGRESSION_C = 10.0
_TRUST = 2.0  # how much more a teacher with such vectors says


class Taught(NamedTuple):
    """Scores between about -1 and 1, from words: X word_scores + bias."""

    word_scores: Floats  # (words, classes)
    bias: Floats  # (classes,)

    def scores(self, terms: csr_array) -> Floats:
        """Return the scores of documents."""
        return np.asarray(terms @ self.word_scores + self.bias)


class Teacher:
    """The documents that are there, with or without labels, and how near they are to each other.

    Parameters
    ----------
    terms : csr_array of shape (documents, words)
        Labelled documents first.
    n_labelled : int
    adjacency : csr_array of shape (words, words), optional
        A_vv.
    vectors : array of shape (words, values), optional
        What is known of the words from elsewhere.
    """

    def __init__(
        self, terms: csr_array, n_labelled: int, adjacency: csr_array | None, vectors: Floats | None = None
    ) -> None:
        others = n_labelled + sample_unlabelled(terms.shape[0] - n_labelled, n_labelled)
        terms = terms[np.concatenate([np.arange(n_labelled), others])]
        self._n_words = terms.shape[1]
        self._words = np.arange(self._n_words)
        if adjacency is not None:
            self._words = np.flatnonzero(np.diff(adjacency.indptr) > 0)
            terms, adjacency = terms[:, self._words], adjacency[self._words][:, self._words]
        space = find_space(terms, adjacency, n_components=_COMPONENTS, graph_weight=_GRAPH)
        near = space.documents(terms)
        self._table = space.words
        self._vectors = self._seen = None
        if vectors is not None:
            own = given_space(terms, vectors[self._words])
            length = float(np.linalg.norm(space.weights))
            near = np.hstack([np.float32(length) * near, np.float32(_VECTORS) * own.documents(terms)])
            near /= np.float32(np.hypot(length, _VECTORS))
            self._table = np.hstack([space.words, np.float32(_VECTORS) * own.words])
            self._vectors, self._seen = own.words, np.asarray(terms @ own.words)
        self._near = _neighbours(near)
        self._rows = np.asarray(terms @ self._table)

    def teach(self, targets: Floats, labelled: npt.NDArray[np.int64], class_prior: Floats | None = None) -> Taught:
        """Spread the labels and learn from all documents.

        Parameters
        ----------
        targets : array of shape (labelled documents, classes)
            1 for the class of a document, else 0.
        labelled : int64 array
            Which of the documents these are.
        class_prior : array of shape (classes,), optional
            Shares of the classes among all documents; by default those among the labels.
        """
        known = np.zeros((len(self._rows), targets.shape[1]), np.float32)
        known[labelled] = targets
        spread = known
        for _ in range(_STEPS):
            spread = np.float32(_SPREADING) * (self._near @ spread) + np.float32(1 - _SPREADING) * known
        # A class that spreads easily would get more documents than its share.
        expected = targets.mean(axis=0) if class_prior is None else class_prior.astype(np.float32)
        shares = spread * (expected / np.maximum(spread.sum(axis=0), 1e-12))
        totals = shares.sum(axis=1, keepdims=True)
        shares = np.divide(shares, totals, out=np.zeros_like(shares), where=totals > 0)
        shares[labelled] = targets
        reached = np.flatnonzero(shares.any(axis=1))
        weights, bias = _least_squares(self._rows[reached], 2 * shares[reached] - 1)
        scores = self._table @ weights
        if self._seen is not None and self._vectors is not None:
            found = _regression(self._seen, targets, labelled)
            if found is not None:
                size = float(np.std(self._rows @ weights)) / max(float(np.std(self._seen @ found[0])), 1e-12)
                factor = np.float32(_REGRESSION * size)
                scores, bias = scores + self._vectors @ (factor * found[0]), bias + factor * found[1]
            scores, bias = np.float32(_TRUST) * scores, np.float32(_TRUST) * bias
        everywhere = np.zeros((self._n_words, targets.shape[1]), np.float32)
        everywhere[self._words] = scores
        return Taught(everywhere, bias)


def sample_unlabelled(n_others: int, n_labelled: int) -> npt.NDArray[np.int64]:
    """Return which documents without a label to use: as many as there is room for beside those with one."""
    room = max(_MOST_DOCUMENTS - n_labelled, 0)
    return np.arange(n_others) if n_others <= room else np.linspace(0, n_others - 1, room).astype(np.int64)


def _regression(rows: Floats, targets: Floats, labelled: npt.NDArray[np.int64]) -> tuple[Floats, Floats] | None:
    """Return weights and intercept of logistic regression on the documents with labels; None if they have one class."""
    codes = targets.argmax(axis=1)
    present = np.unique(codes)
    if len(present) < 2:
        return None
    lengths = np.linalg.norm(rows[labelled], axis=1, keepdims=True)
    unit = np.divide(rows[labelled], lengths, out=np.zeros_like(rows[labelled]), where=lengths > 0)
    # The solver comes to its end sooner in double precision.
    with few_labels():
        model = LogisticRegression(C=_REGRESSION_C, max_iter=2000).fit(unit.astype(np.float64), codes)
    weights = np.zeros((rows.shape[1], targets.shape[1]), np.float32)
    bias = np.zeros(targets.shape[1], np.float32)
    if len(present) == 2:
        weights[:, present] = model.coef_.T * [-1, 1]
        bias[present] = model.intercept_ * [-1, 1]
    else:
        weights[:, present], bias[present] = model.coef_.T, model.intercept_
    return weights, bias


def _neighbours(rows: Floats) -> csr_array:
    """Return the normalised graph of the nearest documents of each."""
    n_rows = len(rows)
    n_near = min(_NEIGHBOURS, n_rows - 1)
    columns = np.empty((n_rows, n_near), np.int32)
    weights = np.empty((n_rows, n_near), np.float32)
    for begin in range(0, n_rows, _BLOCK):
        end = min(begin + _BLOCK, n_rows)
        cosines = rows[begin:end] @ rows.T
        cosines[np.arange(end - begin), np.arange(begin, end)] = -1
        nearest = np.argpartition(-cosines, n_near - 1, axis=1)[:, :n_near] if n_near else columns[begin:end]
        columns[begin:end] = nearest
        near = np.take_along_axis(cosines, nearest, axis=1)
        weights[begin:end] = np.where(near > _ROUNDING, near, 0) ** _SHARPNESS
    offsets = np.arange(n_rows + 1) * n_near
    graph = csr_array((weights.ravel(), columns.ravel(), offsets), shape=(n_rows, n_rows))
    graph.eliminate_zeros()
    graph = graph.maximum(graph.T)
    degrees = np.asarray(graph.sum(axis=1))
    scale = diags_array(np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0))
    return csr_array(scale @ graph @ scale)


def _least_squares(rows: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """Return weights and intercept of ridge regression."""
    middle, mean = rows.mean(axis=0), targets.mean(axis=0)
    centred = rows - middle
    normal = (centred.T @ centred).astype(np.float64)
    normal[np.diag_indices_from(normal)] += _PENALTY * max(float(np.trace(normal)) / len(normal), 1e-12)
    weights = np.linalg.solve(normal, centred.T @ (targets - mean)).astype(np.float32)
    return weights, (mean - middle @ weights).astype(np.float32)
