"""Accuracy on documents with words that training did not see, and the gain of adding these words to a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.comparisons import compare, comparison_table
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import NOTHING, group, markdown_table, score
from wgcn_paper.experiments.table import Table


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return two tables per protocol: accuracies, and gains over the first row, paired over the draws."""
    groups = group(runs)
    first, *others = table.rows
    parts = []
    for protocol in table.protocols:
        found = {(row, dataset): of for (under, row, dataset), of in groups.items() if under == protocol}
        if not found:
            continue
        titles = [TITLES[dataset] for dataset in table.datasets]
        sizes = ["documents per draw", *(_documents(found.get((first.name, name), ())) for name in table.datasets)]
        rows = [sizes]
        for row in table.rows:
            scores = [score(found.get((row.name, dataset), ())) for dataset in table.datasets]
            rows.append([row.name, *(str(each) if each else NOTHING for each in scores)])
        parts.append(f"### Protocol: {protocol}\n\n" + markdown_table(["accuracy, %", *titles], rows))
        gains = {
            row.name: [compare(*(found.get((each, d), ()) for each in (row.name, first.name))) for d in table.datasets]
            for row in others
        }
        parts.append(comparison_table(titles, gains, f"gain over {first.name}, points"))
    if parts:
        parts.insert(
            0,
            "Mean ± standard deviation over draws of the documents that are fitted. Only test documents with a word "
            "that these do not have are counted.\n",
        )
    return "\n".join(part for part in parts if part)


def _documents(runs: Sequence[Run]) -> str:
    return f"{mean(run.n_test for run in runs):,.0f}" if runs else NOTHING
