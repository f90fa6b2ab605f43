"""A data set fits together."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from wgcn.base.errors import InputError
from wgcn_paper.datasets import Dataset


def make(**changes):
    fields = {
        "name": "tiny",
        "texts": ("a", "b", "c"),
        "features": None,
        "labels": np.array(["x", "y", "x"]),
        "train": np.array([0, 1]),
        "test": np.array([2]),
    }
    return Dataset(**{**fields, **changes})


def test_dataset_knows_its_length_and_sorted_classes():
    tiny = make(labels=np.array(["y", "x", "y"]))
    assert len(tiny) == 3
    assert tiny.classes.tolist() == ["x", "y"]


def test_dataset_may_come_as_features():
    assert len(make(texts=None, features=csr_array((3, 5)))) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"texts": None}, "neither texts nor features"),
        ({"texts": ("a", "b")}, "3 labels but 2 texts"),
        ({"names": ("a",)}, "3 labels but 1 names"),
        ({"features": csr_array((4, 5))}, "3 labels but 4 rows of features"),
        ({"document_graph": csr_array((3, 2))}, "2 columns of document_graph"),
        ({"labels": np.array([["x"], ["y"], ["x"]])}, "2 dimensions"),
        ({"train": np.array([0, 3])}, "outside the document indices 0 to 2"),
        ({"train": np.array([-1])}, "outside the document indices"),
        ({"train": np.array([0.0])}, "flat int64"),
        ({"train": np.array([0, 0])}, "more than once"),
        ({"train": np.array([0, 2])}, "both train and test"),
    ],
)
def test_dataset_that_does_not_fit_together_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        make(**changes)
