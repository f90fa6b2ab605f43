"""A graph for each text, with weights that all texts share.

Lianzhe Huang, Dehong Ma, Sujian Li, Xiaodong Zhang, Houfeng Wang: Text Level Graph Neural Network for Text
Classification. EMNLP 2019. Their code: github.com/mojave-pku/TextLevelGCN.

The nodes of a text are its different words, with vectors r. There is an edge from word a to word n wherever they are at
most p places apart in the text, and from every word to itself. Its weight e_an belongs to the ordered pair of words and
is the same in all texts; it starts at 1 and is trained, as are the vectors. In the code, which we follow,

    r'_n = max_a e_an r_a, for each value of the vectors by itself;   t = sum_n r'_n
    y = softmax(W ReLU(dropout(t)) + b)

The paper differs from the code in these points:

- It mixes in the old vector, r'_n = (1 - eta_n) max_a e_an r_a + eta_n r_n, with eta_n a learnt number for each word.
  The code has this commented out; the setting "mixed" turns it on, and eta_n then starts at 0.5.
- It has y = softmax(ReLU(W t + b)), where a class whose value is below zero for all texts gets no gradient.
- Its sum can be read as one over tokens. In the code a word that occurs twice is one node, with all its neighbours.
- Pairs that occur fewer than k = 2 times in the training texts share one weight. In the code, pairs share it whose
  PMI in the training texts, counted within 20 places, is not positive.
- It chooses p for each data set. The default of the code is 4.

We differ from both in these points:

- Pairs share a weight by the rule of the paper alone: of the pairs that occur within 4 places in the training texts of
  R8 and MR, more than 99.9 % have positive PMI. A word with itself is a pair that occurs at each of its places; in the
  code it needs to occur twice within 20 places.
- The word vectors are 200 values of GloVe there, and those of the setting "word_vectors" here.
- The vocabulary is that of all texts that may be seen, without words that occur once; other words are left out. That of
  the code is of the training texts, and "UNK" stands for words that occur fewer than 5 times there. Weight decay is a
  part of the gradient in both, so Adam shrinks to zero what no gradient reaches: here also the vectors of words that
  no text with a label has.
- Validation accuracy is computed once per epoch, not every 100 batches, and the texts are shuffled in every epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from wgcn_paper.methods.baseline import array_digest
from wgcn_paper.methods.network import TRAINING
from wgcn_paper.methods.preparation import Kept
from wgcn_paper.methods.sequences import SEQUENCES, Batch, Documents, SequenceBaseline

if TYPE_CHECKING:
    from wgcn_paper.protocol import Task


# Counting pairs takes seconds on the larger sets and does not depend on the seed.
_pairs: Kept[npt.NDArray[np.int64]] = Kept(most=2)


class TextLevelGNNMethod(SequenceBaseline):
    """The largest message from the words nearby, summed over the different words of a text."""

    name = "text-level-gnn"
    documents_at_once = 1000  # whose pairs are counted
    version: ClassVar[int] = 2
    defaults: ClassVar = {
        **SEQUENCES,
        **TRAINING,
        "min_count": 2,
        "max_length": 350,
        "window": 4,
        "min_pairs": 2,
        "mixed": False,
        "dropout": 0.5,
        "weight_decay": 1e-6,
        "batch_size": 32,
        "max_epochs": 200,
        "patience": 25,
        "stopping": "accuracy",
    }

    def _prepare(self, task: Task) -> None:
        super()._prepare(task)
        labelled = np.flatnonzero([label is not None for label in task.labels])
        names = ("tokenizer", "stop_words", "min_count", "max_length", "window", "min_pairs")
        source = [task.digest, array_digest(labelled), self._pick(names)]
        self.pairs = _pairs.find(source, lambda: self._frequent_pairs(labelled))

    def _make_network(self, n_classes: int) -> nn.Module:
        settings = self._pick(("window", "mixed", "dropout"))
        return _Network(self.sequences.embedding(), torch.from_numpy(self.pairs), n_classes, **settings)

    def _frequent_pairs(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the pairs that have weights of their own, as sorted numbers."""
        documents = Documents(self.sequences.corpus, self.settings["max_length"], torch.device("cpu"))
        n_rows = len(self.sequences.vocabulary) + 1
        pairs, counts = np.empty(0, np.int64), np.empty(0, np.int64)
        for begin in range(0, len(rows), self.documents_at_once):
            batch = documents.batch(rows[begin : begin + self.documents_at_once])
            sources, targets = near_tokens(batch, self.settings["window"])
            numbers = batch.ids[sources] * n_rows + batch.ids[targets]
            new, new_counts = np.unique(numbers.numpy(), return_counts=True)
            pairs, places = np.unique(np.concatenate([pairs, new]), return_inverse=True)
            counts = np.bincount(places, np.concatenate([counts, new_counts]), len(pairs)).astype(np.int64)
        frequent: npt.NDArray[np.int64] = pairs[counts >= self.settings["min_pairs"]]
        return frequent


class _Network(nn.Module):
    pairs: Tensor

    def __init__(
        self, embedding: nn.Embedding, pairs: Tensor, n_classes: int, window: int, mixed: bool, dropout: float
    ) -> None:
        super().__init__()
        self.embedding, self.window = embedding, window
        # Pair 0 stands for all that are too rare; no pair of words has the number -1.
        self.register_buffer("pairs", torch.cat([torch.tensor([-1]), pairs]), persistent=False)
        self.edges = nn.Parameter(torch.ones(len(pairs) + 1))
        self.kept = nn.Parameter(torch.full((embedding.num_embeddings, 1), 0.5)) if mixed else None
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(embedding.embedding_dim, n_classes)

    def forward(self, batch: Batch) -> Tensor:
        document, words, source, target = text_graphs(batch, self.window, self.embedding.num_embeddings)
        vectors = self.embedding(words)  # (nodes, values)
        messages = self._weights(words[source], words[target])[:, None] * vectors[source]  # (edges, values)
        # Every node has a message from itself, so the zeros are all replaced.
        nodes = torch.zeros_like(vectors).scatter_reduce(
            0, target[:, None].expand_as(messages), messages, "amax", include_self=False
        )
        if self.kept is not None:
            kept = self.kept[words]
            nodes = (1 - kept) * nodes + kept * vectors
        texts = nodes.new_zeros(len(batch.sizes), nodes.shape[1]).index_add(0, document, nodes)
        logits: Tensor = self.output(F.relu(self.dropout(texts)))
        return logits

    def _weights(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Return the weights of pairs of words."""
        numbers = sources * self.embedding.num_embeddings + targets
        rows = torch.searchsorted(self.pairs, numbers).clamp(max=len(self.pairs) - 1)
        return self.edges[torch.where(self.pairs[rows] == numbers, rows, 0)]


def near_tokens(batch: Batch, window: int) -> tuple[Tensor, Tensor]:
    """Return the places of all ordered pairs of tokens at most `window` apart in a text, each with itself too."""
    places = batch.place[:, None] + torch.arange(-window, window + 1, device=batch.place.device)
    inside = (places >= 0) & (places < batch.lengths[batch.document][:, None])
    targets, steps = inside.nonzero(as_tuple=True)
    return targets + steps - window, targets


def text_graphs(batch: Batch, window: int, n_rows: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the graphs of texts, one after another, in which words at most `window` places apart are joined.

    Returned are document and word of each node, no two of which are alike in both, and source and target of each edge,
    without repetition, in the order of the targets. `n_rows` is above every id of a word.
    """
    nodes, node = torch.unique(batch.document * n_rows + batch.ids, return_inverse=True)
    sources, targets = near_tokens(batch, window)
    # A text has many edges more than once; without the copies there are fewer messages.
    edges = torch.unique(node[targets] * len(nodes) + node[sources])
    return nodes // n_rows, nodes % n_rows, edges % len(nodes), edges // len(nodes)
