"""Adding texts, labels and classes to a training set: what of an earlier fit can be used again, as arrays.

Documents are known again by a digest of their text. `documents` and `classes` below say for each document and class of
the new training its place in the earlier one, -1 if it is new.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize

from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import TermWeighting

__all__ = ["Found", "document_order", "earlier_terms", "find_texts", "places_in", "warm_start"]

Places = npt.NDArray[np.int64]


class Found(NamedTuple):
    """Which of the given texts a training set has: text `given[i]` is its document `documents[i]`."""

    given: Places  # (matches,): of a text that the training set has several times, several
    documents: Places  # (matches,)
    new: Places  # (new texts,), given texts that it does not have


def find_texts(digests: npt.NDArray[np.int64], texts: Iterable[str]) -> Found:
    """Find texts among those whose digests, the values of ``hash``, are known, of shape (documents,)."""
    wanted = np.fromiter(map(hash, texts), np.int64)
    order = np.argsort(digests, kind="stable")
    first, last = (np.searchsorted(digests[order], wanted, side) for side in ("left", "right"))
    times = last - first
    given = np.repeat(np.arange(len(wanted)), times)
    within = np.arange(len(given)) - np.repeat(np.cumsum(times) - times, times)
    return Found(given, order[first[given] + within], np.flatnonzero(times == 0))


def document_order(labelled: npt.NDArray[np.bool_]) -> Places:
    """Return the order in which models are trained: the labelled documents, then the others."""
    return np.argsort(~labelled, kind="stable")


def places_in(earlier: npt.NDArray[Any], now: npt.NDArray[Any]) -> Places:
    """Return a place of each value among earlier ones, -1 where it is not there."""
    if not len(earlier):
        return np.full(len(now), -1)
    order = np.argsort(earlier, kind="stable")
    found = order[np.minimum(np.searchsorted(earlier[order], now), len(earlier) - 1)]
    return np.where(earlier[found] == now, found, -1)


def warm_start(dual: npt.NDArray[Any], documents: Places, classes: Places) -> npt.NDArray[Any]:
    """Return earlier duals for the documents and classes of now, of shape (documents, classes), 0 for new ones.

    `dual` has the shape (earlier documents, earlier classes), or one column, that of the second of two classes. Earlier
    documents beyond its rows count as new.
    """
    if dual.shape[1] == 1:
        dual = np.hstack([-dual, dual])
    start = np.zeros((len(documents), len(classes)), dual.dtype)
    rows, columns = np.flatnonzero((documents >= 0) & (documents < len(dual))), np.flatnonzero(classes >= 0)
    start[np.ix_(rows, columns)] = dual[np.ix_(documents[rows], classes[columns])]
    return start


def earlier_terms(
    terms: csr_array, now: tuple[Vocabulary, TermWeighting], earlier: tuple[Vocabulary, TermWeighting]
) -> csr_array:
    """Return rows of documents as an earlier model would have weighted them: with its words and its idf."""
    (vocabulary, weighting), (known, before) = now, earlier
    used, places = np.unique(terms.indices, return_inverse=True)
    ids = np.array([known.index.get(vocabulary.words[i], -1) for i in used.tolist()], terms.indices.dtype)
    factors = np.where(ids >= 0, before.idf[ids] / weighting.idf[used], 0).astype(terms.dtype)
    indices = np.maximum(ids, 0)[places]
    rows = csr_array((terms.data * factors[places], indices, terms.indptr.copy()), (terms.shape[0], len(known)))
    rows.eliminate_zeros()
    return csr_array(normalize(rows, before.norm))
