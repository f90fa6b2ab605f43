"""WGCN for texts under the interface of all methods: the paper's network, and the linear model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.errors import InputError, interrupts_raised
from wgcn.estimators.matrix import WGCNClassifier
from wgcn.estimators.network import WGCNNetworkClassifier
from wgcn.estimators.preparation import Preparation, Prepared
from wgcn.graph import WordGraph
from wgcn.linear.tuning import LEADS
from wgcn_paper.datasets import load_dataset, stop_words
from wgcn_paper.methods.baseline import Baseline, Fit, array_digest
from wgcn_paper.methods.preparation import Kept
from wgcn_paper.vectors import word_vector_matrix

if TYPE_CHECKING:
    from wgcn.model.text_model import TextModel
    from wgcn_paper.protocol import Query, Task


_LINEAR = ("alpha", "subwords", "naive_bayes", "teacher", "self_training", "C", "tune")
_TEXT = ("tokenizer", "ngrams", "min_count", "stop_words", "sublinear", "norm")
_EXTENSIONS = ("", "graph", "fit", "drop")
_GRAPH = ("window", "weight", "threshold", "min_pairs", "top_k", "smoothing")
# Settings that the library no longer has, with the only value that can still be run.
_RETIRED = {"smoothing": 1.0, "learn_alpha": "", "loss": "squared_hinge", "average": False}

# Vocabulary and graph depend on neither labels nor seed, so consecutive cells share them.
_prepared: Kept[Prepared] = Kept(most=3)


def network_fit(classifier: WGCNNetworkClassifier) -> Fit:
    """Return the report of a trained network."""
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
        self._check_retired()
        preparation, classifier = self._preparation(), self._classifier()
        # N-grams have edges in the network's graph, and in the linear model's only with `ngram_edges`.
        kind = self.name if self.settings["ngrams"] > 1 else None
        more = [self.settings.get(name) or None for name in ("ngram_edges", "vectors", "background")]
        source = [task.digest, self._pick((*_TEXT, *_GRAPH)), kind, more]
        leads = LEADS if self.settings.get("tune") else ()
        prepared = _prepared.find(
            [*source, leads], lambda: preparation.prepare(texts, background=self._background(), leads=leads)
        )
        with interrupts_raised():  # a training that was interrupted is not a result
            self._train(classifier, prepared, task)
        if classifier.tuned_ is not None:
            prepared = prepared.with_lead(int(classifier.tuned_.settings["lead"]))
        self.model = model = self._extended(prepared.text_model(classifier, {}), task)
        digest = array_digest(
            model.vocabulary.words,
            model.weighting.idf,
            model.scorer.word_embeddings,
            model.scorer.class_weights,
            model.scorer.bias,
            *(() if model.spelling is None else (model.spelling.hashes, model.spelling.rows)),
        )
        return self._outcome(classifier)._replace(digest=digest)

    def predict(self, query: Query) -> npt.NDArray[Any]:
        """Return one label per text."""
        assert query.texts is not None
        return self.model.predict(query.texts)

    def _check_retired(self) -> None:
        """Raise an error if a setting was removed from the library; its committed runs are kept."""
        for name, value in _RETIRED.items():
            if self.settings.get(name, value) != value:
                raise InputError(
                    f"{name}={self.settings[name]!r} was removed from wgcn in 0.2.0; {self.name} can only be run with "
                    f"{value!r}. Earlier runs are kept in the results."
                )
        if isinstance(self.settings["window"], list):
            raise InputError(f"Several windows, {self.settings['window']}, were removed from wgcn in 0.2.0.")

    def _background(self) -> Iterator[str]:
        """Yield the training texts of the background data sets."""
        for name in self.settings.get("background") or ():
            dataset = load_dataset(name)
            if dataset.texts is None:
                raise InputError(f"{name} has no texts, so it cannot be a background.")
            for i in dataset.train:
                yield dataset.texts[i]

    def _extended(self, model: TextModel, task: Task) -> TextModel:
        """Return the model that predicts."""
        return model

    def _preparation(self) -> Preparation:
        values = self._pick((*_TEXT, *_GRAPH))
        del values["smoothing"]
        values["ngram_range"] = (1, values.pop("ngrams"))
        values["stop_words"] = stop_words() if values["stop_words"] else None
        values["top_k"] = values["top_k"] or None
        values["min_count"] = values["min_count"] or None
        return Preparation(**values, ngram_edges=self._ngram_edges)

    @property
    def _ngram_edges(self) -> bool:
        return False

    @abstractmethod
    def _classifier(self) -> Any:
        """Return the model with its settings, not yet fitted."""

    @abstractmethod
    def _train(self, classifier: Any, prepared: Prepared, task: Task) -> None:
        """Fit the model."""

    def _outcome(self, classifier: Any) -> Fit:
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

    @property
    def _ngram_edges(self) -> bool:
        return True  # without edges, a word has no effect in the network

    def _classifier(self) -> WGCNNetworkClassifier:
        # Several networks take consecutive seeds, and no two fits may share one of them.
        seed = self.seed * self.settings["n_models"]
        network = [name for name in self.defaults if name not in (*_TEXT, *_GRAPH)]
        return WGCNNetworkClassifier(**self._pick(network), random_state=seed, device=self.device)

    def _train(self, classifier: Any, prepared: Prepared, task: Task) -> None:
        classifier.fit(prepared.document_terms[: len(task.labels)], task.labels, word_graph=prepared.word_graph)

    def _outcome(self, classifier: Any) -> Fit:
        return network_fit(classifier)


class LinearMethod(_TextMethod):
    """The linear model with a residual, as `WGCNTextClassifier` has it by default.

    The problem is convex. Another seed holds out other documents: it may choose other settings by them, and leads the
    solver to another point within its tolerance.

    `graph` is "" for the word graph, or "none" to leave it out everywhere: in the loss, and in the teacher's space by
    words that are their own only neighbours (A = I).

    `background` names data sets whose training texts also shape vocabulary and graph; they must not share texts with
    the data set of the cell.

    `extend` is what happens to words that fitting does not see: rows from their spelling (""), or from the texts of the
    pool ("graph"); "fit", to fit with the texts of the pool; or "drop", nothing.

    `learn_alpha`, `order`, `loss`, `average` and `smoothing` are settings of earlier runs, which are kept; the library
    no longer has them. Version 1 had an L-BFGS solver, and with `tune` Optuna proposed the candidates; version 2 had no
    subwords, counted all documents alike in self-training, and `tune` was a longer search; version 3 had no lead, and
    counted unseen words in the length of a document. In version 4 the teacher first did not know when labels are many:
    its runs with 5 % of the labels were made again; all other fits stayed as they were.
    """

    name = "wgcn-linear"
    version = 4
    seeded_since = 3  # seeds of earlier versions changed only what was held out for calibration
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
        "graph": "",
        "subwords": 1.5,
        "learn_alpha": "",
        "order": 1,
        "naive_bayes": 0.5,
        "teacher": 1.5,
        "self_training": 0.3,
        "C": 0.5,
        "loss": "squared_hinge",
        "class_prior": "",
        "tune": True,
        "average": False,
        "extend": "",
    }
    earlier: ClassVar = {"self_training": 0.0, "subwords": 0.0}
    former: ClassVar = {2: {"subwords": 0.0, "tune": False}, 3: {"teacher": 2.0}}

    def __init__(self, settings: Mapping[str, Any] | None = None, seed: int = 0, device: str = "auto") -> None:
        super().__init__(settings, seed, device)
        if self.settings["extend"] not in _EXTENSIONS:
            raise InputError(f"extend must be one of {', '.join(map(repr, _EXTENSIONS))}.")
        if self.settings["graph"] not in ("", "none"):
            raise InputError("graph must be '' or 'none'.")

    def fit(self, task: Task) -> Fit:
        """Fit on the texts; with extend="fit" also on those of the pool, unlabelled."""
        if self.settings["extend"] == "fit" and task.texts is not None:
            labels = np.concatenate([task.labels, np.full(len(task.pool), None, object)])
            task = replace(task, texts=task.texts + task.pool, labels=labels, pool=())
        return super().fit(task)

    def _extended(self, model: TextModel, task: Task) -> TextModel:
        if self.settings["extend"] == "drop":
            return replace(model, spelling=None)
        return model.extend(task.pool) if self.settings["extend"] == "graph" else model

    @property
    def _ngram_edges(self) -> bool:
        return bool(self.settings["ngram_edges"])

    def _check_retired(self) -> None:
        super()._check_retired()
        if self.settings["order"] != 1:
            raise InputError(f"order {self.settings['order']} of the linear model was removed from wgcn in 0.2.0.")

    def _classifier(self) -> WGCNClassifier:
        values = self._pick(_LINEAR)
        if self.settings["graph"] == "none":
            values["alpha"] = 0.0
        return WGCNClassifier(**values, class_prior=self.settings["class_prior"] or None, random_state=self.seed)

    def _train(self, classifier: Any, prepared: Prepared, task: Task) -> None:
        n_labels = len(task.labels)
        vectors = None
        if self.settings["vectors"]:
            assert task.texts is not None
            vectors = word_vector_matrix(self.settings["vectors"], prepared, task.texts)
        classifier.fit(
            prepared.document_terms[:n_labels],
            task.labels,
            word_graph=prepared.word_graph if self.settings["graph"] == "" else _own_neighbours(prepared.word_graph),
            unlabeled=prepared.document_terms[n_labels:],
            word_vectors=vectors,
            subwords=prepared.subword_matrix(self.settings["subwords"]),
            leads=prepared.by_lead,
            digests=prepared.digests,
        )


def _own_neighbours(graph: WordGraph | None) -> WordGraph:
    """Return the graph in which every word that has edges is its own only neighbour."""
    assert graph is not None
    has_edges = np.diff(graph.adjacency.indptr) > 0
    words = np.flatnonzero(has_edges)
    parts = np.ones(len(words), np.float32), words, np.concatenate([[0], np.cumsum(has_edges)])
    return replace(graph, adjacency=csr_array(parts, shape=graph.adjacency.shape))
