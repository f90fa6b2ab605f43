"""Passes over the documents of a fit, one part at a time: all that `wgcn.scale.solver` needs to know of documents.

A part has the rows X of some documents, their labels and what each costs. Each function here is a pure function of the
part and of tables with a row per word, so it can be run anywhere, and again. The scores X T of a column are needed many
times, so they are kept in a file beside the labels; where the file is missing or cut, it is made again.

Shapes
------
X : (documents, words); T : (words, columns); scores, signs, weight : (columns, documents), since most passes go through
the documents of a column; cost : (documents,)
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.lib.format as npy
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.arrays import Floats, Ints
from wgcn.base.files import writing
from wgcn.base.products import NOWHERE, multiply_rows
from wgcn.base.threads import compiled
from wgcn.scale.documents import Rows, StoredRows

Doubles = npt.NDArray[np.float64]

_LABELS = "labels", "label_offsets", "cost"


@dataclass(frozen=True)
class Part:
    """Where the documents of a part of a fit are."""

    stored: StoredRows
    scratch: str  # folder of this part in this fit, with the labels and, later, scores
    lead: int = 0

    def read_rows(self) -> Rows:
        """Return X."""
        return self.stored.read(self.lead)

    def write_labels(self, targets: csr_array, cost: Floats) -> None:
        """Keep which documents have a class, (documents, columns), and what each costs, 0 for nothing."""
        by_class = targets.tocsc()
        for name, array in zip(_LABELS, (by_class.indices, by_class.indptr, cost), strict=True):
            write_scratch(Path(self.scratch, f"{name}.npy"), array)

    def read_signs(self, columns: Ints, *between: Floats) -> tuple[Any, ...]:
        """Return y of some columns, 1 or -1, and the cost."""
        labels, offsets, cost = (np.load(Path(self.scratch, f"{name}.npy")) for name in _LABELS)
        signs = np.full((len(columns), len(cost)), -1, np.int8)
        for row, column in zip(signs, columns, strict=True):
            row[labels[offsets[column] : offsets[column + 1]]] = 1
        return signs, *between, cost


class Place(NamedTuple):
    """Where some columns of a fit are: s = X table + bias."""

    columns: Ints  # (columns,)
    names: tuple[str, ...]  # of the files with the scores
    table: str  # name of the file with the table, (words, columns)
    bias: Doubles  # (columns,)
    n_words: int

    def read(self, part: Part) -> tuple[npt.NDArray[np.int8], Floats, Floats, Floats]:
        """Return signs, scores X table, cost and bias."""
        scores = read_products(part, self.names, self.table)
        return *part.read_signs(self.columns, scores), self.bias.astype(scores.dtype)


def read_products(part: Part, names: tuple[str, ...], table: str) -> Floats:
    """Return X table, (columns, documents), and keep each column under a name."""
    paths = [Path(part.scratch, name) for name in names]
    products = np.empty((len(names), part.stored.n_documents), part.stored.dtype)
    try:
        for path, column in zip(paths, products, strict=True):
            with path.open("rb") as file:
                if file.readinto(column.data) < column.nbytes:
                    raise OSError("it was cut")
    except OSError:
        products = _products(part.read_rows(), np.load(table))
        for path, column in zip(paths, products, strict=True):
            write_scratch(path, column, header=False)
    return products


def write_scratch(path: Path, array: npt.NDArray[Any], *, header: bool = True) -> None:
    """Write an array, whole or not at all. It can be made again, so it need not outlast a failure of the machine."""
    temporary, array = path.with_name(f".wgcn-{secrets.token_hex(8)}"), np.ascontiguousarray(array)
    with writing(path):
        with temporary.open("xb") as file:
            if header:  # np.save does not say why it could not write
                npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(array))
            file.write(array.data)
        temporary.replace(path)


def _products(rows: Rows, table: Floats) -> Floats:
    """Return X table, (columns, documents)."""
    n = len(rows.offsets) - 1
    products = np.empty((n, table.shape[1]), table.dtype)
    multiply_rows(rows.offsets, rows.words, rows.values, table, products, NOWHERE, table.dtype.type(1), 0, n)
    return np.ascontiguousarray(products.T)


def edges(part: Part, place: Place) -> Doubles:
    """Return the least and the largest y - s of documents that cost something, (2, columns)."""
    found = np.empty((2, len(place.columns)))
    _edges(*place.read(part), found)
    return found


def bias_slopes(part: Part, place: Place, shift: Doubles) -> Doubles:
    """Return derivatives of the loss by b after a shift, first and second, and twice the loss itself, (3, columns)."""
    known, found = place.read(part), np.zeros((3, len(place.columns)))
    _bias_slopes(*known, shift.astype(known[1].dtype), found)
    return found


def line_slopes(
    part: Part, place: Place, names: tuple[str, ...], step: str, shift: Doubles | None, length: Doubles
) -> Doubles:
    """Return derivatives of the loss by the length of a step, whose table is a file, while b changes by a shift.

    Without a shift, return the sums of weight times X step, and of weight. Of shape (2, columns).
    """
    known, found = place.read(part), np.zeros((2, len(place.columns)))
    image = read_products(part, names, step)
    if shift is None:
        _weighted_sums(*known, image, found)
    else:
        _line_slopes(*known, image, shift.astype(image.dtype), length.astype(image.dtype), found)
    return found


def gradient(part: Part, place: Place, squares: bool) -> tuple[Floats, Doubles]:
    """Return X^T gamma and the sums of gamma, or with `squares` X^T weight and the sums of weight."""
    signs, scores, cost, bias = place.read(part)
    _weigh(signs, scores, cost, bias, squares)
    return _back(part.read_rows(), scores, place.n_words)


def curved(part: Part, place: Place, direction: Floats) -> tuple[Floats, Doubles]:
    """Return X^T (weight * X direction), and the sums of weight * X direction."""
    signs, weight, cost, bias = place.read(part)
    _weigh(signs, weight, cost, bias, True)
    rows = part.read_rows()
    weight *= _products(rows, direction)
    return _back(rows, weight, place.n_words)


def class_counts(part: Part, columns: Ints | None, n_words: int) -> Floats:
    """Return for each word what the documents that have it cost, (words, columns): of each class, or None for all."""
    rows = part.read_rows()
    signs, cost = part.read_signs(np.empty(0, np.int64) if columns is None else columns)
    weights = cost[None] if columns is None else np.where(signs > 0, cost, 0).astype(cost.dtype)
    return _back(rows._replace(values=(rows.values != 0).astype(cost.dtype)), weights, n_words)[0]


def _back(rows: Rows, weights: Floats, n_words: int) -> tuple[Floats, Doubles]:
    """Return X^T weights, (words, columns), and the sums of weights."""
    total = np.zeros((n_words, len(weights)), weights.dtype)
    _add_columns(*rows, np.ascontiguousarray(weights.T), total)
    return total, np.asarray(weights.sum(axis=1, dtype=np.float64))


@compiled
def _add_columns(values, words, offsets, weights, total):  # type: ignore[no-untyped-def]
    """Add X^T weights; here the weights have the shape (documents, columns)."""
    width = total.shape[1]
    for i in range(len(offsets) - 1):
        row = weights[i]
        if not row.any():
            continue
        for e in range(offsets[i], offsets[i + 1]):
            value, sums = values[e], total[words[e]]
            for j in range(width):
                sums[j] += value * row[j]


@compiled
def _weigh(signs, scores, cost, bias, squares):  # type: ignore[no-untyped-def]
    """Replace scores by gamma = cost slack y, or by the cost of documents with slack."""
    one = scores.dtype.type(1)
    for j in range(len(signs)):
        for i in range(len(cost)):
            slack = one - signs[j, i] * (scores[j, i] + bias[j])
            if slack > 0:
                scores[j, i] = cost[i] if squares else cost[i] * slack * signs[j, i]
            else:
                scores[j, i] = 0


@compiled
def _edges(signs, scores, cost, bias, found):  # type: ignore[no-untyped-def]
    for j in range(len(signs)):
        low, high = np.inf, -np.inf
        for i in range(len(cost)):
            if cost[i] > 0:
                end = signs[j, i] - (scores[j, i] + bias[j])
                low, high = min(low, end), max(high, end)
        found[0, j], found[1, j] = low, high


@compiled
def _bias_slopes(signs, scores, cost, bias, shift, found):  # type: ignore[no-untyped-def]
    one = scores.dtype.type(1)
    for j in range(len(signs)):
        down, bend, loss = 0.0, 0.0, 0.0
        for i in range(len(cost)):
            slack = one - signs[j, i] * (scores[j, i] + bias[j] + shift[j])
            if slack > 0:
                down -= cost[i] * slack * signs[j, i]
                bend += cost[i]
                loss += cost[i] * slack * slack
        found[0, j], found[1, j], found[2, j] = down, bend, loss


@compiled
def _weighted_sums(signs, scores, cost, bias, image, found):  # type: ignore[no-untyped-def]
    one = scores.dtype.type(1)
    for j in range(len(signs)):
        total, whole = 0.0, 0.0
        for i in range(len(cost)):
            if one - signs[j, i] * (scores[j, i] + bias[j]) > 0:
                total += cost[i] * image[j, i]
                whole += cost[i]
        found[0, j], found[1, j] = total, whole


@compiled
def _line_slopes(signs, scores, cost, bias, image, shift, length, found):  # type: ignore[no-untyped-def]
    one = scores.dtype.type(1)
    for j in range(len(signs)):
        down, bend = 0.0, 0.0
        for i in range(len(cost)):
            change = image[j, i] + shift[j]
            slack = one - signs[j, i] * (scores[j, i] + bias[j] + length[j] * change)
            if slack > 0:
                down -= cost[i] * slack * signs[j, i] * change
                bend += cost[i] * change * change
        found[0, j], found[1, j] = down, bend
