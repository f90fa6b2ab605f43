"""The paper's table of citation networks: test accuracy on Citeseer and Pubmed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wgcn.experiments.cells import Run
from wgcn.experiments.published import CITATIONS, TITLES
from wgcn.experiments.report import NOTHING, group, markdown_table, score
from wgcn.experiments.table import Table

__all__ = ["report"]

_MEANING = {
    "corpus": "Test documents and their citations are part of the word graph, as in the paper.",
    "inductive": "Test documents are neither in the word graph nor seen in any other way before prediction.",
}


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return a table for each protocol, with the published figures."""
    groups = group(runs)
    parts = []
    for protocol in table.protocols:
        rows = []
        for row in table.rows:
            found = [score(groups.get((protocol, row.name, dataset), ())) for dataset in table.datasets]
            if any(found):
                papers = [CITATIONS["WGCN"].get(dataset, (None,))[0] for dataset in table.datasets]
                rows.append([row.name, *(s.beside(p) if s else NOTHING for s, p in zip(found, papers, strict=True))])
        if not rows:
            continue
        shown = CITATIONS if protocol == "corpus" else {"WGCN": CITATIONS["WGCN"]}
        published = [[f"published: {name}", *_published(shown[name], table.datasets)] for name in shown]
        header = ["", *(TITLES[dataset] for dataset in table.datasets)]
        parts.append(f"### Protocol: {protocol}\n\n{_MEANING.get(protocol, '')}\n")
        parts.append(markdown_table(header, [*published, *rows]))
    if parts:
        parts.insert(0, "Mean ± standard deviation in percent; in brackets the difference from the paper's WGCN.\n")
    return "\n".join(parts)


def _published(figures: dict[str, tuple[float, float | None]], datasets: Sequence[str]) -> list[str]:
    cells = []
    for dataset in datasets:
        mean, sd = figures.get(dataset, (None, None))
        cells.append(NOTHING if mean is None else f"{mean:.1f}" + (f" ± {sd:.1f}" if sd is not None else ""))
    return cells
