"""Confidence beside accuracy after few labels, and models of shuffled rows, on the five sets.

``python -m benchmarks.reliability calibration`` fits to 2 to 100 drawn labels, the other training texts unlabelled, and
compares the mean probability of the predicted labels with their accuracy on the test texts. All classes are named to
the fit (``classes=``), since most of them have no label yet; with ``--known``, none is, and only test texts of classes
that have a label count.

``python -m benchmarks.reliability order`` fits to all labels and to 5 % of them, with the rows as they are and
shuffled, and reports the share of the test labels that change. Test labels are not looked at.

``python -m benchmarks.reliability shares`` fits to all labels, to 5 % and to 1 % of them, without shares of the classes
and with those of all training labels (``class_prior=``). ``mr-rare`` is MR with one negative review in ten.

Each finished fit is saved at once to the file of ``--output``, one line of JSON; fits in it are not made again. Needs
the benchmark data (``WGCN_DATA``).
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import sets
from benchmarks.measure import machine

LABELS = (2, 4, 8, 16, 32, 100)
SHARES = (1.0, 0.05)
PRIOR_SHARES = (1.0, 0.05, 0.01)
RARE = "mr-rare"
BINS = 15


@cache
def _texts(name: str) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return the training texts and labels, and the test texts and labels."""
    from wgcn.io.read import read_rows

    files = sets.files("mr" if name == RARE else name)
    parts = [[(str(label), str(text)) for label, text in read_rows(file, [0, 1], header=False)] for file in files]
    if name == RARE:
        parts = [[row for i, row in enumerate(part) if row[0] != "0" or i % 9 == 0] for part in parts]
    train, test = parts
    return (
        [text for _, text in train],
        [name for name, _ in train],
        [text for _, text in test],
        [name for name, _ in test],
    )


def drawn(labels: list[str], number: int, draw: int) -> list[str | None]:
    """Keep so many of the labels, of at least two classes; the others become None. More labels contain fewer."""
    order = np.random.default_rng(draw).permutation(len(labels))
    second = next(i for i, row in enumerate(order) if labels[row] != labels[order[0]])
    order[[1, second]] = order[[second, 1]]
    kept = {int(row) for row in order[:number]}
    return [label if i in kept else None for i, label in enumerate(labels)]


def calibration_error(likely: npt.NDArray[Any], right: npt.NDArray[Any]) -> float:
    """Return the expected calibration error: over bins of equal width, weighted by their texts (Guo et al. 2017)."""
    places = np.minimum((likely * BINS).astype(int), BINS - 1)
    sums = [np.bincount(places, values, BINS) for values in (likely, right)]
    return float(np.abs(sums[0] - sums[1]).sum() / len(likely))


def measure_calibration(name: str, number: int, draw: int, known: bool) -> dict[str, Any]:
    """Fit to so many labels, and return accuracy, mean confidence and calibration error on the test texts."""
    from wgcn import WGCNTextClassifier

    train, labels, test, truth = _texts(name)
    classes = [] if known else sorted(set(labels))
    model = WGCNTextClassifier(n_jobs=1).fit(train, drawn(labels, number, draw), classes=classes)
    likely, own = model.predict_proba(test), np.array(truth)
    judged = np.isin(own, model.classes_) if known else np.ones(len(own), bool)
    right = (model.classes_[likely.argmax(axis=1)] == own)[judged]
    confidence = likely.max(axis=1)[judged].astype(float)
    return {
        "accuracy": float(right.mean()),
        "confidence": float(confidence.mean()),
        "error": calibration_error(confidence, right),
    }


def measure_order(name: str, share: float, draw: int) -> dict[str, Any]:
    """Fit to shuffled rows; draw 0 is the order of the file. Return the predicted labels of the test texts."""
    from wgcn import WGCNTextClassifier

    train, labels, test, _ = _texts(name)
    given = sets.few_labels(labels, share) if share < 1 else list[str | None](labels)
    order = np.random.default_rng(draw).permutation(len(train)) if draw else np.arange(len(train))
    model = WGCNTextClassifier(n_jobs=1).fit([train[i] for i in order], [given[i] for i in order])
    tuned = None if model.tuned_ is None else dict(model.tuned_.settings)
    return {"codes": np.searchsorted(model.classes_, model.predict(test)).tolist(), "tuned": tuned}


def measure_shares(name: str, share: float, given: bool, draw: int) -> dict[str, Any]:
    """Fit to drawn labels, without or with the shares of the classes; return the accuracy on the test texts."""
    from wgcn import WGCNTextClassifier

    train, labels, test, truth = _texts(name)
    kept = drawn(labels, round(share * len(labels)), draw)
    classes, counts = np.unique([label for label in labels if label in set(kept)], return_counts=True)
    prior = dict(zip(classes.tolist(), (counts / counts.sum()).tolist(), strict=True)) if given else None
    model = WGCNTextClassifier(class_prior=prior, n_jobs=1).fit(train, kept)
    return {"accuracy": float(np.mean(model.predict(test) == np.array(truth)))}


def _run(command: str, cell: list[Any]) -> dict[str, Any]:
    warnings.simplefilter("ignore")  # about classes without labels
    measures: dict[str, Callable[..., dict[str, Any]]]
    measures = {"calibration": measure_calibration, "order": measure_order, "shares": measure_shares}
    return measures[command](*cell)


def run(command: str, cells: Iterable[list[Any]], output: Path, jobs: int) -> list[dict[str, Any]]:
    """Run cells that the file does not have yet; return the lines of all."""
    known = [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []
    done = {json.dumps(each["cell"]) for each in known}
    wanted = [cell for cell in cells if json.dumps(cell) not in done]
    here = machine()
    with ProcessPoolExecutor(jobs) as pool, output.open("a") as file:
        futures = {pool.submit(_run, command, cell): cell for cell in wanted}
        for future in as_completed(futures):
            line = {"cell": futures[future], "machine": here, **future.result()}
            known.append(line)
            file.write(json.dumps(line) + "\n")
            file.flush()
            print(f"{len(known)} of {len(done) + len(wanted)}: {futures[future]}", file=sys.stderr, flush=True)
    return known


def calibration_table(lines: list[dict[str, Any]]) -> str:
    """Return accuracy, confidence and calibration error, averaged over draws."""
    rows = [
        "| set | labels | draws | accuracy | mean confidence | calibration error |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, number in sorted({(each["cell"][0], each["cell"][1]) for each in lines}):
        own = [each for each in lines if each["cell"][:2] == [name, number]]
        means = (100 * float(np.mean([each[key] for each in own])) for key in ("accuracy", "confidence", "error"))
        rows.append(f"| {name} | {number} | {len(own)} | {' | '.join(f'{mean:.1f}' for mean in means)} |")
    return "\n".join(rows)


def order_table(lines: list[dict[str, Any]]) -> str:
    """Return how many test labels of shuffled rows differ from those of the order of the file."""
    rows = ["| set | labels | shuffles | labels changed, mean | most |", "|---|---:|---:|---:|---:|"]
    for name, share in sorted({(each["cell"][0], each["cell"][1]) for each in lines}):
        own = {each["cell"][2]: np.array(each["codes"]) for each in lines if each["cell"][:2] == [name, share]}
        changed = [100 * float(np.mean(codes != own[0])) for draw, codes in own.items() if draw and 0 in own]
        if changed:
            rows.append(f"| {name} | {share:.0%} | {len(changed)} | {np.mean(changed):.3f} % | {max(changed):.3f} % |")
    return "\n".join(rows)


def shares_table(lines: list[dict[str, Any]]) -> str:
    """Return the mean accuracy without and with given shares, and the difference."""
    rows = ["| set | labels | draws | without | shares given | difference |", "|---|---:|---:|---:|---:|---:|"]
    for name, share in sorted({(each["cell"][0], each["cell"][1]) for each in lines}):
        found = {tuple(each["cell"][2:]): each["accuracy"] for each in lines if each["cell"][:2] == [name, share]}
        draws = [draw for given, draw in found if given and (False, draw) in found]
        if draws:
            without, given = (100 * float(np.mean([found[way, draw] for draw in draws])) for way in (False, True))
            figures = f"{without:.1f} | {given:.1f} | {given - without:+.1f}"
            rows.append(f"| {name} | {share:.0%} | {len(draws)} | {figures} |")
    return "\n".join(rows)


def main() -> int:
    """Run what is asked for and print its table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reliability", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("command", choices=["calibration", "order", "shares"])
    parser.add_argument("sets", nargs="*", metavar="SET", help="20ng, mr, ohsumed, r52 or r8; by default all")
    parser.add_argument("--draws", type=int, default=10, help="of the labels, or shuffles (default: 10)")
    parser.add_argument("--labels", type=int, nargs="+", default=LABELS, help="how many labels (default: 2 to 100)")
    parser.add_argument("--known", action="store_true", help="name no classes, and judge those with a label")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each (default: 1)")
    parser.add_argument("--output", type=Path, required=True, help="file of finished fits, one line of JSON each")
    options = parser.parse_args()
    names = options.sets or sets.SETS
    cells: list[list[Any]]
    if options.command == "calibration":
        draws = range(options.draws)
        cells = [[name, n, draw, options.known] for draw in draws for name in names for n in options.labels]
        print(calibration_table(run(options.command, cells, options.output, options.jobs)))
    elif options.command == "shares":
        names = options.sets or [*sets.SETS, RARE]
        each = product(range(options.draws), names, PRIOR_SHARES, (False, True))
        cells = [[name, share, given, draw] for draw, name, share, given in each]
        print(shares_table(run(options.command, cells, options.output, options.jobs)))
    else:
        cells = [[name, share, draw] for draw in range(options.draws + 1) for name in names for share in SHARES]
        print(order_table(run(options.command, cells, options.output, options.jobs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
