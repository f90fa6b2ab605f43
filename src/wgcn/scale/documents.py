"""X on disk: the rows of documents in parts, and selections of them that look like a csr_array.

A part has the rows of documents that follow each other. Its files in the work folder, with NAME as that of the part:

- `NAME.words`, `NAME.offsets`: int32 and int64, as in a csr_array of shape (documents, words)
- `NAME.values-LEAD`: float32, the weights; for a lead that no document of the part is long enough for, those of 0 count
- `NAME.counts`: how often each term occurs
- `NAME.lengths`: int32, how many words and n-grams each document has, known or not

The rows are those of `wgcn.estimators.preparation.Prepared`, made by the same functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from wgcn.base.arrays import Floats, Ints
from wgcn.scale.store import Outputs, WorkFolder, key_of
from wgcn.scale.tokens import Piece
from wgcn.scale.vocabulary import Coding
from wgcn.scale.workers import Workers
from wgcn.text import kernels
from wgcn.text.corpus import Tokens
from wgcn.text.weighting import LONG, TermWeighting
from wgcn.trust.scope import n_tokens

Span = tuple[Piece, int, int]  # the documents of a piece from the first to before the second number

# Enough for the workers of a machine; each costs a table with a row per word for every sum.
_PARTS = 16
_PART_TOKENS = 1 << 17, 1 << 23  # least and most of a part


class Rows(NamedTuple):
    """Rows of X, as the three arrays of a csr_array."""

    values: Floats
    words: Ints
    offsets: Ints


@dataclass(frozen=True)
class StoredRows:
    """A part of X on disk."""

    work: WorkFolder
    name: str
    first: int  # number of its first document
    n_documents: int
    n_long: int  # documents that have more than LONG terms
    leads: tuple[int, ...]  # that it has values for, beside 0
    counts: str  # type of the counts
    dtype: str = "float32"

    def read(self, lead: int = 0) -> Rows:
        """Return the rows, weighted with a lead."""
        values = f"values-{lead if lead in self.leads else 0}"
        types = {values: self.dtype, "words": "int32", "offsets": "int64"}
        return Rows(*(self.work.read(f"{self.name}.{name}", dtype) for name, dtype in types.items()))

    def select(self, places: Ints, values: str, dtype: str, n_words: int) -> csr_array:
        """Return some of the rows, of which alone much is read; `values` is which of the files has their values."""
        offsets = self.work.read(f"{self.name}.offsets", np.int64)
        sizes = offsets[places + 1] - offsets[places]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        wanted = np.arange(indptr[-1]) + np.repeat(offsets[places] - indptr[:-1], sizes)
        names = (values, dtype), ("words", "int32")
        data, words = (np.asarray(self.work.mapped(f"{self.name}.{name}", kind)[wanted]) for name, kind in names)
        return csr_array((data, words, indptr), shape=(len(places), n_words))


@dataclass(frozen=True, eq=False)
class ShardedDocuments:
    """Some documents, in any order. What a csr_array of them would have is read from disk when it is asked for."""

    parts: tuple[StoredRows, ...]
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
        return np.dtype(self.parts[0].dtype)

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
        return self._read("", self.parts[0].dtype)

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
        return self._read("counts")

    def lengths(self) -> npt.NDArray[np.int64]:
        """Return how many words and n-grams each document has, known or not."""
        found = np.empty(len(self.rows), np.int64)
        for part, own, places in self.by_part():
            found[own] = part.work.read(f"{part.name}.lengths", np.int32)[places]
        return found

    def by_part(self) -> Iterator[tuple[StoredRows, Ints, Ints]]:
        """Yield each part that has any of the documents, with which they are of these, and which of the part."""
        order = np.argsort(self.rows, kind="stable")
        edges = np.searchsorted(self.rows[order], [part.first for part in self.parts] + [len(self.sizes)])
        for part, begin, end in zip(self.parts, edges, edges[1:], strict=False):
            if begin < end:
                yield part, order[begin:end], self.rows[order[begin:end]] - part.first

    def _read(self, values: str, dtype: str = "") -> csr_array:
        blocks, orders = [csr_array((0, self.n_words), dtype=np.dtype(dtype or np.uint8))], [np.empty(0, np.int64)]
        for part, own, places in self.by_part():
            name = values or f"values-{self.lead if self.lead in part.leads else 0}"
            blocks.append(part.select(places, name, dtype or part.counts, self.n_words))
            orders.append(own)
        order = np.concatenate(orders)
        rows = csr_array(vstack(blocks))
        return rows if (np.diff(order) > 0).all() else csr_array(rows[np.argsort(order)])


def store_documents(
    pieces: Sequence[Piece],
    work: WorkFolder,
    workers: Workers,
    coding: Coding,
    weighting: TermWeighting,
    *,
    leads: Sequence[int] = (),
    stop_words: frozenset[str] = frozenset(),
    tokens: int | None = None,
) -> ShardedDocuments:
    """Write the rows of documents, in parts of about so many tokens; those that are there already are left.

    By default there are 16 parts, or more if they would be too large. Sums over them round as the parts are cut, so
    this does not depend on who works.
    """
    tokens = tokens or int(np.clip(sum(piece.n_tokens for piece in pieces) // _PARTS, *_PART_TOKENS))
    digest = hashlib.sha256(weighting.idf.tobytes() + coding.new_ids.tobytes())
    groups = list(_grouped(pieces, tokens, key_of(digest.hexdigest(), tuple(leads), tokens)))
    given = work, coding, weighting, tuple(leads), stop_words
    parts = tuple(StoredRows(**found) for found in workers.map(_store, groups, *given))
    sizes = [np.diff(work.read(f"{part.name}.offsets", np.int64)).astype(np.int32) for part in parts]
    all_sizes = np.concatenate([np.empty(0, np.int32), *sizes])
    return ShardedDocuments(parts, all_sizes, len(weighting.idf), np.arange(len(all_sizes)))


def _grouped(pieces: Sequence[Piece], tokens: int, key: str) -> Iterator[tuple[str, int, list[Span]]]:
    """Yield documents of pieces that make a part, with its name and the number of its first document."""
    spans: list[tuple[Span, float]] = []
    for piece in pieces:
        n_spans = max(-(-piece.n_tokens // tokens), 1)
        edges = np.linspace(0, piece.n_documents, n_spans + 1).astype(int).tolist()
        spans += [((piece, *pair), piece.n_tokens / n_spans) for pair in pairwise(edges)]
    first, number, group, size = 0, 0, list[Span](), 0.0
    for place, (span, n) in enumerate(spans):
        group.append(span)
        size += n
        if size >= 0.75 * tokens or place == len(spans) - 1:
            yield f"rows-{key}-{number}", first, group
            first += sum(end - begin for _, begin, end in group)
            number, group, size = number + 1, [], 0.0


def _store(
    numbered: tuple[str, int, list[Span]],
    work: WorkFolder,
    coding: Coding,
    weighting: TermWeighting,
    leads: tuple[int, ...],
    stop_words: frozenset[str],
) -> dict[str, Any]:
    """Write the rows of some pieces, and return the fields of `StoredRows`."""
    name, first, spans = numbered
    if (done := work.result(name)) is not None:
        return {**done, "work": work, "leads": tuple(done["leads"])}
    outputs, n_words = Outputs(work, name), len(weighting.idf)
    ids, offsets = _joined([coding.encode(work, *span) for span in spans])
    counts, words, term_offsets = kernels.count_terms(ids, offsets, n_words, 0)
    counts = counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
    terms = counts, words, term_offsets
    n_long = int(np.sum(np.diff(offsets) > LONG))
    for lead in (0, *(leads if n_long else ())):
        leading = kernels.leading_counts(ids, offsets, words, term_offsets, n_words, lead) if lead else None
        outputs.save(f"{name}.values-{lead}", weighting.weigh(*terms, leading=leading))
    outputs.save(f"{name}.words", words.astype(np.int32))
    outputs.save(f"{name}.offsets", term_offsets.astype(np.int64))
    outputs.save(f"{name}.counts", counts)
    outputs.save(f"{name}.lengths", *(_lengths(span, work, coding, stop_words) for span in spans))
    kept = tuple(leads) if n_long else ()
    stored = StoredRows(work, name, first, len(term_offsets) - 1, n_long, kept, str(counts.dtype))
    fields = asdict(stored) | {"work": None}
    outputs.finish(**fields)
    return fields | {"work": work, "leads": kept}


def _joined(encoded: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    begins = np.cumsum([0, *(len(ids) for ids, _ in encoded)])
    offsets = [each[1:] + begin for (_, each), begin in zip(encoded, begins, strict=False)]
    return np.concatenate([ids for ids, _ in encoded]), np.concatenate([[0], *offsets])


def _lengths(span: Span, work: WorkFolder, coding: Coding, stop_words: frozenset[str]) -> npt.NDArray[np.int32]:
    piece, begin, end = span
    words = piece.words(work) if stop_words else []
    tokens = Tokens(piece.ids(work) if stop_words else np.empty(0, np.int32), piece.offsets(work), words)
    found = n_tokens(tokens, np.arange(begin, end), coding.ngram_range, stop_words)
    return found.astype(np.int32)
