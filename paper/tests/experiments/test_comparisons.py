"""Which test a comparison takes, its p-value and interval, and the correction over a table."""

import base64
from collections.abc import Sequence
from itertools import permutations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from wgcn_paper.experiments.cells import Cell, Run
from wgcn_paper.experiments.comparisons import (
    BY_DOCUMENT,
    MCNEMAR,
    ONE_SAMPLE,
    PAIRED,
    WELCH,
    Comparison,
    against,
    compare,
    comparison_rows,
    comparison_table,
    holm,
    paired,
)
from wgcn_paper.experiments.report import NOTHING, group

Rights = Sequence[Sequence[bool]] | npt.NDArray[np.bool_]


def made(seed: int, accuracy: float, protocol: str = "inductive", variant: str = "", **told: Any) -> Run:
    cell = Cell(told.pop("dataset", "r8"), protocol, "wgcn", {}, seed, variant)
    told = {"n_test": 1000, "environment": {}, "right": None} | told
    return Run(cell, accuracy, told.pop("n_test"), None, None, None, 1.0, 0.1, 9.0, None, None, "cpu", "2026", **told)


def scored(*accuracies: float, protocol: str = "inductive", **told: Any) -> list[Run]:
    """Runs that do not tell which documents they got right."""
    return [made(seed, accuracy, protocol, **told) for seed, accuracy in enumerate(accuracies)]


def told(right: Rights) -> list[Run]:
    """One run per line, which tells which documents it got right."""
    lines = np.array(right, bool)
    packed = [base64.b64encode(np.packbits(line).tobytes()).decode() for line in lines]
    return [
        made(seed, float(line.mean()), right=text, n_test=len(line))
        for seed, (line, text) in enumerate(zip(lines, packed, strict=True))
    ]


def found(ours: Sequence[Run], theirs: Sequence[Run]) -> Comparison:
    comparison = compare(ours, theirs)
    assert comparison is not None
    return comparison


def figures(comparison: Comparison) -> tuple[float, float, float, float]:
    """All of a comparison that was tested."""
    assert comparison.low is not None
    assert comparison.high is not None
    assert comparison.p is not None
    return comparison.difference, comparison.low, comparison.high, comparison.p


def assert_sound(ours: Sequence[Run], theirs: Sequence[Run]) -> None:
    """An interval has the difference in it, and the other way round everything has the other sign."""
    one, other = found(ours, theirs), found(theirs, ours)
    assert one.test == other.test
    assert one.difference == pytest.approx(-other.difference)
    assert (one.p is None) == (one.low is None) == (one.high is None) == (one.test is None)
    if one.p is not None:
        difference, low, high, p = figures(one)
        assert low - 1e-9 <= difference <= high + 1e-9
        assert 0 <= p <= 1
        assert (-high, -low, p) == pytest.approx(figures(other)[1:])


# Draws of labels


ACCURACIES = st.lists(st.integers(0, 50).map(lambda k: k / 50), min_size=1, max_size=6)


@given(ACCURACIES, ACCURACIES, st.sampled_from(["few-label:5%", "unseen:10"]))
def test_draws_are_pairs(ours: list[float], theirs: list[float], protocol: str) -> None:
    mine, other = scored(*ours, protocol=protocol), scored(*theirs, protocol=protocol)
    assert_sound(mine, other)
    n = min(len(ours), len(theirs))
    pairs = 100 * np.array(ours[:n]), 100 * np.array(theirs[:n])
    comparison = found(mine[::-1], other)
    assert comparison.difference == pytest.approx(np.mean(pairs[0] - pairs[1]))
    if np.ptp(pairs[0] - pairs[1]) < 1e-9:
        assert comparison.p is None
        return
    wanted = stats.ttest_rel(*pairs)
    interval = wanted.confidence_interval()
    assert comparison.test == PAIRED
    assert figures(comparison)[1:] == pytest.approx((interval.low, interval.high, wanted.pvalue))


def test_a_pair_that_varies_little_within_draws_that_vary_much_is_told_apart() -> None:
    theirs = [0.5, 0.6, 0.7, 0.8]
    ours = [each + 0.01 + 0.001 * (i % 2) for i, each in enumerate(theirs)]
    drawn = found(scored(*ours, protocol="few-label:1%"), scored(*theirs, protocol="few-label:1%"))
    unpaired = found(scored(*ours), scored(*theirs))
    assert figures(drawn)[3] < 0.001
    assert figures(unpaired)[3] > 0.5


def test_without_a_draw_in_common_nothing_is_compared() -> None:
    ours, theirs = scored(0.8, 0.9, protocol="few-label:1%"), scored(0.7, 0.6, protocol="few-label:1%")
    assert compare(ours[:1], theirs[1:]) is None
    assert compare([], theirs) is compare(ours, []) is None
    # One draw has a difference, and nothing to test it by.
    assert found(ours[:1], theirs) == Comparison(pytest.approx(10))


def test_with_all_labels_few_label_is_not_drawn() -> None:
    assert found(scored(0.8, 0.9, protocol="few-label:100%"), scored(0.7, 0.6, protocol="few-label:100%")).test == WELCH


def test_runs_on_other_sets_or_under_other_protocols_are_not_compared() -> None:
    with pytest.raises(ValueError, match="too many values"):
        compare(scored(0.9), scored(0.9, dataset="mr"))
    with pytest.raises(ValueError, match="too many values"):
        compare(scored(0.9), scored(0.9, protocol="corpus"))


# Documents


DOCUMENTS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=25)


@given(DOCUMENTS)
def test_two_runs_are_compared_by_the_documents_that_one_of_them_gets_right(pairs: list[tuple[bool, bool]]) -> None:
    ours, theirs = told([[own for own, _ in pairs]]), told([[other for _, other in pairs]])
    assert_sound(ours, theirs)
    comparison = found(ours, theirs)
    won, lost = pairs.count((True, False)), pairs.count((False, True))
    n = won + lost
    # By brute force: the outcomes of n coins that are no more probable than this one.
    p = sum(comb(n, k) for k in range(n + 1) if comb(n, k) <= comb(n, won)) / 2**n
    assert comparison.test == MCNEMAR
    assert comparison.p == pytest.approx(p)
    assert comparison.difference == pytest.approx(100 * (won - lost) / len(pairs))


def test_the_interval_of_two_runs_is_that_of_the_mean_difference_with_two_more_documents() -> None:
    ours, theirs = np.array([1] * 60 + [0] * 40, bool), np.array([1] * 45 + [0] * 50 + [1] * 5, bool)
    # Half a document of each kind: two in all, of which one differs, to no one's advantage.
    each = [*(ours.astype(float) - theirs), 0.5**0.5, -(0.5**0.5)]
    half = stats.norm.ppf(0.975) * np.std(each) / len(each) ** 0.5
    _, low, high, _ = figures(found(told([ours]), told([theirs])))
    assert (low, high) == pytest.approx((100 * (np.mean(each) - half), 100 * (np.mean(each) + half)))


def test_runs_that_are_right_on_the_same_documents_do_not_differ_but_the_interval_has_a_width() -> None:
    right = told([[True, False, True] * 10])
    difference, low, high, p = figures(found(right, right))
    assert (difference, p) == (0, 1)
    assert low < 0 < high


@given(st.integers(1, 3), st.integers(1, 3), st.integers(2, 12), st.integers(0, 2**32))
def test_the_test_by_document_is_sound(n_ours: int, n_theirs: int, n: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    assert_sound(told(draw.random((n_ours, n)) < 0.7), told(draw.random((n_theirs, n)) < 0.5))


def test_documents_and_seeds_both_add_to_the_variance() -> None:
    ours = np.array([[1, 1, 1, 0, 1, 1], [1, 1, 0, 0, 1, 1], [1, 1, 1, 1, 1, 1]], bool)
    theirs = np.array([[1, 0, 0, 0, 1, 1], [0, 1, 0, 1, 1, 1]], bool)
    comparison = found(told(ours), told(theirs))
    each = ours.mean(0) - theirs.mean(0)
    parts = [np.var(each, ddof=1) / 6, np.var([5 / 6, 4 / 6, 1], ddof=1) / 3, np.var([3 / 6, 4 / 6], ddof=1) / 2]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 5 + parts[1] ** 2 / 2 + parts[2] ** 2 / 1)
    error = 100 * sum(parts) ** 0.5
    difference, low, high, p = figures(comparison)
    assert comparison.test == BY_DOCUMENT
    assert difference == pytest.approx(100 * (5 / 6 - 3.5 / 6))
    assert (high - low) / 2 == pytest.approx(stats.t.ppf(0.975, freedom) * error)
    assert p == pytest.approx(2 * stats.t.sf(difference / error, freedom))
    # Of a single run, which seed it is adds nothing that is known.
    alone = np.var(ours.mean(0) - theirs[0], ddof=1) / 6 + parts[1]
    _, low, high, _ = figures(found(told(ours), told(theirs[:1])))
    assert high - low > 2 * 1.95 * 100 * alone**0.5


def test_with_runs_that_repeat_themselves_the_test_by_document_is_close_to_mcnemars() -> None:
    draw = np.random.default_rng(0)
    theirs = draw.random(4000) < 0.8
    ours = theirs ^ (draw.random(4000) < np.where(theirs, 0.05, 0.24))
    one = found(told([ours]), told([theirs]))
    several = found(told([ours, ours]), told([theirs, theirs, theirs]))
    assert (one.test, several.test) == (MCNEMAR, BY_DOCUMENT)
    assert 0.005 < figures(one)[3] < 0.5
    assert figures(several) == pytest.approx(figures(one), rel=0.1)


def test_runs_that_are_all_right_leave_nothing_to_test() -> None:
    everything = told([[True] * 8] * 3)
    assert found(everything, told([[True] * 8])) == Comparison(0)


def test_one_run_that_does_not_tell_its_documents_leaves_the_seeds() -> None:
    ours, theirs = told([[1, 1, 0, 1], [1, 1, 1, 1]]), told([[0, 0, 1, 1], [1, 0, 0, 0]])
    assert found(ours, theirs).test == BY_DOCUMENT
    assert found(ours, [theirs[0], made(1, 0.25)]).test == WELCH
    # So do other documents.
    assert found(ours, told([[0, 1, 1], [0, 0, 1]])).test == WELCH


# Seeds


@pytest.mark.filterwarnings("ignore:Precision loss:RuntimeWarning")  # of scipy, where one side does not vary
@given(ACCURACIES, ACCURACIES)
def test_seeds_with_all_labels_are_no_pairs(ours: list[float], theirs: list[float]) -> None:
    mine, other = scored(*ours, protocol="corpus"), scored(*theirs, protocol="corpus")
    assert_sound(mine, other)
    comparison = found(mine, other)
    samples = 100 * np.array(ours), 100 * np.array(theirs)
    if np.ptp(samples[0]) == np.ptp(samples[1]) == 0:
        assert comparison.p is None
    elif min(map(len, samples)) > 1:
        wanted = stats.ttest_ind(*samples, equal_var=False)
        assert comparison.test == WELCH
        assert comparison.p == pytest.approx(wanted.pvalue)
        assert comparison.low == pytest.approx(wanted.confidence_interval().low)
    else:
        varied, fixed = samples if len(samples[1]) == 1 else samples[::-1]
        assert comparison.test == ONE_SAMPLE
        assert comparison.p == pytest.approx(stats.ttest_1samp(varied, fixed[0]).pvalue)


def test_two_single_runs_have_a_difference_alone() -> None:
    assert found(scored(0.9), scored(0.85)) == Comparison(pytest.approx(5))


# A table of comparisons


P_VALUES = st.lists(st.integers(0, 40).map(lambda k: k / 40), max_size=6)


@given(P_VALUES)
def test_holms_correction_is_that_of_its_definition(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    m = len(p_values)
    for p, corrected in zip(p_values, adjusted, strict=True):
        # The level at which the step-down procedure first rejects the hypothesis: it has passed all smaller ones.
        smaller = sorted(each for each in p_values if each <= p)
        assert corrected == pytest.approx(min(max((m - i) * each for i, each in enumerate(smaller)), 1))
        assert p <= corrected <= min(m * p, 1)
    for one, two in permutations(range(m), 2):
        if p_values[one] <= p_values[two]:
            assert adjusted[one] <= adjusted[two]


def test_holms_correction_does_not_depend_on_the_order() -> None:
    for order in permutations([0.01, 0.02, 0.2, 0.6]):
        wanted = {0.01: 0.04, 0.02: 0.06, 0.2: 0.4, 0.6: 0.6}
        assert holm(order) == pytest.approx([wanted[p] for p in order])


def test_p_values_are_corrected_over_all_lines_and_columns() -> None:
    cells = [Comparison(1.0, 0.5, 1.5, p, WELCH) for p in (0.01, 0.02, 0.2)]
    legend, lines = comparison_rows({"a": cells[:2], "b": [None, cells[2]], "c": [None, None]})
    assert lines == [
        ["a", "+1.00 [+0.50, +1.50] (p = 0.030)", "+1.00 [+0.50, +1.50] (p = 0.040)"],
        ["b", NOTHING, "+1.00 [+0.50, +1.50] (p = 0.200)"],
        ["c", NOTHING, NOTHING],
    ]
    assert "over the 3 comparisons of this table" in legend
    assert "Test: Welch's t-test" in legend
    assert "Without p" not in legend


def test_tests_are_marked_where_there_are_several() -> None:
    cells = [
        Comparison(-0.25, -1.0, 0.5, 0.0001, MCNEMAR),
        Comparison(1.0, 0.5, 1.5, 0.9, ONE_SAMPLE, off_lock=True),
        Comparison(2.0, off_lock=True),
    ]
    legend, [line] = comparison_rows({"a": cells}, scope="this page")
    assert line == [
        "a",
        f"-0.25 [-1.00, +0.50] (p < 0.001){MCNEMAR.mark}",
        f"+1.00 [+0.50, +1.50] (p = 0.900){ONE_SAMPLE.mark} ‡",
        "+2.00 ‡",
    ]
    assert "over the 2 comparisons of this page" in legend
    assert f"Tests: {MCNEMAR.mark} exact McNemar test by document, {ONE_SAMPLE.mark} one-sample t-test" in legend
    assert "Without p" in legend


def test_a_table_without_tests_says_so_and_one_without_comparisons_is_none() -> None:
    assert "(p" not in comparison_table(["R8"], {"a": [Comparison(1.0)]})
    assert "No p" in comparison_table(["R8"], {"a": [Comparison(1.0)]})
    assert comparison_table(["R8"], {"a": [None]}) == comparison_table(["R8"], {}) == ""
    assert comparison_table(["R8"], {"a": [paired([1.0, 2.0])], "b": [None]}).endswith(
        "| difference, points | R8 |\n|---|---|\n| a | +1.50 [-4.85, +7.85] (p = 0.205) |\n"
    )


def test_references_are_compared_with_all_other_rows_and_among_themselves_once() -> None:
    runs = [made(seed, 0.8 + 0.01 * seed, variant=name) for name in "abcd" for seed in (0, 1)]
    groups = group(runs)
    compared = against(groups, "inductive", "abcd", ["c", "missing", "a"], ["r8", "mr"])
    assert list(compared) == [f"{ours} \u2212 {theirs}" for ours, theirs in ("ca", "cb", "cd", "ab", "ad")]
    for each, missing in compared.values():
        assert each is not None
        assert missing is None
    assert against(groups, "inductive", "abcd", ["missing"], ["r8"]) == {}


def test_a_run_with_other_packages_marks_the_comparison() -> None:
    off = scored(0.9, environment={"off_lock": "numpy 9.9"})
    assert found(scored(0.8), off).off_lock
    assert found(off, scored(0.8)).off_lock
    assert not found(scored(0.8), scored(0.9, environment={"off_lock": ""})).off_lock
