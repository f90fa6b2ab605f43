"""The paper's network, Text-GCN and Fast-GCN on one GPU: ``python -m benchmarks.gpu --data FOLDER --output FILE``.

Each set has the settings of the table of costs (`wgcn_paper/settings/efficiency.toml`), and each method is measured

- by epoch: training alone, where no figure is read back, and with the validation and the reading of its figures that a
  training has. Milliseconds are medians of repeats of many epochs, after a warm-up; the GPU is waited for at both ends;
- as a whole: seconds from the graph, which is made before, to the trained model, its epochs, the accuracy on the test
  documents, and the peak of the GPU's memory.

"CUDA graph" replays recorded epochs (`wgcn.network.cuda.Recorded`), "kernels" starts every kernel from Python. Fast-GCN
cannot be recorded: it draws on the CPU, and its batches differ in size. On a CPU nothing is recorded.

``--table FILE`` prints the results in a file as a table in Markdown, ``--tune`` times the products alone with several
settings, and ``--self-test`` compares products and epochs with those that are known to be right.
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
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from benchmarks.measure import Cell, installed_version, machine
from wgcn.base.files import write_file
from wgcn.network import cuda, training
from wgcn.network.module import sparse_matrix, sparse_tensor
from wgcn.network.settings import EpochRecord
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
GRAPH, KERNELS = "CUDA graph", "kernels"

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
        cells = tune(name, device) if options.tune else measure_set(name, device, options.quick)
        for cell in cells:
            report["cells"].append(cell)
            say(json.dumps(cell))
            save(options.output, report)
            if "error" in cell:
                errors.append(f"{name}, {cell.get('method')}, {cell.get('way')}: {cell['error']}")
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
    parser.add_argument("--self-test", action="store_true", help="check products and recorded epochs")
    parser.add_argument("--tune", action="store_true", help="compare settings of the sparse product")
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
        torch._C._cuda_clearCublasWorkspaces()  # one for every stream that was ever used
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def peak_mib(device: torch.device) -> float | None:
    return round(torch.cuda.max_memory_allocated(device) / 2**20, 1) if device.type == "cuda" else None


@contextmanager
def way_of(way: str) -> Iterator[None]:
    """Record epochs or not: without a recording the warm-up never ends."""
    with patch.object(cuda.Recorded, "warm_up", cuda.Recorded.warm_up if way == GRAPH else 10**9):
        yield


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
    return run.train_epoch if validated else partial(run.recorded, run._step)


def baseline_epoch(method: TextGCNMethod | FastGCNMethod, task: Task, validated: bool) -> Epoch:
    rows, held_out = begin(method, task)
    method._keep_on_device(rows, held_out)
    optimizer = method._optimizer()
    if method.recordable:
        step = partial(method._whole_epoch, rows, held_out, optimizer)
        recorded = cuda.Recorded(optimizer)
        return (lambda: recorded(step).tolist()) if validated else partial(recorded, step)
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
    for _ in range(6):  # kernels are compiled, and the epoch is recorded
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
    for method, kind in METHODS.items():
        ways = (GRAPH, KERNELS) if device.type == "cuda" and getattr(kind, "recordable", True) else (KERNELS,)
        for way in ways:
            cell = {"set": name, "method": method, "way": way}
            try:
                with way_of(way):
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


# Settings of the sparse product

SHAPES = [(256, 1, 4), (256, 4, 2), (256, 8, 2), (128, 4, 1), (128, 8, 2), (64, 16, 2)]
SIDES, CELLS = (1024, 2048, 4096), (0.015, 0.03, 0.06)


def tune(name: str, device: torch.device) -> Iterator[Cell]:
    """Time the products of a set with several settings of the kernel, beside cuSPARSE and a dense matrix."""
    task = Protocol("corpus").task(load(name))
    _, prepared, _ = begin(NetworkMethod(settings_of("WGCN", name), 0, device.type), task)
    n_labels = sum(label is not None for label in task.labels)
    terms = csr_array(prepared.document_terms[:n_labels], dtype=np.float32)
    matrices = {"A": prepared.word_graph.adjacency, "X": terms, "X^T": csr_array(terms.T)}
    for what, matrix in matrices.items():
        dense = torch.randn(matrix.shape[1], 250, device=device)
        tensor = sparse_tensor(matrix, device)
        cell = {"set": name, "matrix": what, "shape": matrix.shape, "entries": matrix.nnz}
        found: dict[str, float] = {}
        for longest in (1024, 256):
            pieces = cuda.cut(tensor, longest)
            for shape in SHAPES:
                with patch.multiple(cuda, _COLUMNS=shape[0], _ROWS=shape[1], _WARPS=shape[2]):
                    found[f"{longest}: {shape}"] = time_product(partial(cuda.multiply, tensor, pieces, dense), device)
        found["as it is"] = time_product(partial(cuda.multiply, tensor, cuda.cut(tensor), dense), device)
        found["torch"] = time_product(partial(torch.matmul, tensor, dense), device, recorded=False)
        if what == "A" and matrix.shape[0] < 20_000:
            full = torch.from_numpy(matrix.toarray()).to(device)
            found["dense"] = time_product(partial(torch.matmul, full, dense), device)
        yield cell | {"ms": found, "best": min(found, key=lambda key: found[key])}
        if what == "A":
            yield from tune_blocks(cell, matrix, tensor, dense)


def tune_blocks(cell: Cell, matrix: csr_array, tensor: Tensor, dense: Tensor) -> Iterator[Cell]:
    """Time the product with dense blocks of several sizes, more of them and fewer, and its two parts."""
    device = dense.device
    for side in SIDES:
        for relative in CELLS:
            blocks = cuda.make_blocks(tensor, int(4e9 / (6 * side**2)), side, relative)
            own = cell | {"side": side, "cell": relative}
            if blocks is None:
                yield own | {"blocks": 0}
                continue
            whole = partial(cuda.multiply, tensor, None, dense, blocks)
            rest = partial(cuda.multiply, blocks.rest, blocks.pieces, dense)
            part = partial(cuda.add_blocks, blocks, dense, torch.zeros_like(dense))
            yield own | {
                "blocks": len(blocks.values),
                "mib": round(blocks.values.numel() * 2 / 2**20),
                "rest": round(len(blocks.rest.values()) / matrix.nnz, 4),
                "ms": {"whole": time_product(whole, device), "rest": time_product(rest, device)}
                | {"blocks": time_product(part, device), "only bmm": time_bmm(blocks, dense)},
                "relative_error": relative_error(whole(), matrix, dense),
                "error_sparse": relative_error(cuda.multiply(tensor, cuda.cut(tensor), dense), matrix, dense),
            }
            del blocks, whole, rest, part


def time_bmm(blocks: cuda.Blocks, dense: Tensor) -> float | None:
    if dense.device.type == "cpu":
        return None
    n, _, depth = blocks.values.shape
    factors = torch.randn(n, depth, -(-dense.shape[1] // 8) * 8, device=dense.device).bfloat16()
    return time_product(lambda: torch.bmm(blocks.values, factors, torch.float32), dense.device)


def relative_error(product: Tensor, matrix: csr_array, dense: Tensor) -> float:
    """Return the norm of the error over that of the product, for some rows, against double precision."""
    rows = np.unique(np.linspace(0, matrix.shape[0] - 1, 500).astype(int))
    exact = csr_array(matrix[rows], dtype=np.float64) @ dense.cpu().numpy().astype(np.float64)
    return float(np.linalg.norm(product.cpu().numpy()[rows] - exact) / np.linalg.norm(exact))


def time_product(
    product: Callable[[], Tensor], device: torch.device, repeats: int = 20, recorded: bool = True
) -> float:
    """Return the milliseconds of a product; recorded, the start of its kernels takes no time."""
    for _ in range(3):
        product()
    again: Callable[[], Any] = product
    if recorded and device.type == "cuda":
        again = record(product)[0].replay
    wait(device)
    started = time.perf_counter()
    for _ in range(repeats):
        again()
    wait(device)
    return round(1000 * (time.perf_counter() - started) / repeats, 4)


def record(product: Callable[[], Tensor]) -> tuple[torch.cuda.CUDAGraph, Tensor]:
    """Return a CUDA graph and where its result is."""
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        product()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        result = product()
    return graph, result


# The table


def table(cells: list[Cell]) -> list[str]:
    """Return the lines of a table in Markdown."""
    found = {(cell["set"], cell["method"], cell["way"]): cell for cell in cells if "ms_validated" in cell}
    head = ["set", "method", "ms per epoch, CUDA graph", "ms per epoch, kernels", "ms, training alone"]
    head += ["whole training, s", "epochs", "test accuracy, %", "peak MiB"]
    lines = [f"| {' | '.join(head)} |", "|---|---|" + "---:|" * (len(head) - 2)]
    for name, method in dict.fromkeys(key[:2] for key in found):
        graph, kernels = (found.get((name, method, way)) for way in (GRAPH, KERNELS))
        best = graph or kernels or {}
        values = [name, method, *(f"{cell['ms_validated']:.2f}" if cell else "" for cell in (graph, kernels))]
        values += [f"{best['ms_train']:.2f}", f"{best['seconds']:.2f}", str(best["epochs"])]
        values += [f"{100 * best['accuracy']:.2f}", "" if best["mib"] is None else f"{best['mib']:,.0f}"]
        lines.append(f"| {' | '.join(values)} |")
    return lines


# The self-test


def made_task(n_documents: int = 400, n_words: int = 300) -> Task:
    """Return texts of two kinds, half of them labelled, from words as frequent as in a language."""
    rng = np.random.default_rng(0)
    kinds = np.arange(n_documents) % 2
    share = 1 / np.arange(1, n_words + 1)
    texts = []
    for kind in kinds:
        own = np.roll(share, 40 * kind)
        texts.append(" ".join(f"w{word}" for word in rng.choice(n_words, 30, p=own / own.sum())))
    labels = np.array(["one", "two"], object)[kinds]
    labels[n_documents // 2 :] = None
    return Task(tuple(texts), None, labels, np.empty(0, np.int64), None)


TEXTS = {"stop_words": False, "min_count": 1}
DRY = {
    "WGCN": {"word_dropout": 0.0, "document_dropout": 0.0, "hidden": 32},
    "Text-GCN": {"input_dropout": 0.0, "dropout": 0.0, "hidden": 32},
}
WET = {
    "WGCN": {"word_dropout": 0.5, "document_dropout": 0.5, "hidden": 32},
    "Text-GCN": {"input_dropout": 0.5, "dropout": 0.5, "hidden": 32},
}
VARIANTS: list[dict[str, Any]] = [{}, {"word_activation": True}, {"centred": True, "order": 2}, {"residual": 0.3}]


def losses(name: str, settings: dict[str, Any], device: torch.device, way: str, validated: bool, n: int) -> Any:
    """Return the figures of some epochs, (epochs, figures)."""
    with way_of(way):
        epoch = make_epoch(name, TEXTS | settings, made_task(), device, validated)
        found = [epoch() if validated else epoch().clone() for _ in range(n)]
    if isinstance(found[0], EpochRecord):
        return np.array([[one.loss, one.validation_loss, one.validation_accuracy] for one in found])
    return np.array([one.tolist() if isinstance(one, Tensor) else one for one in found])


def self_test(device: torch.device) -> list[str]:
    """Return what is wrong."""
    wrong = check_products(device) + check_blocks(device)
    for name in DRY:
        for validated in (False, True):
            for variant in VARIANTS if name == "WGCN" else VARIANTS[:1]:
                wrong += compare(f"no dropout {variant}", name, DRY[name] | variant, device, validated, 1e-5)
            # The same numbers are drawn in either way, so that not even dropout makes a difference.
            wrong += compare("dropout", name, WET[name], device, validated, 1e-4)
        # Weights that do not move: losses differ by what is dropped alone.
        still = losses(name, WET[name] | {"learning_rate": 1e-30}, device, GRAPH, False, 20)
        say(f"{name}: {len(np.unique(still))} different losses in 20 epochs with fixed weights")
        if len(np.unique(still)) < 18:
            wrong.append(f"{name}: a replay draws the same again: {still.ravel().tolist()}")
    return wrong


def check_blocks(device: torch.device) -> list[str]:
    """Check the product with dense blocks, and epochs that have it."""
    wrong = []
    share = 1 / np.arange(1, 6001)
    rng = np.random.default_rng(0)
    links = np.triu(rng.random((6000, 6000)) < 4000 * share[:, None] * share) * rng.random((6000, 6000))
    matrix = csr_array(links + np.triu(links, 1).T, dtype=np.float32)
    tensor = sparse_tensor(matrix, device)
    for width in (64, 100, 250, 256):
        blocks = cuda.make_blocks(tensor, 100, 512)
        assert blocks is not None
        dense = torch.from_numpy(rng.normal(size=(6000, width)).astype(np.float32)).to(device)
        products = [cuda.multiply(tensor, None, dense, blocks) for _ in range(3)]
        if device.type == "cuda":
            graph, result = record(partial(cuda.multiply, tensor, None, dense, blocks))
            graph.replay()
            wait(device)
            products.append(result)
        error = relative_error(products[0], matrix, dense)
        same = all(torch.equal(product, products[0]) for product in products)
        say(f"{len(blocks.values)} blocks, width {width}: relative error {error:.2e}, the same bits: {same}")
        if error > 2e-5 or not same:
            wrong.append(f"blocks of width {width}: error {error}, the same bits: {same}")
    settings = DRY["WGCN"] | {"hidden": 64}
    without = losses("WGCN", settings, device, KERNELS, True, 30)
    with patch.object(cuda.make_blocks, "__defaults__", (32, 0.03)):
        wrong += compare("blocks", "WGCN", settings, device, True, 1e-5)
        with_blocks = losses("WGCN", settings, device, KERNELS, True, 30)
    difference = float(np.abs(with_blocks - without)[:, :2].max())
    say(f"WGCN: with blocks the losses differ by {difference:.2e}")
    return wrong if difference < 1e-3 else [*wrong, f"WGCN: with blocks the losses differ by {difference}"]


def compare(
    what: str, name: str, settings: dict[str, Any], device: torch.device, validated: bool, tol: float
) -> list[str]:
    label = f"{name}, {what}, {'with' if validated else 'without'} validation"
    try:
        one, other = (losses(name, settings, device, way, validated, 30) for way in (GRAPH, KERNELS))
    except Exception as error:
        traceback.print_exc()
        return [f"{label}: {type(error).__name__}: {error}"]
    difference = float(np.abs(one - other)[:, :2].max())
    say(f"{label}: largest difference {difference:.2e}, from {one[0, 0]:.4f} to {one[-1, 0]:.4f}")
    return [f"{label}: recorded epochs differ by {difference}"] if difference > tol * max(1, np.abs(one[0, 0])) else []


def check_products(device: torch.device) -> list[str]:
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
