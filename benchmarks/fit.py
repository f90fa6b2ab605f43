"""Fitting from raw texts, with all labels and with few, beside tf-idf + LinearSVC; and a whole cross-validation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from benchmarks import sets
from benchmarks.measure import Cell, Section, Target, in_seconds, peak_megabytes, run_cell, whole

REPEATS = 5
FEW = 0.01  # share of the labels
PEER, ALL, SOME = "tf-idf + LinearSVC", "wgcn, all labels", f"wgcn, {FEW:.0%} of the labels"

# Times the seconds of the peer, which always has all labels.
LIMITS = {
    ALL: {"20ng": 0.8, "mr": 2.0, "ohsumed": 2.0, "r52": 2.0, "r8": 2.0},
    SOME: {"20ng": 1.2, "mr": 6.0, "ohsumed": 4.0, "r52": 4.0, "r8": 4.0},
}
LIMIT_GIGABYTES = 1.2  # for 20ng
LIMIT_CROSSVAL = 15.0  # seconds, for r8


# Fitting


def measure_fit() -> Section:
    names = sets.SETS if sets.available() else (sets.DOCS,)
    cells = [
        run_cell(f"fit: {name}, {method}, {repeat + 1} of {REPEATS}", fit_once, name=name, method=method)
        for name in names
        for repeat in range(REPEATS)  # the methods take turns, so that what else the machine does hits them alike
        for method in METHODS
    ]
    results = [summary(name, method, cells) for name in names for method in METHODS]
    header = ("set", "method", "texts", "seconds", "fastest", "slowest", "times the peer", "peak MB")
    rows = [
        (
            result["set"],
            result["method"],
            whole(result["texts"]),
            *(in_seconds(result[key]) for key in ("seconds", "fastest", "slowest")),
            f"{result['ratio']:.2f}",
            whole(result["peak_mb"]),
        )
        for result in results
    ]
    remark = (
        f"From raw strings, median of {REPEATS} fits, each in a process of its own after a small fit that loads "
        f"compiled code; the methods take turns. {PEER}: TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2)) and "
        f"LinearSVC(), with all labels. With {FEW:.0%} of the labels (stratified, at least one per class), wgcn is "
        "given the other training texts as unlabelled. peak: of the process, texts included, the highest of all "
        "repeats."
    )
    targets = [target for result in results for target in fit_targets(result)]
    return Section("Fitting from raw text", header, rows, results, targets, [remark])


def summary(name: str, method: str, cells: Sequence[Cell]) -> Cell:
    """Return what the repeats of a method on a set come to."""
    chosen = {key: [cell for cell in cells if (cell["set"], cell["method"]) == (name, key)] for key in (method, PEER)}
    times = [cell["seconds"] for cell in chosen[method]]
    return {
        "set": name,
        "method": method,
        "texts": chosen[method][0]["texts"],
        "seconds": median(times),
        "fastest": min(times),
        "slowest": max(times),
        "ratio": median(times) / median(cell["seconds"] for cell in chosen[PEER]),
        "peak_mb": max(cell["peak_mb"] for cell in chosen[method]),
        "times": times,
    }


def fit_targets(result: Cell) -> list[Target]:
    name, method, ratio = result["set"], result["method"], result["ratio"]
    found = []
    if limit := LIMITS.get(method, {}).get(name):
        wish = f"{name}: {method} in at most {limit:g} times the seconds of {PEER}"
        found.append(Target(wish, f"{ratio:.2f} times", ratio <= limit))
    if name == "20ng" and method != PEER:
        gigabytes = result["peak_mb"] / 1e3
        wish = f"{name}: {method} in at most {LIMIT_GIGABYTES:g} GB"
        found.append(Target(wish, f"{gigabytes:.2f} GB", gigabytes <= LIMIT_GIGABYTES))
    return found


def fit_once(name: str, method: str) -> Cell:
    texts, labels, _ = sets.split(name)
    fit = METHODS[method]
    given = sets.few_labels(labels, FEW) if method == SOME else labels
    warm_up(fit, texts, labels, method == SOME)
    begin = time.perf_counter()
    fit(texts, given)
    seconds = time.perf_counter() - begin
    return {"set": name, "method": method, "texts": len(texts), "seconds": seconds, "peak_mb": peak_megabytes()}


def warm_up(fit: Callable[[list[str], Any], Any], texts: list[str], labels: list[str], few: bool) -> None:
    """Fit a few hundred of the texts, which may be sorted by label, so that all code is compiled and loaded."""
    step = max(len(texts) // 300, 1)
    small = labels[::step]
    fit(texts[::step], sets.few_labels(small, 0.2) if few else small)


def svm_pipeline() -> Any:
    """Return the peer, unfitted."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    return make_pipeline(TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2)), LinearSVC())


def fit_svm(texts: list[str], labels: list[str]) -> Any:
    return svm_pipeline().fit(texts, labels)


def fit_wgcn(texts: list[str], labels: Any) -> Any:
    from wgcn import WGCNTextClassifier

    return WGCNTextClassifier().fit(texts, labels)


METHODS: dict[str, Callable[[list[str], Any], Any]] = {PEER: fit_svm, ALL: fit_wgcn, SOME: fit_wgcn}


# Cross-validation


def measure_crossval() -> Section:
    name = "r8" if sets.available() else sets.DOCS
    cells = [
        run_cell(f"crossval: {name}, {method}, {repeat + 1} of {REPEATS}", cross_validate, name=name, method=method)
        for repeat in range(REPEATS)
        for method in (PEER, ALL)
    ]
    results = [summary(name, method, cells) for method in (PEER, ALL)]
    for result, cell in zip(results, cells, strict=False):  # the first round of the repeats
        result["accuracy"] = cell["accuracy"]
    header = ("method", "seconds", "fastest", "slowest", "mean accuracy", "peak MB")
    rows = [
        (
            result["method"],
            *(in_seconds(result[key]) for key in ("seconds", "fastest", "slowest")),
            f"{result['accuracy']:.2%}",
            whole(result["peak_mb"]),
        )
        for result in results
    ]
    seconds = results[1]["seconds"]
    wish = f"{name}: five folds in at most {LIMIT_CROSSVAL:g} s"
    targets = [Target(wish, f"{in_seconds(seconds)} s", seconds <= LIMIT_CROSSVAL)] if name == "r8" else []
    remark = (
        f"cross_val_score(model, X, y, cv=5) on the training texts, median of {REPEATS} processes; wgcn is "
        "WGCNTextClassifier()."
    )
    return Section(f"Cross-validation, {name}", header, rows, results, targets, [remark])


def cross_validate(name: str, method: str) -> Cell:
    from sklearn.model_selection import cross_val_score

    from wgcn import WGCNTextClassifier

    texts, labels, _ = sets.split(name)
    warm_up(METHODS[method], texts, labels, False)
    begin = time.perf_counter()
    scores = cross_val_score(svm_pipeline() if method == PEER else WGCNTextClassifier(), texts, labels, cv=5)
    return {
        "set": name,
        "method": method,
        "texts": len(texts),
        "seconds": time.perf_counter() - begin,
        "accuracy": float(scores.mean()),
        "peak_mb": peak_megabytes(),
    }
