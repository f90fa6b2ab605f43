"""Figures of an evaluation, and their intervals."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from wgcn import WGCNTextClassifier
from wgcn.base.errors import InputError
from wgcn.trust.accuracy import (
    accuracy_interval,
    evaluation,
    format_accuracy,
    held_out_accuracy,
    known_only,
    label_targets,
)


@pytest.mark.parametrize(
    ("n_right", "n", "low", "high"),
    [  # Newcombe (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_is_the_published_one(n_right: int, n: int, low: float, high: float) -> None:
    assert accuracy_interval(n_right, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 10_000), st.data())
def test_the_ends_are_the_shares_from_which_the_accuracy_is_just_1_96_deviations_away(
    n: int, data: st.DataObject
) -> None:
    n_right = data.draw(st.integers(0, n))
    low, high = accuracy_interval(n_right, n)
    assert 0 <= low <= n_right / n <= high <= 1
    assert accuracy_interval(n - n_right, n) == pytest.approx((1 - high, 1 - low))
    for end in {low, high} - {0.0, 1.0}:
        assert abs(n_right / n - end) == pytest.approx(1.959964 * np.sqrt(end * (1 - end) / n), rel=1e-4)


def test_all_or_none_right() -> None:
    assert accuracy_interval(0, 5)[0] == 0
    assert accuracy_interval(5, 5)[1] == 1
    assert "to 100.0" in format_accuracy(1.0, 49)


@pytest.mark.parametrize(("n_right", "n"), [(1, 0), (-1, 5), (6, 5)])
def test_numbers_that_cannot_be(n_right: int, n: int) -> None:
    with pytest.raises(InputError, match="n_right"):
        accuracy_interval(n_right, n)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (["a", "b"], "no class has two labelled documents"),
        (["a", "b", *[None] * 38], "no class has two labelled documents"),
        (["a", "b"] * 20, "40 documents)"),
        (["a", "b"] * 10 + [None] * 20, "20 documents)"),
        (["a", "b"] * 60, "12 documents)"),
    ],
)
def test_the_reason_is_the_one_of_the_training(labels: list[str | None], says: str) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join([f"word{i % 2}", *(f"thing{k}" for k in rng.integers(0, 40, 5))]) for i in range(len(labels))]
    report = WGCNTextClassifier().fit(texts, labels).model_.report
    assert says in held_out_accuracy(report)


def test_reasons_of_other_fits() -> None:
    report: dict[str, Any] = {"n_labelled": 5, "n_documents": 90, "n_edges": 3}
    assert "no class has two" in held_out_accuracy(report)
    assert "early stopping" in held_out_accuracy(report, network=True)
    assert "no labels" in held_out_accuracy(report | {"n_labelled": 0})


def test_labels_that_the_model_does_not_have() -> None:
    found: list[tuple[str, str | list[str] | None]] = [
        ("x", "a"),
        ("y", "q"),
        ("z", None),
        ("w", ["b", "q"]),
        ("v", ["b"]),
    ]
    with pytest.raises(InputError, match=r"1 labels were not in training: 'q' \(2\)"):
        known_only(found, ["a", "b"], skip_unknown=False)
    with pytest.raises(InputError, match="--label-separator"):
        known_only(found, ["a", "b"], False, multilabel=True)
    assert known_only(found, ["a", "b"], skip_unknown=True) == [("x", ["a"]), ("v", ["b"])]
    with pytest.raises(InputError, match="No text"):
        known_only([("y", "q"), ("z", None)], ["a"], skip_unknown=True)


def test_targets() -> None:
    rows = [("x", ["b"]), ("y", ["a"])]
    assert label_targets(rows, ["a", "b"], multilabel=False).tolist() == [1, 0]
    assert label_targets([*rows, ("z", []), ("w", ["b", "a"])], ["a", "b"], True).tolist() == [
        [0, 1],
        [1, 0],
        [0, 0],
        [1, 1],
    ]
    with pytest.raises(InputError, match="one label per text"):
        label_targets([("w", ["b", "a"])], ["a", "b"], multilabel=False)


def test_figures() -> None:
    figures, table = evaluation(np.array([0, 1, 1, 1]), np.array([0, 1, 1, 0]), ["a", "b"])
    assert figures == {
        "texts": "4",
        "accuracy": "75.00% (95% interval 30.1 to 95.4, 4 texts)",
        "macro F1": "73.33%",
    }
    assert table.split()[:4] == ["precision", "recall", "f1-score", "support"]


def test_macro_f1_and_table_are_of_the_classes_that_scikit_learn_counts() -> None:
    names, truth, guess = list("abcd"), np.array([1, 1, 3, 3]), np.array([1, 3, 3, 3])
    figures, table = evaluation(truth, guess, names)
    assert figures["macro F1"] == f"{f1_score(truth, guess, average='macro'):.2%}" == "73.33%"
    assert figures["absent"] == "2 of 4 classes, which no text has or is given"
    assert table.split("macro avg")[1].split()[2] == "0.733"
    assert [line.split()[0] for line in table.splitlines()[2:4]] == ["b", "d"]
    met = [1, 3]
    several = np.eye(4, dtype=np.int64)
    figures, table = evaluation(several[truth], several[guess], names)
    assert figures["macro F1"] == f"{f1_score(several[truth][:, met], several[guess][:, met], average='macro'):.2%}"
    assert table.split("macro avg")[1].split()[2] == "0.733"
    nothing = np.zeros((2, 4), np.int64)
    assert evaluation(nothing, nothing, names)[0]["macro F1"] == "0.00%"
