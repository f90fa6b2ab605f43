"""Adding documents to a model, beside a fit from scratch: ours, not the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import by_dataset, markdown_table, metric, of_row, ratio, score, shown, target
from wgcn_paper.experiments.table import Table

_LINES = {
    "test documents with the same label, %": ("equal", 100.0),
    "test accuracy after a fit from scratch, %": ("accuracy_fit", 100.0),
    "fit to nine tenths, CPU seconds": ("first_cpu", 1.0),
    "update with a tenth, CPU seconds": ("update_cpu", 1.0),
    "fit from scratch, CPU seconds": ("fit_cpu", 1.0),
}
_JUDGED = "20ng"  # the set on which the time is a target


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return for each row equality, accuracies and seconds, with the ratio of the seconds."""
    parts = [
        "Mean ± standard deviation over draws of the documents that are added; times of a draw are of one process.\n"
    ]
    for row in table.rows:
        found = by_dataset(table, of_row(runs, row.name))
        if not found:
            continue
        rows = [[line, *(shown(metric(of, *what)) for of in found.values())] for line, what in _LINES.items()]
        rows.insert(1, ["test accuracy after the update, %", *(shown(score(of)) for of in found.values())])
        for kind in ("cpu", "wall"):
            ratios = (shown(ratio(of, [f"update_{kind}"], f"fit_{kind}")) for of in found.values())
            rows.append([f"update / fit from scratch, {kind}", *ratios])
        parts.append(markdown_table([row.name, *(TITLES[name] for name in found)], rows))
        parts += _targets(row.name, found.get(_JUDGED, []))
    return "\n".join(parts) if len(parts) > 1 else ""


def _targets(row: str, runs: list[Run]) -> list[str]:
    taken, equal = ratio(runs, ["update_wall"], "fit_wall"), metric(runs, "equal")
    if taken is None or equal is None:
        return []
    time = f"{row}: an update with a tenth more documents takes at most a third of a fit on {TITLES[_JUDGED]}"
    same = f"{row}: it predicts the same label for at least 99.5 % of the test documents of {TITLES[_JUDGED]}"
    return [
        target(time, f"{taken.mean:.2f}", taken.mean <= 1 / 3),
        target(same, f"{equal.mean:.2f} %", equal.mean >= 99.5),
    ]
