"""GCN: T. N. Kipf and M. Welling, Semi-supervised classification with graph convolutional networks, ICLR 2017.

With A the links of documents, X their features with rows that sum to 1, and D the degrees of A + I:

    S = D^-1/2 (A + I) D^-1/2
    logits = S ReLU(S X W_0) W_1

Dropout of 0.5 before both products with weights, Adam, and weight decay on W_0 alone. There are no biases, as in the
authors' code. The validation documents choose the epoch, by the authors' rule: training ends when the
validation loss is above the mean of the ten epochs before, or after 200 epochs, and the last weights are kept.

The authors classify documents that are in the graph at training. For those that come later, see `citation_graph`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wgcn_paper.methods.citation_graph import CitationBaseline, sparse_dropout
from wgcn_paper.methods.network import TRAINING


class GCNMethod(CitationBaseline):
    """Two graph convolutions, those of PyTorch Geometric."""

    name = "gcn"
    packages = ("torch_geometric",)
    defaults: ClassVar = {
        **TRAINING,
        "hidden": 16,
        "dropout": 0.5,
        "learning_rate": 0.01,
        "weight_decay": 5e-4,
        "stopping": "mean",
    }

    network: _Network

    def _make_network(self, n_classes: int) -> nn.Module:
        return _Network(self._features.shape[1], self.settings["hidden"], n_classes, self.settings["dropout"])

    def _parameter_groups(self) -> list[dict[str, Any]]:
        return [
            {"params": list(self.network.first.parameters()), "weight_decay": self.settings["weight_decay"]},
            {"params": list(self.network.second.parameters())},
        ]


class _Network(nn.Module):
    def __init__(self, n_features: int, hidden: int, n_classes: int, dropout: float) -> None:
        from wgcn_paper.methods.geometric import GCNConv

        super().__init__()
        self.first = GCNConv(n_features, hidden, bias=False)
        self.second = GCNConv(hidden, n_classes, bias=False)
        self.dropout = dropout

    def forward(self, inputs: Tensor, edges: Tensor) -> Tensor:
        hidden = F.relu(self.first(sparse_dropout(inputs, self.dropout, self.training), edges))
        logits: Tensor = self.second(F.dropout(hidden, self.dropout, self.training), edges)
        return logits
