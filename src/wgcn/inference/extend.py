"""Rows for words that training did not see, from unlabelled texts that have them. Nothing is trained again.

By the graph of words that share texts (eq. 2):

    E = X H                     what the known words of a text say, H: the table, with its mean taken away
    N = mean of E over the texts that have a word, without the word's own part

N is also worked out for words that were learnt, which tells how long it has to be: it is centred and scaled so that its
rows are as long, on average, as those that were learnt.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.errors import InputError, NoWordError
from wgcn.inference.model import TextModel
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import document_terms

__all__ = ["as_long", "extend", "n_learnt", "new_words", "part_of", "with_rows"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]

# A new word counts half in the length of a text, since less is known of it: its weight is halved, its row doubled.
_TRUST = 0.5
# Texts beside those that have a word: what a word that few texts have gets is drawn to the mean.
_DOUBT = 2
_ROUNDING = 1e-9  # a length below this, beside another, is 0
_BLOCK_VALUES = 1 << 23  # of what texts say, at a time


_NOTHING = Vocabulary([]), np.empty((0, 0)), np.empty(0)


def extend(model: TextModel, texts: Iterable[str], min_count: int = 2) -> TextModel:
    """Return the model with rows for words of the texts that it does not know: see `TextModel.extend`."""
    corpus, places, new = new_words(model, texts, min_count)
    kept = new | (places >= 0)
    words, rows, idf = _by_graph(model, corpus.with_words(kept), places[kept])
    return with_rows(model, words, rows, idf, {"how": "graph", "words": len(words), "texts": len(corpus)})


def new_words(model: TextModel, texts: Iterable[str], min_count: int) -> tuple[Corpus, Ids, npt.NDArray[np.bool_]]:
    """Return texts as a corpus, the place of each of its words in the model or -1, and which words can be added."""
    if min_count < 1:
        raise InputError(f"min_count must be at least 1, got {min_count}.")
    if model.ngram_range[0] > 1:
        raise InputError(f"The model has no single words, only n-grams of {model.ngram_range[0]} and more: none fits.")
    try:
        corpus = Corpus.from_texts(texts, tokenizer=model.tokenizer)
    except NoWordError:
        corpus = Corpus(np.empty(0, np.int32), np.zeros(1, np.int64), Vocabulary([]))
    index, stop_words, found = model.vocabulary.index, frozenset(model.stop_words), corpus.vocabulary
    places = np.array([index.get(word, -1) for word in found.words], np.int64)
    new = (places < 0) & (found.counts >= min_count)
    new &= np.array([word not in stop_words and " " not in word for word in found.words], bool)
    return corpus, places, new


def with_rows(model: TextModel, words: Vocabulary, rows: Floats, idf: Floats, note: dict[str, Any]) -> TextModel:
    """Return the model with more words, after those that it has."""
    if not len(words):
        return model
    old, table, weighting = model.vocabulary, model.scorer.word_embeddings, model.weighting
    return replace(
        model,
        vocabulary=Vocabulary(
            (*old.words, *words.words),
            np.concatenate([old.counts, words.counts]),
            np.concatenate([old.document_counts, words.document_counts]),
        ),
        weighting=replace(weighting, idf=np.concatenate([weighting.idf, (_TRUST * idf).astype(weighting.idf.dtype)])),
        scorer=replace(model.scorer, word_embeddings=np.vstack([table, (rows / _TRUST).astype(table.dtype)])),
        report={**model.report, "extended": [*model.extensions, note]},
    )


def n_learnt(model: TextModel) -> int:
    """Return how many of the words, the first ones, were learnt in training."""
    n_added: int = sum(extension["words"] for extension in model.extensions)
    return len(model.vocabulary) - n_added


def as_long(nearby: Floats, learnt: Floats, weights: Floats, new: Floats) -> Floats:
    """Return what is near new words, centred and scaled as makes it, for learnt words, as long as their own rows.

    No row gets longer than the longest that was learnt, however little is near the learnt words.

    Parameters
    ----------
    nearby, learnt : arrays of shape (learnt words, columns)
        What is near them, and their rows, with the mean taken away.
    weights : array of shape (learnt words,)
    new : array of shape (new words, columns)
    """
    middle = np.average(nearby, axis=0, weights=weights)
    own, spread = (float(np.sqrt(weights @ np.square(rows).sum(axis=1))) for rows in (learnt, nearby - middle))
    if own == 0:
        return np.zeros_like(new)
    rows = (new - middle) * (own / max(spread, _ROUNDING * own))
    lengths, longest = np.linalg.norm(rows, axis=1, keepdims=True), np.linalg.norm(learnt, axis=1).max()
    return np.asarray(rows * np.minimum(1, longest / np.maximum(lengths, _ROUNDING * longest)))


# By texts that have the word


def _by_graph(model: TextModel, corpus: Corpus, places: Ids) -> tuple[Vocabulary, Floats, Floats]:
    """Return the new words that share a text with a known one, their rows and idf.

    Parameters
    ----------
    model : TextModel
    corpus : Corpus
        Of known and new words.
    places : int64 array of shape (words of the corpus,)
        Where the model has each, -1 for the new ones.
    """
    counts, n_texts = corpus.vocabulary.document_counts.astype(float), len(corpus)
    known, learnt = places >= 0, (places >= 0) & (places < n_learnt(model))
    if known.all() or not learnt.any():
        return _NOTHING
    # In proportion to the texts of training: if these were few, no known word is very rare, and no new one may be.
    told = (model.report.get(name) for name in ("n_documents", "n_background"))
    n_training = sum(n for n in told if isinstance(n, int) and n > 0) or n_texts
    idf = np.log((1 + n_training) / (1 + counts * n_training / n_texts)) + 1
    idf[known] = model.weighting.idf[places[known]]
    terms = document_terms(corpus, replace(model.weighting, idf=idf.astype(np.float32)))
    table = np.zeros((len(places), model.scorer.word_embeddings.shape[1]))
    table[known] = model.scorer.word_embeddings[places[known]]
    weights = np.sqrt(counts[learnt])
    mean = np.average(table[learnt], axis=0, weights=weights)
    table[learnt] -= mean
    table[known & ~learnt] -= mean / _TRUST
    nearby, reached = _near_in_texts(terms, table, known)
    nearby *= (counts / (counts + _DOUBT))[:, None]
    new = np.flatnonzero(~known & reached)
    return (
        part_of(corpus.vocabulary, new),
        mean + as_long(nearby[learnt], table[learnt], weights, nearby[new]),
        idf[new],
    )


def _near_in_texts(
    terms: csr_array, table: Floats, known: npt.NDArray[np.bool_]
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return what the texts say that have a word, beyond the word itself and beyond all texts; and who has such texts.

    Parameters
    ----------
    terms : csr_array of shape (texts, words)
    table : array of shape (words, columns)
        0 for new words.
    known : bool array of shape (words,)

    Returns
    -------
    nearby : array of shape (words, columns)
    reached : bool array of shape (words,)
        Which words share a text with a known one.
    """
    n_texts, n_columns = terms.shape[0], table.shape[1]
    sums, total, company = np.zeros_like(table), np.zeros(n_columns), np.zeros(len(table))
    step = max(_BLOCK_VALUES // max(n_columns, 1), 1)
    for first in range(0, n_texts, step):
        block = terms[first : first + step]
        holders = csr_array((np.ones(block.nnz), block.indices, block.indptr), shape=block.shape).T
        said = block @ table
        sums += holders @ said
        total += said.sum(axis=0)
        company += holders @ (holders.T @ known.astype(float))
    counts = np.maximum(np.bincount(terms.indices, minlength=len(table)), 1)
    own = np.asarray(terms.sum(axis=0, dtype=np.float64)).ravel()
    return (sums - own[:, None] * table) / counts[:, None] - total / max(n_texts, 1), company > 0


def part_of(vocabulary: Vocabulary, places: Ids) -> Vocabulary:
    """Return some of the words."""
    words = [vocabulary.words[i] for i in places]
    return Vocabulary(words, vocabulary.counts[places], vocabulary.document_counts[places])
