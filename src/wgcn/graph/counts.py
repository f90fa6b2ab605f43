"""Exact sliding-window counts, as Text-GCN (Yao et al. 2019) defines them.

A window of w tokens slides over each document by one token at a time; a document of at most w tokens is one window, an
empty one none. #W is the number of windows, #W(i) of those that hold word i, #W(i, j) of those that hold both i and j.
A pair counts once per window, however often its words occur in it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.arrays import Ints
from wgcn.base.errors import InputError, StoreError
from wgcn.base.threads import n_threads
from wgcn.graph.kernels import count_rows
from wgcn.store import folder as store
from wgcn.store.contents import MAX_COUNT
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import Vocabulary

_INT32_MAX = np.iinfo(np.int32).max
_SAMPLED = 64  # one word in so many, to estimate how many pairs there are


@dataclass(frozen=True, eq=False)
class WindowCounts:
    """How many windows hold each word and each pair of words.

    Counts over one vocabulary and one window size add up: ``a.merge(b)`` is what counting both corpora at once gives,
    so text can be added later, and parts of a corpus can be counted separately.

    Parameters
    ----------
    vocabulary : Vocabulary
    window : int
        Tokens in a window.
    n_windows : int
        #W.
    word_windows : int64 array of shape (n_words,)
        #W(i).
    pair_windows : csr_array of shape (n_words, n_words)
        #W(i, j) for i < j, as int32, or int64 where that could overflow.

    Examples
    --------
    >>> corpus = Corpus.from_texts(["a b c", "b c"])
    >>> counts = WindowCounts.from_corpus(corpus, window=2)
    >>> counts.n_windows, dict(zip(counts.vocabulary.words, counts.word_windows.tolist()))
    (3, {'b': 3, 'c': 2, 'a': 1})
    >>> counts.pair("c", "b"), counts.pair("a", "c")
    (2, 0)
    """

    vocabulary: Vocabulary
    window: int
    n_windows: int
    word_windows: npt.NDArray[np.int64]
    pair_windows: csr_array

    @classmethod
    def from_corpus(cls, corpus: Corpus, window: int = 20, *, n_jobs: int | None = None) -> WindowCounts:
        """Count the windows of a corpus.

        A window has at least 2 tokens; if it is longer than every document, each document is one window. `n_jobs`
        counts threads as joblib does.
        """
        return cls.of_frequent_pairs(corpus, window, n_jobs=n_jobs)[0]

    @classmethod
    def of_frequent_pairs(
        cls,
        corpus: Corpus,
        window: int = 20,
        *,
        min_pairs: int = 1,
        max_pairs: int | None = None,
        n_jobs: int | None = None,
    ) -> tuple[WindowCounts, int]:
        """Count without pairs that share fewer than `min_pairs` windows, and return the limit that was used.

        It is higher than `min_pairs` where about `max_pairs` pairs, estimated from every 64th word, would be exceeded.
        """
        if window < 2:
            raise InputError(f"window must be at least 2 tokens, got {window}: a pair of words needs two places.")
        n_words = len(corpus.vocabulary)
        windows = Windows(corpus.ids, corpus.offsets, n_words, window)
        if max_pairs is not None:
            scratch = windows.scratch()
            sample = [windows.count((word, word + 1), min_pairs, scratch)[3] for word in sampled_words(n_words)]
            sizes, times = np.unique(np.concatenate([np.empty(0, np.int64), *sample]), return_counts=True)
            min_pairs = raised_limit(sizes, times, min_pairs, max_pairs)
        with ThreadPoolExecutor(n_threads(n_jobs)) as pool:
            counted = pool.map(lambda rows: windows.count(rows, min_pairs, windows.scratch()), windows.blocks)
            word_windows, indptrs, columns, values = zip(*counted, strict=True)
        indptr = np.concatenate(([0], np.cumsum(np.concatenate([np.diff(part) for part in indptrs]))))
        if indptr[-1] <= _INT32_MAX:  # the index type that scipy would choose
            indptr = indptr.astype(np.int32)
        pairs = csr_array((np.concatenate(values), np.concatenate(columns), indptr), shape=(n_words, n_words))
        pairs.has_canonical_format = True
        return cls(corpus.vocabulary, window, windows.n_windows, np.concatenate(word_windows), pairs), min_pairs

    def pair(self, word: str, other: str) -> int:
        """Return #W(i, j) of two words."""
        i, j = sorted((self.vocabulary.id_of(word), self.vocabulary.id_of(other)))
        return int(self.word_windows[i] if i == j else self.pair_windows[i, j])

    def merge(self, other: WindowCounts) -> WindowCounts:
        """Add up the counts of two corpora over the same vocabulary and window.

        The vocabulary of the first is kept, with the word frequencies of both.
        """
        if self.vocabulary != other.vocabulary:
            raise InputError(
                f"Counts over different vocabularies ({len(self.vocabulary):,} and {len(other.vocabulary):,} words) "
                "cannot be merged. Build the second corpus with vocabulary=first.vocabulary."
            )
        if self.window != other.window:
            raise InputError(f"Counts over windows of {self.window} and {other.window} tokens cannot be merged.")
        n_windows = self.n_windows + other.n_windows
        value_type = count_type(n_windows)
        pairs = self.pair_windows.astype(value_type, copy=False) + other.pair_windows.astype(value_type, copy=False)
        vocabulary = Vocabulary(
            self.vocabulary.words,
            self.vocabulary.counts + other.vocabulary.counts,
            self.vocabulary.document_counts + other.vocabulary.document_counts,
        )
        words = self.word_windows + other.word_windows
        return WindowCounts(vocabulary, self.window, n_windows, words, csr_array(pairs))

    def save(self, path: str | Path) -> None:
        """Write the counts to a folder, completely or not at all."""
        tensors = {"word_windows": self.word_windows, **store.csr_tensors("pair_windows", self.pair_windows)}
        config = {"window": self.window, "n_windows": self.n_windows}
        store.save_folder(path, "counts", config, tensors, self.vocabulary, check=self._read)

    @classmethod
    def load(cls, path: str | Path) -> WindowCounts:
        """Read counts that `save` wrote."""
        return cls._read(store.load_folder(path, "counts", {"window": int, "n_windows": int}))

    @classmethod
    def _read(cls, folder: store.Folder) -> WindowCounts:
        n_words, window, n_windows = len(folder.vocabulary), folder.config["window"], folder.config["n_windows"]
        with folder.checked():
            if not (window >= 2 and 0 <= n_windows <= MAX_COUNT):
                raise InputError(f"There are no counts of {n_windows} windows of {window} tokens.")
        words = folder.tensor("word_windows", n_words, dtype=np.int64, within=(0, n_windows))
        pairs = folder.csr("pair_windows", (n_words, n_words), (np.int32, np.int64))
        lengths = np.diff(pairs.indptr)
        fits = (
            (pairs.indices > np.repeat(np.arange(n_words, dtype=np.int32), lengths)).all()
            and (pairs.data > 0).all()
            and all((pairs.data <= of_words).all() for of_words in (np.repeat(words, lengths), words[pairs.indices]))
        )
        if not fits:
            raise StoreError(f"{folder.path}: 'pair_windows' has counts that these words cannot have. Save it again.")
        return cls(folder.vocabulary, window, n_windows, words, pairs)

    def __repr__(self) -> str:
        n_words, n_pairs = len(self.vocabulary), self.pair_windows.nnz
        return f"WindowCounts({n_words:,} words, {n_pairs:,} pairs, {self.n_windows:,} windows of {self.window})"


class Windows:
    """The windows of documents of word ids, laid out to be counted by rows of the matrix of pairs."""

    def __init__(self, ids: Ints, offsets: Ints, n_words: int, window: int) -> None:
        lengths, n_tokens = np.diff(offsets), len(ids)
        span = min(window, max(int(lengths.max(initial=0)), 2))  # a longer one counts the same, and may overflow
        self.n_windows = int(np.sum(np.maximum(lengths - span, 0) + 1, where=lengths > 0))
        # The positions of all tokens, those of word 0 first, and where the positions of each word begin.
        places = csr_array((np.arange(n_tokens), ids, [0, n_tokens]), shape=(1, n_words)).tocsc()
        positions, starts = places.data, places.indptr.astype(np.int64)
        document_of = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        self._tokens = ids, offsets, positions, starts, document_of, span
        self._scratch = (n_words, 2), count_type(n_tokens)
        # Blocks of rows with about equal numbers of tokens: many, so that all threads end together.
        edges = np.searchsorted(starts, np.linspace(0, starts[-1], 97)[1:-1])
        self.blocks = list(pairwise(np.unique([0, *edges, n_words]).tolist()))

    def scratch(self) -> Ints:
        """Return an array that `count` needs, and leaves as it was."""
        return np.zeros(*self._scratch)

    def count(self, rows: tuple[int, int], min_pairs: int, scratch: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Return #W(i) and #W(i, j) of the rows first, ..., last - 1, as `kernels.count_rows` does."""
        found: tuple[Ints, Ints, Ints, Ints] = count_rows(*self._tokens, min_pairs, *rows, scratch)
        return found


def sampled_words(n_words: int) -> range:
    """Return the words from whose pairs the number of all pairs is estimated."""
    return range(_SAMPLED // 2, n_words, _SAMPLED)


def raised_limit(sizes: Ints, times: Ints, min_pairs: int, max_pairs: int) -> int:
    """Return `min_pairs`, or more where about `max_pairs` would be exceeded, by the sizes of the sampled pairs.

    `sizes` are the distinct ones, sorted, and `times` says how many pairs have each.
    """
    if times.sum() * _SAMPLED <= max_pairs:
        return min_pairs
    return int(sizes[np.searchsorted(np.cumsum(times), times.sum() - max_pairs // _SAMPLED - 1, side="right")]) + 1


def count_type(largest: int) -> type[np.signedinteger[Any]]:
    """Return the type for counts: none is above the number of windows, which is at most that of tokens."""
    return np.int32 if largest <= _INT32_MAX else np.int64
