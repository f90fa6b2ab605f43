"""The paper's tables of orders: accuracy with A_vv^k (text sets) and with A_dd^k (citation sets), k = 0 to 3."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.published import CITATION_ORDERS, ORDERS, TITLES
from wgcn_paper.experiments.report import NOTHING, group, markdown_table, score
from wgcn_paper.experiments.table import Table, variant_name


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return a table for each protocol and row: the orders below each other, beside the published figures."""
    groups = group(runs)
    published = {**ORDERS, **CITATION_ORDERS}
    symbol = "A_vv" if table.name == "orders" else "A_dd"
    [(setting, values)] = table.vary
    parts = []
    for protocol in table.protocols:
        for row in table.rows:
            rows = []
            measured = False
            for order in values:
                figures = [f"{symbol}^{order}"]
                for dataset in table.datasets:
                    found = score(groups.get((protocol, variant_name(row.name, setting, order), dataset), ()))
                    paper = published[dataset][order] if dataset in published and protocol == "corpus" else None
                    figures.append(found.beside(paper) + found.counted(table.seeds) if found else NOTHING)
                    measured = measured or found is not None
                    if dataset in published and protocol == "corpus":
                        figures.append(f"{paper:.2f}" if table.name == "orders" else f"{paper:.1f}")
                rows.append(figures)
            if not measured:
                continue
            header = [""]
            for dataset in table.datasets:
                header.append(TITLES[dataset])
                if dataset in published and protocol == "corpus":
                    header.append("published")
            parts.append(f"**{row.name}**, protocol {protocol}\n\n" + markdown_table(header, rows))
    if parts:
        parts.insert(
            0,
            "Mean ± standard deviation in percent; in brackets the difference from the published figure, in square "
            f"brackets the number of seeds where it is not {table.seeds}.\n",
        )
    return "\n".join(parts)
