"""Result files: all runs of a table in one JSON file, written atomically, by one process at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from wgcn.base.errors import StoreError, WGCNError
from wgcn.base.files import locked_folder, made_folder, read_whole, write_file, writing
from wgcn.store.contents import read_json
from wgcn_paper.experiments.cells import Cell, Run, renamed
from wgcn_paper.methods.baseline import method_class

_FORMAT = "wgcn-results-2"
_MAX_VALUES = 1 << 20  # in a file: ours have 60,000 at most, and Python takes 60 bytes for each
# What many runs have in common stands once in a file; a run has its place in the list.
_SHARED = {"environment": "environments", "settings": "settings"}


class ResultFile:
    """The runs of a table. A run is saved as soon as it is added, in place of one that is out of date.

    With `reuse`, runs of other tables in the folder with the same settings are used. The table of costs does not, since
    costs depend on how a run was started.
    """

    def __init__(self, folder: Path, name: str, *, reuse: bool = True) -> None:
        self.path, self.name = folder / f"{name}.json", name
        self.places = {run.cell.place: run for run in _read(self.path)}
        self._reuse = reuse

    @cached_property
    def _elsewhere(self) -> dict[str, Run]:
        """Runs of the other tables by key; read only when a run is not in the table's own file."""
        others = [path for path in sorted(self.path.parent.glob("*.json")) if self._reuse and path != self.path]
        return {run.cell.key: run for path in others for run in _read(path, needed=False)}

    def find(self, cell: Cell) -> Run | None:
        """Return the run of a cell with exactly its settings, if there is one."""
        run = self.places.get(cell.place)
        if run is not None and run.cell.key == cell.key:
            return run
        other = self._elsewhere.get(cell.key)
        return None if other is None else renamed(other, cell)

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return the cells that have no run."""
        return [cell for cell in cells if self.find(cell) is None]

    def add(self, runs: Iterable[Run]) -> None:
        """Save runs; each replaces a run with other settings in the same place of the table."""
        folder, new = self.path.parent, {run.cell.place: run for run in runs}
        # Other commands may have written to the file in the meantime, and wait now until this one has.
        with writing(self.path), made_folder(folder), locked_folder(folder):
            self.places = {run.cell.place: run for run in _read(self.path)} | new
            self._save()

    def runs(self, cells: Iterable[Cell]) -> list[Run]:
        """Return the runs of those cells that have been run."""
        return [run for cell in cells if (run := self.find(cell)) is not None]

    def _save(self) -> None:
        shared: dict[str, dict[str, int]] = {name: {} for name in _SHARED.values()}  # by their JSON: 1 is not 1.0
        runs = []
        for _, run in sorted(self.places.items()):
            content = run.as_json()
            for key, name in _SHARED.items():
                content[key] = shared[name].setdefault(json.dumps(content[key]), len(shared[name]))
            runs.append(json.dumps(content))
        # One run per line, so that differences between versions of the file can be read.
        parts = ["".join(f' "{name}": [\n{_lines(entries)}\n],\n' for name, entries in shared.items())]
        parts.append(f' "runs": [\n{_lines(runs)}\n]}}\n')
        head = f'{{"format": "{_FORMAT}", "table": {json.dumps(self.name)},\n'
        write_if_changed(self.path, head + "".join(parts))


def _lines(entries: Iterable[str]) -> str:
    return ",\n".join(f"  {entry}" for entry in entries)


def write_if_changed(path: Path, text: str) -> None:
    """Write a text file atomically, but leave a file that has this text already as it is."""
    content = text.encode()
    if not path.is_file() or path.read_bytes() != content:
        write_file(path, lambda file: file.write(content))


def _read(path: Path, needed: bool = True) -> list[Run]:
    """Read the runs of a file. A file of another kind is an error only if `needed`."""
    try:
        document = read_json(read_whole(path), _MAX_VALUES)
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise ValueError(f"its format is not {_FORMAT}")
        for name in ("runs", *_SHARED.values()):
            if type(document[name]) is not list or not all(type(entry) is dict for entry in document[name]):
                raise ValueError(f"its {name} are not a list of objects")
        return [_completed(Run.from_json(_joined(run, document))) for run in document["runs"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        if not needed:
            return []
        raise StoreError(f"{path} is damaged or not a result file: {error}. Move it away to start again.") from error


def _joined(run: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Return a run with what it shares with others."""
    for key, name in _SHARED.items():
        place = run[key]
        if type(place) is not int or not 0 <= place < len(document[name]):
            raise ValueError(f"the {key} of a run is not in its {name}")
        run = {**run, key: document[name][place]}
    return run


def _completed(run: Run) -> Run:
    """Return a run with the settings that were added to its method later, at the values that do not change the run."""
    try:
        method = method_class(run.cell.method)
    except WGCNError:  # a removed method, or one that cannot be imported here
        return run
    return replace(run, cell=replace(run.cell, settings={**method.defaults, **method.earlier, **run.cell.settings}))
