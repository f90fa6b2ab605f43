"""The linear operator of the model, between documents and the table of words.

    table      B -> M (R^2 * (M X^T B)) + S V(B)    one row per word; M = I + a A, the word graph with a residual (eq. 8
                                                    and eq. 11 without activation)
    V          B -> b^2 R_s^2 * (S^T X^T B)         one row per subword; S: the subwords of words
    product    B -> X table(B)                      K B in `wgcn.linear.solver`: the scores of documents

So the whole is X [M, b S] with weights for words and for subwords. A product costs the entries of X, A and S, not those
of X S, which are ten times as many. Products are written to memory that is kept between calls: on 20NG, allocating took
as long as the product itself.

Shapes
------
X : (documents, words), A : (words, words), S : (words, subwords), R : (words, columns), R_s : (subwords, columns),
B : (documents, columns)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.products import Floats, multiply, with_edges, with_entries

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
            own = self._memory.array("edges", len(self.words), rows.shape[1])
            np.take(rows, self.words, axis=0, out=own, mode="clip")
            multiply(self._adjacency, own, self._pool, rows, places=self.words, factor=self._factor)

    def spread(self, rows: Floats) -> Floats:
        """Return M times rows of the words that have edges."""
        assert self._adjacency is not None
        everywhere = np.arange(len(rows))
        return multiply(self._adjacency, rows, self._pool, rows.copy(), places=everywhere, factor=self._factor)


class SubwordBlock:
    """b S: what is learnt of a subword counts for every word that has it. Without S, or with b = 0, it is nothing."""

    def __init__(self, subwords: csr_array | None, factor: float, pool: ThreadPoolExecutor, memory: Memory) -> None:
        self._pool, self._memory, self.words = pool, memory, np.empty(0, np.int64)
        self.matrix: csr_array | None = None
        if subwords is None or factor == 0 or not subwords.nnz:
            return
        self.words, self.matrix = with_entries(subwords)
        self._transposed, self._weight = csr_array(self.matrix.T), self.matrix.dtype.type(factor)
        self.scale(None)

    def scale(self, scales: Floats | None) -> None:
        """Take R_s from now on, or R_s = 1 if it is None; with b they are squared in place."""
        if self.matrix is not None:
            square = self._weight * self._weight
            self.squares = np.full((1, 1), square) if scales is None else np.square(scales, out=scales)
            if scales is not None:
                self.squares *= square

    def learnt(self, rows: Floats, squares: Floats) -> Floats:
        """Return V from the rows X^T B of all words."""
        n_columns = rows.shape[1]
        own = self._memory.array("spelt", len(self.words), n_columns)
        np.take(rows, self.words, axis=0, out=own, mode="clip")
        learnt = self._memory.array("subwords", self._transposed.shape[0], n_columns)
        multiply(self._transposed, own, self._pool, learnt)
        learnt *= squares
        return learnt

    def add(self, learnt: Floats, rows: Floats) -> None:
        """Add S V to the rows of words."""
        assert self.matrix is not None
        multiply(self.matrix, learnt, self._pool, rows, places=self.words)


def row_slice(matrix: csr_array, begin: int, end: int) -> csr_array:
    """Return rows that follow each other, without a copy."""
    first, last = matrix.indptr[begin], matrix.indptr[end]
    parts = matrix.data[first:last], matrix.indices[first:last], matrix.indptr[begin : end + 1] - first
    return csr_array(parts, shape=(end - begin, matrix.shape[1]))


class WordOperator:
    """What is done with sums of documents X^T B, wherever they come from. Without `scale`, R and R_s are 1."""

    def __init__(self, blocks: tuple[GraphBlock, SubwordBlock], memory: Memory) -> None:
        (self._graph, self._subwords), self._memory = blocks, memory
        self._squares: Floats | None = None  # R^2

    def scale(self, own: Floats | None, spelt: Floats | None) -> None:
        """Take R and R_s of the columns to come from now on; they are squared in place. None is 1."""
        self._squares = None if own is None else np.square(own, out=own)
        self._subwords.scale(spelt)

    def tables(self, dual: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Return M (R^2 * (M X^T B)) + S V, whose rows of the words of a document, weighted, sum to its score.

        Return also, of the words that have edges, U = R^2 * (M X^T B), which the graph then spreads, and V.
        """
        table, learnt = self._applied(dual, *self._squares_of(np.arange(dual.shape[1])))
        own = self._memory.array("edges", len(self._graph.words), dual.shape[1])
        return table.copy(), own.copy(), None if learnt is None else learnt.copy()

    def _squares_of(self, columns: npt.NDArray[np.intp]) -> tuple[Floats | None, Floats | None]:
        """Return R^2 and b^2 R_s^2 for some columns."""
        squares = self._squares, None if self._subwords.matrix is None else self._subwords.squares
        first, second = (
            each if each is None or each.shape[1] in (1, len(columns)) else np.take(each, columns, axis=1)
            for each in squares
        )
        return first, second

    def _applied(
        self, dual: Floats, squares: Floats | None, subword_squares: Floats | None
    ) -> tuple[Floats, Floats | None]:
        rows = self._sums(dual)
        learnt = None if subword_squares is None else self._subwords.learnt(rows, subword_squares)
        self._graph.apply(rows)
        rows *= 1 if squares is None else squares
        self._graph.apply(rows)
        if learnt is not None:
            self._subwords.add(learnt, rows)
        return rows, learnt

    @abstractmethod
    def _sums(self, dual: Floats) -> Floats:
        """Return X^T B, to be written to."""


class DocumentOperator(WordOperator):
    """From documents to the table of words, and to the scores of documents."""

    def __init__(
        self,
        documents: csr_array,
        transposed: csr_array,
        blocks: tuple[GraphBlock, SubwordBlock],
        pool: ThreadPoolExecutor,
        memory: Memory,
    ) -> None:
        super().__init__(blocks, memory)
        self._documents, self._transposed, self._pool, self._dense = documents, transposed, pool, None
        words, n_edges = self._graph.words, self._graph.n_edges
        few_terms = n_edges == 0 and documents.nnz < documents.shape[1]
        if documents.shape[0] * len(words) < _DENSE_GAIN * n_edges or few_terms:  # few documents
            own = documents[:, words].T.toarray(order="C").astype(documents.dtype, copy=False)
            # M X^T of the words that have edges, (words, documents)
            self._dense = self._graph.spread(own) if n_edges else own
            self._others = np.setdiff1d(documents.indices, words)
            self._parts = csr_array(documents[:, self._others]), csr_array(transposed[self._others])
            if self._subwords.matrix is not None:
                spelt = csr_array(csr_array(documents[:, self._subwords.words]) @ self._subwords.matrix)
                self._spelt = spelt, csr_array(spelt.T)  # X S, (documents, subwords)

    def scores(self, table: Floats) -> Floats:
        """Return X times a table of words."""
        return multiply(self._documents, np.ascontiguousarray(table, self._documents.dtype), self._pool)

    def _sums(self, dual: Floats) -> Floats:
        rows = self._memory.array("words", self._transposed.shape[0], dual.shape[1])
        return multiply(self._transposed, dual, self._pool, rows)

    def product(self, columns: npt.NDArray[np.intp]) -> Callable[[Floats], Floats]:
        """Return the function B -> K B for some columns."""
        squares, subword_squares = self._squares_of(columns)
        if self._dense is None:
            return lambda dual: multiply(self._documents, self._applied(dual, squares, subword_squares)[0], self._pool)
        own, other = (1, 1) if squares is None else (squares[self._graph.words], squares[self._others])
        return lambda dual: self._dense_product(dual, own, other, subword_squares)

    def _dense_product(
        self, dual: Floats, own_squares: Floats | int, other_squares: Floats | int, subword_squares: Floats | None
    ) -> Floats:
        assert self._dense is not None
        scores = self._dense.T @ ((self._dense @ dual) * own_squares)
        parts = [(self._parts, other_squares)]
        if subword_squares is not None:
            parts.append((self._spelt, subword_squares))
        for (documents, transposed), squares in parts:
            rows = multiply(transposed, dual, self._pool)
            rows *= squares
            scores += multiply(documents, rows, self._pool)
        return np.asarray(scores)
