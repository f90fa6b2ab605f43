"""The document-term matrix X_dv: documents by words, weighted.

`TermWeighting` is what a model keeps of it. It needs numpy alone, because prediction does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from wgcn.text.corpus import Corpus

Norm = Literal["l2", "l1"]

LONG = 100  # known terms; in shorter texts, no part counts more than another
_LEAD_COUNT = 3  # what an occurrence in the lead of a text counts


def smooth_idf(document_counts: npt.NDArray[Any], n_documents: int) -> npt.NDArray[np.float32]:
    """Return the idf from the number of documents that have each word."""
    return (np.log((1 + n_documents) / (1 + document_counts)) + 1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class TermWeighting:
    """tf-idf as scikit-learn has it: term frequency times smooth idf, rows scaled to 1."""

    idf: npt.NDArray[np.float32]  # (words,), as `smooth_idf` gives it
    sublinear: bool = True  # whether a word that occurs n times counts 1 + log(n) rather than n
    norm: Norm = "l2"  # a row has the length 1, or sums to 1 (the paper's "distribution on the whole vocabulary")
    lead: int = 0  # known terms at the beginning of a long text that count more: a title says what a text is about

    def __post_init__(self) -> None:
        if self.norm not in get_args(Norm):
            raise InputError(f"norm must be one of {', '.join(get_args(Norm))}, got {self.norm!r}.")

    def weigh(
        self,
        counts: npt.NDArray[Any],
        words: npt.NDArray[Any],
        offsets: npt.NDArray[np.int64],
        leading: npt.NDArray[np.uint8] | None = None,
        new_idf: float = 0.0,
    ) -> npt.NDArray[np.float32]:
        """Return the weights of terms, given as `count_terms` and `leading_counts` do.

        `new_idf` is the idf of all new words, which do not count in the length of a document that has others.
        """
        tf, idf, is_new = counts.astype(np.float32), np.take(self.idf, words, mode="clip"), words >= len(self.idf)
        idf[is_new] = new_idf
        if leading is not None:
            tf += np.float32(_LEAD_COUNT - 1) * leading
        weights: npt.NDArray[np.float32] = (1 + np.log(tf) if self.sublinear else tf) * idf
        lengths = np.diff(offsets)
        has_terms = lengths > 0
        if has_terms.any():
            # Summed in double, so that the order of a sum does not show in single precision.
            starts, parts = offsets[:-1][has_terms], weights.astype(np.float64) ** (2 if self.norm == "l2" else 1)
            sizes = np.add.reduceat(parts, starts)
            if new_idf > 0:
                known = np.add.reduceat(np.where(is_new, 0, parts), starts)
                sizes = np.where(known > 0, known, sizes)
            if self.norm == "l2":
                sizes = np.sqrt(sizes)
            weights /= np.repeat(sizes.astype(np.float32), lengths[has_terms])
        return weights


def count_terms(
    ids: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], n_words: int, n_new: int
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return how often which word occurs in a document, both of shape (terms,), and where each document begins.

    Words are sorted in each document. After them come, by first occurrence in it, the `n_new` words whose ids go on
    from those of the others: so their order does not depend on other documents. Negative ids are no words.
    """
    document, n_ids = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), n_words + n_new
    all_cells = (document * n_ids + ids)[ids >= 0]
    cells, counts = np.unique(all_cells, return_counts=True)
    if n_new:
        _, firsts = np.unique(all_cells[all_cells % n_ids >= n_words], return_index=True)
        new = np.flatnonzero(cells % n_ids >= n_words)
        in_order = new[np.argsort(firsts)]
        cells[new], counts[new] = cells[in_order], counts[in_order]
    new_offsets = np.searchsorted(cells // max(n_ids, 1), np.arange(len(offsets)))
    return counts, cells % max(n_ids, 1), new_offsets


def leading_counts(
    ids: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    words: npt.NDArray[Any],
    term_offsets: npt.NDArray[Any],
    n_words: int,
    lead: int,
) -> npt.NDArray[np.uint8]:
    """Return how often each term is among the first `lead` of its document that are below `n_words`; at most 255.

    It is 0 in documents that have no more than `LONG` such terms. `words` and `term_offsets` are what `count_terms`
    returns.
    """
    known = np.flatnonzero((ids >= 0) & (ids < n_words))
    starts = np.searchsorted(known, offsets)
    sizes = np.diff(starts)
    document = np.repeat(np.arange(len(sizes)), sizes)
    leads = (np.arange(len(known)) - starts[document] < lead) & (sizes[document] > LONG)
    # A term of a document as one number; new words, which come after the others, are not looked for.
    size = max(n_words, int(words.max(initial=0)) + 1)
    cells = np.repeat(np.arange(len(sizes)), np.diff(term_offsets)) * size + words
    found, counts = np.unique(document[leads] * size + ids[known[leads]], return_counts=True)
    order = np.argsort(cells, kind="stable")
    leading = np.zeros(len(words), np.uint8)
    leading[order[np.searchsorted(cells[order], found)]] = np.minimum(counts, 255)
    return leading


def document_terms(corpus: Corpus, weighting: TermWeighting | Literal["count", "tfidf"] = "tfidf") -> csr_array:
    """Return X_dv of a corpus, of shape (documents, words), in single precision.

    The weighting is "count", how often a word occurs in a document; "tfidf", with the idf of this corpus; or one that
    was learnt before.

    Examples
    --------
    >>> from wgcn import Corpus
    >>> corpus = Corpus.from_texts(["a b a", "b"])
    >>> document_terms(corpus, "count").toarray().tolist()
    [[2.0, 1.0], [0.0, 1.0]]
    """
    from scipy.sparse import csr_array

    from wgcn.text import kernels

    shape = (len(corpus), len(corpus.vocabulary))
    counts, words, offsets = kernels.count_terms(corpus.ids, corpus.offsets, shape[1], 0)
    weights = counts.astype(np.float32)
    if weighting == "tfidf":
        weighting = TermWeighting(smooth_idf(corpus.vocabulary.document_counts, len(corpus)), sublinear=False)
    if isinstance(weighting, TermWeighting):
        leading = None
        if weighting.lead:
            leading = kernels.leading_counts(corpus.ids, corpus.offsets, words, offsets, shape[1], weighting.lead)
        weights = weighting.weigh(weights, words, offsets, leading)
    elif weighting != "count":
        raise InputError(f"Unknown weighting {weighting!r}. Use 'count', 'tfidf' or a TermWeighting.")
    # scikit-learn takes no matrix with 64-bit indices, so those are kept for what needs them.
    offsets = offsets.astype(np.int32 if len(words) < 2**31 else np.int64)
    return csr_array((weights, words, offsets), shape=shape)
