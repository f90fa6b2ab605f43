"""Documents as sequences of words, for CNN, LSTM and Text-level GNN: ids, batches and word vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import Vocabulary
from wgcn_paper.methods.network import NetworkBaseline
from wgcn_paper.methods.preparation import Kept, make_corpus
from wgcn_paper.vectors.word_vectors import word_vectors

if TYPE_CHECKING:
    from wgcn_paper.protocol import Query, Task


# Settings of every sequence method. "word_vectors" is "" for random ones of "dimension" values, or
# a source of `wgcn_paper.vectors.word_vectors.word_vectors`, which then fixes the dimension. The first "max_length"
# words of a document are read, or all if it is 0.
SEQUENCES: Mapping[str, Any] = {
    "tokenizer": "text_gcn",
    "stop_words": False,
    "min_count": 1,
    "word_vectors": "distilled",
    "dimension": 300,
    "max_length": 0,
}

# Vocabularies and vectors depend on neither labels nor seed, so consecutive cells share them.
_prepared: Kept[Sequences] = Kept(most=2)


@dataclass(frozen=True, eq=False)
class Batch:
    """Some documents on the device, their words one after another, so that no work goes into padding."""

    ids: Tensor  # (tokens,): words; the word with id i in the vocabulary has id i + 1 here, and 0 is no word
    document: Tensor  # (tokens,): the document of each token, and its place in it
    place: Tensor
    lengths: Tensor  # (documents,): words of each document
    # (documents,): tokens of each document: its words, padded with 0 to the required minimum
    sizes: npt.NDArray[np.int64]

    def padded(self, values: Tensor, fill: float) -> Tensor:
        """Return values of tokens as (documents, tokens of the longest, ...)."""
        shape = (len(self.sizes), int(self.sizes.max(initial=0)), *values.shape[1:])
        return values.new_full(shape, fill).index_put((self.document, self.place), values)


class Documents:
    """Documents on the device, to take batches from."""

    def __init__(self, corpus: Corpus, max_length: int, device: torch.device) -> None:
        self.lengths = np.minimum(corpus.lengths, max_length or np.iinfo(np.int64).max)
        self._begins = corpus.offsets[:-1]
        # The 0 at the end is the padding.
        self._ids = torch.from_numpy(np.append(corpus.ids + 1, 0).astype(np.int32)).to(device)

    def batch(self, rows: npt.NDArray[np.int64], at_least: int = 0) -> Batch:
        """Return documents by their places, each with 0 after its words up to `at_least` tokens."""
        device = self._ids.device
        sizes = np.maximum(self.lengths[rows], at_least)
        total = int(sizes.sum())
        # One transfer, and no synchronisation with the device.
        known = np.stack([sizes, np.cumsum(sizes) - sizes, self._begins[rows], self.lengths[rows]])
        counts, first, begins, lengths = torch.from_numpy(known).to(device)
        document = torch.repeat_interleave(counts, output_size=total)
        place = torch.arange(total, device=device) - first[document]
        inside = place < lengths[document]
        ids = self._ids[torch.where(inside, begins[document] + place, len(self._ids) - 1)]
        return Batch(ids.long(), document, place, lengths, sizes)

    def __len__(self) -> int:
        return len(self.lengths)


class Sequences:
    """Texts as ids of words, and the words' vectors.

    The vocabulary is of all texts that may be seen; the settings have the keys of `SEQUENCES`.
    """

    def __init__(self, texts: Sequence[str], settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.corpus = make_corpus(texts, settings)

    @property
    def vocabulary(self) -> Vocabulary:
        """The words."""
        return self.corpus.vocabulary

    def encode(self, texts: Sequence[str]) -> Corpus:
        """Return other texts in the same vocabulary; words outside it are left out."""
        return Corpus.from_texts(texts, tokenizer=self.settings["tokenizer"], vocabulary=self.vocabulary)

    @cached_property
    def vectors(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """The given vectors, and which words have one."""
        return word_vectors(self.vocabulary.words, self.settings["word_vectors"])

    def embedding(self, scale: float = 0.25) -> nn.Embedding:
        """Return the words' vectors, to be trained: given ones, or random ones between -scale and scale.

        Kim (2014) draws words that the given vectors lack so that they have the variance of the given. Here the given
        ones are scaled to that of the random, since it differs much between sources, and small vectors learn slowly.
        """
        given, known = self.vectors if self.settings["word_vectors"] else (None, None)
        table = torch.empty(len(self.vocabulary) + 1, self.settings["dimension"] if given is None else given.shape[1])
        table.uniform_(-scale, scale)
        if given is not None and known is not None and known.any():
            factor = scale / 3**0.5 / (float(given[known].std()) or 1.0)
            table[1:][torch.from_numpy(known)] = torch.from_numpy(given[known] * np.float32(factor))
        table[0] = 0
        return nn.Embedding(len(table), table.shape[1], padding_idx=0, _weight=table)


class SequenceBaseline(NetworkBaseline):
    """A method whose network takes a `Batch` and gives logits. Unseen words are left out."""

    sequences: Sequences
    at_least = 0  # least number of tokens that the network can read

    def _prepare(self, task: Task) -> None:
        texts, settings = task.texts, self._pick(SEQUENCES)
        assert texts is not None
        self.sequences = _prepared.find([task.digest, settings], lambda: Sequences(texts, settings))
        self.documents = self._on_device(self.sequences.corpus)

    @abstractmethod
    def _make_network(self, n_classes: int) -> nn.Module:
        """Return a network that takes a `Batch`."""

    def _logits(self, rows: npt.NDArray[np.int64]) -> Tensor:
        return self._of(self.documents, rows)

    def _query_logits(self, query: Query) -> Tensor:
        assert query.texts is not None
        documents = self._on_device(self.sequences.encode(query.texts))
        return self._in_batches(lambda rows: self._of(documents, rows), len(documents))

    def _words(self) -> tuple[str, ...]:
        return self.sequences.vocabulary.words

    def _on_device(self, corpus: Corpus) -> Documents:
        return Documents(corpus, self.settings["max_length"], self.torch_device)

    def _of(self, documents: Documents, rows: npt.NDArray[np.int64]) -> Tensor:
        logits: Tensor = self.network(documents.batch(rows, self.at_least))
        return logits
