"""WGCNClassifier: the model under scikit-learn's interface, for document-term matrices."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, diags_array, vstack
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from wgcn.errors import InputError, InterruptWarning, needs
from wgcn.estimators.average import averaged, columns_with_edges, settings_of_columns
from wgcn.estimators.labels import (
    Labels,
    check_total_weight,
    checked_weights,
    labelled_accuracy,
    read_class_prior,
    read_labels,
)
from wgcn.graph import EdgeRules, WordGraph
from wgcn.graph.citations import attach_citations
from wgcn.inference.folder import check_target
from wgcn.inference.model import Scorer
from wgcn.linear.model import LinearSettings
from wgcn.linear.training import LinearTraining, Tuning, train_linear
from wgcn.linear.tuning import Tuned, check_tuning
from wgcn.network.callbacks import Callback, TrialCallback
from wgcn.network.settings import NetworkSettings, TrainingSettings, check_numbers
from wgcn.text.vocabulary import Vocabulary

__all__ = ["WGCNClassifier"]

_REAL = ("alpha", "naive_bayes", "teacher", "self_training", "C", "tol", "tune_seconds", "validation_fraction")
_WHOLE = ("order", "max_iter", "top_k", "tune_trials", "n_jobs")


class WGCNClassifier(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator):
    """Word grounded graph convolutional network for document-term matrices.

    The default is the model of the paper made linear, with a residual, X (I + a A) W + b: convex (unless a is learnt
    too), quick to train, and in no need of torch. Documents without a label teach it too: see
    `wgcn.linear.teacher` and `wgcn.linear.training`.

    Parameters
    ----------
    model : {"linear", "network", "average"}, default="linear"
        The linear model; the paper's network (eq. 5 to 7), for which the settings from `alpha` to `tol` do not count;
        or both, each trained by its own settings on the same documents and graph, and the mean of their scores: see
        `wgcn.estimators.average`. There the network learns only the columns that have an edge in the graph.
    network : NetworkSettings or None, default=None
        Hidden size, order, dropout and so on of the network: see `wgcn.network.settings`.
    training : TrainingSettings or None, default=None
        How the network is trained; its validation takes the place of `validation_fraction`, which in an average is that
        of the linear model.
    checkpoint : path or None, default=None
        File in which the training of the network is kept.
    resume : bool, default=False
        Whether to go on from that file, bit for bit.
    alpha : float, default=0.5
        Weight of the word graph beside the words themselves; 0 leaves the graph out.
    learn_alpha : {"shared", "word"} or None, default=None
        Learn the weight of the graph together with the words, beginning at alpha: one for all words, or one for each
        word. The model is then not convex any more. With alpha 0 there is nothing to learn.
    order : int, default=1
        How often the graph is applied.
    naive_bayes : float, default=0.5
        How much freer words are that the classes use differently, from 0 to 1.
    teacher : float, default=2.0
        Weight of what documents without a label teach, times their share of all documents; 0 for no teacher. Models of
        several labels a document have none.
    self_training : float, default=0.3
        Weight of a document without a label, beside one with, in a second fit that takes the labels which the first
        gave and does without the teacher; 0 leaves it out. Not for models of several labels a document.
    C : float, default=0.5
        Weight of the loss beside the L2 penalty.
    loss : {"squared_hinge", "softmax"}, default="squared_hinge"
    max_iter : int, default=100
        Most iterations of L-BFGS.
    tol : float, default=3e-4
        Stop when three iterations in a row each lower the objective by less than this share.
    top_k : int or None, default=100
        For a graph that is made from X: edges a word keeps.
    class_weight : dict, "balanced" or None, default=None
    class_prior : dict, "uniform" or None, default=None
        Shares of the classes among the documents to be predicted and those without a label, if they are other than
        among the labels: after labelling as many documents of a rare class as of the others, say. Scores are shifted
        by the logarithms of the shares. Not for models of several labels a document.
    tune : bool, default=False
        Whether to choose alpha, naive_bayes, C and, if there are documents without a label, teacher by documents with
        a label that are held out in turn, beginning with the values given. Needs Optuna; for the linear model, alone or
        in an average. See `wgcn.linear.tuning`.
    tune_seconds : float, default=120.0
        Time for that. A fit that runs when it is over is ended first.
    tune_trials : int, default=25
        Most settings to try. If the time suffices for all, the choice depends on `random_state` alone.
    validation_fraction : float, default=0.1
        Share of the labelled documents that a first fit leaves out, to measure accuracy and to set the probabilities;
        the final fit has all. With fewer than 500 labels and a teacher, that is asked about all of them in turn
        instead. 0, or fewer than 100 labelled documents without a teacher, skips this.
    n_jobs : int or None, default=None
        Threads; None or -1 for as many as there are cores, -2 for one less, and so on.
    random_state : int, RandomState or None, default=0
        Chooses the documents that are left out, and what `tune` tries.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    word_graph_ : WordGraph
        A_vv.
    word_embeddings_ : array of shape (n_features, n_embedding)
        H_vm of eq. 5; of an average, the columns of the network, those of the linear model, and the latter times -1.
    alpha_ : float, array of shape (n_features,) or None
        Weight of the word graph: as given, as tuned or as learnt, an array if there is one for each word; None for the
        network. A word without an edge has that of the beginning, and no use for it.
    history_ : list of dict
        Objective after each iteration of the final fit; of the network and of an average, a record an epoch of the
        network.
    interrupted_ : bool
        Of the network and of an average: whether Ctrl-C ended the network's training, of which an InterruptWarning
        tells. What it had learnt is kept; an average goes on to the linear model.
    held_out_accuracy_ : float or None
        Share of the held-out documents that the first fit, or the teacher, got right (multi-label: got wholly right),
        with the shares that the classes have among the labels. Of an average, it is that of the linear model alone: the
        two do not hold out the same documents.
    tuned_ : Tuned or None
        What `tune` chose, the accuracy of that and of the values given, the number of trials and the seconds.
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> texts = ["red wine", "white wine", "fast car", "slow car"]
    >>> vectorizer = TfidfVectorizer()
    >>> model = WGCNClassifier().fit(vectorizer.fit_transform(texts), ["drink", "drink", "drive", "drive"])
    >>> model.predict(vectorizer.transform(["a glass of red", "a fast one"])).tolist()
    ['drink', 'drive']
    """

    def __init__(
        self,
        *,
        model: Literal["linear", "network", "average"] = "linear",
        network: NetworkSettings | None = None,
        training: TrainingSettings | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        alpha: float = 0.5,
        learn_alpha: Literal["shared", "word"] | None = None,
        order: int = 1,
        naive_bayes: float = 0.5,
        teacher: float = 2.0,
        self_training: float = 0.3,
        C: float = 0.5,
        loss: Literal["squared_hinge", "softmax"] = "squared_hinge",
        max_iter: int = 100,
        tol: float = 3e-4,
        top_k: int | None = 100,
        class_weight: dict[Any, float] | str | None = None,
        class_prior: dict[Any, float] | Literal["uniform"] | None = None,
        tune: bool = False,
        tune_seconds: float = 120.0,
        tune_trials: int = 25,
        validation_fraction: float = 0.1,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.model = model
        self.network = network
        self.training = training
        self.checkpoint = checkpoint
        self.resume = resume
        self.alpha = alpha
        self.learn_alpha = learn_alpha
        self.order = order
        self.naive_bayes = naive_bayes
        self.teacher = teacher
        self.self_training = self_training
        self.C = C
        self.loss = loss
        self.max_iter = max_iter
        self.tol = tol
        self.top_k = top_k
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.tune = tune
        self.tune_seconds = tune_seconds
        self.tune_trials = tune_trials
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: npt.ArrayLike | None = None,
        *,
        word_graph: WordGraph | None = None,
        document_graph: csr_array | None = None,
        unlabeled: csr_array | None = None,
        word_vectors: npt.NDArray[Any] | None = None,
        callbacks: Sequence[Callback | TrialCallback] = (),
    ) -> WGCNClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_features)
            Document-term matrix, weighted as wanted (tf-idf rows of length 1 are a good choice).
        y : sequence
            A label a document, -1 or a missing value for a document without: see `wgcn.estimators.labels.read_labels`.
            Documents without a label still shape a graph that is made from X.
        sample_weight : array of shape (n_documents,), optional
            Not negative. A document of weight 0 does not count.
        word_graph : WordGraph, optional
            A_vv. Without it, the graph is made from X: the cosines between its columns (eq. 2), or, with
            `document_graph`, X^T A_dd X (eq. 4).
        document_graph : csr_array of shape (n_documents, n_documents), optional
            Citations between the documents of X.
        unlabeled : csr_array of shape (n_more, n_features), optional
            More documents without a label, for the teacher and self-training.
        word_vectors : array of shape (n_features, n_values), optional
            Vectors of the words from elsewhere, zeros for a word without one: more for the teacher to go by. Of use
            where most documents have no label.
        callbacks : sequence of Callback or TrialCallback, optional
            What watches the training of the network, such as `wgcn.network.callbacks.ProgressBar`, or the trials of
            `tune`.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float32, np.float64])
        terms = csr_array(X)
        if y is None:
            raise InputError("requires y to be passed, but the target y is None")
        labels = read_labels(y)
        check_consistent_length(terms, labels.labelled)
        weight = checked_weights(sample_weight, terms.shape[0])
        self._check(labels)
        if unlabeled is not None and unlabeled.shape[1] != terms.shape[1]:
            raise InputError(f"unlabeled has {unlabeled.shape[1]:,} columns, but X has {terms.shape[1]:,}.")
        if word_vectors is not None:
            if self.model == "network":
                raise InputError("word_vectors are for the linear model; the network has none.")
            word_vectors = _checked_vectors(word_vectors, terms.shape[1])
        class_prior = read_class_prior(self.class_prior, labels)
        training = self._linear_training(
            class_prior, [callback for callback in callbacks if isinstance(callback, TrialCallback)]
        )
        self.word_graph_ = self._graph(terms, weight, word_graph, document_graph)
        rows = terms[labels.labelled]
        weight = self._weighted_by_class(labels, weight[labels.labelled])
        check_total_weight(weight)
        self.tuned_: Tuned | None = None
        self.alpha_: float | npt.NDArray[Any] | None = None
        watching = [callback for callback in callbacks if isinstance(callback, Callback)]
        # Of an average the network comes first: it can be interrupted, and finds out sooner what cannot be done.
        network = None if self.model == "linear" else self._fit_network(rows, labels, weight, watching)
        if network is not None and class_prior is not None:
            network = network.with_prior(class_prior)
        if self.model == "network":
            assert network is not None
            self.scorer_ = network
        else:
            others = terms[~labels.labelled]
            if unlabeled is not None:
                others = csr_array(vstack([others, csr_array(unlabeled).astype(terms.dtype, copy=False)]))
            trained = train_linear(rows, labels, weight, others, self.word_graph_.adjacency, training, word_vectors)
            self.scorer_ = trained.scorer if network is None else averaged(network, trained.scorer)
            if network is None:
                self.history_ = trained.history
            self.alpha_, self.tuned_ = trained.alpha, trained.tuned
            self.held_out_accuracy_, self.n_held_out_ = trained.held_out_accuracy, trained.n_held_out
        self.word_embeddings_ = self.scorer_.word_embeddings
        self.n_iter_ = max(len(self.history_), 1)
        self.classes_ = labels.classes
        self.n_labelled_ = int(labels.labelled.sum())
        self.fit_seconds_ = time.perf_counter() - started
        return self

    def check_parameters(self, y: Any = None) -> None:
        """Raise an InputError if a parameter cannot be used, or does not fit the labels. `fit` does so first.

        Parameters
        ----------
        y : sequence, optional
            Labels, as for `fit`.
        """
        self._check(None if y is None else read_labels(y))

    def _check(self, labels: Labels | None) -> None:
        if self.model not in ("linear", "network", "average"):
            raise InputError(f"model must be 'linear', 'network' or 'average', got {self.model!r}.")
        check_numbers(self, real=_REAL, whole=_WHOLE)
        if self.tune:
            check_tuning(self.model, self.tune_seconds, self.tune_trials)
        self._linear_training(None, ())
        EdgeRules(top_k=self.top_k)
        for name, kind in (("network", NetworkSettings), ("training", TrainingSettings)):
            if not isinstance(getattr(self, name), kind | None):
                raise InputError(f"{name} must be {kind.__name__} or None, got {getattr(self, name)!r}.")
        if not (self.class_weight in (None, "balanced") or isinstance(self.class_weight, dict)):
            raise InputError(f"class_weight must be None, 'balanced' or a dict, got {self.class_weight!r}.")
        try:
            check_random_state(self.random_state)
        except ValueError as error:
            raise InputError(f"random_state cannot be used: {error}") from error
        if self.model != "linear":
            self._check_network()
        if labels is not None:
            read_class_prior(self.class_prior, labels)
            self._weighted_by_class(labels, np.ones(len(labels.targets)))

    def _check_network(self) -> None:
        with needs("The network"):
            from wgcn.device import find_device
        find_device((self.training or TrainingSettings()).device)
        if self.checkpoint is not None:
            check_target(self.checkpoint)
        elif self.resume:
            raise InputError("resume needs a checkpoint: give the file to go on from.")

    def _linear_training(
        self, class_prior: npt.NDArray[np.float64] | None, callbacks: Sequence[TrialCallback]
    ) -> LinearTraining:
        return LinearTraining(
            LinearSettings(
                self.alpha, self.order, self.naive_bayes, self.C, self.loss, self.max_iter, self.tol, self.learn_alpha
            ),
            self.teacher,
            self.self_training,
            self.validation_fraction,
            Tuning(self.tune_seconds, self.tune_trials, callbacks) if self.tune else None,
            self.random_state,
            self.n_jobs,
            class_prior,
        )

    def _graph(
        self,
        terms: csr_array,
        weight: npt.NDArray[np.float64],
        word_graph: WordGraph | None,
        document_graph: csr_array | None,
    ) -> WordGraph:
        n_words = terms.shape[1]
        if word_graph is not None:
            if word_graph.adjacency.shape[0] != n_words:
                raise InputError(
                    f"X has {n_words:,} features but the word graph has {word_graph.adjacency.shape[0]:,} words: the "
                    "columns of X must be the words of the graph, in its order."
                )
            return word_graph
        names = getattr(self, "feature_names_in_", None)
        vocabulary = Vocabulary([f"x{i}" for i in range(n_words)] if names is None else names.tolist())
        rules = EdgeRules(top_k=self.top_k)
        if document_graph is not None:
            return WordGraph.from_citations(terms, document_graph, vocabulary, rules=rules)
        # A document of weight 2 counts as if it were there twice.
        weighted = csr_array(diags_array(np.sqrt(weight).astype(terms.dtype)) @ terms)
        return WordGraph.from_documents(weighted, vocabulary, weight="cosine", rules=rules)

    def _weighted_by_class(self, labels: Labels, weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        if self.class_weight is None:
            return weight
        if labels.multilabel:
            raise InputError("class_weight is for documents of one class each; use sample_weight instead.")
        own = labels.classes[labels.targets.argmax(axis=1)]
        try:
            factors = np.asarray(compute_sample_weight(self.class_weight, own), np.float64)
        except (ValueError, TypeError) as error:
            raise InputError(f"class_weight cannot be used: {error}") from error
        if not (np.isfinite(factors).all() and (factors >= 0).all()):
            raise InputError(f"The weights in class_weight must be 0 or above, got {self.class_weight!r}.")
        return np.asarray(weight * factors)

    def _fit_network(
        self, terms: csr_array, labels: Labels, weight: npt.NDArray[np.float64], callbacks: Sequence[Callback]
    ) -> Scorer:
        with needs("The network"):
            from wgcn.network.training import train
        adjacency, settings, n_words = self.word_graph_.adjacency, self.network, terms.shape[1]
        columns = columns_with_edges(adjacency) if self.model == "average" else np.arange(n_words)
        if len(columns) < n_words:
            adjacency, terms = adjacency[columns][:, columns], terms[:, columns]
            settings = settings_of_columns(settings, columns, n_words)
        trained = train(
            adjacency,
            terms,
            labels.targets if labels.multilabel else labels.targets.argmax(axis=1),
            network=settings,
            settings=self.training,
            sample_weight=weight,
            callbacks=callbacks,
            checkpoint=self.checkpoint,
            resume=self.resume,
        )
        prior = np.average(labels.targets, axis=0, weights=weight).astype(np.float32)
        self.history_ = [record._asdict() for record in trained.history.records]
        self.interrupted_ = trained.history.interrupted
        if self.interrupted_:
            advice = "Give a checkpoint, and later resume=True, to be able to go on from there."
            if self.checkpoint is not None:
                advice = f"Fit again with resume=True to go on from {self.checkpoint}."
            warnings.warn(
                f"The training of the network was interrupted after {len(self.history_):,} epochs; the best network so "
                f"far is kept. {advice}",
                InterruptWarning,
                stacklevel=3,
            )
        validated = [record for record in self.history_ if record["validation_loss"] is not None]
        if (self.training or TrainingSettings()).stopping == "mean":
            validated = validated[-1:]  # the last weights are kept
        best = min(validated, key=lambda record: float(record["validation_loss"]), default=None)
        self.held_out_accuracy_ = None if best is None else best["validation_accuracy"]
        self.n_held_out_ = trained.history.n_held_out
        table = trained.word_table
        if len(columns) < n_words:
            table = np.zeros((n_words, table.shape[1]), table.dtype)
            table[columns] = trained.word_table
        return Scorer(table, trained.class_weights, trained.bias, prior, multilabel=labels.multilabel)

    def _rows(self, X: Any, document_graph: csr_array | None = None, documents: Any = None, hops: int = 1) -> csr_array:
        """Return the rows of X, averaged with what they cite."""
        check_is_fitted(self)
        rows = self._validated(X)
        if document_graph is None:
            if documents is not None:
                raise InputError("documents are given, but no document_graph that says which of them X cites.")
            return rows
        if documents is not None:
            try:
                documents = self._validated(documents, ensure_min_samples=0)
            except ValueError as error:
                raise InputError(f"documents cannot be used beside X. As if they were X: {error}") from error
        return attach_citations(rows, document_graph, documents, hops=hops)

    def _validated(self, X: Any, **checks: Any) -> csr_array:
        types = [np.float32, np.float64]
        return csr_array(validate_data(self, X, accept_sparse="csr", dtype=types, reset=False, **checks))

    def _scores(
        self, X: Any, document_graph: csr_array | None = None, documents: Any = None, hops: int = 1
    ) -> npt.NDArray[Any]:
        rows = self._rows(X, document_graph, documents, hops)
        return self.scorer_.scores(rows.data, rows.indices, rows.indptr)

    def decision_function(
        self, X: Any, *, document_graph: csr_array | None = None, documents: Any = None, hops: int = 1
    ) -> npt.NDArray[Any]:
        """Return scores of shape (n_documents, n_classes), or (n_documents,) for two classes.

        For `document_graph`, `documents` and `hops` see `predict`.
        """
        scores = self._scores(X, document_graph, documents, hops)
        return scores[:, 1] if scores.shape[1] == 2 and not self.scorer_.multilabel else scores

    def predict_proba(
        self, X: Any, *, document_graph: csr_array | None = None, documents: Any = None, hops: int = 1
    ) -> npt.NDArray[np.float64]:
        """Return probabilities of shape (n_documents, n_classes).

        For `document_graph`, `documents` and `hops` see `predict`.
        """
        scores = self._scores(X, document_graph, documents, hops)
        return self.scorer_.probabilities(scores)

    def predict(
        self, X: Any, *, document_graph: csr_array | None = None, documents: Any = None, hops: int = 1
    ) -> npt.NDArray[Any]:
        """Return a label a document; for a multi-label model a 0/1 matrix of shape (n_documents, n_classes).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_features)
            Document-term matrix, weighted as the one that was fitted.
        document_graph : csr_array, optional
            What the documents cite: their rows are then averaged with the rows of those, and nothing is fitted again.
            Of shape (n_documents, n_others), entry [i, j] positive if document i cites `documents[j]`; or square, with
            the links among all, the documents of X first. It helps most where the documents themselves are short: see
            `wgcn.graph.citations.attach_citations`.
        documents : array or sparse matrix of shape (n_others, n_features), optional
            Documents that those of X may cite, with the same columns.
        hops : int, default=1
            Length of citation paths.
        """
        scores = self._scores(X, document_graph, documents, hops)
        return (scores > 0).astype(np.int64) if self.scorer_.multilabel else self.classes_[scores.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the accuracy on the documents that have a label; with several labels, the share that is wholly right.

        Documents without a label do not count, so that folds of a cross-validation may have some. scikit-learn itself
        cannot stratify labels with None or NaN among them: use -1 and integers, or give a splitter such as ``KFold``
        as `cv`. Its other scorers do not leave out documents without a label.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_features)
        y : sequence
            Labels as for `fit`.
        sample_weight : array of shape (n_documents,), optional
        """
        return labelled_accuracy(y, self.predict(X), self.classes_, sample_weight)

    def transform(
        self, X: Any, *, document_graph: csr_array | None = None, documents: Any = None, hops: int = 1
    ) -> npt.NDArray[Any]:
        """Return document embeddings H_dm (eq. 5) of shape (n_documents, n_embedding).

        For `document_graph`, `documents` and `hops` see `predict`.
        """
        rows = self._rows(X, document_graph, documents, hops)
        return self.scorer_.embed(rows.data, rows.indices, rows.indptr)

    @property
    def _n_features_out(self) -> int:
        return int(self.word_embeddings_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


def _checked_vectors(given: Any, n_words: int) -> npt.NDArray[Any]:
    vectors: npt.NDArray[Any] = np.asarray(given)
    if vectors.ndim != 2 or len(vectors) != n_words or vectors.dtype.kind != "f":
        raise InputError(
            f"word_vectors must have a row of numbers for each of the {n_words:,} columns of X, got {vectors.dtype} of "
            f"shape {vectors.shape}."
        )
    if not np.isfinite(vectors).all():
        raise InputError("word_vectors has values that are not finite.")
    return vectors
