"""The linearised WGCN with a residual, a convex problem.

Without the activation the word table of eq. 8 (and, for citation graphs, of eq. 11) is linear in its weights, and head
and table are one matrix W (words, classes):

    scores = X (I + a A) (R * W) + X T + b

The residual I lets a word count for itself beside its neighbours. R is 1, or larger for words that the classes use
differently (`naive_bayes_scales`), which are then regularised less. T, if given, are the scores of a teacher
(`wgcn.linear.teacher`), and W is what is learnt beyond them. The loss is the squared hinge of linear support vector
machines, one class against the rest, with an L2 penalty on W:

    |W|^2 / 2 + C sum_i c_i sum_k max(0, 1 - y_ik scores_ik)^2        y_ik = 1 or -1, c_i: the document's weight

It is convex and has no seed. `wgcn.linear.operator` is the operator, `wgcn.linear.solver` the solver.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import csr_array

from wgcn.checks import check_least
from wgcn.cores import n_threads
from wgcn.errors import InputError
from wgcn.inference.terms import Floats
from wgcn.linear.kernels import multiply
from wgcn.linear.operator import DocumentOperator, GraphBlock
from wgcn.linear.solver import minimize
from wgcn.linear.teacher import Taught

__all__ = ["LinearFit", "LinearSettings", "fit_linear", "graph_scale", "naive_bayes_scales"]

_SAMPLE = 400  # documents by which the graph is scaled


@dataclass(frozen=True)
class LinearSettings:
    """Settings of the linear model."""

    # Weight of the graph, beside 1 for the words themselves. The graph is scaled first, so that at 1 both parts of a
    # training document are equally long on average.
    alpha: float = 0.5
    naive_bayes: float = 0.5  # how much R depends on the words, from 0, not at all, to 1
    C: float = 0.5  # weight of the loss beside the penalty: larger fits the training documents closer
    max_iter: int = 100
    tol: float = 3e-4  # stop when three iterations in a row each lower the objective by less than this share

    def __post_init__(self) -> None:
        check_least(self, 0, "alpha", "tol")
        check_least(self, 1, "max_iter")
        if not 0 <= self.naive_bayes <= 1:
            raise InputError(f"naive_bayes must be between 0 and 1, got {self.naive_bayes}.")
        if not 0 < self.C < np.inf:
            raise InputError(f"C must be above 0, got {self.C}.")


@dataclass(frozen=True)
class LinearFit:
    """A fitted linear model: scores = X word_embeddings + bias."""

    word_weights: Floats  # W, (words, columns)
    word_embeddings: Floats  # (I + a A) (R * W) + T, (words, columns)
    bias: Floats  # (columns,)
    own_bias: Floats  # (columns,), without that of a teacher
    history: list[dict[str, float]]  # objective after each iteration


def fit_linear(
    document_terms: csr_array,
    targets: Floats,
    adjacency: csr_array | None,
    settings: LinearSettings,
    *,
    sample_weight: Floats | None = None,
    scale: float | None = None,
    taught: Taught | None = None,
    start: LinearFit | None = None,
    n_jobs: int | None = None,
) -> LinearFit:
    """Fit the linear model to X of shape (documents, words), whose type (float32 or float64) the fit has too.

    targets : (documents, columns), 1 where a document has a class, else 0; for a problem of two classes, one column
        with 1 for the second
    adjacency : A, (words, words), symmetric; without it, or with alpha 0, it is a plain linear model
    scale : the result of `graph_scale`, if it was computed on other documents than these
    taught : T and a part of b, with the columns of targets
    start : warm start from a fit with these settings, such as one to fewer documents; the result is the same up to tol
    """
    dtype = document_terms.dtype
    weight = np.ones(len(targets)) if sample_weight is None else np.asarray(sample_weight, float)
    factor = 0.0
    if adjacency is not None and settings.alpha > 0:
        adjacency = adjacency.astype(dtype, copy=False)
        factor = settings.alpha * (graph_scale(document_terms, adjacency, weight) if scale is None else scale)
    scales = None
    if settings.naive_bayes > 0:
        scales = naive_bayes_scales(document_terms, targets, weight, settings.naive_bayes)
    history: list[dict[str, float]] = []
    with ThreadPoolExecutor(n_threads(n_jobs)) as pool:
        operator = DocumentOperator(
            document_terms, GraphBlock(adjacency, float(factor), pool), scales, targets.shape[1], pool
        )
        given = None
        if taught is not None:
            given = multiply(document_terms, taught.word_scores.astype(dtype), pool) + taught.bias.astype(dtype)
        signs, weights = (2 * targets - 1).astype(dtype), (settings.C * weight)[:, None].astype(dtype)
        first = np.zeros((document_terms.shape[1] + 1) * targets.shape[1], dtype)
        if start is not None:
            first = np.concatenate([start.word_weights.ravel(), start.own_bias], dtype=dtype)
        parameters = minimize(
            partial(_objective, operator, signs, weights, given),
            first,
            max_iter=settings.max_iter,
            tol=settings.tol,
            callback=lambda value: history.append({"loss": value}),
        )
        word_weights, own_bias = _split(parameters, targets.shape[1])
        table, bias = operator.table(word_weights), own_bias
    if taught is not None:
        table, bias = table + taught.word_scores.astype(dtype), bias + taught.bias.astype(dtype)
    return LinearFit(word_weights, table, bias, own_bias, history)


def _objective(
    operator: DocumentOperator, signs: Floats, weight: Floats, given: Floats | None, parameters: Floats
) -> tuple[float, Floats]:
    """Return the objective and its gradient, in W and b as one vector.

    signs : y, (documents, columns), 1 or -1; weight : C c_i, (documents, 1); given : X T + its bias, or None
    """
    gradient = np.empty_like(parameters)
    (weights, bias), (weights_gradient, bias_gradient) = (
        _split(part, signs.shape[1]) for part in (parameters, gradient)
    )
    scores = operator.forward(weights) + bias  # (documents, columns)
    if given is not None:
        scores += given
    missing = np.maximum(1 - signs * scores, 0)  # of the margin
    loss = float(np.sum(weight * np.square(missing), dtype=np.float64))
    slopes = -2 * weight * missing * signs  # gradient in the scores, (documents, columns)
    np.add(operator.adjoint(slopes, weights_gradient), weights, out=weights_gradient)
    bias_gradient[:] = slopes.sum(axis=0, dtype=np.float64)
    return loss + 0.5 * float(np.vdot(weights, weights)), gradient


def _split(parameters: Floats, n_columns: int) -> tuple[Floats, Floats]:
    """Return W and b as views."""
    return parameters[:-n_columns].reshape(-1, n_columns), parameters[-n_columns:]


def graph_scale(document_terms: csr_array, adjacency: csr_array, sample_weight: Floats) -> float:
    """Return the factor that makes the rows of X A as long as those of X, on weighted average over 400 documents.

    Words without an edge, such as n-grams, do not count in the length of X.
    """
    rows = np.unique(np.linspace(0, document_terms.shape[0] - 1, _SAMPLE).astype(int))
    sample = document_terms[rows]
    spread = sample @ adjacency
    has_edges = (np.diff(adjacency.indptr) > 0).astype(sample.dtype)
    sample = csr_array((sample.data * has_edges[sample.indices], sample.indices, sample.indptr), sample.shape)
    lengths = (np.sqrt(csr_array(matrix).power(2).sum(axis=1)) for matrix in (sample, spread))
    before, after = (float(sample_weight[rows] @ length) for length in lengths)
    return before / after if after > 0 else 0.0


def naive_bayes_scales(document_terms: csr_array, targets: Floats, sample_weight: Floats, share: float) -> Floats:
    """Return R of shape (words, columns): how differently documents with and without a class use a word.

        contrast = |log p(word | class) - log p(word | other classes)|, divided by its root mean square
        R = (1 - share) + share * contrast

    after the naive Bayes support vector machine of Wang and Manning (2012). A word counts once per document. Two
    documents of all words are added, divided between the sides in proportion to their words.
    """
    ones = (document_terms.data != 0).astype(np.float64)
    present = csr_array((ones, document_terms.indices, document_terms.indptr), document_terms.shape).T
    inside, outside = (present @ (side * sample_weight[:, None]) for side in (targets, 1 - targets))
    n_inside, n_outside = inside.sum(axis=0), outside.sum(axis=0)
    added = 2 * n_inside / np.maximum(n_inside + n_outside, 1e-12)
    rates = ((inside + added) / np.maximum(n_inside, 1e-12), (outside + 2 - added) / np.maximum(n_outside, 1e-12))
    with np.errstate(divide="ignore", invalid="ignore"):
        contrast = np.nan_to_num(np.abs(np.log(rates[0]) - np.log(rates[1])), nan=0.0, posinf=0.0)
    mean = np.sqrt(np.mean(np.square(contrast)))
    if mean < 1e-9:  # rounding
        return np.ones(contrast.shape, document_terms.dtype)
    scales: Floats = (1 - share + share * contrast / mean).astype(document_terms.dtype)
    return scales
