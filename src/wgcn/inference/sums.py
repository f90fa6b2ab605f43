"""Sums of table rows by the weights of terms, with numpy alone, or with compiled code that gives the same bits."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Floats", "Ints", "add_up", "is_compiled", "row_blocks"]

Floats = npt.NDArray[Any]  # single precision, or double where a model was fitted in it
Ints = npt.NDArray[Any]

# Values of gathered rows that are processed at a time: small enough for the caches.
_BLOCK_VALUES = 1 << 20


def is_compiled() -> bool:
    """Whether the compiled code is in memory: then it is used."""
    kernels = sys.modules.get("wgcn.text.kernels")
    return bool(kernels and getattr(kernels.add_rows, "signatures", ()))


def add_up(table: Floats, weights: Floats, words: Ints, offsets: Ints, new_rows: Floats | None = None) -> Floats:
    """Return X_dv H_vm: for each document the sum of the rows of its words, times their weights (see `Terms`).

    `new_rows` are the rows of words whose ids come after those of the table.
    """
    if new_rows is None:
        new_rows = table[:0]
    n_documents, hidden = len(offsets) - 1, table.shape[1]
    embedded = np.zeros((n_documents, hidden), table.dtype)
    if weights.dtype == embedded.dtype and is_compiled():
        from wgcn.text.kernels import add_rows

        add_rows(table, new_rows, words, weights, offsets.astype(np.int64, copy=False), embedded)
        return embedded
    for first, last in row_blocks(offsets, max(_BLOCK_VALUES // max(hidden, 1), 1)):
        begin, end = int(offsets[first]), int(offsets[last])
        if begin == end:
            continue
        # In double precision the product of two single ones is exact, so the compiled code, which may fuse it with the
        # addition, gives the same bits.
        ids, n_known = words[begin:end], len(table)
        rows = np.take(table, ids, axis=0, mode="clip")
        rows[ids >= n_known] = new_rows[ids[ids >= n_known] - n_known]
        terms = rows * weights[begin:end, None].astype(np.float64)
        embedded[first:last] = _sums_in_order(terms, offsets[first : last + 1] - begin)
    return embedded


def _sums_in_order(rows: Floats, offsets: Ints) -> Floats:
    """Return sums of groups of rows, added one row after the other, as compiled code does; `reduceat` adds in pairs."""
    starts, lengths = offsets[:-1], np.diff(offsets)
    sums, longest = np.zeros((len(starts), rows.shape[1])), int(lengths.max())
    if len(starts) <= 4 * longest:
        if rows.shape[1] == 1:  # numpy adds in pairs only where it adds neighbours in memory
            rows = np.hstack([rows, rows])
        for total, begin, end in zip(sums, starts, offsets[1:], strict=True):
            total += rows[begin:end].sum(axis=0)[: len(total)]
    else:
        for place in range(longest):
            groups = np.flatnonzero(lengths > place)
            sums[groups] += rows[starts[groups] + place]
    return sums


def row_blocks(offsets: Ints, n_terms: int) -> Iterator[tuple[int, int]]:
    """Cut rows into blocks of at most `n_terms` entries, or of one row that has more."""
    first, n_rows = 0, len(offsets) - 1
    while first < n_rows:
        last = int(np.searchsorted(offsets, offsets[first] + n_terms, side="right")) - 1
        last = min(max(last, first + 1), n_rows)
        yield first, last
        first = last
