"""The linear operator of the model: from word weights to scores of documents, and back.

    forward    W -> X M (R * W)          M = I + a A, the word graph with a residual (eq. 8 and 11 without activation)
    adjoint    G -> R * (M^T X^T G)      the gradient in W of a function whose gradient in the scores is G

The solver sees only these two, and the operator sees only `forward` and `adjoint` of M: a further block of M is a
further class. Products are written to memory that is kept between calls: on 20NG, allocating took as
long as the product itself.

Shapes
------
X : (documents, words), A : (words, words), R and W : (words, columns), G and scores : (documents, columns)
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.sparse import csr_array

from wgcn.inference.terms import Floats
from wgcn.linear.kernels import multiply

__all__ = ["DocumentOperator", "GraphBlock"]


class GraphBlock:
    """M = I + a A for a symmetric A. Without A, or with factor a = 0, M is the identity."""

    def __init__(self, adjacency: csr_array | None, factor: float, pool: ThreadPoolExecutor) -> None:
        self._adjacency = None if factor == 0 else adjacency
        self._factor, self._pool = factor, pool

    def forward(self, rows: Floats, out: Floats | None = None) -> Floats:
        """Return M times rows of words."""
        if self._adjacency is None:
            return rows
        return multiply(self._adjacency, rows, self._pool, out, self._factor)

    adjoint = forward  # A is symmetric

    def is_larger_than(self, documents: csr_array) -> bool:
        """Whether forming X M once is cheaper than applying A every time: with few documents."""
        return self._adjacency is not None and documents.shape[0] * documents.shape[1] < self._adjacency.nnz


class DocumentOperator:
    """W -> X M (R * W); `scales` are R, or None for R = 1."""

    def __init__(
        self, documents: csr_array, block: GraphBlock, scales: Floats | None, n_columns: int, pool: ThreadPoolExecutor
    ) -> None:
        self._block, self._scales, self._pool = block, scales, pool
        self.shape = documents.shape[1], n_columns
        self._memory = [np.empty(self.shape, documents.dtype) for _ in range(2)]
        self._dense: Floats | None = None  # X M, (documents, words)
        if block.is_larger_than(documents):
            self._dense = np.ascontiguousarray(block.forward(documents.toarray().T.copy()).T)
        else:
            self._documents, self._transposed = documents, csr_array(documents.T)

    def table(self, weights: Floats) -> Floats:
        """Return M (R * W): one row per word, and a document's score is the weighted sum of its words' rows."""
        return self._block.forward(weights if self._scales is None else self._scales * weights)

    def forward(self, weights: Floats) -> Floats:
        """Return X M (R * W)."""
        scaled = weights if self._scales is None else np.multiply(self._scales, weights, out=self._memory[0])
        if self._dense is not None:
            return np.asarray(self._dense @ scaled)
        return multiply(self._documents, self._block.forward(scaled, self._memory[1]), self._pool)

    def adjoint(self, gradient: Floats, out: Floats) -> Floats:
        """Write R * (M^T X^T G) to `out`, and return it."""
        if self._dense is not None:
            back = self._dense.T @ gradient
        else:
            back = multiply(self._transposed, gradient, self._pool, self._memory[0])  # X^T G, (words, columns)
            back = self._block.adjoint(back, self._memory[1])
        np.multiply(1 if self._scales is None else self._scales, back, out=out)
        return out
