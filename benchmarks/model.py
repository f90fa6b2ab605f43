"""Fitting and predicting from raw texts, beside tf-idf + LinearSVC and fastText on the same texts."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import sets
from benchmarks.fit import PEER, svm_pipeline
from benchmarks.measure import Cell, Section, Target, in_seconds, peak_megabytes, run_cell, timed, whole

METHODS = (PEER, "fastText", "wgcn")
Predict = Callable[[list[str]], Any]


def measure_models() -> Section:
    names = ("r8", "20ng") if sets.available() else (sets.DOCS,)
    cells = [
        row
        for name in names
        for method in METHODS
        for row in run_cell(f"model: {name}, {method}", fit_and_predict, name=name, method=method)["rows"]
    ]
    header = ("set", "method", "fit s", "texts/s, 1 core", "texts/s, 2 cores", "of 2 times", "peak MB")
    rows = [
        (
            cell["set"],
            cell["method"],
            in_seconds(cell["fit_seconds"]),
            whole(cell["texts"] / cell["seconds"]),
            whole(cell["texts_a_second_of_two"]),
            f"{cell['texts_a_second_of_two'] * cell['seconds'] / cell['texts'] / 2:.0%}",
            whole(cell["peak_mb"]),
        )
        for cell in cells
    ]
    remarks = [
        "Each method is fitted once on the training texts, with its defaults and all cores it uses by itself, and "
        "predicts labels for the test texts as raw strings (best of 3). 2 cores: two processes side by side. "
        f"{PEER} has 1- and 2-grams, as wgcn has; fastText has words alone, is given the texts with line breaks taken "
        "out, and splits them at white space."
    ]
    targets = [target for name in names for target in targets_of(name, cells)]
    return Section("Fitting and predicting from raw text", header, rows, cells, targets, remarks)


def targets_of(name: str, cells: list[Cell]) -> list[Target]:
    speed = {cell["method"]: cell["texts"] / cell["seconds"] for cell in cells if cell["set"] == name}
    pairs = [("wgcn, numpy alone", PEER), ("wgcn, with numba", "fastText")]
    return [
        Target(
            f"{name}: {ours} predicts at least as fast as {theirs} on one core",
            f"{speed[ours] / speed[theirs]:.2f} times",
            speed[ours] >= speed[theirs],
        )
        for ours, theirs in pairs
        if theirs in speed
    ]


def fit_and_predict(name: str, method: str) -> Cell:
    train, labels, test = sets.split(name)
    fit = {PEER: fit_svm, "fastText": fit_fasttext, "wgcn": fit_wgcn}[method]
    step = max(len(train) // 200, 1)  # texts may be sorted by label
    fit(train[::step], labels[::step])  # compiles what is to be compiled
    begin = time.perf_counter()
    ways = fit(train, labels)
    fit_seconds = time.perf_counter() - begin
    rows = []
    for way, predict in ways.items():
        predict(test[:10])
        times, _ = timed(lambda predict=predict: predict(test))  # type: ignore[misc]
        rows.append(
            {
                "set": name,
                "method": way,
                "fit_seconds": fit_seconds,
                "texts": len(test),
                "seconds": min(times),
                "times": times,
                "texts_a_second_of_two": two_processes(predict, test),
                "peak_mb": peak_megabytes(),
            }
        )
    return {"rows": rows}


def two_processes(predict: Predict, texts: list[str], repeats: int = 3) -> float:
    """Return how many texts a second two processes predict side by side."""
    import multiprocessing

    context = multiprocessing.get_context("fork")
    ready = context.Barrier(3)

    def work() -> None:
        predict(texts[:10])
        ready.wait()
        for _ in range(repeats):
            predict(texts)

    processes = [context.Process(target=work) for _ in range(2)]
    for process in processes:
        process.start()
    ready.wait()
    begin = time.perf_counter()
    for process in processes:
        process.join()
    return 2 * repeats * len(texts) / (time.perf_counter() - begin)


# The methods; each returns its ways to predict.


def fit_svm(texts: list[str], labels: list[str]) -> dict[str, Predict]:
    return {PEER: svm_pipeline().fit(texts, labels).predict}


def fit_fasttext(texts: list[str], labels: list[str]) -> dict[str, Predict]:
    import fasttext

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "train.txt")
        lines = zip(labels, texts, strict=True)
        file.write_text("".join(f"__label__{label} {' '.join(text.split())}\n" for label, text in lines))
        model = fasttext.train_supervised(str(file), verbose=0)
    return {"fastText": lambda batch: model.predict([text.replace("\n", " ") for text in batch])}


def fit_wgcn(texts: list[str], labels: list[str]) -> dict[str, Predict]:
    from unittest.mock import patch

    from wgcn import WGCNTextClassifier

    model = WGCNTextClassifier().fit(texts, labels).model_

    def numpy_alone(batch: list[str]) -> Any:
        with patch("wgcn.text.tokenize.term_code.is_compiled", False):  # as where numba is not installed
            return model.predict(batch)

    return {"wgcn, numpy alone": numpy_alone, "wgcn, with numba": model.predict}
