"""Adding documents, labels and classes to a training set: what of an earlier fit can be used again, as arrays.

`documents` and `classes` below say for each document and class of the new training its place in the earlier one, -1 if
it is new.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wgcn.base.arrays import Floats
from wgcn.labels.targets import places_in

Places = npt.NDArray[np.int64]

# Up to this share of all documents, new ones are few: the word graph is not counted again for them. With fewer
# documents than this, counting takes little time, and new words matter more.
_FEW, LEAST_DOCUMENTS = 0.125, 2000


def are_few(n_new: int, n_all: int) -> bool:
    """Return whether so many new documents leave the word graph, and its scale, about as they were."""
    return n_all >= LEAST_DOCUMENTS and n_new <= _FEW * n_all


class Added(NamedTuple):
    """The documents and classes of a training, in which the labelled documents come first, beside an earlier one."""

    documents: Places  # (documents,), the place of each in the earlier training
    classes: Places  # (classes,), likewise
    # Labelled documents, and scores of shape (rows, classes) by the earlier model, which did not have them.
    scored: tuple[Places, Floats] | None = None
    same_graph: bool = False  # whether the word graph has the same edges

    @classmethod
    def to(cls, before: npt.NDArray[np.bool_], now: npt.NDArray[np.bool_], classes: Places) -> Added:
        """Compare which documents were labelled before and are now: the first of now are those of before, in order."""
        more = np.zeros(len(now) - len(before), bool)
        earlier, order = (np.argsort(~labelled, kind="stable") for labelled in (before, now))
        places = np.append(np.argsort(earlier), more - 1)
        return cls(places[order], classes)

    def ordered(self, places: Places, n_labelled: int) -> Added:
        """Return the same for the documents of now in another order, of which `places` has the place of each here."""
        scored = self.scored
        if scored is not None:
            scored = np.argsort(places[:n_labelled])[scored[0]], scored[1]
        return self._replace(documents=self.documents[places], scored=scored)

    def starts(self, duals: Iterable[Floats], n_labelled: int, binary: bool) -> list[Floats]:
        """Return the warm starts of fits to the labelled documents and to all, from the duals of the earlier ones."""
        parts = zip(duals, (self.documents[:n_labelled], self.documents), strict=False)
        return [warm_start(dual, documents, self.classes[int(binary) :]) for dual, documents in parts]

    def held_out(self, rows: Places, scores: Floats, n_labelled: int, share: float) -> tuple[Places, Floats] | None:
        """Return the newest held-out scores, of a share of the labelled documents; None if they are too few.

        `rows` and `scores`, (rows, earlier classes), are those of the earlier training, to which the scored documents
        are added. With other classes, they cannot be used.
        """
        if not np.array_equal(self.classes, np.arange(scores.shape[1])):
            return None
        places, wanted = places_in(self.documents[:n_labelled], rows), max(round(share * n_labelled), 1)
        places, scores = places[places >= 0], scores[places >= 0]
        if self.scored is not None:
            wanted = max(wanted, len(self.scored[0]))
            places, scores = np.append(places, self.scored[0]), np.vstack([scores, self.scored[1]])
        return (places[-wanted:], scores[-wanted:]) if 2 * len(places) >= wanted else None


def warm_start(dual: Floats, documents: Places, classes: Places) -> Floats:
    """Return earlier duals for the documents and classes of now, of shape (documents, classes), 0 for new ones.

    `dual` has the shape (earlier documents, earlier classes), or one column, that of the second of two classes. Earlier
    documents beyond its rows count as new. A dual without columns, which was not kept, gives a start without any.
    """
    if not dual.shape[1]:
        return np.zeros((len(documents), 0), dual.dtype)
    if dual.shape[1] == 1:
        dual = np.hstack([-dual, dual])
    start = np.zeros((len(documents), len(classes)), dual.dtype)
    rows, columns = np.flatnonzero((documents >= 0) & (documents < len(dual))), np.flatnonzero(classes >= 0)
    start[np.ix_(rows, columns)] = dual[np.ix_(documents[rows], classes[columns])]
    return start
