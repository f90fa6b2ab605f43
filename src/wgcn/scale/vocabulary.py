"""The vocabulary of all pieces, and how their tokens become its entries.

It has the words, in the order and with the counts, that `Corpus.from_tokens` would give the same text in memory: with
the same rules, and with the same n-grams. The distinct words of all pieces are in memory, at about 200 bytes each, but
not their n-grams: those are counted on disk, as sorted runs of keys that are merged by ranges, and only those that
occur often enough are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.scale.store import Outputs, WorkFolder, key_of
from wgcn.scale.tokens import Piece
from wgcn.scale.workers import Workers
from wgcn.text.corpus import filtered, ngram_keys
from wgcn.text.kernels import count_words
from wgcn.text.tokenize import Ids, Offsets
from wgcn.text.vocabulary import Vocabulary, VocabularyRules, choose_words

_SAMPLES = 256  # keys of each run, to cut all of them into ranges


@dataclass(frozen=True, eq=False)
class Coding:
    """From tokens of pieces to ids of a vocabulary. It is sent to workers, so it has no words."""

    ngram_range: tuple[int, int]
    n_words: int  # of all pieces
    is_kept: npt.NDArray[np.bool_] | None  # (words,): those that n-grams are made of; None for all
    tables: tuple[npt.NDArray[np.int64], ...]  # for n-grams of 2, 3, ... words, the keys of those that count, sorted
    new_ids: Ids  # (names + 1,): the id of each word and n-gram, -1 for none; the last place is for the name -1

    def encode(self, work: WorkFolder, piece: Piece, first: int = 0, last: int | None = None) -> tuple[Ids, Offsets]:
        """Return documents first, ..., last - 1 of a piece, all by default, as `ids` and `offsets` of a `Corpus`."""
        offsets = piece.offsets(work)[first : piece.n_documents + 1 if last is None else last + 1]
        ids, places = piece.ids(work, int(offsets[0]), int(offsets[-1] - offsets[0])), piece.places(work)
        offsets = offsets - offsets[0]
        if self.ngram_range == (1, 1):
            ids = self.new_ids[places][ids]
        else:
            ids, offsets = self._numbers(places[ids], offsets)
            ids = self.new_ids[ids]
        return filtered(ids, offsets, ids >= 0)

    def digest(self) -> str:
        """Return what tells this coding from others."""
        kept = np.empty(0, bool) if self.is_kept is None else self.is_kept
        return key_of(*(hashlib.sha256(part.tobytes()).hexdigest() for part in (self.new_ids, kept, *self.tables)))

    def part(self, keep: npt.NDArray[np.bool_]) -> Coding:
        """Return the coding of a vocabulary that has only some of the entries, in the same order."""
        new_ids = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        return replace(self, new_ids=np.append(new_ids, np.int32(-1))[self.new_ids])

    def levels(self, ids: Ids, offsets: Offsets) -> list[Ids]:
        """Return the numbers of the n-grams that begin at each token, -1 for none: for 1, 2, ... words."""
        levels = [ids]
        for n, table in enumerate(self.tables, 2):
            keys = ngram_keys(levels[-1], ids, offsets, n, self.n_words)
            found = np.searchsorted(table, keys).astype(np.int32)
            found[np.take(np.append(table, -2), found) != keys] = -1
            levels.append(found)
        return levels

    def without_stop_words(self, ids: Ids, offsets: Offsets) -> tuple[Ids, Offsets]:
        """Drop the words that n-grams are not made of."""
        return (ids, offsets) if self.is_kept is None else filtered(ids, offsets, self.is_kept[ids])

    def _numbers(self, ids: Ids, offsets: Offsets) -> tuple[Ids, Offsets]:
        """Return the numbers of n-grams among all names, in the order of a corpus, -1 for none."""
        ids, offsets = self.without_stop_words(ids, offsets)
        shortest, longest = self.ngram_range
        numbers, begin = np.empty((len(ids), longest - shortest + 1), np.int32), 0
        sizes = [self.n_words, *map(len, self.tables)]
        for place, level in enumerate(self.levels(ids, offsets)[shortest - 1 :]):
            numbers[:, place] = np.where(level < 0, -1, level + begin)
            begin += sizes[shortest - 1 + place]
        return numbers.ravel(), offsets * numbers.shape[1]


def choose_vocabulary(
    pieces: Sequence[Piece],
    work: WorkFolder,
    workers: Workers,
    *,
    ngram_range: tuple[int, int] = (1, 1),
    rules: VocabularyRules | None = None,
    merged: int = 1 << 26,
) -> tuple[Vocabulary, Coding]:
    """Return the vocabulary of all pieces, and the coding that leads to it; `merged` bytes are merged at a time."""
    rules, (shortest, longest) = rules or VocabularyRules(), ngram_range
    words, counts, document_counts = _merge_words(pieces, work)
    stop_words, is_kept = frozenset(rules.stop_words), None
    if longest > 1 and stop_words:
        is_kept = np.array([word not in stop_words for word in words], bool)
        counts, document_counts = counts * is_kept, document_counts * is_kept
    coding = Coding(ngram_range, len(words), is_kept, (), np.empty(0, np.int32))
    names, level = (words if shortest == 1 else []), words
    n_rare = 0
    for n in range(2, longest + 1):
        table, n_distinct = _ngram_table(pieces, work, workers, coding, rules, n, merged)
        coding = replace(coding, tables=(*coding.tables, table))
        beginnings, lasts = divmod(table, len(words))
        pairs = zip(beginnings.tolist(), lasts.tolist(), strict=True)
        level = [f"{level[i]} {words[j]}" for i, j in pairs]
        if n >= shortest:
            names, n_rare = names + level, n_rare + n_distinct - len(table)
    if longest > 1:
        numbers = np.append(np.arange(len(names), dtype=np.int32), np.int32(-1))
        n_first = len(words) if shortest == 1 else 0  # these are counted
        numbers = np.where(numbers < n_first, -1, numbers - n_first).astype(np.int32)
        of_ngrams = workers.total(_count_entries, pieces, work, replace(coding, new_ids=numbers), len(names) - n_first)
        counts, document_counts = (
            np.concatenate([own[:n_first], more])
            for own, more in zip((counts, document_counts), of_ngrams, strict=True)
        )
    n_documents = sum(piece.n_documents for piece in pieces)
    chosen = choose_words(names, counts, document_counts, n_documents, rules, n_rare)
    vocabulary = Vocabulary([names[i] for i in chosen.tolist()], counts[chosen], document_counts[chosen])
    new_ids = np.full(len(names) + 1, -1, np.int32)
    new_ids[chosen] = np.arange(len(chosen))
    return vocabulary, replace(coding, new_ids=new_ids)


def _merge_words(pieces: Sequence[Piece], work: WorkFolder) -> tuple[list[str], Offsets, Offsets]:
    """Return the distinct words by code point with their counts, and write the places of the words of each piece."""
    index: dict[str, int] = {}  # by first occurrence
    all_numbers, counts = [], np.zeros((2, 1 << 10), np.int64)
    for piece in pieces:
        numbers = np.array([index.setdefault(word, len(index)) for word in piece.words(work)], np.int32)
        if len(index) > counts.shape[1]:
            counts = np.concatenate([counts, np.zeros((2, len(index)), np.int64)], axis=1)
        counts[:, numbers] += piece.counts(work)
        all_numbers.append(numbers)
    in_order = list(index)
    order = np.array(sorted(range(len(in_order)), key=in_order.__getitem__), np.int64)
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order))
    for piece, numbers in zip(pieces, all_numbers, strict=True):
        Outputs(work, "places").save(f"{piece.name}.places", places[numbers])
    return [in_order[i] for i in order.tolist()], *counts[:, order]


def _count_entries(piece: Piece, work: WorkFolder, coding: Coding, n: int) -> tuple[Offsets, Offsets]:
    counts, document_counts = count_words(*coding.encode(work, piece), n)
    return counts, document_counts


def _ngram_table(
    pieces: Sequence[Piece],
    work: WorkFolder,
    workers: Workers,
    coding: Coding,
    rules: VocabularyRules,
    n: int,
    merged: int,
) -> tuple[npt.NDArray[np.int64], int]:
    """Return the sorted keys of the n-grams of n words that occur often enough, and the number of distinct ones."""
    stopped = sorted(rules.stop_words)
    key = key_of(n, stopped, rules.min_ngram_count if n > 2 else 0, rules.max_ngrams if n > 2 else 0)
    runs = list(workers.map(_ngram_run, pieces, work, coding, n, key))
    size = sum(run["size"] for run in runs) * 12
    samples = np.sort(np.concatenate([work.read(f"{run['name']}.sample", np.int64) for run in runs]))
    n_ranges = min(size // merged + 1, len(samples) + 1)
    bounds = [0, *samples[np.linspace(0, len(samples), n_ranges, endpoint=False).astype(int)[1:]].tolist(), 2**62]
    key = key_of(key, [run["name"] for run in runs], n_ranges, rules.min_ngram_count)
    ranges = [(i, *pair) for i, pair in enumerate(pairwise(bounds))]
    parts = list(workers.map(_merge_ngrams, ranges, work, runs, rules.min_ngram_count, key))
    keys, counts = (
        np.concatenate([work.read(f"{part['name']}.{what}", np.int64) for part in parts]) for what in ("keys", "counts")
    )
    if rules.max_ngrams is not None and len(keys) > rules.max_ngrams:
        keys = keys[counts > np.sort(counts)[-rules.max_ngrams - 1]]
    return keys, sum(part["distinct"] for part in parts)


def _ngram_run(piece: Piece, work: WorkFolder, coding: Coding, n: int, key: str) -> dict[str, Any]:
    """Count the n-grams of n words of a piece, as a sorted run of keys."""
    name = f"ngrams-{key}-{piece.name}"
    if (found := work.result(name)) is not None:
        return found
    outputs = Outputs(work, name)
    ids, offsets = coding.without_stop_words(piece.places(work)[piece.ids(work)], piece.offsets(work))
    keys = ngram_keys(coding.levels(ids, offsets)[-1], ids, offsets, n, coding.n_words)
    keys, counts = np.unique(keys[keys >= 0], return_counts=True)
    outputs.save(f"{name}.keys", keys)
    outputs.save(f"{name}.counts", counts.astype(np.int32))
    outputs.save(f"{name}.sample", keys[:: len(keys) // _SAMPLES + 1])
    return outputs.finish(name=name, size=len(keys))


def _merge_ngrams(
    bounds: tuple[int, int, int], work: WorkFolder, runs: Sequence[dict[str, Any]], min_count: int, key: str
) -> dict[str, Any]:
    """Add up the counts of runs in one range of keys, and keep those that are large enough."""
    number, low, high = bounds
    name = f"ngrams-{key}-{number}"
    if (found := work.result(name)) is not None:
        return found
    outputs, parts = Outputs(work, name), []
    for run in runs:
        first, last = (_place(work, run, bound) for bound in (low, high))
        read = partial(work.read, first=first, count=last - first)
        parts.append((read(f"{run['name']}.keys", np.int64), read(f"{run['name']}.counts", np.int32)))
    keys, counts = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(keys)
    keys, counts = keys[order], counts[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.add.reduceat(counts, starts, dtype=np.int64) if len(starts) else np.empty(0, np.int64)
    often = counts >= min_count
    outputs.save(f"{name}.keys", keys[starts][often])
    outputs.save(f"{name}.counts", counts[often])
    return outputs.finish(name=name, distinct=len(starts))


def _place(work: WorkFolder, run: dict[str, Any], key: int) -> int:
    """Return the first place in a run whose key is not below a key."""
    low, high = 0, int(run["size"])
    while low < high:
        middle = (low + high) // 2
        if work.read(f"{run['name']}.keys", np.int64, middle, 1)[0] < key:
            low = middle + 1
        else:
            high = middle
    return low
