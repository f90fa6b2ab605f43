"""Adding documents to a model."""

import numpy as np
import pytest

from wgcn import WGCNTextClassifier
from wgcn_paper.datasets import Dataset
from wgcn_paper.measures.update import Update


def test_an_update_predicts_what_a_fit_does(made: Dataset) -> None:
    found = Update(seed=1).measure(made)
    assert found["equal"] > 0.95
    assert found["accuracy"] == pytest.approx(found["accuracy_fit"], abs=0.05)
    assert {f"{name}_{kind}" for name in ("first", "update", "fit") for kind in ("cpu", "wall")} < set(found)


def test_a_tenth_is_added(made: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[int] = []

    def update(self: WGCNTextClassifier, texts: list[str], labels: np.ndarray) -> WGCNTextClassifier:
        added.append(len(texts))
        return self

    monkeypatch.setattr(WGCNTextClassifier, "update", update)
    Update().measure(made)
    assert added[-1] == 24
