"""Fits out of core beside fits in memory: ``python -m benchmarks.agreement r8 mr --share 0.01``.

Both predict the same test texts; their labels are not looked at. Needs the benchmark data (``WGCN_DATA``).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks import sets
from wgcn import WGCNTextClassifier
from wgcn.scale.files import fit_files

_FILES = 3


def compare(name: str, share: float) -> dict[str, float]:
    """Return the share of equal labels, and how long the fits took."""
    texts, labels, test = sets.split(name)
    given = sets.few_labels(labels, share) if share < 1 else list[str | None](labels)
    begin = time.perf_counter()
    inside = WGCNTextClassifier().fit(texts, given).model_
    middle = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{i}.jsonl") for i in range(_FILES)]
        edges = np.linspace(0, len(texts), _FILES + 1).astype(int)  # in order: held-out texts are drawn by their places
        for path, (first, last) in zip(paths, pairwise(edges.tolist()), strict=True):
            rows = zip(texts[first:last], given[first:last], strict=True)
            path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))
        outside = fit_files(paths)
    return {
        "equal": float(np.mean(inside.predict(test) == outside.predict(test))),
        "texts": len(test),
        "seconds": middle - begin,
        "seconds out of core": time.perf_counter() - middle,
    }


def main() -> int:
    """Compare the fits of some sets, and return 1 if labels differ for more than one text in a thousand."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agreement", description="Fits out of core and in memory."
    )
    parser.add_argument("sets", nargs="+", metavar="SET", help="20ng, mr, ohsumed, r52 or r8")
    parser.add_argument("--share", type=float, default=1.0, help="of the labels that are kept")
    options = parser.parse_args()
    least = 1.0
    for name in options.sets:
        found = compare(name, options.share)
        least = min(least, found["equal"])
        print(name, ", ".join(f"{key} {value:.4g}" for key, value in found.items()), flush=True)
    return int(least < 0.999)


if __name__ == "__main__":
    sys.exit(main())
