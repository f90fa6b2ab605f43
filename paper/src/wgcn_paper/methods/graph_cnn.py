"""Graph CNN: M. Defferrard, X. Bresson, P. Vandergheynst, Convolutional neural networks on graphs, NeurIPS 2016.

A document is a signal x on a graph, one value per word. Edges join each word to its k nearest ones, by the cosine
distance d of their vectors, with sigma the mean distance of the k-th neighbour; an edge holds in both directions:

    A_ij = exp(-d_ij^2 / sigma^2)
    L = I - D^-1/2 A D^-1/2,  M = 2 L / l - I,  where l = 2 bounds the eigenvalues of L
    T_0 = x,  T_1 = M x,  T_n = 2 M T_(n-1) - T_(n-2)
    y = ReLU(sum of T_n theta_n over n < K + b), with theta_n and b a row of `filters` values
    logits = W pool(y) + c, with dropout before W

This is the authors' network for texts (GC32: 32 filters, K = 5, k = 16, no pooling, batches of 100, Adam with 0.001).
With pooling, the largest value of each cluster of 2 or 4 words is kept: words are paired greedily along
heavy edges as in the authors' coarsening, w_ij (1 / d_i + 1 / d_j) being largest, but a word that finds no partner
stays alone, where they add empty nodes to get a binary tree.

We differ in the word vectors, which the authors train with word2vec on the texts, in choosing the epoch on validation
documents, and in dropout and weight decay, which their code has but their figures for texts do not use. A word without
a vector has no edges. A new document is another signal on the same graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wgcn.base.errors import InputError
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import TermWeighting, document_terms, smooth_idf
from wgcn_paper.methods.network import TRAINING, NetworkBaseline
from wgcn_paper.methods.preparation import Kept, make_corpus
from wgcn_paper.vectors.word_vectors import word_vectors

if TYPE_CHECKING:
    from wgcn_paper.protocol import Query, Task


_PREPARATION = (
    "tokenizer",
    "stop_words",
    "min_count",
    "max_words",
    "weighting",
    "word_vectors",
    "neighbours",
    "pooling",
)


class _Prepared(NamedTuple):
    vocabulary: Vocabulary
    weighting: TermWeighting
    terms: csr_array
    graph: csr_array
    clusters: npt.NDArray[np.int64]  # (clusters, words in each); a word stands there again where there are fewer


# Vocabulary and graph depend on neither labels nor seed, so consecutive cells share them.
_prepared: Kept[_Prepared] = Kept(most=3)


class GraphCNNMethod(NetworkBaseline):
    """Chebyshev filters on a graph of words, those of PyTorch Geometric, and a linear layer.

    "max_words" keeps that many of the most frequent words; 0 keeps all. "weighting" is "count" for rows of counts that
    sum to 1, or "tfidf" for rows of length 1. "pooling" is 1 for none, 2 or 4.
    """

    name = "graph-cnn"
    packages = ("torch_geometric",)
    defaults: ClassVar = {
        **TRAINING,
        "tokenizer": "text_gcn",
        "stop_words": True,
        "min_count": 5,
        "max_words": 10_000,
        "weighting": "tfidf",
        "word_vectors": "distilled",
        "neighbours": 16,
        "filters": 32,
        "order": 5,
        "pooling": 1,
        "dropout": 0.5,
        "batch_size": 100,
        "max_epochs": 20,
    }

    def _prepare(self, task: Task) -> None:
        if task.texts is None:
            raise InputError("graph-cnn reads texts, and this data set has only features.")
        texts = task.texts
        self._made = _prepared.find([task.digest, self._pick(_PREPARATION)], lambda: self._prepare_texts(texts))
        edges = self._made.graph.tocoo()
        self._edges = torch.from_numpy(np.stack([edges.row, edges.col]).astype(np.int64)).to(self.torch_device)
        self._weights = torch.from_numpy(edges.data).to(self.torch_device)

    def _prepare_texts(self, texts: tuple[str, ...]) -> _Prepared:
        settings = self.settings
        if not settings["word_vectors"]:
            raise InputError("graph-cnn makes its graph of word vectors: set word_vectors.")
        if settings["weighting"] not in ("tfidf", "count"):
            raise InputError(f"weighting is 'tfidf' or 'count', got {settings['weighting']!r}.")
        if settings["pooling"] not in (1, 2, 4):
            raise InputError(f"pooling is 1, 2 or 4, got {settings['pooling']!r}.")
        corpus = make_corpus(texts, settings, settings["max_words"] or None)
        vocabulary = corpus.vocabulary
        if settings["weighting"] == "tfidf":
            weighting = TermWeighting(smooth_idf(vocabulary.document_counts, len(corpus)), sublinear=False)
        else:
            weighting = TermWeighting(np.ones(len(vocabulary), np.float32), sublinear=False, norm="l1")
        vectors, known = word_vectors(vocabulary.words, settings["word_vectors"])
        graph = nearest_words(vectors, known, settings["neighbours"], self.torch_device)
        clusters = np.arange(len(vocabulary))[:, None]
        coarse = graph
        while clusters.shape[1] < settings["pooling"]:
            pairs = heavy_pairs(coarse)
            clusters = clusters[pairs].reshape(len(pairs), -1)
            coarse = _merged(coarse, pairs)
        return _Prepared(vocabulary, weighting, document_terms(corpus, weighting), graph, clusters)

    def _make_network(self, n_classes: int) -> nn.Module:
        settings = self.settings
        clusters = torch.from_numpy(self._made.clusters)
        return _Network(clusters, settings["filters"], settings["order"], n_classes, settings["dropout"])

    def _words(self) -> tuple[str, ...]:
        return self._made.vocabulary.words

    def _logits(self, rows: npt.NDArray[np.int64]) -> Tensor:
        return self._logits_of(self._made.terms, rows)

    def _query_logits(self, query: Query) -> Tensor:
        assert query.texts is not None
        corpus = Corpus.from_texts(query.texts, tokenizer=self.settings["tokenizer"], vocabulary=self._made.vocabulary)
        terms = document_terms(corpus, self._made.weighting)
        return self._in_batches(lambda rows: self._logits_of(terms, rows), len(corpus))

    def _logits_of(self, terms: csr_array, rows: npt.NDArray[np.int64]) -> Tensor:
        """Return the logits of some rows; these alone are made dense, on the device."""
        entries = terms[rows].tocoo()
        words, documents, values = (
            torch.from_numpy(part).to(self.torch_device)
            for part in (entries.col.astype(np.int64), entries.row.astype(np.int64), entries.data)
        )
        signals = torch.zeros(terms.shape[1], len(rows), 1, device=self.torch_device)
        signals[words, documents, 0] = values
        logits: Tensor = self.network(signals, self._edges, self._weights)
        return logits


class _Network(nn.Module):
    clusters: Tensor

    def __init__(self, clusters: Tensor, filters: int, order: int, n_classes: int, dropout: float) -> None:
        from wgcn_paper.methods.geometric import ChebyshevFilters

        super().__init__()
        self.filters = ChebyshevFilters(filters, order)
        self.last = nn.Linear(len(clusters) * filters, n_classes)
        self.register_buffer("clusters", clusters, persistent=False)
        self.dropout = dropout

    def forward(self, signals: Tensor, edges: Tensor, weights: Tensor) -> Tensor:
        # Without lambda_max PyTorch Geometric takes twice the largest entry of L, which is 2 as well, but waits for it.
        maps = F.relu(self.filters(signals, edges, weights, lambda_max=2.0))
        if self.clusters.shape[1] > 1:
            maps = maps[self.clusters].amax(1)
        rows = maps.transpose(0, 1).flatten(1)
        logits: Tensor = self.last(F.dropout(rows, self.dropout, self.training))
        return logits


def nearest_words(
    vectors: npt.NDArray[np.float32],
    known: npt.NDArray[np.bool_],
    k: int,
    device: torch.device | str = "cpu",
    block: int = 2**24,
) -> csr_array:
    """Return the symmetric graph of the k nearest words (words, words), of vectors (words, size).

    Words that are not `known` (words,) get no edges. Similarities are computed on the device, a block of words at a
    time.
    """
    places = np.flatnonzero(known & (np.linalg.norm(vectors, axis=1) > 0))
    k = min(k, len(places) - 1)
    shape = (len(vectors), len(vectors))
    if k < 1:
        return csr_array(shape, dtype=np.float32)
    units = F.normalize(torch.from_numpy(np.ascontiguousarray(vectors[places])).to(device), dim=1)
    near, distances = [], []
    step = max(block // len(places), 1)
    for begin in range(0, len(places), step):
        similar = units[begin : begin + step] @ units.T
        own = torch.arange(len(similar), device=similar.device)
        similar[own, own + begin] = -torch.inf
        values, found = similar.topk(k, dim=1)
        near.append(found.cpu().numpy())
        distances.append(1 - values.cpu().numpy())
    apart = np.maximum(np.concatenate(distances), 0)
    sigma = max(float(apart[:, -1].mean()), 1e-9)
    weights = np.exp(-np.square(apart / sigma)).astype(np.float32)
    edges = np.repeat(places, k), places[np.concatenate(near).ravel()]
    graph = csr_array((weights.ravel(), edges), shape=shape)
    return csr_array(graph.maximum(graph.T))


def heavy_pairs(graph: csr_array) -> npt.NDArray[np.int64]:
    """Pair the nodes of a graph along heavy edges; a node that finds no partner is paired with itself.

    Nodes with small degrees choose first, since they have the least to choose from.
    """
    degrees = graph.sum(axis=1)
    inverse = 1 / np.maximum(degrees, np.finfo(np.float32).tiny)
    free = np.ones(len(degrees), bool)
    pairs = []
    for node in np.argsort(degrees, kind="stable"):
        if not free[node]:
            continue
        free[node] = False
        row = slice(graph.indptr[node], graph.indptr[node + 1])
        others = graph.indices[row]
        values = np.where(free[others], graph.data[row] * (inverse[node] + inverse[others]), 0)
        partner = others[values.argmax()] if values.any() else node
        free[partner] = False
        pairs.append((node, partner))
    return np.array(pairs, np.int64)


def _merged(graph: csr_array, pairs: npt.NDArray[np.int64]) -> csr_array:
    """Return the graph of the pairs; the weights of edges between two pairs are added."""
    new = np.empty(graph.shape[0], np.int64)
    new[pairs] = np.arange(len(pairs))[:, None]
    edges = graph.tocoo()
    between = new[edges.row] != new[edges.col]
    ends = new[edges.row[between]], new[edges.col[between]]
    return csr_array((edges.data[between], ends), shape=(len(pairs), len(pairs)))
