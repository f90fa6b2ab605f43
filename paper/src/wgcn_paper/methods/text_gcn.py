"""Text-GCN: Yao, Mao & Luo, "Graph Convolutional Networks for Text Classification", AAAI 2019.

    Z = softmax(A_hat ReLU(A_hat X W_0) W_1)

Documents and words are the nodes of one graph: see `document_word_graph` for A_hat. X is the identity, so that W_0 has
a row for each node. What is learnt are W_0 and W_1; there is no bias. All nodes are passed in every step, and the loss
is that of the documents with labels.

Dropout on X = I drops whole rows of W_0. The authors' code had that at first; a later state of it leaves X out of the
product, and with it that dropout. `input_dropout` is 0.5 for the first and 0 for the second. The hidden layer has
dropout in both. Training ends, as theirs, with the first epoch whose validation loss is above the mean of the ten
before it, and keeps the weights of that epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from wgcn.network.module import SparseMatrix, sparse_matrix
from wgcn_paper.methods.document_word_graph import GRAPH, document_word_graph
from wgcn_paper.methods.network import TRAINING, NetworkBaseline

if TYPE_CHECKING:
    from wgcn_paper.protocol import Query, Task


class TextGCN(nn.Module):
    """Two graph convolutions on nodes without features.

    Dropout is of rows of W_0, and of entries of the hidden layer.
    """

    def __init__(self, n_nodes: int, n_classes: int, hidden: int, input_dropout: float, dropout: float) -> None:
        super().__init__()
        self.input_dropout, self.dropout = input_dropout, dropout
        self.node_weights = nn.Parameter(torch.empty(n_nodes, hidden))  # W_0
        self.class_weights = nn.Parameter(torch.empty(hidden, n_classes))  # W_1
        for weights in (self.node_weights, self.class_weights):
            nn.init.xavier_uniform_(weights)

    def forward(self, adjacency: SparseMatrix) -> Tensor:
        """Return the logits of all nodes."""
        rows: Tensor = self.node_weights  # X W_0
        if self.training and self.input_dropout:
            rows = rows * F.dropout(rows.new_ones(len(rows), 1), self.input_dropout)
        h = F.dropout(torch.relu(adjacency @ rows), self.dropout, self.training)  # (nodes, hidden)
        return adjacency @ (h @ self.class_weights)  # (nodes, classes)


class TextGCNMethod(NetworkBaseline):
    """Text-GCN on all documents that may be seen."""

    name = "text-gcn"
    protocols = ("corpus",)
    recordable = True
    why_not = "Documents are nodes of the graph that it is trained on, and a new one has no weights."
    defaults: ClassVar = {
        **TRAINING,
        **GRAPH,
        "learning_rate": 0.02,
        "stopping": "mean",
        "hidden": 200,
        "input_dropout": 0.5,
        "dropout": 0.5,
    }

    def _prepare(self, task: Task) -> None:
        self._graph = document_word_graph(task, self.settings)
        self._adjacency = sparse_matrix(self._graph.adjacency, self.torch_device, symmetric=True)

    def _make_network(self, n_classes: int) -> nn.Module:
        n_nodes = self._graph.adjacency.shape[0]
        return TextGCN(n_nodes, n_classes, **self._pick(("hidden", "input_dropout", "dropout")))

    def _logits(self, rows: npt.NDArray[np.int64]) -> Tensor:
        logits: Tensor = self.network(self._adjacency)
        return logits[self._rows_on_device(rows)]

    def _query_logits(self, query: Query) -> Tensor:
        return self._logits(self._places(query))

    def _words(self) -> tuple[str, ...]:
        return self._graph.words
