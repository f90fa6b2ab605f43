"""20ng-coarse: the newsgroups of 20ng in five groups."""

from __future__ import annotations

import numpy as np

from wgcn_paper.datasets.dataset import Dataset

__all__ = ["COARSE", "COARSE_SOURCE", "coarse_groups"]

COARSE, COARSE_SOURCE = "20ng-coarse", "20ng"
# The beginnings of the names of newsgroups. misc.forsale is in no group, and is left out.
_GROUPS = {
    "computers": ("comp.",),
    "recreation": ("rec.",),
    "science": ("sci.",),
    "politics": ("talk.politics.",),
    "religion": ("alt.atheism", "soc.religion.christian", "talk.religion.misc"),
}


def coarse_groups(dataset: Dataset) -> Dataset:
    """Return the set with the five groups as its classes, without the documents that are in none of them."""
    assert dataset.texts is not None
    labels = np.array([_group(name) for name in dataset.labels.tolist()])
    kept = np.flatnonzero(labels != "")
    train, test = (np.flatnonzero(np.isin(kept, part)) for part in (dataset.train, dataset.test))
    return Dataset(COARSE, tuple(dataset.texts[i] for i in kept), None, labels[kept], train, test)


def _group(name: str) -> str:
    return next((group for group, starts in _GROUPS.items() if name.startswith(starts)), "")
