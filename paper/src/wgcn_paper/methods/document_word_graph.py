"""The graph of documents and words of Text-GCN.

Yao, Mao & Luo, "Graph Convolutional Networks for Text Classification", AAAI 2019:

    A(i, j) = PMI(i, j)                   two words, over windows of 20 tokens, where it is positive
            = n(i, j) log(N / N(j))       document i and word j: how often i has j; N documents, N(j) of them with j
            = 1                           i = j
            = 0                           else

    A_hat = D^-1/2 A D^-1/2, with D the sums of the rows of A

A pair of words counts once per window, as in the other graphs here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import block_array, csr_array, eye_array

from wgcn.base.errors import InputError
from wgcn.graph import EdgeRules, WordGraph
from wgcn.graph.association import normalize
from wgcn.text.weighting import document_terms
from wgcn_paper.methods.preparation import Kept, make_corpus

if TYPE_CHECKING:
    from wgcn_paper.protocol import Task


# Settings of every method that works on this graph.
GRAPH: Mapping[str, Any] = {"tokenizer": "text_gcn", "stop_words": True, "min_count": 5, "window": 20}

# The graph depends on neither labels nor seed, so consecutive cells share it.
_graphs: Kept[DocumentWordGraph] = Kept(most=2)


class DocumentWordGraph(NamedTuple):
    """A_hat of documents, which come first, and words."""

    adjacency: csr_array  # (documents + words, documents + words), float32, symmetric
    words: tuple[str, ...]


def document_word_graph(task: Task, settings: Mapping[str, Any]) -> DocumentWordGraph:
    """Return the graph of all documents of a task with texts; the settings have the keys of `GRAPH`."""
    if task.texts is None:
        raise InputError("A graph of documents and words needs texts; this data set has features only.")
    texts, source = task.texts, [task.digest, {name: settings[name] for name in GRAPH}]
    return _graphs.find(source, lambda: _build(texts, settings))


def _build(texts: tuple[str, ...], settings: Mapping[str, Any]) -> DocumentWordGraph:
    corpus = make_corpus(texts, settings)
    words = WordGraph.from_corpus(
        corpus, window=settings["window"], weight="pmi", rules=EdgeRules(diagonal="one"), normalized=False
    ).adjacency
    terms = document_terms(corpus, "count")
    idf = np.log(len(corpus) / corpus.vocabulary.document_counts).astype(np.float32)
    terms.data *= idf[terms.indices]
    terms.eliminate_zeros()  # a word that is in all documents
    own = eye_array(len(corpus), dtype=np.float32, format="csr")
    joined = csr_array(block_array([[own, terms], [terms.T, words]], format="csr"))
    joined.sort_indices()
    return DocumentWordGraph(normalize(joined)[0], corpus.vocabulary.words)
