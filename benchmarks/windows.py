"""Many short documents of real text: ``python -m benchmarks.windows --words 12 --settings tune,0.5,0.125``.

The training posts of 20NG are cut into windows of so many words, each a document with the group of its post as label:
217,549 of 12 words. A fifth of the posts are left out, and their windows are predicted; the test posts are not used.
Windows are shuffled, so what a fit holds out has other windows of the same posts: it says more about these than about
new posts. Needs the benchmark data (``WGCN_DATA``).
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from benchmarks import sets
from wgcn import WGCNTextClassifier

_LEAST = 4  # words of the last window of a post
Labelled = tuple[list[str], list[str]]


def windows(n_words: int, seed: int = 0) -> tuple[Labelled, Labelled]:
    """Return the windows of most posts, shuffled, and those of the others, with their labels."""
    texts, labels, _ = sets.split("20ng")
    rng = np.random.default_rng(seed)
    is_new = rng.random(len(texts)) < 0.2
    found: tuple[list[tuple[str, str]], ...] = [], []
    for text, label, new in zip(texts, labels, is_new.tolist(), strict=True):
        words = text.split()
        for begin in range(0, max(len(words) - _LEAST + 1, 0), n_words):
            found[int(new)].append((" ".join(words[begin : begin + n_words]), label))
    order = np.random.default_rng(seed + 1).permutation(len(found[0])).tolist()
    known, new = ([list(each) for each in zip(*rows, strict=True)] for rows in ([found[0][i] for i in order], found[1]))
    return (known[0], known[1]), (new[0], new[1])


def main() -> int:
    """Fit with settings that are chosen, or with a given C, and print the accuracy on new posts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.windows", description="Many short documents.")
    parser.add_argument("--words", type=int, default=12, help="per document (default: %(default)s)")
    parser.add_argument("--settings", default="tune", help="'tune', or values of C, with commas between them")
    options = parser.parse_args()
    (texts, labels), (new, truth) = windows(options.words)
    print(f"{len(texts):,} documents, {len(new):,} of new posts", flush=True)
    for given in options.settings.split(","):
        begin = time.perf_counter()
        tunes = given == "tune"
        model = WGCNTextClassifier(tune=tunes, C=0.5 if tunes else float(given)).fit(texts, labels)
        seconds = time.perf_counter() - begin
        right, held_out = np.mean(model.predict(new) == np.array(truth)), model.model_.report["held_out_accuracy"]
        chosen = "" if model.tuned_ is None else f", chose {model.tuned_.settings}"
        print(f"{given}: new posts {right:.4f}, held out {held_out:.4f}, {seconds:.0f} s{chosen}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
