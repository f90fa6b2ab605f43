"""The part of a report that shows a search for settings: how much was tried, what was chosen, and how close it was."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import NOTHING, markdown_table
from wgcn_paper.experiments.table import Table, row_name


def search_report(table: Table, folder: Path) -> str:
    """Return a table of the searches of a table's rows, or nothing if there were none."""
    try:
        document = json.loads((folder / f"{table.name}-search.json").read_bytes())
        chosen = {(one["row"], one["set"]): one for one in document["chosen"]}
        evaluations = document["evaluations"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    rows = [
        _row(row.name, place, one, evaluations)
        for row in table.rows
        for (name, place), one in chosen.items()
        if name == row.name
    ]
    if not rows:
        return ""
    return (
        "\n### The search\n\n"
        f"Validation accuracy in percent, {len(evaluations):,} trainings in all. All trials have one seed, the better "
        "ones three, the best three those in square brackets; the worst and the best are by the seeds that they have.\n"
        f"Every one is in [{table.name}-search.json]({table.name}-search.json).\n\n"
        + markdown_table(["row", "set", "trials", "worst to best", "the best three", "chosen"], rows)
    )


def _row(name: str, place: str, one: Mapping[str, Any], evaluations: Sequence[Mapping[str, Any]]) -> list[str]:
    dataset, _, varied = place.partition("; ")
    variant = f"{name}; {varied}" if varied else name
    trials: dict[str, list[float]] = {}
    for entry in evaluations:
        if entry["row"] == variant and entry["dataset"] == dataset:
            values = {key: entry["settings"].get(key) for key in one["chosen"]}
            trials.setdefault(json.dumps(values, sort_keys=True), []).append(100 * entry["accuracy"])
    means = sorted(map(mean, trials.values()))
    finalists = one["finalists"][:3]
    best = " / ".join(f"{100 * found['mean']:.2f}" for found in finalists)
    seeds = f" [{finalists[0]['seeds']}]" if finalists else ""
    return [
        name,
        f"{TITLES[row_name(place)]}{f', {varied}' if varied else ''}",
        str(len(trials)),
        f"{means[0]:.1f} to {means[-1]:.1f}" if means else NOTHING,
        best + seeds,
        ", ".join(f"{key} {value}" for key, value in one["chosen"].items()),
    ]
