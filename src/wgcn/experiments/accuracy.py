"""The paper's main table: test accuracy on five text sets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wgcn.experiments.cells import Run
from wgcn.experiments.published import ACCURACY, TITLES
from wgcn.experiments.report import NOTHING, Score, group, markdown_table, p_value, score
from wgcn.experiments.table import Table

__all__ = ["report"]

# What is said of a protocol above its table.
_MEANING = {
    "corpus": "Test texts, without labels, shape vocabulary, idf and word graph, as in the paper's published code; the "
    "paper's own figures are of this kind.",
    "inductive": "Nothing of the test documents is seen before prediction. The paper has no such figures; its WGCN row "
    "is repeated for comparison only.",
}


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return a table for each protocol, with the published figures, and t-tests."""
    groups = group(runs)
    parts = []
    for protocol in table.protocols:
        scores = {
            row.name: {dataset: score(groups.get((protocol, row.name, dataset), ())) for dataset in table.datasets}
            for row in table.rows
        }
        scores = {name: found for name, found in scores.items() if any(found.values())}
        if not scores:
            continue
        header = ["", *(TITLES[dataset] for dataset in table.datasets)]
        shown = ACCURACY if protocol == "corpus" else {"WGCN": ACCURACY["WGCN"]}
        rows = [[f"published: {name}", *_published(figures, table.datasets)] for name, figures in shown.items()]
        for name, found in scores.items():
            rows.append([name, *(_beside(found[dataset], dataset) for dataset in table.datasets)])
        parts.append(f"### Protocol: {protocol}\n\n{_MEANING.get(protocol, '')}\n\n" + markdown_table(header, rows))
        parts.append(_tests(scores, table.datasets))
    if parts:
        parts.insert(0, "Mean ± standard deviation in percent; in brackets the difference from the paper's WGCN.\n")
    return "\n".join(part for part in parts if part)


def _published(figures: dict[str, tuple[float, float]], datasets: Sequence[str]) -> list[str]:
    return [f"{figures[d][0]:.2f} ± {figures[d][1]:.2f}" if d in figures else NOTHING for d in datasets]


def _beside(found: Score | None, dataset: str) -> str:
    return NOTHING if found is None else found.beside(ACCURACY["WGCN"].get(dataset, (None,))[0])


def _tests(scores: dict[str, dict[str, Score | None]], datasets: Sequence[str]) -> str:
    """Return the t-tests of each row that varies with the seed against the rows below it."""
    rows = []
    names = list(scores)
    for i, name in enumerate(names):
        for other in names[i + 1 :]:
            cells = []
            for dataset in datasets:
                ours, theirs = scores[name][dataset], scores[other][dataset]
                p = p_value(ours, theirs) if ours and theirs else None
                if p is None or ours is None or theirs is None:
                    cells.append(NOTHING)
                else:
                    cells.append(f"{ours.mean - theirs.mean:+.2f} (p {'< 0.001' if p < 0.001 else f'= {p:.3f}'})")
            if any(cell != NOTHING for cell in cells):
                rows.append([f"{name} − {other}", *cells])  # noqa: RUF001 a minus
    if not rows:
        return ""
    header = ["Student's t-test, two-sided", *(TITLES[dataset] for dataset in datasets)]
    return markdown_table(header, rows)
