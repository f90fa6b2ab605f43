"""The paper's table of costs: time and memory of one epoch of training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from wgcn.experiments.cells import Run
from wgcn.experiments.published import EFFICIENCY, TITLES
from wgcn.experiments.report import NOTHING, group, markdown_table
from wgcn.experiments.table import Table

__all__ = ["report"]


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return one table: a row a method and device, time and memory in each cell."""
    groups = group(runs)
    [protocol] = table.protocols
    rows = [
        [f"published: {name}", "Tesla K40c", *_published(figures, table.datasets)]
        for name, figures in EFFICIENCY.items()
    ]
    measured = []
    for variant in sorted({variant for _, variant, _ in groups}):
        own = [groups.get((protocol, variant, dataset), []) for dataset in table.datasets]
        machine = next(run.environment.get("machine", "") for found in own for run in found)
        measured.append([variant.split(";")[0], _device(variant, machine), *map(_cost, own)])
    if not measured:
        return ""
    header = ["ms / MiB", "on", *(TITLES[dataset] for dataset in table.datasets)]
    return (
        "Milliseconds an epoch (median of the epochs after the second) and MiB: of the graphics card where there is "
        "one, else of the whole process at its highest during fitting, text and graph included.\n\n"
        + markdown_table(header, [*rows, *measured])
    )


def _published(figures: dict[str, tuple[int, int]], datasets: Sequence[str]) -> list[str]:
    return [f"{figures[d][0]:,} / {figures[d][1]:,}" if d in figures else NOTHING for d in datasets]


def _device(variant: str, machine: str) -> str:
    processor, *card = machine.split(", ")
    return card[0] if variant.endswith("cuda") and card else processor


def _cost(runs: Sequence[Run]) -> str:
    if not runs:
        return NOTHING
    ms = median(run.ms_per_epoch or 0 for run in runs)
    memory = median(run.gpu_memory or run.memory for run in runs)
    return f"{ms:,.1f} / {memory:,.0f}"
