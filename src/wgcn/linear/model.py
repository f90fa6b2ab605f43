"""The linearised WGCN with a residual, a convex problem.

Without the activation the word table of eq. 8 (and, for citation graphs, of eq. 11) is linear in its weights, and head
and table are one matrix W (words, classes):

    scores = X (I + a A) (R * W) + X b S (R_s * U) + X T + c

The residual I lets a word count for itself beside its neighbours. S has the subwords of each word
(`wgcn.text.subwords`), and U a row per subword, so words that are spelt alike learn from each other. R and R_s are 1,
or larger for words and subwords that the classes use differently (`naive_bayes_scales`), which are then regularised
less. T, if given, are the scores of a teacher (`wgcn.labelling.teacher`), and W and U are what is learnt beyond them.
The loss is the squared hinge of linear support vector machines, one class against the rest, with an L2 penalty on W and
U:

    (|W|^2 + |U|^2) / 2 + C sum_i c_i sum_k max(0, 1 - y_ik scores_ik)^2      y_ik = 1 or -1, c_i: a document's weight

It is convex and has no seed. `wgcn.linear.operator` is the operator, `wgcn.linear.solver` the solver.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple
from warnings import warn

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.linalg import norm
from sklearn.exceptions import ConvergenceWarning

from wgcn.checks import MOST, check_least
from wgcn.cores import n_threads
from wgcn.errors import InputError
from wgcn.inference.sums import Floats
from wgcn.labelling.teacher import Taught
from wgcn.linear.operator import DocumentOperator, GraphBlock, Memory, SubwordBlock
from wgcn.linear.solver import Problem, minimize
from wgcn.products import multiply, product_lengths, with_edges, with_entries

__all__ = ["Blocks", "LinearFit", "LinearSettings", "Scales", "block_scales", "fit_linear", "naive_bayes_scales"]

_SAMPLE = 400  # documents by which graph and subwords are scaled


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

    dual: Floats  # (documents, columns): W = R * (M^T X^T dual)
    word_embeddings: Floats  # (I + a A) (R * W) + S V + T, (words, columns)
    bias: Floats  # (columns,)
    history: list[dict[str, float]]  # objective and duality gap after each iteration
    own_rows: Floats  # R * W of the words that have edges, (words, columns)
    factor: float  # a
    subword_rows: Floats | None = None  # V = b R_s * U, (subwords, columns)


def fit_linear(
    document_terms: csr_array,
    targets: Floats,
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
    dtype = document_terms.dtype
    weight = np.ones(len(targets)) if sample_weight is None else np.asarray(sample_weight, float)
    graph, subwords = (
        block.astype(dtype, copy=False) if block is not None and block.nnz and weight_of_block else None
        for block, weight_of_block in zip(blocks, (settings.alpha, settings.subwords), strict=True)
    )
    scales = block_scales(document_terms, Blocks(graph, subwords), weight, n_jobs) if scales is None else scales
    factor = settings.alpha * scales.graph if graph is not None else 0.0
    with ThreadPoolExecutor(n_threads(n_jobs)) as pool:
        memory, transposed = Memory(dtype), csr_array(document_terms.T)
        own, spelt = None, None  # R and R_s
        if settings.naive_bayes > 0:
            own, spelt = naive_bayes_scales(transposed, targets, weight, settings.naive_bayes, pool, subwords, n_words)
        graph_block = GraphBlock(graph, float(factor), pool, memory)
        subword_block = SubwordBlock(subwords, settings.subwords * scales.subwords, spelt, pool, memory)
        operator = DocumentOperator(document_terms, transposed, (graph_block, subword_block), own, pool, memory)
        given = None
        if taught is not None:
            given = multiply(document_terms, taught.word_scores.astype(dtype, copy=False), pool)
            given += taught.bias.astype(dtype)
        signs, cost = (2 * targets - 1).astype(dtype), (2 * settings.C * weight)[:, None].astype(dtype)
        problem = Problem(operator.product, signs, cost, given)
        found = minimize(problem, tol=settings.tol, max_iter=settings.max_iter, start=start)
        if not found.converged:
            warn(
                f"The model is not fitted to the end: after {settings.max_iter} iterations the duality gap is still "
                f"{found.history[-1]['gap']:.2g}. Scale the documents to rows of length 1, or choose a smaller C.",
                ConvergenceWarning,
                stacklevel=2,
            )
        (table, own_rows, subword_rows), bias = operator.tables(found.dual), found.bias.astype(dtype)
    if taught is not None:
        table += taught.word_scores
        bias += taught.bias
    return LinearFit(found.dual, table, bias, found.history, own_rows, float(factor), subword_rows)


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


def naive_bayes_scales(
    transposed: csr_array,
    targets: Floats,
    sample_weight: Floats,
    share: float,
    pool: ThreadPoolExecutor | None = None,
    subwords: csr_array | None = None,
    n_words: int | None = None,
) -> tuple[Floats, Floats | None]:
    """Return R of shape (words, columns): how differently documents with and without a class use a word; and R_s.

        contrast = |log p(word | class) - log p(word | other classes)|, divided by its root mean square
        R = (1 - share) + share * contrast

    after the naive Bayes support vector machine of Wang and Manning (2012). A word counts once per document, and a
    subword once per word of a document. Two documents of all words are added, divided between the sides in proportion
    to their words. `transposed` is X^T, of shape (words, documents). There may be `n_words` in all: a word that no
    document has is used by all classes alike.
    """
    dtype, weight = transposed.dtype, sample_weight[:, None]
    present = csr_array(((transposed.data != 0).astype(dtype), transposed.indices, transposed.indptr), transposed.shape)
    inside = multiply(present, (targets * weight).astype(dtype), pool)
    everywhere = multiply(present, np.ascontiguousarray(weight, dtype), pool)
    spelt = None
    if subwords is not None:
        words, matrix = with_entries(subwords)
        parts = csr_array((np.ones(matrix.nnz, dtype), matrix.indices, matrix.indptr), matrix.shape)
        parts = csr_array(parts.T)
        sums = [multiply(parts, np.ascontiguousarray(each[words]), pool) for each in (inside, everywhere)]
        spelt = _scales(sums[0], sums[1], share)
    return _scales(inside, everywhere, share, n_words), spelt


def _scales(inside: Floats, everywhere: Floats, share: float, n_words: int | None = None) -> Floats:
    """Return R from the weights of documents with a word, of a class and of all; the former is written to."""
    dtype = inside.dtype
    outside = everywhere - inside
    np.maximum(outside, 0, out=outside)  # rounding
    n_inside, n_outside = (part.sum(axis=0, dtype=np.float64) for part in (inside, outside))
    added = 2 * n_inside / np.maximum(n_inside + n_outside, 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        for part, n, more in ((inside, n_inside, added), (outside, n_outside, 2 - added)):
            part += more.astype(dtype)
            np.log(part, out=part)
            part -= np.log(np.maximum(n, 1e-12)).astype(dtype)
        contrast: Floats = np.abs(np.subtract(inside, outside, out=inside), out=inside)
    contrast[~np.isfinite(contrast)] = 0
    mean = np.sqrt(np.sum(np.square(contrast), dtype=np.float64) / ((n_words or len(contrast)) * contrast.shape[1]))
    if mean < 1e-6:  # rounding
        return np.ones(contrast.shape, dtype)
    contrast *= dtype.type(share / mean)
    contrast += dtype.type(1 - share)
    return contrast
