"""Figures of an evaluation."""

import numpy as np
import pytest

from wgcn.errors import InputError
from wgcn.labelling.evaluation import evaluation, known_only, label_targets


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
