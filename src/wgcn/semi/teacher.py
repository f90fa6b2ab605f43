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
from dataclasses import dataclass, field
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
from wgcn.semi.seeds import SeedEvidence, class_shares, faith, hit_shares, label_evidence, seed_evidence, seed_shares
from wgcn.semi.space import NeighbourSearch, WordSpace, find_space, nearest_documents, scaled, threads

_DENSE_ARRAYS = 4  # of documents by classes


@dataclass(frozen=True)
class TeacherSettings:
    """How a teacher learns; chosen on training documents."""

    components: int = 300  # columns of the space
    graph_weight: float = 1.5  # of a word's neighbours in the space, beside 1 for the words themselves
    vector_weight: float = 3.0  # of given word vectors in the space
    many_documents: int = 1000  # of as many, words that only one has do not help to tell which are similar
    n_near: int = 40
    search: NeighbourSearch = field(default_factory=NeighbourSearch)
    spreading: float = 0.5  # s: how much a document takes from its neighbours in a step
    n_steps: int = 20
    few_labels: int = 150  # below, what has spread is uncertain, and more regressions make it clearer
    more_with_few: int = 3  # regressions where labels are few,
    more_with_many: int = 1  # and where not
    many_trust: float = 4 / 3  # factor of the scores where labels are not few; they are less sharp
    sharpness: float = 4.0  # of the shares that a regression gives for the next one
    penalty: float = 0.1  # of the least squares, beside the mean square of a column
    block: int = 10_000  # rows that are summed in single precision
    regression_weight: float = 1.0  # of the regression on given vectors, beside what has spread
    regression_c: float = 10.0


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
    """What a teacher has found in its documents, for another process. Of seeds, there is only the space of words."""

    n_words: int
    words: Rows  # (teacher's words,), those that take part
    space: WordSpace  # of these words
    vectors: Floats | None  # (teacher's words, values), scaled
    terms: csr_array  # (documents, teacher's words)
    order: npt.NDArray[np.int32]  # (documents,), the document in each place of the graph
    graph: csr_array  # S, (documents, documents)
    rows: Rows  # (documents,), the place of each among `terms`


class _Known(NamedTuple):
    """Labelled documents, and the shares of the classes among all of them, if they are given."""

    targets: Floats  # (labelled documents, classes)
    rows: Rows
    class_prior: Floats | None

    def scale(self, shares: Floats) -> Floats:
        """Scale the classes to their expected shares, then documents to 1, in place; what is labelled is certain."""
        expected = self.targets.mean(axis=0) if self.class_prior is None else self.class_prior
        shares *= (expected / np.maximum(shares.sum(axis=0, dtype=np.float64), 1e-12)).astype(np.float32)
        totals = shares.sum(axis=1, keepdims=True)
        np.divide(shares, totals, out=shares, where=totals > 0)
        shares[self.rows] = self.targets
        return shares


class Teacher:
    """All documents and the graph of the nearest ones.

    terms : (documents, words); adjacency : (words, words), A_vv; vectors : (words, values), given word vectors.
    found : what a teacher, without seeds, has found in these documents before.
    """

    def __init__(
        self,
        terms: csr_array,
        adjacency: csr_array | None,
        vectors: Floats | None = None,
        n_jobs: int | None = None,
        seeds: SeedRows | None = None,
        *,
        found: Found | None = None,
        settings: TeacherSettings | None = None,
    ) -> None:
        self.settings = settings or TeacherSettings()
        self.found = found or find_similar(terms, adjacency, vectors, n_jobs, self.settings, seeds is not None)
        self._n_jobs, self._table = n_jobs, self.found.space.words  # E, (words, columns)
        self._terms, self._transposed = self.found.terms, csr_array(self.found.terms.T)
        with threads(n_jobs) as pool:
            self._gram = self._gram_of(self._terms, pool)
        self.seeded = None if seeds is None else seed_evidence(seeds, self._terms, self.place, self.found.words)

    @classmethod
    def of_found(cls, found: Found, n_jobs: int | None) -> Teacher:
        """Return a teacher of what another found, without seeds."""
        return Teacher(found.terms, None, n_jobs=n_jobs, found=found)

    @property
    def rows(self) -> Rows:
        """The place of each document among those that were looked at, (documents,)."""
        return self.found.rows

    def place(self, terms: csr_array) -> Floats:
        """Return the places of documents, (documents, words), in the space: rows of length 1, or 0 without a word."""
        own = terms if terms.shape[1] == len(self.found.words) else terms[:, self.found.words]
        with threads(self._n_jobs) as pool:
            return self.found.space.place(multiply(csr_array(own), self._table, pool))

    def reordered(self, rows: Rows) -> Teacher:
        """Return the teacher for the same documents in another order: `rows` has the place of each in this one."""
        teacher = copy(self)
        teacher.found = self.found._replace(rows=self.found.rows[rows])
        return teacher

    def with_seeds(self, seeds: SeedRows) -> Teacher:
        """Return a teacher of the same documents for other seeds; this one must have been made with some."""
        teacher = copy(self)
        teacher.seeded = seed_evidence(seeds, self._terms, self.place, self.found.words)
        return teacher

    def teach(self, known: Targets | Floats, labelled: Rows, class_prior: Floats | None = None) -> Taught:
        """Spread the labels, of shape (labelled documents, classes), and learn from all documents.

        `class_prior` are the shares of the classes among all documents, by default those among the labels. Beside seed
        words, labelled documents are seeds too, and nothing spreads: see `wgcn.semi.seeds`. The matrix of
        documents by classes is dense here: a class reaches all documents, and the classes of a document compete.
        """
        how, n_classes, few = self.settings, known.shape[1], len(labelled) < self.settings.few_labels
        what = f"Spreading the labels of {n_classes:,} classes to {len(self.rows):,} documents"
        n_bytes = _DENSE_ARRAYS * 4 * len(self.rows) * n_classes
        check_memory(what, n_bytes, "Give fewer unlabelled documents, or none, or fewer classes.")
        labels = _Known(Targets.of(known).toarray(), self.rows[labelled], class_prior)
        decided = None
        with threads(self._n_jobs) as pool:
            if self.seeded is None:
                shares = self._spread(labels, pool)
                for _ in range(how.more_with_few if few else how.more_with_many):
                    shares = self._sharpened(shares, labels, pool)
            else:
                shares = self._seeded_shares(self.seeded, labels, pool)
            weights, bias = self._least_squares(shares, pool)
            scores = self._table @ weights
            if self.found.vectors is not None:
                scores, bias = self._with_regression(scores, bias, self.found.vectors, labels, pool)
            if self.seeded is not None:
                decided = self._decided(self.seeded, shares, scores, bias, pool)
            elif not few:
                scores, bias = np.float32(how.many_trust) * scores, np.float32(how.many_trust) * bias
        everywhere = np.zeros((self.found.n_words, n_classes), np.float32)
        everywhere[self.found.words] = scores
        return Taught(everywhere, bias, decided)

    def estimated_shares(self) -> Floats:
        """Return the shares of the classes by the seeds alone."""
        assert self.seeded is not None
        with threads(self._n_jobs) as pool:
            own, hits, trust = self.seeded.evidence, self.seeded.hits, self.seeded.trust
            return class_shares(own, hits, trust.kappa, lambda rows: self._scores(rows, pool))

    def _seeded_shares(self, seeded: SeedEvidence, labels: _Known, pool: ThreadPoolExecutor) -> Floats:
        """Return P by seeds and by labelled documents, which are seeds too."""
        order, places = self.found.order, np.argsort(self.found.order)
        found = seeded.evidence + label_evidence(self._terms, self._terms[labels.rows], labels.targets, self.place)
        hits = seeded.hits.copy()
        hits[labels.rows] = labels.targets
        shares = seed_shares(
            seeded._replace(evidence=found, hits=hits),
            lambda rows: self._scores(rows, pool),
            lambda rows: multiply(self.found.graph, rows[order], pool)[places],
            labels.class_prior,
        )
        shares[labels.rows] = labels.targets
        return shares

    def _decided(
        self, seeded: SeedEvidence, shares: Floats, scores: Floats, bias: Floats, pool: ThreadPoolExecutor
    ) -> Rows:
        """Return the class of each document that has a seed, by shares and scores together; -1 for others.

        Where scores can hardly be trusted, others are decided too: see `faith`.
        """
        believed, has_seed = faith(seeded.trust.kappa), np.asarray(seeded.hits.any(axis=1))
        rows = np.flatnonzero(has_seed | (believed < 1))
        answers = np.float32(self.settings.sharpness) * (multiply(csr_array(self._terms[rows]), scores, pool) + bias)
        both = np.log(np.maximum(shares[rows], 1e-12)) + answers
        others = ~has_seed[rows]
        both[others] = believed * both[others] + (1 - believed) * np.log(hit_shares(seeded.hits))
        decided = np.full(len(shares), -1)
        decided[rows] = both.argmax(axis=1)
        return decided[self.rows]

    def _spread(self, labels: _Known, pool: ThreadPoolExecutor) -> Floats:
        """Return P, the shares of the classes that reached each document: 0 where none did."""
        places, taken = np.argsort(self.found.order), self.settings.spreading  # places in the graph
        spread = np.zeros((len(places), labels.targets.shape[1]), np.float32)
        spread[places[labels.rows]] = labels.targets
        product = np.empty_like(spread)
        for _ in range(self.settings.n_steps):
            multiply(self.found.graph, spread, pool, product)
            product *= np.float32(taken)
            product[places[labels.rows]] += np.float32(1 - taken) * labels.targets
            spread, product = product, spread
        return labels.scale(spread[places])  # a class that spreads easily would get more than its share

    def _sharpened(self, shares: Floats, labels: _Known, pool: ThreadPoolExecutor) -> Floats:
        """Return P by what the regression on P says: documents that spreading left undecided are decided by words."""
        scores = self._scores(shares, pool)
        scores -= scores.max(axis=1, keepdims=True)
        decided = np.exp(np.float32(self.settings.sharpness) * scores)
        decided *= labels.targets.any(axis=0)  # a class without a label is nowhere
        decided /= decided.sum(axis=1, keepdims=True)
        decided[~shares.any(axis=1)] = 0  # what no label reached is not learnt from
        return labels.scale(decided)

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
        gram = self._gram_of(csr_array(self._terms[fewer]), pool)
        normal = (gram if fewer is reached else self._gram - gram) - np.outer(total, total) / n_reached
        normal[np.diag_indices_from(normal)] += self.settings.penalty * max(
            float(np.trace(normal)) / len(normal), 1e-12
        )
        weights = np.linalg.solve(normal, products - np.outer(total, mean))
        return weights.astype(np.float32), (mean - total @ weights / n_reached).astype(np.float32)

    def _with_regression(
        self, scores: Floats, bias: Floats, vectors: Floats, labels: _Known, pool: ThreadPoolExecutor
    ) -> tuple[Floats, Floats]:
        """Return scores of words, and the bias, with those of a logistic regression on the vectors added."""
        rows, targets, c = multiply(self._terms[labels.rows], vectors, pool), labels.targets, self.settings.regression_c
        more_weights, more_bias = _regression(rows, targets, c)
        more_scores = vectors @ more_weights
        size, more_size = (float(np.std(multiply(self._terms, each, pool))) for each in (scores, more_scores))
        factor = np.float32(self.settings.regression_weight * size / max(more_size, 1e-12))
        return scores + factor * more_scores, bias + factor * more_bias

    def _gram_of(self, terms: csr_array, pool: ThreadPoolExecutor) -> Floats:
        """Return Z^T Z of documents in double precision."""
        total, block = np.zeros((self._table.shape[1],) * 2), self.settings.block
        for begin in range(0, terms.shape[0], block):
            rows = multiply(terms[begin : begin + block], self._table, pool)
            total += rows.T @ rows
        return total


def find_similar(
    terms: csr_array,
    adjacency: csr_array | None,
    vectors: Floats | None,
    n_jobs: int | None,
    settings: TeacherSettings,
    keeps_rare: bool,
) -> Found:
    """Find the space of words, without those that only one of many documents has, and the nearest documents in it."""
    n_documents, n_words = terms.shape
    words = np.arange(n_words)
    adjacency = adjacency if adjacency is not None and adjacency.nnz else None
    if adjacency is not None:
        words, adjacency = with_edges(adjacency)
        if not keeps_rare and n_documents >= settings.many_documents:
            common = np.bincount(terms.indices, minlength=n_words)[words] > 1
            common |= not common.any()
            words, adjacency = words[common], csr_array(adjacency[common][:, common])
        terms = terms[:, words]
    components, weight = settings.components, settings.graph_weight
    space = find_space(terms, adjacency, n_components=components, graph_weight=weight, n_jobs=n_jobs)
    if vectors is not None:
        vectors = scaled(terms, vectors[words].astype(np.float32))
        space = space.joined(vectors, settings.vector_weight)
    with threads(n_jobs) as pool:
        nearest = nearest_documents(
            space.place(multiply(terms, space.words, pool)), settings.n_near, pool, settings.search
        )
    return Found(n_words, words, space, vectors, terms, nearest.order, nearest.graph(), np.arange(n_documents))


def _regression(rows: Floats, targets: Floats, c: float) -> tuple[Floats, Floats]:
    """Return weights and intercept of logistic regression on labelled documents; zeros if they have one class."""
    codes = targets.argmax(axis=1)
    present = np.unique(codes)
    weights = np.zeros((rows.shape[1], targets.shape[1]), np.float32)
    bias = np.zeros(targets.shape[1], np.float32)
    if len(present) < 2:
        return weights, bias
    with few_labels():  # in double precision, the solver converges sooner
        model = LogisticRegression(C=c, max_iter=2000)
        model.fit(normalize(rows.astype(np.float64)), codes)
    sides = [-1, 1] if len(present) == 2 else 1  # scikit-learn has one column for two classes
    weights[:, present], bias[present] = model.coef_.T * sides, model.intercept_ * sides
    return weights, bias
