"""The paper's network, Text-GCN and Fast-GCN on one GPU: ``python -m benchmarks.gpu --data FOLDER --output FILE``.

Each set has the settings of the table of costs (`wgcn_paper/settings/efficiency.toml`), and each method is measured

- by epoch: training alone, where no figure is read back, and with the validation and the reading of its figures that a
  training has. Milliseconds are medians of repeats of many epochs, after a warm-up; the GPU is waited for at both ends;
- as a whole: seconds from the graph, which is made before, to the trained model, its epochs, the accuracy on the test
  documents, and the peak of the GPU's memory.

``--table FILE`` prints the results in a file as a table in Markdown, and ``--self-test`` compares products with those
that are known to be right.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from scipy.sparse import csr_array

from benchmarks.measure import Cell, installed_version, machine
from wgcn.files import write_file
from wgcn.network import training
from wgcn.network.module import sparse_matrix
from wgcn_paper.datasets import Dataset, load_dataset
from wgcn_paper.experiments.table import load_table
from wgcn_paper.methods.fast_gcn import FastGCNMethod
from wgcn_paper.methods.text_gcn import TextGCNMethod
from wgcn_paper.methods.wgcn import NetworkMethod
from wgcn_paper.protocol import Protocol, Task

SETS = ("mr", "r8", "r52", "20ng", "ohsumed")
METHODS: dict[str, type[NetworkMethod | TextGCNMethod | FastGCNMethod]] = {
    "WGCN": NetworkMethod,
    "Text-GCN": TextGCNMethod,
    "Fast-GCN": FastGCNMethod,
}
ROWS = {"WGCN": "WGCN, the paper's", "Text-GCN": "Text-GCN", "Fast-GCN": "Fast-GCN"}

Method = NetworkMethod | TextGCNMethod | FastGCNMethod
Epoch = Callable[[], Any]


def main() -> int:
    options = parse_arguments()
    if options.table:
        print("\n".join(table(json.loads(options.table.read_text())["cells"])))
        return 0
    if options.data:
        os.environ["WGCN_DATA"] = str(options.data)
    device = torch.device(options.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    report: dict[str, Any] = {"machine": machine() | gpu(device), "cells": []}
    say(json.dumps(report["machine"]))
    errors = self_test(device) if options.self_test else []
    for name in () if options.self_test else options.sets:
        for cell in measure_set(name, device, options.quick):
            report["cells"].append(cell)
            say(json.dumps(cell))
            save(options.output, report)
            if "error" in cell:
                errors.append(f"{name}, {cell['method']}: {cell['error']}")
    for error in errors:
        print(f"Error: {error}", file=sys.stderr)
    return 1 if errors else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description="Measure networks on a GPU.")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the benchmark data (default: WGCN_DATA)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the results to FILE, after every cell")
    parser.add_argument("--sets", type=lambda value: value.split(","), default=SETS, metavar="NAMES")
    parser.add_argument("--device", choices=("cpu", "cuda"))
    parser.add_argument("--quick", action="store_true", help="fewer epochs and repeats: does it run at all?")
    parser.add_argument("--self-test", action="store_true", help="check products")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print the results in FILE as a table, and end")
    return parser.parse_args()


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def save(path: Path | None, report: dict[str, Any]) -> None:
    if path is not None:
        content = json.dumps(report, indent=2) + "\n"
        write_file(path, lambda file: file.write(content.encode()))


# What depends on the device


def gpu(device: torch.device) -> Cell:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return {"gpu": name, "torch": torch.__version__, "triton": installed_version("triton")}


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def reset_peak(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def peak_mib(device: torch.device) -> float | None:
    return round(torch.cuda.max_memory_allocated(device) / 2**20, 1) if device.type == "cuda" else None


# One epoch, again and again


class CaughtError(Exception):
    """Ends a fit where its training would begin."""


def begin(method: Method, task: Task) -> tuple[Any, ...]:
    """Fit a method up to its training, and return the arguments of that."""

    def stop(*arguments: Any) -> None:
        raise CaughtError(*arguments)

    with patch.object(method, "_train", stop):
        try:
            method.fit(task)
        except CaughtError as caught:
            return caught.args
    raise AssertionError("The method never trained.")


def wgcn_epoch(method: NetworkMethod, task: Task, validated: bool) -> Epoch:
    classifier, prepared, _ = begin(method, task)
    labelled = np.flatnonzero([label is not None for label in task.labels])
    codes = np.unique(task.labels[labelled].astype(str), return_inverse=True)[1]
    run = training.Training(
        prepared.word_graph.adjacency, prepared.document_terms[labelled], codes, None, *classifier._settings()
    ).current_run()
    assert run is not None
    return run.train_epoch if validated else run._step


def baseline_epoch(method: TextGCNMethod | FastGCNMethod, task: Task, validated: bool) -> Epoch:
    rows, held_out = begin(method, task)
    method._keep_on_device(rows, held_out)
    optimizer = method._optimizer()
    shuffle = np.random.default_rng(0)

    def epoch() -> Any:
        total = method._train_epoch(rows, optimizer, shuffle)
        return [float(total), *method._validate(held_out)] if validated else total

    return epoch


def make_epoch(name: str, settings: dict[str, Any], task: Task, device: torch.device, validated: bool) -> Epoch:
    """Return a function that trains one epoch."""
    own = settings | {"validation_fraction": settings.get("validation_fraction", 0.1) if validated else 0.0}
    method = METHODS[name](own, 0, device.type)
    torch.manual_seed(0)
    if isinstance(method, NetworkMethod):
        return wgcn_epoch(method, task, validated)
    return baseline_epoch(method, task, validated)


def time_epochs(epoch: Epoch, device: torch.device, quick: bool) -> tuple[list[float], int]:
    """Return milliseconds per epoch of each repeat, and how many epochs a repeat had."""
    for _ in range(6):
        epoch()
    wait(device)
    started = time.perf_counter()
    for _ in range(2):
        epoch()
    wait(device)
    one = (time.perf_counter() - started) / 2
    repeats, most, seconds = (2, 20, 0.3) if quick else (5, 100, 1.5)
    n_epochs = int(min(most, max(seconds / one, 3)))
    times = []
    for _ in range(repeats):
        wait(device)
        started = time.perf_counter()
        for _ in range(n_epochs):
            epoch()
        wait(device)
        times.append(1000 * (time.perf_counter() - started) / n_epochs)
    return times, n_epochs


# The cells


@lru_cache(maxsize=1)
def load(name: str) -> Dataset:
    return load_dataset(name)


def settings_of(method: str, name: str) -> dict[str, Any]:
    """Return the settings of the table of costs for a whole training."""
    rows = {row.name: row for row in load_table("efficiency").rows}
    return rows[f"{ROWS[method]}, whole training"].settings_for(name)


def measure_set(name: str, device: torch.device, quick: bool) -> Iterator[Cell]:
    for method in METHODS:
        cell = {"set": name, "method": method}
        try:
            yield cell | measure(name, method, device, quick)
        except Exception as error:  # the other cells are still worth their time
            traceback.print_exc()
            yield cell | {"error": f"{type(error).__name__}: {error}"}


def measure(name: str, method: str, device: torch.device, quick: bool) -> Cell:
    task, settings = Protocol("corpus").task(load(name)), settings_of(method, name)
    cell: Cell = {}
    for key, validated in (("train", False), ("validated", True)):
        reset_peak(device)
        epoch = make_epoch(method, settings, task, device, validated)
        times, n_epochs = time_epochs(epoch, device, quick)
        cell |= {f"ms_{key}": round(median(times), 4), f"ms_{key}_times": [round(ms, 4) for ms in times]}
        cell |= {f"epochs_{key}": n_epochs, f"mib_{key}": peak_mib(device)}
        del epoch
    return cell | measure_whole(method, settings | ({"max_epochs": 8} if quick else {}), name, device)


def measure_whole(method: str, settings: dict[str, Any], name: str, device: torch.device) -> Cell:
    """Train as the table of accuracies does; vocabulary and graph are there already."""
    dataset, protocol = load(name), Protocol("corpus")
    task, query = protocol.task(dataset), protocol.query(dataset)
    begin(METHODS[method](settings, 0, device.type), task)
    made = METHODS[method](settings, 0, device.type)
    reset_peak(device)
    started = time.perf_counter()
    fit = made.fit(task)
    wait(device)
    seconds = time.perf_counter() - started
    accuracy = float(np.mean(made.predict(query) == dataset.labels[protocol.tested(dataset)]))
    return {
        "seconds": round(seconds, 3),
        "epochs": fit.epochs,
        "ms_epoch": round(1000 * (fit.seconds_per_epoch or 0.0), 4),
        "accuracy": round(accuracy, 5),
        "validation_accuracy": fit.validation_accuracy,
        "mib": peak_mib(device),
    }


# The table


def table(cells: list[Cell]) -> list[str]:
    """Return the lines of a table in Markdown."""
    head = ["set", "method", "ms per epoch", "ms, training alone"]
    head += ["whole training, s", "epochs", "test accuracy, %", "peak MiB"]
    lines = [f"| {' | '.join(head)} |", "|---|---|" + "---:|" * (len(head) - 2)]
    for cell in cells:
        if "ms_validated" not in cell:
            continue
        values = [cell["set"], cell["method"], f"{cell['ms_validated']:.2f}"]
        values += [f"{cell['ms_train']:.2f}", f"{cell['seconds']:.2f}", str(cell["epochs"])]
        values += [f"{100 * cell['accuracy']:.2f}", "" if cell["mib"] is None else f"{cell['mib']:,.0f}"]
        lines.append(f"| {' | '.join(values)} |")
    return lines


# The self-test


def self_test(device: torch.device) -> list[str]:
    """Return which products are wrong, or not the same every time."""
    rng = np.random.default_rng(0)
    dense_rows = rng.normal(size=(400, 3000)) * (rng.random((400, 3000)) < rng.random((400, 1)) ** 4)
    matrix = csr_array(dense_rows.astype(np.float32))
    wrong = []
    for width in (1, 8, 20, 200, 250, 300):
        dense = rng.normal(size=(3000, width)).astype(np.float32)
        sparse, factor = sparse_matrix(matrix, device), torch.from_numpy(dense).to(device)
        products = [(sparse @ factor).cpu().numpy() for _ in range(3)]
        error = float(np.abs(products[0] - matrix @ dense).max())
        same = all((product == products[0]).all() for product in products)
        say(f"product of width {width}: error {error:.2e}, the same bits: {same}")
        if error > 1e-3 or not same:
            wrong.append(f"product of width {width}: error {error}, the same bits: {same}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
