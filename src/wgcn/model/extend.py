"""Rows for words that training did not see, from unlabelled texts that contain them. Nothing is trained again.

By the graph of words that share texts (eq. 2):

    E = X H                     document embeddings, H: the table, centred
    N = mean of E over the texts that contain a word, without the word's own part

N is computed for learnt words too. It is centred and scaled so that, on average, its rows for learnt words are as long
as the learnt rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.errors import InputError, NoWordError
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import document_terms

if TYPE_CHECKING:
    from wgcn.model.text_model import TextModel

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_WEIGHT = 0.5  # a new word counts half in the length of a text, as less is known of it; its row is doubled in return
_SHRINKAGE = 2  # pseudo-texts that draw the row of a rare word to the mean
_ROUNDING = 1e-9  # relative length below which a row counts as 0
BLOCK_VALUES = 1 << 23  # values of document embeddings that are held at a time


def extend(model: TextModel, texts: Iterable[str], min_count: int = 2) -> TextModel:
    """Return the model with rows for words of the texts that it does not know: see `TextModel.extend`."""
    corpus, places, new = new_words(model, texts, min_count)
    kept = new | (places >= 0)
    places = places[kept]
    learnt = (places >= 0) & (places < n_learnt(model))
    if not new.any() or not learnt.any():
        return model
    words, rows, idf = _rows_of_new_words(model, corpus.with_words(kept), places, learnt)
    return with_rows(model, words, rows, idf, {"how": "graph", "words": len(words), "texts": len(corpus)})


def new_words(model: TextModel, texts: Iterable[str], min_count: int) -> tuple[Corpus, Ids, Mask]:
    """Return texts as a corpus, the index of each of its words in the model or -1, and which words can be added."""
    if min_count < 1:
        raise InputError(f"min_count must be at least 1, got {min_count}.")
    if model.ngram_range[0] > 1:
        raise InputError(
            f"The model has no single words, only n-grams of {model.ngram_range[0]} and more, so none can be added."
        )
    try:
        corpus = Corpus.from_texts(texts, tokenizer=model.tokenizer)
    except NoWordError:
        corpus = Corpus(np.empty(0, np.int32), np.zeros(1, np.int64), Vocabulary([]))
    index, stop_words, found = model.vocabulary.index, frozenset(model.stop_words), corpus.vocabulary
    places = np.array([index.get(word, -1) for word in found.words], np.int64)
    allowed = np.array([word not in stop_words and " " not in word for word in found.words], bool)
    return corpus, places, (places < 0) & (found.counts >= min_count) & allowed


def with_rows(model: TextModel, words: Vocabulary, rows: Floats, idf: Floats, note: dict[str, Any]) -> TextModel:
    """Return the model with more words after its own, and a note about them in its report."""
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
        weighting=replace(weighting, idf=np.concatenate([weighting.idf, (_WEIGHT * idf).astype(weighting.idf.dtype)])),
        scorer=replace(model.scorer, word_embeddings=np.vstack([table, (rows / _WEIGHT).astype(table.dtype)])),
        report={**model.report, "extended": [*model.extensions, note]},
    )


def n_learnt(model: TextModel) -> int:
    """Return how many words were learnt in training; they are the first ones."""
    n_added: int = sum(extension["words"] for extension in model.extensions)
    return len(model.vocabulary) - n_added


def as_long(nearby: Floats, learnt: Floats, weights: Floats, new: Floats) -> Floats:
    """Return N of new words, centred and scaled as makes N of learnt words (`nearby`) as long as their rows `learnt`.

    `weights` are those of the learnt words in averages. No row gets longer than the longest learnt one.
    """
    centre = np.average(nearby, axis=0, weights=weights)
    own, spread = (float(np.sqrt(weights @ np.square(rows).sum(axis=1))) for rows in (learnt, nearby - centre))
    if own == 0:
        return np.zeros_like(new)
    rows = (new - centre) * (own / max(spread, _ROUNDING * own))
    lengths, longest = np.linalg.norm(rows, axis=1, keepdims=True), np.linalg.norm(learnt, axis=1).max()
    return np.asarray(rows * np.minimum(1, longest / np.maximum(lengths, _ROUNDING * longest)))


def _rows_of_new_words(
    model: TextModel, corpus: Corpus, places: Ids, learnt: Mask
) -> tuple[Vocabulary, Floats, Floats]:
    """Return the new words that share a text with a known one, their rows and idf; `places` as in `new_words`."""
    counts, n_texts, known = corpus.vocabulary.document_counts.astype(float), len(corpus), places >= 0
    # As if the texts were as many as in training: no new word is rarer than the rarest known one can be.
    sizes = (model.report.get(name) for name in ("n_documents", "n_background"))
    n_training = sum(n for n in sizes if isinstance(n, int) and n > 0) or n_texts
    idf = np.log((1 + n_training) / (1 + counts * n_training / n_texts)) + 1
    idf[known] = model.weighting.idf[places[known]]
    terms = document_terms(corpus, replace(model.weighting, idf=idf.astype(np.float32)))
    table = np.zeros((len(places), model.scorer.word_embeddings.shape[1]))
    table[known] = model.scorer.word_embeddings[places[known]]
    weights = np.sqrt(counts[learnt])
    mean = np.average(table[learnt], axis=0, weights=weights)
    table[learnt] -= mean
    table[known & ~learnt] -= mean / _WEIGHT
    nearby, reached = _mean_of_texts(terms, table, known)
    nearby *= (counts / (counts + _SHRINKAGE))[:, None]
    new = np.flatnonzero(~known & reached)
    rows = mean + as_long(nearby[learnt], table[learnt], weights, nearby[new])
    return corpus.vocabulary.part(new), rows, idf[new]


def _mean_of_texts(terms: csr_array, table: Floats, known: Mask) -> tuple[Floats, Mask]:
    """Return N, minus the mean of all texts, and which words share a text with a known one; new words have row 0."""
    n_texts, n_columns = terms.shape[0], table.shape[1]
    sums, total, n_known = np.zeros_like(table), np.zeros(n_columns), np.zeros(len(table))
    step = max(BLOCK_VALUES // max(n_columns, 1), 1)
    for first in range(0, n_texts, step):
        block = terms[first : first + step]
        contained_in = csr_array((np.ones(block.nnz), block.indices, block.indptr), shape=block.shape).T
        embedded = block @ table
        sums += contained_in @ embedded
        total += embedded.sum(axis=0)
        n_known += contained_in @ (contained_in.T @ known.astype(float))
    counts = np.maximum(np.bincount(terms.indices, minlength=len(table)), 1)
    own = np.asarray(terms.sum(axis=0, dtype=np.float64)).ravel()
    return (sums - own[:, None] * table) / counts[:, None] - total / max(n_texts, 1), n_known > 0
