"""WGCNEmbedder: vectors of words and texts, from texts without labels and the graph of their words."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import KW_ONLY, dataclass

import numpy as np
import numpy.typing as npt
from sklearn.base import TransformerMixin

from wgcn.base.errors import InputError, check_least, check_numbers
from wgcn.base.progress import shown, stage
from wgcn.estimators.preparation import Preparation, Prepared
from wgcn.estimators.text import TextEstimator
from wgcn.model.embedding import EmbeddingModel
from wgcn.semi.space import find_space
from wgcn.text.tokenize import Tokenizer, checked_texts


@dataclass(eq=False, repr=False)
class WGCNEmbedder(TransformerMixin, TextEstimator[EmbeddingModel]):
    """Turn texts into vectors of length 1 without labels: weighted sums of word vectors (`wgcn.semi.space`).

    Parameters
    ----------
    n_components : int, default=200
        Columns, an even number: half of them for the words, half for their neighbours. There are fewer if there are
        fewer texts or words than half of it.
    tokenizer, ngram_range, min_count, stop_words, window, n_jobs
        As in `WGCNTextClassifier`, but by default there are no n-grams of two words and more.
    graph_weight : float, default=2.0
        g, the weight of the neighbours relative to the words themselves.
    random_state : int, default=0
        Seed of the singular value decomposition.

    Attributes
    ----------
    word_embeddings_ : float32 array of shape (n_words, n_columns)
    word_graph_ : WordGraph
    vocabulary_ : Vocabulary
    model_ : EmbeddingModel
        What is saved, and what transforms.

    Examples
    --------
    >>> texts = ["red wine", "white wine", "fast car", "slow car"]
    >>> vectors = WGCNEmbedder(n_components=4).fit_transform(texts)
    >>> vectors.shape
    (4, 4)
    >>> bool(vectors[0] @ vectors[1] > vectors[0] @ vectors[2])
    True
    """

    n_components: int = 200
    _: KW_ONLY
    tokenizer: str | Tokenizer = "words"
    ngram_range: tuple[int, int] = (1, 1)
    min_count: int | None = None
    stop_words: Collection[str] | None = None
    window: int = 20
    graph_weight: float = 2.0
    n_jobs: int | None = None
    random_state: int = 0

    def fit(self, X: Iterable[str], y: object = None, *, verbose: bool = False) -> WGCNEmbedder:
        """Learn the vectors of the words from texts, without labels: `y` is ignored. `verbose` prints the stages."""
        with shown(verbose):
            self._fit(X)
        return self

    def fit_transform(self, X: Iterable[str], y: object = None, *, verbose: bool = False) -> npt.NDArray[np.float32]:
        """Learn from texts and return their vectors; the texts are read once. `verbose` prints the stages."""
        with shown(verbose):
            terms = self._fit(X).document_terms
        return self.model_.embed(terms.data, terms.indices, terms.indptr)

    def _fit(self, texts: Iterable[str]) -> Prepared:
        started = time.perf_counter()
        check_numbers(self, real=["graph_weight"], whole=["n_components"])
        if self.n_components < 2 or self.n_components % 2:
            raise InputError(f"n_components must be an even number of at least 2, got {self.n_components}.")
        check_least(self, 0, "graph_weight")
        prepared = Preparation.of(self).prepare(checked_texts(texts, "X"))
        assert prepared.word_graph is not None
        with stage("Finding vectors"):
            space = find_space(
                prepared.document_terms,
                prepared.word_graph.adjacency,
                n_components=self.n_components,
                graph_weight=self.graph_weight,
                random_state=self.random_state,
                n_jobs=self.n_jobs,
            )
        self.word_graph_, self.vocabulary_ = prepared.word_graph, prepared.vocabulary
        self.word_embeddings_ = np.ascontiguousarray(space.words, np.float32)
        parts = prepared.model_parts(
            self.get_params(deep=False),
            n_edges=prepared.word_graph.info().edges,
            seconds=round(time.perf_counter() - started, 2),
        )
        self.model_ = EmbeddingModel(word_embeddings=self.word_embeddings_, **parts)
        return prepared

    def transform(self, X: Iterable[str]) -> npt.NDArray[np.float32]:
        """Return a row of length 1 for each text, or of zeros for one without a known word."""
        return self._fitted.transform(checked_texts(X))
