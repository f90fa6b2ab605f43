"""The document-term matrix X_dv: documents by words, weighted.

`TermWeighting` is what a model keeps of it. It needs numpy alone, because prediction does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from wgcn.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from wgcn.text.corpus import Corpus

__all__ = ["Norm", "TermWeighting", "count_terms", "document_terms"]

Norm = Literal["l2", "l1"]


@dataclass(frozen=True, eq=False)
class TermWeighting:
    """tf-idf as scikit-learn has it: term frequency times smooth idf, rows scaled to 1."""

    idf: npt.NDArray[np.float32]  # (words,): log((1 + documents) / (1 + documents that have the word)) + 1
    sublinear: bool = True  # whether a word that occurs n times counts 1 + log(n) rather than n
    norm: Norm = "l2"  # a row has the length 1, or sums to 1 (the paper's "distribution on the whole vocabulary")

    def __post_init__(self) -> None:
        if self.norm not in get_args(Norm):
            raise InputError(f"norm must be one of {', '.join(get_args(Norm))}, got {self.norm!r}.")

    @classmethod
    def from_counts(
        cls,
        document_counts: npt.NDArray[np.int64],
        n_documents: int,
        *,
        sublinear: bool = True,
        norm: Norm = "l2",
    ) -> TermWeighting:
        """Learn the idf from the number of documents that have each word."""
        return cls((np.log((1 + n_documents) / (1 + document_counts)) + 1).astype(np.float32), sublinear, norm)

    def weigh(
        self, counts: npt.NDArray[Any], words: npt.NDArray[Any], offsets: npt.NDArray[np.int64], compiled: bool = False
    ) -> npt.NDArray[np.float32]:
        """Return the weights of terms, given as `count_terms` does; compiled code gives the same bits."""
        weights: npt.NDArray[np.float32]
        tf = np.arange(counts.max(initial=0) + 1, dtype=np.float32)  # of every count
        if self.sublinear:
            tf[1:] = 1 + np.log(tf[1:])
        if compiled:
            from wgcn.text.kernels import weigh_terms

            weights = weigh_terms(counts, words, offsets, tf, self.idf, self.norm == "l2")
            return weights
        weights = tf[counts] * self.idf[words]
        lengths = np.diff(offsets)
        # Summed in double and in order, as the compiled code does.
        sizes = weights.astype(np.float64) ** (2 if self.norm == "l2" else 1)
        sizes = np.bincount(np.repeat(np.arange(len(lengths)), lengths), sizes, minlength=len(lengths))
        if self.norm == "l2":
            sizes = np.sqrt(sizes)
        weights /= np.repeat(sizes.astype(np.float32), lengths)
        return weights


def count_terms(
    ids: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], n_words: int, compiled: bool = False
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return how often which word occurs in a document, both of shape (terms,), and where each document begins.

    Words are sorted in each document; negative ids are no words.
    """
    if compiled:
        from wgcn.text import kernels

        terms: tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.int64]]
        terms = kernels.count_terms(ids, offsets, n_words)
        return terms
    document = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    cells, counts = np.unique((document * n_words + ids)[ids >= 0], return_counts=True)
    new_offsets = np.searchsorted(cells, np.arange(len(offsets)) * n_words)
    return counts, cells % max(n_words, 1), new_offsets


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

    if weighting == "tfidf":
        weighting = TermWeighting.from_counts(corpus.vocabulary.document_counts, len(corpus), sublinear=False)
    counts, words, offsets = count_terms(corpus.ids, corpus.offsets, len(corpus.vocabulary), compiled=True)
    if isinstance(weighting, TermWeighting):
        weights = weighting.weigh(counts, words, offsets, compiled=True)
    elif weighting == "count":
        weights = counts.astype(np.float32)
    else:
        raise InputError(f"Unknown weighting {weighting!r}. Use 'count', 'tfidf' or a TermWeighting.")
    # scikit-learn takes no matrix with 64-bit indices, so those are kept for what needs them.
    offsets = offsets.astype(np.int32 if len(words) < 2**31 else np.int64)
    return csr_array((weights, words, offsets), shape=(len(corpus), len(corpus.vocabulary)))
