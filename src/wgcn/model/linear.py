"""The linearised WGCN with a residual, as a convex problem.

Without the activation the word table of eq. 8 (and, for citation graphs, of eq. 11) is linear in its weights, and head
and table are one matrix W (words, classes):

    scores = X (I + a A^n) (R * W) + X T + b

The residual I keeps what a word says itself beside what its neighbours say. R is 1, or larger for words that the
classes use differently, after the naive Bayes support vector machine of Wang and Manning (2012): the penalty then holds
back the others more. T, if given, is what a teacher says (`wgcn.model.teacher`), and W what is learnt beyond it. The
loss is squared hinge or softmax with an L2 penalty on W, minimised by L-BFGS: convex, so the answer does not depend on
a seed.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.errors import InputError
from wgcn.model.kernels import multiply
from wgcn.model.lbfgs import minimize
from wgcn.model.teacher import Taught
from wgcn.text.corpus import available_cores

__all__ = ["LinearFit", "LinearSettings", "fit_linear", "graph_scale", "naive_bayes_scales"]

Floats = npt.NDArray[Any]
Loss = Literal["squared_hinge", "softmax"]


@dataclass(frozen=True)
class LinearSettings:
    """Settings of the linear model.

    Parameters
    ----------
    alpha : float
        Weight of the graph beside the words themselves, which have 1; 0 leaves the graph out. The graph is scaled
        first, so that at 1 both parts of a training document are equally long on average; words without any edge,
        such as n-grams, do not count there.
    order : int
        n, how often the graph is applied.
    naive_bayes : float
        How much R depends on the words, from 0, not at all, to 1.
    C : float
        Weight of the loss beside the penalty: larger fits the training documents closer.
    loss : {"squared_hinge", "softmax"}
        The margin loss of linear SVMs, one class against the rest; or eq. 7's cross-entropy.
    max_iter : int
        Most iterations of L-BFGS.
    tol : float
        Stop when an iteration lowers the objective by less than this share.
    """

    alpha: float = 0.5
    order: int = 1
    naive_bayes: float = 0.5
    C: float = 0.5
    loss: Loss = "squared_hinge"
    max_iter: int = 100
    tol: float = 3e-4

    def __post_init__(self) -> None:
        if self.loss not in ("squared_hinge", "softmax"):
            raise InputError(f"loss must be 'squared_hinge' or 'softmax', got {self.loss!r}.")
        for name, least in (("alpha", 0), ("order", 0), ("tol", 0), ("max_iter", 1)):
            if not least <= getattr(self, name) < np.inf:
                raise InputError(f"{name} must be at least {least}, got {getattr(self, name)}.")
        if not 0 <= self.naive_bayes <= 1:
            raise InputError(f"naive_bayes must be between 0 and 1, got {self.naive_bayes}.")
        if not 0 < self.C < np.inf:
            raise InputError(f"C must be above 0, got {self.C}.")


@dataclass(frozen=True)
class LinearFit:
    """A fitted linear model: scores = X word_embeddings + bias."""

    word_weights: Floats  # W, (words, classes)
    word_embeddings: Floats  # (I + a A^n) (R * W) + T, (words, classes)
    bias: Floats  # (classes,)
    own_bias: Floats  # (classes,), without that of a teacher
    history: list[dict[str, float]]  # objective after each iteration


def graph_scale(document_terms: csr_array, adjacency: csr_array, order: int, sample_weight: Floats) -> float:
    """Return the factor that makes X A^n as long as X, on the weighted average of (at most 400 of) the documents."""
    rows = np.unique(np.linspace(0, document_terms.shape[0] - 1, 400).astype(int))
    sample = document_terms[rows]
    spread = sample
    for _ in range(order):
        spread = spread @ adjacency
    if order:
        has_edges = (np.diff(adjacency.indptr) > 0).astype(sample.dtype)
        sample = csr_array((sample.data * has_edges[sample.indices], sample.indices, sample.indptr), sample.shape)
    lengths = (np.sqrt(csr_array(matrix).power(2).sum(axis=1)) for matrix in (sample, spread))
    before, after = (float(sample_weight[rows] @ length) for length in lengths)
    return before / after if after > 0 else 0.0


def naive_bayes_scales(document_terms: csr_array, targets: Floats, sample_weight: Floats, share: float) -> Floats:
    """Return R: how differently documents with and without a class use a word.

    It is |log p(word | class) - log p(word | other classes)|, divided by its root mean square, to the given share, and
    1 to the rest. A word counts once a document; a document of all words is added to either side, in proportion.

    Parameters
    ----------
    document_terms : csr_array of shape (documents, words)
    targets : array of shape (documents, columns), 0 or 1
    sample_weight : array of shape (documents,)
    share : float
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


def fit_linear(
    document_terms: csr_array,
    targets: Floats,
    adjacency: csr_array | None,
    settings: LinearSettings,
    *,
    multilabel: bool = False,
    sample_weight: Floats | None = None,
    scale: float | None = None,
    taught: Taught | None = None,
    start: LinearFit | None = None,
    n_jobs: int | None = None,
) -> LinearFit:
    """Fit the linear model.

    Parameters
    ----------
    document_terms : csr_array of shape (documents, words), float32 or float64
        Its type is that of the fitted model.
    targets : float array of shape (documents, columns)
        1 where a document has a class, else 0. One column for a problem of two classes, with 1 for the second.
    adjacency : csr_array of shape (words, words), symmetric, optional
        Left out, or with alpha 0, it is a plain linear model.
    settings : LinearSettings
    multilabel : bool
        Whether a document may have several classes.
    sample_weight : array of shape (documents,), optional
    scale : float, optional
        What `graph_scale` gave, if that was over other documents than these.
    taught : Taught, optional
        T and a part of b, one column for each of those of targets.
    start : LinearFit, optional
        A fit to begin from, such as one to fewer documents: the answer is the same up to `tol`, but nearer.
    n_jobs : int, optional
        Threads; by default as many as there are cores.
    """
    n_words, n_columns = document_terms.shape[1], targets.shape[1]
    sample_weight = np.ones(len(targets)) if sample_weight is None else np.asarray(sample_weight, float)
    weight = (settings.C * sample_weight)[:, None].astype(document_terms.dtype)
    factor = 0.0
    if adjacency is not None and settings.alpha > 0 and settings.order > 0:
        if scale is None:
            scale = graph_scale(document_terms, adjacency, settings.order, sample_weight)
        factor = settings.alpha * scale
    loss = _squared_hinge
    if settings.loss == "softmax":
        loss = _logistic if multilabel or n_columns == 1 else _softmax
    history: list[dict[str, float]] = []
    dtype = document_terms.dtype
    scales = None
    if settings.naive_bayes > 0:
        scales = naive_bayes_scales(document_terms, targets, sample_weight, settings.naive_bayes)
    if adjacency is not None:
        adjacency = adjacency.astype(dtype, copy=False)

    with ThreadPoolExecutor(n_jobs or available_cores()) as pool:

        def spread(w: Floats) -> Floats:
            """(I + a A^n) w; A is symmetric, so this is also its transpose."""
            if factor == 0:
                return w
            through = w
            for _ in range(settings.order):
                through = multiply(adjacency, through, pool)
            return np.asarray(w + w.dtype.type(factor) * through)

        inside = factor != 0
        dense = None
        if inside and _small(document_terms, adjacency):
            # So few documents that X (I + a A^n) costs less to hold than A costs to apply in every iteration.
            dense = np.ascontiguousarray(spread(document_terms.toarray().T.copy()).T)
            inside = False
        transposed = csr_array(document_terms.T) if dense is None else None

        def forward(w: Floats) -> Floats:
            return dense @ w if dense is not None else multiply(document_terms, w, pool)

        def backward(slope: Floats) -> Floats:
            return dense.T @ slope if dense is not None else multiply(transposed, slope, pool)

        given = None
        if taught is not None:
            given = multiply(document_terms, taught.word_scores.astype(dtype), pool) + taught.bias.astype(dtype)

        def objective(parameters: Floats) -> tuple[float, Floats]:
            w, bias = parameters[:-1], parameters[-1]
            scaled = w if scales is None else scales * w
            scores = forward(spread(scaled) if inside else scaled) + bias  # (documents, columns)
            if given is not None:
                scores += given
            value, slope = loss(scores, targets, weight)
            back = backward(slope)  # (words, columns)
            if inside:
                back = spread(back)
            gradient = np.empty_like(parameters)
            np.add(back if scales is None else scales * back, w, out=gradient[:-1])
            gradient[-1] = slope.sum(axis=0, dtype=np.float64)
            return value + 0.5 * float(np.vdot(w, w)), gradient

        first = np.zeros((n_words + 1, n_columns), dtype)
        if start is not None:
            first[:-1], first[-1] = start.word_weights, start.own_bias
        parameters = minimize(
            objective,
            first,
            max_iter=settings.max_iter,
            tol=settings.tol,
            callback=lambda value: history.append({"loss": value}),
        )
        word_weights, bias = parameters[:-1], parameters[-1]
        table = spread(word_weights if scales is None else scales * word_weights)
        if taught is not None:
            table, bias = table + taught.word_scores.astype(dtype), bias + taught.bias.astype(dtype)
        return LinearFit(word_weights, table, bias, parameters[-1], history)


def _small(document_terms: csr_array, adjacency: csr_array | None) -> bool:
    assert adjacency is not None
    return bool(document_terms.shape[0] * document_terms.shape[1] < adjacency.nnz)


def _squared_hinge(scores: Floats, targets: Floats, weight: Floats) -> tuple[float, Floats]:
    """Return the loss and its slope in the scores; every column is one class against the rest."""
    sign = (2 * targets - 1).astype(scores.dtype)
    short = np.maximum(1 - sign * scores, 0)  # of the margin
    return float(np.sum(weight * np.square(short), dtype=np.float64)), -2 * weight * short * sign


def _softmax(scores: Floats, targets: Floats, weight: Floats) -> tuple[float, Floats]:
    """Return the cross-entropy of eq. 7 and its slope."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    log_total = np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    value = float(-np.sum(weight * targets * (shifted - log_total), dtype=np.float64))
    return value, (weight * (np.exp(shifted - log_total) - targets)).astype(scores.dtype)


def _logistic(scores: Floats, targets: Floats, weight: Floats) -> tuple[float, Floats]:
    """Return the cross-entropy of a yes-or-no question a column, and its slope."""
    sign = (2 * targets - 1).astype(scores.dtype)
    margin = sign * scores
    value = float(np.sum(weight * np.logaddexp(0, -margin), dtype=np.float64))
    return value, (-weight * sign * np.exp(-np.logaddexp(0, margin))).astype(scores.dtype)
