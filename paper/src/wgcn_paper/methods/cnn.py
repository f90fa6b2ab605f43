"""A convolutional network over word vectors.

Yoon Kim: Convolutional Neural Networks for Sentence Classification. EMNLP 2014.

With x_t the vector of word t, a filter w of width h gives c_t = ReLU(w . [x_t; ...; x_{t+h-1}] + b) at each window of
h words, and keeps the largest, max_t c_t. Filters of width 3, 4 and 5, 100 of each, make the 300 features z of a
document; y = softmax(W (z * r) + b), where r drops half of the features in training. After each step a row of W that is
longer than 3 is cut back to 3. The vectors are trained with the rest: "CNN-rand" where they begin at random,
"CNN-non-static" where they are given.

We differ in that we train with Adam in place of Adadelta, since the loop here is the same for all networks, and in the
padding: windows lie inside the document, where Kim adds zeros on both sides. A document shorter than a filter has one
window, filled up with zeros.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from wgcn_paper.methods.network import TRAINING
from wgcn_paper.methods.sequences import SEQUENCES, Batch, SequenceBaseline

_WIDTHS = (3, 4, 5)


class CNNMethod(SequenceBaseline):
    """Filters over three to five words, and the largest value of each."""

    name = "cnn"
    at_least = max(_WIDTHS)
    defaults: ClassVar = {
        **SEQUENCES,
        **TRAINING,
        "feature_maps": 100,
        "dropout": 0.5,
        "max_norm": 3.0,
        "max_length": 1000,
        "batch_size": 50,
        "max_epochs": 20,
        "patience": 3,
        "stopping": "accuracy",
    }

    def _make_network(self, n_classes: int) -> nn.Module:
        return _Network(self.sequences.embedding(), n_classes, **self._pick(("feature_maps", "dropout", "max_norm")))


class _Network(nn.Module):
    def __init__(
        self, embedding: nn.Embedding, n_classes: int, feature_maps: int, dropout: float, max_norm: float
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.filters = nn.ModuleList(nn.Conv1d(embedding.embedding_dim, feature_maps, width) for width in _WIDTHS)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(len(_WIDTHS) * feature_maps, n_classes)
        self.max_norm = max_norm

    def forward(self, batch: Batch) -> Tensor:
        # Before a step is as good as after the step before it, and the shared loop needs to know nothing of it.
        with torch.no_grad():
            self.output.weight.renorm_(2, 0, self.max_norm)
        vectors = self.embedding(batch.ids).t()[None]
        features = [
            self._largest(vectors, width, filters, batch) for width, filters in zip(_WIDTHS, self.filters, strict=True)
        ]
        logits: Tensor = self.output(self.dropout(torch.cat(features, 1)))
        return logits

    @staticmethod
    def _largest(vectors: Tensor, width: int, filters: nn.Module, batch: Batch) -> Tensor:
        """Return (documents, filters). All documents are one sequence, and windows across their ends do not count."""
        values = filters(F.pad(vectors, (0, width - 1)))[0].t()
        windows = (batch.lengths - width + 1).clamp(min=1)
        outside = batch.place >= windows[batch.document]
        # The largest before ReLU is the largest after it.
        return F.relu(batch.padded(values.masked_fill(outside[:, None], -torch.inf), -torch.inf).amax(1))
