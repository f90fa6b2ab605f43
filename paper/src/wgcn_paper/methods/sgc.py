"""SGC: F. Wu, T. Zhang, A. Souza, C. Fifty, T. Yu, K. Weinberger, Simplifying graph convolutional networks, ICML 2019.

A graph convolutional network without what is between its layers is a linear model of features that are smoothed once:

    S = D^-1/2 (A + I) D^-1/2
    logits = S^K X W + b

with A the links of documents, D the degrees of A + I, and X their features with rows that sum to 1. S^K X is made once.
Adam with a learning rate of 0.2 runs for 100 epochs, without dropout; the last weights are kept. The authors choose the
weight decay for each data set on its validation documents, and so do we.

The authors classify documents that are in the graph at training. For those that come later, see `citation_graph`.
"""

from __future__ import annotations

from typing import ClassVar

from scipy.sparse import csr_array
from torch import Tensor, nn

from wgcn_paper.methods.citation_graph import CitationBaseline
from wgcn_paper.methods.network import TRAINING


class SGCMethod(CitationBaseline):
    """A linear model of smoothed features, the layer of PyTorch Geometric."""

    name = "sgc"
    packages = ("torch_geometric",)
    defaults: ClassVar = {
        **TRAINING,
        "hops": 2,
        "learning_rate": 0.2,
        "weight_decay": 1e-5,
        "max_epochs": 100,
        # A patience that never ends, and the last weights.
        "stopping": "mean",
        "patience": 100,
    }

    def _make_network(self, n_classes: int) -> nn.Module:
        return self._layer(n_classes, cached=True)

    def _layer(self, n_classes: int, cached: bool) -> nn.Module:
        from wgcn_paper.methods.geometric import SGConv

        layer: nn.Module = SGConv(self._features.shape[1], n_classes, K=self.settings["hops"], cached=cached)
        return layer

    def _all_logits(self, inputs: Tensor, edges: Tensor) -> Tensor:
        if inputs is self._inputs:
            return super()._all_logits(inputs, edges)
        # The trained layer keeps the smoothed features of the task, so another one takes those of a larger graph.
        layer = self._layer(len(self.classes), cached=False).to(self.torch_device)
        layer.load_state_dict(self.network.state_dict())
        logits: Tensor = layer(inputs, edges)
        return logits

    def _to_inputs(self, features: csr_array) -> Tensor:
        return super()._to_inputs(features).to_dense()
