"""The linear operator of the model: from word weights to scores of documents, and back.

    scores = X M (R * W)        M = I + a A, the word graph with a residual (eq. 8 and 11 without their activation)

The solver sees only `forward` and `adjoint`; a further block of M is a further class with the same two methods. All
products are taken in memory that is kept between calls: on 20NG new memory cost as much as the product itself.

Shapes
------
X : (documents, words), A : (words, words), R and W : (words, columns), scores : (documents, columns)
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.linear.kernels import add_product, multiply

__all__ = ["DocumentOperator", "GraphBlock"]

Floats = npt.NDArray[Any]


class GraphBlock:
    """M = I + a A for a symmetric A, so that the adjoint of M is M itself.

    Parameters
    ----------
    adjacency : csr_array of shape (words, words), optional
        A, symmetric. None, or a factor of 0, makes M the identity.
    factor : float
        a.
    pool : ThreadPoolExecutor
    """

    def __init__(self, adjacency: csr_array | None, factor: float, pool: ThreadPoolExecutor) -> None:
        self.adjacency = None if factor == 0 else adjacency
        self.factor, self._pool = factor, pool

    @property
    def is_identity(self) -> bool:
        """Whether M changes nothing."""
        return self.adjacency is None

    def forward(self, weights: Floats, out: Floats | None = None) -> Floats:
        """Return M W; where M is the identity, W itself."""
        if self.adjacency is None:
            return weights
        return add_product(weights, self.factor, self.adjacency, weights, self._pool, out)

    adjoint = forward

    def is_larger_than(self, documents: csr_array) -> bool:
        """Whether X M, formed once and held densely, has fewer entries than A."""
        return self.adjacency is not None and documents.shape[0] * documents.shape[1] < self.adjacency.nnz


class DocumentOperator:
    """W -> X M (R * W).

    Parameters
    ----------
    documents : csr_array of shape (documents, words)
        X.
    block : GraphBlock
        M.
    scales : array of shape (words, columns), optional
        R; 1 if left out.
    n_columns : int
        Columns of W.
    pool : ThreadPoolExecutor
    """

    def __init__(
        self, documents: csr_array, block: GraphBlock, scales: Floats | None, n_columns: int, pool: ThreadPoolExecutor
    ) -> None:
        self._block, self._scales, self._pool = block, scales, pool
        self.shape = documents.shape[1], n_columns
        self._rooms = [np.empty(self.shape, documents.dtype) for _ in range(2)]
        self._dense: Floats | None = None
        if block.is_larger_than(documents):  # few documents: X M costs less to hold than A costs to apply
            self._dense = np.ascontiguousarray(block.forward(documents.toarray().T.copy()).T)
        else:
            self._documents, self._transposed = documents, csr_array(documents.T)

    def table(self, weights: Floats) -> Floats:
        """Return M (R * W), the row of each word that a document adds up."""
        scaled = weights if self._scales is None else self._scales * weights
        return self._block.forward(scaled)

    def forward(self, weights: Floats) -> Floats:
        """Return X M (R * W)."""
        scaled = weights if self._scales is None else np.multiply(self._scales, weights, out=self._rooms[0])
        if self._dense is not None:
            return np.asarray(self._dense @ scaled)
        return multiply(self._documents, self._block.forward(scaled, self._rooms[1]), self._pool)

    def adjoint(self, slopes: Floats, out: Floats) -> Floats:
        """Write R * (M X^T G), the gradient in W of a function whose slopes in the scores are G, to `out`."""
        if self._dense is not None:
            back = self._dense.T @ slopes
        else:
            back = self._block.adjoint(multiply(self._transposed, slopes, self._pool, self._rooms[0]), self._rooms[1])
        if self._scales is None:
            out[:] = back
            return out
        np.multiply(self._scales, back, out=out)
        return out
