"""20ng in five groups, and MR with a rare class."""

import numpy as np

from wgcn_paper.datasets import Dataset
from wgcn_paper.datasets.derived import derived

NAMES = [
    "comp.graphics",
    "misc.forsale",
    "rec.autos",
    "talk.religion.misc",
    "talk.politics.misc",
    "sci.med",
    "alt.atheism",
]


def test_newsgroups_are_grouped_and_those_for_sale_left_out() -> None:
    texts = tuple(f"{name} {i}" for i in range(2) for name in NAMES)
    dataset = Dataset("20ng", texts, None, np.array(NAMES * 2), np.arange(7), np.arange(7, 14))
    coarse = derived("20ng-coarse", dataset)
    groups = ["computers", "recreation", "religion", "politics", "science", "religion"]
    assert coarse.labels.tolist() == groups * 2
    assert (coarse.train.tolist(), coarse.test.tolist()) == (list(range(6)), list(range(6, 12)))
    assert coarse.texts == tuple(text for text in texts if "forsale" not in text)


def test_a_ninth_of_the_negative_reviews_is_kept_in_both_parts() -> None:
    labels = np.array(["0", "1"] * 90)
    texts = tuple(f"text {i}" for i in range(180))
    thinned = derived("mr-thinned", Dataset("mr", texts, None, labels, np.arange(90), np.arange(90, 180)))
    for part in (thinned.train, thinned.test):
        assert np.unique(thinned.labels[part], return_counts=True)[1].tolist() == [5, 45]
    assert all(
        labels[texts.index(text)] == label for text, label in zip(thinned.texts or (), thinned.labels, strict=True)
    )
