"""WideMLP: a bag of words and one wide hidden layer.

L. Galke, A. Scherp: Bag-of-Words vs. Graph vs. Sequence in Text Classification: Questioning the Necessity of
Text-Graphs and the Surprising Strength of a Wide MLP. ACL 2022.

    logits = dropout(ReLU(x W_0 + b_0)) W_1 + b_1

x is the tf-idf of a document. The paper has 1,024 hidden units, dropout 0.5, and Adam with batches of 16 documents and
a rate of 0.001 that falls to 0 over 100 epochs. It takes the word pieces of BERT as words, and keeps the last epoch.

We differ: words are those that the other methods have; batches are larger, which a GPU needs to be fast; the rate stays
as it is; and validation documents choose the epoch, as for all networks here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from wgcn.text.corpus import Corpus
from wgcn.text.weighting import TermWeighting, document_terms, smooth_idf
from wgcn_paper.methods.network import TRAINING, NetworkBaseline
from wgcn_paper.methods.preparation import make_corpus

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from wgcn_paper.protocol import Query, Task


class WideMLP(nn.Module):
    """The network, with dropout of the hidden units."""

    def __init__(self, n_words: int, n_classes: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.word_weights = nn.Parameter(torch.empty(n_words, hidden))  # W_0
        self.bias = nn.Parameter(torch.zeros(hidden))  # b_0
        self.dropout = nn.Dropout(dropout)
        self.classes = nn.Linear(hidden, n_classes)  # W_1, b_1
        nn.init.xavier_uniform_(self.word_weights)

    def forward(self, words: Tensor, weights: Tensor, begins: Tensor) -> Tensor:
        """Return the logits of documents: their words, one after another, how much each counts, and where each begins.

        x W_0 is a weighted sum of a few rows of W_0, so x is never a dense row.
        """
        sums = F.embedding_bag(words, self.word_weights, begins, mode="sum", per_sample_weights=weights)
        logits: Tensor = self.classes(self.dropout(torch.relu(sums + self.bias)))
        return logits


class _Terms(NamedTuple):
    """A sparse matrix of which rows can be taken quickly: its words and weights lie on the device."""

    words: Tensor
    weights: Tensor
    offsets: npt.NDArray[np.int64]

    @classmethod
    def of(cls, terms: csr_array, device: torch.device) -> _Terms:
        words = torch.from_numpy(terms.indices.astype(np.int64)).to(device)
        return cls(words, torch.from_numpy(terms.data).to(device), terms.indptr.astype(np.int64))

    def rows(self, rows: npt.NDArray[np.int64]) -> tuple[Tensor, Tensor, Tensor]:
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        begins = np.cumsum(lengths) - lengths
        places = np.repeat(self.offsets[rows] - begins, lengths) + np.arange(lengths.sum())
        taken = torch.from_numpy(places).to(self.words.device)
        return self.words[taken], self.weights[taken], torch.from_numpy(begins).to(self.words.device)


class WideMLPMethod(NetworkBaseline):
    """WideMLP on tf-idf. Vocabulary and idf come from all text that may be seen."""

    name = "wide-mlp"
    defaults: ClassVar = {
        **TRAINING,
        "tokenizer": "text_gcn",
        "stop_words": False,
        "min_count": 1,
        "sublinear": False,
        "hidden": 1024,
        "dropout": 0.5,
        "learning_rate": 0.001,
        "batch_size": 256,
        "max_epochs": 100,
    }

    def _prepare(self, task: Task) -> None:
        assert task.texts is not None
        corpus = make_corpus(task.texts, self.settings)
        self._vocabulary = corpus.vocabulary
        self._weighting = TermWeighting(
            smooth_idf(self._vocabulary.document_counts, len(corpus)), sublinear=self.settings["sublinear"]
        )
        self._documents = self._terms(corpus)

    def _make_network(self, n_classes: int) -> WideMLP:
        return WideMLP(len(self._vocabulary), n_classes, self.settings["hidden"], self.settings["dropout"])

    def _logits(self, rows: npt.NDArray[np.int64]) -> Tensor:
        logits: Tensor = self.network(*self._documents.rows(rows))
        return logits

    def _query_logits(self, query: Query) -> Tensor:
        assert query.texts is not None
        corpus = Corpus.from_texts(query.texts, tokenizer=self.settings["tokenizer"], vocabulary=self._vocabulary)
        logits: Tensor = self.network(*self._terms(corpus).rows(np.arange(len(corpus))))
        return logits

    def _words(self) -> tuple[str, ...]:
        return self._vocabulary.words

    def _terms(self, corpus: Corpus) -> _Terms:
        return _Terms.of(document_terms(corpus, self._weighting), self.torch_device)
