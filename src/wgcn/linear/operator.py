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

__all__ = ["DocumentOperator", "GraphBlock", "Memory", "row_slice", "with_edges"]

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
        self.words, self._adjacency, self.n_edges = np.empty(0, np.int64), None, 0
        if adjacency is not None and factor != 0 and adjacency.nnz:
            self.words, self._adjacency = with_edges(adjacency)
            self.n_edges = adjacency.nnz

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


def row_slice(matrix: csr_array, begin: int, end: int) -> csr_array:
    """Return rows that follow each other, without a copy."""
    first, last = matrix.indptr[begin], matrix.indptr[end]
    parts = matrix.data[first:last], matrix.indices[first:last], matrix.indptr[begin : end + 1] - first
    return csr_array(parts, shape=(end - begin, matrix.shape[1]))


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
            self._others = np.delete(np.arange(documents.shape[1]), block.words)
            self._parts = csr_array(documents[:, self._others]), csr_array(transposed[self._others])

    def table(self, dual: Floats) -> Floats:
        """Return M (R^2 * (M X^T B)): a document's score is the weighted sum of its words' rows."""
        return self.table_and_own_rows(dual)[0]

    def table_and_own_rows(self, dual: Floats) -> tuple[Floats, Floats]:
        """Return the table M U, and of the words that have edges U = R^2 * (M X^T B), which the graph then spreads."""
        table = self._table(dual, self._squares).copy()
        return table, self._memory.array("edges", len(self._block.words), dual.shape[1]).copy()

    def _table(self, dual: Floats, squares: Floats | None) -> Floats:
        rows = self._memory.array("words", self._transposed.shape[0], dual.shape[1])
        multiply(self._transposed, dual, self._pool, rows)
        self._block.apply(rows)
        rows *= 1 if squares is None else squares
        self._block.apply(rows)
        return rows

    def product(self, columns: npt.NDArray[np.intp]) -> Callable[[Floats], Floats]:
        """Return the function B -> K B for some columns."""
        squares = self._squares
        if squares is not None and len(columns) < squares.shape[1]:
            squares = np.ascontiguousarray(squares[:, columns])
        if self._dense is None:
            return lambda dual: multiply(self._documents, self._table(dual, squares), self._pool)
        own, other = (1, 1) if squares is None else (squares[self._block.words], squares[self._others])
        return lambda dual: self._dense_product(dual, own, other)

    def _dense_product(self, dual: Floats, own_squares: Floats | int, other_squares: Floats | int) -> Floats:
        assert self._dense is not None
        documents, transposed = self._parts
        rows = multiply(transposed, dual, self._pool)
        rows *= other_squares
        scores = multiply(documents, rows, self._pool)
        scores += self._dense.T @ ((self._dense @ dual) * own_squares)
        return scores
