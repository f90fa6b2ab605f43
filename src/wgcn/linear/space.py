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

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.extmath import randomized_svd

from wgcn.errors import InputError
from wgcn.inference.terms import Floats

__all__ = ["WordSpace", "find_space", "scaled", "unit_rows"]

_MOST_DOCUMENTS = 50_000  # for the singular vectors; more change them little
_ROUNDING = 1e-10  # share of squared length below which there is nothing


class WordSpace(NamedTuple):
    """Vectors of words. The columns come in blocks of one size: the words themselves, then their neighbours."""

    words: Floats  # E, (words, columns)
    weights: tuple[float, ...]  # of the blocks

    def documents(self, terms: csr_array) -> Floats:
        """Return Z, one row of length 1 per document; a block in which a document has nothing is 0."""
        blocks = np.split(np.asarray(terms @ self.words), len(self.weights), axis=1)
        shares = [np.float32(weight / np.linalg.norm(self.weights)) for weight in self.weights]
        return np.hstack([share * unit_rows(block) for share, block in zip(shares, blocks, strict=True)])


def find_space(
    terms: csr_array,
    adjacency: csr_array | None,
    *,
    n_components: int = 200,
    graph_weight: float = 2.0,
    random_state: int = 0,
) -> WordSpace:
    """Find the space of words for documents of shape (documents, words) with rows of length 1.

    With a graph, half of the `n_components` columns are of each kind, and `graph_weight` is g. Without one, the space
    has the singular vectors alone, which is latent semantic analysis. Of very many documents some are taken, evenly.
    """
    if n_components < 2:
        raise InputError(f"n_components must be at least 2, got {n_components}.")
    n_documents, n_words = terms.shape
    if n_documents > _MOST_DOCUMENTS:
        terms = terms[np.linspace(0, n_documents - 1, _MOST_DOCUMENTS).astype(int)]
    rank = min(n_components if adjacency is None else n_components // 2, n_words, terms.shape[0])
    vectors = randomized_svd(terms, rank, n_iter=3, random_state=random_state)[2].T.astype(np.float32)
    if adjacency is None:
        return WordSpace(scaled(terms, vectors), (1.0,))
    neighbours = _without_common(terms, np.asarray(adjacency @ vectors))
    neighbours = np.float32(graph_weight) * scaled(terms, neighbours)
    return WordSpace(np.hstack([scaled(terms, vectors), neighbours]), (1.0, float(graph_weight)))


def _without_common(terms: csr_array, block: Floats) -> Floats:
    """Return word vectors without the first singular direction of the documents, where one stands out."""
    rows = np.asarray(terms @ block).astype(np.float64)
    sizes, directions = np.linalg.eigh(rows.T @ rows)
    # It is 3.6 to 15 times the second in the benchmark sets. Of two alike, neither is what all documents share; and
    # without a second one nothing would be left.
    if len(sizes) < 2 or sizes[-1] < 2 * sizes[-2] or sizes[-2] <= _ROUNDING * sizes[-1]:
        return block
    first = directions[:, -1:].astype(block.dtype)
    return np.asarray(block - (block @ first) @ first.T)


def scaled(terms: csr_array, block: Floats) -> Floats:
    """Return word vectors that make documents about 1 long."""
    length = float(np.linalg.norm(terms[:1000] @ block, axis=1).mean())
    return np.asarray(block / np.float32(length)) if length > 0 else block


def unit_rows(rows: Floats) -> Floats:
    """Return rows of length 1; rows of zeros stay zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return unit
