"""Parts of reports: means, tests, Markdown tables, and the paragraph on how the figures were made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, stdev
from typing import TYPE_CHECKING, NamedTuple

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.table import Row, Table
from wgcn_paper.methods.baseline import method_class
from wgcn_paper.protocol import Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "NOTHING",
    "Groups",
    "Score",
    "by_dataset",
    "comparison",
    "differences",
    "draw_scores",
    "gain",
    "group",
    "markdown_table",
    "metric",
    "of_row",
    "p_text",
    "p_value",
    "provenance",
    "ratio",
    "score",
    "scores_of",
    "shown",
    "t_test",
    "target",
]

Groups = Mapping[tuple[str, str, str], Sequence[Run]]
Published = Mapping[str, Mapping[str, tuple[float, float | None]]]


NOTHING = "\u2013"  # in a table, where there is no figure


class Score(NamedTuple):
    """Accuracies in percent, or another measure."""

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
    return _score(100 * run.accuracy for run in _by_seed(runs))


def metric(runs: Iterable[Run], name: str, scale: float = 100.0) -> Score | None:
    """Return what else runs measured, in percent unless there is another scale; None if no run has it."""
    return _score(scale * run.metrics[name] for run in _by_seed(runs) if name in run.metrics)


def ratio(runs: Iterable[Run], names: Sequence[str], to: str) -> Score | None:
    """Return the sum of some metrics of a run, divided by another."""
    return _score(sum(run.metrics[name] for name in names) / run.metrics[to] for run in _by_seed(runs))


def _by_seed(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: run.cell.seed)


def _score(found: Iterable[float]) -> Score | None:
    values = tuple(found)
    if not values:
        return None
    return Score(mean(values), stdev(values) if len(values) > 1 else None, values)


def group(runs: Iterable[Run]) -> dict[tuple[str, str, str], list[Run]]:
    """Sort runs by (protocol, variant, data set)."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.cell.protocol, run.cell.variant, run.cell.dataset), []).append(run)
    return groups


def by_dataset(table: Table, runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Return the runs of each data set that has some, in the order of the table."""
    groups: dict[str, list[Run]] = {name: [] for name in table.datasets}
    for run in runs:
        groups[run.cell.dataset].append(run)
    return {name: _by_seed(found) for name, found in groups.items() if found}


def of_row(runs: Iterable[Run], row: str) -> list[Run]:
    """Return the runs of a row of a table."""
    return [run for run in runs if run.cell.variant == row]


def scores_of(table: Table, groups: Groups, protocol: str) -> dict[str, dict[str, Score]]:
    """Return the scores of all rows that have some, by row and data set."""
    scores = {}
    for row in table.rows:
        found = {dataset: score(groups.get((protocol, row.name, dataset), ())) for dataset in table.datasets}
        measured = {dataset: each for dataset, each in found.items() if each is not None}
        if measured:
            scores[row.name] = measured
    return scores


def comparison(table: Table, scores: Mapping[str, Mapping[str, Score]], published: Published, digits: int) -> str:
    """Return a table of all rows, each below its published figures."""
    rows: list[list[str]] = []
    shown = set()
    for row in table.rows:
        if row.name not in scores:
            continue
        if row.published in published and row.published not in shown:
            shown.add(row.published)
            rows.append(_published(row.published, published, table.datasets, digits))
        rows.append(_beside(row, scores[row.name], published, table))
    return markdown_table(["", *(TITLES[dataset] for dataset in table.datasets)], rows)


def _beside(row: Row, scores: Mapping[str, Score], published: Published, table: Table) -> list[str]:
    """Return a row of measured figures, each with its difference from the published one and its number of seeds."""
    wanted = table.seeds if method_class(row.method).seeded else 1
    cells = [row.name]
    for dataset in table.datasets:
        found = scores.get(dataset)
        paper = published.get(row.published, {}).get(dataset, (None,))[0]
        cells.append(NOTHING if found is None else found.beside(paper) + found.counted(wanted))
    return cells


def _published(name: str, published: Published, datasets: Sequence[str], digits: int) -> list[str]:
    """Return a row of published figures."""
    cells = [f"published: {name}"]
    for dataset in datasets:
        mean, sd = published[name].get(dataset, (None, None))
        spread = "" if sd is None else f" ± {sd:.{digits}f}"
        cells.append(NOTHING if mean is None else f"{mean:.{digits}f}{spread}")
    return cells


def t_test(ours: Score | None, theirs: Score | None) -> str:
    """Return the difference of two scores and its p-value."""
    p = p_value(ours, theirs) if ours and theirs else None
    if p is None or ours is None or theirs is None:
        return NOTHING
    return f"{ours.mean - theirs.mean:+.2f} ({p_text(p)})"


def differences(ours: Iterable[Run], theirs: Iterable[Run]) -> list[float]:
    """Return the differences in points of accuracy, one for each seed that both have."""
    known = {run.cell.seed: run.accuracy for run in theirs}
    return [100 * (run.accuracy - known[run.cell.seed]) for run in ours if run.cell.seed in known]


def gain(ours: Iterable[Run], theirs: Iterable[Run]) -> str:
    """Return the mean difference over the seeds that both have, and its p-value."""
    from scipy.stats import ttest_1samp

    points = differences(ours, theirs)
    if not points:
        return NOTHING
    if max(points) - min(points) < 1e-9:  # one draw, or nothing varies, but for rounding
        return f"{mean(points):+.2f}"
    return f"{mean(points):+.2f} ({p_text(float(ttest_1samp(points, 0).pvalue))})"


def p_text(p: float) -> str:
    """Return a p-value as a report shows it."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def p_value(ours: Score, theirs: Score) -> float | None:
    """Return the two-sided p-value of Student's t-test between two sets of runs.

    Welch's form, without the assumption of equal variances; against a method without a seed, the one-sample test. None
    where neither varies.
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


def shown(found: Score | None) -> str:
    """Return a score as a cell of a table."""
    return NOTHING if found is None else str(found)


def target(aim: str, measured: str, met: bool) -> str:
    """Return a line on a target of the project: what was measured, and whether it is met."""
    return f"Target: {aim}. Measured: {measured}, {'met' if met else 'NOT met'}.\n"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def provenance(command: str, runs: Sequence[Run]) -> str:
    """Return the paragraph on how the figures were made: command, machine, date, seeds, protocol."""
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
