"""Adding texts, labels and classes to a training set: what of an earlier fit can be used again, as arrays.

Documents are known again by a digest of their text. `documents` and `classes` below say for each document and class of
the new training its place in the earlier one, -1 if it is new.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize

from wgcn.labels.targets import places_in
from wgcn.text.tokenize import text_digest
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import TermWeighting

Places = npt.NDArray[np.int64]

# Up to this share of all documents, new ones are few: the word graph is not counted again for them. With fewer
# documents or tokens than these, counting takes little time, and new words matter more.
_FEW, _LEAST, _LEAST_TOKENS = 0.125, 2000, 2_000_000


def are_few(n_new: int, n_all: int) -> bool:
    """Return whether so many new documents leave the word graph, and its scale, about as they were."""
    return n_all >= _LEAST and n_new <= _FEW * n_all


class Found(NamedTuple):
    """Which of the given texts a training set has: text `given[i]` is its document `documents[i]`."""

    given: Places  # (matches,): of a text that the training set has several times, several
    documents: Places  # (matches,)
    new: Places  # (new texts,), given texts that it does not have


def find_texts(digests: npt.NDArray[np.int64], texts: Iterable[str]) -> Found:
    """Find texts among those whose digests (`text_digest`), of shape (documents,), are known."""
    wanted = np.fromiter(map(text_digest, texts), np.int64)
    order = np.argsort(digests, kind="stable")
    first, last = (np.searchsorted(digests[order], wanted, side) for side in ("left", "right"))
    times = last - first
    given = np.repeat(np.arange(len(wanted)), times)
    within = np.arange(len(given)) - np.repeat(np.cumsum(times) - times, times)
    return Found(given, order[first[given] + within], np.flatnonzero(times == 0))


class Added(NamedTuple):
    """The documents and classes of a training, in which the labelled documents come first, beside an earlier one."""

    documents: Places  # (documents,), the place of each in the earlier training
    classes: Places  # (classes,), likewise
    # Labelled documents, and scores of shape (rows, classes) by the earlier model, which did not have them.
    scored: tuple[Places, npt.NDArray[Any]] | None = None
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

    def starts(self, duals: Iterable[npt.NDArray[Any]], n_labelled: int, binary: bool) -> list[npt.NDArray[Any]]:
        """Return the warm starts of fits to the labelled documents and to all, from the duals of the earlier ones."""
        parts = zip(duals, (self.documents[:n_labelled], self.documents), strict=False)
        return [warm_start(dual, documents, self.classes[int(binary) :]) for dual, documents in parts]

    def held_out(
        self, rows: Places, scores: npt.NDArray[Any], n_labelled: int, share: float
    ) -> tuple[Places, npt.NDArray[Any]] | None:
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


def warm_start(dual: npt.NDArray[Any], documents: Places, classes: Places) -> npt.NDArray[Any]:
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


def carried_graph(earlier: Any, vocabulary: Vocabulary, n_texts: int, n_tokens: int) -> tuple[Any, int]:
    """Return the word graph that texts had earlier (Prepared or None), and how many texts it has.

    It is over the words of now. For more than a few new texts, or in few tokens, or if words are gone, it is None and
    has to be counted.
    """
    known = earlier is not None and earlier.word_graph is not None and n_tokens >= _LEAST_TOKENS
    if not known or not are_few(n_texts - earlier.n_in_graph, n_texts):
        return None, n_texts
    graph = earlier.word_graph
    if (found := renumbered(graph.adjacency, graph.vocabulary, vocabulary)) is None:
        return None, n_texts
    adjacency, places = found
    degrees = np.zeros(len(vocabulary))
    degrees[places[places >= 0]] = graph.degrees[places >= 0]
    return replace(graph, vocabulary=vocabulary, adjacency=adjacency, degrees=degrees), earlier.n_in_graph


def renumbered(adjacency: csr_array, vocabulary: Vocabulary, now: Vocabulary) -> tuple[csr_array, Places] | None:
    """Return a word graph over the words of now, and the new places of words with edges, -1 for those without.

    None if a word with edges is gone. `adjacency` is symmetric. Words that are new have no edges.
    """
    from wgcn.graph.kernels import renumber

    edged = np.flatnonzero(np.diff(adjacency.indptr))
    places = np.full(len(vocabulary), -1, np.int64)
    places[edged] = _places_of(map(vocabulary.words.__getitem__, edged.tolist()), now)
    if (places[edged] < 0).any():
        return None
    sizes = np.zeros(len(now) + 1, adjacency.indptr.dtype)
    sizes[places[edged] + 1] = np.diff(adjacency.indptr)[edged]
    indptr = np.cumsum(sizes, dtype=sizes.dtype)
    columns, weights = renumber(adjacency.indptr, adjacency.indices, adjacency.data, places, indptr)
    return csr_array((weights, columns, indptr), shape=(len(now), len(now))), places


def earlier_terms(
    terms: csr_array, now: tuple[Vocabulary, TermWeighting], earlier: tuple[Vocabulary, TermWeighting]
) -> csr_array:
    """Return rows of documents as an earlier model would have weighted them: with its words and its idf."""
    (vocabulary, weighting), (known, before) = now, earlier
    ids, used = np.full(len(vocabulary), -1, np.int64), np.unique(terms.indices)
    ids[used] = _places_of(map(vocabulary.words.__getitem__, used.tolist()), known)
    factors = np.where(ids >= 0, before.idf[ids] / weighting.idf, 0).astype(terms.dtype)
    data, indices = terms.data * factors[terms.indices], np.maximum(ids, 0)[terms.indices]
    rows = csr_array((data, indices, terms.indptr.copy()), (terms.shape[0], len(known)))
    rows.eliminate_zeros()
    return csr_array(normalize(rows, before.norm))


def _places_of(words: Iterable[str], vocabulary: Vocabulary) -> Places:
    """Return the places of words in a vocabulary, -1 for those that it does not have."""
    return np.fromiter(map(vocabulary.index.get, words, repeat(-1)), np.int64)
