"""Word n-grams: those of one list of tokens, and those of a fixed vocabulary. Needs numpy alone.

`ngrams` defines the n-grams of a document and their order. `NgramTable` gives the same for many documents of word ids
at once: an n-gram is an (n-1)-gram and the word after it, so a pair of numbers identifies it. Tests hold them equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError
from wgcn.text.tokenize import Ids, Offsets, WordBytes

_LONGEST = 16  # words in an n-gram: a text has as many n-grams per word


class Encoded(NamedTuple):
    """Documents as ids of n-grams, -1 for one that is no entry."""

    ids: Ids
    offsets: Offsets  # (documents + 1,), where each document begins
    places: Offsets  # (new tokens,), of words that are no entry among the n-grams
    numbers: npt.NDArray[Any]  # (new tokens,), which of the new words each is
    new: WordBytes  # these words, each once
    n_tokens: int  # all words, stop words too


def check_ngram_range(given: Any) -> tuple[int, int]:
    """Return the shortest and the longest n-gram, or say what is wrong with them."""
    numbers = list(given) if isinstance(given, Iterable) else []
    whole = len(numbers) == 2 and all(isinstance(each, Integral) and not isinstance(each, bool) for each in numbers)
    if not whole or not 1 <= numbers[0] <= numbers[1] <= _LONGEST:
        raise InputError(f"ngram_range must be two numbers with 1 <= first <= second <= {_LONGEST}, got {given!r:.80}.")
    return int(numbers[0]), int(numbers[1])


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


class NgramTable:
    """A vocabulary of n-grams as a tree, for the look-up by the ids of their words.

    A node is a beginning of an n-gram. The first nodes are the words, by the ids of `index`; after them, the key of a
    longer beginning is (node of all but its last word) * (number of words) + (id of its last word). Keys are sorted.
    """

    def __init__(self, entries: Sequence[str], ngram_range: tuple[int, int], stop_words: Iterable[str] = ()) -> None:
        self.ngram_range = ngram_range
        self.index: dict[str, int] = {}  # the ids of words, and of stop words
        separator = " " if ngram_range[1] > 1 else "\n"  # a single token may have spaces in it, but no line break
        words = (word for entry in entries for word in entry.split(separator))
        ids = np.fromiter((self.index.setdefault(word, len(self.index)) for word in words), np.int64)
        lengths = np.fromiter((entry.count(separator) + 1 for entry in entries), np.int64, len(entries))
        stopped = [self.index.setdefault(word, len(self.index)) for word in stop_words]
        self.is_kept = np.ones(len(self.index) + 1, bool)  # the last place is that of the id -1
        self.is_kept[stopped] = False
        firsts, n_nodes = _sums(lengths)[:-1], len(self.index)
        numbers, nodes = np.arange(len(entries)), ids[firsts]
        levels, ends = [np.empty(0, np.int64)], np.where(lengths == 1, nodes, -1)
        for n in range(2, ngram_range[1] + 1):
            longer = lengths[numbers] >= n
            numbers, nodes = numbers[longer], nodes[longer]
            keys, places = np.unique(nodes * len(self.index) + ids[firsts[numbers] + n - 1], return_inverse=True)
            levels.append(keys)
            nodes, n_nodes = n_nodes + places, n_nodes + len(keys)
            whole = lengths[numbers] == n
            ends[numbers[whole]] = nodes[whole]
        self.keys = np.concatenate(levels)
        self.entry_of = np.full(n_nodes + 1, -1, np.int32)  # the entry that each node is; the last place is for node -1
        self.entry_of[ends[ends >= 0]] = np.flatnonzero(ends >= 0)

    def look_up(self, ids: Ids, offsets: Offsets) -> tuple[Ids, Offsets, Offsets, Offsets]:
        """Return the n-grams of documents of word ids, -1 for one that is no entry, and where each document begins.

        Stop words are dropped first; where n-grams of one word are looked for, each counts as one that is no entry, and
        the other words that are no entry are returned too: their places among the ids and among the n-grams.
        """
        shortest, longest = self.ngram_range
        kept = slice(None) if self.is_kept.all() else self.is_kept[ids]
        ends = offsets if isinstance(kept, slice) else _sums(kept)[offsets]
        left = np.repeat(ends[1:], np.diff(ends)) - np.arange(ends[-1])  # tokens to the end of the document
        counts = np.full(len(ids), shortest == 1, np.int64)
        counts[kept] = np.clip(left - shortest + 1, 0, longest - shortest + 1)
        all_places = _sums(counts)
        new = np.flatnonzero((shortest == 1) & self.is_kept[ids] & (self.entry_of[ids] < 0))
        found, places, ids = np.full(all_places[-1], -1, np.int32), all_places[:-1][kept], ids[kept]
        begins = np.flatnonzero(ids >= 0)
        nodes = ids[begins].astype(np.int64)
        for n in range(1, longest + 1):
            if n > 1:
                fits = np.flatnonzero(left[begins] >= n)
                fits = fits[ids[begins[fits] + n - 1] >= 0]
                if not len(fits) or not len(self.keys):
                    break
                keys = nodes[fits] * len(self.index) + ids[begins[fits] + n - 1]
                order = np.argsort(keys)  # a search for sorted keys is several times as fast
                numbers = np.searchsorted(self.keys, keys[order])
                hits = np.take(self.keys, numbers, mode="clip") == keys[order]
                begins, nodes = begins[fits[order[hits]]], len(self.index) + numbers[hits]
            if n >= shortest:
                found[places[begins] + n - shortest] = self.entry_of[nodes]
        return found, all_places[offsets], new, all_places[new]


def _sums(numbers: npt.NDArray[Any]) -> Offsets:
    """Return the sums of the first 0, 1, 2 and so on of some numbers."""
    return np.concatenate([[0], np.cumsum(numbers, dtype=np.int64)])
