"""Stratified splits of labelled documents, where some classes may have one document.

Documents of one group, copies of each other, are held out together: `groups` has a number for each. A group counts as
one document of its rarest class.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.utils import check_random_state

from wgcn.labelling.targets import Targets

__all__ = ["Rows", "cross_validation_parts", "evenly", "few_labels", "folds", "held_out_mask", "validation_rows"]

Rows = npt.NDArray[np.int64]  # indices of documents

_FOLDS = 5
_ENOUGH_DOCUMENTS = 2000  # to judge a model by: where there are more, some folds are never held out
_FEW_DOCUMENTS, _REPEATS = 100, 3  # with fewer than 100, the folds are drawn three times
_FEWEST_TO_SPLIT = 10  # documents, for the validation of a network


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


@contextmanager
def few_labels() -> Iterator[None]:
    """Silence scikit-learn's warning that labels with few documents per class may be numbers to predict."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%", UserWarning)
        yield
