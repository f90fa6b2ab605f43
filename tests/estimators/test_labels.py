import numpy as np
import pytest

from wgcn.errors import InputError
from wgcn.estimators.labels import read_class_prior, read_labels


@pytest.mark.parametrize(
    ("y", "classes", "labelled"),
    [
        ([0, 1, -1, 1], [0, 1], [True, True, False, True]),
        (["a", None, "b"], ["a", "b"], [True, False, True]),
        (np.array(["b", "a"]), ["a", "b"], [True, True]),
        ([-1, 1, 1], [-1, 1], [True, True, True]),
        ([True, False], [False, True], [True, True]),
    ],
)
def test_single_labels(y: object, classes: list[object], labelled: list[bool]) -> None:
    labels = read_labels(y)
    assert labels.classes.tolist() == classes
    assert labels.labelled.tolist() == labelled
    assert not labels.multilabel
    assert np.array_equal(labels.targets.sum(axis=1), np.ones(sum(labelled)))


@pytest.mark.parametrize("y", [[["x", "y"], None, [], ["y"]], [["x", "y"], None, (), {"y"}]])
def test_lists_of_labels(y: object) -> None:
    labels = read_labels(y)
    assert labels.multilabel
    assert labels.classes.tolist() == ["x", "y"]
    assert labels.labelled.tolist() == [True, False, True, True]
    assert labels.targets.tolist() == [[1, 1], [0, 0], [0, 1]]


@pytest.mark.parametrize("as_list", [False, True])
def test_a_matrix_of_classes(as_list: bool) -> None:
    y = np.array([[1, 0, 1], [-1, -1, -1], [0, 0, 0]])
    labels = read_labels(y.tolist() if as_list else y)
    assert labels.multilabel
    assert labels.labelled.tolist() == [True, False, True]
    assert labels.targets.tolist() == [[1, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "a"], "one class, 'a'"),
        ([None, None], "No document has a label"),
        ([-1, -1], "No document has a label"),
        ([0.0, float("nan")], "NaN"),
        ([["a"], "b"], "some a single label"),
        ([["a"], ["a"]], "only one class"),
        ([[1, 2], [0, 1]], None),
        (np.array([[1, 2], [0, 1]]), "holds 0 and 1"),
        (np.array([[1, -1], [0, 1]]), "or in none"),
    ],
)
def test_unusable_labels_are_explained(y: object, message: str | None) -> None:
    if message is None:  # lists of numbers that are no matrix are lists of labels
        assert read_labels(y).classes.tolist() == [0, 1, 2]
        return
    with pytest.raises(InputError, match=message):
        read_labels(y)


def test_shares_of_classes_are_in_their_order_and_sum_to_one() -> None:
    labels = read_labels(["b", "a", "c"])
    assert read_class_prior(None, labels) is None
    np.testing.assert_allclose(read_class_prior("uniform", labels), [1 / 3] * 3)
    np.testing.assert_allclose(read_class_prior({"c": 6, "a": 1, "b": 3}, labels), [0.1, 0.3, 0.6])
    np.testing.assert_allclose(read_class_prior({0: 1, 1: 3}, read_labels([0, 1])), [0.25, 0.75])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("balanced", "'uniform', or a dict.*'balanced'"),
        ([0.5, 0.5], "a dict with a share for each class"),
        ({"a": 1}, "see 'b'"),
        ({"a": 1, "b": 1, "c": 1}, "see 'c'"),
        ({"a": 0, "b": 1}, "above 0"),
        ({"a": float("nan"), "b": 1}, "above 0"),
        ({"a": "many", "b": 1}, "must be numbers"),
    ],
)
def test_unusable_shares_are_explained(given: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_class_prior(given, read_labels(["a", "b"]))


def test_several_classes_a_document_have_no_shares() -> None:
    with pytest.raises(InputError, match="one class each"):
        read_class_prior("uniform", read_labels([["a", "b"], ["a"]]))
