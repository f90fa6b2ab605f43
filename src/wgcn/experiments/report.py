"""What reports are made of: means, tests, Markdown tables, and the line that says where figures come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean, stdev
from typing import TYPE_CHECKING, NamedTuple

from wgcn.experiments.cells import Run
from wgcn.protocol import Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["NOTHING", "Score", "draw_scores", "group", "markdown_table", "p_value", "provenance", "score"]


NOTHING = "\u2013"  # in a table, where there is no figure


class Score(NamedTuple):
    """Accuracies in percent."""

    mean: float
    sd: float | None  # None for a single run
    values: tuple[float, ...]

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if self.sd is None else f"{self.mean:.2f} ± {self.sd:.2f}"

    def counted(self, wanted: int) -> str:
        """Return the number of seeds in square brackets, if it is not what was wanted."""
        return "" if len(self.values) >= wanted else f" [{len(self.values)}]"

    def beside(self, published: float | None) -> str:
        """Return mean, standard deviation and the difference from a published figure."""
        return str(self) if published is None else f"{self} ({self.mean - published:+.2f})"


def score(runs: Iterable[Run]) -> Score | None:
    """Return the accuracy of runs that differ in their seeds, or None if there is none."""
    values = tuple(100 * run.accuracy for run in sorted(runs, key=lambda run: run.cell.seed))
    if not values:
        return None
    return Score(mean(values), stdev(values) if len(values) > 1 else None, values)


def group(runs: Iterable[Run]) -> dict[tuple[str, str, str], list[Run]]:
    """Sort runs by (protocol, variant, data set)."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.cell.protocol, run.cell.variant, run.cell.dataset), []).append(run)
    return groups


def p_value(ours: Score, theirs: Score) -> float | None:
    """Return the two-sided p-value of Student's t-test between two sets of runs.

    Welch's form, which takes no equal variances for granted; against a method that no seed changes, the test of one
    sample. None where neither varies.
    """
    from scipy.stats import ttest_1samp, ttest_ind

    if not ours.sd and not theirs.sd:
        return None
    if not ours.sd or not theirs.sd:
        varied, fixed = (ours, theirs) if ours.sd else (theirs, ours)
        return float(ttest_1samp(varied.values, fixed.mean).pvalue)
    return float(ttest_ind(ours.values, theirs.values, equal_var=False).pvalue)


def draw_scores(axis: Axes, points: Sequence[tuple[float, Score]], label: str, marker: str) -> None:
    """Draw scores against a number, with their standard deviations."""
    axis.errorbar(
        [x for x, _ in points],
        [found.mean for _, found in points],
        [found.sd or 0 for _, found in points],
        marker=marker,
        markersize=4,
        capsize=2,
        label=label,
    )


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, with the best of nothing marked: that is for the reader to see."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def provenance(command: str, runs: Sequence[Run]) -> str:
    """Return the paragraph that says how the figures were made: command, machine, date, seeds, protocol."""
    if not runs:
        return f"Made by `{command}`. Nothing has been run yet.\n"
    machines = sorted({run.environment.get("machine", "unknown") for run in runs})
    dates = sorted({run.date for run in runs})
    seeds = sorted({run.cell.seed for run in runs})
    protocols = sorted({Protocol.parse(run.cell.protocol).name for run in runs})
    return (
        f"Made by `{command}`: {len(runs):,} runs, {dates[0]}{f' to {dates[-1]}' if len(dates) > 1 else ''}, "
        f"seeds {seeds[0]} to {seeds[-1]}, protocol {' and '.join(protocols)}. Machine: {'; '.join(machines)}.\n"
    )
