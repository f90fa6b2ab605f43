"""Documents as flat arrays of word ids: Tokens before words are left out, Corpus after.

Texts are read once, tokenised in batches on all cores and never held: what stays is four bytes per token.
"""

from __future__ import annotations

import warnings
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError, WGCNWarning
from wgcn.base.threads import n_threads
from wgcn.text.kernels import SECRET, count_words, encode_new, number_keys
from wgcn.text.ngrams import check_ngram_range
from wgcn.text.tokenize import (
    BATCH_CHARACTERS,
    Ids,
    Offsets,
    Tokenizer,
    checked_texts,
    in_batches,
    lay_out,
    resolve_tokenizer,
    text_digest,
)
from wgcn.text.vocabulary import Vocabulary, VocabularyRules, choose_words

SAMPLE = 128  # texts that are looked at more closely, at most twice as many
_CHARACTERS = 1000  # of a sampled text


class Observed:
    """Texts that are read once, and what was seen of them."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts, self.n = texts, 0
        self.empty = array("q")  # the places of texts without anything but blanks
        self.digests = array("q")  # of `text_digest`, 8 bytes per text
        self.sample: list[str] = []  # evenly spread
        self._step = 1

    def __iter__(self) -> Iterator[str]:
        for text in self.texts:
            if self.n % self._step == 0:
                self.sample.append(text[:_CHARACTERS])
                if len(self.sample) == 2 * SAMPLE:
                    self.sample, self._step = self.sample[::2], 2 * self._step
            if not text or text.isspace():
                self.empty.append(self.n)
            self.n += 1
            self.digests.append(text_digest(text))
            yield text


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents as word ids.

    Parameters
    ----------
    ids : int32 array of shape (n_tokens,)
        The words of all documents, one document after another.
    offsets : int64 array of shape (n_documents + 1,)
        Document d is ``ids[offsets[d]:offsets[d + 1]]``.
    vocabulary : Vocabulary
    n_unknown : int
        Tokens that were met but are not in the vocabulary, and so were left out.

    Examples
    --------
    >>> corpus = Corpus.from_texts(["A word graph.", "A graph of words!"])
    >>> corpus.vocabulary.words
    ('a', 'graph', 'of', 'word', 'words')
    >>> corpus.document(1)
    ['a', 'graph', 'of', 'words']
    """

    ids: Ids
    offsets: Offsets
    vocabulary: Vocabulary
    n_unknown: int = 0

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        *,
        tokenizer: str | Tokenizer = "words",
        ngram_range: tuple[int, int] = (1, 1),
        rules: VocabularyRules | None = None,
        vocabulary: Vocabulary | None = None,
        n_jobs: int | None = None,
    ) -> Corpus:
        """Tokenise texts.

        Parameters
        ----------
        texts : iterable of str
            The documents; a generator is read once. `wgcn.io.read.read_texts` gives those of a file.
        tokenizer : {"words", "characters", "text_gcn"} or callable
            "words" is compiled and uses all cores; others, from str to a list of str, run in this thread.
        ngram_range : (int, int)
            Shortest and longest word n-gram. N-grams are tokens of their own, each standing just after the shorter
            ones that begin at the same word; stop words are gone before n-grams are formed.
        rules : VocabularyRules, optional
            Which words to keep; all by default.
        vocabulary : Vocabulary, optional
            Use these words and no others, instead of `rules`. The corpus has them with its own frequencies.
        n_jobs : int, optional
            Threads; by default, and for -1, as many as there are cores, for -2 one less.
        """
        texts = checked_texts(texts)
        if vocabulary is not None and rules is not None:
            raise InputError("Give either rules, to choose a vocabulary, or a vocabulary, not both.")
        check_ngram_range(ngram_range)
        tokens = Tokens.from_texts(texts, tokenizer, n_jobs)
        return cls.from_tokens(tokens, ngram_range=ngram_range, rules=rules, vocabulary=vocabulary)

    @classmethod
    def from_tokens(
        cls,
        tokens: Tokens,
        *,
        ngram_range: tuple[int, int] = (1, 1),
        rules: VocabularyRules | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> Corpus:
        """Do what `from_texts` does after the texts are tokenised."""
        (ids, offsets, words), rules = tokens, rules or VocabularyRules()
        if ngram_range[1] > 1 and rules.stop_words:
            stop_words = frozenset(rules.stop_words)
            is_kept = np.array([word not in stop_words for word in words], bool)
            ids, offsets = filtered(ids, offsets, is_kept[ids])
        limits = (rules.min_ngram_count, rules.max_ngrams) if vocabulary is None else (1, None)
        numbers, names, n_rare = number_ngrams(ids, offsets, words, ngram_range, *limits)
        lengths, (shortest, longest) = np.diff(offsets), ngram_range
        n_ngrams = sum(int(np.maximum(lengths - n + 1, 0).sum()) for n in range(shortest, longest + 1))
        numbers, offsets = numbers.ravel(), offsets * (longest - shortest + 1)
        if vocabulary is None:
            counts, document_counts = count_words(numbers, offsets, len(names))
            places = choose_words(names, counts, document_counts, len(lengths), rules, n_rare)
            chosen = Vocabulary([names[i] for i in places.tolist()], counts[places], document_counts[places])
            new_ids = np.full(len(names) + 1, -1, np.int32)
            new_ids[places] = np.arange(len(places))
        else:
            new_ids = np.array([*(vocabulary.index.get(name, -1) for name in names), -1], np.int32)
        numbers = new_ids[numbers]
        known, offsets = filtered(numbers, offsets, numbers >= 0)
        if vocabulary is not None:
            chosen = Vocabulary(vocabulary.words, *count_words(known, offsets, len(vocabulary)))
        return cls(known, offsets, chosen, n_ngrams - len(known))

    def with_words(self, keep: npt.NDArray[np.bool_]) -> Corpus:
        """Return the corpus with only some of its words, in the same order: those for which `keep` is true."""
        new_ids = (np.cumsum(keep) - 1).astype(np.int32)
        ids, offsets = filtered(self.ids, self.offsets, keep[self.ids])
        n_unknown = self.n_unknown + self.n_tokens - len(ids)
        return Corpus(new_ids[ids], offsets, self.vocabulary.part(np.flatnonzero(keep)), n_unknown)

    @property
    def n_tokens(self) -> int:
        """Number of tokens in all documents."""
        return len(self.ids)

    @property
    def lengths(self) -> Offsets:
        """Number of tokens of each document."""
        return np.diff(self.offsets)

    def document(self, i: int) -> list[str]:
        """Return the tokens of one document."""
        i = range(len(self))[i]
        return [self.vocabulary.words[word] for word in self.ids[self.offsets[i] : self.offsets[i + 1]]]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"Corpus({len(self):,} documents, {self.n_tokens:,} tokens, {len(self.vocabulary):,} words)"


def number_ngrams(
    ids: Ids, offsets: Offsets, words: list[str], ngram_range: tuple[int, int], min_count: int, most: int | None = None
) -> tuple[Ids, list[str], int]:
    """Find the n-grams of `Tokens`; those of several words have to occur `min_count` times, or more for at most `most`.

    Return the numbers of those that begin at each token, -1 for none, of shape (tokens, lengths); the n-gram of each
    number, those of one length by code point; and how many were too rare. What begins with a rare one is not counted.
    """
    shortest, longest = ngram_range
    names, level = words, ids
    numbers, distinct, n_rare = np.empty((len(ids), longest - shortest + 1), np.int32), list[str](), 0
    for n in range(1, longest + 1):
        if n > 1:
            keys = ngram_keys(level, ids, offsets, n, len(words))
            found, table = number_keys(keys, SECRET)
            del keys  # with very much text, this is where memory is needed most
            counts = np.bincount(found[found >= 0], minlength=len(table))
            kept = np.flatnonzero(counts >= min_count)
            if most is not None and len(kept) > most:
                kept = np.flatnonzero(counts > np.sort(counts[kept])[-most - 1])
            kept = kept[np.argsort(table[kept])]
            new_numbers = np.full(len(table) + 1, -1, np.int32)  # the last place is for -1
            new_numbers[kept] = np.arange(len(kept))
            level = new_numbers[found]
            n_rare += (len(table) - len(kept)) * (n >= shortest)
            beginnings, lasts = divmod(table[kept], len(words))
            names = [f"{names[i]} {words[j]}" for i, j in zip(beginnings.tolist(), lasts.tolist(), strict=True)]
        if n >= shortest:
            numbers[:, n - shortest] = np.where(level < 0, -1, level + len(distinct))
            distinct += names
    return numbers, distinct, n_rare


def ngram_keys(level: Ids, ids: Ids, offsets: Offsets, n: int, n_words: int) -> npt.NDArray[np.int64]:
    """Return the key of the n-gram that begins at each token, -1 for none.

    It is (number of its first n - 1 words, given as `level`, -1 for none) * `n_words` + (id of its last word).
    """
    following = np.concatenate([ids[n - 1 :], np.empty(min(n - 1, len(ids)), np.int32)])
    for back in range(1, n):
        following[offsets[1:][offsets[1:] >= back] - back] = -1
    keys = level.astype(np.int64)
    keys *= n_words
    keys += following
    keys[(level < 0) | (following < 0)] = -1
    return keys


def filtered(ids: Ids, offsets: Offsets, keep: npt.NDArray[np.bool_]) -> tuple[Ids, Offsets]:
    """Drop tokens, and move the beginnings of the documents accordingly."""
    kept = np.flatnonzero(keep)
    return ids[kept], np.searchsorted(kept, offsets)


class Tokens(NamedTuple):
    """Documents as ids of all their words, as in `Corpus`."""

    ids: Ids  # (tokens,)
    offsets: Offsets  # (documents + 1,)
    words: list[str]  # distinct, by code point: the id of a word is its place

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        tokenizer: str | Tokenizer,
        n_jobs: int | None = None,
        batch_characters: int = BATCH_CHARACTERS,
    ) -> Tokens:
        """Tokenise texts: batches on several threads, taken in order, so that only a few are in memory at a time."""
        index: dict[str, int] = {}  # by first occurrence
        ids, lengths, n_replaced = [np.empty(0, np.int32)], [np.zeros(1, np.int64)], 0
        waiting: deque[Future[tuple[Ids, Offsets, list[str]]]] = deque()
        function, threads = resolve_tokenizer(tokenizer), n_threads(n_jobs)

        def take() -> None:
            batch_ids, offsets, words = waiting.popleft().result()
            numbers = np.array([index.setdefault(word, len(index)) for word in words], np.int32)
            ids.append(numbers[batch_ids])
            lengths.append(np.diff(offsets))

        with ThreadPoolExecutor(threads) as pool:
            for batch in in_batches(texts, batch_characters):
                laid_out = lay_out(batch, function)
                n_replaced += laid_out.n_replaced
                waiting.append(pool.submit(encode_new, laid_out))
                if len(waiting) > threads:
                    take()
            while waiting:
                take()
        if n_replaced:
            had = "had characters that are not valid Unicode (lone surrogates); these were replaced."
            warnings.warn(f"{n_replaced:,} texts {had}", WGCNWarning, stacklevel=3)
        words, numbers = _sorted(list(index))
        return cls(numbers[np.concatenate(ids)], np.cumsum(np.concatenate(lengths)), words)

    def insert(self, place: int, more: Tokens) -> Tokens:
        """Return these documents with others before the one at `place`, as if all had been tokenised together."""
        known = set(self.words)
        words, numbers = _sorted([*self.words, *(word for word in more.words if word not in known)])
        index = dict(zip(words, range(len(words)), strict=True))
        others = np.array([index[word] for word in more.words], np.int32)[more.ids]
        begin = self.offsets[place]
        before, after = numbers[self.ids[:begin]], numbers[self.ids[begin:]]
        parts = self.offsets[:place], begin + more.offsets, self.offsets[place + 1 :] + len(others)
        return Tokens(np.concatenate([before, others, after]), np.concatenate(parts), words)


def _sorted(words: list[str]) -> tuple[list[str], Ids]:
    """Return words by code point, and the new place of each."""
    order = sorted(range(len(words)), key=words.__getitem__)
    places = np.empty(len(words), np.int32)
    places[order] = np.arange(len(words))
    return [words[i] for i in order], places
