"""The default classifier against common alternatives, by protocol; not a table of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.comparisons import against, comparison_table
from wgcn_paper.experiments.published import ACCURACY, TITLES
from wgcn_paper.experiments.report import NOTHING, group, markdown_table, scores_of
from wgcn_paper.experiments.table import Table
from wgcn_paper.protocol import Protocol

_MEANING = {
    "inductive": "All labels; nothing of the test documents is seen before prediction",
    "corpus": "All labels; the text of the test documents, without labels, is seen in training",
    "few-label": "{} of the labels; the other training texts are there without; test texts are not seen",
}


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return one table per protocol, with the published figures of the paper's model under corpus, and differences."""
    groups = group(runs)
    header = ["", *(TITLES[dataset] for dataset in table.datasets)]
    parts = []
    for protocol in table.protocols:
        scores = scores_of(table, groups, protocol)
        if not scores:
            continue
        rows = []
        for name, found in scores.items():
            cells = [found.get(dataset) for dataset in table.datasets]
            rows.append([name, *(NOTHING if cell is None else f"{cell}" for cell in cells)])
        parsed = Protocol.parse(protocol)
        if parsed.name == "corpus":
            rows += [
                [f"published: {row.published}", *(f"{ACCURACY[row.published][name][0]:.2f}" for name in table.datasets)]
                for row in table.rows
                if row.published in ACCURACY
            ]
        meaning = _MEANING[parsed.name].format(str(parsed).partition(":")[2])
        parts.append(f"### {meaning} (`{protocol}`)\n\n{markdown_table(header, rows)}")
        compared = against(groups, protocol, scores, list(scores)[:1], table.datasets)
        if compared:
            parts.append(comparison_table(header[1:], compared))
    if parts:
        parts.insert(0, "Mean ± standard deviation in percent over seeds or draws of the labels.\n")
    return "\n".join(parts)
