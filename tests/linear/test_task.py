"""What of an earlier training can be used again."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wgcn.labels.targets import places_in
from wgcn.linear.task import Added, are_few, warm_start


@given(st.lists(st.integers(0, 9), unique=True), st.lists(st.integers(0, 9)))
def test_places(earlier: list[int], now: list[int]) -> None:
    expected = [earlier.index(value) if value in earlier else -1 for value in now]
    assert places_in(np.array(earlier, int), np.array(now, int)).tolist() == expected


@given(st.lists(st.booleans(), max_size=6), st.data())
def test_documents_keep_their_places_when_they_get_labels(before: list[bool], data: st.DataObject) -> None:
    now = data.draw(st.lists(st.booleans(), min_size=len(before), max_size=len(before) + 4))
    added = Added.to(np.array(before, bool), np.array(now, bool), np.arange(2))
    earlier = [i for i, is_labelled in enumerate(before) if is_labelled] + [i for i, b in enumerate(before) if not b]
    order = [i for i, is_labelled in enumerate(now) if is_labelled] + [i for i, b in enumerate(now) if not b]
    assert added.documents.tolist() == [earlier.index(i) if i < len(before) else -1 for i in order]


def test_duals_of_two_classes_become_columns_of_three() -> None:
    dual = np.array([[0.5], [-1.0]])  # of documents 0 and 1, for the second of two classes
    start = warm_start(dual, np.array([1, 5, -1, 0]), np.array([1, -1, 0]))
    assert start.tolist() == [[-1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.5, 0.0, -0.5]]
    assert Added(np.array([1, 0]), np.array([1, 0])).starts([dual], 1, binary=True)[0].tolist() == [[1.0]]


def test_held_out_scores_are_the_newest_of_documents_that_are_still_labelled() -> None:
    rows, scores = np.array([0, 2, 1]), np.arange(6.0).reshape(3, 2)
    added = Added(np.array([2, 0, -1, 3]), np.arange(2), (np.array([2]), np.array([[9.0, 9.0]])))
    found = added.held_out(rows, scores, 3, 1.0)
    assert found is not None
    assert found[0].tolist() == [1, 0, 2]
    assert found[1].tolist() == [[0.0, 1.0], [2.0, 3.0], [9.0, 9.0]]
    fewer = added.held_out(rows, scores, 3, 0.6)
    assert fewer is not None
    assert fewer[0].tolist() == [0, 2]
    assert added._replace(classes=np.array([0, 1, -1])).held_out(rows, scores, 3, 1.0) is None
    assert added._replace(scored=None).held_out(rows[:1], scores[:1], 3, 1.0) is None


def test_few_documents_are_a_small_share_of_many() -> None:
    assert are_few(1000, 10_000)
    assert not are_few(1300, 10_000)
    assert not are_few(1, 100)
