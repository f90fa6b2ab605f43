"""What a model keeps of its word graph, so that the row of a word can be split into its own part and its neighbours'.

The parts are those of `wgcn.labelling.explain`. Half precision and the strongest neighbours are enough to read them;
what they leave out is the difference to the row itself, which is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.errors import StoreError

__all__ = ["Split", "make_split"]

_NAMED = 5  # neighbours that a word keeps
_LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True, eq=False)
class Split:
    """The own parts and the strongest neighbours of the words that have any; any other row is its own part alone."""

    words: npt.NDArray[np.int32]  # (words,), ascending ids in the vocabulary
    own: npt.NDArray[np.float16]  # (words, classes): (1 + a A_ww) U[w]
    neighbours: npt.NDArray[np.int32]  # (words, k): the places of neighbours in `words`, the strongest first
    # (words, k): the part of neighbour j is its strength times own[j]; 0 where a word has fewer neighbours
    strengths: npt.NDArray[np.float16]

    @classmethod
    def load(cls, tensor: Callable[..., npt.NDArray[Any]], n_words: int, n_classes: int) -> Split:
        """Read the split of a saved model: `tensor` is that of its folder. Anything unsound is a StoreError."""
        words = tensor("split.words", None, dtype=np.int32)
        own = tensor("split.own", len(words), n_classes, dtype=np.float16)
        places = tensor("split.neighbours", len(words), None, dtype=np.int32)
        strengths = tensor("split.strengths", *places.shape, dtype=np.float16)
        ascending = (words[1:] > words[:-1]).all() and (words >= 0).all() and (words < n_words).all()
        if not ascending or ((places < 0) | (places >= len(words))).any():
            raise StoreError("The tensors 'split' of the model name words that it does not have. Save it again.")
        return cls(words, own, places, strengths)


def make_split(adjacency: Any, rows: npt.NDArray[Any], factor: float, k: int = _NAMED) -> Split:
    """Return the split of a fitted model.

    Parameters
    ----------
    adjacency : csr_array of shape (words, words)
        A, symmetric.
    rows : array of shape (words with edges, classes)
        U of the words that have edges. Edges from a word to itself count as such.
    factor : float
        a, the weight of the graph. At 0 no word has a neighbour.
    k : int
        Neighbours that a word keeps: those with the largest a |A_wj| |U[j]|.
    """
    from wgcn.labelling.kernels import strongest_neighbours

    diagonal, n_edges = adjacency.diagonal(), np.diff(adjacency.indptr)
    has_neighbours = (n_edges > (diagonal != 0)) & (factor != 0) & (len(rows) > 0)
    words = np.flatnonzero(has_neighbours)
    own = rows[has_neighbours[n_edges > 0]] if len(words) else rows[:0]
    places, lengths = np.zeros(len(n_edges), np.int32), np.zeros(len(n_edges), adjacency.dtype)
    places[words], lengths[words] = np.arange(len(words)), np.sqrt(np.einsum("ij,ij->i", own, own))
    graph = adjacency.indptr, adjacency.indices, adjacency.data
    found, weights = strongest_neighbours(*graph, words, lengths, k)
    neighbours = places[found]
    own_factor = 1 + factor * diagonal[words]  # U counts for the word itself by this, so parts are divided by it
    strengths = factor * weights / own_factor[neighbours]
    return Split(words.astype(np.int32), _half(own * own_factor[:, None]), neighbours, _half(strengths))


def _half(values: npt.NDArray[Any]) -> npt.NDArray[np.float16]:
    return np.asarray(np.clip(values, -_LARGEST, _LARGEST).astype(np.float16))
