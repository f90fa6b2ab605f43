"""Reproduce one table or figure: run the cells that have no run yet, then write the report."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from wgcn.base.errors import InputError, WGCNWarning
from wgcn_paper.datasets import load_dataset, stop_words
from wgcn_paper.datasets.derived import SOURCES
from wgcn_paper.datasets.registry import STOP_WORDS
from wgcn_paper.experiments.cells import Cell
from wgcn_paper.experiments.pages import TABLES, write_report
from wgcn_paper.experiments.results import ResultFile
from wgcn_paper.experiments.runner import Workers, run_cells
from wgcn_paper.experiments.statistics import measure_sizes, read_sizes
from wgcn_paper.experiments.table import Options, Table, load_table, row_name
from wgcn_paper.methods.baseline import check_packages

Progress = Callable[[int, int, str], Any]

# Why a row is retired.
_RETIRED = "the library has no such hyper-parameter since 0.2.0, and the runs in paper/results are kept"


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
    """Run the selected cells of a table that have no run yet, write its report, and return the path of it.

    Data sets and packages are needed only for cells that are run. Nothing is written that has not changed. The runs are
    in ``<table>.json`` in the folder; the report also shows earlier ones.
    """
    cells = selected(table, options, device)
    if table.name == "datasets":
        _measure_sizes(table, options, folder)
    if not table.rows:  # made of data, or of the runs of the other tables
        return write_report(table, [], folder)
    results = ResultFile(folder, table.name, reuse=table.name != "efficiency")
    missing = results.missing(cells)
    retired = _retired_without_runs(table, options, missing)
    missing = [cell for cell in missing if row_name(cell.variant) not in retired]
    _check_data(_data_names(missing))
    check_packages(cell.method for cell in missing)
    _note_retired(table, options, retired)
    run_cells([cell for cell in cells if row_name(cell.variant) not in retired], results, pool, device, progress)
    return write_report(table, results.runs(table.all_cells()), folder)


def selected(table: Table, options: Options, device: str) -> list[Cell]:
    """Return the cells that options select on a device."""
    cells = table.cells(options, device)
    if device != "cpu" or options.datasets is not None:
        return cells
    gpu_only = {(row.name, dataset) for row in table.rows for dataset in row.gpu_only}
    return [cell for cell in cells if (row_name(cell.variant), cell.dataset) not in gpu_only]


def _measure_sizes(table: Table, options: Options, folder: Path) -> None:
    """Measure the data sets that have no sizes yet."""
    known = read_sizes(folder)
    missing = [name for name in options.datasets or table.datasets if name not in known]
    if missing:
        _check_data([*missing, STOP_WORDS])
        measure_sizes(missing, folder)


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
