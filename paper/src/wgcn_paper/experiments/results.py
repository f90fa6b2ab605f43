"""Result files: every run of a table in one JSON file that is whole at every moment."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from wgcn.errors import StoreError, WGCNError
from wgcn.files import write_file
from wgcn_paper.experiments.cells import Cell, Run, renamed
from wgcn_paper.methods.baseline import method_class

__all__ = ["ResultFile"]

_FORMAT = "wgcn-results-1"


class ResultFile:
    """The runs of a table. A run is saved as soon as it is added; one that it makes out of date leaves.

    Parameters
    ----------
    folder : path
        Where the result files of all tables are: runs that another table has already are taken from there.
    name : str
        Of the table.
    reuse : bool
        Whether they are; not for a table of costs, which hang on how a run was started.
    """

    def __init__(self, folder: Path, name: str, *, reuse: bool = True) -> None:
        self.path, self.name = folder / f"{name}.json", name
        self._runs = {run.cell.place: run for run in _read(self.path)}
        others = [path for path in sorted(folder.glob("*.json")) if reuse and path != self.path]
        self._elsewhere = {run.cell.key: run for path in others for run in _read(path, needed=False)}

    def find(self, cell: Cell) -> Run | None:
        """Return the run of a cell, if it has been run with these very settings."""
        run = self._runs.get(cell.place)
        if run is not None and run.cell.key == cell.key:
            return run
        other = self._elsewhere.get(cell.key)
        return None if other is None else renamed(other, cell)

    def add(self, runs: Iterable[Run]) -> None:
        """Save runs, each in the place of one with other settings if there is one."""
        # Another command may have written to the file in the meantime.
        self._runs = {run.cell.place: run for run in _read(self.path)}
        self._runs.update({run.cell.place: run for run in runs})
        self._save()

    def runs(self, cells: Iterable[Cell]) -> list[Run]:
        """Return the runs of those cells that have been run."""
        return [run for cell in cells if (run := self.find(cell)) is not None]

    def _save(self) -> None:
        environments: list[dict[str, str]] = []
        runs = []
        for _, run in sorted(self._runs.items()):
            if run.environment not in environments:
                environments.append(run.environment)
            content = run.as_json()
            content["environment"] = environments.index(run.environment)
            runs.append(content)
        # A run a line, so that a difference between two versions of the file can be read.
        lines = ",\n".join(f"  {json.dumps(run)}" for run in runs)
        text = (
            f'{{"format": "{_FORMAT}", "table": {json.dumps(self.name)},\n'
            f' "environments": {json.dumps(environments)},\n "runs": [\n{lines}\n]}}\n'
        )
        write_file(self.path, lambda file: file.write(text.encode()))


def _read(path: Path, needed: bool = True) -> list[Run]:
    """Read the runs of a file; a file that is no result file is an error only if it must be one."""
    try:
        document: Any = json.loads(path.read_bytes())
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise ValueError(f"it does not say that it is {_FORMAT}")
        environments = document["environments"]
        runs = [{**run, "environment": environments[run["environment"]]} for run in document["runs"]]
        return [_completed(Run.from_json(run)) for run in runs]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        if not needed:
            return []
        raise StoreError(f"{path} is damaged or no result file: {error}. Move it away to begin anew.") from error


def _completed(run: Run) -> Run:
    """Return a run with the settings that its method has got since, at the values that leave it as it was."""
    try:
        method = method_class(run.cell.method)
    except WGCNError:  # a method that is gone, or that cannot be loaded here
        return run
    return replace(run, cell=replace(run.cell, settings={**method.defaults, **method.earlier, **run.cell.settings}))
