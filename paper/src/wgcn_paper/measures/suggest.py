"""Which texts to label next: accuracy against the number of labels, by who chooses the texts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from wgcn import WGCNTextClassifier
from wgcn_paper.datasets import Dataset
from wgcn_paper.measures.measure import Measure, Split, share, split_of, svc_predict, tf_idf

# Share of the training documents that a draw may choose from, so that draws differ without chance elsewhere.
_POOL = 0.9

Places = npt.NDArray[np.int64]


class Suggest(Measure):
    """A learning curve: the accuracy with n labels is the metric "n".

    Each draw has its own pool of training documents, the same for all ways. From one size to the next, one batch of
    texts is chosen from the pool, labelled, and a model is fitted:

    - ``wgcn``: by `WGCNTextClassifier.suggest`, from the first text on;
    - ``wgcn, random`` and ``svc, random``: at random, the same texts for both;
    - ``svc, margin``: the smallest margin between the two best classes of LinearSVC; the first batch is random.
    """

    name = "suggest"
    defaults: ClassVar = {**Measure.defaults, "way": "wgcn", "sizes": [10, 20, 50, 100, 150, 200, 300, 500]}

    @property
    def cost(self) -> float:
        """One fit per size; LinearSVC is quick on so few labels."""
        return len(self.settings["sizes"]) * (1.0 if self.settings.get("way", "").startswith("wgcn") else 0.1)

    def measure(self, dataset: Dataset) -> dict[str, Any]:
        """Return the accuracy of the last size, and of all sizes as metrics."""
        split = split_of(dataset)
        rng = np.random.default_rng(self.seed)
        pool = rng.permutation(len(split.train))[: int(_POOL * len(split.train))]
        sizes = [n for n in self.settings["sizes"] if n <= len(pool)]
        curve = {str(n): share(guesses == split.test_labels) for n, guesses in self._curve(dataset, split, pool, sizes)}
        return {"accuracy": curve[str(sizes[-1])], **curve}

    def _curve(
        self, dataset: Dataset, split: Split, pool: Places, sizes: list[int]
    ) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield each size and the labels that are predicted for the test texts; the pool is in random order."""
        way = self.settings["way"]
        return (_wgcn if way.startswith("wgcn") else _svc)(dataset, split, pool, sizes, way.endswith("random"))


def _wgcn(
    dataset: Dataset, split: Split, pool: Places, sizes: list[int], random: bool
) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    texts = [split.train[i] for i in pool]
    truth, labels = split.train_labels[pool], np.full(len(pool), None, object)
    model = WGCNTextClassifier()
    for size in sizes:
        left = np.flatnonzero([label is None for label in labels])
        n_new = size - (len(labels) - len(left))
        if random:
            new = left[:n_new]
        elif hasattr(model, "model_"):
            new = np.asarray(model.suggest(n_new))
        else:
            new = left[np.asarray(model.suggest(n_new, texts=[texts[i] for i in left]))]
        labels[new] = truth[new]
        known = [label for label in labels if label is not None]
        if len(known) != size:
            raise ValueError(f"{len(known)} texts have a label, not {size}: one was suggested twice")
        if len(set(known)) < 2:  # which nothing can be learnt from
            yield size, np.full(len(split.test), known[0])
            continue
        model.fit(texts, labels)
        yield size, model.predict(split.test)


def _svc(
    dataset: Dataset, split: Split, pool: Places, sizes: list[int], random: bool
) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    train, test = tf_idf(dataset)
    terms, truth = train[pool], split.train_labels[pool]
    labelled = np.empty(0, np.int64)
    margins = np.arange(len(pool), dtype=float)  # the first batch is random in either case
    for size in sizes:
        left = np.setdiff1d(np.arange(len(pool)), labelled)
        labelled = np.concatenate([labelled, left[np.argsort(margins[left], kind="stable")[: size - len(labelled)]]])
        (_, found), (guesses, _) = svc_predict(terms[labelled], truth[labelled], terms, test)
        margins = margins if random else found
        yield size, guesses


class SmallText(Suggest):
    """The same curve by small-text: BreakingTies with its linear support vector machine on tf-idf.

    The texts that it chooses are learnt by LinearSVC as in `Suggest`: the classifier of small-text 1.4 mixes up the
    classes while some of them have no label.
    """

    name = "small-text"
    packages = ("small_text",)
    defaults: ClassVar = {key: value for key, value in Suggest.defaults.items() if key != "way"}

    def measure(self, dataset: Dataset) -> dict[str, Any]:
        """Return the accuracy of the last size, and of all sizes as metrics."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it uses what it calls deprecated itself
            return super().measure(dataset)

    def _curve(
        self, dataset: Dataset, split: Split, pool: Places, sizes: list[int]
    ) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        from small_text import (
            BreakingTies,
            ConfidenceEnhancedLinearSVC,
            PoolBasedActiveLearner,
            SklearnClassifierFactory,
            SklearnDataset,
        )

        train, test = tf_idf(dataset)
        classes, codes = np.unique(split.train_labels, return_inverse=True)
        given = SklearnDataset(train[pool], codes[pool], target_labels=np.arange(len(classes)))
        factory = SklearnClassifierFactory(ConfidenceEnhancedLinearSVC(), len(classes))
        learner = PoolBasedActiveLearner(factory, BreakingTies(), given)
        first = np.arange(sizes[0])
        learner.initialize_data(first, codes[pool[first]])
        for size, following in zip(sizes, [*sizes[1:], 0], strict=True):
            chosen = pool[learner.indices_labeled]
            yield size, svc_predict(train[chosen], split.train_labels[chosen], test)[0][0]
            if following:
                new = learner.query(num_samples=following - size)
                learner.update(codes[pool[new]])
