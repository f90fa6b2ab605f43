"""Base class of the networks on a citation graph: features and links of documents, including new documents.

Features are scaled so that rows sum to 1. Links have no weight and no direction; self-links are left out, since each
method adds them in its own way.

A document that fitting did not see joins the graph at prediction, by its links to the documents of the task. All
documents of a query join it at once. They have no links to each other, but they are not independent:

- With two or more layers or hops, two of them that share a neighbour get features of each other.
- Each counts in the degrees of its neighbours, by which GCN and SGC divide. So even with one hop the weight of a link
  depends on how many others in the query link the same document. GIN has sums without degrees: with one layer, a
  document of the query depends on no other.

So the answer to a document can differ between a query of all test documents and one of that document. `fast_gcn` is
otherwise: there each new document joins alone, and the hidden rows of the documents of the task stay as they were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import block_array, csr_array, vstack
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from wgcn.base.errors import InputError
from wgcn_paper.methods.network import NetworkBaseline

if TYPE_CHECKING:
    from wgcn_paper.protocol import Query, Task


class CitationBaseline(NetworkBaseline):
    """A network that takes the features of all documents and the edges between them, and gives all logits at once."""

    def _prepare(self, task: Task) -> None:
        if task.features is None or task.document_graph is None:
            raise InputError(f"{self.name} needs features and citations; this data set has only texts.")
        self._features = _in_rows(task.features)
        self._links = _undirected(task.document_graph)
        self._inputs, self._edges = self._to_inputs(self._features), self._to_edges(self._links)

    def _logits(self, rows: npt.NDArray[np.int64]) -> Tensor:
        return self._all_logits(self._inputs, self._edges)[torch.from_numpy(rows).to(self.torch_device)]

    def _query_logits(self, query: Query) -> Tensor:
        if query.places is not None:
            return self._logits(self._places(query))
        assert query.features is not None
        n_documents, n_new = len(self._rank), query.features.shape[0]
        between = query.document_graph
        if between is None:
            between = csr_array((n_new, n_documents), dtype=np.float32)
        # The columns come in the order that the task was given in.
        between = csr_array(between)[:, np.argsort(self._rank)]
        links = _undirected(csr_array(block_array([[self._links, None], [between, csr_array((n_new, n_new))]])))
        features = csr_array(vstack([self._features, _in_rows(query.features)]))
        return self._all_logits(self._to_inputs(features), self._to_edges(links))[n_documents:]

    def _all_logits(self, inputs: Tensor, edges: Tensor) -> Tensor:
        logits: Tensor = self.network(inputs, edges)
        return logits

    def _to_inputs(self, features: csr_array) -> Tensor:
        """Return features as a sparse tensor, for the first layer."""
        entries = features.tocoo()
        places = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))
        return _sparse(places, torch.from_numpy(entries.data), entries.shape).to(self.torch_device)

    def _to_edges(self, links: csr_array) -> Tensor:
        """Return links for PyTorch Geometric: sources and targets, each link in both directions."""
        entries = links.tocoo()
        return torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64)).to(self.torch_device)


def sparse_dropout(inputs: Tensor, share: float, training: bool) -> Tensor:
    """Drop a share of the non-zero features."""
    if not training:
        return inputs
    return _sparse(inputs.indices(), F.dropout(inputs.values(), share), inputs.shape)


def _sparse(places: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    return torch.sparse_coo_tensor(places, values, shape, is_coalesced=True, check_invariants=False)


def _in_rows(features: csr_array) -> csr_array:
    """Scale rows to the sum 1; the entries of a row come in the order of words."""
    rows = csr_array(features, dtype=np.float32, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    sums = abs(rows).sum(axis=1)
    rows.data /= np.repeat(sums, np.diff(rows.indptr))
    return rows


def _undirected(graph: csr_array) -> csr_array:
    """Return links in both directions, without weights and self-links."""
    entries = graph.tocoo()
    kept = (entries.data != 0) & (entries.row != entries.col)
    sources, targets = entries.row[kept], entries.col[kept]
    both = np.concatenate([sources, targets]), np.concatenate([targets, sources])
    links = csr_array((np.ones(len(both[0]), np.float32), both), shape=graph.shape)
    links.sum_duplicates()
    links.data[:] = 1
    return links
