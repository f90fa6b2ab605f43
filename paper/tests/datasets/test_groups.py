"""20ng in five groups."""

import numpy as np

from wgcn_paper.datasets import Dataset
from wgcn_paper.datasets.groups import coarse_groups

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
    coarse = coarse_groups(dataset)
    groups = ["computers", "recreation", "religion", "politics", "science", "religion"]
    assert coarse.labels.tolist() == groups * 2
    assert (coarse.train.tolist(), coarse.test.tolist()) == (list(range(6)), list(range(6, 12)))
    assert coarse.texts == tuple(text for text in texts if "forsale" not in text)
