"""Text-GCN without activations (eq. 9 of the paper): powers of the graph of documents and words, and one linear layer.

    scores = (A_hat^n F W)_d + b,   A_hat = D^-1/2 [[A_dd, X], [X^T, A_vv]] D^-1/2,   F = [X; I]

A row of W belongs to a word. Eq. 9 writes X_dv for the features of all nodes; the features of a word, which it leaves
open, are the word itself. For texts A_dd is the identity, X holds tf-idf and A_vv positive PMI, as in Text-GCN (see
`document_word_graph`). For documents with citations A_dd holds the citations and self-loops, X their features, and A_vv
is eq. 2, X^T X, normalised.

Text-GCN has two layers, so n is 2 by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import block_array, csr_array, eye_array, vstack
from torch import Tensor

from wgcn.graph import WordGraph
from wgcn.graph.association import normalize
from wgcn.network.module import sparse_matrix
from wgcn.text.vocabulary import Vocabulary
from wgcn_paper.methods.document_word_graph import GRAPH, document_word_graph
from wgcn_paper.methods.linearised_wgcn import LinearisedBaseline
from wgcn_paper.methods.network import TRAINING

if TYPE_CHECKING:
    from wgcn_paper.protocol import Query, Task


class LinearisedTextGCNMethod(LinearisedBaseline):
    """Eq. 9 on all documents that may be seen."""

    name = "linearised-text-gcn"
    protocols = ("corpus",)
    why_not = "Documents are nodes of the graph that it is trained on, and a new one changes the graph."
    defaults: ClassVar = {
        **TRAINING,
        **GRAPH,
        "norm": "l1",
        "order": 2,  # n
        "learning_rate": 0.2,
        "max_epochs": 800,
    }

    def _prepare(self, task: Task) -> None:
        self._read(task)
        graph = document_word_graph(task, self.settings).adjacency if task.texts is not None else self._linked(task)
        self._adjacency = sparse_matrix(graph, self.torch_device, symmetric=True)
        own = eye_array(self._rows.shape[1], dtype=np.float32, format="csr")
        self._features = sparse_matrix(csr_array(vstack([self._rows, own], format="csr")), self.torch_device)

    def _logits(self, rows: npt.NDArray[np.int64]) -> Tensor:
        nodes: Tensor = self._features @ self.network.weights  # (documents + words, classes)
        for _ in range(self.settings["order"]):
            nodes = self._adjacency @ nodes
        return nodes[self._rows_on_device(rows)] + self.network.bias

    def _query_logits(self, query: Query) -> Tensor:
        return self._logits(self._places(query))

    def _linked(self, task: Task) -> csr_array:
        """Return A_hat of documents with citations."""
        assert task.document_graph is not None
        links = csr_array(task.document_graph, dtype=np.float32)
        links = csr_array(links.maximum(links.T))
        links.data[:] = 1
        own = eye_array(links.shape[0], dtype=np.float32, format="csr")
        words = Vocabulary([f"x{i}" for i in range(self._rows.shape[1])])
        between = WordGraph.from_documents(self._rows, words, weight="product").adjacency
        blocks = [[links.maximum(own), self._rows], [self._rows.T, between]]
        joined = csr_array(block_array(blocks, format="csr"), dtype=np.float32)
        joined.sort_indices()
        return normalize(joined)[0]
