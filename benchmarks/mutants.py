"""Mutants: one change of the library at a time, which the tests must notice.

`python -m benchmarks.mutants [--only WORD]` copies the library, makes each change there, runs the tests that are named
with it, and says which changes no test noticed. A change names the text before and after; the text before has to occur
exactly once in the library, wherever that is.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    """A change, and the tests that have to fail with it."""

    before: str
    after: str
    tests: str  # folders or files of tests, separated by spaces


MUTANTS = [
    # the word graph
    Mutant('side="right")]) + 1', 'side="right")])', "tests/graph"),
    Mutant("else abs(adjacency)", "else adjacency", "tests/graph"),
    Mutant(
        "block.data[block.data <= rules.threshold] = 0", "block.data[block.data < rules.threshold] = 0", "tests/graph"
    ),
    Mutant("low = max(begin, position - window + 1)", "low = max(begin, position - window)", "tests/graph"),
    Mutant("n += scratch[other, 0] >= min_count", "n += scratch[other, 0] > min_count", "tests/graph"),
    Mutant("if log_p < 0 else 1.0", "if log_p < 0 else 0.0", "tests/graph"),
    Mutant("graph = csr_array(graph.maximum(graph.T))", "graph = csr_array(graph)", "tests/graph"),
    Mutant("(order // 2, order - order // 2)", "(order, order)", "tests/graph"),
    Mutant('graph + eye_array(graph.shape[0], dtype=np.float32, format="csr")', "graph", "tests/graph"),
    Mutant("for _ in range(hops):", "for _ in range(hops - 1):", "tests/graph"),
    # from text to terms
    Mutant("(1 + document_counts)) + 1)", "(1 + document_counts)))", "tests/text"),
    Mutant("(1 + np.log(tf) if self.sublinear", "(np.log(tf) if self.sublinear", "tests/text"),
    Mutant("sizes = np.where(known > 0, known, sizes)", "sizes = known", "tests/text tests/scoring"),
    Mutant("(n_places >= _MIN_PLACES)", "(n_places > _MIN_PLACES)", "tests/text"),
    Mutant(
        "(sizes[document] > LONG)",
        "(sizes[document] >= LONG)",
        "tests/text tests/scoring tests/estimators/test_lead.py",
    ),
    Mutant("if n >= _SHORTEST:", "if n > _SHORTEST:", "tests/text"),
    # scores
    Mutant(
        "(scores[:, 1] - scores[:, 0]) / 2",
        "(scores[:, 1] - scores[:, 0])",
        "tests/scoring tests/estimators/test_matrix.py",
    ),
    Mutant("(scores > 0).astype(np.int64)", "(scores > 1).astype(np.int64)", "tests/scoring tests/model"),
    Mutant("scores[np.diff(offsets) == 0] =", "scores[np.diff(offsets) < 0] =", "tests/scoring tests/model"),
    Mutant(
        "logits = scores.astype(np.float64) * self.sharpness",
        "logits = scores.astype(np.float64)",
        "tests/scoring tests/linear",
    ),
    # the linear model
    Mutant(
        "np.maximum(1 - signs * scores, 0)\n    return slack",
        "np.maximum(2 - signs * scores, 0)\n    return slack",
        "tests/linear",
    ),
    Mutant("<= _FAR * self.problem.cost.max(initial=0))", ">= 0)", "tests/linear"),
    Mutant("= 0.5 * (own + self._loss(columns))", "= 0.5 * own + self._loss(columns)", "tests/linear"),
    Mutant("square = self._weight * self._weight", "square = self._weight", "tests/linear"),
    Mutant("added = 2 * n_inside", "added = 1 * n_inside", "tests/linear"),
    Mutant("contrast += self._dtype.type(1 - self._share)", "contrast += self._dtype.type(1)", "tests/linear"),
    Mutant("** 2 / (2 * n_documents)", "** 2 / (2000 * n_documents)", "tests/linear tests/estimators"),
    Mutant(
        "within -= np.sqrt(within * (1 - within) / n_known)",
        "within += np.sqrt(within * (1 - within) / n_known)",
        "tests/linear",
    ),
    Mutant("if claimed <= accuracy:", "if claimed <= 1:", "tests/linear tests/estimators/test_few_labels.py"),
    Mutant("np.sum(counts == 1) / (n_labels + _UNSEEN)", "np.sum(counts == 2) / (n_labels + _UNSEEN)", "tests/linear"),
    # labels
    Mutant(
        "        matrix.sort_indices()\n        return Targets(matrix, n_classes)",
        "        return Targets(matrix, n_classes)",
        "tests/labels",
    ),
    Mutant("> take[by_loss] + 1]", ">= take[by_loss] + 1]", "tests/labels"),
    Mutant("parts = [mask & np.isin(codes, codes[~mask]) for mask in parts]", "parts = list(parts)", "tests/labels"),
    Mutant("alike * (sizes[one] + sizes[other] - shared)", "alike * sizes[one]", "tests/labels"),
    Mutant(
        "np.lexsort((weight, codes, digests))", "np.lexsort((digests,))", "tests/labels tests/linear tests/estimators"
    ),
    # teacher and seeds
    Mutant("decided[~shares.any(axis=1)] = 0", "decided[~shares.any(axis=1)] += 0", "tests/semi"),
    Mutant("np.clip((kappa - _SLIGHT) / (_NO_TOPICS - _SLIGHT), 0, 1)", "np.clip(kappa, 0, 1)", "tests/semi"),
    Mutant("(shares.sum(axis=0, dtype=np.float64) + 1)", "shares.sum(axis=0, dtype=np.float64)", "tests/semi"),
    # trust and explanations
    Mutant(
        "information += np.log1p(1 / np.maximum(n_others + 1, 1))",
        "information -= np.log1p(1 / np.maximum(n_others + 1, 1))",
        "tests/trust",
    ),
    Mutant("np.maximum(standard, _LEAST) @ _WEIGHTS", "standard @ _WEIGHTS", "tests/trust"),
    Mutant("tail = 1 - rest * np.exp(-", "tail = 1 - np.exp(-", "tests/trust"),
    Mutant("coverage * (n + 1) - 1e-9", "coverage * n - 1e-9", "tests/trust"),
    Mutant("centre = (share + _Z**2 / (2 * n))", "centre = (share + _Z**2 / n)", "tests/trust"),
    Mutant(
        "strengths = factor * weights / own_factor[neighbours]",
        "strengths = factor * weights",
        "tests/explain tests/model",
    ),
    # the loop
    Mutant("1 - (two[:, 1] - two[:, 0])", "two[:, 1] - two[:, 0]", "tests/active"),
    Mutant("np.maximum(similar[row] - covered, 0) @ weight", "similar[row] @ weight", "tests/active"),
    Mutant("min(float(np.polyfit(n, error, 1)[0]), 0.0)", "float(np.polyfit(n, error, 1)[0])", "tests/active"),
    Mutant("left_out[texts] = 0", "left_out[texts] += 0", "tests/active"),
    # the network
    Mutant("self.n_done - self.best_epoch >= patience", "self.n_done - self.best_epoch > patience", "tests/network"),
    # files
    Mutant("> _ABANDONED_SECONDS and", "> 0 and", "tests/store tests/io"),
]


def locate(library: Path, text: str) -> Path:
    """Return the only file of the library that has the text, once."""
    found = [path for path in sorted(library.rglob("*.py")) if text in path.read_text(encoding="utf-8")]
    if len(found) != 1 or found[0].read_text(encoding="utf-8").count(text) != 1:
        raise SystemExit(f"{text!r} is in {len(found)} files, and has to be in the library once.")
    return found[0]


def fails(tests: Iterable[str], source: Path) -> bool:
    """Run tests on a copy of the library; return whether one of them fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(ROOT / "paper" / "src")])}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"The tests could not be run:\n{done.stdout[-2000:]}")
    return done.returncode == 1


def is_killed(mutant: Mutant, source: Path) -> bool:
    """Make the change in a copy of the library, run its tests, and take it back; return whether one failed."""
    path = locate(source / "wgcn", mutant.before)
    sound = path.read_text(encoding="utf-8")
    path.write_text(sound.replace(mutant.before, mutant.after), encoding="utf-8")
    try:
        return fails(mutant.tests.split(), source)
    finally:
        path.write_text(sound, encoding="utf-8")


def main() -> int:
    """Run the mutants whose text before has a word; the tests have to pass without any change."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=str(__doc__).splitlines()[0])
    parser.add_argument("--only", default="", help="only changes of texts that have this in them")
    only = parser.parse_args().only
    chosen, n_killed = [mutant for mutant in MUTANTS if only in mutant.before], 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "src")
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        if fails(sorted({path for mutant in chosen for path in mutant.tests.split()}), source):
            raise SystemExit("The tests fail without a change.")
        for mutant in chosen:
            n_killed += (killed := is_killed(mutant, source))
            print(f"{'killed  ' if killed else 'SURVIVED'} {mutant.before!r} -> {mutant.after!r}", flush=True)
    print(f"{n_killed} of {len(chosen)} killed")
    return int(n_killed < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
