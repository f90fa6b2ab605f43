"""The paper's table of citation networks: test accuracy on Citeseer and Pubmed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.comparisons import against, comparison_table
from wgcn_paper.experiments.published import CITATIONS, TITLES
from wgcn_paper.experiments.report import comparison, group, scores_of
from wgcn_paper.experiments.table import Table

_MEANING = {
    "corpus": "Test documents and their citations are part of the graph, as in the paper.",
    "inductive": "Test documents are neither in the graph nor seen in any other way before prediction; then a document "
    "brings its citations, which the graph networks and *attached citations* use. No published figure is of this kind.",
}

# The rows that are compared with all others.
_REFERENCES = ("WGCN", "WGCN, the paper's")


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return a table for each protocol, every row below its published figure, then the differences."""
    groups = group(runs)
    parts = []
    for protocol in table.protocols:
        scores = scores_of(table, groups, protocol)
        if not scores:
            continue
        parts.append(f"### Protocol: {protocol}\n\n{_MEANING.get(protocol, '')}\n")
        parts.append(comparison(table, scores, CITATIONS, 1))
        titles = [TITLES[dataset] for dataset in table.datasets]
        compared = against(groups, protocol, scores, _REFERENCES, table.datasets)
        parts.append(comparison_table(titles, compared))
    if parts:
        parts.insert(
            0,
            "Mean ± standard deviation in percent; in brackets the difference from the published figure of the same "
            "method.\n",
        )
    return "\n".join(part for part in parts if part)
