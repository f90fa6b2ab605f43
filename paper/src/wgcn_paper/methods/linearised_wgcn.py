"""WGCN without activations (eq. 8, and eq. 11 with citations): one matrix of weights between the graph and the classes.

The paper compares its model with others after it has taken away what is not linear, as Wu et al. (ICML 2019) do:

    scores = X A_vv^n W + b                    eq. 8, A_vv from windows
    scores = X (X_dv^T A_dd^k X_dv) W + b      eq. 11, A_vv from citations

There is no hidden layer, no residual and no dropout; W has one row per word. What differs from the linearised GCN
(eq. 10, `sgc`) and the linearised Text-GCN (eq. 9, `linearised_text_gcn`) is the graph alone. With A_vv = X^T X (eq. 2)
eq. 8 is eq. 10 on the documents' own similarities, because X (X^T X)^n = (X X^T)^n X.

The library's default is not this model: it adds a residual, `X (I + alpha A) W`, and another loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize
from torch import Tensor, nn

from wgcn.graph import WordGraph
from wgcn.network.module import SparseMatrix, sparse_matrix
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import TermWeighting, document_terms, smooth_idf
from wgcn_paper.methods.document_word_graph import GRAPH
from wgcn_paper.methods.network import TRAINING, NetworkBaseline
from wgcn_paper.methods.preparation import Kept, make_corpus

if TYPE_CHECKING:
    from wgcn_paper.protocol import Query, Task


# Graphs depend on neither labels nor seed, so consecutive cells share them.
_graphs: Kept[csr_array] = Kept(most=2)


class LinearWeights(nn.Module):
    """W and b."""

    def __init__(self, n_words: int, n_classes: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.empty(n_words, n_classes))  # W
        self.bias = nn.Parameter(torch.zeros(n_classes))  # b
        nn.init.xavier_uniform_(self.weights)


class LinearisedBaseline(NetworkBaseline):
    """What the linearised models share: documents as rows of terms, from texts or from features."""

    network: LinearWeights
    recordable = True

    def _make_network(self, n_classes: int) -> nn.Module:
        return LinearWeights(self._rows.shape[1], n_classes)

    def _read(self, task: Task) -> None:
        """Set the rows of terms of a task, and its corpus if it has texts."""
        self._corpus: Corpus | None = None
        if task.texts is not None:
            self._corpus = make_corpus(task.texts, self.settings)
            words = self._corpus.vocabulary
            self._weighting = TermWeighting(
                smooth_idf(words.document_counts, len(self._corpus)), norm=self.settings["norm"], sublinear=False
            )
            self._rows = self._weighted(self._corpus)
        else:
            assert task.features is not None
            self._rows = feature_rows(task.features, self.settings["norm"])

    def _new_rows(self, query: Query) -> csr_array:
        """Return the rows of documents that come later; words that fitting did not see are left out."""
        if query.texts is not None:
            assert self._corpus is not None
            words, tokenizer = self._corpus.vocabulary, self.settings["tokenizer"]
            return self._weighted(Corpus.from_texts(query.texts, tokenizer=tokenizer, vocabulary=words))
        assert query.features is not None
        return feature_rows(query.features, self.settings["norm"])

    def _weighted(self, corpus: Corpus) -> csr_array:
        counts = document_terms(corpus, "count")
        weights = self._weighting.weigh(counts.data, counts.indices, counts.indptr)
        return csr_array((weights, counts.indices, counts.indptr), shape=counts.shape)

    def _words(self) -> tuple[str, ...]:
        return () if self._corpus is None else self._corpus.vocabulary.words


class LinearisedWGCNMethod(LinearisedBaseline):
    """Eq. 8 for texts, eq. 11 for documents with citations."""

    name = "linearised-wgcn"
    defaults: ClassVar = {
        **TRAINING,
        **GRAPH,
        "norm": "l1",
        "weight": "pmi",
        "normalized": True,
        "order": 1,  # n of eq. 8
        "citation_order": 1,  # k of eq. 11
        "learning_rate": 0.2,
        "max_epochs": 800,
    }

    def _prepare(self, task: Task) -> None:
        self._read(task)
        names = (*GRAPH, "norm", "weight", "normalized", "citation_order")
        graph = _graphs.find([task.digest, self._pick(names)], lambda: self._graph(task))
        self._adjacency = sparse_matrix(graph, self.torch_device, symmetric=True)
        self._terms = sparse_matrix(self._rows, self.torch_device)

    def _logits(self, rows: npt.NDArray[np.int64]) -> Tensor:
        return self._scores(self._terms)[self._rows_on_device(rows)]

    def _query_logits(self, query: Query) -> Tensor:
        return self._scores(sparse_matrix(self._new_rows(query), self.torch_device))

    def _scores(self, terms: SparseMatrix) -> Tensor:
        table: Tensor = self.network.weights  # (words, classes)
        for _ in range(self.settings["order"]):
            table = self._adjacency @ table
        return terms @ table + self.network.bias  # (documents, classes)

    def _graph(self, task: Task) -> csr_array:
        """Return A_vv."""
        normalized = self.settings["normalized"]
        if self._corpus is not None:
            how = {"window": self.settings["window"], "weight": self.settings["weight"], "normalized": normalized}
            return WordGraph.from_corpus(self._corpus, **how).adjacency
        assert task.document_graph is not None
        words = Vocabulary([f"x{i}" for i in range(self._rows.shape[1])])
        order = self.settings["citation_order"]
        return WordGraph.from_citations(
            self._rows, task.document_graph, words, order=order, normalized=normalized
        ).adjacency


def feature_rows(features: csr_array, norm: str) -> csr_array:
    """Return features with rows of sum ("l1") or length ("l2") 1, or as they are ("none")."""
    rows = csr_array(features, dtype=np.float32)
    return rows if norm == "none" else csr_array(normalize(rows, norm))
