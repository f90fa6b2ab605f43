"""WGCN for texts under the interface of the comparisons: the paper's network, and the linear model."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from wgcn.errors import InputError, interrupts_raised
from wgcn.estimators.matrix import WGCNClassifier
from wgcn.estimators.preparation import Prepared
from wgcn.estimators.text import WGCNTextClassifier
from wgcn.network.settings import NetworkSettings, TrainingSettings
from wgcn.text.word_vectors import DISTILLED
from wgcn_paper.datasets import load_dataset, stop_words
from wgcn_paper.methods.baseline import Baseline, Fit, array_digest
from wgcn_paper.methods.preparation import Kept

if TYPE_CHECKING:
    from wgcn.inference.model import TextModel
    from wgcn_paper.protocol import Query, Task

__all__ = ["LinearMethod", "NetworkMethod", "told"]

_NETWORK = ("hidden", "order", "word_activation", "residual", "word_dropout", "document_dropout", "centred")
_TRAINING = (
    "learning_rate",
    "weight_decay",
    "max_epochs",
    "patience",
    "stopping",
    "label_smoothing",
    "refit",
    "n_models",
    "validation_fraction",
)
_LINEAR = (
    "alpha",
    "learn_alpha",
    "order",
    "naive_bayes",
    "teacher",
    "self_training",
    "C",
    "loss",
    "class_prior",
    "tune",
)
_TEXT = ("tokenizer", "ngrams", "min_count", "stop_words", "sublinear", "norm")
_EXTENSIONS = ("", "graph", "spelling", "both", "vectors", "fit")
_GRAPH = ("window", "weight", "threshold", "min_pairs", "top_k", "smoothing")

# Vocabulary and graph depend on no label and no seed, so cells that follow each other share them.
_prepared: Kept[Prepared] = Kept(most=3)


def told(classifier: WGCNClassifier) -> Fit:
    """Return what a trained network tells."""
    history = classifier.history_
    # The first epochs warm caches and compile kernels.
    seconds = [record["seconds"] for record in history[2:] or history]
    return Fit(len(history), classifier.held_out_accuracy_, median(seconds))


class _TextMethod(Baseline):
    model: TextModel

    def fit(self, task: Task) -> Fit:
        """Learn from texts."""
        texts = task.texts
        assert texts is not None
        estimator = self._estimator()
        # Where there are n-grams, they have edges in the network's graph, and in the linear model's only if asked for.
        kind = self.name if self.settings["ngrams"] > 1 else None
        more = [self.settings.get(name) or None for name in ("ngram_edges", "vectors", "background")]
        source = [task.digest, self._pick((*_TEXT, *_GRAPH)), kind, more]
        prepared = _prepared.find(source, lambda: estimator.prepare(texts, background=self._background()))
        with interrupts_raised():  # a training that was cut short is no result
            estimator.fit_prepared(prepared, task.labels)
        self.model = model = self._extended(estimator.model_, task)
        digest = array_digest(
            model.vocabulary.words,
            model.weighting.idf,
            model.scorer.word_embeddings,
            model.scorer.class_weights,
            model.scorer.bias,
        )
        return self._told(estimator.classifier_)._replace(digest=digest)

    def predict(self, query: Query) -> npt.NDArray[Any]:
        """Return a label a text."""
        assert query.texts is not None
        return self.model.predict(query.texts)

    def _background(self) -> Iterator[str]:
        """Return texts from elsewhere."""
        for name in self.settings.get("background") or ():
            dataset = load_dataset(name)
            if dataset.texts is None:
                raise InputError(f"{name} has no texts to be a background.")
            for i in dataset.train:
                yield dataset.texts[i]

    def _extended(self, model: TextModel, task: Task) -> TextModel:
        """Return the model as it predicts."""
        return model

    def _estimator(self) -> WGCNTextClassifier:
        values = self._pick((*_TEXT, *_GRAPH))
        values["ngram_range"] = (1, values.pop("ngrams"))
        values["stop_words"] = stop_words() if values["stop_words"] else None
        values["top_k"] = values["top_k"] or None
        values["vectors"] = self.settings.get("vectors") or None
        values["ngram_edges"] = self.settings.get("ngram_edges") or None
        values["min_count"] = values["min_count"] or None
        return WGCNTextClassifier(**values, classifier=self._classifier())

    @abstractmethod
    def _classifier(self) -> WGCNClassifier:
        """Return the model with its settings, not yet fitted."""

    def _told(self, classifier: WGCNClassifier) -> Fit:
        return Fit(validation_accuracy=classifier.held_out_accuracy_)


class NetworkMethod(_TextMethod):
    """The paper's network (eq. 5 and 7) on the paper's vocabulary."""

    name = "wgcn"
    defaults: ClassVar = {
        "tokenizer": "text_gcn",
        "ngrams": 1,
        "stop_words": True,
        "min_count": 5,
        "sublinear": False,
        "norm": "l1",
        "window": 20,
        "weight": "pmi",
        "threshold": 0.0,
        "min_pairs": 1,
        "top_k": 0,
        "smoothing": 1.0,
        "hidden": 250,
        "order": 1,
        "word_activation": False,
        "residual": 0.0,
        "word_dropout": 0.6,
        "document_dropout": 0.6,
        "centred": False,
        "learning_rate": 0.018,
        "weight_decay": 0.0,
        "max_epochs": 800,
        "patience": 10,
        "stopping": "best",
        "label_smoothing": 0.0,
        "refit": False,
        "n_models": 1,
        "validation_fraction": 0.1,
    }

    def _classifier(self) -> WGCNClassifier:
        # Several networks take the seeds from here on, and no two fits may share one of them.
        seed = self.seed * self.settings["n_models"]
        training = TrainingSettings(**self._pick(_TRAINING), seed=seed, device=self.device)
        return WGCNClassifier(model="network", network=NetworkSettings(**self._pick(_NETWORK)), training=training)

    def _told(self, classifier: WGCNClassifier) -> Fit:
        return told(classifier)


class LinearMethod(_TextMethod):
    """The linear model with a residual, as `WGCNTextClassifier` has it by default.

    The problem is convex. Another seed holds other documents out, and so leads the solver to another point within its
    tolerance, which is not worth ten runs. With `tune`, another seed may also choose other settings, with
    `learn_alpha`, where it is not convex, lead to another answer, and with `average`, which adds the network with its
    default settings, it is the seed of that too.

    `background` names data sets whose training texts shape vocabulary and graph beside the task's own; a row of a table
    must not name one that shares texts with its own.

    `extend` says what becomes of words that fitting does not see: nothing; rows from the texts of the pool ("graph"),
    from their spelling, or from both; from what a sentence encoder makes of them ("vectors"); or "fit", if the texts of
    the pool are to be seen by fitting after all.
    """

    name = "wgcn-linear"
    seeded = False
    defaults: ClassVar = {
        "tokenizer": "words",
        "ngrams": 2,
        "ngram_edges": False,
        "stop_words": False,
        "min_count": 0,
        "sublinear": True,
        "norm": "l2",
        "window": 20,
        "weight": "pmi",
        "threshold": 0.0,
        "min_pairs": 2,
        "top_k": 0,
        "smoothing": 1.0,
        "background": [],
        "vectors": "",
        "alpha": 0.5,
        "learn_alpha": "",
        "order": 1,
        "naive_bayes": 0.5,
        "teacher": 2.0,
        "self_training": 0.3,
        "C": 0.5,
        "loss": "squared_hinge",
        "class_prior": "",
        "tune": False,
        "average": False,
        "extend": "",
    }
    earlier: ClassVar = {"self_training": 0.0}

    def __init__(self, settings: Mapping[str, Any] | None = None, seed: int = 0, device: str = "auto") -> None:
        super().__init__(settings, seed, device)
        if self.settings["extend"] not in _EXTENSIONS:
            raise InputError(f"extend must be one of {', '.join(map(repr, _EXTENSIONS))}.")

    def fit(self, task: Task) -> Fit:
        """Learn from texts; with "fit" from those of the pool too, which have no labels."""
        if self.settings["extend"] == "fit" and task.texts is not None:
            labels = np.concatenate([task.labels, np.full(len(task.pool), None, object)])
            task = replace(task, texts=task.texts + task.pool, labels=labels, pool=())
        return super().fit(task)

    def predict(self, query: Query) -> npt.NDArray[Any]:
        """Return a label a text. Words are looked up by spelling or vectors one by one, whatever else is asked for."""
        assert query.texts is not None
        model = self.model
        if self.settings["extend"] in ("spelling", "both"):
            model = model.extend(query.texts, "spelling")
        elif self.settings["extend"] == "vectors":
            model = model.extend(query.texts, "vectors", vectors=DISTILLED)
        return model.predict(query.texts)

    def _extended(self, model: TextModel, task: Task) -> TextModel:
        return model.extend(task.pool) if self.settings["extend"] in ("graph", "both") else model

    def _classifier(self) -> WGCNClassifier:
        values = self._pick(_LINEAR)
        values["learn_alpha"] = values["learn_alpha"] or None
        values["class_prior"] = values["class_prior"] or None
        classifier = WGCNClassifier(**values, random_state=self.seed)
        if self.settings["average"]:
            training = TrainingSettings(seed=self.seed, device=self.device)
            classifier.set_params(model="average", network=NetworkSettings(), training=training)
        # The number of trials alone ends the choice of settings: a result must not depend on how fast the machine is.
        return classifier.set_params(tune_seconds=math.inf) if classifier.tune else classifier

    def _told(self, classifier: WGCNClassifier) -> Fit:
        return told(classifier) if self.settings["average"] else super()._told(classifier)
