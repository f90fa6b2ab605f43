import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wgcn.base.errors import InputError
from wgcn.labels.reading import labelled_accuracy, read_class_prior, read_labels, read_some_labels, relabelled


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
    assert np.array_equal(labels.targets.toarray().sum(axis=1), np.ones(sum(labelled)))


MISSING = {
    "None": None,
    "NaN": float("nan"),
    "float16": np.float16("nan"),
    "float32": np.float32("nan"),
    "float64": np.float64("nan"),
    "NaT": pd.NaT,
    "numpy NaT": np.datetime64("NaT"),
    "NA": pd.NA,
    "empty": "",
    "blank": " \t\n",
}
CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "array": lambda y: np.array(y, object),
    "series": lambda y: pd.Series(y, dtype=object),
    "frame": lambda y: pd.DataFrame({"label": pd.Series(y, dtype=object)})["label"],
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
@pytest.mark.parametrize("missing", [*MISSING.values(), -1, np.int64(-1)], ids=[*MISSING, "-1", "int64"])
@pytest.mark.parametrize("names", [["a", "b"], [3, 4]])
def test_a_missing_value_marks_a_document_without_a_label(
    names: list[Any], missing: object, container: Callable[[list[Any]], Any]
) -> None:
    labels = read_labels(container([names[0], missing, names[1], names[0], missing]))
    assert labels.classes.tolist() == names
    assert labels.classes.dtype.kind == ("U" if names[0] == "a" else "i")
    assert labels.labelled.tolist() == [True, False, True, True, False]


@pytest.mark.parametrize("kind", [None, "string", "category", object])
def test_pandas_strings_with_missing_values(kind: Any) -> None:
    for given in (pd.Series, pd.array):
        labels = read_labels(given(["a", None, "nan"], dtype=kind))
        assert labels.classes.tolist() == ["a", "nan"]
        assert labels.labelled.tolist() == [True, False, True]


@pytest.mark.parametrize(
    "y",
    [
        pd.Series([1, None, 2]),
        pd.Series([1, None, 2], dtype="Int64"),
        pd.Series([1, None, 2], dtype="category"),
        pd.array([1, None, 2]),
        pd.Categorical([1, None, 2]),
        np.array([1, np.nan, 2], np.float16),
        np.array([1, np.nan, 2], np.float32),
        np.array([1, -1, 2], np.float64),
        np.ma.masked_array([1, 7, 2], [False, True, False]),
    ],
    ids=lambda y: f"{type(y).__name__} {y.dtype}",
)
def test_whole_numbers_beside_an_unlabelled_document_are_integers(y: Any) -> None:
    labels = read_labels(y)
    assert labels.classes.tolist() == [1, 2]
    assert labels.classes.dtype.kind == "i"
    assert labels.labelled.tolist() == [True, False, True]


def test_floats_without_a_missing_value_stay_floats() -> None:
    assert read_labels(np.array([1.0, 2.0])).classes.dtype == float


@pytest.mark.parametrize("missing", MISSING.values(), ids=MISSING)
def test_minus_one_and_one_are_classes_beside_a_missing_value(missing: object) -> None:
    labels = read_labels([-1, 1, -1, 1, missing])
    assert labels.classes.tolist() == [-1, 1]
    assert labels.labelled.tolist() == [True, True, True, True, False]
    # With a third class, both -1 and the missing value mark documents without a label.
    assert read_labels([-1, 1, 0, missing]).labelled.tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    "container", [np.array, pd.Categorical, pd.Series, lambda y: pd.array(y, dtype="string"), lambda y: [y[:3], [y[3]]]]
)
def test_blank_strings_are_no_class_in_typed_containers(container: Callable[[list[Any]], Any]) -> None:
    labels = read_labels(container(["a", "b", "a", ""]))
    assert labels.classes.tolist() == ["a", "b"]
    assert labels.labelled.tolist()[-1] is False
    assert labelled_accuracy(["a", "", " "], np.array(["a", "b", "b"]), labels.classes) == 1


@pytest.mark.parametrize("name", ["a\0", "\0a", "a\x07", "a\x1b[2J"])
@pytest.mark.parametrize("container", [list, lambda y: np.array(y, object), pd.Series, pd.Categorical])
def test_labels_with_control_characters_are_refused_before_they_are_merged(
    name: str, container: Callable[[list[Any]], Any]
) -> None:
    classes = np.array(["a", "b"])
    message = re.escape(f"The label {name!r} has a control character")
    for read in (read_labels, partial(labelled_accuracy, predicted=np.array(["a", "a", "b"]), classes=classes)):
        with pytest.raises(InputError, match=message):
            read(container(["a", name, "b"]))  # type: ignore[operator]
    with pytest.raises(InputError, match=message):
        read_labels([["a"], ["a", name], ["b"]])
    with pytest.raises(InputError, match=message):
        read_labels(["a", "b"], (name,))
    with pytest.raises(InputError, match=r"see .a"):
        read_class_prior({"a": 1, "b": 1, f"a{name}": 1}, read_labels(["a", "b"]))


@pytest.mark.parametrize("name", ["", " \n"])
def test_classes_without_a_label_have_a_name(name: str) -> None:
    with pytest.raises(InputError, match="blank name"):
        read_labels(["a", "b"], (name,))


def test_strings_that_look_like_a_mark_are_classes() -> None:
    assert read_labels(["-1", "nan", "None", -1]).classes.tolist() == ["-1", "None", "nan"]


@pytest.mark.parametrize("missing", [*MISSING.values(), -1], ids=[*MISSING, "-1"])
@pytest.mark.parametrize("container", [list, pd.Series])
def test_a_missing_value_in_place_of_a_list_of_labels(missing: object, container: Callable[[list[Any]], Any]) -> None:
    labels = read_labels(container([["x", "y"], missing, ["y"], [missing], []]))
    assert labels.classes.tolist() == ["x", "y"]
    assert labels.labelled.tolist() == [True, False, True, False, True]
    assert labels.targets.toarray().tolist() == [[1, 1], [0, 1], [0, 0]]


@pytest.mark.parametrize(
    "y",
    [
        np.array([[1, 0], [np.nan, np.nan], [0, 1]]),
        [[1, 0], [None, None], [0, 1]],
        [[1, 0], None, [0, 1]],
        pd.DataFrame({"a": [1, None, 0], "b": [0, None, 1]}),
        pd.DataFrame({"a": [1, None, 0], "b": [0, None, 1]}, dtype="Int64"),
    ],
    ids=["array", "lists", "None", "frame", "nullable"],
)
def test_a_row_of_missing_values_in_a_matrix(y: object) -> None:
    labels = read_labels(y)
    assert labels.labelled.tolist() == [True, False, True]
    assert labels.targets.toarray().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("y", [[["x", "y"], None, [], ["y"]], [["x", "y"], None, (), {"y"}]])
def test_lists_of_labels(y: object) -> None:
    labels = read_labels(y)
    assert labels.multilabel
    assert labels.classes.tolist() == ["x", "y"]
    assert labels.labelled.tolist() == [True, False, True, True]
    assert labels.targets.toarray().tolist() == [[1, 1], [0, 0], [0, 1]]


@pytest.mark.parametrize("as_list", [False, True])
def test_a_matrix_of_classes(as_list: bool) -> None:
    y = np.array([[1, 0, 1], [-1, -1, -1], [0, 0, 0]])
    labels = read_labels(y.tolist() if as_list else y)
    assert labels.multilabel
    assert labels.labelled.tolist() == [True, False, True]
    assert labels.targets.toarray().tolist() == [[1, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "a"], "one class, 'a'"),
        ([None, None], "No document has a label"),
        ([-1, -1], "No document has a label"),
        ([float("nan"), float("nan")], "No document has a label"),
        ([1, "a", 2], "all strings or all numbers.*1.*'a'"),
        (np.array(["a", 1], object), "all strings or all numbers"),
        ([["a"], [1]], "all strings or all numbers"),
        ([["a", None], ["b"]], r"Document 0 .*\['a', None\]"),
        ([["a", " "], ["b"]], r"Document 0 .* a missing or blank value"),
        (np.array([[1, np.nan], [0, 1]]), "or in none"),
        (np.array([["1", None], ["0", "1"]], object), "holds 0 and 1"),
        ("ab", "a label for each document"),
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


@pytest.mark.parametrize("several", [False, True])
def test_later_labels_replace_earlier_ones(several: bool) -> None:
    def in_form(y: list[str | None]) -> list[Any]:
        return [label if label is None or not several else [label] for label in y]

    labels, more = read_labels(in_form(["a", None, "b", None])), read_some_labels(in_form(["c", "b", None]))
    given, documents = np.array([1, 0, 1, 2, 0]), np.array([3, 0, 0, 2, 4])  # the last label of a document counts
    found = relabelled(labels, more, given, documents, 5, ["z"])
    classes = ["a", "b", "c"] if several else ["b", "c"]
    assert found.classes.tolist() == classes
    assert found.labelled.tolist() == [True, False, True, True, True]
    assert [classes[code] for code in found.targets.codes] == ["b", "b", "b", "c"]
