from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from wgcn import WGCNTextClassifier
from wgcn.base.errors import InputError
from wgcn.labels.reading import read_labels
from wgcn.labels.splits import LabelledKFold

TEXTS = [f"{word} thing {i % 3}" for i in range(6) for word in ("wine", "car")]
NAMES = [name for _ in range(6) for name in ("drink", "drive")]

FORMS: dict[str, Any] = {
    "None": ["a", "b", None, "a", "b", "a"],
    "NaN": np.array([0, 1, np.nan, 0, 1, 0]),
    "-1": np.array([0, 1, -1, 0, 1, 0]),
    "-1 among strings": ["a", "b", -1, "a", "b", "a"],
    "-1 and 1 are classes": [-1, 1, 1, -1, 1, -1],
    "pd.NA": pd.Series([0, 1, pd.NA, 0, 1, 0], dtype="Int64", index=list("uvwxyz")),
    "strings of pandas": pd.Series(["a", "b", None, "a", "b", "a"], dtype="string"),
    "categories": pd.Series(["a", "b", None, "a", "b", "a"], dtype="category"),
    "lists": [["a"], ["b", "a"], None, [], ["b"], ["a"]],
    "matrix": np.array([[1, 0], [0, 1], [-1, -1], [1, 1], [0, 0], [1, 0]]),
    "column": np.array([[0], [1], [0], [0], [1], [0]]),
}


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("form", FORMS)
def test_each_labelled_text_is_tested_once_and_unlabelled_ones_are_always_trained_on(form: str) -> None:
    y = FORMS[form]
    labelled = read_labels(y).labelled
    parts = list(LabelledKFold(2).split(list("uvwxyz"), y))
    assert len(parts) == LabelledKFold(2).get_n_splits() == 2
    assert sorted(np.concatenate([test for _, test in parts])) == np.flatnonzero(labelled).tolist()
    for train, test in parts:
        assert sorted([*train, *test]) == list(range(6))
        assert set(np.flatnonzero(~labelled)) <= set(train)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=60), st.integers(2, 4))
def test_folds_are_stratified(y: list[str | None], n_splits: int) -> None:
    splitter = LabelledKFold(n_splits)
    if max((y.count(name) for name in "abc"), default=0) < n_splits:
        with pytest.raises(InputError, match="smaller n_splits"):
            list(splitter.split(y, y))
        return
    folds = [[y[i] for i in test] for _, test in splitter.split(y, y)]
    for name in "abc":
        counts = [fold.count(name) for fold in folds]
        assert max(counts) - min(counts) <= 1


def test_folds_are_shuffled_by_a_seed() -> None:
    y = ["a", "b", None] * 10

    def tests(splitter: LabelledKFold) -> list[list[int]]:
        return [test.tolist() for _, test in splitter.split(None, y)]

    assert tests(LabelledKFold(3)) == tests(LabelledKFold(3))
    assert tests(LabelledKFold(3)) != tests(LabelledKFold(3, random_state=1))
    assert tests(LabelledKFold(2, shuffle=False))[0][:3] == [0, 1, 3]
    assert repr(LabelledKFold(3)) == "LabelledKFold(3, shuffle=True, random_state=0)"


def test_labels_are_needed_and_as_many_as_texts() -> None:
    with pytest.raises(InputError, match="needs y"):
        list(LabelledKFold(2).split(["a", "b"]))
    with pytest.raises(ValueError, match="inconsistent"):
        list(LabelledKFold(2).split(["a"], ["x", "x", "y", "y"]))
    with pytest.raises(InputError, match="smaller n_splits"):
        list(LabelledKFold(2).split(["a", "b"], [None, None]))


@pytest.mark.parametrize("scoring", [None, "accuracy", "f1_macro"])
def test_cross_validation_with_unlabelled_texts(scoring: str | None) -> None:
    texts, y = [*TEXTS, "wine or car", "thing"], [*NAMES, None, None]
    scores = cross_val_score(WGCNTextClassifier(), texts, y, cv=LabelledKFold(3), scoring=scoring)
    assert scores.tolist() == [1.0, 1.0, 1.0]


def test_grid_search_with_unlabelled_texts() -> None:
    texts, y = [*TEXTS, "wine or car"], np.array([*(name == "drive" for name in NAMES), -1], int)
    search = GridSearchCV(clone(WGCNTextClassifier()), {"C": [0.1, 1.0]}, cv=LabelledKFold(2)).fit(texts, y)
    assert search.best_score_ == 1.0
    assert search.best_estimator_.model_.report["n_labelled"] == len(TEXTS)


def test_cross_validation_with_lists_of_labels() -> None:
    y = [[name] for name in NAMES]
    assert cross_val_score(WGCNTextClassifier(), TEXTS, y, cv=LabelledKFold(2)).tolist() == [1.0, 1.0]
