"""Which classes documents have: a 0/1 matrix of shape (documents, classes), of which only the ones are held.

With 100,000 classes the dense matrix of as many documents takes 37 GiB; their codes take 0.4 MB. Dense are only the
blocks that `columns` and `toarray` return.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Targets:
    """The class of each document, or its classes.

    held : (documents,), int32, the class of each, -1 for none; or a csr_array of shape (documents, classes) with the
        ones, in order, if a document may have several
    """

    held: npt.NDArray[np.int32] | csr_array
    n_classes: int

    @classmethod
    def single(cls, codes: npt.NDArray[Any], n_classes: int) -> Targets:
        """Return the targets of documents with one class each, or none where the code is -1."""
        return cls(np.asarray(codes, np.int32), n_classes)

    @classmethod
    def of(cls, given: Any) -> Targets:
        """Return targets as they are, or those of a 0/1 matrix, dense or sparse."""
        if isinstance(given, Targets):
            return given
        matrix = csr_array(given, dtype=np.float32)
        matrix.eliminate_zeros()
        matrix.sum_duplicates()
        if (np.diff(matrix.indptr) == 1).all():
            return cls.single(matrix.indices, matrix.shape[1])
        return cls(matrix, matrix.shape[1])

    @classmethod
    def stacked(cls, parts: Sequence[Targets]) -> Targets:
        """Return the targets of documents below each other; the parts have the same classes."""
        if all(isinstance(part.held, np.ndarray) for part in parts):
            return cls(np.concatenate([part.held for part in parts]), parts[0].n_classes)
        return cls(csr_array(vstack([part.matrix for part in parts])), parts[0].n_classes)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of documents and of classes."""
        return len(self), self.n_classes

    def __len__(self) -> int:
        return int(self.held.shape[0])

    def __getitem__(self, rows: Any) -> Targets:
        """Return the targets of some documents: a mask, places or a slice."""
        return Targets(self.held[rows], self.n_classes)

    @property
    def matrix(self) -> csr_array:
        """The ones as a sparse matrix."""
        if not isinstance(self.held, np.ndarray):
            return self.held
        has_one = self.held >= 0
        indptr = np.concatenate([[0], np.cumsum(has_one)])
        return csr_array((np.ones(indptr[-1], np.float32), self.held[has_one], indptr), shape=self.shape)

    @cached_property
    def codes(self) -> npt.NDArray[np.int64]:
        """The class of each document: of several the first, 0 for none."""
        if isinstance(self.held, np.ndarray):
            return np.maximum(self.held, 0).astype(np.int64)
        codes, has_one = np.zeros(len(self), np.int64), np.diff(self.held.indptr) > 0
        codes[has_one] = self.held.indices[self.held.indptr[:-1][has_one]]
        return codes

    def columns(self, begin: int, end: int) -> npt.NDArray[np.float32]:
        """Return the dense columns of the classes from `begin` to before `end`."""
        if not isinstance(self.held, np.ndarray):
            return np.asarray(self.held[:, begin:end].toarray())
        block = np.zeros((len(self), end - begin), np.float32)
        rows = np.flatnonzero((self.held >= begin) & (self.held < end))
        block[rows, self.held[rows] - begin] = 1
        return block

    def toarray(self) -> npt.NDArray[np.float32]:
        """Return the dense matrix, for few documents or few classes."""
        return self.columns(0, self.n_classes)

    def sums(self, weight: npt.NDArray[Any] | None = None) -> npt.NDArray[np.float64]:
        """Return how many documents each class has, or their weight."""
        weight = np.ones(len(self)) if weight is None else weight
        if isinstance(self.held, np.ndarray):
            has_one = self.held >= 0
            return np.bincount(self.held[has_one], weight[has_one], self.n_classes).astype(np.float64)
        return np.asarray(self.held.T @ weight.astype(np.float64))

    def shares(self, weight: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the share of the documents that have each class, by weight."""
        return np.asarray(self.sums(weight) / weight.sum())

    def renumbered(self, places: npt.NDArray[Any], n_classes: int) -> Targets:
        """Return the targets with each class i as places[i] of other classes; -1 for a class that no document has."""
        if isinstance(self.held, np.ndarray):
            return Targets.single(np.append(places, -1)[self.held], n_classes)
        parts = self.held.data, np.asarray(places)[self.held.indices].astype(np.int32), self.held.indptr
        matrix = csr_array(parts, shape=(len(self), n_classes))
        matrix.sort_indices()
        return Targets(matrix, n_classes)

    def without_first(self) -> Targets:
        """Return the targets without the first class: of two classes, one column tells which it is."""
        if isinstance(self.held, np.ndarray):
            return Targets.single(np.maximum(self.held - 1, -1), self.n_classes - 1)
        return Targets(self.held[:, 1:], self.n_classes - 1)

    def unlike(self, row: int) -> npt.NDArray[np.bool_]:
        """Return which documents have other classes than one document."""
        if isinstance(self.held, np.ndarray):
            return np.asarray(self.held != self.held[row])
        sizes, own = np.diff(self.held.indptr), self.held[[row]].toarray().ravel()
        return np.asarray((sizes != sizes[row]) | (self.held @ own != sizes[row]))


def places_in(earlier: npt.NDArray[Any], now: npt.NDArray[Any]) -> Places:
    """Return a place of each value among earlier ones, -1 where it is not there."""
    if not len(earlier):
        return np.full(len(now), -1)
    order = np.argsort(earlier, kind="stable")
    found = order[np.minimum(np.searchsorted(earlier[order], now), len(earlier) - 1)]
    return np.where(earlier[found] == now, found, -1)
