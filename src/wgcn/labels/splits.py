"""Stratified splits of labelled documents, copies among them, and `LabelledKFold` for texts some of which have labels.

Folds and samples are drawn from documents in the order of their digests, so the order of a file changes no model.
Documents of one group, copies of each other, are held out together, because a held-out document of which training has a
copy would say nothing: `groups` has a number for each. A group counts as one document of its rarest class.

Near-copies share 60 % of their distinct terms (the Jaccard index of words and n-grams). Candidates come from MinHash
signatures (Broder 1997) in bands; each is compared with the first document of its band, so time is linear. Where nearly
all documents would be copies of each other, such as forms or texts of few words, only those of the same terms are.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import BaseCrossValidator, KFold, StratifiedKFold, train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from wgcn.base.errors import InputError
from wgcn.labels.reading import Rows as Rows
from wgcn.labels.reading import read_some_labels
from wgcn.labels.targets import Targets

_FOLDS = 5
_ENOUGH_DOCUMENTS = 2000  # to judge a model by: where there are more, some folds are never held out
_FEW_DOCUMENTS, _REPEATS = 100, 3  # with fewer than 100, the folds are drawn three times
_FEWEST_TO_SPLIT = 10  # documents, for the validation of a network
_ALIKE = 0.6  # share of common terms from which on documents are near-copies
_BANDS, _HASHES = 6, 2  # of a signature, and in a band
_LEAST_DIFFERENT = 10  # groups, at the least, or a quarter of the documents if that is less
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio


def held_out_mask(codes: Rows, fraction: float, random_state: Any, groups: Rows | None = None) -> npt.NDArray[np.bool_]:
    """Return which documents to hold out: about a share of them, but never all of a class."""
    if groups is not None:
        members, first = _members(codes, groups)
        mask = np.isin(groups, members[held_out_mask(codes[first], fraction, random_state)])
        return mask & np.isin(codes, codes[~mask])
    random, mask, counts = check_random_state(random_state), np.zeros(len(codes), bool), np.bincount(codes)
    size = min(round(fraction * len(codes)), int(np.maximum(counts - 1, 0).sum()))
    if size < max(int(np.sum(counts > 1)), 1):  # too few for one of each class that has several
        order = random.permutation(len(codes))
        spare = np.delete(order, np.unique(codes[order], return_index=True)[1])
        mask[spare[:size]] = True
    else:
        common = _in_common_classes(codes)
        mask[train_test_split(common, test_size=size, stratify=codes[common], random_state=random)[1]] = True
    return mask


def _members(codes: Rows, groups: Rows) -> tuple[Rows, Rows]:
    """Return the numbers of the groups, and the document that stands for each: the first of its rarest class."""
    order = np.lexsort((np.bincount(codes)[codes], groups))
    members, first = np.unique(groups[order], return_index=True)
    return members, order[first]


def validation_rows(targets: npt.NDArray[Any], fraction: float, seed: int) -> Rows:
    """Choose the documents by which a network stops: of each class its share, but never its last document.

    `targets` are the class of each document, or a 0/1 matrix of shape (documents, classes). Of fewer than ten documents
    none is chosen.
    """
    if fraction == 0 or len(targets) < _FEWEST_TO_SPLIT:
        return np.empty(0, np.int64)
    size = min(max(1, round(len(targets) * fraction)), len(targets) - 1)
    order = np.random.default_rng(seed).permutation(len(targets))
    if targets.ndim == 2:
        return order[:size]
    counts = np.bincount(targets)
    shares = size * counts / len(targets)
    take = np.floor(shares).astype(np.int64)
    # What rounding down left over goes to the classes that lost most by it.
    by_loss = np.argsort(take - shares, kind="stable")
    take[by_loss[counts[by_loss] > take[by_loss] + 1][: size - take.sum()]] += 1
    return np.concatenate([order[targets[order] == c][:n] for c, n in enumerate(take)])


def folds(codes: Rows, n_folds: int, random: np.random.RandomState, groups: Rows | None = None) -> list[Rows]:
    """Return the rows of each fold. The only document of a class is in none; of other classes some are always left."""
    if groups is not None and len(np.unique(groups)) < len(groups):
        members, first = _members(codes, groups)
        parts = [np.isin(groups, members[part]) for part in folds(codes[first], n_folds, random)]
        parts = [mask & np.isin(codes, codes[~mask]) for mask in parts]
        return [np.flatnonzero(mask) for mask in parts if mask.any()]
    common = _in_common_classes(codes)
    if not len(common):
        return []
    n_folds = min(n_folds, int(np.bincount(codes[common]).max()))
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=random)
    with warnings.catch_warnings():  # that some classes have fewer documents than there are folds
        warnings.simplefilter("ignore", UserWarning)
        return [common[test] for _, test in splitter.split(common, codes[common])]


def cross_validation_parts(codes: Rows, targets: Targets, random_state: Any, groups: Rows | None = None) -> list[Rows]:
    """Return folds to hold out in turn, stratified by `codes`; none if no class has two documents."""
    if not (targets.sums() > 1).any():
        return []
    random = check_random_state(random_state)
    repeats = _REPEATS if len(_in_common_classes(codes)) < _FEW_DOCUMENTS else 1
    parts = [part for _ in range(repeats) for part in folds(codes, _FOLDS, random, groups)]
    n_parts = int(np.searchsorted(np.cumsum([len(part) for part in parts]), _ENOUGH_DOCUMENTS)) + 1
    return parts[:n_parts]


def evenly(rows: Rows, most: int) -> Rows:
    """Return at most so many of some rows, evenly."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(int)]


def _in_common_classes(codes: Rows) -> Rows:
    """Return the rows of documents whose class has another document."""
    return np.flatnonzero(np.bincount(codes, minlength=1)[codes] > 1)


def row_digests(rows: csr_array) -> npt.NDArray[np.int64]:
    """Return a number of 64 bits for each row of a matrix that has no texts; equal rows have equal ones."""
    values = rows.data.astype(np.float64).view(np.uint64)
    mixed = (values ^ (rows.indices.astype(np.uint64) + np.uint64(1)) * _MIX) * _MIX
    mixed ^= mixed >> np.uint64(29)
    mixed *= _MIX
    mixed ^= mixed >> np.uint64(32)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])  # modulo 2^64
    return np.asarray(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]).view(np.int64)


def canonical_order(
    digests: npt.NDArray[np.int64], targets: Targets | None = None, weight: npt.NDArray[Any] | None = None
) -> Rows:
    """Return documents by their digest; equal ones by their classes and weights, where these are given."""
    if targets is None or weight is None:
        return np.argsort(digests, kind="stable")
    codes = targets.held
    if not isinstance(codes, np.ndarray):  # a number for the classes of each document, other classes having another one
        codes = np.asarray(codes @ np.random.default_rng(0).random(targets.n_classes))
    return np.lexsort((weight, codes, digests))


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


class LabelledKFold(BaseCrossValidator):  # type: ignore[misc]
    """Folds of the labelled texts; the unlabelled texts are in every training part and in no test part.

    So an estimator learns from the unlabelled texts of all folds, and any scorer of scikit-learn meets labels only. The
    folds are stratified by class, unless a text may have several labels. A text is unlabelled where its label is None,
    NaN, pd.NA, -1 or blank, as for `fit` of the classifiers; it may also be a row of -1 in a label matrix.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=True
        Whether to shuffle the labelled texts first. Files are often sorted by something.
    random_state : int, RandomState or None, default=0
        Seed of the shuffling.

    Examples
    --------
    >>> splitter = LabelledKFold(2, shuffle=False)
    >>> for train, test in splitter.split(["a", "b", "c", "d", "e"], ["x", "y", None, "x", "y"]):
    ...     print(train, test)
    [2 3 4] [0 1]
    [0 1 2] [3 4]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: Any = 0) -> None:
        self.n_splits, self.shuffle, self.random_state = n_splits, shuffle, random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Yield the rows to train on and the rows to test on, both rising, for each fold.

        `y` has one label, or one list of labels, per text of `X`, or is a matrix of 0 and 1. `groups` is not used.
        """
        if y is None:
            raise InputError("LabelledKFold needs y, the labels: they say which texts can be tested on.")
        labels = read_some_labels(y)
        if X is not None:
            check_consistent_length(X, labels.labelled)
        rows, codes = np.flatnonzero(labels.labelled), None if labels.multilabel else labels.targets.codes
        largest = len(rows) if codes is None else int(np.bincount(codes, minlength=1).max())
        if largest < self.n_splits:
            raise InputError(
                f"n_splits={self.n_splits} folds need at least one class of {self.n_splits} labelled texts; the most "
                f"frequent one has {largest}. Give a smaller n_splits, or more labels."
            )
        kind = KFold if codes is None else StratifiedKFold
        random_state = self.random_state if self.shuffle else None
        splitter = kind(self.n_splits, shuffle=self.shuffle, random_state=random_state)
        with warnings.catch_warnings():  # a class may have fewer texts than there are folds
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            parts = list(splitter.split(rows, codes))
        for _, test in parts:
            tested = np.sort(rows[test])
            yield np.setdiff1d(np.arange(len(labels.labelled)), tested), tested

    def __repr__(self) -> str:
        return f"LabelledKFold({self.n_splits}, shuffle={self.shuffle}, random_state={self.random_state!r})"
