"""The interval of an accuracy, and why there is none."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgcn import WGCNTextClassifier
from wgcn.base.errors import InputError
from wgcn.trust.accuracy import accuracy_interval, format_accuracy, held_out_accuracy


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
