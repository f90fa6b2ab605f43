"""Two scales of the linear model: of the word graph beside the words, and of words that classes use differently."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from wgcn.linear.arrays import Floats

__all__ = ["graph_scale", "naive_bayes_scales"]

_SAMPLE = 400  # documents by which the graph is scaled


def graph_scale(document_terms: csr_array, adjacency: csr_array, sample_weight: Floats) -> float:
    """Return the factor that makes the rows of X A as long as those of X, on weighted average over 400 documents.

    Words without an edge, such as n-grams, do not count in the length of X.
    """
    rows = np.unique(np.linspace(0, document_terms.shape[0] - 1, _SAMPLE).astype(int))
    sample = document_terms[rows]
    spread = sample @ adjacency
    has_edges = (np.diff(adjacency.indptr) > 0).astype(sample.dtype)
    sample = csr_array((sample.data * has_edges[sample.indices], sample.indices, sample.indptr), sample.shape)
    lengths = (np.sqrt(csr_array(matrix).power(2).sum(axis=1)) for matrix in (sample, spread))
    before, after = (float(sample_weight[rows] @ length) for length in lengths)
    return before / after if after > 0 else 0.0


def naive_bayes_scales(document_terms: csr_array, targets: Floats, sample_weight: Floats, share: float) -> Floats:
    """Return R of shape (words, columns): how differently documents with and without a class use a word.

        contrast = |log p(word | class) - log p(word | other classes)|, divided by its root mean square
        R = (1 - share) + share * contrast

    after the naive Bayes support vector machine of Wang and Manning (2012). A word counts once per document. Two
    documents of all words are added, divided between the sides in proportion to their words.
    """
    ones = (document_terms.data != 0).astype(np.float64)
    present = csr_array((ones, document_terms.indices, document_terms.indptr), document_terms.shape).T
    inside, outside = (present @ (side * sample_weight[:, None]) for side in (targets, 1 - targets))
    n_inside, n_outside = inside.sum(axis=0), outside.sum(axis=0)
    added = 2 * n_inside / np.maximum(n_inside + n_outside, 1e-12)
    rates = ((inside + added) / np.maximum(n_inside, 1e-12), (outside + 2 - added) / np.maximum(n_outside, 1e-12))
    with np.errstate(divide="ignore", invalid="ignore"):
        contrast = np.nan_to_num(np.abs(np.log(rates[0]) - np.log(rates[1])), nan=0.0, posinf=0.0)
    mean = np.sqrt(np.mean(np.square(contrast)))
    if mean < 1e-9:  # rounding
        return np.ones(contrast.shape, document_terms.dtype)
    scales: Floats = (1 - share + share * contrast / mean).astype(document_terms.dtype)
    return scales
