"""The paper's table of costs: time and memory of one epoch of training; also the whole training, and a new document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from statistics import median

from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.published import EFFICIENCY, TITLES
from wgcn_paper.experiments.report import NOTHING, OFF_LOCK, group, is_off_lock, markdown_table
from wgcn_paper.experiments.table import Row, Table

WHOLE = ", whole training"  # ends the names of rows that train to the end, as the table of accuracies does
_REFERENCE = "WGCN, the paper's"  # what the others are measured against, on the same device

Costs = Mapping[tuple[str, str, str], Run]  # by row, device and data set


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return three tables, one row per method and device: an epoch, the whole training, a new document."""
    [protocol] = table.protocols
    costs: dict[tuple[str, str, str], Run] = {}
    counts: dict[tuple[str, str, str, str, int], int] = {}
    for (found, variant, dataset), several in group(runs).items():
        if found == protocol:
            name, device = variant.rsplit("; ", 1)
            costs[name, device, dataset] = run = _middle(several)
            counts[run.cell.place] = len(several)
    if not costs:
        return ""
    epochs = [row for row in table.rows if not row.name.endswith(WHOLE)]
    wholes = [row for row in table.rows if row.name.endswith(WHOLE)]
    published = [
        [f"published: {name}", "Tesla K40c", *(_pair(*figures[d]) if d in figures else NOTHING for d in table.datasets)]
        for name, figures in EFFICIENCY.items()
    ]
    reference = {(device, dataset): run for (name, device, dataset), run in costs.items() if name == _REFERENCE}

    def counted(run: Run) -> str:
        return "" if counts[run.cell.place] >= table.seeds else f" [{counts[run.cell.place]}]"

    def epoch(run: Run) -> str:
        own = _epoch_cost(run)
        found = reference.get((run.cell.variant.rsplit("; ", 1)[1], run.cell.dataset))
        if found is None or found is run:
            return _pair(*own) + counted(run)
        ratios = [mine / max(theirs, 1e-9) for mine, theirs in zip(own, _epoch_cost(found), strict=True)]
        return f"{_pair(*own)} ({ratios[0]:.1f}\u00d7, {ratios[1]:.1f}\u00d7){counted(run)}"

    def whole(run: Run) -> str:
        return f"{run.fit_seconds:,.1f} ({run.epochs}){counted(run)}"

    return "\n".join(
        [
            "An epoch: milliseconds (median of the epochs after the second) and MiB (of the GPU where there "
            "is one, else of the whole process at its highest during fitting, text and graph included); in brackets, "
            f"as multiples of *{_REFERENCE}* on the same device. All figures are medians of {table.seeds} runs, or of "
            "as many as stand in square brackets; GPU memory is that of runs in a process of their own.\n",
            _table(table, "ms / MiB", epochs, costs, epoch, published),
            "The whole training, from texts to the final model: seconds, and epochs in brackets.\n",
            _table(table, "seconds", wholes, costs, whole),
            "A new document that comes alone: milliseconds, median of 20.\n",
            _table(table, "ms", wholes, costs, _new_document),
        ]
    )


def _table(
    table: Table,
    what: str,
    rows: Sequence[Row],
    costs: Costs,
    show: Callable[[Run], str],
    published: Sequence[Sequence[str]] = (),
) -> str:
    lines = [list(line) for line in published]
    for device in ("cpu", "cuda"):
        for row in rows:
            runs = [costs.get((row.name, device, dataset)) for dataset in table.datasets]
            found = [run for run in runs if run is not None]
            if found:
                cells = [NOTHING if run is None else show(run) + OFF_LOCK * is_off_lock([run]) for run in runs]
                lines.append([row.name.removesuffix(WHOLE), _machine(found[0], device), *cells])
    return markdown_table([what, "on", *(TITLES[dataset] for dataset in table.datasets)], lines)


def _middle(runs: Sequence[Run]) -> Run:
    """Return a run with the medians of the costs of several."""

    def of(name: str) -> float | None:
        known = [value for run in runs if (value := getattr(run, name)) is not None]
        return median(known) if known else None

    epochs, seconds = of("epochs"), of("fit_seconds")
    assert seconds is not None
    measured = {name: of(name) for name in ("ms_per_epoch", "memory", "gpu_memory", "predict_one_ms")}
    # Of one whose packages are not those of the lock file, if there is such, since the figure is marked then.
    shown = max(runs, key=lambda run: is_off_lock([run]))
    return replace(shown, epochs=None if epochs is None else round(epochs), fit_seconds=seconds, **measured)  # type: ignore[arg-type]


def _machine(run: Run, device: str) -> str:
    processor, *card = run.environment.get("machine", "").split(", ")
    return card[0] if device == "cuda" and card else processor


def _epoch_cost(run: Run) -> tuple[float, float]:
    return run.ms_per_epoch or 0.0, run.gpu_memory or run.memory or nan


def _pair(ms: float, memory: float) -> str:
    if isnan(memory):
        return f"{ms:,.1f} / {NOTHING}"
    return f"{ms:,.1f} / {memory:,.0f}" if isinstance(ms, float) else f"{ms:,} / {memory:,}"


def _new_document(run: Run) -> str:
    return "must train again" if run.predict_one_ms is None else f"{run.predict_one_ms:,.2f}"
