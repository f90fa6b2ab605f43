"""Figures of an evaluation."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from wgcn.base.errors import InputError
from wgcn.trust.accuracy import evaluation, known_only, label_targets


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
