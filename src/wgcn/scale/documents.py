"""X on disk: the rows of documents in partitions, and selections of them that look like a csr_array.

A partition has the rows of documents that follow each other. Its files in the work folder, with its own name as NAME:

- `NAME.words`, `NAME.offsets`: int32 and int64, as in a csr_array of shape (documents, words)
- `NAME.values-LEAD`: float32, the weights; where no document is long enough for a lead, those of 0 count
- `NAME.counts`: how often each term occurs
- `NAME.lengths`: int32, how many words and n-grams each document has, known or not

The rows are those of `wgcn.estimators.preparation.Prepared`, made by the same functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from wgcn.base.arrays import Floats, Ints
from wgcn.scale.corpus import Coding, Piece, Span
from wgcn.scale.store import Outputs, WorkFolder, key_of
from wgcn.scale.workers import Site
from wgcn.text import kernels
from wgcn.text.corpus import Tokens
from wgcn.text.weighting import LONG, TermWeighting
from wgcn.trust.scope import n_tokens


@dataclass(frozen=True)
class Partition:
    """Rows of X on disk."""

    name: str
    first: int  # number of its first document
    n_documents: int
    n_long: int  # documents that have more than LONG terms
    count_type: str
    value_type: str = "float32"

    def values(self, lead: int) -> tuple[str, str]:
        """Return which file has the weights with a lead, and their type."""
        return f"{self.name}.values-{lead if self.n_long else 0}", self.value_type

    def read(self, work: WorkFolder, lead: int, n_words: int) -> csr_array:
        """Return all rows, weighted with a lead."""
        files = self.values(lead), (f"{self.name}.words", "int32"), (f"{self.name}.offsets", "int64")
        return csr_array(tuple(work.read(*file) for file in files), shape=(self.n_documents, n_words))


@dataclass(frozen=True, eq=False)
class Selection:
    """Some documents of a partition."""

    partition: Partition
    numbers: Ints  # among the documents that were asked for
    rows: Ints  # of the partition

    def read(self, work: WorkFolder, values: tuple[str, str], n_words: int) -> csr_array:
        """Return their rows, of which alone much is read; `values` is the file of the values, and their type."""
        offsets = work.read(f"{self.partition.name}.offsets", np.int64)
        sizes = offsets[self.rows + 1] - offsets[self.rows]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        wanted = np.arange(indptr[-1]) + np.repeat(offsets[self.rows] - indptr[:-1], sizes)
        files = values, (f"{self.partition.name}.words", "int32")
        data, words = (np.asarray(work.mapped(*file)[wanted]) for file in files)
        return csr_array((data, words, indptr), shape=(len(self.rows), n_words))


@dataclass(frozen=True, eq=False)
class ShardedDocuments:
    """Some documents, in any order. What a csr_array of them would have is read from disk when it is asked for."""

    work: WorkFolder
    partitions: tuple[Partition, ...]
    sizes: npt.NDArray[np.int32]  # (all documents,), the number of terms of each
    n_words: int
    rows: npt.NDArray[np.int64]  # (documents,), numbers of these documents among all
    lead: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of documents and of words."""
        return len(self.rows), self.n_words

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        return np.dtype(self.partitions[0].value_type)

    @property
    def nnz(self) -> int:
        """The number of terms of all these documents."""
        return int(self.sizes[self.rows].sum(dtype=np.int64))

    def __getitem__(self, key: Any) -> Any:
        """Return some of the documents; with columns too, a csr_array of these."""
        return self.csr[key] if isinstance(key, tuple) else replace(self, rows=self.rows[key])

    def __matmul__(self, table: Floats) -> Floats:
        """Return the product with a table of words."""
        return np.asarray(self.csr @ table)

    def joined(self, others: ShardedDocuments) -> ShardedDocuments:
        """Return these documents and others after them."""
        return replace(self, rows=np.concatenate([self.rows, others.rows]))

    @cached_property
    def csr(self) -> csr_array:
        """The rows, in memory."""
        return self._read(lambda partition: partition.values(self.lead), self.dtype)

    @property
    def data(self) -> Floats:
        """As in a csr_array."""
        return np.asarray(self.csr.data)

    @property
    def indices(self) -> Ints:
        """As in a csr_array."""
        return np.asarray(self.csr.indices)

    @property
    def indptr(self) -> Ints:
        """As in a csr_array."""
        return np.asarray(self.csr.indptr)

    def counts(self) -> csr_array:
        """Return how often each term occurs, in memory."""
        return self._read(lambda partition: (f"{partition.name}.counts", partition.count_type), np.dtype(np.uint8))

    def lengths(self) -> npt.NDArray[np.int64]:
        """Return how many words and n-grams each document has, known or not."""
        found = np.empty(len(self.rows), np.int64)
        for each in self.selections():
            found[each.numbers] = self.work.read(f"{each.partition.name}.lengths", np.int32)[each.rows]
        return found

    def selections(self) -> list[Selection]:
        """Return these documents by partitions."""
        order = np.argsort(self.rows, kind="stable")
        firsts = [partition.first for partition in self.partitions]
        edges = np.searchsorted(self.rows[order], [*firsts, len(self.sizes)]).tolist()
        return [
            Selection(partition, order[begin:end], self.rows[order[begin:end]] - partition.first)
            for partition, (begin, end) in zip(self.partitions, pairwise(edges), strict=True)
            if begin < end
        ]

    def _read(self, values: Callable[[Partition], tuple[str, str]], dtype: np.dtype[Any]) -> csr_array:
        """Return the rows with values of a file of each partition; of the type only if there are no rows."""
        blocks, numbers = [csr_array((0, self.n_words), dtype=dtype)], [np.empty(0, np.int64)]
        for each in self.selections():
            blocks.append(each.read(self.work, values(each.partition), self.n_words))
            numbers.append(each.numbers)
        order, rows = np.concatenate(numbers), csr_array(vstack(blocks))
        return rows if (np.diff(order) > 0).all() else csr_array(rows[np.argsort(order)])


def store_documents(
    pieces: Sequence[Piece],
    site: Site,
    coding: Coding,
    weighting: TermWeighting,
    *,
    leads: Sequence[int] = (),
    stop_words: frozenset[str] = frozenset(),
) -> ShardedDocuments:
    """Write the rows of documents, in partitions of about equal size; those that are there already are left.

    Sums over partitions round as they are cut, so their number does not depend on who works.
    """
    work, limits = site.work, site.limits
    size = int(np.clip(sum(piece.n_tokens for piece in pieces) // limits.partitions, *limits.partition_tokens))
    groups, digest = _grouped(pieces, size), hashlib.sha256(weighting.idf.tobytes() + coding.new_ids.tobytes())
    key = key_of(digest.hexdigest(), tuple(leads), size)
    firsts = accumulate((sum(span.last - span.first for span in group) for group in groups), initial=0)
    numbered = [(f"rows-{key}-{number}", *each) for number, each in enumerate(zip(firsts, groups, strict=False))]
    partitions = tuple(site.workers.map(_store, numbered, work, coding, weighting, tuple(leads), stop_words))
    sizes = [np.diff(work.read(f"{each.name}.offsets", np.int64)).astype(np.int32) for each in partitions]
    all_sizes = np.concatenate(sizes)
    return ShardedDocuments(work, partitions, all_sizes, len(weighting.idf), np.arange(len(all_sizes)))


def _grouped(pieces: Sequence[Piece], size: int) -> list[list[Span]]:
    """Return the documents of each partition, of about so many tokens."""
    groups, spans, n_tokens = list[list[Span]](), list[Span](), 0.0
    for piece in pieces:
        n_spans = max(-(-piece.n_tokens // size), 1)
        edges = np.linspace(0, piece.n_documents, n_spans + 1).astype(int).tolist()
        for pair in pairwise(edges):
            spans.append(Span(piece, *pair))
            n_tokens += piece.n_tokens / n_spans
            if n_tokens >= 0.75 * size:
                groups.append(spans)
                spans, n_tokens = [], 0.0
    return [*groups, spans] if spans else groups


def _store(
    numbered: tuple[str, int, list[Span]],
    work: WorkFolder,
    coding: Coding,
    weighting: TermWeighting,
    leads: tuple[int, ...],
    stop_words: frozenset[str],
) -> Partition:
    """Write the rows of some documents."""
    name, first, spans = numbered

    def store(outputs: Outputs) -> Partition:
        n_words, (ids, offsets) = len(weighting.idf), coding.encode(work, spans)
        counts, words, term_offsets = kernels.count_terms(ids, offsets, n_words, 0)
        counts = counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
        terms = counts, words, term_offsets
        n_long = int(np.sum(np.diff(offsets) > LONG))
        for lead in (0, *(leads if n_long else ())):
            leading = kernels.leading_counts(ids, offsets, words, term_offsets, n_words, lead) if lead else None
            outputs.save(f"values-{lead}", weighting.weigh(*terms, leading=leading))
        outputs.save("words", words.astype(np.int32))
        outputs.save("offsets", term_offsets.astype(np.int64))
        outputs.save("counts", counts)
        outputs.save("lengths", *(_lengths(span, work, coding, stop_words) for span in spans))
        return Partition(name, first, len(term_offsets) - 1, n_long, str(counts.dtype))

    return work.once(name, Partition, store)


def _lengths(span: Span, work: WorkFolder, coding: Coding, stop_words: frozenset[str]) -> npt.NDArray[np.int32]:
    piece = span.piece
    words = piece.words(work) if stop_words else []
    tokens = Tokens(piece.ids(work) if stop_words else np.empty(0, np.int32), piece.offsets(work), words)
    found = n_tokens(tokens, np.arange(span.first, span.last), coding.ngram_range, stop_words)
    return found.astype(np.int32)
