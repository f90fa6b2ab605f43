"""The document-term matrix X_dv: documents by words, weighted."""

from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from wgcn.errors import InputError
from wgcn.text.corpus import Corpus

__all__ = ["document_terms"]


def document_terms(corpus: Corpus, weighting: Literal["count", "tfidf"] = "tfidf") -> csr_array:
    """Return X_dv of a corpus.

    Parameters
    ----------
    corpus : Corpus
    weighting : {"count", "tfidf"}
        How often a word occurs in a document, or scikit-learn's tf-idf of that: smooth idf, rows of length 1.

    Returns
    -------
    csr_array of shape (documents, words), float32

    Examples
    --------
    >>> corpus = Corpus.from_texts(["a b a", "b"])
    >>> document_terms(corpus, "count").toarray().tolist()
    [[2.0, 1.0], [0.0, 1.0]]
    """
    if weighting not in ("count", "tfidf"):
        raise InputError(f"Unknown weighting {weighting!r}. Use 'count' or 'tfidf'.")
    shape = (len(corpus), len(corpus.vocabulary))
    # scikit-learn takes no matrix with 64-bit indices, so those are kept for what needs them.
    offsets = corpus.offsets.astype(np.int32 if corpus.n_tokens < 2**31 else np.int64)
    terms = csr_array((np.ones(corpus.n_tokens, np.float32), corpus.ids.copy(), offsets), shape=shape)
    terms.sum_duplicates()
    if weighting == "tfidf":
        from sklearn.feature_extraction.text import TfidfTransformer

        terms = csr_array(TfidfTransformer().fit_transform(terms))
    return terms
