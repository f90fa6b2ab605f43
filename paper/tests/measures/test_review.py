"""Wrong labels, and who finds them."""

import sys
from types import ModuleType

import numpy as np
import pytest

from wgcn_paper.datasets import Dataset
from wgcn_paper.measures.review import Review, _average_precision, flipped


def test_a_share_of_the_labels_is_flipped_to_another_class() -> None:
    labels = np.array(["a", "b", "c"] * 100)
    changed, wrong = flipped(labels, 0.1, np.random.default_rng(0))
    assert wrong.sum() == 30
    assert ((changed != labels) == wrong).all()
    both = {(old, new) for old, new in zip(labels[wrong], changed[wrong], strict=True)}
    assert len(both) == 6  # every class becomes each of the others


def test_texts_that_are_not_ranked_come_last() -> None:
    wrong = np.array([True, False, True, False])
    assert _average_precision(wrong, np.array([0.9, 0.1, 0.8, -np.inf])) == 1
    assert _average_precision(wrong, np.array([0.9, 0.1, -np.inf, -np.inf])) == pytest.approx((1 + 2 / 4) / 2)


def test_both_find_wrong_labels(made: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    rank = ModuleType("cleanlab.rank")

    def quality(labels: np.ndarray, probabilities: np.ndarray, method: str) -> np.ndarray:
        own = probabilities[np.arange(len(labels)), labels]
        return own if method == "self_confidence" else own - np.sort(probabilities, axis=1)[:, -1]

    rank.get_label_quality_scores = quality  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cleanlab", ModuleType("cleanlab"))
    monkeypatch.setitem(sys.modules, "cleanlab.rank", rank)
    found = Review(seed=1).measure(made)
    assert min(found[name] for name in ("wgcn", "cleanlab_confidence", "cleanlab_margin", "accuracy")) > 0.7
    assert {f"{name}_{kind}" for name in ("fit", "review", "cleanlab") for kind in ("cpu", "wall")} < set(found)
    assert found["review_cpu"] < found["fit_cpu"]
