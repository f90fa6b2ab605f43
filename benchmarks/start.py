"""How long a user waits for the command line: the prediction of one line, from the start of the program to its end."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks import sets
from benchmarks.fit import fit_wgcn
from benchmarks.measure import Cell, Section, Target, in_seconds, run_cell, whole

REPEATS = 5
LIMIT_SECONDS = 0.4  # with a model of r8
LINE = b"oil prices rose after the meeting of the opec ministers\n"


def measure_start() -> Section:
    names = ("r8", "20ng") if sets.available() else (sets.DOCS,)
    with tempfile.TemporaryDirectory() as folder:
        fitted = [run_cell(f"start: a model of {name}", fit_model, name=name, folder=folder) for name in names]
        commands = {
            "python -c 'import numpy'": ["-c", "import numpy"],
            "wgcn --help": ["-m", "wgcn", "--help"],
            **{f"wgcn predict, {name}": ["-m", "wgcn", "predict", str(Path(folder, name))] for name in names},
        }
        cells: list[Cell] = [{"command": name, "times": [], "words": 0} for name in commands]
        for _ in range(REPEATS + 1):  # the first is not counted: it has the files read from the disk, and compiled
            for cell, arguments in zip(cells, commands.values(), strict=True):
                cell["times"].append(seconds_of(arguments))
    for cell in cells:
        del cell["times"][0]
        cell["seconds"] = median(cell["times"])
    for cell, model in zip(cells[2:], fitted, strict=True):
        cell["words"] = model["words"]
    header = ("command", "seconds", "fastest", "slowest", "words of the model")
    rows = [
        (
            cell["command"],
            *(in_seconds(seconds) for seconds in (cell["seconds"], min(cell["times"]), max(cell["times"]))),
            whole(cell["words"]) if cell["words"] else "",
        )
        for cell in cells
    ]
    targets = [
        Target(
            f"wgcn predict of one line with a model of r8 in at most {LIMIT_SECONDS:g} s",
            f"{in_seconds(cell['seconds'])} s",
            cell["seconds"] <= LIMIT_SECONDS,
        )
        for cell in cells
        if cell["command"] == "wgcn predict, r8"
    ]
    remark = f"Median of {REPEATS} runs, from the start of the program to its end; predict is given one line."
    return Section("Start of the command line", header, rows, cells, targets, [remark])


def fit_model(name: str, folder: str) -> Cell:
    texts, labels, _ = sets.split(name)
    model = fit_wgcn(texts, labels).model_
    model.save(Path(folder, name))
    return {"set": name, "words": len(model.vocabulary)}


def seconds_of(arguments: list[str]) -> float:
    """Run Python with one line as standard input, as an installed program runs: with its compiled files kept."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    subprocess.run([sys.executable, *arguments], input=LINE, env=environment, capture_output=True, check=True)
    return time.perf_counter() - begin
