"""The linearised WGCN with a residual, as a convex problem.

Without the activation the word table of eq. 8 (and, for citation graphs, of eq. 11) is linear in its weights, and head
and table are one matrix W (words, classes):

    scores = X (I + a A^n) W + b

The residual I keeps what a word says itself beside what its neighbours say. The loss is squared hinge or softmax with
an L2 penalty on W, minimised by L-BFGS: convex, so the answer does not depend on a seed.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_array

from wgcn.errors import InputError
from wgcn.model.kernels import multiply
from wgcn.text.corpus import available_cores

__all__ = ["LinearFit", "LinearSettings", "fit_linear", "graph_scale"]

Floats = npt.NDArray[Any]
Loss = Literal["squared_hinge", "softmax"]


@dataclass(frozen=True)
class LinearSettings:
    """Settings of the linear model.

    Parameters
    ----------
    alpha : float
        Weight of the graph beside the words themselves, which have 1; 0 leaves the graph out. The graph is scaled
        first, so that at 1 both parts of a training document are equally long on average.
    order : int
        n, how often the graph is applied.
    C : float
        Weight of the loss beside the penalty: larger fits the training documents closer.
    loss : {"squared_hinge", "softmax"}
        The margin loss of linear SVMs, one class against the rest; or eq. 7's cross-entropy.
    max_iter : int
        Most iterations of L-BFGS.
    tol : float
        Stop when an iteration lowers the objective by less than this share.
    """

    alpha: float = 1.0
    order: int = 1
    C: float = 1.0
    loss: Loss = "squared_hinge"
    max_iter: int = 100
    tol: float = 3e-4

    def __post_init__(self) -> None:
        if self.loss not in ("squared_hinge", "softmax"):
            raise InputError(f"loss must be 'squared_hinge' or 'softmax', got {self.loss!r}.")
        for name, least in (("alpha", 0), ("order", 0), ("tol", 0), ("max_iter", 1)):
            if not getattr(self, name) >= least:
                raise InputError(f"{name} must be at least {least}, got {getattr(self, name)}.")
        if not 0 < self.C < np.inf:
            raise InputError(f"C must be above 0, got {self.C}.")


@dataclass(frozen=True)
class LinearFit:
    """A fitted linear model: scores = X word_embeddings + bias."""

    word_weights: Floats  # W, (words, classes)
    word_embeddings: Floats  # (I + a A^n) W, (words, classes)
    bias: Floats  # (classes,)
    history: list[dict[str, float]]  # objective after each iteration


def graph_scale(document_terms: csr_array, adjacency: csr_array, order: int, sample_weight: Floats) -> float:
    """Return the factor that makes X A^n as long as X, on the weighted average of (at most 400 of) the documents."""
    rows = np.unique(np.linspace(0, document_terms.shape[0] - 1, 400).astype(int))
    sample = document_terms[rows]
    spread = sample
    for _ in range(order):
        spread = spread @ adjacency
    lengths = (np.sqrt(csr_array(matrix).power(2).sum(axis=1)) for matrix in (sample, spread))
    before, after = (float(sample_weight[rows] @ length) for length in lengths)
    return before / after if after > 0 else 0.0


def fit_linear(
    document_terms: csr_array,
    targets: Floats,
    adjacency: csr_array | None,
    settings: LinearSettings,
    *,
    multilabel: bool = False,
    sample_weight: Floats | None = None,
    scale: float | None = None,
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

        features = document_terms
        inside = factor != 0
        if inside and _small(document_terms, adjacency):
            # So few documents that X (I + a A^n) costs less to hold than A costs to apply in every iteration.
            features = csr_array(spread(document_terms.toarray().T.copy()).T)
            inside = False
        transposed = csr_array(features.T)

        def objective(flat: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
            parameters = flat.reshape(n_words + 1, n_columns).astype(dtype)
            w, bias = parameters[:-1], parameters[-1]
            scores = multiply(features, spread(w) if inside else w, pool) + bias  # (documents, columns)
            value, slope = loss(scores, targets, weight)
            back = multiply(transposed, slope, pool)  # (words, columns)
            gradient = np.empty_like(flat).reshape(n_words + 1, n_columns)
            gradient[:-1] = (spread(back) if inside else back) + w
            gradient[-1] = slope.sum(axis=0, dtype=np.float64)
            return value + 0.5 * float(np.sum(np.square(w, dtype=np.float64))), gradient.ravel()

        first = np.zeros((n_words + 1, n_columns))
        if start is not None:
            first[:-1], first[-1] = start.word_weights, start.bias
        result = minimize(
            objective,
            first.ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=lambda intermediate_result: history.append({"loss": float(intermediate_result.fun)}),
            options={"maxiter": settings.max_iter, "ftol": settings.tol, "gtol": 1e-8, "maxcor": 10},
        )
        parameters = result.x.reshape(n_words + 1, n_columns).astype(dtype)
        word_weights = np.ascontiguousarray(parameters[:-1])
        return LinearFit(word_weights, spread(word_weights), parameters[-1], history)


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
