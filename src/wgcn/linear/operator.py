"""The linear operator of the model, between documents and the table of words.

    table      B -> M (R^2 * (M X^T B))      one row per word; M = I + a A, the word graph with a residual (eq. 8 and
                                             eq. 11 without activation)
    product    B -> X table(B)               K B in `wgcn.linear.solver`: the scores of documents

The operator sees only `apply` of the block M: a further block of M is a further class. Products are written to memory
that is kept between calls: on 20NG, allocating took as long as the product itself.

Shapes
------
X : (documents, words), A : (words, words), R : (words, columns), B : (documents, columns)
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.inference.terms import Floats
from wgcn.linear.kernels import multiply

__all__ = ["DocumentOperator", "GraphBlock", "Memory"]

# A dense product does so many multiplications in the time of one of a sparse product.
_DENSE_GAIN = 2


class Memory:
    """Arrays that are used again, by name."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype, self._arrays = dtype, dict[str, Floats]()

    def array(self, name: str, n_rows: int, n_columns: int) -> Floats:
        """Return an array with any content, the same memory for a name as last time."""
        if name not in self._arrays or self._arrays[name].size < n_rows * n_columns:
            self._arrays[name] = np.empty(n_rows * n_columns, self._dtype)
        return self._arrays[name][: n_rows * n_columns].reshape(n_rows, n_columns)


class GraphBlock:
    """M = I + a A for a symmetric A. Without A, or with factor a = 0, M is the identity.

    Only words that have edges take part: in 20NG with 2-grams 66,797 of 440,858, which fit into the caches.
    """

    def __init__(self, adjacency: csr_array | None, factor: float, pool: ThreadPoolExecutor, memory: Memory) -> None:
        self._factor, self._pool, self._memory = factor, pool, memory
        self.words, self._adjacency = np.empty(0, np.int64), None
        if adjacency is not None and factor != 0 and adjacency.nnz:
            self.words, self._adjacency = with_edges(adjacency)

    @property
    def n_edges(self) -> int:
        """Entries of A."""
        return 0 if self._adjacency is None else int(self._adjacency.nnz)

    def apply(self, rows: Floats) -> None:
        """Replace rows of words by M times these rows. M is symmetric, so this is also its adjoint."""
        if self._adjacency is not None:
            shape = len(self.words), rows.shape[1]
            own = np.take(rows, self.words, axis=0, out=self._memory.array("edges", *shape), mode="clip")
            rows[self.words] = self.spread(own, self._memory.array("spread", *shape))

    def spread(self, rows: Floats, out: Floats | None = None) -> Floats:
        """Return M times rows of the words that have edges."""
        assert self._adjacency is not None
        return multiply(self._adjacency, rows, self._pool, out, self._factor)


def with_edges(adjacency: csr_array) -> tuple[npt.NDArray[np.int64], csr_array]:
    """Return the words that have edges, and the graph of these alone, which shares its weights with the given one."""
    words = np.flatnonzero(np.diff(adjacency.indptr) > 0)
    places = np.zeros(adjacency.shape[0], adjacency.indices.dtype)
    places[words] = np.arange(len(words))
    indptr = adjacency.indptr[np.append(words, adjacency.shape[0])]
    graph = csr_array((adjacency.data, places[adjacency.indices], indptr), shape=(len(words), len(words)))
    return words, graph


class DocumentOperator:
    """From documents to the table of words, and to the scores of documents.

    `scales` are R, or None for R = 1; they are squared in place.
    """

    def __init__(
        self,
        documents: csr_array,
        transposed: csr_array,
        block: GraphBlock,
        scales: Floats | None,
        pool: ThreadPoolExecutor,
        memory: Memory,
    ) -> None:
        self._documents, self._transposed, self._block, self._pool = documents, transposed, block, pool
        self._squares = None if scales is None else np.square(scales, out=scales)
        self._memory, self._dense = memory, None
        if documents.shape[0] * len(block.words) < _DENSE_GAIN * block.n_edges:  # few documents
            own = documents[:, block.words].T.toarray(order="C").astype(documents.dtype, copy=False)
            self._dense = block.spread(own)  # M X^T of the words that have edges, (words, documents)
            others = np.ones(documents.shape[1], bool)
            others[block.words] = False
            self._others = np.flatnonzero(others)
            self._documents = csr_array(documents[:, self._others])
            self._transposed = csr_array(transposed[self._others])

    def table(self, dual: Floats) -> Floats:
        """Return M (R^2 * (M X^T B)): a document's score is the weighted sum of its words' rows."""
        if self._dense is not None:
            rows = np.empty((len(self._others) + len(self._block.words), dual.shape[1]), dual.dtype)
            rows[self._others] = multiply(self._transposed, dual, self._pool)
            rows[self._block.words] = self._dense @ dual
            rows *= 1 if self._squares is None else self._squares
        else:
            rows = self._weighted(dual, self._squares).copy()
        self._block.apply(rows)
        return rows

    def _weighted(self, dual: Floats, squares: Floats | None) -> Floats:
        """Return R^2 * (M X^T B), in memory that is used again."""
        rows = self._memory.array("words", self._transposed.shape[0], dual.shape[1])
        multiply(self._transposed, dual, self._pool, rows)
        if self._dense is None:
            self._block.apply(rows)
        if squares is not None:
            rows *= squares
        return rows

    def product(self, columns: npt.NDArray[np.intp]) -> Callable[[Floats], Floats]:
        """Return the function B -> K B for some columns."""
        squares = self._squares
        if squares is not None and len(columns) < squares.shape[1]:
            squares = np.ascontiguousarray(squares[:, columns])
        if self._dense is None:
            return lambda dual: self._sparse_product(dual, squares)
        parts = (None, None) if squares is None else (squares[self._block.words], squares[self._others])
        return lambda dual: self._dense_product(dual, *parts)

    def _sparse_product(self, dual: Floats, squares: Floats | None) -> Floats:
        rows = self._weighted(dual, squares)
        self._block.apply(rows)
        return multiply(self._documents, rows, self._pool)

    def _dense_product(self, dual: Floats, squares: Floats | None, other_squares: Floats | None) -> Floats:
        assert self._dense is not None
        rows = self._dense @ dual
        if squares is not None:
            rows *= squares
        others = multiply(self._documents, self._weighted(dual, other_squares), self._pool)
        others += self._dense.T @ rows
        return others
