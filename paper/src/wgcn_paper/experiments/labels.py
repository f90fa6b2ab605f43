"""Accuracy against the share of labels, beside a linear support vector machine: ours, not the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.comparisons import Comparison, compare, comparison_table
from wgcn_paper.experiments.pictures import panels
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import NOTHING, Groups, draw_scores, group, markdown_table, score
from wgcn_paper.experiments.table import Table
from wgcn_paper.protocol import Protocol

_REFERENCE = "WGCN, linear"  # the row that the others are compared with


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return one table per data set, and one of the differences between the default and the other rows."""
    groups = group(runs)
    present = _present(table, groups)
    shares = [str(Protocol.parse(protocol)).split(":")[1] for protocol in table.protocols]
    parts = []
    for dataset in present:
        rows = []
        for row in table.rows:
            scores = [score(groups.get((protocol, row.name, dataset), ())) for protocol in table.protocols]
            rows.append([row.name, *(str(found) if found else NOTHING for found in scores)])
        parts.append(f"**{TITLES[dataset]}**\n\n" + markdown_table(["labels", *shares], rows))
    parts.append(comparison_table(shares, _differences(table, groups, present)))
    if present:
        parts.append(f"![Accuracy against the share of labels]({table.name}.png)\n")
    return "\n".join(part for part in parts if part)


def _differences(table: Table, groups: Groups, datasets: Sequence[str]) -> dict[str, list[Comparison | None]]:
    """Compare the default with all other rows, by data set and share of labels."""
    return {
        f"{TITLES[dataset]}: {_REFERENCE} \u2212 {row.name}": [
            compare(*(groups.get((protocol, name, dataset), ()) for name in (_REFERENCE, row.name)))
            for protocol in table.protocols
        ]
        for dataset in datasets
        for row in table.rows
        if row.name != _REFERENCE
    }


def _present(table: Table, groups: Groups) -> list[str]:
    """Return the data sets that have runs."""
    return [name for name in table.datasets if any(dataset == name for _, _, dataset in groups)]


def draw(table: Table, runs: Sequence[Run], paths: Sequence[Path]) -> None:
    """Draw one panel per data set, with one line per method."""
    groups = group(runs)
    present = _present(table, groups)
    with panels(paths, (3.1 * len(present) + 0.6, 3.4), len(present)) as axes:
        for axis, dataset in zip(axes, present, strict=True):
            for row, marker in zip(table.rows, "osv^D", strict=False):
                points = [
                    (100 * (Protocol.parse(protocol).fraction or 1), found)
                    for protocol in table.protocols
                    if (found := score(groups.get((protocol, row.name, dataset), ()))) is not None
                ]
                draw_scores(axis, points, row.name, marker)
            axis.set_xscale("log")
            axis.set_xticks([1, 5, 20, 100], ["1 %", "5 %", "20 %", "100 %"])
            axis.minorticks_off()
            axis.set_title(TITLES[dataset])
            axis.set_xlabel("labels")
            axis.grid(alpha=0.3)
        axes[0].set_ylabel("test accuracy (%)")
        axes[0].legend(loc="lower right", fontsize=8)
