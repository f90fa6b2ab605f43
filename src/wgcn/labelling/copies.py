"""The order of documents that does not depend on their rows, and copies and near-copies among them.

Folds and samples are drawn from documents in the order of their digests, so the order of a file changes no model.
Copies stay together in every split: a held-out document of which training has a copy would say nothing.

Near-copies share 60 % of their distinct terms (the Jaccard index of words and n-grams). Candidates come from MinHash
signatures (Broder 1997) in bands; each is compared with the first document of its band, so time is linear. Where nearly
all documents would be copies of each other, such as forms or texts of few words, only those of the same terms are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from wgcn.labelling.splits import Rows
from wgcn.labelling.targets import Targets

__all__ = ["canonical_order", "copy_groups", "row_digests"]

_ALIKE = 0.6  # share of common terms from which on documents are near-copies
_BANDS, _HASHES = 6, 2  # of a signature, and in a band
_LEAST_DIFFERENT = 10  # groups, at the least, or a quarter of the documents if that is less
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
_SHIFTS = np.uint64(29), np.uint64(32)


def row_digests(rows: csr_array) -> npt.NDArray[np.int64]:
    """Return a number of 64 bits for each row of a matrix that has no texts; equal rows have equal ones."""
    values = rows.data.astype(np.float64).view(np.uint64)
    mixed = (values ^ (rows.indices.astype(np.uint64) + np.uint64(1)) * _MIX) * _MIX
    mixed ^= mixed >> _SHIFTS[0]
    mixed *= _MIX
    mixed ^= mixed >> _SHIFTS[1]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])  # modulo 2^64
    return np.asarray(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]).view(np.int64)


def canonical_order(
    digests: npt.NDArray[np.int64], targets: Targets | None = None, weight: npt.NDArray[Any] | None = None
) -> Rows:
    """Return documents by their digest; equal ones by their classes and weights, where these are given."""
    if targets is None or weight is None:
        return np.argsort(digests, kind="stable")
    codes = targets.held if isinstance(targets.held, np.ndarray) else _class_sums(targets)
    return np.lexsort((weight, codes, digests))


def _class_sums(targets: Targets) -> npt.NDArray[np.float64]:
    """Return a number for the classes of each document, other classes having another one."""
    return np.asarray(targets.matrix @ np.random.default_rng(0).random(targets.n_classes))


def copy_groups(terms: csr_array, alike: float = _ALIKE) -> Rows:
    """Return a number for each document, (documents,): copies and near-copies have the same.

    `terms` has the shape (documents, words); what counts is which terms a document has. Documents without any are no
    copies of each other.
    """
    sizes, n = np.diff(terms.indptr), terms.shape[0]
    filled = np.flatnonzero(sizes)
    if len(filled) < 2:
        return np.arange(n)
    random, begins = np.random.default_rng(0), terms.indptr[filled]
    pairs = []
    for _ in range(_BANDS):
        key = np.zeros(len(filled), np.uint64)
        for _ in range(_HASHES):
            places = random.permutation(terms.shape[1]).astype(np.uint32)
            key = key * _MIX + np.minimum.reduceat(places[terms.indices], begins)
        _, first, band = np.unique(key, return_index=True, return_inverse=True)
        others = np.flatnonzero(first[band] != np.arange(len(filled)))
        pairs.append(np.stack([filled[others], filled[first[band[others]]]]))
    one, other = np.unique(np.hstack(pairs), axis=1)
    has = csr_array((np.ones(terms.nnz, np.int32), terms.indices, terms.indptr), shape=terms.shape)
    shared = np.asarray(has[one].multiply(has[other]).sum(axis=1)).ravel()
    near = shared >= alike * (sizes[one] + sizes[other] - shared)
    links = coo_array((np.ones(int(near.sum())), (one[near], other[near])), shape=(n, n))
    groups = np.asarray(connected_components(links, directed=False)[1], np.int64)
    if alike < 1 and 1 / np.square(np.bincount(groups) / n).sum() < min(_LEAST_DIFFERENT, n / 4):
        return copy_groups(terms, 1.0)
    return groups
