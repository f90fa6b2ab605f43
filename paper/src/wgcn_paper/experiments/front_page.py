"""The tables of the README, made of the runs of other tables as ``settings/readme.toml`` says."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from statistics import mean
from typing import Any

from wgcn.base.errors import InputError
from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.results import ResultFile
from wgcn_paper.experiments.table import Table, load_table

Runs = Callable[[str], Sequence[Run]]  # of a table


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return the tables with their introductions."""
    runs_of = cache(lambda name: ResultFile(folder, name).runs(load_table(name).all_cells()))
    text = resources.files("wgcn_paper").joinpath("settings", "readme.toml").read_text("utf-8")
    return "\n".join(_shown(each, runs_of) for each in tomllib.loads(text)["table"])


def _shown(table: Mapping[str, Any], runs_of: Runs) -> str:
    titles = {**TITLES, **table.get("titles", {})}
    header = [*table["header"], *(titles[name] for name in table["datasets"])]
    rule = ["---"] * len(table["header"]) + ["---:"] * len(table["datasets"])
    lines = [f"{table['intro']}\n", f"| {' | '.join(header)} |".replace("|  |", "| |"), f"|{'|'.join(rule)}|"]
    for group in table["group"]:
        places = [{"from": table["from"], **group, **row} for row in group["rows"]]
        figures = [[_figure(place, dataset, runs_of) for dataset in table["datasets"]] for place in places]
        best = [max(column) for column in zip(*figures, strict=True)]
        for place, values in zip(places, figures, strict=True):
            pairs = zip(values, best, strict=True)
            cells = [f"**{value:.1f}**" if f"{value:.1f}" == f"{top:.1f}" else f"{value:.1f}" for value, top in pairs]
            lines.append(f"| {' | '.join([*place['cells'], *cells])} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def _figure(place: Mapping[str, Any], dataset: str, runs_of: Runs) -> float:
    """Return the mean of the runs of a row on a data set, in percent."""
    runs = [
        run
        for run in runs_of(place["from"])
        if (run.cell.variant, run.cell.dataset) == (place["row"], dataset)
        if run.cell.protocol == place.get("protocol", run.cell.protocol)
    ]
    if not runs:
        raise InputError(
            f"There is no run on {dataset}: table {place['from']}, row {place['row']}. Run that table first, which may "
            "need wgcn-paper data prepare all."
        )
    return mean(100 * (run.metrics[place["metric"]] if "metric" in place else run.accuracy) for run in runs)
