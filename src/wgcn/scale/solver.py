"""Newton's method of `wgcn.linear.solver` for documents that do not fit into memory, in coordinates of words.

There, W = Z^T beta with one number per document. Here beta is known only by u = X^T beta, one number per word, which
is all that scores need:

    K beta = X table(u)              table(u) = M (R^2 * (M u)) + S V(u)      (`wgcn.linear.operator`)
    beta^T K beta' = u^T table(u')

So the iterates are the same up to rounding. Documents are met only in sums over parts of them (`wgcn.scale.passes`):
an iteration of conjugate gradients takes one pass, X^T (weight * X table(direction)), and a step two passes for X table
of the step and of where it leads, two for the gradient and the weights there, and some cheap ones that look at scores
alone, for its length and b. Sums are added in the order of a fixed tree, whichever workers made them.

Shapes
------
u, its table, residual, direction, step : (words, columns)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wgcn.base.arrays import Floats
from wgcn.linear.operator import WordOperator
from wgcn.linear.solver import Columns, Doubles, Mask, Product, Slope, State
from wgcn.scale.passes import Part, Place, bias_slopes, curved, edges, gradient, line_slopes, write_scratch
from wgcn.scale.workers import Workers


class SumsOperator(WordOperator):
    """From sums of documents, u = X^T B, to the table of words."""

    def product(self, columns: Columns) -> Product:
        """Return the function u -> table(u) for some columns."""
        squares = self._squares_of(columns)
        return lambda sums: self._applied(sums, *squares)[0]

    def _sums(self, dual: Floats) -> Floats:
        return np.array(dual, order="C")


class ShardedProblem(NamedTuple):
    """What is minimised."""

    table: Callable[[Columns], Product]  # u -> table(u) for some columns
    parts: Sequence[Part]
    workers: Workers
    scratch: Path  # a folder that all workers can read
    n_words: int
    columns: slice  # which of the classes
    dtype: npt.DTypeLike = np.float32
    given: tuple[Floats, Floats] | None = None  # a table and a bias, to whose scores those of W are added


class ShardedState(State):
    """Where the columns are: `dual` is u, and `scores` is table(u)."""

    def __init__(self, problem: ShardedProblem, start: Floats | None) -> None:
        n_columns = problem.columns.stop - problem.columns.start
        shape, everything = (problem.n_words, n_columns), np.arange(n_columns)
        self._problem = problem
        self._moves = np.zeros(n_columns, int)  # how often each column has moved: a part of the names of its scores
        self._place = Place(everything, (), "", np.zeros(0), 0)
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
        place = self._at(columns)
        found = np.stack(list(self._problem.workers.map(edges, self._problem.parts, place)))  # (parts, 2, columns)

        def slope(shift: Doubles) -> tuple[Doubles, Doubles]:
            down, bend, _ = self._sums(bias_slopes, place, shift)
            return down, bend

        return found[:, 0].min(axis=0), found[:, 1].max(axis=0), slope

    def _along(self, columns: Columns, image: Floats) -> tuple[Doubles, Slope]:
        place, step = self._at(columns), self._write("step", image)
        given = place, tuple(f"{name}-step" for name in place.names), step
        total, whole = self._sums(line_slopes, *given, None, np.zeros(len(columns)))
        shift = -total / np.maximum(whole, 1e-30)

        def slope(length: Doubles) -> tuple[Doubles, Doubles]:
            down, bend = self._sums(line_slopes, *given, shift, length)
            return down, bend

        return shift, slope

    def _loss(self, columns: Columns) -> Doubles:
        return np.asarray(self._sums(bias_slopes, self._at(columns), np.zeros(len(columns)))[2])

    def _sums(self, function: Callable[..., Doubles], *given: Any) -> Doubles:
        """Return the sums of small results, in the order of the parts."""
        return np.asarray(np.sum(list(self._problem.workers.map(function, self._problem.parts, *given)), axis=0))

    def _added(self, function: Callable[..., Any], *given: Any) -> tuple[Floats, Doubles]:
        total, sums = self._problem.workers.total(function, self._problem.parts, *given)
        return total, sums

    def _at(self, columns: Columns) -> Place:
        """Return where columns are now."""
        bias, given, classes = self.bias[columns], self._problem.given, columns + self._problem.columns.start
        names = tuple(f"scores-{c}-{n}" for c, n in zip(classes, self._moves[columns], strict=True))
        if names != self._place.names:
            table = self.scores[:, columns]
            if given is not None:
                table += given[0][:, columns]
            self._place = Place(classes, names, self._write("table", table), bias, self._problem.n_words)
        return self._place._replace(bias=bias if given is None else bias + given[1][columns])

    def _write(self, name: str, table: Floats) -> str:
        path = self._problem.scratch / f"{name}.npy"
        write_scratch(path, np.ascontiguousarray(table))
        return str(path)

    def _forget(self, columns: Columns) -> None:
        """Delete the scores of where columns were before."""
        for part in self._problem.parts:
            for column in columns.tolist():
                name = f"scores-{column + self._problem.columns.start}-{self._moves[column] - 1}"
                for ending in ("", "-step"):
                    Path(part.scratch, f"{name}{ending}").unlink(missing_ok=True)
