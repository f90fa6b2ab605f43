"""A space in which texts about the same thing are near each other, from text and word graph alone.

    V   = the first right singular vectors of X                   one row per word
    B   = A V, without what all documents share                   the neighbours of a word
    E   = [V, g B], V and B scaled to the same mean length        a word and its neighbours
    Z   = X E, one half scaled to length 1, the other to g        one row per document

V knows which words occur in the same documents, A V also which words occur in the same windows. No label is needed. A
word graph is dominated by its first eigenvector, so much of X A V is the same for all documents: its first singular
direction, which B leaves out where it stands out.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from wgcn.cores import n_threads
from wgcn.products import Floats, multiply

__all__ = ["WordSpace", "find_space", "scaled", "threads"]

_MOST_DOCUMENTS = 50_000  # for the singular vectors; more change them little
_ROUNDING = 1e-10  # share of squared length below which there is nothing
_ITERATIONS = 3  # of the search for singular vectors
_MORE_COLUMNS = 10  # than singular vectors, in the search


class WordSpace(NamedTuple):
    """Vectors of words. The columns come in blocks: the words themselves, then their neighbours."""

    words: Floats  # E, (words, columns)
    weights: tuple[float, ...]  # of the blocks
    sizes: tuple[int, ...]  # columns of the blocks

    def joined(self, words: Floats, weight: float) -> WordSpace:
        """Return a space with one block more."""
        words = np.hstack([self.words, np.float32(weight) * words])
        return WordSpace(words, (*self.weights, weight), (*self.sizes, words.shape[1] - self.words.shape[1]))

    def place(self, rows: Floats) -> Floats:
        """Turn X E into Z in place, and return it; a block in which a document has nothing is 0."""
        shares = np.array(self.weights, np.float32) / np.float32(np.linalg.norm(self.weights))
        for share, block in zip(shares, np.split(rows, np.cumsum(self.sizes[:-1]), axis=1), strict=True):
            lengths = np.sqrt(np.einsum("ij,ij->i", block, block))[:, None]  # without a copy of the block
            block *= np.divide(share, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        return rows


@contextmanager
def threads(n_jobs: int | None) -> Iterator[ThreadPoolExecutor]:
    """Give threads, and BLAS only one: its own wait for each other at small matrices, for seconds on busy cores."""
    with ThreadPoolExecutor(n_threads(n_jobs)) as pool, threadpool_limits(1, "blas"):
        yield pool


def find_space(
    terms: csr_array,
    adjacency: csr_array | None,
    *,
    n_components: int = 200,
    graph_weight: float = 2.0,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> WordSpace:
    """Find the space of words for documents of shape (documents, words) with rows of length 1.

    With a graph, half of the `n_components` columns are of each kind, and `graph_weight` is g. Without one, the space
    has the singular vectors alone, which is latent semantic analysis. Of very many documents some are taken, evenly.
    """
    n_documents, n_words = terms.shape
    if n_documents > _MOST_DOCUMENTS:
        terms = terms[np.linspace(0, n_documents - 1, _MOST_DOCUMENTS).astype(int)]
    rank = min(n_components if adjacency is None else n_components // 2, n_words, terms.shape[0])
    with threads(n_jobs) as pool:
        vectors = _singular_vectors(terms, rank, random_state, pool)
        own = WordSpace(scaled(terms, vectors), (1.0,), (rank,))
        if adjacency is None:
            return own
        neighbours = _without_common(multiply(adjacency, vectors, pool), terms, pool)
    return own.joined(scaled(terms, neighbours), float(graph_weight))


def _singular_vectors(terms: csr_array, rank: int, random_state: int, pool: ThreadPoolExecutor) -> Floats:
    """Return the first right singular vectors of X, (words, rank), by subspace iteration (Halko et al. 2011)."""
    # Written by hand because scikit-learn's runs on one thread, and takes twice the CPU time.
    transposed, n_columns = csr_array(terms.T), min(rank + _MORE_COLUMNS, *terms.shape)
    rows = check_random_state(random_state).normal(size=(terms.shape[0], n_columns)).astype(np.float32)
    for _ in range(_ITERATIONS):
        rows = _orthonormal(multiply(terms, multiply(transposed, rows, pool), pool))
    words = _orthonormal(multiply(transposed, rows, pool))
    vectors = words @ _gram_vectors(multiply(terms, words, pool))[1][:, :rank].astype(np.float32)
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(rank)]
    return np.asarray(vectors * np.sign(largest))  # the signs are arbitrary, but should not change


def _gram_vectors(columns: Floats) -> tuple[Floats, Floats]:
    """Return squared singular values, the largest first, and right singular vectors of a matrix of few columns."""
    exact = columns.astype(np.float64)
    sizes, vectors = np.linalg.eigh(exact.T @ exact)
    return sizes[::-1], vectors[:, ::-1]


def _orthonormal(columns: Floats) -> Floats:
    """Return the left singular vectors, those of the largest singular values first; zeros where there is nothing."""
    sizes, vectors = _gram_vectors(columns)
    factors = np.divide(1, np.sqrt(np.abs(sizes)), out=np.zeros_like(sizes), where=sizes > _ROUNDING * sizes[0])
    return np.ascontiguousarray(columns @ (vectors * factors).astype(np.float32))


def _without_common(block: Floats, terms: csr_array, pool: ThreadPoolExecutor) -> Floats:
    """Return word vectors without the first singular direction of the documents, where one stands out."""
    sizes, directions = _gram_vectors(multiply(terms, block, pool))
    # It is 3.6 to 15 times the second in the benchmark sets. Of two alike, neither is what all documents share; and
    # without a second one nothing would be left.
    if len(sizes) < 2 or sizes[0] < 2 * sizes[1] or sizes[1] <= _ROUNDING * sizes[0]:
        return block
    first = directions[:, :1].astype(block.dtype)
    return np.asarray(block - (block @ first) @ first.T)


def scaled(terms: csr_array, block: Floats) -> Floats:
    """Return word vectors that make documents about 1 long."""
    length = float(np.linalg.norm(terms[:1000] @ block, axis=1).mean())
    return np.asarray(block / np.float32(length)) if length > 0 else block
