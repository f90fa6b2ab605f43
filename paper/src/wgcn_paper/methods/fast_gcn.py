"""FastGCN, a graph convolutional network that learns from samples of the neighbours.

Chen, Ma & Xiao, "FastGCN: Fast Learning with Graph Convolutional Networks via Importance Sampling", ICLR 2018.

    H = ReLU(A_hat X W_0)
    Z = softmax(A_hat H W_1)

A step of training takes a batch of nodes v and draws t nodes u_1, ..., u_t, with replacement, for the sum over all:

    (A_hat H)(v)  is estimated by  1/t sum_i A_hat(v, u_i) / q(u_i) H(u_i),   with q(u) ~ ||A_hat(:, u)||^2

The product A_hat X of the first layer is made once, so that only the second layer is drawn, as in the authors' final
model. Validation and prediction take the whole graph. There are no biases, and weight decay acts on W_0 alone.

Citation networks: A_hat = D^-1/2 (A + I) D^-1/2, and the rows of X sum to 1. Texts: A_hat is the graph of documents and
words of Text-GCN (`document_word_graph`) and X the identity, so that A_hat X is A_hat itself.

A new document of a citation network joins the graph alone, with its links to documents that were seen: their degrees
grow by the link, while their own rows of H do not change. So its label does not depend on the rest of the query.

Where we differ. The paper draws from all nodes; its published code draws from those that are linked with the batch,
without replacement, but divides by their probabilities among all nodes. We too draw from those that are linked with the
batch, since all others add nothing, but with replacement and with q among them, so that the estimate is unbiased; where
they are no more than t, the sum is exact. That code takes q ~ ||A_hat(:, u)||; we take the square, as the paper does.

No epoch is recorded as a CUDA graph: draws are made on the CPU, and the number of entries differs between batches.

Its script for the split of Yang et al. (2016) has 400 samples, 16 hidden units, a learning rate of 0.01, a weight decay
of 5e-4 and no dropout, as the defaults here. It has batches of 20 nodes and 100 epochs; here they are of 256, which is
all training nodes of that split, and 200. Texts need more hidden units and, with W_0 as large as the graph, no weight
decay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812
from scipy.sparse import csr_array, diags_array
from torch import Tensor, nn

from wgcn.base.errors import InputError
from wgcn.graph.citations import normalize_documents
from wgcn.network.module import SparseMatrix, sparse_matrix
from wgcn_paper.methods.baseline import Fit
from wgcn_paper.methods.document_word_graph import GRAPH, document_word_graph
from wgcn_paper.methods.linearised_wgcn import feature_rows
from wgcn_paper.methods.network import TRAINING, NetworkBaseline

if TYPE_CHECKING:
    from wgcn_paper.protocol import Query, Task


class Rows(NamedTuple):
    """Some rows of a sparse matrix, as the three arrays of CSR."""

    offsets: Tensor  # (rows + 1,)
    columns: Tensor  # (entries,)
    values: Tensor  # (entries,)

    def __matmul__(self, dense: Tensor) -> Tensor:
        """Return these rows times a dense matrix, which may have a gradient."""
        n_rows, n_columns = len(self.offsets) - 1, len(dense)
        # The gradient needs the transpose. The order is kept among equal columns, so that its sums are always the same.
        columns, order = torch.sort(self.columns, stable=True)
        row_numbers = torch.arange(n_rows, dtype=columns.dtype, device=columns.device)
        row_numbers = torch.repeat_interleave(row_numbers, self.offsets.diff(), output_size=len(columns))[order]
        every = torch.arange(n_columns + 1, dtype=columns.dtype, device=columns.device)
        offsets = torch.searchsorted(columns, every, out_int32=columns.dtype == torch.int32)
        return (
            SparseMatrix(
                torch.sparse_csr_tensor(*self, (n_rows, n_columns)),
                torch.sparse_csr_tensor(offsets, row_numbers, self.values[order], (n_columns, n_rows)),
            )
            @ dense
        )


def gather_rows(matrix: Tensor, rows: Tensor) -> Rows:
    """Take rows, in any order, out of a CSR tensor."""
    index = matrix.crow_indices().dtype
    begins = matrix.crow_indices()[rows]
    lengths = matrix.crow_indices()[rows + 1] - begins
    offsets = F.pad(lengths.cumsum(0, dtype=index), (1, 0))
    entries = torch.repeat_interleave(begins - offsets[:-1], lengths, output_size=int(offsets[-1]))
    entries += torch.arange(len(entries), dtype=index, device=entries.device)
    return Rows(offsets, matrix.col_indices()[entries], matrix.values()[entries])


def sample_columns(rows: Rows, importance: Tensor, n_samples: int) -> tuple[Rows, Tensor]:
    """Draw columns, so that rows @ dense is estimated from few rows of the dense matrix.

    `importance` is q of each column, up to a factor. `n_samples` (t) are drawn, with replacement; if no more columns
    than that have entries, all are taken once. Returned are the rows, with places among the drawn columns and their
    values times drawn / (t q), and the columns that were drawn, each once, in ascending order.
    """
    linked = torch.unique(rows.columns)
    small = linked.dtype == torch.int32
    if len(linked) <= n_samples:
        return rows._replace(columns=torch.searchsorted(linked, rows.columns, out_int32=small)), linked
    # Drawn on the CPU in double precision: the same nodes on every device.
    q = importance[linked].double().cpu()
    q /= q.sum()
    draws = torch.multinomial(q, n_samples, replacement=True)
    places, times = torch.unique(draws, return_counts=True)
    scale = (times / (n_samples * q[places])).to(rows.values)
    drawn = linked[places.to(linked.device)]
    found = torch.searchsorted(drawn, rows.columns, out_int32=small).clamp(max=len(drawn) - 1)
    kept = drawn[found] == rows.columns
    found = found[kept]
    offsets = F.pad(kept.cumsum(0, dtype=linked.dtype), (1, 0))[rows.offsets]
    return Rows(offsets, found, rows.values[kept] * scale[found]), drawn


class FastGCN(nn.Module):
    """Two graph convolutions; the first takes rows of A_hat X. Dropout is on the entries of A_hat X and of H."""

    def __init__(self, n_features: int, n_classes: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.input_weights = nn.Parameter(torch.empty(n_features, hidden))  # W_0
        self.class_weights = nn.Parameter(torch.empty(hidden, n_classes))  # W_1
        for weights in (self.input_weights, self.class_weights):
            nn.init.xavier_uniform_(weights)

    def hidden(self, inputs: Rows | SparseMatrix) -> Tensor:
        """Return H of nodes, from their rows of A_hat X."""
        if isinstance(inputs, Rows):
            inputs = inputs._replace(values=F.dropout(inputs.values, self.dropout, self.training))
        return F.dropout(torch.relu(inputs @ self.input_weights), self.dropout, self.training)

    def forward(self, neighbours: Rows, hidden: Tensor) -> Tensor:
        """Return the logits of nodes, from their rows of A_hat and H of the columns of these."""
        return neighbours @ (hidden @ self.class_weights)


class FastGCNMethod(NetworkBaseline):
    """FastGCN on a citation network, or on the graph of documents and words."""

    name = "fast-gcn"
    why_not = "On texts, documents are nodes of the graph that it is trained on, and a new one has no weights."
    defaults: ClassVar = {
        **TRAINING,
        **GRAPH,
        "learning_rate": 0.01,
        "weight_decay": 5e-4,
        "batch_size": 256,
        "stopping": "mean",
        "hidden": 16,
        "dropout": 0.0,
        "samples": 400,
    }
    network: FastGCN

    def fit(self, task: Task) -> Fit:
        """Train on the labelled documents, and keep H for prediction."""
        fit = super().fit(task)
        self._pass_all()
        return fit

    def _prepare(self, task: Task) -> None:
        self._names: tuple[str, ...] = ()
        if task.texts is not None:
            adjacency, self._names = document_word_graph(task, self.settings)
            self._adjacency = self._inputs = sparse_matrix(adjacency, self.torch_device, symmetric=True)
        elif task.features is not None and task.document_graph is not None:
            adjacency = normalize_documents(task.document_graph)
            links = csr_array(task.document_graph, dtype=np.float32)
            self._degrees = 1 + csr_array(links.maximum(links.T)).sum(axis=1)
            self._features = feature_rows(task.features, "l1")
            self._adjacency = sparse_matrix(adjacency, self.torch_device, symmetric=True)
            self._inputs = sparse_matrix(csr_array(adjacency @ self._features), self.torch_device)
        else:
            raise InputError("fast-gcn needs texts, or features with a document graph.")
        squares = csr_array(adjacency.power(2)).sum(axis=0)
        self._importance = torch.from_numpy(squares).to(self.torch_device)

    def _make_network(self, n_classes: int) -> FastGCN:
        return FastGCN(self._inputs.matrix.shape[1], n_classes, **self._pick(("hidden", "dropout")))

    def _parameter_groups(self) -> list[dict[str, Any]]:
        return [
            {"params": [self.network.input_weights], "weight_decay": self.settings["weight_decay"]},
            {"params": [self.network.class_weights]},
        ]

    def _logits(self, rows: npt.NDArray[np.int64]) -> Tensor:
        neighbours = gather_rows(self._adjacency.matrix, torch.from_numpy(rows).to(self.torch_device))
        if not self.network.training:
            return self.network.forward(neighbours, self._hidden)
        neighbours, drawn = sample_columns(neighbours, self._importance, self.settings["samples"])
        return self.network.forward(neighbours, self.network.hidden(gather_rows(self._inputs.matrix, drawn)))

    def _validate(self, rows: npt.NDArray[np.int64]) -> tuple[float, float]:
        self._pass_all()  # once for all batches
        return super()._validate(rows)

    @torch.no_grad()
    def _pass_all(self) -> None:
        """Compute H of the whole graph."""
        self.network.eval()
        self._hidden = self.network.hidden(self._inputs)

    def _query_logits(self, query: Query) -> Tensor:
        if query.places is None and query.features is not None:
            return self._new_logits(query)
        return self._logits(self._places(query))

    def _new_logits(self, query: Query) -> Tensor:
        """Return the logits of documents that were not seen, each as if it joined the graph alone."""
        features = feature_rows(query.features, "l1")
        links = csr_array((features.shape[0], len(self._rank)), dtype=np.float32)
        if query.document_graph is not None:
            # The columns of a query are in the order in which the documents were given.
            given = csr_array(query.document_graph, dtype=np.float32)
            links = csr_array((given.data, self._rank[given.indices], given.indptr), shape=links.shape)
        degrees = 1 + links.sum(axis=1)
        entries = links.tocoo()
        links = csr_array(
            (
                entries.data / np.sqrt(degrees[entries.row] * (self._degrees[entries.col] + entries.data)),
                entries.coords,
            ),
            shape=links.shape,
            dtype=np.float32,
        )
        inputs = csr_array(links @ self._features + diags_array(1 / degrees) @ features, dtype=np.float32)
        scores = self._hidden @ self.network.class_weights
        own = self.network.hidden(sparse_matrix(inputs, self.torch_device)) @ self.network.class_weights
        weight = torch.from_numpy(1 / degrees).to(self.torch_device)[:, None]
        return sparse_matrix(links, self.torch_device) @ scores + weight * own

    def _words(self) -> tuple[str, ...]:
        return self._names
