"""The defaults on R8, inductive: nothing of the test texts is seen in training."""

from pathlib import Path

import numpy as np

from wgcn import WGCNTextClassifier
from wgcn.text.read import read_rows


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


def test_r8_with_all_labels_and_with_a_twentieth(data_folder: Path) -> None:
    texts, labels = read(data_folder, "train")
    test, truth = read(data_folder, "test")
    assert WGCNTextClassifier().fit(texts, labels).score(test, truth) >= 0.975
    few = [WGCNTextClassifier().fit(texts, some(labels, 0.05, seed)).score(test, truth) for seed in range(3)]
    print(few)
    assert np.mean(few) >= 0.93
