"""EmbeddingModel: embeddings of texts with numpy alone, and the folder that it is saved in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wgcn.base.arrays import Floats, Ints
from wgcn.model.card import embedder_card
from wgcn.scoring.scorer import add_up
from wgcn.scoring.terms import TERM_SCHEMA, TextTerms, load_terms
from wgcn.store import folder as store


@dataclass(frozen=True, eq=False)
class EmbeddingModel(TextTerms):
    """A fitted text embedder: the content of the folder of a saved `WGCNEmbedder`.

    Parameters
    ----------
    word_embeddings : float32 array of shape (words, columns)
    tokenizer, ngram_range, vocabulary, weighting, settings, report, stop_words
        As in `TextModel`.

    Examples
    --------
    >>> from wgcn import WGCNEmbedder
    >>> model = WGCNEmbedder(n_components=2).fit(["red wine", "white wine", "fast car"]).model_
    >>> model.transform(["a glass of wine", "nothing known"]).shape
    (2, 2)
    """

    word_embeddings: npt.NDArray[np.float32]

    def transform(self, texts: Iterable[str], n_jobs: int | None = 1) -> Floats:
        """Return one row per text, of length 1, or zeros if no word is known; for `n_jobs` see `TextModel.scores`."""
        return self._rows(lambda terms: self.embed(*terms[:3]), texts, n_jobs)

    def embed(self, weights: Floats, words: Ints, offsets: Ints) -> Floats:
        """Return the rows of documents given by their weighted terms; see `wgcn.scoring.scorer.add_up`."""
        rows = add_up(self.word_embeddings, weights, words, offsets)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: Floats = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
        return unit

    def save(self, path: str | Path) -> str:
        """Write the embedder to a folder, completely or not at all; return its digest."""
        tensors = {"word_embeddings": self.word_embeddings, "idf": self.weighting.idf}
        given = path, "embedder", self._term_config(), tensors, self.vocabulary, embedder_card(self)
        return store.save_folder(*given, check=self._read)

    @classmethod
    def load(cls, path: str | Path) -> EmbeddingModel:
        """Read an embedder that `save` wrote. Nothing in it is executed."""
        return cls._read(store.load_folder(path, "embedder", TERM_SCHEMA))

    @classmethod
    def _read(cls, folder: store.Folder) -> EmbeddingModel:
        table = folder.tensor("word_embeddings", len(folder.vocabulary), None)
        return cls(**load_terms(folder), word_embeddings=table)
