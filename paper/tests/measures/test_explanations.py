"""Sums of explanations, and the words that decide."""

import dataclasses

import numpy as np
import pytest

from wgcn_paper.datasets import Dataset
from wgcn_paper.measures import explanations
from wgcn_paper.measures.explanations import Explanations
from wgcn_paper.measures.measure import full_fit


def test_sums_are_exact_and_decisive_words_decide(made: Dataset) -> None:
    found = Explanations({"texts": 80}).measure(made)
    assert found["exact"] == 1
    assert found["decisive"] > 0.9
    assert found["deleted"] == 80
    assert found["drop"] > found["drop_random"]
    assert [set(each) for each in found["examples"]] == [{"label", "score", "bias", "terms"}] * 2
    assert Explanations({"texts": 80}, seed=1).measure(made)["examples"] == []


def test_a_sum_that_is_off_by_the_last_bit_is_noticed(made: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    model = full_fit(made)
    own = model.explain

    def changed(texts: list[str]) -> list[object]:
        found = own(texts)
        bias = np.nextafter(found[0].bias, np.inf, dtype=found[0].bias.dtype)
        return [dataclasses.replace(found[0], bias=bias + bias.dtype.type(1e-5)), *found[1:]]

    monkeypatch.setattr(model, "explain", changed)
    monkeypatch.setattr(explanations, "full_fit", lambda dataset: model)
    assert Explanations({"texts": 40}).measure(made)["exact"] == 39 / 40
