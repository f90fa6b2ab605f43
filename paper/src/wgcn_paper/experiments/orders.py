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
    symbol, digits = ("A_vv", 2) if table.name == "orders" else ("A_dd", 1)
    [(setting, values)] = table.vary
    parts = []
    for protocol in table.protocols:
        beside = [name for name in table.datasets if name in published and protocol == "corpus"]
        header = [""]
        for name in table.datasets:
            header += [TITLES[name], "published"] if name in beside else [TITLES[name]]
        for row in table.rows:
            rows, measured = [], False
            for order in values:
                rows.append([f"{symbol}^{order}"])
                for dataset in table.datasets:
                    found = score(groups.get((protocol, variant_name(row.name, setting, order), dataset), ()))
                    paper = published[dataset][order] if dataset in beside else None
                    measured = measured or found is not None
                    rows[-1].append(found.beside(paper) + found.counted(table.seeds) if found else NOTHING)
                    rows[-1] += [f"{paper:.{digits}f}"] if paper is not None else []
            if measured:
                parts.append(f"**{row.name}**, protocol {protocol}\n\n" + markdown_table(header, rows))
    if not parts:
        return ""
    legend = (
        "Mean ± standard deviation in percent; in brackets the difference from the published figure, in square "
        f"brackets the number of seeds where it is not {table.seeds}.\n"
    )
    return "\n".join([legend, *parts])
