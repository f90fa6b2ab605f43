"""Compiled products of a sparse and a dense matrix, on several threads.

Written by hand because scipy's product runs on one thread and allocates its result: 3 million edges times 40,000 rows
of 20 columns take 0.10 s with scipy and 0.03 s here on two cores. Each row is summed by one thread in a fixed order, so
the result does not depend on the number of threads.
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

Floats = npt.NDArray[Any]

_SMALL = 200_000  # multiplications that one thread has done before others have begun


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
    sparse: csr_array, dense: Floats, pool: ThreadPoolExecutor | None = None, out: Floats | None = None
) -> Floats:
    """Return sparse @ dense, (m, n) x (n, k), with `dense` C-contiguous; in `out` if given, to save the allocation."""
    product = np.empty((sparse.shape[0], dense.shape[1]), dense.dtype) if out is None else out
    rows = partial(_multiply_rows, sparse.indptr, sparse.indices, sparse.data, dense, product)
    _by_rows(rows, sparse, dense.shape[1], pool)
    return product


def add_product(
    base: Floats,
    factor: float,
    sparse: csr_array,
    dense: Floats,
    pool: ThreadPoolExecutor | None = None,
    out: Floats | None = None,
) -> Floats:
    """Return base + factor * (sparse @ dense) in one pass; `out`, if given, is neither base nor dense."""
    total = np.empty_like(base) if out is None else out
    rows = partial(_add_rows, sparse.indptr, sparse.indices, sparse.data, dense, base, dense.dtype.type(factor), total)
    _by_rows(rows, sparse, dense.shape[1], pool)
    return total


def _by_rows(
    work: Callable[[int, int], None], sparse: csr_array, n_columns: int, pool: ThreadPoolExecutor | None
) -> None:
    """Call `work` on blocks of rows with about equally many entries, several per core so that they end together."""
    if pool is None or sparse.nnz * n_columns < _SMALL:
        work(0, sparse.shape[0])
        return
    shares = np.linspace(0, sparse.nnz, 4 * available_cores() + 1)[1:-1]
    edges = [0, *np.searchsorted(sparse.indptr, shares).tolist(), sparse.shape[0]]
    list(pool.map(lambda rows: work(*rows), pairwise(edges)))
