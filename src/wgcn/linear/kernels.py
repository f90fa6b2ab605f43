"""Compiled products of a sparse and a dense matrix, on several threads.

Each row is added up by one thread in a fixed order, so the result does not depend on the number of threads.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.sparse import csr_array

from wgcn.cores import available_cores

__all__ = ["add_product", "multiply"]


@njit(cache=True, nogil=True)
def _multiply_row(indptr, columns, values, dense, product, row):  # type: ignore[no-untyped-def]
    width = dense.shape[1]
    for j in range(width):
        product[row, j] = 0
    for k in range(indptr[row], indptr[row + 1]):
        value = values[k]
        column = columns[k]
        for j in range(width):
            product[row, j] += value * dense[column, j]


@njit(cache=True, nogil=True)
def _multiply_rows(indptr, columns, values, dense, product, first, last):  # type: ignore[no-untyped-def]
    for row in range(first, last):
        _multiply_row(indptr, columns, values, dense, product, row)


@njit(cache=True, nogil=True)
def _add_rows(indptr, columns, values, dense, base, factor, total, first, last):  # type: ignore[no-untyped-def]
    for row in range(first, last):
        _multiply_row(indptr, columns, values, dense, total, row)
        for j in range(dense.shape[1]):
            total[row, j] = base[row, j] + factor * total[row, j]


def multiply(
    sparse: csr_array,
    dense: npt.NDArray[Any],
    pool: ThreadPoolExecutor | None = None,
    out: npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """Return sparse @ dense.

    Parameters
    ----------
    sparse : csr_array of shape (m, n)
    dense : array of shape (n, k), C-contiguous
    pool : ThreadPoolExecutor, optional
        Threads to work on.
    out : array of shape (m, k), optional
        Where to put it: new memory costs as much as filling it.
    """
    product = np.empty((sparse.shape[0], dense.shape[1]), dense.dtype) if out is None else out
    _by_rows(partial(_multiply_rows, sparse.indptr, sparse.indices, sparse.data, dense, product), sparse, pool)
    return product


def add_product(
    base: npt.NDArray[Any],
    factor: float,
    sparse: csr_array,
    dense: npt.NDArray[Any],
    pool: ThreadPoolExecutor | None = None,
    out: npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """Return base + factor * (sparse @ dense), in one go.

    Parameters
    ----------
    base : array of shape (m, k)
    factor : float
    sparse, dense, pool
        As for `multiply`.
    out : array of shape (m, k), optional
        Where to put it; neither base nor dense.
    """
    total = np.empty_like(base) if out is None else out
    rows = partial(_add_rows, sparse.indptr, sparse.indices, sparse.data, dense, base, dense.dtype.type(factor), total)
    _by_rows(rows, sparse, pool)
    return total


def _by_rows(work: Callable[[int, int], None], sparse: csr_array, pool: ThreadPoolExecutor | None) -> None:
    if pool is None:
        work(0, sparse.shape[0])
    else:
        # Blocks of rows with equally many entries, a few for each core so that they end together.
        shares = np.linspace(0, sparse.nnz, 4 * available_cores() + 1)[1:-1]
        edges = [0, *np.searchsorted(sparse.indptr, shares).tolist(), sparse.shape[0]]
        list(pool.map(lambda rows: work(*rows), pairwise(edges)))
