"""What is measured of a model that may not know."""

import numpy as np
import pytest

from wgcn_paper.datasets import Dataset
from wgcn_paper.measures import abstain
from wgcn_paper.measures.abstain import Abstain


@pytest.fixture
def other(made: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of other words are those of the other set."""
    texts = tuple(f"strange{i % 9} words{i % 7} of{i % 5} another kind" for i in range(60))
    foreign = Dataset("mr", texts, None, np.array(["x"] * 60), np.arange(30), np.arange(30, 60))
    monkeypatch.setattr(abstain, "load_data", lambda name, held_out: foreign)


@pytest.mark.usefixtures("other")
@pytest.mark.parametrize("method", ["wgcn", "logistic"])
def test_certain_answers_are_better_and_other_texts_are_told_apart(method: str, made: Dataset) -> None:
    found = Abstain({"method": method, "others": ["r8", "mr"]}).measure(made)
    assert found["at 100"] == pytest.approx(found["accuracy"])
    assert found["at 50"] >= found["at 100"]
    assert 0 <= found["area"] <= 1 - found["at 100"] + 1e-9
    assert not [name for name in found if name.endswith(" r8")]
    assert found["auroc-probability mr"] > 0.8
    assert ("auroc mr" in found) == ("covered" in found) == (method == "wgcn")
    if method == "wgcn":
        assert found["auroc mr"] > 0.9
        assert found["covered"] > 0.7
        assert 0.7 < found["size"] <= 3


@pytest.mark.usefixtures("other")
def test_a_share_of_the_labels_is_drawn(made: Dataset) -> None:
    few = [Abstain({"method": "logistic", "fraction": 0.05, "others": []}, seed).measure(made) for seed in (0, 1, 0)]
    assert few[0] == few[2] != few[1]
    assert few[0]["accuracy"] < Abstain({"method": "logistic", "others": []}).measure(made)["accuracy"]
