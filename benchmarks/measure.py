"""What every benchmark shares: cells in processes of their own, the machine, and tables.

A cell is one measurement. It runs in a fresh process, so that its peak memory is its own, and hands its figures back as
one line of JSON: ``python -m benchmarks.measure MODULE FUNCTION ARGUMENTS``.

Linux hands the peak memory of a process on to those it starts. So the process that starts the cells has to stay small:
the modules of this package import nothing heavy at their top (`import wgcn` loads what is used when it is used).
"""

import importlib
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

Cell = dict[str, Any]
Result = TypeVar("Result")

PACKAGES = ("wgcn", "numpy", "scipy", "numba", "scikit-learn")
REPEATS = 3


# Cells


def run_cell(label: str, function: Callable[..., Cell], **arguments: Any) -> Cell:
    """Call a function of one of these modules in a fresh process and return its figures."""
    print(f"Measuring {label} ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "benchmarks.measure", function.__module__, function.__name__]
    done = subprocess.run([*command, json.dumps(arguments)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"The cell '{label}' ended with code {done.returncode}; its own message stands above.")
    cell: Cell = json.loads(done.stdout.splitlines()[-1])
    return cell


def timed(function: Callable[[], Result], repeats: int = REPEATS) -> tuple[list[float], Result]:
    """Return the seconds that each of several calls took, and what the last call returned."""
    times = []
    result: Result | None = None
    for _ in range(repeats):
        result = None  # two results at a time would count twice in the peak memory
        begin = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - begin)
    assert result is not None
    return times, result


def peak_megabytes() -> float:
    """Return the peak memory of this process so far; NaN where the system does not tell."""
    from wgcn_paper.memory import peak_memory

    peak = peak_memory()
    return math.nan if peak is None else peak / 1e6


def resident_megabytes() -> float:
    """Return the memory that this process has now; the peak where the system does not tell."""
    file = Path("/proc/self/statm")
    return int(file.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6 if file.exists() else peak_megabytes()


# The machine


def machine() -> Cell:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": cores,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.platform(),
        "load_average": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "packages": {name: installed_version(name) for name in PACKAGES},
    }


def cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def installed_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def machine_lines(machine: Cell) -> list[str]:
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    return [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['system']}",
        f"Python {machine['python']}, {packages}",
        f"{machine['date']}, load average {machine['load_average']} before the first measurement",
        "",
        f"Seconds are the best of {REPEATS} after the kernels were compiled, unless a table says otherwise.",
        "Every cell has a fresh process, and peak memory is all of it, with interpreter, libraries and input.",
    ]


# Tables


@dataclass(frozen=True)
class Target:
    """What was wished for beside what was measured."""

    wish: str
    measured: str
    met: bool

    def __str__(self) -> str:
        return f"Target: {self.wish}. Measured: {self.measured}, {'met' if self.met else 'NOT met'}."


@dataclass(frozen=True)
class Section:
    """One part of the report: a table, remarks below it, and the figures behind it."""

    title: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    cells: Sequence[Cell] = ()
    targets: Sequence[Target] = ()
    remarks: Sequence[str] = ()
    errors: Sequence[str] = ()  # wrong results, for which the command fails

    def __str__(self) -> str:
        below = [*self.remarks, *map(str, self.targets), *(f"ERROR: {error}" for error in self.errors)]
        blocks = [f"## {self.title}", table(self.header, self.rows) if self.rows else "", "\n\n".join(below)]
        return "\n\n".join(block for block in blocks if block)

    def as_json(self) -> Cell:
        """Return the figures and the verdicts, without the table."""
        return {
            "title": self.title,
            "cells": list(self.cells),
            "targets": [asdict(target) for target in self.targets],
            "errors": list(self.errors),
        }


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an aligned Markdown table: names to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [
        [row[0].ljust(widths[0]), *(value.rjust(width) for value, width in zip(row[1:], widths[1:], strict=True))]
        for row in [header, rule, *rows]
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def in_seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def whole(value: float) -> str:
    return f"{value:,.0f}"


def main() -> None:
    """Be the process of one cell."""
    module, function, arguments = sys.argv[1:]
    cell = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    print(json.dumps(cell))


if __name__ == "__main__":
    main()
