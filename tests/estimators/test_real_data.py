"""R8 with few labels, inductive: nothing of the test texts is seen in training."""

from pathlib import Path

import numpy as np

from wgcn import WGCNTextClassifier
from wgcn.io.read import read_rows


def read(data_folder: Path, part: str) -> tuple[list[str], np.ndarray]:
    labels, texts = zip(*read_rows(data_folder / f"text/r8/{part}.tsv.gz", [0, 1], header=False), strict=True)
    return list(texts), np.array(labels)


def some(labels: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Keep a share of the labels of each class, at least one."""
    rng = np.random.default_rng(seed)
    kept = np.full(len(labels), None, dtype=object)
    for name in np.unique(labels):
        places = rng.permutation(np.flatnonzero(labels == name))
        kept[places[: max(1, round(share * len(places)))]] = name
    return kept


def test_r8_with_a_twentieth_of_the_labels(data_folder: Path) -> None:
    texts, labels = read(data_folder, "train")
    test, truth = read(data_folder, "test")
    assert WGCNTextClassifier(ngram_range=(1, 1)).fit(texts, some(labels, 0.05, 0)).score(test, truth) >= 0.92
