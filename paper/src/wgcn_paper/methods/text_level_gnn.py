"""A graph for each text, with weights that all texts share.

Lianzhe Huang, Dehong Ma, Sujian Li, Xiaodong Zhang, Houfeng Wang: Text Level Graph Neural Network for Text
Classification. EMNLP 2019.

The nodes of a text are its words, with vectors r. Node n has an edge from each word a that is at most p places away,
and that edge has a weight e_an of the pair of words, wherever it occurs. Pairs that occur fewer than k = 2 times in the
training texts share one weight. With eta_n a learnt number for each word:

    M_n = max_a e_an r_a, for each value of the vectors by itself;   r'_n = (1 - eta_n) M_n + eta_n r_n
    y = softmax(W sum_n r'_n + b)

The paper's edges run over places n - p to n + p, so that a node is a neighbour of itself, also here.

We differ in three things. The paper has y = softmax(ReLU(W sum_n r'_n + b)); a class whose value is below zero for all
documents gets no gradient then, and with two classes training may not start (as on MR), so we leave the ReLU out.
A word that occurs twice in a text is two nodes, each with its own neighbours, as the sums are written. And dropout is
applied to the sum over nodes, since nothing follows the dense layer but softmax.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from wgcn_paper.methods.baseline import array_digest
from wgcn_paper.methods.network import TRAINING
from wgcn_paper.methods.preparation import Kept
from wgcn_paper.methods.sequences import SEQUENCES, Batch, Documents, SequenceBaseline

if TYPE_CHECKING:
    from wgcn_paper.protocol import Task

__all__ = ["TextLevelGNNMethod"]

# Counting pairs takes seconds on the larger sets and does not depend on the seed.
_pairs: Kept[npt.NDArray[np.int64]] = Kept(most=2)
_DOCUMENTS_AT_ONCE = 1000


class TextLevelGNNMethod(SequenceBaseline):
    """The largest message from the words nearby, summed over a text."""

    name = "text-level-gnn"
    defaults: ClassVar = {
        **SEQUENCES,
        **TRAINING,
        "min_count": 2,
        "max_length": 350,
        "window": 3,
        "min_pairs": 2,
        "dropout": 0.5,
        "weight_decay": 1e-4,
        "batch_size": 32,
        "max_epochs": 50,
        "patience": 10,
        "stopping": "accuracy",
    }

    def _prepare(self, task: Task) -> None:
        super()._prepare(task)
        labelled = np.flatnonzero([label is not None for label in task.labels])
        names = ("tokenizer", "stop_words", "min_count", "max_length", "window", "min_pairs")
        source = [task.digest, array_digest(labelled), self._pick(names)]
        self.pairs = _pairs.find(source, lambda: self._frequent_pairs(labelled))

    def _make_network(self, n_classes: int) -> nn.Module:
        return _Network(
            self.sequences.embedding(), torch.from_numpy(self.pairs), n_classes, **self._pick(("window", "dropout"))
        )

    def _frequent_pairs(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the pairs that have weights of their own, as sorted numbers."""
        documents = Documents(self.sequences.corpus, self.settings["max_length"], torch.device("cpu"))
        pairs, counts = np.empty(0, np.int64), np.empty(0, np.int64)
        for begin in range(0, len(rows), _DOCUMENTS_AT_ONCE):
            batch = documents.batch(rows[begin : begin + _DOCUMENTS_AT_ONCE])
            inside = neighbours(batch, self.settings["window"])
            numbers = pair_numbers(batch, self.settings["window"], len(self.sequences.vocabulary))
            new, new_counts = np.unique(numbers[inside].numpy(), return_counts=True)
            pairs, places = np.unique(np.concatenate([pairs, new]), return_inverse=True)
            counts = np.bincount(places, np.concatenate([counts, new_counts]), len(pairs)).astype(np.int64)
        frequent: npt.NDArray[np.int64] = pairs[counts >= self.settings["min_pairs"]]
        return frequent


class _Network(nn.Module):
    pairs: Tensor

    def __init__(self, embedding: nn.Embedding, pairs: Tensor, n_classes: int, window: int, dropout: float) -> None:
        super().__init__()
        self.embedding, self.window = embedding, window
        self.n_words = embedding.num_embeddings - 1
        # Pair 0 stands for all that are too rare; no pair of words has the number -1.
        self.register_buffer("pairs", torch.cat([torch.tensor([-1]), pairs]), persistent=False)
        self.edges = nn.Parameter(torch.ones(len(pairs) + 1))
        self.kept = nn.Parameter(torch.full((embedding.num_embeddings,), 0.5))
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(embedding.embedding_dim, n_classes)

    def forward(self, batch: Batch) -> Tensor:
        vectors = self.embedding(batch.ids)
        inside = neighbours(batch, self.window)
        edges = self.edges[self._rows(batch)][..., None]
        messages = torch.stack(
            [
                # Beyond the ends of the text, the node itself is used, which is among its neighbours anyway.
                torch.where(inside[:, i, None], vectors.roll(-step, 0), vectors)
                for i, step in enumerate(range(-self.window, self.window + 1))
            ],
            1,
        )
        kept = self.kept[batch.ids][:, None]
        nodes = (1 - kept) * (edges * messages).amax(1) + kept * vectors
        texts = nodes.new_zeros(len(batch.sizes), nodes.shape[1]).index_add(0, batch.document, nodes)
        logits: Tensor = self.output(self.dropout(texts))
        return logits

    def _rows(self, batch: Batch) -> Tensor:
        """Return the place of each pair in the table of weights."""
        numbers = pair_numbers(batch, self.window, self.n_words)
        rows = torch.searchsorted(self.pairs, numbers).clamp(max=len(self.pairs) - 1)
        return torch.where(self.pairs[rows] == numbers, rows, 0)


def neighbours(batch: Batch, window: int) -> Tensor:
    """Return which of the places from -window to window around each token are inside its text."""
    places = batch.place[:, None] + torch.arange(-window, window + 1, device=batch.place.device)
    return (places >= 0) & (places < batch.lengths[batch.document][:, None])


def pair_numbers(batch: Batch, window: int, n_words: int) -> Tensor:
    """Return a number for each neighbour and token; where no neighbour is, that of the token with itself."""
    steps = range(-window, window + 1)
    around = torch.stack([batch.ids.roll(-step) for step in steps], 1)
    sources = torch.where(neighbours(batch, window), around, batch.ids[:, None])
    return sources * (n_words + 1) + batch.ids[:, None]
