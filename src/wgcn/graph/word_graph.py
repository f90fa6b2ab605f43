"""WordGraph: the normalised word-by-word matrix A_vv with its words."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.arrays import Floats
from wgcn.base.errors import InputError, StoreError
from wgcn.graph.association import DOCUMENT_WEIGHTS, WEIGHTS, EdgeRules, Weight, from_documents, from_windows, normalize
from wgcn.graph.citations import from_citations
from wgcn.graph.counts import WindowCounts
from wgcn.store import folder as store
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import Vocabulary

_MAX_WEIGHT = 1e30
# The settings in a saved graph; None where one does not apply.
GRAPH_SCHEMA: dict[str, type | tuple[type, ...]] = {
    "weight": str,
    "window": (int, type(None)),
    "order": (int, list, type(None)),
    "directed": (bool, type(None)),
    "threshold": (int, float),
    "min_count": int,
    "top_k": (int, type(None)),
    "diagonal": str,
    "normalized": bool,
}


@dataclass(frozen=True)
class Neighbour:
    """A word, the weight of the edge to it, and how often it occurs in the corpus."""

    word: str
    weight: float
    count: int


@dataclass(frozen=True)
class GraphInfo:
    """The size and shape of a word graph. Edges join two different words and count once."""

    nodes: int
    edges: int
    density: float
    isolated: int
    mean_neighbours: float
    median_neighbours: float
    max_neighbours: int
    settings: dict[str, Any]


@dataclass(frozen=True, eq=False)
class WordGraph:
    """A graph whose nodes are words.

    Make one with `from_corpus`, `from_counts`, `from_documents` or `from_citations`.

    Parameters
    ----------
    vocabulary : Vocabulary
    adjacency : csr_array of shape (words, words), float32 (float64 if made from documents in that precision)
        A_vv: symmetric, and normalised as D^-1/2 A D^-1/2 unless that was switched off.
    degrees : float64 array of shape (words,)
        D, the sums of absolute weights before normalisation; all 1 if that was switched off.
    settings : dict
        How the graph was made.

    Examples
    --------
    >>> corpus = Corpus.from_texts(["red wine", "white wine", "red rose", "white rose", "blue sky"])
    >>> graph = WordGraph.from_corpus(corpus, window=2)
    >>> [neighbour.word for neighbour in graph.neighbours("sky")]
    ['blue']
    >>> graph
    WordGraph(6 words, 5 edges, npmi)
    """

    vocabulary: Vocabulary
    adjacency: csr_array
    degrees: npt.NDArray[np.float64]
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_corpus(
        cls,
        corpus: Corpus,
        *,
        window: int = 20,
        weight: Weight = "npmi",
        rules: EdgeRules | None = None,
        normalized: bool = True,
        max_pairs: int | None = None,
        n_jobs: int | None = None,
    ) -> WordGraph:
        """Build the graph of a corpus.

        Parameters
        ----------
        corpus : Corpus
        window : int
            Tokens in a window, for the weights that come from windows.
        weight : {"npmi", "pmi", "count", "cosine", "product"}
            The first three count windows. "cosine" is the cosine between the words' columns in the tf-idf matrix of
            documents, "product" is X^T X of word counts (eq. 2).
        rules : EdgeRules, optional
            Which edges to keep.
        normalized : bool
            Whether to normalise symmetrically, as every model here expects.
        max_pairs : int, optional
            Where about so many pairs of words would be exceeded, `min_count` of the rules is raised.
        n_jobs : int, optional
            Threads; by default, and for -1, as many as there are cores, for -2 one less.
        """
        if weight not in WEIGHTS:
            raise InputError(f"Unknown weight {weight!r}. Use one of {', '.join(WEIGHTS)}.")
        if weight in DOCUMENT_WEIGHTS:
            from wgcn.text.weighting import document_terms

            terms = document_terms(corpus, "tfidf" if weight == "cosine" else "count")
            return cls.from_documents(terms, corpus.vocabulary, weight=weight, rules=rules, normalized=normalized)
        rules = rules or EdgeRules()
        counts, least = WindowCounts.of_frequent_pairs(
            corpus, window, min_pairs=rules.min_count, max_pairs=max_pairs, n_jobs=n_jobs
        )
        rules = replace(rules, min_count=least)
        adjacency = from_windows(counts, weight, rules, n_jobs)
        del counts  # which take as much memory as the graph
        return cls.of_edges(corpus.vocabulary, adjacency, normalized, rules, weight=weight, window=window)

    @classmethod
    def from_counts(
        cls,
        counts: WindowCounts,
        *,
        weight: Weight = "npmi",
        rules: EdgeRules | None = None,
        normalized: bool = True,
        n_jobs: int | None = None,
    ) -> WordGraph:
        """Build the graph of window counts; parameters as for `from_corpus`."""
        rules = rules or EdgeRules()
        adjacency = from_windows(counts, weight, rules, n_jobs)
        return cls.of_edges(counts.vocabulary, adjacency, normalized, rules, weight=weight, window=counts.window)

    @classmethod
    def from_documents(
        cls,
        document_terms: csr_array,
        vocabulary: Vocabulary,
        *,
        weight: Weight = "cosine",
        rules: EdgeRules | None = None,
        normalized: bool = True,
    ) -> WordGraph:
        """Build the graph X^T X of a document-term matrix (eq. 2), or of the cosines between its columns.

        The matrix has the shape (documents, words), and the words of its columns are the vocabulary. `rules` and
        `normalized` are as for `from_corpus`.
        """
        _check_columns(document_terms, vocabulary)
        rules = rules or EdgeRules()
        adjacency = from_documents(document_terms, weight, rules)
        return cls.of_edges(vocabulary, adjacency, normalized, rules, weight=weight)

    @classmethod
    def from_citations(
        cls,
        document_terms: csr_array,
        document_graph: csr_array,
        vocabulary: Vocabulary,
        *,
        order: int | tuple[int, int] = 1,
        directed: bool = False,
        rules: EdgeRules | None = None,
        normalized: bool = True,
    ) -> WordGraph:
        """Build the graph X^T A^m (A^T)^n X of linked documents (eq. 3 and 4).

        The document graph of shape (documents, documents) has the citations, normalised with self-loops here. For
        `order` and `directed` see `wgcn.graph.citations.from_citations`, for the rest `from_documents`.
        """
        _check_columns(document_terms, vocabulary)
        rules = rules or EdgeRules()
        adjacency = from_citations(document_terms, document_graph, order=order, directed=directed, rules=rules)
        paths = list(order) if isinstance(order, tuple) else order
        return cls.of_edges(
            vocabulary, adjacency, normalized, rules, weight="citations", order=paths, directed=directed
        )

    @classmethod
    def of_edges(
        cls, vocabulary: Vocabulary, adjacency: csr_array, normalized: bool, rules: EdgeRules, **source: Any
    ) -> WordGraph:
        """Return the graph of edges that were made by rules, normalised if asked."""
        degrees = np.ones(len(vocabulary))
        if normalized:
            adjacency, degrees = normalize(adjacency)
        unused = dict.fromkeys(("window", "order", "directed"))
        return cls(vocabulary, adjacency, degrees, {**unused, **source, **asdict(rules), "normalized": normalized})

    def among(self, vocabulary: Vocabulary, places: npt.NDArray[np.int64] | None = None) -> WordGraph:
        """Return the same edges over a larger vocabulary, which must have these words, in this order, at `places`."""
        if places is None:
            places = np.array([vocabulary.index.get(word, -1) for word in self.vocabulary.words], np.int64)
        if (places < 0).any() or (np.diff(places) < 0).any():
            raise InputError("The vocabulary must have all words of the graph, in the same order.")
        n, own = len(vocabulary), self.adjacency
        lengths = np.zeros(n + 1, np.int64)
        lengths[places + 1] = np.diff(own.indptr)
        indptr, new_ids = (part.astype(own.indices.dtype) for part in (np.cumsum(lengths), places))
        degrees = np.zeros(n)
        degrees[places] = self.degrees
        adjacency = csr_array((own.data, new_ids[own.indices], indptr), shape=(n, n))
        return replace(self, vocabulary=vocabulary, adjacency=adjacency, degrees=degrees)

    def neighbours(self, word: str, k: int = 10, *, min_count: int | None = None) -> list[Neighbour]:
        """Return the strongest neighbours of a word, by weight before normalisation; equal ones by frequency.

        Words that occur less often than `min_count` are left out, by default those that occur less than a fiftieth as
        often as the word: rare ones have a high PMI by chance.
        """
        i = self.vocabulary.id_of(word)
        counts = self.vocabulary.counts
        begin, end = self.adjacency.indptr[i], self.adjacency.indptr[i + 1]
        others = self.adjacency.indices[begin:end]
        weights = self.adjacency.data[begin:end] * np.sqrt(self.degrees[i] * self.degrees[others])
        keep = (others != i) & (counts[others] >= (counts[i] / 50 if min_count is None else min_count))
        others, weights = others[keep], weights[keep]
        # Rounded, because undoing the normalisation leaves an error in the last digits of equal weights.
        order = np.lexsort((others, -np.round(weights, 5)))[:k]
        found = zip(others[order].tolist(), weights[order].tolist(), strict=True)
        return [Neighbour(self.vocabulary[i], weight, int(counts[i])) for i, weight in found]

    def info(self) -> GraphInfo:
        """Return the size and shape of the graph."""
        n = len(self.vocabulary)
        neighbours = np.diff(self.adjacency.indptr) - (self.adjacency.diagonal() != 0)
        edges = int(neighbours.sum()) // 2
        return GraphInfo(
            nodes=n,
            edges=edges,
            density=edges / (n * (n - 1) / 2) if n > 1 else 0.0,
            isolated=int(np.sum(neighbours == 0)),
            mean_neighbours=float(neighbours.mean()),
            median_neighbours=float(np.median(neighbours)),
            max_neighbours=int(neighbours.max()),
            settings=self.settings,
        )

    def save(self, path: str | Path) -> str:
        """Write the graph to a folder, completely or not at all; return its digest."""
        given = path, "graph", self.settings, self.tensors(), self.vocabulary
        return store.save_folder(*given, schema=GRAPH_SCHEMA, check=self.from_folder)

    @classmethod
    def load(cls, path: str | Path) -> WordGraph:
        """Read a graph that `save` wrote."""
        return cls.from_folder(store.load_folder(path, "graph", GRAPH_SCHEMA))

    def tensors(self) -> dict[str, Floats]:
        """Return the arrays by the names under which a folder keeps them; `from_folder` reads them."""
        return {"degrees": self.degrees, **store.csr_tensors("adjacency", self.adjacency)}

    @classmethod
    def from_folder(cls, folder: store.Folder) -> WordGraph:
        """Return the graph that a folder holds, checked."""
        n_words = len(folder.vocabulary)
        degrees = folder.tensor("degrees", n_words, dtype=np.float64, within=(0, _MAX_WEIGHT))
        adjacency = folder.csr("adjacency", (n_words, n_words))
        other = csr_array(adjacency.T)
        symmetric = np.array_equal(adjacency.indptr, other.indptr) and np.array_equal(adjacency.indices, other.indices)
        fits = symmetric and np.allclose(adjacency.data, other.data, rtol=1e-3)
        if not fits or np.abs(adjacency.data).max(initial=0) > _MAX_WEIGHT:
            raise StoreError(f"{folder.path}: 'adjacency' is not symmetric, or has weights above 1e30. Save it again.")
        return cls(folder.vocabulary, adjacency, degrees, folder.config)

    def __repr__(self) -> str:
        weight = self.settings.get("weight", "given")
        return f"WordGraph({len(self.vocabulary):,} words, {self.info().edges:,} edges, {weight})"


def _check_columns(document_terms: csr_array, vocabulary: Vocabulary) -> None:
    if document_terms.shape[1] != len(vocabulary):
        raise InputError(
            f"document_terms has {document_terms.shape[1]:,} columns but the vocabulary has {len(vocabulary):,} words: "
            "each column must be one word."
        )
