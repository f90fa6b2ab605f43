"""Representations learnt without labels, compared with latent semantic analysis; not a table of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.comparisons import compare, comparison_table
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import NOTHING, Groups, Score, group, markdown_table, scores_of
from wgcn_paper.experiments.table import Table

_OURS = "WGCNEmbedder"
_PROBE, _NEAREST = "probe", "nearest"  # how the names of rows end


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return a table for each protocol and head, with the differences between ours and the others."""
    groups = group(runs)
    parts = []
    for protocol in table.protocols:
        scores = scores_of(table, groups, protocol)
        for head, meaning in (
            (_PROBE, "a linear probe (logistic regression)"),
            (_NEAREST, "the share of test documents whose nearest training document has their class"),
        ):
            chosen = {name: found for name, found in scores.items() if name.endswith(f", {head}")}
            if chosen:
                parts.append(f"### {protocol}: {meaning}\n")
                parts += [_table(table, protocol, chosen), _differences(table, groups, protocol, head, chosen)]
    if parts:
        parts.insert(
            0,
            "Mean ± standard deviation over draws of labels, in percent; in square brackets the number of draws where "
            f"labels are drawn and there are fewer than {table.seeds}.\n",
        )
    return "\n".join(part for part in parts if part)


def _table(table: Table, protocol: str, scores: Mapping[str, Mapping[str, Score]]) -> str:
    wanted = table.seeds if protocol.startswith("few-label") else 1
    rows = []
    for name, found in scores.items():
        cells = [f"{found[each]}{found[each].counted(wanted)}" if each in found else NOTHING for each in table.datasets]
        rows.append([name, *cells])
    return markdown_table(["", *(TITLES[dataset] for dataset in table.datasets)], rows)


def _differences(table: Table, groups: Groups, protocol: str, head: str, names: Iterable[str]) -> str:
    ours = f"{_OURS}, {head}"
    compared = {
        f"{_OURS} \u2212 {other.removesuffix(f', {head}')}": [
            compare(*(groups.get((protocol, row, dataset), ()) for row in (ours, other))) for dataset in table.datasets
        ]
        for other in names
        if other != ours
    }
    return comparison_table([TITLES[dataset] for dataset in table.datasets], compared)
