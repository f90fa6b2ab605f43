"""Learning curves by who chooses the texts to label: ours, not the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from statistics import mean

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.comparisons import comparison_table, paired
from wgcn_paper.experiments.pictures import label_counts, panels
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import (
    by_dataset,
    draw_scores,
    is_off_lock,
    markdown_table,
    metric,
    of_row,
    shown,
    target,
)
from wgcn_paper.experiments.table import Table

_FEW, _MANY = "100", "200"  # labels: this many suggested ones are to reach what this many random ones do
_MIN_SETS = 4


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return one table per data set, and how 100 suggested labels stand to 200 random ones."""
    found = by_dataset(table, runs)
    if not found:
        return ""
    parts = ["Test accuracy in percent against the number of labels; mean ± standard deviation over draws.\n"]
    for name, of in found.items():
        rows = []
        for row in table.rows:
            curve = [metric(of_row(of, row.name), size) for size in _sizes(runs)]
            if any(curve):
                rows.append([row.name, *map(shown, curve)])
        parts.append(f"**{TITLES[name]}**\n\n" + markdown_table(["labels", *_sizes(runs)], rows))
    suggested, random, *_ = (row.name for row in table.rows)
    both = {name: [of_row(of, row) for row in (suggested, random)] for name, of in found.items()}
    halves = {name: _gains(*pair) for name, pair in both.items()}
    compared = [
        paired(points, off_lock=is_off_lock(chain(*both[name]))) if points else None for name, points in halves.items()
    ]
    reached = [name for name, points in halves.items() if points and mean(points) >= 0]
    parts += [
        f"{_FEW} suggested labels beside {_MANY} random ones, both with WGCN.\n",
        comparison_table([TITLES[n] for n in found], {f"{_FEW} suggested \u2212 {_MANY} random": compared}),
        target(
            f"{_FEW} suggested labels reach what {_MANY} random ones do, on at least {_MIN_SETS} of {len(found)} sets",
            f"on {len(reached)}" + (f" ({', '.join(TITLES[name] for name in reached)})" if reached else ""),
            len(reached) >= _MIN_SETS,
        ),
        f"![Accuracy against the number of labels]({table.name}.png)\n",
    ]
    return "\n".join(part for part in parts if part)


def _sizes(runs: Sequence[Run]) -> list[str]:
    return sorted({size for run in runs for size in run.metrics if size.isdigit()}, key=int)


def _gains(suggested: Sequence[Run], random: Sequence[Run]) -> list[float]:
    """Return the differences in points, one for each draw that both have."""
    known = {run.cell.seed: run.metrics.get(_MANY) for run in random}
    pairs = [(run.metrics.get(_FEW), known.get(run.cell.seed)) for run in suggested]
    return [100 * (few - many) for few, many in pairs if few is not None and many is not None]


def draw(table: Table, runs: Sequence[Run], paths: Sequence[Path]) -> None:
    """Draw one panel per data set, with one line per way to choose."""
    found = by_dataset(table, runs)
    with panels(paths, (3.1 * len(found) + 0.6, 3.6), len(found)) as axes:
        for axis, (name, of) in zip(axes, found.items(), strict=True):
            for row, marker in zip(table.rows, "osv^D", strict=False):
                curve = [(int(size), metric(of_row(of, row.name), size)) for size in _sizes(runs)]
                points = [(size, reached) for size, reached in curve if reached is not None]
                if points:
                    draw_scores(axis, points, row.name, marker)
            label_counts(axis, [10, 20, 50, 100, 200, 500], TITLES[name])
        axes[0].set_ylabel("test accuracy (%)")
        axes[-1].legend(loc="lower right", fontsize=7)
