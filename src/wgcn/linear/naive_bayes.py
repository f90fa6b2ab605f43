"""Naive Bayes scales: how differently documents with and without a class use a word, for some classes at a time.

    contrast = |log p(word | class) - log p(word | other classes)|, divided by its root mean square over all classes
    R = (1 - share) + share * contrast

after the naive Bayes support vector machine of Wang and Manning (2012). A word counts once per document, and a subword
once per word of a document. Two documents of all words are added, divided between the sides in proportion to their
words.

Shapes
------
X^T : (words, documents), S : (words, subwords), R : (words, columns), R_s : (subwords, columns)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.sparse import csr_array

from wgcn.base.products import Floats, multiply, with_entries
from wgcn.labels.targets import Targets

Count = Callable[[slice | None], Floats]

_BLOCK = 1 << 14  # rows at a time: they stay in the caches


class NaiveBayesScales:
    """R and R_s of blocks of columns.

    count : returns the weight of the documents that have each word, (words, columns), for a block of columns, or for
        None of all documents; subwords : S, or None for no R_s
    share : at 0 there are no scales, and none are computed
    columns : the blocks that will be asked for: the mean square over all is found first, block by block
    n_words : the number of words, where `count` knows those alone that documents have: others are used by all alike
    """

    def __init__(
        self,
        count: Count,
        share: float,
        pool: ThreadPoolExecutor | None,
        subwords: csr_array | None,
        columns: Sequence[slice],
        n_words: int | None = None,
    ) -> None:
        self._count, self._share, self._pool = count, share, pool
        if share == 0:
            return
        self._sums = [count(None)]
        self._dtype, self._parts = self._sums[0].dtype, None
        if subwords is not None:
            self._words, matrix = with_entries(subwords)
            parts = csr_array((np.ones(matrix.nnz, self._dtype), matrix.indices, matrix.indptr), matrix.shape)
            self._parts = csr_array(parts.T)
            self._sums.append(multiply(self._parts, np.ascontiguousarray(self._sums[0][self._words]), pool))
        squares, n_columns = np.zeros(len(self._sums)), max(columns[-1].stop, 1)
        self._known: tuple[slice | None, list[Floats]] = None, []  # the last block, which may be the only one
        for block in columns:
            self._known = None, []  # before the next
            self._known = block, self._contrasts(block)
            squares += [np.sum(np.square(each), dtype=np.float64) for each in self._known[1]]
        sizes = [n_words or len(self._sums[0]), *map(len, self._sums[1:])]
        self._means = [float(np.sqrt(s / (n_columns * n))) for s, n in zip(squares, sizes, strict=True)]

    def __call__(self, columns: slice) -> tuple[Floats | None, Floats | None]:
        """Return R and R_s of a block, None where they are 1."""
        if self._share == 0:
            return None, None
        block, contrasts = self._known
        contrasts = contrasts if block == columns else self._contrasts(columns)
        self._known = None, []
        found = [self._scaled(each, mean) for each, mean in zip(contrasts, self._means, strict=True)]
        return found[0], found[1] if len(found) > 1 else None

    def _contrasts(self, columns: slice) -> list[Floats]:
        inside = [self._count(columns)]
        if self._parts is not None:
            inside.append(multiply(self._parts, np.ascontiguousarray(inside[0][self._words]), self._pool))
        return [_contrast(*each, self._pool) for each in zip(inside, self._sums, strict=True)]

    def _scaled(self, contrast: Floats, mean: float) -> Floats:
        if mean < 1e-6:  # rounding
            return np.ones(contrast.shape, self._dtype)
        contrast *= self._dtype.type(self._share / mean)
        contrast += self._dtype.type(1 - self._share)
        return contrast


def _contrast(inside: Floats, everywhere: Floats, pool: ThreadPoolExecutor | None) -> Floats:
    """Return contrasts from the weights of documents with a word, of a class and of all; the former is written to."""
    dtype = inside.dtype
    outside = everywhere - inside
    np.maximum(outside, 0, out=outside)  # rounding
    n_inside, n_outside = (part.sum(axis=0, dtype=np.float64) for part in (inside, outside))
    added = 2 * n_inside / np.maximum(n_inside + n_outside, 1e-12)

    def work(rows: slice) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            for part, n, more in ((inside[rows], n_inside, added), (outside[rows], n_outside, 2 - added)):
                part += more.astype(dtype)
                np.log(part, out=part)
                part -= np.log(np.maximum(n, 1e-12)).astype(dtype)
            contrast: Floats = np.abs(np.subtract(inside[rows], outside[rows], out=inside[rows]), out=inside[rows])
        contrast[~np.isfinite(contrast)] = 0

    blocks = [slice(begin, begin + _BLOCK) for begin in range(0, len(inside), _BLOCK)]
    list(map(work, blocks) if pool is None else pool.map(work, blocks))
    return inside


def word_counts(
    transposed: csr_array, targets: Targets, sample_weight: Floats, pool: ThreadPoolExecutor | None = None
) -> Count:
    """Return the `count` of documents in memory; `transposed` is X^T, and only where it is not 0 counts."""
    dtype, weight = transposed.dtype, sample_weight[:, None]
    present = csr_array(((transposed.data != 0).astype(dtype), transposed.indices, transposed.indptr), transposed.shape)

    def count(columns: slice | None) -> Floats:
        block = 1 if columns is None else targets.columns(columns.start, columns.stop)
        return multiply(present, np.ascontiguousarray(block * weight, dtype), pool)

    return count
