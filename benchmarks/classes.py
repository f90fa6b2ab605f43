"""Peak memory and time of a fit with very many classes: ``python -m benchmarks.classes 2000 --texts 2``.

Made-up short texts: a class has three words of its own among few, so that the table of words by classes stays small,
and a text has two of these and three of all. Labels are all known.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np


def texts_of(n_classes: int, per_class: int, n_words: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return texts and labels."""
    rng = np.random.default_rng(seed)
    own = rng.integers(0, n_words, (n_classes, 3))
    codes = np.repeat(np.arange(n_classes), per_class)
    order = rng.permuted(np.tile(np.arange(3), (len(codes), 1)), axis=1)[:, :2]
    words = np.hstack([own[codes[:, None], order], rng.integers(0, n_words, (len(codes), 3))])
    names = np.array([f"w{word:x}" for word in range(n_words)])
    return [" ".join(row) for row in names[words].tolist()], [f"class {code}" for code in codes.tolist()]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.classes", description=__doc__)
    parser.add_argument("classes", type=int)
    parser.add_argument("--texts", type=int, default=2, help="per class")
    parser.add_argument("--words", type=int, default=500)
    options = parser.parse_args()
    from wgcn import WGCNTextClassifier

    texts, labels = texts_of(options.classes, options.texts, options.words)
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, (time.perf_counter(), time.process_time())
    model = WGCNTextClassifier(ngram_range=(1, 1)).fit(texts, labels)
    seconds, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    right = np.mean(model.predict(texts[:1000]) == np.array(labels[:1000]))
    n_words, n_classes = model.word_embeddings_.shape
    predicting = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{len(texts):,} texts, {n_words:,} words, {n_classes:,} classes: {seconds:.1f} s ({cpu:.1f} s of CPU time); "
        f"peak {peak / 1e6:.2f} GB, {before / 1e6:.2f} GB before the fit, "
        f"{predicting / 1e6:.2f} GB after predicting 1,000 texts; {right:.1%} right"
    )


if __name__ == "__main__":
    main()
