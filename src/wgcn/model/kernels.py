"""Compiled products of a sparse and a dense matrix, on several threads.

Each row is added up by one thread in a fixed order, so the result does not depend on the number of threads.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.sparse import csr_array

from wgcn.text.corpus import available_cores

__all__ = ["multiply"]


@njit(cache=True, nogil=True)
def _multiply_rows(indptr, columns, values, dense, product, first, last):  # type: ignore[no-untyped-def]
    width = dense.shape[1]
    for row in range(first, last):
        for j in range(width):
            product[row, j] = 0
        for k in range(indptr[row], indptr[row + 1]):
            value = values[k]
            column = columns[k]
            for j in range(width):
                product[row, j] += value * dense[column, j]


def multiply(sparse: csr_array, dense: npt.NDArray[Any], pool: ThreadPoolExecutor | None = None) -> npt.NDArray[Any]:
    """Return sparse @ dense.

    Parameters
    ----------
    sparse : csr_array of shape (m, n)
    dense : array of shape (n, k), C-contiguous
    pool : ThreadPoolExecutor, optional
        Threads to work on.
    """
    product = np.empty((sparse.shape[0], dense.shape[1]), dense.dtype)
    work = partial(_multiply_rows, sparse.indptr, sparse.indices, sparse.data, dense, product)
    if pool is None:
        work(0, sparse.shape[0])
    else:
        # Blocks of rows with equally many entries, a few for each core so that they end together.
        shares = np.linspace(0, sparse.nnz, 4 * available_cores() + 1)[1:-1]
        edges = [0, *np.searchsorted(sparse.indptr, shares).tolist(), sparse.shape[0]]
        list(pool.map(lambda rows: work(*rows), pairwise(edges)))
    return product
