"""The teacher: labels spread to similar documents, and words are learnt from all documents.

    F  <- s S F + (1 - s) Y           S: nearest documents in the space of `wgcn.linear.space`, normalised
    W' = argmin |Z W' + c' - P|^2     Z = X E; P: shares of the classes that reached a document
    scores' = X E W' + c'             a table of words again, so a new document needs nothing else

Label spreading is that of Zhou et al. (2004), the rescaling to the known shares of the classes that of Zhu et al.
(2003). Words without an edge, such as n-grams, take no part: documents that share a phrase would become neighbours. At
most `_MOST_DOCUMENTS` documents take part, so that time and memory stay bounded.

Given word vectors add columns to the space; scores of a logistic regression on the vectors of the labelled documents
are added to scores'.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array
from sklearn.linear_model import LogisticRegression

from wgcn.inference.terms import Floats
from wgcn.linear.space import find_space, scaled, unit_rows
from wgcn.linear.splits import Rows, few_labels

__all__ = ["Taught", "Teacher", "sample_unlabelled"]

_MOST_DOCUMENTS = 20_000
_COMPONENTS = 300
_NEIGHBOURS = 40
_COSINE_POWER = 3  # weight of an edge: the cosine to this power
_SPREADING = 0.5  # s: how much a document takes from its neighbours in a step
_STEPS = 20
_PENALTY = 0.1  # of the least squares, beside the mean square of a column
_ROUNDING = 1e-5  # a cosine below is 0
_BLOCK = 2000  # documents whose neighbours are found at a time
_GRAPH_WEIGHT = 1.5  # of a word's neighbours in the space, beside 1 for the words themselves
_VECTOR_WEIGHT = 3.0  # of given word vectors in the space
_REGRESSION_WEIGHT = 0.75  # of the regression on given vectors, beside what has spread
_REGRESSION_C = 10.0
_VECTOR_TRUST = 2.0  # factor of all scores where vectors are given


class Taught(NamedTuple):
    """Scores between about -1 and 1, from words: X word_scores + bias."""

    word_scores: Floats  # (words, classes)
    bias: Floats  # (classes,)

    def scores(self, terms: csr_array) -> Floats:
        """Return the scores of documents."""
        return np.asarray(terms @ self.word_scores + self.bias)


class Teacher:
    """All documents and the graph of the nearest ones.

    terms : (documents, words); adjacency : (words, words), A_vv; vectors : (words, values), given word vectors.
    """

    def __init__(self, terms: csr_array, adjacency: csr_array | None, vectors: Floats | None = None) -> None:
        self._n_words = terms.shape[1]
        self._words = np.arange(self._n_words)
        if adjacency is not None:
            self._words = np.flatnonzero(np.diff(adjacency.indptr) > 0)
            terms, adjacency = terms[:, self._words], adjacency[self._words][:, self._words]
        space = find_space(terms, adjacency, n_components=_COMPONENTS, graph_weight=_GRAPH_WEIGHT)
        positions = space.documents(terms)
        self._table = space.words  # E, (words, columns)
        self._vectors: tuple[Floats, Floats] | None = None  # of words and of documents
        if vectors is not None:
            words = scaled(terms, vectors[self._words].astype(np.float32))
            rows, weight = np.asarray(terms @ words), np.float32(_VECTOR_WEIGHT)
            length = float(np.linalg.norm(space.weights))
            positions = np.hstack([np.float32(length) * positions, weight * unit_rows(rows)])
            positions /= np.float32(np.hypot(length, _VECTOR_WEIGHT))
            self._table = np.hstack([space.words, weight * words])
            self._vectors = words, rows
        self._graph = _nearest_documents(positions)
        self._rows = np.asarray(terms @ self._table)

    def teach(self, targets: Floats, labelled: Rows, class_prior: Floats | None = None) -> Taught:
        """Spread the labels and learn from all documents.

        `targets`, of shape (labelled documents, classes), are those of the documents `labelled`. `class_prior` are the
        shares of the classes among all documents, by default those among the labels.
        """
        shares = self._spread(targets, labelled, class_prior)
        reached = np.flatnonzero(shares.any(axis=1))
        weights, bias = _least_squares(self._rows[reached], 2 * shares[reached] - 1)
        scores = self._table @ weights
        if self._vectors is not None:
            words, documents = self._vectors
            more_weights, more_bias = _regression(documents, targets, labelled)
            ratio = float(np.std(self._rows @ weights)) / max(float(np.std(documents @ more_weights)), 1e-12)
            factor, trust = np.float32(_REGRESSION_WEIGHT * ratio), np.float32(_VECTOR_TRUST)
            scores, bias = trust * (scores + words @ (factor * more_weights)), trust * (bias + factor * more_bias)
        everywhere = np.zeros((self._n_words, targets.shape[1]), np.float32)
        everywhere[self._words] = scores
        return Taught(everywhere, bias)

    def _spread(self, targets: Floats, labelled: Rows, class_prior: Floats | None) -> Floats:
        """Return P, the shares of the classes that reached each document: 0 where none did."""
        known = np.zeros((len(self._rows), targets.shape[1]), np.float32)
        known[labelled] = targets
        spread = known
        for _ in range(_STEPS):
            spread = np.float32(_SPREADING) * (self._graph @ spread) + np.float32(1 - _SPREADING) * known
        # A class that spreads easily would get more documents than its share.
        expected = targets.mean(axis=0) if class_prior is None else class_prior.astype(np.float32)
        shares: Floats = spread * (expected / np.maximum(spread.sum(axis=0), 1e-12))
        totals = shares.sum(axis=1, keepdims=True)
        shares = np.divide(shares, totals, out=np.zeros_like(shares), where=totals > 0)
        shares[labelled] = targets
        return shares


def sample_unlabelled(n_unlabelled: int, n_labelled: int) -> Rows:
    """Return which unlabelled documents take part: all, or as many as there is room for, evenly."""
    size = min(n_unlabelled, max(_MOST_DOCUMENTS - n_labelled, 0))
    return np.linspace(0, n_unlabelled - 1, size).astype(np.int64)


def _nearest_documents(positions: Floats) -> csr_array:
    """Return S, the normalised graph of the nearest documents of each, from rows of length 1."""
    n_rows = len(positions)
    n_near = min(_NEIGHBOURS, n_rows - 1)
    columns = np.empty((n_rows, n_near), np.int32)
    weights = np.empty((n_rows, n_near), np.float32)
    for begin in range(0, n_rows, _BLOCK):
        end = min(begin + _BLOCK, n_rows)
        cosines = positions[begin:end] @ positions.T
        cosines[np.arange(end - begin), np.arange(begin, end)] = -1
        nearest = np.argpartition(-cosines, n_near - 1, axis=1)[:, :n_near] if n_near else columns[begin:end]
        columns[begin:end] = nearest
        near = np.take_along_axis(cosines, nearest, axis=1)
        weights[begin:end] = np.where(near > _ROUNDING, near, 0) ** _COSINE_POWER
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


def _regression(rows: Floats, targets: Floats, labelled: Rows) -> tuple[Floats, Floats]:
    """Return weights and intercept of logistic regression on the labelled documents; zeros if they have one class."""
    codes = targets.argmax(axis=1)
    present = np.unique(codes)
    weights = np.zeros((rows.shape[1], targets.shape[1]), np.float32)
    bias = np.zeros(targets.shape[1], np.float32)
    if len(present) < 2:
        return weights, bias
    with few_labels():  # in double precision, the solver converges sooner
        model = LogisticRegression(C=_REGRESSION_C, max_iter=2000)
        model.fit(unit_rows(rows[labelled]).astype(np.float64), codes)
    sides = [-1, 1] if len(present) == 2 else 1  # scikit-learn has one column for two classes
    weights[:, present], bias[present] = model.coef_.T * sides, model.intercept_ * sides
    return weights, bias
