"""Pretrained word vectors, from files or from a sentence encoder, for training and for the methods that need them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from wgcn.estimators.preparation import Preparation, Prepared
from wgcn.text.tokenize import Tokenizer
from wgcn_paper.vectors.word_vectors import read_word_vectors
from wgcn_paper.vectors.word_vectors import word_vectors as vectors_of

__all__ = ["ENCODER", "distilled_vectors", "read_word_vectors", "word_vector_matrix"]

ENCODER = "encoder"  # word vectors whose sums are close to the encoder's vectors of the documents


def distilled_vectors(texts: Sequence[str], tokenizer: str | Tokenizer = "words") -> dict[str, npt.NDArray[np.float32]]:
    """Return word vectors (384,) whose sums are close to a sentence encoder's vectors of the texts (`distil`).

    They are for `WGCNTextClassifier.fit(vectors=)`, where few of the texts are labelled: give all training texts,
    labelled or not, and the tokeniser of the classifier. The encoder reads each text once and keeps the result in its
    cache.
    """
    prepared = Preparation(tokenizer=tokenizer).prepare(texts, with_graph=False)
    vectors = word_vector_matrix(ENCODER, prepared, texts)
    vocabulary = prepared.vocabulary
    return {vocabulary.words[i]: vectors[i] for i in np.flatnonzero(~vocabulary.are_ngrams)}


def word_vector_matrix(source: str, prepared: Prepared, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return vectors of the words of prepared texts, for `WGCNClassifier.fit(word_vectors=)`; n-grams have zeros.

    The source is "encoder", for vectors distilled from the encoder's vectors of the texts, or one of `word_vectors`.
    """
    single = np.flatnonzero(~prepared.vocabulary.are_ngrams)
    if source == ENCODER:
        from wgcn_paper.vectors import encoder
        from wgcn_paper.vectors.distil import distil

        found = distil(prepared.document_terms[:, single], encoder.encode_cached(texts, "documents"))
    else:
        found = vectors_of([prepared.vocabulary.words[i] for i in single], source)[0]
    vectors = np.zeros((len(prepared.vocabulary), found.shape[1]), np.float32)
    vectors[single] = found
    return vectors
