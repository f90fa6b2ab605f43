"""What the experiments of the labelling loop share: their interface, their data, and what one process keeps of it."""

from __future__ import annotations

import time
from abc import abstractmethod
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from wgcn import WGCNTextClassifier
from wgcn.io.read import read_rows
from wgcn_paper.datasets import Dataset, load_dataset
from wgcn_paper.datasets.derived import SOURCES, derived
from wgcn_paper.datasets.layout import FILES, find_folder, set_path
from wgcn_paper.datasets.registry import known_set
from wgcn_paper.methods.baseline import Method, hold_out

Labels = npt.NDArray[Any]


class Measure(Method):
    """An experiment: it fits what it needs to the training documents, and measures it on the test documents.

    With the setting `held_out`, a fifth of the training documents take the place of the test documents, whose file is
    not opened: for trying things out.
    """

    version = 2  # 1: before subwords

    protocols = ("inductive",)
    defaults: ClassVar[dict[str, Any]] = {"held_out": False}

    @property
    def cost(self) -> float:
        """About how many fits of wgcn the experiment takes: the longest are begun first."""
        return 1.0

    @abstractmethod
    def measure(self, dataset: Dataset) -> dict[str, Any]:
        """Return what is measured, as JSON values by name, among it "accuracy" as a share."""


class Split(NamedTuple):
    """The two parts of a data set."""

    train: list[str]
    train_labels: Labels
    test: list[str]
    test_labels: Labels


def split_of(dataset: Dataset) -> Split:
    """Return training and test documents with their labels."""
    assert dataset.texts is not None
    train, test = ([dataset.texts[i] for i in part] for part in (dataset.train, dataset.test))
    return Split(train, dataset.labels[dataset.train], test, dataset.labels[dataset.test])


@lru_cache(maxsize=6)
def load_data(name: str, held_out: bool) -> Dataset:
    """Return a data set, or with `held_out` its training documents alone in two parts."""
    return held_out_dataset(name) if held_out else load_dataset(name)


def held_out_dataset(name: str) -> Dataset:
    """Return the training documents of a text set, a fifth of them as test documents. The test file is not opened."""
    if name in SOURCES:
        return derived(name, held_out_dataset(SOURCES[name]))
    file = set_path(find_folder(name), known_set(name)) / FILES["text"][0]
    rows = [(str(label), str(text)) for label, text in read_rows(file, [0, 1], header=False)]
    labels = np.array([label for label, _ in rows])
    held_out = hold_out(np.unique(labels, return_inverse=True)[1], 0.2, seed=0)
    parts = (np.flatnonzero(~held_out), np.flatnonzero(held_out))
    return Dataset(name, tuple(text for _, text in rows), None, labels, *parts)


def share(hits: npt.ArrayLike) -> float:
    """Return the share of what is true."""
    return float(np.mean(np.asarray(hits, bool)))


def svc_predict(
    train: csr_matrix, labels: Labels, *queries: csr_matrix
) -> list[tuple[Labels, npt.NDArray[np.float64]]]:
    """Fit LinearSVC and return labels and margins for each query; a margin is that between the two best classes.

    With labels of one class alone, which LinearSVC cannot learn from, all texts get it, with a margin of 0.
    """
    if len(set(labels.tolist())) < 2:
        return [(np.full(query.shape[0], labels[0]), np.zeros(query.shape[0])) for query in queries]
    model = LinearSVC(C=1.0, random_state=0).fit(train, labels)
    answers = []
    for query in queries:
        scores = model.decision_function(query)
        if scores.ndim == 1:
            answers.append((model.classes_[(scores > 0).astype(int)], np.abs(scores)))
        else:
            best = np.partition(scores, -2, axis=1)
            answers.append((model.classes_[scores.argmax(1)], best[:, -1] - best[:, -2]))
    return answers


@lru_cache(maxsize=1)
def full_fit(dataset: Dataset) -> WGCNTextClassifier:
    """Return wgcn fitted to all training documents with all labels; consecutive cells share it."""
    split = split_of(dataset)
    return WGCNTextClassifier().fit(split.train, split.train_labels)


@lru_cache(maxsize=2)
def tf_idf(dataset: Dataset) -> tuple[csr_matrix, csr_matrix]:
    """Return the usual tf-idf matrices, of shapes (train, words) and (test, words); the training texts give the idf."""
    split = split_of(dataset)
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    return vectorizer.fit_transform(split.train), vectorizer.transform(split.test)


class Clock:
    """Measures stages of work, in CPU seconds of the process and in wall seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}  # NAME_cpu and NAME_wall of each stage
        self.restart()

    def restart(self) -> None:
        """Begin a stage."""
        self._began = time.process_time(), time.perf_counter()

    def stop(self, name: str) -> None:
        """End a stage, and begin the next."""
        self.seconds[f"{name}_cpu"] = round(time.process_time() - self._began[0], 4)
        self.seconds[f"{name}_wall"] = round(time.perf_counter() - self._began[1], 4)
        self.restart()


@lru_cache(maxsize=1)
def small_fit() -> WGCNTextClassifier:
    """Return a model of a few texts: before times are measured, it loads compiled code."""
    labels = np.array(["wine", "car"] * 60)
    texts = [f"{label} {i % 7} {i % 11}" for i, label in enumerate(labels)]
    return WGCNTextClassifier().fit(texts, labels)
