"""A recurrent network with long short-term memory.

Pengfei Liu, Xipeng Qiu, Xuanjing Huang: Recurrent Neural Network for Text Classification with Multi-Task Learning.
IJCAI 2016. Yao et al. (2019) and those who follow them compare with its network for a single task: the last hidden
state stands for the text.

    i_t, f_t, o_t = sigmoid(W x_t + U h_{t-1} + b), each with its own weights;   g_t = tanh(W_g x_t + U_g h_{t-1} + b_g)
    c_t = f_t * c_{t-1} + i_t * g_t;   h_t = o_t * tanh(c_t);   y = softmax(V h_T + a)

With `bidirectional` a second network reads the text from its end, and both last states stand side by side (Bi-LSTM).

We differ in that the gates do not see c_{t-1}, since cuDNN has no such LSTM; that there is dropout on the word vectors
and on the last state; that we train with Adam in place of Adagrad; that f_t begins nearer to 1, so that a long text is
not forgotten before anything is learnt; and that only the first `max_length` words are read.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from wgcn_paper.methods.network import TRAINING
from wgcn_paper.methods.sequences import SEQUENCES, Batch, SequenceBaseline


class LSTMMethod(SequenceBaseline):
    """The last hidden state of an LSTM, or of one in each direction."""

    name = "lstm"
    at_least = 1
    defaults: ClassVar = {
        **SEQUENCES,
        **TRAINING,
        "hidden": 200,
        "bidirectional": False,
        "dropout": 0.5,
        "max_length": 400,
        "batch_size": 64,
        "max_epochs": 30,
        "patience": 5,
        "stopping": "accuracy",
    }

    def _make_network(self, n_classes: int) -> nn.Module:
        return _Network(self.sequences.embedding(), n_classes, **self._pick(("hidden", "bidirectional", "dropout")))


class _Network(nn.Module):
    def __init__(
        self, embedding: nn.Embedding, n_classes: int, hidden: int, bidirectional: bool, dropout: float
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.lstm = nn.LSTM(embedding.embedding_dim, hidden, bidirectional=bidirectional)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(hidden * (1 + bidirectional), n_classes)
        with torch.no_grad():
            for name, bias in self.lstm.named_parameters():
                if name.startswith("bias_ih"):
                    bias[hidden : 2 * hidden] = 1  # of the forget gate, the second of four

    def forward(self, batch: Batch) -> Tensor:
        # Ids are packed before they become vectors, so that there is never a vector for padding.
        packed = pack_padded_sequence(
            batch.padded(batch.ids, 0), torch.from_numpy(batch.sizes), batch_first=True, enforce_sorted=False
        )
        vectors = self.dropout(self.embedding(packed.data))
        _, (last, _) = self.lstm(
            PackedSequence(vectors, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
        )
        logits: Tensor = self.output(self.dropout(torch.cat(tuple(last), 1)))
        return logits
