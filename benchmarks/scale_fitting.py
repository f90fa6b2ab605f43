"""Fitting out of core: many short documents of 20 classes, in a stated memory.

Documents are made by a seeded generator: 8 to 12 words each, by Zipf's law, a third of them from the document's topic.
The topic is the class, but for 3 % of the labels, which are wrong.
"""

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Cell

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


class PeakMemory:
    """Watches the memory of this process and of all that it has started."""

    def __init__(self) -> None:
        self.peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "PeakMemory":
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.1):
            self.peak = max(self.peak, tree_bytes(os.getpid()))


def tree_bytes(root: int) -> int:
    """Return the resident memory of a process and its descendants."""
    parents: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            parents[int(entry.name)], sizes[int(entry.name)] = int(fields[1]), int(fields[21])
    total, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        total += sizes.get(process, 0)
        waiting += [child for child, parent in parents.items() if parent == process]
    return total * os.sysconf("SC_PAGE_SIZE")


def fit_cell(n_documents: int, memory: str = "4GB", scheduler: str | None = None) -> Cell:
    """Make documents, fit them out of core, and return seconds, peak memory and accuracy."""
    import numpy as np

    from wgcn.scale.files import fit_files
    from wgcn.text.read import read_rows

    with tempfile.TemporaryDirectory() as folder:
        paths, test = write_documents(Path(folder), n_documents)
        begin = time.perf_counter()
        with PeakMemory() as watched:
            model = fit_files(paths, memory=memory, scheduler=scheduler, work=Path(folder, "work"), verbose=True)
        seconds = time.perf_counter() - begin
        labels, texts = zip(*read_rows(test, ["label", "text"]), strict=True)
        accuracy = float(np.mean(model.predict(texts) == np.array(labels)))
    return {
        "n_documents": n_documents,
        "seconds": seconds,
        "peak_gb": watched.peak / 1e9,
        "accuracy": accuracy,
        "n_terms": len(model.vocabulary),
    }
