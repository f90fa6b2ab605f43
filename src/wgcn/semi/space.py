"""A space in which texts about the same thing are near each other, and the nearest documents of each in it.

    V   = the first right singular vectors of X                   one row per word
    B   = A V, without what all documents share                   the neighbours of a word
    E   = [V, g B], V and B scaled to the same mean length        a word and its neighbours
    Z   = X E, one half scaled to length 1, the other to g        one row per document

V knows which words occur in the same documents, A V also which words occur in the same windows. No label is needed. A
word graph is dominated by its first eigenvector, so much of X A V is the same for all documents: its first singular
direction, which B leaves out where it stands out.

The nearest documents are searched by hand because scikit-learn compares all pairs in so many columns. A tree halves the
documents along their main directions until at most 500 are left together (Dasgupta and Freund, 2008), and only these
are compared; four trees differ by random starts. Time and memory are linear. With few labels, on training documents,
the teacher is as good by trees as by all pairs, or better; only on Ohsumed it is a little worse.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from wgcn.base.products import Floats, multiply
from wgcn.base.threads import compiled, n_threads

Rows = npt.NDArray[np.int32]

_ROUNDING = 1e-10  # share of squared length below which there is nothing
_ITERATIONS = 3  # of the search for singular vectors
_MORE_COLUMNS = 10  # than singular vectors, in the search
_LEAST_COSINE = 1e-5  # a cosine below is 0
_COSINE_POWER = 3  # weight of an edge: the cosine to this power


@dataclass(frozen=True)
class NeighbourSearch:
    """How the nearest documents are searched."""

    most_exact: int = 20_000  # documents of which all pairs are compared
    part: int = 500  # documents whose neighbours are found at a time, and the most in a part of a tree
    n_trees: int = 4
    n_sampled: int = 256  # documents by which a part is halved


class WordSpace(NamedTuple):
    """Vectors of words. The columns come in blocks: the words themselves, then their neighbours."""

    words: Floats  # E, (words, columns)
    weights: tuple[float, ...]  # of the blocks
    sizes: tuple[int, ...]  # columns of the blocks

    def joined(self, words: Floats, weight: float) -> WordSpace:
        """Return a space with one block more."""
        words = np.hstack([self.words, np.float32(weight) * words])
        return WordSpace(words, (*self.weights, weight), (*self.sizes, words.shape[1] - self.words.shape[1]))

    def place(self, rows: Floats) -> Floats:
        """Turn X E into Z in place, and return it; a block in which a document has nothing is 0."""
        shares = np.array(self.weights, np.float32) / np.float32(np.linalg.norm(self.weights))
        for share, block in zip(shares, np.split(rows, np.cumsum(self.sizes[:-1]), axis=1), strict=True):
            lengths = np.sqrt(np.einsum("ij,ij->i", block, block))[:, None]  # without a copy of the block
            block *= np.divide(share, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        return rows


@contextmanager
def threads(n_jobs: int | None) -> Iterator[ThreadPoolExecutor]:
    """Give threads, and BLAS only one: its own wait for each other at small matrices, for seconds on busy cores."""
    with ThreadPoolExecutor(n_threads(n_jobs)) as pool, threadpool_limits(1, "blas"):
        yield pool


def find_space(
    terms: csr_array,
    adjacency: csr_array | None,
    *,
    n_components: int = 200,
    graph_weight: float = 2.0,
    random_state: int = 0,
    n_jobs: int | None = None,
    most_documents: int = 50_000,
) -> WordSpace:
    """Find the space of words for documents of shape (documents, words) with rows of length 1.

    With a graph, half of the `n_components` columns are of each kind, and `graph_weight` is g. Without one, the space
    has the singular vectors alone, which is latent semantic analysis. Of more than
    `most_documents`, which change the singular vectors little, some are taken, evenly.
    """
    n_documents, n_words = terms.shape
    if n_documents > most_documents:
        terms = terms[np.linspace(0, n_documents - 1, most_documents).astype(int)]
    rank = min(n_components if adjacency is None else n_components // 2, n_words, terms.shape[0])
    with threads(n_jobs) as pool:
        vectors = _singular_vectors(terms, rank, random_state, pool)
        own = WordSpace(scaled(terms, vectors), (1.0,), (rank,))
        if adjacency is None:
            return own
        neighbours = _without_common(multiply(adjacency, vectors, pool), terms, pool)
    return own.joined(scaled(terms, neighbours), float(graph_weight))


def _singular_vectors(terms: csr_array, rank: int, random_state: int, pool: ThreadPoolExecutor) -> Floats:
    """Return the first right singular vectors of X, (words, rank), by subspace iteration (Halko et al. 2011)."""
    # Written by hand because scikit-learn's runs on one thread, and takes twice the CPU time.
    transposed, n_columns = csr_array(terms.T), min(rank + _MORE_COLUMNS, *terms.shape)
    rows = check_random_state(random_state).normal(size=(terms.shape[0], n_columns)).astype(np.float32)
    for _ in range(_ITERATIONS):
        rows = _orthonormal(multiply(terms, multiply(transposed, rows, pool), pool))
    words = _orthonormal(multiply(transposed, rows, pool))
    vectors = words @ _gram_vectors(multiply(terms, words, pool))[1][:, :rank].astype(np.float32)
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(rank)]
    return np.asarray(vectors * np.sign(largest))  # the signs are arbitrary, but should not change


def _gram_vectors(columns: Floats) -> tuple[Floats, Floats]:
    """Return squared singular values, the largest first, and right singular vectors of a matrix of few columns."""
    exact = columns.astype(np.float64)
    sizes, vectors = np.linalg.eigh(exact.T @ exact)
    return sizes[::-1], vectors[:, ::-1]


def _orthonormal(columns: Floats) -> Floats:
    """Return the left singular vectors, those of the largest singular values first; zeros where there is nothing."""
    sizes, vectors = _gram_vectors(columns)
    factors = np.divide(1, np.sqrt(np.abs(sizes)), out=np.zeros_like(sizes), where=sizes > _ROUNDING * sizes[0])
    return np.ascontiguousarray(columns @ (vectors * factors).astype(np.float32))


def _without_common(block: Floats, terms: csr_array, pool: ThreadPoolExecutor) -> Floats:
    """Return word vectors without the first singular direction of the documents, where one stands out."""
    sizes, directions = _gram_vectors(multiply(terms, block, pool))
    # It is 3.6 to 15 times the second in the benchmark sets. Of two alike, neither is what all documents share; and
    # without a second one nothing would be left.
    if len(sizes) < 2 or sizes[0] < 2 * sizes[1] or sizes[1] <= _ROUNDING * sizes[0]:
        return block
    first = directions[:, :1].astype(block.dtype)
    return np.asarray(block - (block @ first) @ first.T)


def scaled(terms: csr_array, block: Floats) -> Floats:
    """Return word vectors that make documents about 1 long."""
    length = float(np.linalg.norm(terms[:1000] @ block, axis=1).mean())
    return np.asarray(block / np.float32(length)) if length > 0 else block


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


def nearest_documents(positions: Floats, n_near: int, pool: ThreadPoolExecutor, how: NeighbourSearch) -> Nearest:
    """Return the `n_near` nearest documents of each, from rows of length 1 or 0; none at a right angle or beyond."""
    n_rows, exact = len(positions), len(positions) <= how.most_exact
    everything = np.arange(n_rows, dtype=np.int32)
    near = np.full((n_rows, min(n_near, n_rows - 1)), -1, np.int32)
    cosines = np.full(near.shape, _LEAST_COSINE, np.float32)

    def search(rows: Rows) -> None:
        own = positions[rows]
        keep_nearest(own @ (positions if exact else own).T, rows, everything if exact else rows, near, cosines)

    once, randoms = [np.array_split(everything, -(-n_rows // how.part))], map(np.random.default_rng, range(how.n_trees))
    for parts in once if exact else pool.map(lambda random: tree_parts(positions, everything, random, how), randoms):
        list(pool.map(search, parts))  # a row is one thread's: their number does not change the result
    order, places = np.concatenate(parts), np.append(everything, np.int32(-1))
    places[order] = everything
    return Nearest(order, places[near[order]], cosines[order])


@compiled
def keep_nearest(found, rows, columns, near, cosines):  # type: ignore[no-untyped-def]
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


def tree_parts(positions: Floats, rows: Rows, random: np.random.Generator, how: NeighbourSearch) -> list[Rows]:
    """Return documents in parts of at most `how.part`, each in rising order; near documents are in near parts."""
    if len(rows) <= how.part:
        return [rows]
    sample = positions[rows[np.linspace(0, len(rows) - 1, how.n_sampled).astype(int)]]
    sample -= sample.mean(axis=0)
    direction = sample.T @ random.standard_normal(how.n_sampled, np.float32)
    for _ in range(2):  # towards the main directions, but not to the first alone: trees should differ
        direction = sample.T @ (sample @ direction)
    pieces = np.array_split(rows, len(rows) // 5000 + 1)  # they fit in the cache
    along = np.concatenate([positions[piece] @ direction for piece in pieces])
    low = np.zeros(len(rows), bool)  # half of them, even if documents are all alike
    low[np.argpartition(along, len(rows) // 2)[: len(rows) // 2]] = True
    return tree_parts(positions, rows[low], random, how) + tree_parts(positions, rows[~low], random, how)
