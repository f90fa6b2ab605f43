"""The paper's figure of sensitivity: accuracy against the hidden size, and against the window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.pictures import panels
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import NOTHING, Score, draw_scores, group, markdown_table, score
from wgcn_paper.experiments.table import Table, variant_name

_TITLES = {"hidden": "hidden size", "window": "window (tokens)"}


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return one table per setting."""
    scores = _scores(table, runs)
    if not any(found for values in scores.values() for found in values):
        return ""
    parts = []
    for setting, values in table.vary:
        rows = [
            [TITLES[dataset], *(str(found) if found else NOTHING for found in scores[setting, dataset])]
            for dataset in table.datasets
        ]
        parts.append(markdown_table([_TITLES.get(setting, setting), *map(str, values)], rows))
    parts.append(f"![Accuracy against hidden size and window]({table.name}.png)\n")
    return "\n".join(parts)


def draw(table: Table, runs: Sequence[Run], paths: Sequence[Path]) -> None:
    """Draw one panel per setting, with one line per data set."""
    scores = _scores(table, runs)
    with panels(paths, (10.5, 4.2), len(table.vary)) as axes:
        for axis, (setting, values) in zip(axes, table.vary, strict=True):
            for dataset, marker in zip(table.datasets, "osv^D", strict=False):
                points = [(v, s) for v, s in zip(values, scores[setting, dataset], strict=True) if s is not None]
                draw_scores(axis, points, TITLES[dataset], marker)
            axis.set_xlabel(_TITLES.get(setting, setting))
            axis.set_ylabel("test accuracy (%)")
            axis.grid(alpha=0.3)
        axes[0].legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=5, frameon=False)


def _scores(table: Table, runs: Sequence[Run]) -> dict[tuple[str, str], list[Score | None]]:
    """Return the scores of all values of a setting, by setting and data set."""
    groups = group(runs)
    [protocol], [row] = table.protocols, table.rows
    return {
        (setting, dataset): [
            score(groups.get((protocol, variant_name(row.name, setting, value), dataset), ())) for value in values
        ]
        for setting, values in table.vary
        for dataset in table.datasets
    }
