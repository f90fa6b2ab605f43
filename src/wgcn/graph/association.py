"""Edge weights between words, from window counts or from documents; pruning and normalisation of a graph.

From windows: PMI(i, j) = log(#W(i, j) #W / (#W(i) #W(j))), NPMI(i, j) = PMI(i, j) / -log(#W(i, j) / #W), or the count
itself. From documents: X^T X (eq. 2 of the paper), or the cosine between columns of X.

Every function returns a symmetric csr_array with sorted rows and no stored zeros.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, triu, vstack

from wgcn.base.arrays import Floats, Ints, row_blocks
from wgcn.base.errors import InputError, check_least
from wgcn.base.threads import n_threads
from wgcn.graph import kernels
from wgcn.graph.counts import WindowCounts

Weight = Literal["pmi", "npmi", "count", "cosine", "product"]
Diagonal = Literal["self", "one", "none"]
WINDOW_WEIGHTS: tuple[str, ...] = ("pmi", "npmi", "count")
DOCUMENT_WEIGHTS: tuple[str, ...] = ("cosine", "product")
WEIGHTS = WINDOW_WEIGHTS + DOCUMENT_WEIGHTS


@dataclass(frozen=True)
class EdgeRules:
    """Which edges a word graph keeps.

    Parameters
    ----------
    threshold : float
        Keep edges whose weight is above this.
    min_count : int
        Keep pairs of words that share at least this many windows (documents, for weights from documents).
    top_k : int, optional
        Keep an edge only if it is among the k strongest of one of its two words; equal weights by smaller id.
    diagonal : {"self", "one", "none"}
        Weight of a word with itself: as the measure has it (PMI: log(#W / #W(i)), NPMI: 1), 1, or no edge.
    """

    threshold: float = 0.0
    min_count: int = 1
    top_k: int | None = None
    diagonal: Diagonal = "self"

    def __post_init__(self) -> None:
        if not np.isfinite(self.threshold):
            raise InputError(f"threshold must be a finite number, got {self.threshold}.")
        check_least(self, 1, *(["min_count"] if self.top_k is None else ["min_count", "top_k"]))
        if self.diagonal not in get_args(Diagonal):
            raise InputError(f"diagonal must be one of {', '.join(get_args(Diagonal))}, got {self.diagonal!r}.")


def from_windows(counts: WindowCounts, weight: Weight, rules: EdgeRules, n_jobs: int | None = None) -> csr_array:
    """Weight the pairs of words that share windows by "pmi", "npmi" or "count", on `n_jobs` threads."""
    pairs = counts.pair_windows
    return symmetric(pairs.indptr, pairs.indices, *weigh_windows(counts, weight, rules, n_jobs), rules)


def weigh_windows(
    counts: WindowCounts, weight: Weight, rules: EdgeRules, n_jobs: int | None = None
) -> tuple[Floats, Floats]:
    """Return the weights of pairs, 0 for those that are not kept, and of each word with itself."""
    _check_weight(weight, WINDOW_WEIGHTS, "windows")
    pairs, words, n_windows = counts.pair_windows, counts.word_windows, max(counts.n_windows, 1)
    seen = words > 0
    log_marginals = np.log(np.where(seen, words / n_windows, 1))  # that of a word in no window is never used
    diagonals = {  # the measure with #W(i, i) = #W(i)
        "pmi": np.log(np.where(seen, n_windows / np.maximum(words, 1), 1)),
        "npmi": seen,
        "count": words,
    }

    def weigh(rows: tuple[int, int]) -> Floats:
        found: Floats = kernels.weigh_pairs(
            pairs.indptr, pairs.indices, pairs.data, log_marginals, np.log(n_windows), WINDOW_WEIGHTS.index(weight),
            rules.threshold, rules.min_count, *rows,
        )  # fmt: skip
        return found

    edges = np.linspace(0, len(words), 33).astype(int).tolist()
    with ThreadPoolExecutor(n_threads(n_jobs)) as pool:
        weights = np.concatenate(list(pool.map(weigh, pairwise(edges))))
    return weights, diagonals[weight].astype(np.float32)


def from_documents(document_terms: csr_array, weight: Weight, rules: EdgeRules) -> csr_array:
    """Weight the pairs of words that share documents: X^T X (eq. 2), or the cosine between columns of X."""
    _check_weight(weight, DOCUMENT_WEIGHTS, "documents")
    terms = floating(document_terms)
    if weight == "cosine":
        lengths = np.sqrt(terms.power(2).sum(axis=0))
        terms = csr_array(terms.multiply(1 / np.where(lengths > 0, lengths, 1)))
    return product(terms, terms, rules)


def product(left: csr_array, right: csr_array, rules: EdgeRules, *, block_entries: int = 1 << 24) -> csr_array:
    """Return the mean of L^T R and R^T L, of two matrices of documents by words, as edges between words.

    Blocks of so many entries are formed and pruned at once, so that only the edges that are kept are held in memory.
    """
    factors = [(csr_array(left.T), right)]
    if left is not right:
        factors.append((csr_array(right.T), left))
    transposed = factors[0][0]
    entries = np.concatenate(([0], np.cumsum(np.diff(right.indptr)[transposed.indices], dtype=np.int64)))
    diagonal = np.zeros(left.shape[1], left.dtype)
    blocks = []
    for first, last in row_blocks(entries[transposed.indptr], block_entries):
        block = csr_array(_mean([rows[first:last] @ other for rows, other in factors]), dtype=left.dtype)
        diagonal[first:last] = block.diagonal(first)
        if rules.min_count > 1:
            shared = [_pattern(rows[first:last]) @ _pattern(other) for rows, other in factors]
            block = csr_array(block.multiply(_mean(shared) >= rules.min_count))
        block.data[block.data <= rules.threshold] = 0
        block = csr_array(triu(block, first + 1))
        block.eliminate_zeros()
        block.sort_indices()
        blocks.append(block)
    upper = csr_array(vstack(blocks, format="csr"))
    return symmetric(upper.indptr, upper.indices, upper.data, diagonal, rules)


def floating(matrix: csr_array) -> csr_array:
    """Return a matrix in double precision if it was so, else in single."""
    return csr_array(matrix, dtype=np.float64 if matrix.dtype == np.float64 else np.float32)


def _check_weight(weight: str, allowed: tuple[str, ...], source: str) -> None:
    if weight not in allowed:
        raise InputError(f"The weight {weight!r} does not come from {source}. Use one of {', '.join(allowed)}.")


def _mean(matrices: list[csr_array]) -> csr_array:
    return sum(matrices[1:], start=matrices[0]) / len(matrices)


def _pattern(matrix: csr_array) -> csr_array:
    return csr_array(matrix != 0, dtype=np.float32)


def symmetric(indptr: Ints, columns: Ints, weights: Floats, own: Floats, rules: EdgeRules) -> csr_array:
    """Make the graph of its upper triangle: set the diagonal, mirror, keep the strongest edges."""
    diagonal = {"self": own, "one": np.ones_like(own), "none": np.zeros_like(own)}[rules.diagonal]
    indptr, columns, weights = kernels.mirror(indptr, columns, weights, diagonal)
    if len(columns) <= np.iinfo(np.int32).max:  # the index type that scipy would choose
        indptr = indptr.astype(np.int32)
    adjacency = csr_array((weights, columns, indptr), shape=(len(own), len(own)))
    return adjacency if rules.top_k is None else strongest_edges(adjacency, rules.top_k)


def strongest_edges(adjacency: csr_array, k: int) -> csr_array:
    """Return a symmetric graph with the edges that are among the k strongest of one of their words."""
    indptr, columns, weights = kernels.strongest(adjacency.indptr, adjacency.indices, adjacency.data, k)
    return csr_array((weights, columns, indptr), shape=adjacency.shape)


def normalize(adjacency: csr_array) -> tuple[csr_array, npt.NDArray[np.float64]]:
    """Return D^-1/2 A D^-1/2 and the degrees D, sums of absolute weights; a word with no edge keeps degree 0."""
    positive = adjacency if adjacency.data.min(initial=0) >= 0 else abs(adjacency)  # which takes a copy
    degrees = np.asarray(positive.sum(axis=1, dtype=np.float64)).ravel()
    scale = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
    data = kernels.scale_edges(adjacency.indptr, adjacency.indices, adjacency.data, scale)
    return csr_array((data, adjacency.indices, adjacency.indptr), shape=adjacency.shape), degrees
