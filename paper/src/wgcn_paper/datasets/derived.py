"""Sets made of others: 20ng-coarse, the newsgroups of 20ng in five groups, and mr-thinned, MR with a rare class."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from wgcn_paper.datasets.dataset import Dataset

SOURCES: Mapping[str, str] = MappingProxyType({"20ng-coarse": "20ng", "mr-thinned": "mr"})

# The beginnings of the names of newsgroups. misc.forsale is in no group, and is left out.
_GROUPS = {
    "computers": ("comp.",),
    "recreation": ("rec.",),
    "science": ("sci.",),
    "politics": ("talk.politics.",),
    "religion": ("alt.atheism", "soc.religion.christian", "talk.religion.misc"),
}
_RARE, _ONE_OF = "0", 9  # of the negative reviews of MR, one of nine is kept: a tenth of all reviews


def derived(name: str, dataset: Dataset) -> Dataset:
    """Return the set of this name, made of its source."""
    if name == "20ng-coarse":
        labels = np.array([_group(label) for label in dataset.labels.tolist()])
        return _kept(name, dataset, labels, labels != "")
    kept = np.ones(len(dataset.labels), bool)
    for part in (dataset.train, dataset.test):
        rare = part[dataset.labels[part] == _RARE]
        kept[np.delete(rare, np.s_[::_ONE_OF])] = False
    return _kept(name, dataset, dataset.labels, kept)


def _kept(name: str, dataset: Dataset, labels: np.ndarray, kept: np.ndarray) -> Dataset:
    """Return some of the documents, with other labels."""
    assert dataset.texts is not None
    rows = np.flatnonzero(kept)
    train, test = (np.flatnonzero(np.isin(rows, part)) for part in (dataset.train, dataset.test))
    return Dataset(name, tuple(dataset.texts[i] for i in rows), None, labels[rows], train, test)


def _group(name: str) -> str:
    return next((group for group, starts in _GROUPS.items() if name.startswith(starts)), "")
