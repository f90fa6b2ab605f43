"""GIN: K. Xu, W. Hu, J. Leskovec and S. Jegelka, How powerful are graph neural networks?, ICLR 2019.

A layer adds up the rows of a document and its neighbours N(v), without dividing by their number:

    h_v' = MLP((1 + epsilon) h_v + sum of h_u over u in N(v))
    MLP(h) = ReLU(W_2 ReLU(W_1 h) + b)

with epsilon learnt, one per layer, starting at 0. The first h is X, whose rows sum to 1.

The authors classify whole graphs and sum the rows of their nodes; here each document is classified, so its own last
row, with dropout, goes into a linear layer. They also normalise batches within the MLP. Here one graph with few labels
is the only batch, and with that normalisation validation accuracy on Citeseer was about ten points lower, all else
being equal (two seeds), so it is left out. Dropout on X and weight decay are those of GCN.

W_1 X of the first layer is formed before the sum over neighbours rather than after: both are linear, so the outcome is
the same, and the sum runs over `hidden` columns instead of one for each word.

The paper gives 70.9 +- 0.1 for GIN on Citeseer and 78.9 +- 0.1 on Pubmed. These are, as far as we know, the figures of
another method, GLN, in table 2 of Wu et al. (Simplifying graph convolutional networks, ICML 2019), where GIN has 66.1
+- 0.9 and 77.0 +- 1.2. We quote that table from memory; we have seen these figures of GIN in one later work (table 1 of
A unified framework for convolution-based graph neural networks, submitted to ICLR 2021), but none of GLN.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wgcn_paper.methods.citation_graph import CitationBaseline, sparse_dropout
from wgcn_paper.methods.network import TRAINING


class GINMethod(CitationBaseline):
    """Layers of sums over neighbours, those of PyTorch Geometric, and a linear layer."""

    name = "gin"
    packages = ("torch_geometric",)
    defaults: ClassVar = {
        **TRAINING,
        "layers": 2,
        "hidden": 64,
        "dropout": 0.5,
        "input_dropout": 0.5,
        "learning_rate": 0.01,
        "weight_decay": 5e-4,
        "patience": 200,
        "stopping": "accuracy",
    }

    def _make_network(self, n_classes: int) -> nn.Module:
        settings = self._pick(("layers", "hidden", "dropout", "input_dropout"))
        return _Network(self._features.shape[1], n_classes, **settings)


class _Network(nn.Module):
    def __init__(
        self, n_features: int, n_classes: int, layers: int, hidden: int, dropout: float, input_dropout: float
    ) -> None:
        from wgcn_paper.methods.geometric import GINConv

        super().__init__()
        self.first = nn.Linear(n_features, hidden, bias=False)
        self.layers = nn.ModuleList(GINConv(_perceptron(hidden, whole=i > 0), train_eps=True) for i in range(layers))
        self.last = nn.Linear(hidden, n_classes)
        self.dropout, self.input_dropout = dropout, input_dropout

    def forward(self, inputs: Tensor, edges: Tensor) -> Tensor:
        hidden = self.first(sparse_dropout(inputs, self.input_dropout, self.training))
        for layer in self.layers:
            hidden = layer(hidden, edges)
        logits: Tensor = self.last(F.dropout(hidden, self.dropout, self.training))
        return logits


def _perceptron(size: int, *, whole: bool) -> nn.Sequential:
    """Return the MLP of a layer, or, for the first layer, what comes after W_1."""
    first = [nn.Linear(size, size, bias=False)] if whole else []
    return nn.Sequential(*first, nn.ReLU(), nn.Linear(size, size), nn.ReLU())
