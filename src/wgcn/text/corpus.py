"""Corpus: many documents as one flat array of word ids.

Texts are read once, tokenised in batches on all cores and never held: what stays is four bytes per token.
"""

import re
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.cores import n_threads
from wgcn.errors import InputError, WGCNWarning
from wgcn.text.encode import checked_texts, in_batches, lay_out
from wgcn.text.kernels import count_words, encode_new, find_first, group_places, join_levels, number_by_first
from wgcn.text.tokenize import Tokenizer, resolve_tokenizer
from wgcn.text.vocabulary import Vocabulary, VocabularyRules, keep_words

__all__ = ["Corpus", "check_ngram_range"]

Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Progress = Callable[[int], Any]


def check_ngram_range(given: Any) -> tuple[int, int]:
    """Return the shortest and the longest n-gram, or say what is wrong with them."""
    numbers = list(given) if isinstance(given, Iterable) else []
    whole = len(numbers) == 2 and all(isinstance(number, Integral) for number in numbers)
    if not whole or not 1 <= numbers[0] <= numbers[1]:
        raise InputError(f"ngram_range must be two numbers with 1 <= first <= second, got {given!r}.")
    return numbers[0], numbers[1]


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
        progress: Progress | None = None,
    ) -> "Corpus":
        """Tokenise texts.

        Parameters
        ----------
        texts : iterable of str
            The documents; a generator is read once. `wgcn.text.read.read_texts` gives those of a file.
        tokenizer : {"words", "text_gcn"} or callable
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
        progress : callable, optional
            Called with the number of documents after each batch.
        """
        texts = checked_texts(texts)
        if vocabulary is not None and rules is not None:
            raise InputError("Give either rules, to choose a vocabulary, or a vocabulary, not both.")
        ngram_range = check_ngram_range(ngram_range)
        rules = rules or VocabularyRules()
        ids, offsets, words = _tokenised(texts, tokenizer, n_jobs, progress)
        if ngram_range[1] > 1 and rules.stop_words:
            stop_words = frozenset(rules.stop_words)
            is_kept = np.array([word not in stop_words for word in words], bool)
            ids, offsets = _filtered(ids, offsets, is_kept[ids])
        min_count = rules.min_ngram_count if vocabulary is None else 1
        # By code point, so that tuples of ids are in the order of n-grams: a space is before what tokens are made of.
        by_code_point = sorted(range(len(words)), key=words.__getitem__)
        words = [words[i] for i in by_code_point]
        ids = np.argsort(by_code_point).astype(np.int32)[ids]
        levels, entries, n_rare = number_ngrams(ids, offsets, len(words), ngram_range, min_count, n_threads(n_jobs))
        if vocabulary is None:
            chosen, vocabulary = _choose(levels, offsets, entries, words, rules, n_rare)
            new_ids = np.full(len(entries), -1, np.int32)
            new_ids[chosen] = np.arange(len(chosen))
            known, new_offsets = join_levels(levels, offsets, new_ids)
        else:
            new_ids = np.array([vocabulary.index.get(name, -1) for name in _names(entries, words)], np.int32)
            known, new_offsets = join_levels(levels, offsets, new_ids)
            vocabulary = Vocabulary(vocabulary.words, *count_words(known, new_offsets, len(vocabulary)), distinct=True)
        lengths, (shortest, longest) = np.diff(offsets), ngram_range
        n_ngrams = sum(int(np.maximum(lengths - n + 1, 0).sum()) for n in range(shortest, longest + 1))
        return cls(known, new_offsets, vocabulary, n_ngrams - len(known))

    def with_words(self, keep: npt.NDArray[np.bool_]) -> "Corpus":
        """Return the corpus with only some of its words, in the same order: those for which `keep` is true."""
        new_ids = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        ids, offsets = join_levels(self.ids[None], self.offsets, new_ids)
        n_unknown = self.n_unknown + self.n_tokens - len(ids)
        return Corpus(ids, offsets, self.vocabulary.part(np.flatnonzero(keep)), n_unknown)

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


def _tokenised(
    texts: Iterable[str], tokenizer: str | Tokenizer, n_jobs: int | None, progress: Progress | None
) -> tuple[Ids, Offsets, list[str]]:
    """Return ids and offsets of all texts, and every distinct word by first occurrence."""
    index: dict[bytes, int] = {}
    ids, lengths = [np.empty(0, np.int32)], [np.zeros(1, np.int64)]
    for batch_ids, offsets, words in _encoded(texts, resolve_tokenizer(tokenizer), n_threads(n_jobs)):
        numbers = np.array([index.setdefault(word, len(index)) for word in words], np.int32)
        ids.append(numbers[batch_ids])
        lengths.append(np.diff(offsets))
        if progress is not None:
            progress(len(offsets) - 1)
    return np.concatenate(ids), np.cumsum(np.concatenate(lengths)), [word.decode() for word in index]


def _encoded(texts: Iterable[str], tokenizer: Tokenizer, threads: int) -> Iterator[tuple[Ids, Offsets, list[bytes]]]:
    """Encode texts batch by batch, in order, on several threads; only a few batches are in memory at a time."""
    n_replaced = 0
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[tuple[Ids, Offsets, list[bytes]]]] = deque()
        for batch in in_batches(texts):
            data, documents, rule, replaced = lay_out(batch, tokenizer)
            n_replaced += replaced
            waiting.append(pool.submit(encode_new, data, documents, rule))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    if n_replaced:
        warnings.warn(
            f"{n_replaced:,} texts had characters that are not valid Unicode (lone surrogates); these were replaced.",
            WGCNWarning,
            stacklevel=2,
        )


def number_ngrams(
    ids: Ids, offsets: Offsets, n_words: int, ngram_range: tuple[int, int], min_count: int, threads: int
) -> tuple[npt.NDArray[Any], Ids, int]:
    """Give numbers to n-grams of documents of word ids; those of several words must occur `min_count` times.

    Return the number of the n-gram that begins at each token, or -1, of shape (lengths, tokens); the words of each
    n-gram, -1 after the last one, of shape (n-grams, longest); and how many were too rare. Tokens are grouped by the
    n-gram without its last word, so that a group needs a table of single words alone.
    """
    shortest, longest = ngram_range
    levels = np.full((longest, len(ids)), -1, np.int32 if len(ids) < 2**31 else np.int64)
    levels[0] = ids
    entries = np.full((n_words, longest), -1, np.int32)
    entries[:, 0] = np.arange(n_words)
    places, n_rare, n_shorter = np.empty_like(levels[0]), 0, 0
    for n in range(2, longest + 1):
        following, firsts = _following(ids, offsets, n - 1), levels[n - 1]
        starts = group_places(levels[n - 2], len(entries), places)
        edges = np.searchsorted(starts, np.linspace(0, starts[-1], 4 * threads + 1)[1:-1]).tolist()
        with ThreadPoolExecutor(threads) as pool:
            jobs = [
                pool.submit(find_first, following, places, starts, first, last, min_count, firsts, n_words)
                for first, last in pairwise([0, *edges, len(entries)])
            ]
        rare = sum(job.result() for job in jobs)
        first_places = number_by_first(firsts, len(entries))
        new = np.full((len(first_places), longest), -1, np.int32)
        new[:, :n] = ids[first_places[:, None] + np.arange(n)]
        if n <= shortest:
            n_shorter, n_rare = len(entries), 0
        n_rare += rare
        entries = np.concatenate([entries, new])
    long_enough = levels[shortest - 1 :]
    if n_shorter:
        long_enough[long_enough >= 0] -= n_shorter
    return long_enough, entries[n_shorter:], n_rare


def _choose(
    levels: npt.NDArray[Any], offsets: Offsets, entries: Ids, words: list[str], rules: VocabularyRules, n_rare: int
) -> tuple[npt.NDArray[np.int64], Vocabulary]:
    """Return the numbers of the n-grams that the rules keep, in the order of a vocabulary, and this vocabulary."""
    counts, document_counts = np.sum([count_words(level, offsets, len(entries)) for level in levels], axis=0)
    if re.search("[\0- ]", "_".join(words)):  # where tokens have spaces in them, ids do not tell the order of n-grams
        names, n_documents = _names(entries, words), len(offsets) - 1
        vocabulary = Vocabulary.from_counts(names, counts, document_counts, n_documents, rules)
        numbers = {name: i for i, name in enumerate(names)}
        return np.array([numbers[word] for word in vocabulary.words], np.int64), vocabulary
    are_stop_words = np.zeros(len(entries), bool)
    if stop_words := frozenset(rules.stop_words):
        are_stop_words[:] = [name in stop_words for name in _names(entries, words)]
    are_ngrams = (entries[:, 1:2] >= 0).any(axis=1)
    keep = keep_words(counts, document_counts, are_stop_words, are_ngrams, len(offsets) - 1, rules, n_rare)
    kept = np.flatnonzero(keep)
    chosen = kept[np.lexsort((*entries[kept].T[::-1], -counts[kept]))][: rules.max_size]
    return chosen, Vocabulary(_names(entries[chosen], words), counts[chosen], document_counts[chosen], distinct=True)


def _names(entries: Ids, words: list[str]) -> list[str]:
    """Return n-grams of word ids, as `number_ngrams` gives them, with their words joined by spaces."""
    names = [words[i] for i in entries[:, 0].tolist()]
    for column in entries.T[1:]:
        longer = np.flatnonzero(column >= 0)
        for i, word in zip(longer.tolist(), column[longer].tolist(), strict=True):
            names[i] = f"{names[i]} {words[word]}"
    return names


def _following(ids: Ids, offsets: Offsets, distance: int) -> Ids:
    """Return the id that stands so many tokens after each one in its document, or -1."""
    following = np.concatenate([ids[distance:], np.full(min(distance, len(ids)), -1, np.int32)])
    for back in range(1, distance + 1):
        following[offsets[1:][offsets[1:] >= back] - back] = -1
    return following


def _filtered(ids: Ids, offsets: Offsets, keep: npt.NDArray[np.bool_]) -> tuple[Ids, Offsets]:
    """Drop tokens, and move the beginnings of the documents accordingly."""
    if keep.all():
        return ids, offsets
    return ids[keep], np.concatenate([[0], np.cumsum(keep)])[offsets]
