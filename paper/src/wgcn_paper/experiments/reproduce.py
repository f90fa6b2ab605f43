"""Reproduce one table or figure: run the cells that have no run yet, then write the report."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Any

from wgcn.base.errors import InputError, WGCNWarning
from wgcn_paper.datasets import load_dataset, stop_words
from wgcn_paper.datasets.derived import SOURCES
from wgcn_paper.datasets.registry import STOP_WORDS
from wgcn_paper.experiments.cells import Cell, Run
from wgcn_paper.experiments.report import provenance
from wgcn_paper.experiments.results import ResultFile, write_if_changed
from wgcn_paper.experiments.runner import Workers, run_cells
from wgcn_paper.experiments.search_report import search_report
from wgcn_paper.experiments.table import Options, Table, load_table, row_name
from wgcn_paper.methods.baseline import check_packages

__all__ = ["TABLES", "all_cells", "report_text", "reproduce", "selected", "write_overview", "write_report"]

Progress = Callable[[int, int, str], Any]

# Why a row is retired.
_RETIRED = "the library has no such hyper-parameter since 0.2.0, and the runs in paper/results are kept"

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
    "worth": "summary",
    "ablation": "ablation",
    "embedder": "embedder",
    "unseen": "unseen",
    "explanations": "explanations",
    "seeds": "seeds",
    "suggest": "suggest",
    "review": "review",
    "abstain": "abstain",
    "update": "update",
    "elements": "elements",
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
    """Run the cells of a table that have no run yet, and write its report.

    Data sets and packages are needed only for cells that are run. Nothing is written that has not changed.

    Parameters
    ----------
    table : Table
    options : Options
        The cells to run; the report also shows earlier runs.
    folder : path
        For ``<table>.json`` with all runs, ``<table>.md``, and figures.
    pool : Workers
    device : str
    progress : callable, optional
        See `run_cells`.

    Returns
    -------
    path of the report
    """
    cells = selected(table, options, device)
    if table.name == "elements":  # made of the runs of the other tables
        return write_report(table, [], folder)
    if not table.rows:
        return _statistics(table, options, folder)
    results = ResultFile(folder, table.name, reuse=table.name != "efficiency")
    missing = results.missing(cells)
    retired = _retired_without_runs(table, options, missing)
    missing = [cell for cell in missing if row_name(cell.variant) not in retired]
    _check_data(_data_names(missing))
    check_packages(cell.method for cell in missing)
    _note_retired(table, options, retired)
    run_cells([cell for cell in cells if row_name(cell.variant) not in retired], results, pool, device, progress)
    return write_report(table, results.runs(all_cells(table)), folder)


def selected(table: Table, options: Options, device: str) -> list[Cell]:
    """Return the cells that options select on a device."""
    cells = _named(table, table.cells(options), device)
    if device != "cpu" or options.datasets is not None:
        return cells
    gpu_only = {(row.name, dataset) for row in table.rows for dataset in row.gpu_only}
    return [cell for cell in cells if (row_name(cell.variant), cell.dataset) not in gpu_only]


def _statistics(table: Table, options: Options, folder: Path) -> Path:
    """Write the report of a table without rows, which is computed from the data; without data, return the old one."""
    if options.datasets is not None:
        table = replace(table, datasets=[name for name in table.datasets if name in options.datasets])
    path = folder / f"{table.name}.md"
    try:
        _check_data([*table.datasets, STOP_WORDS])
    except InputError as error:
        if not path.is_file():
            raise
        warnings.warn(f"The report that is there is shown as it is: {error}", WGCNWarning, stacklevel=2)
        return path
    return write_report(table, [], folder)


def _retired_without_runs(table: Table, options: Options, missing: Sequence[Cell]) -> list[str]:
    """Return the retired rows that have cells without a run. Selecting one of them by name is an error."""
    without = {row_name(cell.variant) for cell in missing}
    found = [row.name for row in table.rows if row.retired and row.name in without]
    for name in found:
        if name in (options.rows or ()):
            raise InputError(f"The row {name!r} cannot be run. It is retired: {_RETIRED}.")
    return found


def _note_retired(table: Table, options: Options, without_runs: Sequence[str]) -> None:
    """Warn if retired rows are left out, or were selected by name."""
    chosen = [row.name for row in table.rows if row.retired and row.name in (options.rows or ())]
    if without_runs or chosen:
        names = "; ".join(without_runs or chosen)
        warnings.warn(f"Retired rows are not run ({names}): {_RETIRED}.", WGCNWarning, stacklevel=3)


def _data_names(cells: Iterable[Cell]) -> list[str]:
    """Return the data sets that cells need, and the stop words if a cell uses them."""
    names: dict[str, None] = {}
    for cell in cells:
        names[SOURCES.get(cell.dataset, cell.dataset)] = None
        names.update(dict.fromkeys([*cell.settings.get("background", ()), *cell.settings.get("others", ())]))
        if cell.settings.get("stop_words"):
            names[STOP_WORDS] = None
    return list(names)


def _check_data(names: Sequence[str]) -> None:
    """Raise one error that names all missing data, before any work is done."""
    missing: dict[str, InputError] = {}
    for name in names:
        try:
            if name == STOP_WORDS:
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
    """Write the report of a table and its figures from its runs, unless the report has not changed."""
    module = _module(table)
    text = report_text(table, runs, folder)
    path = folder / f"{table.name}.md"
    figures = [folder / f"{table.name}.{ending}" for ending in ("png", "svg")]
    if hasattr(module, "draw") and runs:
        changed = not path.is_file() or path.read_bytes() != text.encode()
        if changed or not all(figure.is_file() for figure in figures):
            module.draw(table, runs, figures)
    write_if_changed(path, text)
    return path


def report_text(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return the report of a table: its title, the source of its figures, and its body."""
    body = _module(table).report(table, runs, folder) + search_report(table, folder)
    source = provenance(f"wgcn-paper reproduce {table.name}", runs) if table.rows else ""
    text = f"# {table.title}\n\n{source}\n{body}" if source else f"# {table.title}\n\n{body}"
    return "\n".join(map(_wrapped, text.split("\n")))


def _wrapped(line: str) -> str:
    """Return a line of prose in lines of at most 120 characters; tables, headings and pictures stay as they are."""
    if line.startswith(("|", "#", "!", "<", " ")) or len(line) <= 120:
        return line
    return fill(line, 120, break_long_words=False, break_on_hyphens=False)


def _module(table: Table) -> Any:
    return import_module(f"wgcn_paper.experiments.{TABLES[table.name]}")


def all_cells(table: Table) -> list[Cell]:
    """Return all cells of a table."""
    devices = ("cpu", "cuda") if table.name == "efficiency" else ("any",)
    return [cell for device in devices for cell in _named(table, table.cells(), device)]


def _named(table: Table, cells: list[Cell], device: str) -> list[Cell]:
    """Add the device to the variants of the table of costs; return the cells of other tables unchanged."""
    if table.name != "efficiency":
        return cells
    return [replace(cell, variant=f"{cell.variant}; {device}") for cell in cells]


def write_overview(folder: Path) -> Path:
    """Write the page that links to all reports in a folder."""
    lines = ["# Results", "", "Every table and figure is made by one command and stands on its own page.", ""]
    for name in TABLES:
        if (folder / f"{name}.md").exists():
            lines.append(f"- [{load_table(name).title}]({name}.md): `wgcn-paper reproduce {name}`")
            if (folder / f"{name}.json").exists():
                lines[-1] += f" ([every run]({name}.json))"
    path = folder / "README.md"
    write_if_changed(path, "\n".join(lines) + "\n")
    return path
