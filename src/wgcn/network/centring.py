"""What is computed from the graph once, before training: its centring, and its product with few documents."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.errors import InputError
from wgcn.network.module import Centring
from wgcn.network.settings import NetworkSettings

__all__ = ["can_fold", "find_centring", "fold"]

_MAX_POWER_ITERATIONS = 300


def can_fold(adjacency: csr_array, document_terms: csr_array, network: NetworkSettings) -> bool:
    """Whether nothing stands between X and A, and X A is smaller than A: then it is formed once, not in every epoch."""
    small = bool(document_terms.shape[0] * document_terms.shape[1] < adjacency.nnz)
    return small and network.order > 0 and not network.word_activation and network.word_dropout == 0


def fold(
    adjacency: csr_array, document_terms: csr_array, network: NetworkSettings, centring: Centring | None
) -> csr_array:
    """Return X (A^n + r I), or the same with the graph centred."""
    rows = document_terms.toarray().astype(np.float64).T  # (words, documents)
    own = network.residual * rows
    if centring is None:
        for _ in range(network.order):
            rows = adjacency @ rows
    else:
        rows = _spread(adjacency, rows, centring.common.astype(np.float64), network.order) * centring.length
    return csr_array((rows + own).T, dtype=np.float32)


def _spread(
    adjacency: csr_array, rows: npt.NDArray[np.float64], common: npt.NDArray[np.float64], order: int
) -> npt.NDArray[np.float64]:
    """Return D^1/2 (S - u u^T)^n D^-1/2 rows, the transpose of what words are multiplied by."""
    rows = rows / np.maximum(common, 1e-6)[:, None]
    for _ in range(order):
        rows = adjacency @ rows - np.outer(common, common @ rows)
    return rows * common[:, None]


def find_centring(adjacency: csr_array, document_terms: csr_array, order: int) -> Centring:
    """Find the first eigenvector of the graph, and how long the rows of X A are without it.

    In a graph of several parts, u is sqrt(d) times a factor for each of the parts, and 0 for words without edges. It
    is an eigenvector like each part's own, and what is taken away is still one mean over all words.
    """
    if adjacency.nnz and adjacency.data.min() < 0:
        raise InputError("The word graph has negative edges, which cannot be centred. Train without centred.")
    common = np.sqrt(np.asarray(abs(adjacency).sum(axis=1), np.float64))
    for _ in range(_MAX_POWER_ITERATIONS):
        step = adjacency @ common
        step /= max(np.linalg.norm(step), 1e-300)
        done = np.abs(step - common).max() < 1e-9
        before, common = common, step
        if done:
            break
    else:
        # A bipartite graph, such as a tree without self-loops, makes the steps alternate: their mean is the answer.
        common = before + common
        common /= max(np.linalg.norm(common), 1e-300)
    if not common.any():
        raise InputError("The word graph has no edges, so that there is nothing to centre. Train without centred.")
    some = np.unique(np.linspace(0, document_terms.shape[0] - 1, 400).astype(int))
    rows = _spread(adjacency, document_terms[some].toarray().astype(np.float64).T, common, order)
    length = float(np.sqrt(np.mean(np.sum(rows**2, axis=0))))
    # If nothing is left but rounding errors, they are left small.
    least = 1e-6 * float(np.sqrt(np.mean(document_terms[some].power(2).sum(axis=1))))
    return Centring(common.astype(np.float32), 1 / length if length > least else 1.0)
