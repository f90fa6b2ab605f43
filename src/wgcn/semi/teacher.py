"""The teacher: labels spread to similar documents, and words are learnt from all documents.

    F  <- s S F + (1 - s) Y           S: nearest documents in the space of `wgcn.semi.space`, normalised
    W' = argmin |Z W' + c' - P|^2     Z = X E; P: shares of the classes that reached a document; then once more with the
                                      softmax of 4 (Z W' + c') for P, or three times where labels are few
    scores' = X E W' + c'             a table of words again, so a new document needs nothing else

Label spreading is that of Zhou et al. (2004), the rescaling to the known shares of the classes that of Zhu et al.
(2003). Words without an edge, such as n-grams, take no part: documents that share a phrase would become neighbours. Nor
do words that only one of many documents has.
Z has 300 columns and is not kept: least squares need Z^T Z, which is found once, and Z^T P = E^T (X^T P).

Given word vectors add columns to the space; scores of a logistic regression on the vectors of the labelled documents
are added to scores'.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from wgcn.base.arrays import check_memory
from wgcn.base.products import Floats, multiply, with_edges
from wgcn.labels.reading import Rows, few_labels
from wgcn.labels.targets import Targets
from wgcn.semi.seed_words import SeedRows
from wgcn.semi.seeds import (
    SeedEvidence,
    class_shares,
    faith,
    hit_shares,
    label_evidence,
    seed_evidence,
    seed_shares,
)
from wgcn.semi.space import WordSpace, find_space, nearest_documents, scaled, threads

_COMPONENTS = 300
_MANY_DOCUMENTS = 1000  # of as many, words that only one has do not help to tell which are similar
_NEIGHBOURS = 40
_SPREADING = 0.5  # s: how much a document takes from its neighbours in a step
_STEPS = 20
_SHARPNESS = 4.0  # of the shares that a regression gives for the next one
_FEW_LABELS = 150  # below, what has spread is uncertain, and more regressions make it clearer
_MORE_REGRESSIONS = {True: 3, False: 1}  # where labels are few, and where not
_MANY_TRUST = 4 / 3  # factor of the scores where labels are not few; they are less sharp
_PENALTY = 0.1  # of the least squares, beside the mean square of a column
_BLOCK = 10_000  # rows that are summed in single precision
_GRAPH_WEIGHT = 1.5  # of a word's neighbours in the space, beside 1 for the words themselves
_VECTOR_WEIGHT = 3.0  # of given word vectors in the space
_REGRESSION_WEIGHT = 1.0  # of the regression on given vectors, beside what has spread
_REGRESSION_C = 10.0
_DENSE_ARRAYS = 4  # of documents by classes


class Taught(NamedTuple):
    """Scores between about -1 and 1, from words: X word_scores + bias."""

    word_scores: Floats  # (words, classes)
    bias: Floats  # (classes,)
    # By seeds, the class of each document that has one, -1 for others, (documents,).
    decided: Rows | None = None

    def scores(self, terms: csr_array) -> Floats:
        """Return the scores of documents."""
        return np.asarray(terms @ self.word_scores + self.bias)


class Found(NamedTuple):
    """What a teacher has found in its documents, for another process."""

    n_words: int
    words: Rows  # (teacher's words,), those that take part
    space: WordSpace  # of these words
    vectors: Floats | None  # (teacher's words, values), scaled
    terms: csr_array  # (documents, teacher's words)
    order: npt.NDArray[np.int32]  # (documents,), the document in each place of the graph
    graph: csr_array  # S, (documents, documents)
    rows: Rows  # (documents,), the place of each among `terms`


class Teacher:
    """All documents and the graph of the nearest ones.

    terms : (documents, words); adjacency : (words, words), A_vv; vectors : (words, values), given word vectors.
    """

    def __init__(
        self,
        terms: csr_array,
        adjacency: csr_array | None,
        vectors: Floats | None = None,
        n_jobs: int | None = None,
        seeds: SeedRows | None = None,
    ) -> None:
        self._n_words, self._n_jobs, self.rows = terms.shape[1], n_jobs, np.arange(terms.shape[0])
        self._words = np.arange(self._n_words)
        adjacency = adjacency if adjacency is not None and adjacency.nnz else None
        if adjacency is not None:
            self._words, adjacency = with_edges(adjacency)
            if seeds is None and terms.shape[0] >= _MANY_DOCUMENTS:
                common = np.bincount(terms.indices, minlength=self._n_words)[self._words] > 1
                common |= not common.any()
                self._words, adjacency = self._words[common], csr_array(adjacency[common][:, common])
            terms = terms[:, self._words]
        space = find_space(terms, adjacency, n_components=_COMPONENTS, graph_weight=_GRAPH_WEIGHT, n_jobs=n_jobs)
        self._vectors: Floats | None = None  # (words, values)
        if vectors is not None:
            self._vectors = scaled(terms, vectors[self._words].astype(np.float32))
            space = space.joined(self._vectors, _VECTOR_WEIGHT)
        self._space, self._table = space, space.words  # E, (words, columns)
        self._terms, self._transposed = terms, csr_array(terms.T)
        with threads(n_jobs) as pool:
            rows = multiply(terms, self._table, pool)
            self._gram = _gram(rows)
            nearest = nearest_documents(space.place(rows), _NEIGHBOURS, pool)
        del rows  # of very many documents, it is the largest matrix
        self._order, self._graph = nearest.order, nearest.graph()
        self.seeded = None if seeds is None else seed_evidence(seeds, terms, self.place, self._words)

    @property
    def found(self) -> Found:
        """What was found; of seeds, only the space of words."""
        own = self._terms, self._order, self._graph, self.rows
        return Found(self._n_words, self._words, self._space, self._vectors, *own)

    @classmethod
    def of_found(cls, found: Found, n_jobs: int | None) -> Teacher:
        """Return a teacher of what another found, without seeds."""
        teacher = cls.__new__(cls)
        teacher._n_jobs, teacher.seeded = n_jobs, None
        teacher._n_words, teacher._words, teacher._space, teacher._vectors = found[:4]
        teacher._terms, teacher._order, teacher._graph, teacher.rows = found[4:]
        teacher._table, teacher._transposed = found.space.words, csr_array(found.terms.T)
        begins = range(0, found.terms.shape[0], _BLOCK)
        with threads(n_jobs) as pool:
            parts = (multiply(found.terms[begin : begin + _BLOCK], teacher._table, pool) for begin in begins)
            teacher._gram = np.asarray(sum(map(_gram, parts)))
        return teacher

    def place(self, terms: csr_array) -> Floats:
        """Return the places of documents, (documents, words), in the space: rows of length 1, or 0 without a word."""
        own = terms if terms.shape[1] == len(self._words) else terms[:, self._words]
        with threads(self._n_jobs) as pool:
            return self._space.place(multiply(csr_array(own), self._table, pool))

    def reordered(self, rows: Rows) -> Teacher:
        """Return the teacher for the same documents in another order: `rows` has the place of each in this one."""
        teacher = copy(self)
        teacher.rows = self.rows[rows]
        return teacher

    def with_seeds(self, seeds: SeedRows) -> Teacher:
        """Return a teacher of the same documents for other seeds; this one must have been made with some."""
        teacher = copy(self)
        teacher.seeded = seed_evidence(seeds, self._terms, self.place, self._words)
        return teacher

    def teach(self, known: Targets | Floats, labelled: Rows, class_prior: Floats | None = None) -> Taught:
        """Spread the labels, of shape (labelled documents, classes), and learn from all documents.

        `class_prior` are the shares of the classes among all documents, by default those among the labels. Beside seed
        words, labelled documents are seeds too, and nothing spreads: see `wgcn.semi.seeds`. The matrix of
        documents by classes is dense here: a class reaches all documents, and the classes of a document compete.
        """
        n_classes, labelled, few = known.shape[1], self.rows[labelled], len(labelled) < _FEW_LABELS
        what = f"Spreading the labels of {n_classes:,} classes to {len(self.rows):,} documents"
        n_bytes = _DENSE_ARRAYS * 4 * len(self.rows) * n_classes
        check_memory(what, n_bytes, "Give fewer unlabelled documents, or none, or fewer classes.")
        targets = Targets.of(known).toarray()
        with threads(self._n_jobs) as pool:
            if self.seeded is None:
                shares = self._spread(targets, labelled, class_prior, pool)
                for _ in range(_MORE_REGRESSIONS[few]):
                    shares = self._sharpened(shares, targets, labelled, class_prior, pool)
            else:
                shares = self._seeded_shares(self.seeded, targets, labelled, class_prior, pool)
            weights, bias = self._least_squares(shares, pool)
            scores = self._table @ weights
            if self._vectors is not None:
                more_weights, more_bias = _regression(multiply(self._terms[labelled], self._vectors, pool), targets)
                more_scores = self._vectors @ more_weights
                size, more_size = (float(np.std(multiply(self._terms, each, pool))) for each in (scores, more_scores))
                factor = np.float32(_REGRESSION_WEIGHT * size / max(more_size, 1e-12))
                scores, bias = scores + factor * more_scores, bias + factor * more_bias
            decided = None if self.seeded is None else self._decided(self.seeded, shares, scores, bias, pool)
            if not few and self.seeded is None:
                scores, bias = np.float32(_MANY_TRUST) * scores, np.float32(_MANY_TRUST) * bias
        everywhere = np.zeros((self._n_words, targets.shape[1]), np.float32)
        everywhere[self._words] = scores
        return Taught(everywhere, bias, decided)

    def estimated_shares(self) -> Floats:
        """Return the shares of the classes by the seeds alone."""
        assert self.seeded is not None
        with threads(self._n_jobs) as pool:
            own, hits, trust = self.seeded.evidence, self.seeded.hits, self.seeded.trust
            return class_shares(own, hits, trust.kappa, lambda rows: self._scores(rows, pool))

    def _seeded_shares(
        self,
        seeded: SeedEvidence,
        targets: Floats,
        labelled: Rows,
        class_prior: Floats | None,
        pool: ThreadPoolExecutor,
    ) -> Floats:
        """Return P by seeds and by labelled documents, which are seeds too."""
        places = np.argsort(self._order)
        found = seeded.evidence + label_evidence(self._terms, self._terms[labelled], targets, self.place)
        hits = seeded.hits.copy()
        hits[labelled] = targets
        shares = seed_shares(
            seeded._replace(evidence=found, hits=hits),
            lambda rows: self._scores(rows, pool),
            lambda rows: multiply(self._graph, rows[self._order], pool)[places],
            class_prior,
        )
        shares[labelled] = targets
        return shares

    def _decided(
        self, seeded: SeedEvidence, shares: Floats, scores: Floats, bias: Floats, pool: ThreadPoolExecutor
    ) -> Rows:
        """Return the class of each document that has a seed, by shares and scores together; -1 for others.

        Where scores can hardly be trusted, others are decided too: see `faith`.
        """
        believed, has_seed = faith(seeded.trust.kappa), np.asarray(seeded.hits.any(axis=1))
        rows = np.flatnonzero(has_seed | (believed < 1))
        answers = np.float32(_SHARPNESS) * (multiply(csr_array(self._terms[rows]), scores, pool) + bias)
        both = np.log(np.maximum(shares[rows], 1e-12)) + answers
        others = ~has_seed[rows]
        both[others] = believed * both[others] + (1 - believed) * np.log(hit_shares(seeded.hits))
        decided = np.full(len(shares), -1)
        decided[rows] = both.argmax(axis=1)
        return decided[self.rows]

    def _spread(self, targets: Floats, labelled: Rows, class_prior: Floats | None, pool: ThreadPoolExecutor) -> Floats:
        """Return P, the shares of the classes that reached each document: 0 where none did."""
        places = np.argsort(self._order)  # in the graph
        spread = np.zeros((len(places), targets.shape[1]), np.float32)
        spread[places[labelled]] = targets
        product = np.empty_like(spread)
        for _ in range(_STEPS):
            multiply(self._graph, spread, pool, product)
            product *= np.float32(_SPREADING)
            product[places[labelled]] += np.float32(1 - _SPREADING) * targets
            spread, product = product, spread
        spread = spread[places]
        # A class that spreads easily would get more documents than its share.
        return _with_shares(spread, targets, labelled, class_prior)

    def _sharpened(
        self, shares: Floats, targets: Floats, labelled: Rows, class_prior: Floats | None, pool: ThreadPoolExecutor
    ) -> Floats:
        """Return P by what the regression on P says: documents that spreading left undecided are decided by words."""
        scores = self._scores(shares, pool)
        scores -= scores.max(axis=1, keepdims=True)
        decided = np.exp(np.float32(_SHARPNESS) * scores) * targets.any(axis=0)  # a class without a label is nowhere
        decided /= decided.sum(axis=1, keepdims=True)
        decided[~shares.any(axis=1)] = 0  # what no label reached is not learnt from
        return _with_shares(decided, targets, labelled, class_prior)

    def _scores(self, shares: Floats, pool: ThreadPoolExecutor) -> Floats:
        """Return the scores of all documents by the regression."""
        weights, bias = self._least_squares(shares, pool)
        return multiply(self._terms, self._table @ weights, pool) + bias

    def _least_squares(self, shares: Floats, pool: ThreadPoolExecutor) -> tuple[Floats, Floats]:
        """Return weights and intercept of ridge regression of the documents that labels reached."""
        reached = np.asarray(shares.any(axis=1))
        n_reached = int(reached.sum())
        targets = np.column_stack([2 * shares - reached[:, None], reached]).astype(np.float32)  # 0 where none did
        sums = self._table.T @ multiply(self._transposed, targets, pool)
        total, products = sums[:, -1].astype(np.float64), sums[:, :-1].astype(np.float64)
        mean = targets[:, :-1].sum(axis=0, dtype=np.float64) / n_reached
        fewer = reached if 2 * n_reached < len(reached) else ~reached
        gram = _gram(multiply(self._terms[fewer], self._table, pool))
        normal = (gram if fewer is reached else self._gram - gram) - np.outer(total, total) / n_reached
        normal[np.diag_indices_from(normal)] += _PENALTY * max(float(np.trace(normal)) / len(normal), 1e-12)
        weights = np.linalg.solve(normal, products - np.outer(total, mean))
        return weights.astype(np.float32), (mean - total @ weights / n_reached).astype(np.float32)


def _with_shares(shares: Floats, targets: Floats, labelled: Rows, class_prior: Floats | None) -> Floats:
    """Scale the classes to their expected shares, then documents to 1, in place; what is labelled is certain."""
    expected = targets.mean(axis=0) if class_prior is None else class_prior
    shares *= (expected / np.maximum(shares.sum(axis=0, dtype=np.float64), 1e-12)).astype(np.float32)
    totals = shares.sum(axis=1, keepdims=True)
    np.divide(shares, totals, out=shares, where=totals > 0)
    shares[labelled] = targets
    return shares


def _gram(rows: Floats) -> Floats:
    """Return Z^T Z in double precision."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for begin in range(0, len(rows), _BLOCK):
        total += rows[begin : begin + _BLOCK].T @ rows[begin : begin + _BLOCK]
    return total


def _regression(rows: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """Return weights and intercept of logistic regression on labelled documents; zeros if they have one class."""
    codes = targets.argmax(axis=1)
    present = np.unique(codes)
    weights = np.zeros((rows.shape[1], targets.shape[1]), np.float32)
    bias = np.zeros(targets.shape[1], np.float32)
    if len(present) < 2:
        return weights, bias
    with few_labels():  # in double precision, the solver converges sooner
        model = LogisticRegression(C=_REGRESSION_C, max_iter=2000)
        model.fit(normalize(rows.astype(np.float64)), codes)
    sides = [-1, 1] if len(present) == 2 else 1  # scikit-learn has one column for two classes
    weights[:, present], bias[present] = model.coef_.T * sides, model.intercept_ * sides
    return weights, bias
