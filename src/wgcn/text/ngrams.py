"""Word n-grams: of one list of tokens, of a whole corpus, and those of a fixed vocabulary. Needs numpy alone.

`ngrams` defines the n-grams of a document and their order. `number_ngrams` and `NgramTable` give the same for many
documents of word ids at once: an n-gram is an (n-1)-gram and the word after it, so a pair of numbers identifies it.
Tests hold them equal to `ngrams`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["NgramTable", "ngrams", "number_ngrams"]

Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Keys = npt.NDArray[np.int64]


def ngrams(tokens: Sequence[str], ngram_range: tuple[int, int]) -> list[str]:
    """Word n-grams in order of their first word, shorter before longer, their words joined by a space.

    Examples
    --------
    >>> ngrams(["new", "york", "city"], (1, 2))
    ['new', 'new york', 'york', 'york city', 'city']
    """
    shortest, longest = ngram_range
    return [
        " ".join(tokens[start : start + n])
        for start in range(len(tokens))
        for n in range(shortest, longest + 1)
        if start + n <= len(tokens)
    ]


def number_ngrams(
    ids: Ids, offsets: Offsets, words: Sequence[str], ngram_range: tuple[int, int]
) -> tuple[Ids, Offsets, list[str]]:
    """Return the n-grams of documents of word ids: their own ids, where each document begins, and the distinct ones."""
    shortest, longest = ngram_range
    left = _left(offsets)
    places = _sums(np.clip(left - shortest + 1, 0, longest - shortest + 1))
    numbered = np.empty(places[-1], np.int32)
    distinct: list[str] = []
    names = list(words)
    for n, (begins, numbers, keys) in enumerate(_by_length(ids, left, len(words), longest), start=1):
        if n > 1:
            names = [f"{names[key // len(words)]} {words[key % len(words)]}" for key in keys.tolist()]
        if n >= shortest:
            numbered[places[begins] + n - shortest] = numbers + len(distinct)
            distinct += names
    return numbered, places[offsets], distinct


class NgramTable:
    """A vocabulary of n-grams, found by the ids of their words; `index` has those, and the ids of stop words."""

    def __init__(self, entries: Sequence[str], ngram_range: tuple[int, int], stop_words: Iterable[str] = ()) -> None:
        self._range = ngram_range
        self.index: dict[str, int] = {}
        words = (word for entry in entries for word in entry.split(" "))
        ids = np.fromiter((self.index.setdefault(word, len(self.index)) for word in words), np.int32)
        offsets = _sums(np.fromiter((entry.count(" ") + 1 for entry in entries), np.int64, len(entries)))
        stopped = [self.index.setdefault(word, len(self.index)) for word in stop_words]
        self._is_kept = np.ones(len(self.index) + 1, bool)  # the last place is that of the id -1
        self._is_kept[stopped] = False
        self._keys: list[Keys] = []  # of the n-grams of two words, three and so on
        self._entry_of: list[Ids] = []  # of those of one word, two and so on: the entry that each one is, or -1
        entry, left = np.repeat(np.arange(len(entries)), np.diff(offsets)), _left(offsets)
        for n, (begins, numbers, keys) in enumerate(_by_length(ids, left, len(self.index), ngram_range[1]), start=1):
            if n > 1:
                self._keys.append(keys)
            whole = (begins == offsets[entry[begins]]) & (left[begins] == n)
            entry_of = np.full(len(keys), -1, np.int32)
            entry_of[numbers[whole]] = entry[begins[whole]]
            self._entry_of.append(entry_of)

    def look_up(self, ids: Ids, offsets: Offsets) -> tuple[Ids, Offsets]:
        """Return the n-grams of documents of word ids, -1 for one that is no entry, and where each document begins.

        Stop words are dropped first; where n-grams of one word are looked for, each counts as one that is no entry.
        """
        shortest, longest = self._range
        kept = slice(None) if self._is_kept.all() else self._is_kept[ids]
        left = _left(offsets if isinstance(kept, slice) else _sums(kept)[offsets])
        counts = np.full(len(ids), shortest == 1, np.int64)
        counts[kept] = np.clip(left - shortest + 1, 0, longest - shortest + 1)
        all_places = _sums(counts)
        found, places = np.full(all_places[-1], -1, np.int32), all_places[:-1][kept]
        levels = _by_length(ids[kept], left, len(self.index), len(self._entry_of), self._keys)
        for n, (begins, numbers, _) in enumerate(levels, start=1):
            if n >= shortest:
                found[places[begins] + n - shortest] = self._entry_of[n - 1][numbers]
        return found, all_places[offsets]


def _by_length(
    ids: Ids, left: Offsets, n_words: int, longest: int, tables: Sequence[Keys] | None = None
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Yield, for n-grams of one word, two and so on, where they begin, their numbers and the key of each number.

    Every n-gram has a number, or, given tables, those that are in them. `left` is as `_left` gives it.
    """
    begins = np.flatnonzero(ids >= 0)
    numbers, keys = ids[begins].astype(np.int64), np.arange(n_words)
    yield begins, numbers, keys
    for n in range(2, longest + 1):
        fits = np.flatnonzero(left[begins] >= n)
        begins, numbers = begins[fits], numbers[fits]
        following = ids[begins + n - 1]
        known = np.flatnonzero(following >= 0)
        if not len(known):
            return
        begins, keys = begins[known], numbers[known] * n_words + following[known]
        if tables is None:
            keys, numbers = np.unique(keys, return_inverse=True)
        else:
            order = np.argsort(keys)  # a search for sorted keys is several times as fast
            numbers = np.searchsorted(tables[n - 2], keys[order])
            found = np.take(tables[n - 2], numbers, mode="clip") == keys[order]
            begins, numbers = begins[order[found]], numbers[found]
        yield begins, numbers, keys


def _left(offsets: Offsets) -> Offsets:
    """Return, for each token, the number of tokens from it to the end of its document."""
    return np.repeat(offsets[1:], np.diff(offsets)) - np.arange(offsets[-1])


def _sums(numbers: npt.NDArray[Any]) -> Offsets:
    """Return the sums of the first 0, 1, 2 and so on of some numbers."""
    return np.concatenate([[0], np.cumsum(numbers, dtype=np.int64)])
