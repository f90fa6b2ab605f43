"""What each part of the default is worth: the same model with one lever changed. Ours, not the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wgcn.experiments.cells import Run
from wgcn.experiments.published import TITLES
from wgcn.experiments.report import NOTHING, Score, group, markdown_table, scores_of
from wgcn.experiments.table import Table

__all__ = ["report"]


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return a table a protocol: the first row as it is, every other as its difference from the first."""
    groups = group(runs)
    parts = []
    for protocol in table.protocols:
        scores = scores_of(table, groups, protocol)
        first = table.rows[0].name
        if first not in scores:
            continue
        rows = [[first, *(str(scores[first].get(dataset, NOTHING)) for dataset in table.datasets)]]
        rows += [
            [name, *(_difference(found.get(dataset), scores[first].get(dataset)) for dataset in table.datasets)]
            for name, found in scores.items()
            if name != first
        ]
        header = ["", *(TITLES[dataset] for dataset in table.datasets)]
        parts.append(f"### Protocol: {protocol}\n\n{markdown_table(header, rows)}")
    if parts:
        parts.insert(
            0,
            "Accuracy in percent of the default, and how much a change of one part of it adds or takes away: mean over "
            "the draws of the labels, with the standard error of the difference draw by draw.\n",
        )
    return "\n".join(parts)


def _difference(changed: Score | None, default: Score | None) -> str:
    """Return the mean difference of runs with the same seeds, and its standard error."""
    if changed is None or default is None or len(changed.values) != len(default.values):
        return NOTHING
    differences = [ours - theirs for ours, theirs in zip(changed.values, default.values, strict=True)]
    mean = sum(differences) / len(differences)
    if len(differences) == 1:
        return f"{mean:+.2f}"
    variance = sum((each - mean) ** 2 for each in differences) / (len(differences) - 1)
    return f"{mean:+.2f} ± {(variance / len(differences)) ** 0.5:.2f}"
