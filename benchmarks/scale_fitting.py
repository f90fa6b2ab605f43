"""Fitting out of core: many short documents of 20 classes, in a stated memory.

Documents are made by a seeded generator: 8 to 12 words each, by Zipf's law, a third of them from the document's topic.
The topic is the class, but for 3 % of the labels, which are wrong.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Cell, Section, Target, in_seconds, run_cell, whole

SIZES = (10**6, 10**7)  # documents
LIMIT_GIGABYTES = 6.0

CLASSES, WORDS, NOISE, OF_TOPIC = 20, 200_000, 0.03, 0.35
PER_FILE = 500_000
TEST = 20_000


def write_documents(folder: Path, n_documents: int, seed: int = 0) -> tuple[list[Path], Path]:
    """Write shards of labelled documents, and a file of further ones whose labels are all right."""
    sizes = [min(PER_FILE, n_documents - begin) for begin in range(0, n_documents, PER_FILE)]
    paths = []
    for number, size in enumerate([*sizes, TEST]):
        is_test = number == len(sizes)
        paths.append(folder / ("test.csv" if is_test else f"{number:03}.csv"))
        with paths[-1].open("w", encoding="utf-8") as file:
            file.write("label,text\n")
            file.writelines(_lines(size, [seed, number], 0.0 if is_test else NOISE))
    return paths[:-1], paths[-1]


def _lines(n: int, seed: list[int], noise: float) -> Iterator[str]:
    import numpy as np

    rng, names = np.random.default_rng(seed), np.array([f"w{i}" for i in range(WORDS)], object)
    lengths, topics = rng.integers(8, 13, n), rng.integers(0, CLASSES, n)
    n_words = int(lengths.sum())
    ranks = (WORDS ** rng.random(n_words)).astype(np.int64) - 1  # p(rank) is about 1 / rank
    own = np.repeat(topics, lengths)
    of_topic = rng.random(n_words) < OF_TOPIC
    ranks[of_topic] = (ranks[of_topic] // CLASSES * CLASSES + own[of_topic]) % WORDS
    words = names[ranks].tolist()
    wrong = rng.random(n) < noise
    labels = np.where(wrong, rng.integers(0, CLASSES, n), topics).tolist()
    ends = np.cumsum(lengths).tolist()
    for label, begin, end in zip(labels, [0, *ends[:-1]], ends, strict=True):
        yield f"c{label},{' '.join(words[begin:end])}\n"


def fit_documents(size: int, folder: str, memory: str, scheduler: str | None = None) -> Cell:
    """Make documents and fit them out of core; return seconds, memory, and the accuracy on further ones."""
    import numpy as np

    from benchmarks.scale import WORKERS, peak_of_processes
    from wgcn.base.progress import Stage, reporting
    from wgcn.io.read import read_rows
    from wgcn.scale.files import fit_files

    stages: dict[str, float] = {}

    def report(stage: Stage) -> None:
        if stage.seconds is not None:
            stages[stage.name] = stages.get(stage.name, 0.0) + stage.seconds
            print(stage, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(dir=folder, prefix="wgcn-fitting-") as place:
        paths, test = write_documents(Path(place), size)
        how = {"memory": memory, "scheduler": scheduler, "n_workers": WORKERS, "work": Path(place, "work")}
        with peak_of_processes() as peak, reporting(report):
            begin = time.perf_counter()
            model = fit_files(paths, **how)  # type: ignore[arg-type]
            seconds, peak_mb = time.perf_counter() - begin, peak()
        labels, texts = zip(*read_rows(test, ["label", "text"]), strict=True)
        accuracy = float(np.mean(model.predict(texts) == np.array(labels)))
    fitted = {"terms": len(model.vocabulary), "edges": model.report["n_edges"], "accuracy": accuracy}
    return {"size": size, "seconds": seconds, "stages": stages, "peak_mb": peak_mb, **fitted}


def measure_fitting(sizes: tuple[int, ...], folder: str, memory: str) -> Section:
    """Measure fits to documents that are on disk."""
    cells = [
        run_cell(f"fitting: {size:,} documents", fit_documents, size=size, folder=folder, memory=memory)
        for size in sizes
    ]
    header = ("documents", "words and 2-grams", "edges", "seconds", "µs/document", "peak MB", "accuracy")
    rows = [
        (
            whole(cell["size"]),
            whole(cell["terms"]),
            whole(cell["edges"]),
            in_seconds(cell["seconds"]),
            whole(1e6 * cell["seconds"] / cell["size"]),
            whole(cell["peak_mb"]),
            f"{cell['accuracy']:.4f}",
        )
        for cell in cells
    ]
    stages = ", ".join(f"{name.lower()} {in_seconds(seconds)} s" for name, seconds in cells[-1]["stages"].items())
    peak = cells[-1]["peak_mb"] / 1e3
    remarks = [
        f"Documents of 8 to 12 words and {CLASSES} classes, {NOISE:.0%} of the labels wrong, with --memory {memory}. "
        f"The accuracy is that on {TEST:,} further documents whose labels are right. The last: {stages}.",
    ]
    targets = [Target(f"at most {LIMIT_GIGABYTES:g} GB", f"{peak:.2f} GB", peak <= LIMIT_GIGABYTES)]
    return Section("Fitting out of core", header, rows, cells, targets, remarks)
