"""The benchmark of networks on a GPU runs where there is none: its self-test, and a whole cell on made-up texts."""

from typing import Any

import numpy as np
import pytest
import torch
from benchmarks import gpu

from wgcn_paper.datasets import Dataset

pytestmark = pytest.mark.usefixtures("one_thread")
CPU = torch.device("cpu")


def test_the_self_test_finds_nothing_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "VARIANTS", gpu.VARIANTS[:1])
    assert gpu.self_test(CPU) == []


def test_a_set_has_one_cell_per_method(monkeypatch: pytest.MonkeyPatch) -> None:
    task = gpu.made_task(60, 40)
    truth = np.array(["one", "two"], object)[np.arange(60) % 2]
    made = Dataset("made", task.texts, None, truth, np.arange(30), np.arange(30, 60))
    small: dict[str, Any] = {"stop_words": False, "min_count": 1, "hidden": 4}
    monkeypatch.setattr(gpu, "load", lambda name: made)
    monkeypatch.setattr(gpu, "settings_of", lambda method, name: small)
    cells = list(gpu.measure_set("made", CPU, quick=True))
    assert [cell["method"] for cell in cells] == ["WGCN", "Text-GCN", "Fast-GCN"]
    for cell in cells:
        assert "error" not in cell
        assert cell["ms_train"] > 0
        assert cell["ms_validated"] > 0
        assert cell["epochs"] == 8
        assert 0 <= cell["accuracy"] <= 1
