from pathlib import Path

import numpy as np
import pytest

from wgcn import WGCNTextClassifier
from wgcn.active.curve import CurvePoint, curve_lines, default_sizes, extrapolate, learning_curve
from wgcn.base.errors import InputError
from wgcn.labels.reading import read_labels


def test_sets_of_labels_grow_and_never_have_held_out_texts() -> None:
    labels = read_labels(["a", "b", None, "a"] * 20)  # 60 labels
    calls: list[tuple[set[int], set[int]]] = []

    def judge(known: np.ndarray, held_out: np.ndarray) -> int:
        calls.append((set(known.tolist()), set(held_out.tolist())))
        return len(held_out) // 2

    points = learning_curve(labels, judge, sizes=[30, 5, 10])
    assert [point.n_labels for point in points] == [5, 10, 30]
    assert {point.n_texts for point in points} == {60}
    assert points[0].accuracy == 0.5
    assert len(calls) == 15
    for start in range(0, 15, 3):
        small, middle, large = (known for known, _ in calls[start : start + 3])
        held_out = calls[start][1]
        assert small < middle < large
        assert not large & held_out
        assert not any(i % 4 == 2 for i in large | held_out)  # unlabelled


def test_the_smallest_set_has_two_classes() -> None:
    labels = read_labels(["a"] * 95 + ["b"] * 5)
    codes = labels.targets.codes
    seen = []
    learning_curve(labels, lambda known, held_out: seen.append(set(codes[known])) or 0, sizes=[2])
    assert all(classes == {0, 1} for classes in seen)


def test_where_labels_are_many_not_every_fold_is_held_out() -> None:
    labels, calls = read_labels(["a", "b"] * 2000), []
    points = learning_curve(labels, lambda known, held_out: calls.append(1) or len(held_out), sizes=[10])
    assert len(calls) == 2
    assert points[0].n_texts == 1600
    assert points[0].interval[0] > 0.99


@pytest.mark.parametrize(("most", "sizes"), [(8, [8]), (80, [10, 20, 40, 80]), (800, [25, 50, 100, 200, 400, 800])])
def test_sizes_are_halves_of_each_other(most: int, sizes: list[int]) -> None:
    assert default_sizes(most) == sizes


@pytest.mark.parametrize("sizes", [[1], [10, 81], []])
def test_sizes_that_cannot_be_are_an_error(sizes: list[int]) -> None:
    with pytest.raises(InputError, match="between 2 and 80"):
        learning_curve(read_labels(["a", "b"] * 50), lambda known, held_out: 0, sizes)


def test_one_text_per_class_is_too_few() -> None:
    with pytest.raises(InputError, match="at least two labelled texts"):
        learning_curve(read_labels(["a", "b", None]), lambda known, held_out: 0)


def test_a_power_law_is_extrapolated_and_never_falls() -> None:
    n = 10**9
    points = [CurvePoint(size, n - round(0.8 * size**-0.5 * n), n) for size in (10, 20, 40, 80)]
    assert extrapolate(points, 320) == pytest.approx(1 - 0.8 * 320**-0.5, abs=1e-6)
    worse = [CurvePoint(size, right, 100) for size, right in ((10, 80), (20, 70), (40, 60))]
    assert extrapolate(worse, 1000) == pytest.approx(extrapolate(worse, 10))
    assert extrapolate(points[:2], 100) is None


def test_lines_have_the_interval_and_call_an_extrapolation_by_its_name() -> None:
    points = [CurvePoint(10, 50, 100), CurvePoint(20, 60, 100), CurvePoint(40, 70, 100)]
    lines = curve_lines(points, 50)
    assert lines[1].split() == ["10", "50.0%", "40.4", "to", "59.6", "100"]
    assert lines[-1].startswith("Extrapolated")
    assert len(curve_lines(points[:2], 50)) == 3


def test_a_model_learns_more_from_more_labels(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    words = {name: [f"{name}{i}" for i in range(12)] for name in "ab"}
    topics = ["a", "b"] * 30
    texts = [" ".join([*random.choice(words[topic], 2), *random.choice(["the", "of", "in"], 3)]) for topic in topics]
    model = WGCNTextClassifier()
    small, large = model.learning_curve(texts, [*topics[:50], *[None] * 10], sizes=[2, 40])
    assert small.n_texts == large.n_texts == 50
    assert large.accuracy > small.accuracy
    assert not hasattr(model, "model_")


def test_a_curve_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from wgcn.plots import plot_curve

    points = [CurvePoint(10, 50, 100), CurvePoint(20, 60, 100), CurvePoint(40, 70, 100)]
    plot_curve(points, 50, tmp_path / "three.svg")
    plot_curve(points[:2], 50, tmp_path / "two.svg")
    assert "extrapolation" in (tmp_path / "three.svg").read_text()
    assert "extrapolation" not in (tmp_path / "two.svg").read_text()
