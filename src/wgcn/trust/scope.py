"""Out of scope: texts that are unlike all that a model was fitted to. Needs numpy alone.

Four signs per text, each compared with held-out training texts:

    surprise      mean of -log p(word), p: share of the word among all words in training
    unknown       share of words that training did not have
    information   idf of the n-grams that training had, summed, per word; less is stranger
    doubt         entropy of having a class or not, summed over the classes

The first three are means over the words of a text, so their variance falls with its length: it is fitted as
`fixed + per_word / words`, and each sign is divided by its standard deviation. The strangeness of a text is the
weighted sum of the signs, none below `_LEAST`, so that one familiar sign does not make up for the others.

Training texts have shaped the vocabulary, so all their words are known. They are therefore looked at as if the
vocabulary had been made without them (`leave_one_out`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wgcn.base.arrays import Floats, Ints
from wgcn.scoring.terms import Terms, TextTerms
from wgcn.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from wgcn.text.corpus import Tokens

N_SIGNS = 4
# Weights and lower limit of the signs, chosen on training documents of five sets.
_WEIGHTS = np.array([0.5, 0.5, 1.0, 1.0])
_LEAST = -1.0
_TAIL, _MIN_IN_TAIL = 0.05, 20  # share of the strangest held-out texts, and their number at least, that give the tail


def familiarity(
    vocabulary: Vocabulary,
    idf: Floats,
    ngram_range: tuple[int, int],
    words: Ints,
    offsets: Ints,
    counts: Ints,
    lengths: Ints,
    *,
    leave_one_out: bool = False,
) -> Floats:
    """Return number of words, surprise, unknown share and negative information, of shape (documents, 4).

    The number of words is 0 where no term is known.

    `words` (terms,), `offsets` (documents + 1,) and `counts` (terms,) say which known term is how often in a document,
    `lengths` (documents,) how many tokens it has, known or not. With `leave_one_out` the documents are among those that
    the vocabulary was made of; a term that would not be in it without a document is unknown there.
    """
    is_ngram, n_documents = vocabulary.are_ngrams[words], len(offsets) - 1
    total = np.log(max(int(vocabulary.counts[~vocabulary.are_ngrams].sum()), 1))
    frequency, information = vocabulary.counts[words].astype(np.float64), idf[words].astype(np.float64) - 1
    known = np.ones(len(words), bool)
    if leave_one_out:
        frequency -= counts
        n_others = vocabulary.document_counts[words] - 1.0
        known = (n_others > 0) & (frequency >= np.where(is_ngram, *_least_counts(vocabulary)))
        information += np.log1p(1 / np.maximum(n_others + 1, 1))  # the idf if one document less had the term
    document = np.repeat(np.arange(n_documents), np.diff(offsets))

    def summed(values: Floats) -> Floats:
        return np.bincount(document, np.where(known, values * counts, 0.0), n_documents)

    shortest, longest = ngram_range
    n_words = np.maximum((lengths + sum(range(shortest - 1, longest))) / (longest - shortest + 1), 1.0)
    n_unknown = np.maximum(n_words - summed(~is_ngram), 0)
    surprise = n_unknown * total + summed(np.where(is_ngram, 0, total - np.log1p(np.maximum(frequency, 0))))
    signs = surprise, n_unknown, -summed(np.where(is_ngram, np.maximum(information, 0), 0))
    has_terms = np.diff(offsets) > 0
    return np.column_stack([np.where(has_terms, n_words, 0), *(sign / n_words for sign in signs)])


def familiarity_of(model: TextTerms, terms: Terms) -> Floats:
    """Return how familiar texts look to a model, of shape (texts, 4): see `familiarity`."""
    known = terms.words < len(model.vocabulary)  # and not a word of no training text
    offsets = np.concatenate([[0], np.cumsum(known)])[terms.offsets]
    parts = terms.words[known], offsets, terms.counts[known], terms.lengths
    return familiarity(model.vocabulary, model.weighting.idf, model.ngram_range, *parts)


def n_tokens(tokens: Tokens, documents: Ints, ngram_range: tuple[int, int], stop_words: Collection[str]) -> Ints:
    """Return how many words and n-grams documents have, known or not, as `lengths` of `wgcn.scoring.terms.Terms`."""
    begins, ends, (shortest, longest) = tokens.offsets[documents], tokens.offsets[documents + 1], ngram_range
    n_all = n_kept = ends - begins
    if stop_words:
        kept = np.array([word not in stop_words for word in tokens.words], bool)
        before = np.concatenate([[0], np.cumsum(kept[tokens.ids])])
        n_kept = before[ends] - before[begins]
    sizes = np.arange(shortest, longest + 1)
    found = np.maximum(n_kept[:, None] - sizes + 1, 0).sum(axis=1)
    return np.asarray(found + (n_all - n_kept if shortest == 1 else 0))


def _least_counts(vocabulary: Vocabulary) -> tuple[int, int]:
    """Return how often an n-gram, and a word, had to occur to be in the vocabulary."""
    kinds = vocabulary.counts[vocabulary.are_ngrams], vocabulary.counts[~vocabulary.are_ngrams]
    least, least_word = (int(counts.min()) if len(counts) else 1 for counts in kinds)
    return least, least_word


def doubt(probabilities: Floats) -> Floats:
    """Return how uncertain the classes of each text are: entropies of having one or not, summed over the classes."""
    parts = (np.where(p > 0, p * np.log(np.maximum(p, 1e-300)), 0) for p in (probabilities, 1 - probabilities))
    return np.asarray(-sum(part.sum(axis=1) for part in parts))


class Scope(NamedTuple):
    """How strange held-out training texts look."""

    scales: Floats  # (signs, 3): median, variance of all texts, variance per word
    strangeness: Floats  # (held-out texts,), sorted

    @classmethod
    def calibrate(cls, n_words: Floats, signs: Floats) -> Scope:
        """Learn from held-out texts; signs are of shape (texts, signs), the last of which does not depend on length."""
        scales = np.array([_scale(sign, n_words) for sign in signs.T])
        scales[-1, 1:] = signs[:, -1].var(), 0
        scope = cls(scales, np.empty(0))
        return scope._replace(strangeness=np.sort(scope.strange(n_words, signs)))

    def strange(self, n_words: Floats, signs: Floats) -> Floats:
        """Return the strangeness of texts."""
        medians, fixed, per_word = self.scales.T
        deviations = np.sqrt(fixed + per_word / np.maximum(n_words, 1)[:, None])
        standard = np.divide(signs - medians, deviations, out=np.zeros_like(signs), where=deviations > 1e-9)
        return np.asarray(np.maximum(standard, _LEAST) @ _WEIGHTS)

    def share_below(self, strangeness: Floats) -> Floats:
        """Return the share of texts like the held-out ones that are less strange.

        Where the strangest held-out texts are too few to tell, their tail is taken to be exponential.
        """
        known, n = self.strangeness, len(self.strangeness)
        places = np.arange(1, n + 1) / (n + 1)
        n_tail = min(max(int(_TAIL * n), _MIN_IN_TAIL), n)
        start, rest = known[-n_tail], 1 - places[-n_tail]
        mean = max(float(np.mean(known[-n_tail:] - start)), 1e-9)
        tail = 1 - rest * np.exp(-np.maximum(strangeness - start, 0) / mean)
        below = np.interp(strangeness, known, places, left=0.0)
        return np.asarray(np.where(strangeness > start, tail, below))


def _scale(sign: Floats, n_words: Floats) -> tuple[float, float, float]:
    """Return the median of a sign, and the two parts of its variance, by least squares; neither is negative."""
    median = float(np.median(sign))
    squares, shares = np.square(sign - median), 1 / np.maximum(n_words, 1)
    fixed, per_word = np.linalg.lstsq(np.column_stack([np.ones_like(shares), shares]), squares, rcond=None)[0]
    if per_word < 0:
        fixed, per_word = squares.mean(), 0.0
    elif fixed < 0:
        fixed, per_word = 0.0, squares @ shares / (shares @ shares)
    return median, float(fixed), float(per_word)
