"""Adding documents to a model, beside a fit from scratch: ours, not the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import by_dataset, markdown_table, metric, ratio, score, shown, target
from wgcn_paper.experiments.table import Table

__all__ = ["report"]

_LINES = {
    "test documents with the same label, %": ("equal", 100.0),
    "test accuracy after a fit from scratch, %": ("accuracy_fit", 100.0),
    "fit to nine tenths, CPU seconds": ("first_cpu", 1.0),
    "update with a tenth, CPU seconds": ("update_cpu", 1.0),
    "fit from scratch, CPU seconds": ("fit_cpu", 1.0),
}
_JUDGED = "20ng"  # the set on which the time is a target


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return equality, accuracies and seconds, with the ratio of the seconds."""
    found = by_dataset(table, runs)
    if not found:
        return ""
    rows = [[line, *(shown(metric(of, *what)) for of in found.values())] for line, what in _LINES.items()]
    rows.insert(1, ["test accuracy after the update, %", *(shown(score(of)) for of in found.values())])
    rows.append(
        ["update / fit from scratch, CPU", *(shown(ratio(of, ["update_cpu"], "fit_cpu")) for of in found.values())]
    )
    rows.append(
        ["update / fit from scratch, wall", *(shown(ratio(of, ["update_wall"], "fit_wall")) for of in found.values())]
    )
    parts = [
        "Mean ± standard deviation over draws of the documents that are added; times of a draw are of one process.\n",
        markdown_table(["", *(TITLES[name] for name in found)], rows),
    ]
    if (taken := ratio(found.get(_JUDGED, []), ["update_wall"], "fit_wall")) is not None:
        aim = f"an update with a tenth more documents takes at most a third of a fit on {TITLES[_JUDGED]}"
        parts.append(target(aim, f"{taken.mean:.2f}", taken.mean <= 1 / 3))
    if (equal := metric(found.get(_JUDGED, []), "equal")) is not None:
        aim = f"it predicts the same label for at least 99.5 % of the test documents of {TITLES[_JUDGED]}"
        parts.append(target(aim, f"{equal.mean:.2f} %", equal.mean >= 99.5))
    return "\n".join(parts)
