"""Does the choice of settings gain? ``python -m benchmarks.tuning [--splits N] [SETS]``.

Training documents are divided at random, 80 % to fit and 20 % to judge, again and again, and the fit with the choice of
settings is compared with the one without. ``SET:N`` is a set with the first N words of each text: short texts.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks import sets
from wgcn import WGCNTextClassifier

DEFAULT = {"C": 0.5, "naive_bayes": 0.5, "lead": 0}
SETS = ("mr", "ohsumed", "r52", "r8", "20ng", "r52:10", "ohsumed:12", "20ng:12")


def measure(name: str, splits: int) -> None:
    base, _, n_words = name.partition(":")
    texts, labels, *_ = sets.split(base)
    if n_words:
        texts = [" ".join(text.split()[: int(n_words)]) for text in texts]
    given, known = np.array(texts, object), np.array(labels)
    gains, ratios, chosen = [], [], 0
    for split in range(splits):
        held_out = np.random.default_rng(split).random(len(given)) < 0.2
        accuracies, seconds = [], []
        for tune in (False, True):
            started = time.process_time()
            model = WGCNTextClassifier(tune=tune, n_jobs=1).fit(given[~held_out].tolist(), known[~held_out])
            seconds.append(time.process_time() - started)
            accuracies.append(100 * float(np.mean(model.predict(given[held_out].tolist()) == known[held_out])))
        chosen += model.tuned_ is not None and model.tuned_.settings != DEFAULT
        gains.append(accuracies[1] - accuracies[0])
        ratios.append(seconds[1] / seconds[0])
    error = np.std(gains, ddof=1) / np.sqrt(splits)
    print(
        f"{name}: {np.mean(gains):+.2f} points, standard error {error:.2f}; other settings in {chosen} of {splits} "
        f"splits; {np.median(ratios):.2f} times the CPU time",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("sets", nargs="*", default=SETS)
    options = parser.parse_args()
    for each in options.sets:
        measure(each, options.splits)
