"""The linearised WGCN with a residual, a convex problem.

Without the activation the word table of eq. 8 (and, for citation graphs, of eq. 11) is linear in its weights, and head
and table are one matrix W (words, classes):

    scores = X (I + a A) (R * W) + X b S (R_s * U) + X T + c

The residual I lets a word count for itself beside its neighbours. S has the subwords of each word
(`wgcn.text.subwords`), and U a row per subword, so words that are spelt alike learn from each other. R and R_s are 1,
or larger for words and subwords that the classes use differently (`wgcn.linear.naive_bayes`), which are then
regularised less. T, if given, are the scores of a teacher (`wgcn.semi.teacher`), and W and U are what is learnt
beyond them. The loss is the squared hinge of linear support vector machines, one class against the rest, with an L2
penalty on W and U:

    (|W|^2 + |U|^2) / 2 + C sum_i c_i sum_k max(0, 1 - y_ik scores_ik)^2      y_ik = 1 or -1, c_i: a document's weight

It is convex and has no seed. `wgcn.linear.operator` is the operator, `wgcn.linear.solver` the solver. Each class is a
problem of its own, so classes that are too many for the memory at once are solved in blocks, one after the other.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple
from warnings import warn

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.linalg import norm
from sklearn.exceptions import ConvergenceWarning

from wgcn.base.arrays import BlockArrays, Floats, column_blocks
from wgcn.base.errors import MOST, InputError, check_least
from wgcn.base.products import product_lengths, with_edges, with_entries
from wgcn.base.threads import n_threads
from wgcn.labels.targets import Targets
from wgcn.linear.naive_bayes import NaiveBayesScales, word_counts
from wgcn.linear.operator import DocumentOperator, GraphBlock, Memory, SubwordBlock
from wgcn.linear.solver import Problem, Solution, minimize
from wgcn.semi.teacher import Taught

_SAMPLE = 400  # documents by which graph and subwords are scaled
SOLVED_BYTES = 3 << 29  # bytes for the columns that are solved at once: ten columns of a million documents are
SOLVED_COLUMNS = 256  # that are solved at once: more gain nothing, and leave the caches
# Arrays with a row per document, and with a row per word or subword, that a column has while it is solved.
DOCUMENT_ARRAYS, WORD_ARRAYS = 16, 8
DUAL_BYTES = SOLVED_BYTES // 8  # bytes up to which the dual is kept; one block's is always smaller


@dataclass(frozen=True)
class LinearSettings:
    """Settings of the linear model."""

    # Weight of the graph, beside 1 for the words themselves. The graph is scaled first, so that at 1 both parts of a
    # training document are equally long on average.
    alpha: float = 0.5
    subwords: float = 1.5  # weight of the subwords, likewise scaled
    naive_bayes: float = 0.5  # how much R depends on the words, from 0, not at all, to 1
    C: float = 0.5  # weight of the loss beside the penalty: larger fits the training documents closer
    max_iter: int = 1000  # products of the operator
    tol: float = 1e-3  # stop when the duality gap is at most this share of the objective

    def __post_init__(self) -> None:
        check_least(self, 0, "alpha", "subwords", "tol", most=MOST)
        check_least(self, 1, "max_iter")
        if not 0 <= self.naive_bayes <= 1:
            raise InputError(f"naive_bayes must be between 0 and 1, got {self.naive_bayes}.")
        if not 0 < self.C <= 1e18:  # documents of short rows need a large one
            raise InputError(f"C must be above 0 and at most 1e18, got {self.C}.")


class Blocks(NamedTuple):
    """What words have in common with other words."""

    graph: csr_array | None = None  # A, (words, words), symmetric
    subwords: csr_array | None = None  # S, (words, subwords)


class Scales(NamedTuple):
    """Factors that make the rows of X A and of X S as long as those of X."""

    graph: float
    subwords: float


@dataclass(frozen=True)
class LinearFit:
    """A fitted linear model: scores = X word_embeddings + bias."""

    dual: Floats  # (documents, columns): W = R * (M^T X^T dual); without columns if it would be too large
    word_embeddings: Floats  # (I + a A) (R * W) + S V + T, (words, columns)
    bias: Floats  # (columns,)
    history: list[dict[str, float]]  # objective and duality gap after each iteration
    own_rows: Floats  # R * W of the words that have edges, (words, columns)
    factor: float  # a
    subword_rows: Floats | None = None  # V = b R_s * U, (subwords, columns)


def fit_linear(
    document_terms: csr_array,
    targets: Targets | Floats,
    blocks: Blocks,
    settings: LinearSettings,
    *,
    sample_weight: Floats | None = None,
    scales: Scales | None = None,
    taught: Taught | None = None,
    start: Floats | None = None,
    n_words: int | None = None,
    n_jobs: int | None = None,
) -> LinearFit:
    """Fit the linear model to X of shape (documents, words), whose type (float32 or float64) the fit has too.

    targets : (documents, columns), 1 where a document has a class, else 0; for a problem of two classes, one column
        with 1 for the second
    blocks : A and S; without either, or with weight 0, it is a plain linear model
    scales : the result of `block_scales`, if it was computed on other documents than these
    taught : T and a part of the intercept, with the columns of targets
    start : `dual` of a similar fit as a warm start, 0 for documents that it did not have; the result is the same up to
        the tolerance
    n_words : the number of words where X has only the columns of some: as many have the same naive Bayes scales so
    """
    dtype, targets = document_terms.dtype, Targets.of(targets)
    weight = np.ones(len(targets)) if sample_weight is None else np.asarray(sample_weight, float)
    graph, subwords = used = used_blocks(blocks, settings, dtype)
    scales = block_scales(document_terms, used, weight, n_jobs) if scales is None else scales
    factor = settings.alpha * scales.graph if graph is not None else 0.0
    with ThreadPoolExecutor(n_threads(n_jobs)) as pool:
        memory, transposed = Memory(dtype), csr_array(document_terms.T)
        graph_block = GraphBlock(graph, float(factor), pool, memory)
        subword_block = SubwordBlock(subwords, settings.subwords * scales.subwords, pool, memory)
        operator = DocumentOperator(document_terms, transposed, (graph_block, subword_block), pool, memory)
        n_rows = document_terms.shape[1] + (0 if subwords is None else subwords.shape[1])
        size = dtype.itemsize * (DOCUMENT_ARRAYS * len(targets) + WORD_ARRAYS * n_rows)
        columns = column_blocks(targets.n_classes, max(size, SOLVED_BYTES // SOLVED_COLUMNS), SOLVED_BYTES)
        count = word_counts(transposed, targets, weight, pool)
        naive_bayes = NaiveBayesScales(count, settings.naive_bayes, pool, subwords, columns, n_words)
        fitted, cost = FittedColumns(settings, len(targets), targets.n_classes, dtype), 2 * settings.C * weight
        for part in columns:
            operator.scale(*naive_bayes(part))
            own = None if taught is None else Taught(taught.word_scores[:, part], taught.bias[part])
            given = None if own is None else operator.scores(own.word_scores) + own.bias.astype(dtype)
            signs = (2 * targets.columns(part.start, part.stop) - 1).astype(dtype)
            problem = Problem(operator.product, signs, cost[:, None].astype(dtype), given)
            begin = start[:, part] if start is not None and start.shape[1] else None
            found = minimize(problem, tol=settings.tol, max_iter=settings.max_iter, start=begin)
            fitted.add(part, found, operator.tables(found.dual), own)
    return fitted.result(float(factor))


def used_blocks(blocks: Blocks, settings: LinearSettings, dtype: npt.DTypeLike) -> Blocks:
    """Return the blocks that have entries and a weight."""
    weights = settings.alpha, settings.subwords
    used = (
        b.astype(dtype, copy=False) if b is not None and b.nnz and w else None
        for b, w in zip(blocks, weights, strict=True)
    )
    return Blocks(*used)


class FittedColumns:
    """The columns that are fitted, block by block."""

    def __init__(self, settings: LinearSettings, n_documents: int, n_columns: int, dtype: np.dtype[Any]) -> None:
        self._settings, self._dtype, self._whole = settings, dtype, BlockArrays(n_columns)
        self._keeps_dual = n_documents * n_columns * dtype.itemsize <= DUAL_BYTES
        self._solved: list[Solution] = []

    def add(
        self, columns: slice, found: Solution, tables: tuple[Floats, Floats, Floats | None], taught: Taught | None
    ) -> None:
        """Take some columns: their solution, its `DocumentOperator.tables`, and what they were taught."""
        (table, own_rows, subword_rows), bias = tables, found.bias.astype(self._dtype)
        if taught is not None:
            table += taught.word_scores
            bias += taught.bias
        dual = found.dual if self._keeps_dual else np.empty((len(found.dual), 0), self._dtype)
        spelt = {} if subword_rows is None else {"subword_rows": subword_rows}
        self._whole.put(columns, dual=dual, word_embeddings=table, bias=bias, own_rows=own_rows, **spelt)
        self._solved.append(found._replace(dual=np.empty(0)))

    def result(self, factor: float) -> LinearFit:
        """Return all columns together."""
        history = _together([each.history for each in self._solved])
        if not all(each.converged for each in self._solved):
            warn(
                f"The model is not fitted to the end: after {self._settings.max_iter} iterations the duality gap is "
                f"still {history[-1]['gap']:.2g}. Scale the documents to rows of length 1, or choose a smaller C.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return LinearFit(**self._whole.arrays, history=history, factor=factor)


def _together(histories: list[list[dict[str, float]]]) -> list[dict[str, float]]:
    """Return what blocks of columns have in sum after each iteration; one that has ended stays where it is."""
    longest = max(histories, key=len)
    return [{key: sum(each[: i + 1][-1][key] for each in histories) for key in longest[i]} for i in range(len(longest))]


def block_scales(document_terms: csr_array, blocks: Blocks, sample_weight: Floats, n_jobs: int | None = None) -> Scales:
    """Return the factors that make the rows of X A and X S as long as those of X, on average over 400 documents.

    The average is weighted. Words without an edge, such as n-grams, or without subwords do not count in the length of
    X. A factor is 0 where there is nothing to scale.
    """
    rows = np.unique(np.linspace(0, document_terms.shape[0] - 1, _SAMPLE).astype(int))

    def scale(words: npt.NDArray[np.int64], block: csr_array) -> float:
        sample = csr_array(document_terms[rows][:, words])
        with ThreadPoolExecutor(n_threads(n_jobs)) as pool:
            after = product_lengths(sample, block.astype(sample.dtype, copy=False), pool)
        own, spread = (float(sample_weight[rows] @ length) for length in (norm(sample, axis=1), after))
        return own / spread if spread > 0 else 0.0

    graph, subwords = blocks
    return Scales(
        scale(*with_edges(graph)) if graph is not None and graph.nnz else 0.0,
        scale(*with_entries(subwords)) if subwords is not None and subwords.nnz else 0.0,
    )
