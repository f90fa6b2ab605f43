"""The nearest documents of each, from all pairs or, of many documents, by trees.

Written by hand because scikit-learn compares all pairs in so many columns. A tree halves the documents along their main
directions until at most 500 are left together (Dasgupta and Freund, 2008), and only these are compared; four trees
differ by random starts. Time and memory are linear. With few labels, on training documents, the teacher is as good by
trees as by all pairs, or better; only on Ohsumed it is a little worse.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.cores import compiled
from wgcn.products import Floats

__all__ = ["Nearest", "nearest_documents"]

Rows = npt.NDArray[np.int32]

_MOST_EXACT = 20_000  # documents of which all pairs are compared
_BLOCK = 500  # documents whose neighbours are found at a time, and the most in a part
_TREES = 4
_SAMPLE = 256  # documents by which a part is halved
_ROUNDING = 1e-5  # a cosine below is 0
_COSINE_POWER = 3  # weight of an edge: the cosine to this power


class Nearest(NamedTuple):
    """The nearest documents of each, in an order that has near ones together: spreading is quicker so."""

    order: Rows  # (documents,), the document in each place
    places: Rows  # (documents, nearest), nearest first, -1 where there are fewer
    cosines: Floats  # (documents, nearest)

    def graph(self) -> csr_array:
        """Return S, the normalised graph: an edge where either document is among the nearest of the other."""
        kept = self.places >= 0
        edges = self.cosines[kept] ** _COSINE_POWER, self.places[kept], np.append(0, np.cumsum(kept.sum(axis=1)))
        graph = csr_array(edges, shape=(len(kept), len(kept)))
        graph = graph.maximum(graph.T)
        degrees = np.asarray(graph.sum(axis=1))
        scale = np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
        graph.data *= np.repeat(scale, np.diff(graph.indptr)) * scale[graph.indices]
        return graph


def nearest_documents(positions: Floats, n_near: int, pool: ThreadPoolExecutor) -> Nearest:
    """Return the `n_near` nearest documents of each, from rows of length 1 or 0; none at a right angle or beyond."""
    n_rows, exact = len(positions), len(positions) <= _MOST_EXACT
    everything = np.arange(n_rows, dtype=np.int32)
    near = np.full((n_rows, min(n_near, n_rows - 1)), -1, np.int32)
    cosines = np.full(near.shape, _ROUNDING, np.float32)

    def search(rows: Rows) -> None:
        own = positions[rows]
        _keep_nearest(own @ (positions if exact else own).T, rows, everything if exact else rows, near, cosines)

    once, randoms = [np.array_split(everything, -(-n_rows // _BLOCK))], map(np.random.default_rng, range(_TREES))
    for parts in once if exact else pool.map(lambda random: _parts(positions, everything, random), randoms):
        list(pool.map(search, parts))  # a row is one thread's: their number does not change the result
    order, places = np.concatenate(parts), np.append(everything, np.int32(-1))
    places[order] = everything
    return Nearest(order, places[near[order]], cosines[order])


@compiled
def _keep_nearest(found, rows, columns, near, cosines):  # type: ignore[no-untyped-def]
    """Insert what was found, (rows, columns), among the nearest of each row, which are sorted."""
    last = near.shape[1] - 1
    for i in range(len(rows) if last >= 0 else 0):
        names, values = near[rows[i]], cosines[rows[i]]
        for j in range(len(columns)):
            value, name = found[i, j], columns[j]
            if value > values[last] and name != rows[i] and name not in names:  # another tree may have found it
                place = last
                while place > 0 and values[place - 1] < value:
                    names[place], values[place] = names[place - 1], values[place - 1]
                    place -= 1
                names[place], values[place] = name, value


def _parts(positions: Floats, rows: Rows, random: np.random.Generator) -> list[Rows]:
    """Return documents in parts of at most `_BLOCK`, each in rising order; near documents are in near parts."""
    if len(rows) <= _BLOCK:
        return [rows]
    sample = positions[rows[np.linspace(0, len(rows) - 1, _SAMPLE).astype(int)]]
    sample -= sample.mean(axis=0)
    direction = sample.T @ random.standard_normal(_SAMPLE, np.float32)
    for _ in range(2):  # towards the main directions, but not to the first alone: trees should differ
        direction = sample.T @ (sample @ direction)
    pieces = np.array_split(rows, len(rows) // 5000 + 1)  # they fit in the cache
    along = np.concatenate([positions[piece] @ direction for piece in pieces])
    low = np.zeros(len(rows), bool)  # half of them, even if documents are all alike
    low[np.argpartition(along, len(rows) // 2)[: len(rows) // 2]] = True
    return _parts(positions, rows[low], random) + _parts(positions, rows[~low], random)
