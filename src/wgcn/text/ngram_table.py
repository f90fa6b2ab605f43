"""The n-grams of a vocabulary, found by the ids of their words. Needs numpy alone."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["NgramTable"]

Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]


class NgramTable:
    """A vocabulary of n-grams, laid out for a look-up by word ids.

    An n-gram is a chain: its first word, then longer and longer beginnings of it. Each beginning has a number among
    those of its length, which makes, with the id of the word that follows, the key of the next one.

    Parameters
    ----------
    entries : sequence of str
        Distinct n-grams, their words joined by a space; the id of an n-gram is its place.
    ngram_range : (int, int)
        Shortest and longest n-gram to look for; entries of another length are never found.
    stop_words : iterable of str
        Words that are dropped before n-grams are formed.

    Attributes
    ----------
    index : dict of str to int
        Id of each word that occurs in an n-gram, and of each stop word.

    Examples
    --------
    >>> table = NgramTable(["york", "new york"], (1, 2))
    >>> table.index
    {'york': 0, 'new': 1}
    >>> ids, offsets = table.look_up(np.array([1, 0, -1, 0], np.int32), np.array([0, 3, 4]))
    >>> ids.tolist(), offsets.tolist()
    ([-1, 1, 0, -1, -1, 0], [0, 5, 6])
    """

    def __init__(self, entries: Sequence[str], ngram_range: tuple[int, int], stop_words: Iterable[str] = ()) -> None:
        self._shortest, self._longest = ngram_range
        lengths = np.fromiter((entry.count(" ") + 1 for entry in entries), np.int64, len(entries))
        chains = np.flatnonzero((lengths >= self._shortest) & (lengths <= self._longest))
        lengths = lengths[chains]
        self.index: dict[str, int] = {}
        pieces = (piece for chain in chains.tolist() for piece in entries[chain].split(" "))
        words = np.fromiter((self.index.setdefault(piece, len(self.index)) for piece in pieces), np.int64)
        stopped = [self.index.setdefault(word, len(self.index)) for word in stop_words]
        self._is_kept = np.ones(len(self.index) + 1, bool)  # the last place is that of the id -1
        self._is_kept[stopped] = False
        firsts = np.cumsum(lengths) - lengths
        numbers, n_numbers = words[firsts], len(self.index)
        self._pairs: list[_PairTable] = []  # for beginnings of two words, three and so on
        self._entry_of: list[Ids] = []  # for those of one word, two and so on: the entry that each is, or -1
        for n in range(1, int(lengths.max(initial=0)) + 1):
            if n > 1:
                longer = lengths >= n
                chains, lengths, firsts, numbers = chains[longer], lengths[longer], firsts[longer], numbers[longer]
                keys, inverse = np.unique(numbers * len(self.index) + words[firsts + n - 1], return_inverse=True)
                self._pairs.append(_PairTable(keys))
                numbers, n_numbers = self._pairs[-1].numbers[inverse], len(keys)
            whole = lengths == n
            entry_of = np.full(n_numbers, -1, np.int32)
            entry_of[numbers[whole]] = chains[whole]
            self._entry_of.append(entry_of)

    def look_up(self, ids: Ids, offsets: Offsets) -> tuple[Ids, Offsets]:
        """Return the n-grams of documents, in the order of `wgcn.text.tokenize.ngrams`.

        Parameters
        ----------
        ids : int32 array of shape (n_tokens,)
            Ids of words, one document after another; -1 for a word that is not in `index`.
        offsets : int64 array of shape (n_documents + 1,)
            Where each document begins.

        Returns
        -------
        ids, offsets
            Likewise for n-grams; -1 for one that is not among the entries. Where n-grams of one word are looked for, a
            stop word is one, and not among them.
        """
        kept, before = self._kept(ids, offsets)
        left = np.repeat(before[1:], np.diff(before)) - np.arange(before[-1])  # words up to the end of the document
        counts = np.full(len(ids), self._shortest == 1, np.int64)
        counts[kept] = np.clip(left - self._shortest + 1, 0, self._longest - self._shortest + 1)
        places = _sums(counts)
        found, offsets = np.full(places[-1], -1, np.int32), places[offsets]
        ids, places = ids[kept], places[:-1][kept]
        begins = np.flatnonzero(ids >= 0)
        numbers = ids[begins].astype(np.int64)
        for n, entry_of in enumerate(self._entry_of, start=1):
            if n > 1:
                fits = np.flatnonzero(left[begins] >= n)
                begins, numbers = begins[fits], numbers[fits]
                following = ids[begins + n - 1]
                known = np.flatnonzero(following >= 0)
                at, numbers = self._pairs[n - 2].find(numbers[known] * len(self.index) + following[known])
                begins = begins[known[at]]
            if n >= self._shortest:
                found[places[begins] + n - self._shortest] = entry_of[numbers]
        return found, offsets

    def _kept(self, ids: Ids, offsets: Offsets) -> tuple[npt.NDArray[np.bool_] | slice, Offsets]:
        """Return which words are not stop words, and how many of these there are before each document."""
        if self._is_kept.all():
            return slice(None), offsets
        kept = self._is_kept[ids]
        return kept, _sums(kept)[offsets]


def _sums(numbers: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the sums of the first 0, 1, 2 and so on of some numbers."""
    sums = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(numbers, out=sums[1:])
    return sums


class _PairTable:
    """Numbers for keys: a hash table that is read for many keys at once.

    Its multiplier is drawn anew for each table, so that no text can be made to collide; what is found does not depend
    on it.

    Parameters
    ----------
    keys : int64 array
        Distinct, not negative, and at least one.
    """

    def __init__(self, keys: npt.NDArray[np.int64]) -> None:
        self._multiplier = np.uint64(secrets.randbits(64) | 1)
        n_bits = (4 * len(keys) - 1).bit_length()
        self._shift = np.uint64(64 - n_bits)
        slots = self._slots(keys)
        order = np.argsort(slots, kind="stable")
        # The keys of slot s are _keys[_starts[s]:_starts[s + 1]]; a key's number is its place.
        self._keys = keys[order]
        self._starts = np.zeros((1 << n_bits) + 1, np.int32)
        np.cumsum(np.bincount(slots, minlength=1 << n_bits), out=self._starts[1:])
        self.numbers = np.empty(len(keys), np.int64)
        self.numbers[order] = np.arange(len(keys))

    def find(self, keys: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return which of some keys are in the table, in any order, and their numbers."""
        slots = self._slots(keys)
        at, ends = self._starts[slots].astype(np.int64), self._starts[slots + 1]
        left = np.flatnonzero(at < ends)
        at, ends, wanted = at[left], ends[left], keys[left]
        places, numbers = [left[:0]], [at[:0]]
        while len(left):
            hit = self._keys[at] == wanted
            places.append(left[hit])
            numbers.append(at[hit])
            at += 1
            on = np.flatnonzero(~hit & (at < ends))
            left, at, ends, wanted = left[on], at[on], ends[on], wanted[on]
        return np.concatenate(places), np.concatenate(numbers)

    def _slots(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return (keys.view(np.uint64) * self._multiplier >> self._shift).view(np.int64)
