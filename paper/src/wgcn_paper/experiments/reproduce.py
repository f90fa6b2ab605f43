"""One table or figure from beginning to end: run its cells, write its report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from wgcn.errors import InputError
from wgcn.files import write_file
from wgcn_paper.datasets import load_dataset, stop_words
from wgcn_paper.experiments.cells import Cell, Run
from wgcn_paper.experiments.report import provenance
from wgcn_paper.experiments.results import ResultFile
from wgcn_paper.experiments.runner import Workers, run_cells
from wgcn_paper.experiments.table import Options, Table, load_table

__all__ = ["TABLES", "reproduce", "write_overview"]

Progress = Callable[[int, int, str], Any]

# Each table and the module that reports it.
TABLES = {
    "datasets": "statistics",
    "accuracy": "accuracy",
    "orders": "orders",
    "sensitivity": "sensitivity",
    "efficiency": "efficiency",
    "citations": "citations",
    "citation-orders": "orders",
    "labels": "labels",
    "summary": "summary",
    "ablation": "ablation",
    "embedder": "embedder",
    "unseen": "unseen",
}


def table_of(name: str, settings: Path | None = None) -> Table:
    """Return a table by its name."""
    if name not in TABLES:
        raise InputError(f"There is no table {name!r}. There are: {', '.join(TABLES)}.")
    return load_table(name, settings)


def reproduce(
    table: Table,
    options: Options,
    folder: Path,
    pool: Workers,
    *,
    device: str = "auto",
    progress: Progress | None = None,
) -> Path:
    """Run what is missing of a table, and write its report.

    Parameters
    ----------
    table : Table
    options : Options
        What to run; the report also shows what was run before.
    folder : path
        For ``<table>.json`` with every run, ``<table>.md``, and pictures.
    pool : Workers
    device : str
    progress : callable, optional
        See `run_cells`.

    Returns
    -------
    path of the report
    """
    cells = _named(table, table.cells(options), device)
    needed = list(table.datasets if options.datasets is None else options.datasets)
    if any(cell.settings.get("stop_words") for cell in cells):
        needed.append("stopwords")
    _check_data(needed)
    results = ResultFile(folder, table.name, reuse=table.name != "efficiency")
    runs: Sequence[Run] = []
    if table.rows:
        run_cells(cells, results, pool, device, progress)
        runs = results.runs(all_cells(table))
    elif options.datasets is not None:
        table = replace(table, datasets=[name for name in table.datasets if name in options.datasets])
    return write_report(table, runs, folder)


def _check_data(names: Sequence[str]) -> None:
    """Say before an hour of work, not after it, what data is missing, and all of it at once."""
    missing: dict[str, InputError] = {}
    for name in names:
        try:
            if name == "stopwords":
                stop_words()
            else:
                load_dataset(name)
        except InputError as error:
            missing[name] = error
    if missing:
        first = next(iter(missing.values()))
        more = f" All that is missing: wgcn-paper data prepare {' '.join(missing)}" if len(missing) > 1 else ""
        raise InputError(f"{first}{more}") from first


def write_report(table: Table, runs: Sequence[Run], folder: Path) -> Path:
    """Write the report of a table from its runs."""
    body = import_module(f"wgcn_paper.experiments.{TABLES[table.name]}").report(table, runs, folder)
    source = provenance(f"wgcn-paper reproduce {table.name}", runs) if table.rows else ""
    text = f"# {table.title}\n\n{source}\n{body}" if source else f"# {table.title}\n\n{body}"
    path = folder / f"{table.name}.md"
    write_file(path, lambda file: file.write(text.encode()))
    return path


def all_cells(table: Table) -> list[Cell]:
    """Return all cells that a table shows."""
    devices = ("cpu", "cuda") if table.name == "efficiency" else ("any",)
    return [cell for device in devices for cell in _named(table, table.cells(), device)]


def _named(table: Table, cells: list[Cell], device: str) -> list[Cell]:
    """Return the cells of the table of costs under the name of their device, all others as they are."""
    if table.name != "efficiency":
        return cells
    return [replace(cell, variant=f"{cell.variant}; {device}") for cell in cells]


def write_overview(folder: Path) -> Path:
    """Write the page that leads to all reports that are there."""
    lines = ["# Results", "", "Every table and figure is made by one command and stands on its own page.", ""]
    for name in TABLES:
        if (folder / f"{name}.md").exists():
            lines.append(f"- [{load_table(name).title}]({name}.md): `wgcn-paper reproduce {name}`")
            if (folder / f"{name}.json").exists():
                lines[-1] += f" ([every run]({name}.json))"
    path = folder / "README.md"
    write_file(path, lambda file: file.write(("\n".join(lines) + "\n").encode()))
    return path
