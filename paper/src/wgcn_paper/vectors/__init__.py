"""Word vectors from elsewhere: out of files, or from a sentence encoder, for the methods and rows that need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from wgcn.estimators.preparation import Prepared

__all__ = ["ENCODER", "word_vector_matrix"]

ENCODER = "encoder"  # vectors of words that add up to what the encoder makes of documents


def word_vector_matrix(source: str, prepared: Prepared, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return vectors of the words of prepared texts, for `WGCNClassifier.fit(word_vectors=)`; n-grams have zeros.

    Parameters
    ----------
    source : str
        "encoder": distilled from what a sentence encoder makes of the texts; else what
        `wgcn_paper.vectors.word_vectors.word_vectors` takes.
    prepared : Prepared
    texts : sequence of str
        The texts that were prepared.
    """
    single = np.flatnonzero(~prepared.vocabulary.are_ngrams)
    if source == ENCODER:
        from wgcn_paper.vectors import encoder
        from wgcn_paper.vectors.distil import distil

        found = distil(prepared.document_terms[:, single], encoder.encode_cached(texts, "documents"))
    else:
        from wgcn_paper.vectors.word_vectors import word_vectors

        found = word_vectors([prepared.vocabulary.words[i] for i in single], source)[0]
    vectors = np.zeros((len(prepared.vocabulary), found.shape[1]), np.float32)
    vectors[single] = found
    return vectors
