"""The linearised WGCN with a residual, as a convex problem unless the weight of the graph is learnt too.

Without the activation the word table of eq. 8 (and, for citation graphs, of eq. 11) is linear in its weights, and head
and table are one matrix W (words, classes):

    scores = X (I + a A^n) (R * W) + X T + b

The residual I keeps what a word says itself beside what its neighbours say. R is 1, or larger for words that the
classes use differently, after the naive Bayes support vector machine of Wang and Manning (2012): the penalty then holds
back the others more. T, if given, is what a teacher says (`wgcn.linear.teacher`), and W what is learnt beyond it. The
loss is squared hinge or softmax with an L2 penalty on W, minimised by L-BFGS: convex, so the answer does not depend on
a seed.

The weight a may be learnt with W, one for all words or one for each: `learn_alpha`. Then a = alpha exp(theta), theta
has an L2 penalty too, and

    scores = X (R * W + diag(a) A^n (R * W)) + X T + b

That is not convex: the answer is a minimum near where the solver begins, at a = alpha, or at a first fit. It still does
not depend on a seed.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.cores import n_threads
from wgcn.errors import InputError
from wgcn.linear.kernels import add_product, multiply
from wgcn.linear.solver import minimize
from wgcn.linear.teacher import Taught

__all__ = ["LinearFit", "LinearSettings", "fit_linear", "graph_scale", "naive_bayes_scales"]

Floats = npt.NDArray[Any]
Loss = Literal["squared_hinge", "softmax"]
LearnAlpha = Literal["shared", "word"]

# How freely log(a / alpha) moves: the penalty on it is half of its square divided by the square of this. Chosen on a
# fifth of the training documents of MR, R8 and Ohsumed, held out. Freer for all words, a grows without end: larger
# rows let W be smaller, whatever the graph is worth.
_FREEDOM: dict[LearnAlpha, float] = {"shared": 0.03, "word": 1.0}
_FURTHEST = 3.0  # that log(a / alpha) goes, in a smooth bend: a stays between alpha / 20 and alpha * 20


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
        Stop when three iterations in a row each lower the objective by less than this share.
    learn_alpha : {"shared", "word"}, optional
        Learn the weight of the graph from the documents, beginning at alpha: one for all words, or one for each word,
        which says how much it listens to its neighbours. With alpha 0 there is nothing to learn.
    """

    alpha: float = 0.5
    order: int = 1
    naive_bayes: float = 0.5
    C: float = 0.5
    loss: Loss = "squared_hinge"
    max_iter: int = 100
    tol: float = 3e-4
    learn_alpha: LearnAlpha | None = None

    def __post_init__(self) -> None:
        if self.learn_alpha not in (None, "shared", "word"):
            raise InputError(f"learn_alpha must be None, 'shared' or 'word', got {self.learn_alpha!r}.")
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
    word_embeddings: Floats  # (I + diag(a) A^n) (R * W) + T, (words, classes)
    bias: Floats  # (classes,)
    own_bias: Floats  # (classes,), without that of a teacher
    history: list[dict[str, float]]  # objective after each iteration
    alpha: float | Floats  # as given, or learnt: one number, or (words,)
    theta: Floats  # what was learnt of it, as the solver has it: (0,), (1,) or (words,)


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
        A fit with these settings to begin from, such as one to fewer documents: the answer is the same up to `tol`, but
        nearer. If alpha is learnt, it may be another.
    n_jobs : int, optional
        Threads; by default, and for -1, as many as there are cores, for -2 one less.
    """
    n_words, n_columns = document_terms.shape[1], targets.shape[1]
    sample_weight = np.ones(len(targets)) if sample_weight is None else np.asarray(sample_weight, float)
    weight = (settings.C * sample_weight)[:, None].astype(document_terms.dtype)
    factor = 0.0
    if adjacency is not None and settings.alpha > 0 and settings.order > 0:
        if scale is None:
            scale = graph_scale(document_terms, adjacency, settings.order, sample_weight)
        factor = float(settings.alpha * scale)
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

    learns = settings.learn_alpha if factor != 0 else None
    ends = np.cumsum([n_words * n_columns, n_columns, {None: 0, "shared": 1, "word": n_words}[learns]])

    def parts(parameters: Floats) -> tuple[Floats, Floats, Floats]:
        """Return W, b and theta, as views."""
        w, bias, theta, _ = np.split(parameters, ends)
        return w.reshape(n_words, n_columns), bias, theta

    with ThreadPoolExecutor(n_threads(n_jobs)) as pool:

        def through(w: Floats, times: int = settings.order) -> Floats:
            """Return A^n w; A is symmetric, so this is also its transpose."""
            for _ in range(times):
                w = multiply(adjacency, w, pool)
            return w

        def spread(w: Floats, out: Floats | None = None) -> Floats:
            """Return (I + a A^n) w, where a is one number; this is also its transpose."""
            if factor == 0:
                return w
            assert adjacency is not None
            return add_product(w, factor, adjacency, through(w, settings.order - 1), pool, out)

        inside = factor != 0
        dense = None
        if inside and learns is None and _small(document_terms, adjacency):
            # So few documents that X (I + a A^n) costs less to hold than A costs to apply in every iteration.
            dense = np.ascontiguousarray(spread(document_terms.toarray().T.copy()).T)
            inside = False
        transposed = csr_array(document_terms.T) if dense is None else None

        def forward(w: Floats) -> Floats:
            return dense @ w if dense is not None else multiply(document_terms, w, pool)

        def backward(slope: Floats, out: Floats) -> Floats:
            return dense.T @ slope if dense is not None else multiply(transposed, slope, pool, out)

        given = None
        if taught is not None:
            given = multiply(document_terms, taught.word_scores.astype(dtype), pool) + taught.bias.astype(dtype)

        # Room for what each evaluation works out, beside the gradient, which the solver keeps.
        room = [np.empty((n_words, n_columns), dtype) for _ in range(2)]

        def objective(parameters: Floats) -> tuple[float, Floats]:
            w, bias, theta = parts(parameters)
            gradient = np.empty_like(parameters)
            w_slope, bias_slope, theta_slope = parts(gradient)
            scaled = w if scales is None else np.multiply(scales, w, out=room[0])
            if learns is not None:
                times, times_slope = _times_alpha(theta, learns)
                strength, near = (factor * times)[:, None], through(scaled)
                table = scaled + strength * near
            else:
                table = spread(scaled, room[1]) if inside else scaled
            scores = forward(table) + bias  # (documents, columns)
            if given is not None:
                scores += given
            value, slope = loss(scores, targets, weight)
            back = backward(slope, room[0])  # (words, columns)
            if learns is not None:
                gain = np.einsum("wc,wc->w", back, near)
                if learns == "shared":
                    gain = gain.sum(keepdims=True, dtype=np.float64)
                theta_slope[:] = factor * times_slope * gain + theta
                back += through(strength * back)
            elif inside:
                back = spread(back, room[1])
            np.add(back if scales is None else np.multiply(scales, back, out=w_slope), w, out=w_slope)
            bias_slope[:] = slope.sum(axis=0, dtype=np.float64)
            return value + 0.5 * float(np.vdot(w, w)) + 0.5 * float(np.vdot(theta, theta)), gradient

        first = np.zeros(ends[-1], dtype)
        if start is not None:
            w, bias, theta = parts(first)
            w[:], bias[:] = start.word_weights, start.own_bias
            if theta.shape == start.theta.shape:
                theta[:] = start.theta
        parameters = minimize(
            objective,
            first,
            max_iter=settings.max_iter,
            tol=settings.tol,
            callback=lambda value: history.append({"loss": value}),
        )
        word_weights, own_bias, theta = parts(parameters)
        scaled = word_weights if scales is None else scales * word_weights
        times = np.ones(1, dtype) if learns is None else _times_alpha(theta, learns)[0]
        bias = own_bias
        table = spread(scaled) if learns is None else scaled + (factor * times)[:, None] * through(scaled)
        if taught is not None:
            table, bias = table + taught.word_scores.astype(dtype), bias + taught.bias.astype(dtype)
        alpha: float | Floats = float(settings.alpha)
        if settings.learn_alpha == "word":
            alpha = np.full(n_words, alpha, dtype) * times
        elif learns == "shared":
            alpha *= float(times[0])
        return LinearFit(word_weights, table, bias, own_bias, history, alpha, theta)


def _times_alpha(theta: Floats, learns: LearnAlpha) -> tuple[Floats, Floats]:
    """Return a / alpha, which is exp(freedom * theta) within its bounds, and its slope in theta."""
    freedom = _FREEDOM[learns]
    bent = np.tanh(theta * (freedom / _FURTHEST))
    times = np.exp(_FURTHEST * bent)
    return times, freedom * times * (1 - bent * bent)


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
