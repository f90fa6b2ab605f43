"""Adding documents to a model, beside a fit from scratch: time and predictions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from wgcn import WGCNTextClassifier
from wgcn_paper.datasets import Dataset
from wgcn_paper.measures.measure import Clock, Measure, share, split_of


class Update(Measure):
    """Fit most of the training documents, add the others with `update`, and fit all from scratch, in one run.

    - ``equal``: share of test documents that both give the same label;
    - ``accuracy``: after the update; ``accuracy_fit``: of the fit from scratch;
    - ``first``, ``update`` and ``fit``, each with ``_cpu`` and ``_wall``: seconds of the fit to most documents, of the
      update, and of the fit to all.
    """

    name = "update"
    defaults: ClassVar = {**Measure.defaults, "added": 0.1, "threads": 1}

    @property
    def cost(self) -> float:
        """Three fits, one of them to half of the documents, and two updates."""
        return 3.0

    def measure(self, dataset: Dataset) -> dict[str, Any]:
        """Return times and how many predictions are equal."""
        split = split_of(dataset)
        order = np.random.default_rng(self.seed).permutation(len(split.train))
        texts, labels = [split.train[i] for i in order], split.train_labels[order]
        n_first = len(order) - round(self.settings["added"] * len(order))
        threads = self.settings["threads"]
        half = len(order) // 2  # large enough for all code that the whole set takes: it is compiled or loaded here
        WGCNTextClassifier(n_jobs=threads).fit(texts[100:half], labels[100:half]).update(texts[:100], labels[:100])
        clock = Clock()
        updated = WGCNTextClassifier(n_jobs=threads).fit(texts[:n_first], labels[:n_first])
        clock.stop("first")
        updated.update(texts[n_first:], labels[n_first:])
        clock.stop("update")
        guesses = updated.predict(split.test)
        clock.restart()
        fitted = WGCNTextClassifier(n_jobs=threads).fit(texts, labels)
        clock.stop("fit")
        whole = fitted.predict(split.test)
        return {
            "accuracy": share(guesses == split.test_labels),
            "accuracy_fit": share(whole == split.test_labels),
            "equal": share(guesses == whole),
            **clock.seconds,
        }
