"""A table and its cells, as its settings file describes them.

A settings file is TOML: the data sets, protocols and seeds of the table, and one row per method with its settings,
settings of single data sets, and ranges for a search. A row that is ``searched`` takes what the search has chosen for
each data set from ``settings/searched``. ``like`` takes these from the row of that name in the table of
accuracies. ``retired`` marks a row that is shown from its committed runs but never run again, ``planned`` one that has
no runs yet and is run only if it is selected by name. ``vary`` runs every row with several values of one setting.
``versions`` names methods that are shown from the runs of an earlier version of their code. The files are in
``settings``, one per table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from wgcn.base.errors import InputError
from wgcn_paper.experiments.cells import Cell, make_cell
from wgcn_paper.methods.baseline import method_class
from wgcn_paper.protocol import Protocol


@dataclass(frozen=True)
class Options:
    """A selection from a table. None selects all that its settings file has."""

    datasets: Collection[str] | None = None
    protocols: Collection[str] | None = None
    rows: Collection[str] | None = None
    seeds: int | None = None  # run the seeds 0 to seeds - 1
    models: Collection[str] | None = None  # only rows of these methods


@dataclass(frozen=True)
class Row:
    """A method with its settings."""

    name: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # settings for all data sets
    # Settings for single data sets, which override `settings`; for one value of what the table varies under a name such
    # as "r8; order 2"
    sets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    search: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # values that a search tries
    protocols: Sequence[str] | None = None  # protocols of the table that it runs under, if not all
    # Number of seeds on single data sets where it is not that of the table: for slow methods. 0 leaves a set out.
    seeds: Mapping[str, int] = field(default_factory=dict)
    published: str = ""  # the row of the paper's table that it is shown beside, if there is one
    # Whether the library no longer has a hyper-parameter that the row sets. The row is shown from its committed runs
    # and never run again.
    retired: bool = False
    # Data sets on which the table of costs measures the row on a GPU only, since it takes hours on a CPU. A CPU run of
    # them must be selected by the name of the data set.
    gpu_only: Sequence[str] = ()
    seeded: bool | None = None  # whether another seed gives another model, if that is not as the method says
    # The earlier version of the method's code whose runs are shown; they cannot be run again
    version: int | None = None
    # Whether the row has no committed runs yet. It is then run only if its name or method is selected; whoever commits
    # its runs removes the mark.
    planned: bool = False

    @property
    def has_seeds(self) -> bool:
        """Whether another seed gives another model."""
        kind = method_class(self.method)
        own = kind.seeded and (self.version or kind.version) >= kind.seeded_since
        return own if self.seeded is None else self.seeded

    def settings_for(self, dataset: str) -> dict[str, Any]:
        """Return the settings for a data set."""
        return {**self.settings, **self.sets.get(dataset, {})}


@dataclass(frozen=True)
class Table:
    """The content of a settings file."""

    name: str
    title: str
    datasets: Sequence[str]
    protocols: Sequence[str]
    seeds: int  # number of seeds; `set_seeds` has those of single data sets
    rows: Sequence[Row]
    # Every row is run with each value of each setting, one setting at a time; if empty, unchanged
    vary: Sequence[tuple[str, Sequence[Any]]] = ()
    set_seeds: Mapping[str, int] = field(default_factory=dict)
    # Earlier versions of methods whose runs the table shows; they cannot be run again
    versions: Mapping[str, int] = field(default_factory=dict)
    references: Sequence[str] = ()  # rows that the report compares with all others

    def known(self, options: Options) -> Options:
        """Return options without the names that the table does not have."""

        def among(given: Collection[str] | None, has: Sequence[str]) -> list[str] | None:
            return None if given is None else [name for name in given if name in has]

        return Options(
            among(options.datasets, self.datasets),
            among(options.protocols, self.protocols),
            among(options.rows, [row.name for row in self.rows]),
            options.seeds,
            among(options.models, [row.method for row in self.rows]),
        )

    def all_cells(self) -> list[Cell]:
        """Return all cells; those of the table of costs on both devices."""
        devices = ("cpu", "cuda") if self.name == "efficiency" else ("any",)
        return [cell for device in devices for cell in self.cells(device=device)]

    def cells(self, options: Options | None = None, device: str = "any") -> list[Cell]:
        """Return the selected cells, grouped by data set; the table of costs adds the device to their variants."""
        options = options or Options()
        _check("data set", options.datasets, self.datasets)
        _check("protocol", options.protocols, self.protocols)
        _check("row", options.rows, [row.name for row in self.rows])
        _check("model", options.models, list(dict.fromkeys(row.method for row in self.rows)))
        cells = [
            cell
            for dataset in self.datasets
            if options.datasets is None or dataset in options.datasets
            for protocol in self.protocols
            if options.protocols is None or protocol in options.protocols
            for row in self.rows
            if options.rows is None or row.name in options.rows
            if options.models is None or row.method in options.models
            if not row.planned or options.rows is not None or options.models is not None
            for cell in self._row_cells(row, dataset, protocol, options)
        ]
        if self.name != "efficiency":
            return cells
        return [replace(cell, variant=f"{cell.variant}; {device}") for cell in cells]

    def _row_cells(self, row: Row, dataset: str, protocol: str, options: Options) -> Iterator[Cell]:
        kind = method_class(row.method)
        if row.protocols is not None and protocol not in row.protocols:
            if options.protocols is not None and (options.rows is not None or options.models is not None):
                # The row was selected by name.
                raise InputError(f"{row.name} cannot run under the protocol {protocol} here. {kind.why_not}".strip())
            return
        n_seeds = min(options.seeds or 10**9, row.seeds.get(dataset, self.set_seeds.get(dataset, self.seeds)))
        drawn = Protocol.parse(protocol)
        if not self.has_seeds(row) and not drawn.is_drawn:
            n_seeds = min(n_seeds, 1)  # nothing is drawn
        settings, version = row.settings_for(dataset), self._version(row)
        for variant, values in self.variants(row, dataset):
            for seed in range(n_seeds):
                yield make_cell(dataset, protocol, row.method, {**settings, **values}, seed, variant, version)

    def has_seeds(self, row: Row) -> bool:
        """Whether another seed gives another model, with the version that the table shows."""
        return replace(row, version=self._version(row)).has_seeds

    def _version(self, row: Row) -> int | None:
        return row.version or self.versions.get(row.method)

    def variants(self, row: Row, dataset: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the name of each variant of a row, and the settings that make it one on a data set."""
        if not self.vary:
            yield row.name, {}
        for setting, values in self.vary:
            for value in values:
                own = row.sets.get(variant_name(dataset, setting, value), {})
                yield variant_name(row.name, setting, value), {**own, setting: value}


def variant_name(row: str, setting: str, value: Any) -> str:
    """Return the name of a row with one setting varied."""
    return f"{row}; {setting} {value}"


def row_name(variant: str) -> str:
    """Return the name of the row that a variant belongs to; no name of a row has a semicolon."""
    return variant.partition(";")[0]


def load_table(name: str, path: Path | None = None) -> Table:
    """Read the settings of a table from its own file or from another one."""
    try:
        if path is not None:
            text = path.read_text(encoding="utf-8")
        else:
            text = resources.files("wgcn_paper").joinpath("settings", f"{name}.toml").read_text("utf-8")
        content = tomllib.loads(text)
        searched = _searched(name)
        rows = [_row(entry, searched) for entry in content.get("row", [])]
        vary = [(entry["setting"], entry["values"]) for entry in content.get("vary", [])]
        optional = {key: content[key] for key in ("set_seeds", "versions", "references") if key in content}
        protocols, seeds = content.get("protocols", []), content.get("seeds", 1)
        return Table(name, content["title"], content["datasets"], protocols, seeds, rows, vary, **optional)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
        where = path or f"settings/{name}.toml"
        reason = f"it lacks {error}" if isinstance(error, KeyError) else f"{error!r:.300}"
        raise InputError(f"{where} is no settings file for '{name}': {reason}.") from error


def _searched(name: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what a search has chosen for the rows of a table, by row and data set."""
    chosen: dict[str, dict[str, dict[str, Any]]] = {}
    try:
        text = resources.files("wgcn_paper").joinpath("settings", "searched", f"{name}.toml").read_text("utf-8")
    except OSError:
        return chosen
    for one in tomllib.loads(text)["chosen"]:
        chosen.setdefault(one["row"], {})[one["set"]] = one["settings"]
    return chosen


def _row(entry: Mapping[str, Any], searched: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Row:
    """Read a row. With ``like`` it inherits from the row of that name in the table of accuracies."""
    sets = dict(entry.get("set", {}))
    for name, values in searched.get(entry["name"], {}).items() if entry.get("searched") else ():
        sets[name] = {**sets.get(name, {}), **values}
    given = {key: value for key, value in entry.items() if key not in ("like", "searched", "set")}
    own = Row(**{**({"method": ""} if "like" in entry else {}), **given, "sets": sets})
    if "like" not in entry:
        return own
    rows = _accuracy_rows()
    if entry["like"] not in rows:
        raise InputError(f"There is no row {entry['like']!r} in the table of accuracies for {own.name!r} to be like.")
    model = rows[entry["like"]]
    sets = {name: {**model.sets.get(name, {}), **own.sets.get(name, {})} for name in {**model.sets, **own.sets}}
    return replace(own, method=model.method, settings={**model.settings, **own.settings}, sets=sets)


@lru_cache(maxsize=1)
def _accuracy_rows() -> dict[str, Row]:
    return {row.name: row for row in load_table("accuracy").rows}


def _check(what: str, given: Collection[str] | None, known: Sequence[str]) -> None:
    separator = "; " if any("," in name for name in known) else ", "
    for name in given or ():
        if name not in known:
            raise InputError(f"There is no {what} {name!r} in this table. There are: {separator.join(known)}.")
