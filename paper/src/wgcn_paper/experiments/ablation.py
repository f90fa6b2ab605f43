"""The ablation of the default model: one hyper-parameter changed at a time; not a table of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.comparisons import Comparison, compare, comparison_rows
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import NOTHING, group, markdown_table, scores_of
from wgcn_paper.experiments.table import Table

_RETIRED = "\u2020"  # marks rows whose hyper-parameter the library no longer has


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return one table per protocol: the accuracies of the first row, and the differences of all others from it."""
    groups = group(runs)
    retired = {row.name for row in table.rows if row.retired}
    marked = False
    parts = []
    for protocol in table.protocols:
        scores = scores_of(table, groups, protocol)
        first = table.rows[0].name
        if first not in scores:
            continue
        default = [first, *(str(scores[first].get(dataset, NOTHING)) for dataset in table.datasets)]
        changes = {}
        for name in scores:
            pairs = [[groups.get((protocol, row, dataset), ()) for row in (name, first)] for dataset in table.datasets]
            if name != first:
                shown = f"{name} {_RETIRED}" if name in retired else name
                marked = marked or name in retired
                changes[shown] = [_difference(*pair) for pair in pairs]
        legend, rows = comparison_rows(changes)
        header = ["", *(TITLES[dataset] for dataset in table.datasets)]
        note = f"{legend}\n\n" if rows else ""
        parts.append(f"### Protocol: {protocol}\n\n{note}{markdown_table(header, [default, *rows])}")
    if marked:
        parts.append(f"{_RETIRED} removed from the library in 0.2.0; runs kept\n")
    if parts:
        parts.insert(
            0,
            "Accuracy in percent of the default, and how much a change of one part of it adds or takes away.\n",
        )
    return "\n".join(parts)


def _difference(changed: Sequence[Run], default: Sequence[Run]) -> Comparison | None:
    """Compare runs with the same seeds; a change with fewer of them than the default is no figure."""
    same = {run.cell.seed for run in changed} == {run.cell.seed for run in default}
    return compare(changed, default) if same else None
