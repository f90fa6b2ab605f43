"""Rows for words that training did not see, from word vectors.

A new word gets the mean row of the learnt words whose vectors are nearest, weighted by the cosine; it is centred and
scaled as in `wgcn.model.extend`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.model.extend import as_long, n_learnt, new_words, with_rows
from wgcn.model.text_model import TextModel
from wgcn.text.vocabulary import Vocabulary
from wgcn_paper.vectors.word_vectors import DISTILLED, word_vectors

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
# From words, and the place of each among the learnt words or -1, to similarities of shape (words, learnt words).
Likeness = Callable[[Sequence[str], Ids], csr_array]

_SAMPLE = 3000  # learnt words that give the scale of the rows
_BLOCK_WORDS = 128  # looked up at a time

_NEAREST = 50  # learnt words in the mean of a row by vectors
_NEAR = 0.1  # least cosine between the vectors of two words
_DECIMALS = 5  # of a cosine: further ones depend on the other words of the product

_NOTHING = Vocabulary([]), np.empty((0, 0)), np.empty(0)


def extend_by_vectors(model: TextModel, texts: Iterable[str], vectors: str = DISTILLED) -> TextModel:
    """Return the model with rows for unknown words of the texts, from learnt words with similar vectors."""
    corpus, _, new = new_words(model, texts, min_count=1)
    words, rows, idf = _by_like_words(model, corpus.with_words(new).vocabulary, vectors)
    extended: TextModel = with_rows(
        model, words, rows, idf, {"how": "vectors", "words": len(words), "texts": len(corpus)}
    )
    return extended


def _by_like_words(model: TextModel, words: Vocabulary, vectors: str) -> tuple[Vocabulary, Floats, Floats]:
    """Return the words that are similar to learnt ones, their rows and idf."""
    vocabulary = model.vocabulary
    learnt = np.flatnonzero(~vocabulary.are_ngrams[: n_learnt(model)])
    if not len(words) or not len(learnt):
        return _NOTHING
    weights = np.sqrt(1.0 + vocabulary.document_counts[learnt])
    table = model.scorer.word_embeddings[learnt].astype(np.float64)
    mean = np.average(table, axis=0, weights=weights)
    table -= mean
    known = [vocabulary.words[i] for i in learnt]
    likeness = _Vectors(known, words.words, vectors).likeness
    sample = np.unique(np.linspace(0, len(learnt) - 1, _SAMPLE).astype(int))
    nearby, found = _mean_of_like(likeness, table, [known[i] for i in sample], sample)
    sample, nearby = sample[found], nearby[found]
    rows, found = _mean_of_like(likeness, table, words.words, np.full(len(words), -1))
    if not len(sample) or not found.any():
        return _NOTHING
    rows = mean + as_long(nearby, table[sample], weights[sample], rows[found])
    return words.part(np.flatnonzero(found)), rows, np.full(len(rows), model.weighting.idf.max(), float)


def _mean_of_like(
    likeness: Likeness, table: Floats, words: Sequence[str], own: Ids
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return the mean row of the learnt words that are similar to each word, and which words have such.

    Parameters
    ----------
    table : array of shape (learnt words, columns)
    own : int64 array of shape (words,)
        The place of each among the learnt words, or -1.
    """
    rows, found = np.zeros((len(words), table.shape[1])), np.zeros(len(words), bool)
    for first in range(0, len(words), _BLOCK_WORDS):
        block = slice(first, first + _BLOCK_WORDS)
        near = likeness(words[block], own[block])
        total = np.asarray(near.sum(axis=1)).ravel()
        found[block] = total > 0
        rows[block] = (near @ table) / np.where(total > 0, total, 1)[:, None]
    return rows, found


class _Vectors:
    """Words by pretrained vectors, with the mean vector of the learnt words subtracted.

    Parameters
    ----------
    source : str
        A source of `word_vectors`.
    """

    def __init__(self, learnt: Sequence[str], new: Sequence[str], source: str) -> None:
        words = (*learnt, *new)
        vectors = word_vectors(words, source)[0].astype(np.float64)
        known = np.asarray(vectors.any(axis=1))
        vectors[known] -= vectors[: len(learnt)].sum(axis=0) / max(known[: len(learnt)].sum(), 1)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, 1)
        self._vectors = vectors.astype(np.float32)
        self._learnt = self._vectors[: len(learnt)].T
        self._index = {word: i for i, word in enumerate(words)}

    def likeness(self, words: Sequence[str], own: Ids) -> csr_array:
        """Return the cosines of words with the nearest learnt words, except with themselves."""
        cosines = np.round(self._vectors[[self._index[word] for word in words]] @ self._learnt, _DECIMALS)
        cosines[own >= 0, own[own >= 0]] = 0
        # Ties with the last of the nearest words count too, so the order of the words does not matter.
        nearest = -min(_NEAREST, cosines.shape[1])
        least = np.partition(cosines, nearest, axis=1)[:, nearest, None]
        return csr_array(np.where(cosines >= np.maximum(least, _NEAR), cosines, 0)).astype(np.float64)
