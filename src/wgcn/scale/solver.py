"""Newton's method of `wgcn.linear.solver` for documents that do not fit into memory, in coordinates of words.

There, W = Z^T beta with one number per document. Here beta is known only by u = X^T beta, one number per word, which
is all that scores need:

    K beta = X table(u)              table(u) = M (R^2 * (M u)) + S V(u)      (`wgcn.linear.operator`)
    beta^T K beta' = u^T table(u')

So the iterates are the same up to rounding. Documents are met only in sums over partitions. Each is a pure function of
a partition and of tables with a row per word, so it can be run anywhere, and again: an iteration of conjugate gradients
takes one pass, X^T (weight * X table(direction)), and a step two passes for X table of the step and of where it leads,
two for the gradient and the weights there, and some cheap ones that look at scores alone, for its length and b. The
scores X table of a column are needed many times, so they are kept in a file beside the labels; where the file is
missing or cut, it is made again. Sums are added in the order of a fixed tree, whichever workers made them.

Shapes
------
X : (documents, words); u, its table, residual, direction, step : (words, columns); scores, signs, weight : (columns,
documents), since most passes go through the documents of a column; cost : (documents,)
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.lib.format as npy
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.arrays import Floats, Ints
from wgcn.base.files import writing
from wgcn.base.products import multiply
from wgcn.base.threads import compiled
from wgcn.linear.operator import WordOperator
from wgcn.linear.solver import Columns, Doubles, Mask, Product, Slope, State
from wgcn.scale.documents import Partition
from wgcn.scale.store import WorkFolder
from wgcn.scale.workers import Workers

_LABELS = "labels", "label_offsets", "cost"


class SumsOperator(WordOperator):
    """From sums of documents, u = X^T B, to the table of words."""

    def product(self, columns: Columns) -> Product:
        """Return the function u -> table(u) for some columns."""
        squares = self._squares_of(columns)
        return lambda sums: self._applied(sums, *squares)[0]

    def _sums(self, dual: Floats) -> Floats:
        return np.array(dual, order="C")


@dataclass(frozen=True)
class FitPartition:
    """A partition of X in a fit."""

    partition: Partition
    work: WorkFolder
    scratch: str  # folder of this partition in this fit, with the labels and, later, scores
    n_words: int
    lead: int = 0

    def read_rows(self) -> csr_array:
        """Return X."""
        return self.partition.read(self.work, self.lead, self.n_words)

    def write_labels(self, targets: csr_array, cost: Floats) -> None:
        """Keep which documents have a class, (documents, columns), and what each costs, 0 for nothing."""
        by_class = targets.tocsc()
        for name, array in zip(_LABELS, (by_class.indices, by_class.indptr, cost), strict=True):
            write_scratch(Path(self.scratch, f"{name}.npy"), array)

    def read_labels(self, columns: Ints) -> tuple[npt.NDArray[np.int8], Floats]:
        """Return y of some columns, 1 or -1, and the cost."""
        labels, offsets, cost = (np.load(Path(self.scratch, f"{name}.npy")) for name in _LABELS)
        signs = np.full((len(columns), len(cost)), -1, np.int8)
        for row, column in zip(signs, columns, strict=True):
            row[labels[offsets[column] : offsets[column + 1]]] = 1
        return signs, cost


@dataclass(frozen=True, eq=False)
class Iterate:
    """Where some columns of a fit are: s = X table + bias."""

    columns: Ints  # (columns,)
    names: tuple[str, ...]  # of the files with the scores
    table: str  # name of the file with the table, (words, columns)
    bias: Doubles  # (columns,)

    def read(self, part: FitPartition) -> tuple[npt.NDArray[np.int8], Floats, Floats, Floats]:
        """Return signs, scores X table, cost and bias."""
        (signs, cost), scores = part.read_labels(self.columns), read_products(part, self.names, self.table)
        return signs, scores, cost, self.bias.astype(scores.dtype)


def read_products(part: FitPartition, names: tuple[str, ...], table: str) -> Floats:
    """Return X table, (columns, documents), and keep each column under a name."""
    paths = [Path(part.scratch, name) for name in names]
    products = np.empty((len(names), part.partition.n_documents), part.partition.value_type)
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


def write_scratch(path: Path, array: Floats | Ints, *, header: bool = True) -> None:
    """Write an array, whole or not at all. It can be made again, so it need not outlast a failure of the machine."""
    temporary, array = path.with_name(f".wgcn-{secrets.token_hex(8)}"), np.ascontiguousarray(array)
    with writing(path):
        with temporary.open("xb") as file:
            if header:  # np.save does not say why it could not write
                npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(array))
            file.write(array.data)
        temporary.replace(path)


class ShardedProblem(NamedTuple):
    """What is minimised."""

    table: Callable[[Columns], Product]  # u -> table(u) for some columns
    parts: Sequence[FitPartition]
    workers: Workers
    scratch: Path  # a folder that all workers can read
    columns: slice  # which of the classes
    dtype: npt.DTypeLike = np.float32
    given: tuple[Floats, Floats] | None = None  # a table and a bias, to whose scores those of W are added


class ShardedState(State):
    """Where the columns are: `dual` is u, and `scores` is table(u)."""

    def __init__(self, problem: ShardedProblem, start: Floats | None) -> None:
        n_columns = problem.columns.stop - problem.columns.start
        shape, everything = (problem.parts[0].n_words, n_columns), np.arange(n_columns)
        self._problem = problem
        self._moves = np.zeros(n_columns, int)  # how often each column has moved: a part of the names of its scores
        self._iterate = Iterate(everything, (), "", np.zeros(0))
        self._whole = np.zeros(n_columns)  # sums of the weights
        self.dual = np.zeros(shape, problem.dtype) if start is None else start.astype(problem.dtype)
        self.scores = np.zeros_like(self.dual) if start is None else self.product(everything)(self.dual)
        self.bias, self.objective = np.zeros(n_columns), np.zeros(n_columns)
        self.settle(everything)

    def product(self, columns: Columns) -> Product:
        """Return the function u -> table(u) for some columns."""
        return self._problem.table(columns)

    def begin(self, columns: Columns) -> tuple[Floats, Floats]:
        """Return X^T weight, and X^T (gamma - beta)."""
        weight, self._whole[columns] = self._added(gradient, self._at(columns), True)
        residual, _ = self._added(gradient, self._at(columns), False)
        residual -= self.dual[:, columns]
        return weight, residual

    def curved(self, columns: Columns, weight: Floats, direction: Floats, image: Floats) -> Floats:
        """Return X^T of (I + C K) of the direction; `weight` is X^T weight, `image` is table(direction)."""
        products, sums = self._added(curved, self._at(columns), image)
        whole = self._whole[columns]
        mean = np.divide(sums, whole, out=np.zeros_like(sums), where=whole > 0)
        products -= mean.astype(products.dtype) * weight
        products += direction
        return products

    def is_near(self, residual: Floats) -> Mask:
        """Return that no column is: the dual of a single document is not known."""
        return np.zeros(residual.shape[1], bool)

    def settle(self, columns: Columns) -> None:
        """Find the best b, and the objective."""
        self._moves[columns] += 1
        super().settle(columns)
        self._forget(columns)

    def _around(self, columns: Columns) -> tuple[Doubles, Doubles, Slope]:
        iterate = self._at(columns)
        found = np.stack(list(self._problem.workers.map(edges, self._problem.parts, iterate)))  # (parts, 2, columns)

        def slope(shift: Doubles) -> tuple[Doubles, Doubles]:
            down, bend, _ = self._sums(bias_slopes, iterate, shift)
            return down, bend

        return found[:, 0].min(axis=0), found[:, 1].max(axis=0), slope

    def _along(self, columns: Columns, image: Floats) -> tuple[Doubles, Slope]:
        iterate, step = self._at(columns), self._write("step", image)
        given = iterate, tuple(f"{name}-step" for name in iterate.names), step
        total, whole = self._sums(line_slopes, *given, None, np.zeros(len(columns)))
        shift = -total / np.maximum(whole, 1e-30)

        def slope(length: Doubles) -> tuple[Doubles, Doubles]:
            down, bend = self._sums(line_slopes, *given, shift, length)
            return down, bend

        return shift, slope

    def _loss(self, columns: Columns) -> Doubles:
        return np.asarray(self._sums(bias_slopes, self._at(columns), np.zeros(len(columns)))[2])

    def _sums(self, function: Callable[..., Doubles], *given: object) -> Doubles:
        """Return the sums of small results, in the order of the parts."""
        return np.asarray(np.sum(list(self._problem.workers.map(function, self._problem.parts, *given)), axis=0))

    def _added(self, function: Callable[..., tuple[Floats, Doubles]], *given: object) -> tuple[Floats, Doubles]:
        return self._problem.workers.total(function, self._problem.parts, *given)

    def _at(self, columns: Columns) -> Iterate:
        """Return where columns are now."""
        bias, given, classes = self.bias[columns], self._problem.given, columns + self._problem.columns.start
        names = tuple(f"scores-{c}-{n}" for c, n in zip(classes, self._moves[columns], strict=True))
        if names != self._iterate.names:
            table = self.scores[:, columns]
            if given is not None:
                table += given[0][:, columns]
            self._iterate = Iterate(classes, names, self._write("table", table), bias)
        return replace(self._iterate, bias=bias if given is None else bias + given[1][columns])

    def _write(self, name: str, table: Floats) -> str:
        path = self._problem.scratch / f"{name}.npy"
        write_scratch(path, table)
        return str(path)

    def _forget(self, columns: Columns) -> None:
        """Delete the scores of where columns were before."""
        for part in self._problem.parts:
            for column in columns.tolist():
                name = f"scores-{column + self._problem.columns.start}-{self._moves[column] - 1}"
                for ending in ("", "-step"):
                    Path(part.scratch, f"{name}{ending}").unlink(missing_ok=True)


def edges(part: FitPartition, iterate: Iterate) -> Doubles:
    """Return the least and the largest y - s of documents that cost something, (2, columns)."""
    found = np.empty((2, len(iterate.columns)))
    _edges(*iterate.read(part), found)
    return found


def bias_slopes(part: FitPartition, iterate: Iterate, shift: Doubles) -> Doubles:
    """Return derivatives of the loss by b after a shift, first and second, and twice the loss itself, (3, columns)."""
    known, found = iterate.read(part), np.zeros((3, len(iterate.columns)))
    _bias_slopes(*known, shift.astype(known[1].dtype), found)
    return found


def line_slopes(
    part: FitPartition, iterate: Iterate, names: tuple[str, ...], step: str, shift: Doubles | None, length: Doubles
) -> Doubles:
    """Return derivatives of the loss by the length of a step, whose table is a file, while b changes by a shift.

    Without a shift, return the sums of weight times X step, and of weight. Of shape (2, columns).
    """
    known, found = iterate.read(part), np.zeros((2, len(iterate.columns)))
    image = read_products(part, names, step)
    if shift is None:
        _weighted_sums(*known, image, found)
    else:
        _line_slopes(*known, image, shift.astype(image.dtype), length.astype(image.dtype), found)
    return found


def gradient(part: FitPartition, iterate: Iterate, squares: bool) -> tuple[Floats, Doubles]:
    """Return X^T gamma and the sums of gamma, or with `squares` X^T weight and the sums of weight."""
    signs, scores, cost, bias = iterate.read(part)
    _weigh(signs, scores, cost, bias, squares)
    return _back(part.read_rows(), scores)


def curved(part: FitPartition, iterate: Iterate, direction: Floats) -> tuple[Floats, Doubles]:
    """Return X^T (weight * X direction), and the sums of weight * X direction."""
    signs, weight, cost, bias = iterate.read(part)
    _weigh(signs, weight, cost, bias, True)
    rows = part.read_rows()
    weight *= _products(rows, direction)
    return _back(rows, weight)


def class_counts(part: FitPartition, columns: Ints | None) -> Floats:
    """Return for each word what the documents that have it cost, (words, columns): of each class, or None for all."""
    rows = part.read_rows()
    signs, cost = part.read_labels(np.empty(0, np.int64) if columns is None else columns)
    weights = cost[None] if columns is None else np.where(signs > 0, cost, 0).astype(cost.dtype)
    rows.data = (rows.data != 0).astype(cost.dtype)
    return _back(rows, weights)[0]


def _products(rows: csr_array, table: Floats) -> Floats:
    """Return X table, (columns, documents)."""
    return np.ascontiguousarray(multiply(rows, table).T)


def _back(rows: csr_array, weights: Floats) -> tuple[Floats, Doubles]:
    """Return X^T weights, (words, columns), and the sums of weights."""
    total = np.zeros((rows.shape[1], len(weights)), weights.dtype)
    _add_columns(rows.data, rows.indices, rows.indptr, np.ascontiguousarray(weights.T), total)
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
