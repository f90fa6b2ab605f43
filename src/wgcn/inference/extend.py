"""Rows for words that training did not see, from what was learnt about other words. Nothing is trained again.

By the graph of words that share texts (eq. 2), from texts without labels that have the word:

    E = X H                     what the known words of a text say, H: the table, with its mean taken away
    N = mean of E over the texts that have a word, without the word's own part

By spelling or by word vectors, from the word alone: N is the mean row of the known words that have the same groups of
letters, or whose vectors are nearest.

All end alike. N is also worked out for words that were learnt, which tells how long it has to be: it is centred and
scaled so that its rows are as long, on average, as those that were learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.errors import InputError, NoWordError
from wgcn.inference.model import TextModel
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import document_terms
from wgcn.text.word_vectors import DISTILLED, check_word_vectors, word_vectors

__all__ = ["How", "extend"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
How = Literal["graph", "spelling", "vectors"]
# From words, and the place of each among the learnt ones or -1, to the learnt words that each is like, and how much.
Likeness = Callable[[Sequence[str], Ids], csr_array]

# A new word counts half in the length of a text, since less is known of it: its weight is halved, its row doubled.
_TRUST = 0.5
# Texts beside those that have a word: what a word that few texts have gets is drawn to the mean.
_DOUBT = 2
_ROUNDING = 1e-9  # a length below this, beside another, is 0
_BLOCK_VALUES = 1 << 23  # of what texts say, at a time

_SAMPLE = 3000  # learnt words that tell how long a row by like words has to be
_BLOCK_WORDS = 128  # whose like words are sought at a time

_LETTERS = (3, 4, 5)  # in a group
_LONGEST = 64  # letters of a word that are looked at
_COMMON = 1000  # a group of letters that more known words have tells nothing
_SPELT_ALIKE = 0.4  # least cosine between the groups of two words

_NEAREST = 50  # learnt words that a row by vectors is the mean of
_NEAR = 0.1  # least cosine between the vectors of two words
_DECIMALS = 5  # of a cosine: the rest differs with the words beside it

_NOTHING = Vocabulary([]), np.empty((0, 0)), np.empty(0)


def extend(
    model: TextModel,
    texts: Iterable[str],
    how: How = "graph",
    *,
    vectors: str | Path | None = None,
    min_count: int | None = None,
) -> TextModel:
    """Return the model with rows for words of the texts that it does not know: see `TextModel.extend`."""
    if how not in get_args(How):
        raise InputError(f"how must be 'graph', 'spelling' or 'vectors', got {how!r}.")
    if (how == "vectors") != (vectors is not None):
        raise InputError(
            f"vectors are for how='vectors', got how={how!r}."
            if vectors is not None
            else f"how='vectors' needs vectors: {DISTILLED!r}, or the path of a file of word vectors."
        )
    if min_count is None:
        min_count = 2 if how == "graph" else 1
    if min_count < 1:
        raise InputError(f"min_count must be at least 1, got {min_count}.")
    if model.ngram_range[0] > 1:
        raise InputError(f"The model has no single words, only n-grams of {model.ngram_range[0]} and more: none fits.")
    if vectors is not None:
        check_word_vectors(str(vectors))
    try:
        corpus = Corpus.from_texts(texts, tokenizer=model.tokenizer)
    except NoWordError:
        return model
    index, stop_words, found = model.vocabulary.index, frozenset(model.stop_words), corpus.vocabulary
    places = np.array([index.get(word, -1) for word in found.words], np.int64)
    new = (places < 0) & (found.counts >= min_count)
    new &= np.array([word not in stop_words and " " not in word for word in found.words], bool)
    if how == "graph":
        kept = new | (places >= 0)
        words, rows, idf = _by_graph(model, corpus.with_words(kept), places[kept])
    else:
        words, rows, idf = _by_like_words(model, corpus.with_words(new).vocabulary, vectors)
    return _with_rows(model, words, rows, idf, {"how": how, "words": len(words), "texts": len(corpus)})


def _with_rows(model: TextModel, words: Vocabulary, rows: Floats, idf: Floats, note: dict[str, Any]) -> TextModel:
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


def _learnt(model: TextModel) -> int:
    """Return how many of the words, the first ones, were learnt in training."""
    n_added: int = sum(extension["words"] for extension in model.extensions)
    return len(model.vocabulary) - n_added


def _as_long(nearby: Floats, learnt: Floats, weights: Floats, new: Floats) -> Floats:
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
    known, learnt = places >= 0, (places >= 0) & (places < _learnt(model))
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
    return _part(corpus.vocabulary, new), mean + _as_long(nearby[learnt], table[learnt], weights, nearby[new]), idf[new]


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


def _part(vocabulary: Vocabulary, places: Ids) -> Vocabulary:
    words = [vocabulary.words[i] for i in places]
    return Vocabulary(words, vocabulary.counts[places], vocabulary.document_counts[places])


# By learnt words that are like it


def _by_like_words(
    model: TextModel, words: Vocabulary, vectors: str | Path | None
) -> tuple[Vocabulary, Floats, Floats]:
    """Return those of the words that are like learnt ones, by their vectors or else by spelling; their rows and idf."""
    vocabulary = model.vocabulary
    learnt = np.flatnonzero(~vocabulary.are_ngrams[: _learnt(model)])
    if not len(words) or not len(learnt):
        return _NOTHING
    weights = np.sqrt(1.0 + vocabulary.document_counts[learnt])
    table = model.scorer.word_embeddings[learnt].astype(np.float64)
    mean = np.average(table, axis=0, weights=weights)
    table -= mean
    known = [vocabulary.words[i] for i in learnt]
    likeness = _Spelling(known).likeness if vectors is None else _Vectors(known, words.words, str(vectors)).likeness
    sample = np.unique(np.linspace(0, len(learnt) - 1, _SAMPLE).astype(int))
    nearby, found = _mean_of_like(likeness, table, [known[i] for i in sample], sample)
    sample, nearby = sample[found], nearby[found]
    rows, found = _mean_of_like(likeness, table, words.words, np.full(len(words), -1))
    if not len(sample) or not found.any():
        return _NOTHING
    rows = mean + _as_long(nearby, table[sample], weights[sample], rows[found])
    return _part(words, np.flatnonzero(found)), rows, np.full(len(rows), model.weighting.idf.max(), float)


def _mean_of_like(
    likeness: Likeness, table: Floats, words: Sequence[str], own: Ids
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return the mean of the rows of learnt words that are like a word, and for which words there are such.

    Parameters
    ----------
    likeness : callable
    table : array of shape (learnt words, columns)
    words : sequence of str
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


class _Spelling:
    """Words by their groups of letters, each group weighted by how few words have it.

    Parameters
    ----------
    words : sequence of str
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self._index: dict[str, int] = {}
        groups = [[self._index.setdefault(group, len(self._index)) for group in _groups(word)] for word in words]
        counts = np.bincount(list(chain.from_iterable(groups)), minlength=len(self._index))
        self._weights = np.where(counts > _COMMON, 0, np.log((1 + len(words)) / (1 + counts)))
        self._by_group = csr_array(self._rows(groups, np.zeros(len(words))).T)

    def likeness(self, words: Sequence[str], own: Ids) -> csr_array:
        """Return the cosines of words with those of these words that are spelt alike; none is like itself."""
        near = self._cosines(words)
        near.data[near.data < _SPELT_ALIKE] = 0
        near.data[near.indices == np.repeat(own, np.diff(near.indptr))] = 0
        return near

    def _cosines(self, words: Sequence[str]) -> csr_array:
        groups = [_groups(word) for word in words]
        known = [[self._index[group] for group in each if group in self._index] for each in groups]
        unknown = np.array([len(each) - len(part) for each, part in zip(groups, known, strict=True)])
        return csr_array(self._rows(known, unknown) @ self._by_group)

    def _rows(self, groups: Sequence[Sequence[int]], n_unknown: npt.NDArray[Any]) -> csr_array:
        """Return words by groups, a row of length 1; a group that no own word has counts in the length alone."""
        offsets = np.cumsum([0, *map(len, groups)])
        columns = np.fromiter(chain.from_iterable(groups), np.int64, offsets[-1])
        data = self._weights[columns]
        squares = csr_array((np.square(data), columns, offsets), shape=(len(groups), len(self._index))).sum(axis=1)
        lengths = np.sqrt(np.asarray(squares).ravel() + n_unknown * np.log(1 + len(self.words)) ** 2)
        data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(offsets))
        rows = csr_array((data, columns, offsets), shape=(len(groups), len(self._index)))
        rows.eliminate_zeros()
        return rows


def _groups(word: str) -> list[str]:
    """Return the groups of letters of a word, each once; a space stands for either end of it.

    >>> _groups("red")
    [' re', 'red', 'ed ', ' red', 'red ', ' red ']
    """
    marked = f" {word[:_LONGEST]} "
    return list(dict.fromkeys(marked[i : i + n] for n in _LETTERS for i in range(len(marked) - n + 1)))


class _Vectors:
    """Words by vectors that others have trained, with the mean vector of the learnt ones taken away.

    Parameters
    ----------
    learnt, new : sequence of str
    source : str
        What `word_vectors` takes.
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
        """Return the cosines of words with the nearest of the learnt words; none is near itself."""
        cosines = np.round(self._vectors[[self._index[word] for word in words]] @ self._learnt, _DECIMALS)
        cosines[own >= 0, own[own >= 0]] = 0
        # Those that are as near as the last of the nearest count too: no order among the words decides.
        nearest = -min(_NEAREST, cosines.shape[1])
        least = np.partition(cosines, nearest, axis=1)[:, nearest, None]
        return csr_array(np.where(cosines >= np.maximum(least, _NEAR), cosines, 0)).astype(np.float64)
