"""WGCNTextClassifier: raw texts in, labels out. A thin shell round WGCNClassifier."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence, Sized
from dataclasses import replace
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from wgcn import __version__
from wgcn.errors import InputError
from wgcn.estimators.labels import labelled_accuracy
from wgcn.estimators.matrix import WGCNClassifier
from wgcn.estimators.preparation import Counted, Preparation, Prepared, plain_settings
from wgcn.graph import EdgeRules, WordGraph
from wgcn.graph.association import Weight
from wgcn.graph.citations import attach_citations
from wgcn.inference.model import TextModel
from wgcn.linear.tuning import Tuned
from wgcn.network.callbacks import Callback, TrialCallback
from wgcn.text.encode import checked_texts
from wgcn.text.tokenize import Tokenizer
from wgcn.text.weighting import Norm

__all__ = ["WGCNTextClassifier"]

_CLASSIFIER = "classifier__"  # what names of the classifier's parameters begin with


class WGCNTextClassifier(ClassifierMixin, BaseEstimator):
    """Classify texts through a graph of their words.

    Every text given to `fit`, with a label or without, shapes the vocabulary, the idf and the word graph; only those
    with a label enter the loss. Nothing of the texts to be predicted is seen before.

    Parameters
    ----------
    tokenizer : {"words", "text_gcn"} or callable, default="words"
    ngram_range : (int, int), default=(1, 2)
        Shortest and longest word n-gram.
    ngram_edges : bool or None, default=None
        Whether n-grams of two words and more have edges in the word graph, whose windows then count them as tokens.
        None gives them to the network, in which a word without edges says nothing, and not to the linear model, nor to
        an average, whose network then learns single words alone. If there are no single words, n-grams have edges
        anyway.
    min_count : int or None, default=None
        Keep words and n-grams that occur at least this often. None keeps n-grams that occur twice, and all words, or,
        if these are more than 100,000, those that occur twice: most words of a large collection occur once, and make
        the model larger but no better.
    stop_words : collection of str or None, default=None
    sublinear : bool, default=True
        Whether a word that occurs n times counts 1 + log(n).
    norm : {"l2", "l1"}, default="l2"
        Whether the weights of a document have the length 1, or sum to 1.
    window : int or sequence of int, default=20
        Tokens in a window of the word graph. With several, the graph is the mean of those of each; a window longer than
        every text has whole texts.
    weight : {"pmi", "npmi", "count", "cosine", "product"}, default="pmi"
        Edge weight of the word graph.
    threshold : float, default=0.0
        Keep edges whose weight is above this.
    min_pairs : int, default=2
        Keep pairs of words that share at least so many windows.
    top_k : int or None, default=None
        Keep only the k strongest edges a word.
    smoothing : float, default=1.0
        Exponent, from 0 to 1, of how frequent a word is, in PMI and NPMI: below 1, edges of rare words weigh less, 0.75
        is usual elsewhere; 1 for none.
    vectors : str or None, default=None
        What is known of words from elsewhere, for the teacher: it helps where few texts have a label. "encoder" takes
        it from what a sentence encoder makes of the texts, "distilled" from what it makes of each word alone (both
        need the extra ``vectors``); anything else is the path of a file, such as GloVe's: see docs/word-vectors.md. It
        brings a language model to training; prediction stays as it is.
    classifier : WGCNClassifier or None, default=None
        The model with its settings; None for the defaults. Its `n_jobs` also holds for tokenising and counting.
    tune : bool, default=False
        Whether to choose some of these settings by documents that are held out in turn, as the classifier's own `tune`
        does, which this sets together with the two that follow.
    tune_seconds : float, default=120.0
        Time for that.
    tune_trials : int, default=25
        Most settings to try.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    word_graph_ : WordGraph
    word_embeddings_ : array of shape (n_words, n_embedding)
    classifier_ : WGCNClassifier
        The fitted model.
    model_ : TextModel
        What is saved, and what predicts.
    tuned_ : Tuned or None
        What `tune` chose, and why.
    history_ : list of dict

    Examples
    --------
    >>> texts = ["red wine", "white wine", "fast car", "slow car", "a fast red car"]
    >>> model = WGCNTextClassifier().fit(texts, ["drink", "drink", "drive", "drive", None])
    >>> model.predict(["a glass of wine"]).tolist()
    ['drink']
    """

    def __init__(
        self,
        *,
        tokenizer: str | Tokenizer = "words",
        ngram_range: tuple[int, int] = (1, 2),
        ngram_edges: bool | None = None,
        min_count: int | None = None,
        stop_words: Collection[str] | None = None,
        sublinear: bool = True,
        norm: Norm = "l2",
        window: int | Sequence[int] = 20,
        weight: Weight = "pmi",
        threshold: float = 0.0,
        min_pairs: int = 2,
        top_k: int | None = None,
        smoothing: float = 1.0,
        vectors: str | None = None,
        classifier: WGCNClassifier | None = None,
        tune: bool = False,
        tune_seconds: float = 120.0,
        tune_trials: int = 25,
    ) -> None:
        self.tokenizer = tokenizer
        self.ngram_range = ngram_range
        self.ngram_edges = ngram_edges
        self.min_count = min_count
        self.stop_words = stop_words
        self.sublinear = sublinear
        self.norm = norm
        self.window = window
        self.weight = weight
        self.threshold = threshold
        self.min_pairs = min_pairs
        self.top_k = top_k
        self.smoothing = smoothing
        self.vectors = vectors
        self.classifier = classifier
        self.tune = tune
        self.tune_seconds = tune_seconds
        self.tune_trials = tune_trials

    def fit(
        self,
        X: Iterable[str],
        y: Any,
        sample_weight: npt.ArrayLike | None = None,
        *,
        unlabeled: Iterable[str] = (),
        background: Iterable[str] = (),
        document_graph: csr_array | None = None,
        callbacks: Sequence[Callback | TrialCallback] = (),
    ) -> WGCNTextClassifier:
        """Fit the model.

        Parameters
        ----------
        X : iterable of str
            Texts.
        y : sequence
            A label a text; or a list of labels a text. A missing value or -1 is a text without: see
            `wgcn.estimators.labels.read_labels`.
        sample_weight : array of shape (n_texts,), optional
        unlabeled : iterable of str, optional
            More texts without labels: for vocabulary and graph, the teacher and self-training.
        background : iterable of str, optional
            Texts from elsewhere, such as a larger collection, for vocabulary, idf and word graph alone: unlike
            `unlabeled` they need not be of the classes.
        document_graph : csr_array of shape (n_texts, n_texts), optional
            Citations between the texts of X: the word graph is then made from them (eq. 4), not from windows.
        callbacks : sequence of Callback or TrialCallback, optional
            What watches the training of the network, or the trials of `tune`.

        Returns
        -------
        self
        """
        n_labels = _n_labels(y)
        self.check_parameters(y)
        texts = Counted(checked_texts(X, "X"))
        _check_lengths(n_labels, X, sample_weight)
        more, elsewhere = checked_texts(unlabeled, "unlabeled"), checked_texts(background, "background")
        prepared = self.prepare(chain(texts, more), background=elsewhere, with_graph=document_graph is None)
        if texts.n != n_labels:
            raise InputError(f"{texts.n:,} texts but {n_labels:,} labels: there must be one label a text.")
        return self.fit_prepared(prepared, y, sample_weight, document_graph=document_graph, callbacks=callbacks)

    def check_parameters(self, y: Any = None) -> None:
        """Raise an InputError if a parameter, also of the classifier, cannot be used. `fit` does so before all else.

        Parameters
        ----------
        y : sequence, optional
            Labels, as for `fit`: whether `class_prior` and `class_weight` fit them is then checked too.
        """
        classifier = self._new_classifier()
        if self.vectors is not None and classifier.model == "network":
            raise InputError("vectors are for the linear model; the network has none. Leave them out.")
        self._preparation().check()
        classifier.check_parameters(y)

    def prepare(self, texts: Iterable[str], *, background: Iterable[str] = (), with_graph: bool = True) -> Prepared:
        """Do what needs no labels: vocabulary, weights, word graph. Fits with other labels or seeds can share it.

        Parameters
        ----------
        texts : iterable of str
            Those to be labelled first, then all others.
        background : iterable of str
            Texts from elsewhere, for vocabulary, idf and word graph alone.
        with_graph : bool
            Whether to build the word graph.
        """
        return self._preparation().prepare(texts, background=background, with_graph=with_graph)

    def fit_prepared(
        self,
        prepared: Prepared,
        y: Any,
        sample_weight: npt.ArrayLike | None = None,
        *,
        document_graph: csr_array | None = None,
        callbacks: Sequence[Callback | TrialCallback] = (),
    ) -> WGCNTextClassifier:
        """Fit the model to what `prepare` gave; `y` has the labels of its first texts. See `fit`."""
        started = time.perf_counter()
        n_labels, n_texts = _n_labels(y), prepared.document_terms.shape[0]
        if n_labels > n_texts:
            raise InputError(f"{n_texts:,} texts but {n_labels:,} labels: there must be one label a text.")
        classifier = self._new_classifier()
        self.classifier_ = classifier.fit(
            prepared.document_terms[:n_labels],
            y,
            sample_weight,
            word_graph=prepared.word_graph if document_graph is None else self._linked(prepared, document_graph),
            unlabeled=prepared.document_terms[n_labels:],
            word_vectors=prepared.word_vectors,
            callbacks=callbacks,
        )
        self.word_graph_ = classifier.word_graph_
        self.model_ = TextModel(
            self.tokenizer,
            self.ngram_range,
            prepared.vocabulary,
            prepared.weighting,
            classifier.scorer_,
            classifier.classes_,
            self._settings(),
            {
                "n_documents": prepared.document_terms.shape[0],
                "n_labelled": int(classifier.n_labelled_),
                **({"n_background": prepared.n_background} if prepared.n_background else {}),
                "n_edges": self.word_graph_.info().edges,
                "held_out_accuracy": classifier.held_out_accuracy_,
                "n_held_out": classifier.n_held_out_,
                **({} if classifier.tuned_ is None else {"tuned": classifier.tuned_._asdict()}),
                **({} if classifier.learn_alpha is None else {"learnt_alpha": _learnt_alpha(classifier)}),
                "seconds": round(prepared.seconds + time.perf_counter() - started, 2),
                "date": date.today().isoformat(),
                "version": __version__,
            },
            tuple(self.stop_words or ()),
        )
        return self

    def _new_classifier(self) -> WGCNClassifier:
        """Return the model with its settings."""
        if not isinstance(self.classifier, WGCNClassifier | None):
            raise InputError(f"classifier must be a WGCNClassifier or None, got {self.classifier!r}.")
        classifier: WGCNClassifier = clone(self._settings_of_model())
        if self.tune:
            classifier.set_params(tune=True, tune_seconds=self.tune_seconds, tune_trials=self.tune_trials)
        return classifier

    def _preparation(self) -> Preparation:
        preparation = Preparation.of(self.get_params(deep=False))
        if preparation.ngram_edges is None:
            preparation = replace(preparation, ngram_edges=self._settings_of_model().model == "network")
        return replace(preparation, n_jobs=self._settings_of_model().n_jobs)

    def _settings_of_model(self) -> WGCNClassifier:
        return self.classifier if self.classifier is not None else WGCNClassifier()

    def _linked(self, prepared: Prepared, document_graph: csr_array) -> WordGraph:
        rules = EdgeRules(top_k=self._settings_of_model().top_k)
        return self._preparation().linked(prepared, document_graph, rules)

    def _settings(self) -> dict[str, Any]:
        """Return the parameters as JSON can hold them, for the model card."""
        parameters = {**self.get_params(deep=False), **self.classifier_.get_params(deep=False)}
        parameters["top_k"] = self.word_graph_.settings[
            "top_k"
        ]  # both have it; that of windows or of citations counted
        del parameters["classifier"], parameters["checkpoint"], parameters["resume"]
        if parameters["model"] == "linear":
            del parameters["network"], parameters["training"]
        del parameters["tune_seconds"], parameters["tune_trials"]
        if self.tuned_ is not None:
            parameters.update(self.tuned_.settings)
        else:
            del parameters["tune"]
        if self.vectors is not None:
            parameters["vectors"] = Path(self.vectors).name
        return plain_settings(parameters)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels."""
        return self._fitted.classes

    @property
    def word_embeddings_(self) -> npt.NDArray[Any]:
        """H_vm of eq. 5, one row a word."""
        return self._fitted.scorer.word_embeddings

    @property
    def tuned_(self) -> Tuned | None:
        """What `tune` chose, and why; None without it."""
        return self.classifier_.tuned_

    @property
    def history_(self) -> list[dict[str, float]]:
        """Objective after each iteration of the final fit, or a record an epoch: see `WGCNClassifier`."""
        return list(self.classifier_.history_)

    @property
    def _fitted(self) -> TextModel:
        check_is_fitted(self, "model_")
        model: TextModel = self.model_
        return model

    def predict(
        self,
        X: Iterable[str],
        *,
        document_graph: csr_array | None = None,
        documents: Iterable[str] | None = None,
        hops: int = 1,
    ) -> npt.NDArray[Any]:
        """Return a label a text; for a multi-label model a 0/1 matrix of shape (n_texts, n_classes).

        Parameters
        ----------
        X : iterable of str
            Texts.
        document_graph : csr_array, optional
            What the texts cite: their rows of X_dv are then averaged with the rows of those, and nothing is fitted
            again. Of shape (n_texts, n_others), entry [i, j] positive if text i cites `documents[j]`; or square, with
            the links among all, the texts of X first. It helps most where the texts themselves are short: see
            `wgcn.graph.citations.attach_citations`.
        documents : iterable of str, optional
            Texts that those of X may cite.
        hops : int, default=1
            Length of citation paths.
        """
        scores = self._scores(X, document_graph, documents, hops)
        return (scores > 0).astype(np.int64) if self._fitted.scorer.multilabel else self.classes_[scores.argmax(axis=1)]

    def predict_proba(
        self,
        X: Iterable[str],
        *,
        document_graph: csr_array | None = None,
        documents: Iterable[str] | None = None,
        hops: int = 1,
    ) -> npt.NDArray[np.float64]:
        """Return probabilities of shape (n_texts, n_classes).

        For `document_graph`, `documents` and `hops` see `predict`.
        """
        return self._fitted.scorer.probabilities(self._scores(X, document_graph, documents, hops))

    def decision_function(
        self,
        X: Iterable[str],
        *,
        document_graph: csr_array | None = None,
        documents: Iterable[str] | None = None,
        hops: int = 1,
    ) -> npt.NDArray[Any]:
        """Return scores of shape (n_texts, n_classes), or (n_texts,) for two classes.

        For `document_graph`, `documents` and `hops` see `predict`.
        """
        scores = self._scores(X, document_graph, documents, hops)
        return scores[:, 1] if scores.shape[1] == 2 and not self._fitted.scorer.multilabel else scores

    def transform(
        self,
        X: Iterable[str],
        *,
        document_graph: csr_array | None = None,
        documents: Iterable[str] | None = None,
        hops: int = 1,
    ) -> npt.NDArray[Any]:
        """Return document embeddings H_dm (eq. 5) of shape (n_texts, n_embedding).

        For `document_graph`, `documents` and `hops` see `predict`.
        """
        rows = self._attached(X, document_graph, documents, hops)
        if rows is None:
            return self._fitted.transform(checked_texts(X, "X"))
        return self._fitted.scorer.embed(rows.data, rows.indices, rows.indptr)

    def _scores(
        self, X: Iterable[str], document_graph: csr_array | None, documents: Iterable[str] | None, hops: int
    ) -> npt.NDArray[Any]:
        rows = self._attached(X, document_graph, documents, hops)
        if rows is None:
            return self._fitted.scores(checked_texts(X, "X"))
        return self._fitted.scorer.scores(rows.data, rows.indices, rows.indptr)

    def _attached(
        self, X: Iterable[str], document_graph: csr_array | None, documents: Iterable[str] | None, hops: int
    ) -> csr_array | None:
        """Return the rows of texts, averaged with what they cite; None for texts that come without citations."""
        if document_graph is None:
            if documents is not None:
                raise InputError("documents are given, but no document_graph that says which of them X cites.")
            return None
        known = None if documents is None else self._terms(checked_texts(documents, "documents"))
        return attach_citations(self._terms(checked_texts(X, "X")), document_graph, known, hops=hops)

    def _terms(self, texts: Iterable[str]) -> csr_array:
        terms = self._fitted.terms(texts)
        shape = (len(terms.offsets) - 1, len(self._fitted.vocabulary))
        return csr_array((terms.weights, terms.words, terms.offsets), shape=shape)

    def extend(
        self,
        texts: Iterable[str],
        how: Literal["graph", "spelling", "vectors"] = "graph",
        *,
        vectors: str | Path | None = None,
        min_count: int | None = None,
    ) -> WGCNTextClassifier:
        """Return a fitted estimator that has rows for words which training did not see: see `TextModel.extend`.

        This estimator stays as it is. In the new one, `model_`, `word_embeddings_` and `word_graph_` have the words of
        training first, then the new ones. `model_` predicts and is saved. In `word_graph_`, new words have no edges.
        `classifier_` is the one that was fitted, with the words of training alone.

        Parameters
        ----------
        texts : iterable of str
            Texts that have the words.
        how : {"graph", "spelling", "vectors"}
        vectors : str or path, optional
        min_count : int, optional

        Returns
        -------
        WGCNTextClassifier
        """
        model = self._fitted.extend(texts, how, vectors=vectors, min_count=min_count)
        extended: WGCNTextClassifier = clone(self)
        extended.classifier_ = self.classifier_
        extended.word_graph_ = self.word_graph_.among(model.vocabulary)
        extended.model_ = model
        return extended

    def score(self, X: Iterable[str], y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the accuracy on the texts that have a label; with several labels, the share that is wholly right.

        Texts without a label do not count, so that folds of a cross-validation may have some. scikit-learn itself
        cannot stratify labels with None or NaN among them: use -1 and integers, or give a splitter such as ``KFold``
        as `cv`. Its other scorers do not leave out texts without a label.

        Parameters
        ----------
        X : iterable of str
        y : sequence
            Labels as for `fit`.
        sample_weight : array of shape (n_texts,), optional
        """
        return labelled_accuracy(y, self.predict(X), self.classes_, sample_weight)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep`, those of the classifier too, as ``classifier__C`` and so on.

        Where `classifier` is None, these are the defaults.
        """
        parameters: dict[str, Any] = super().get_params(deep=deep)
        if deep and self.classifier is None:
            defaults = WGCNClassifier().get_params()
            parameters.update({f"{_CLASSIFIER}{name}": value for name, value in defaults.items()})
        return parameters

    def set_params(self, **params: Any) -> WGCNTextClassifier:
        """Set parameters; ``classifier__C`` and so on are those of the classifier, also where that is None."""
        nested = any(name.startswith(_CLASSIFIER) for name in params)
        if nested and params.get("classifier", self.classifier) is None:
            params = {**params, "classifier": WGCNClassifier()}
        super().set_params(**params)
        return self

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the columns that `transform` gives."""
        return np.array([f"wgcn{i}" for i in range(self.word_embeddings_.shape[1])], dtype=object)

    def save(self, path: str | Path) -> str:
        """Write the fitted model to a folder; `TextModel.load` reads it. Return its digest."""
        return self._fitted.save(path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.classifier_tags.multi_label = True
        return tags


def _n_labels(y: Any) -> int:
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    return int(y.shape[0]) if hasattr(y, "shape") and y.shape else len(y)


def _check_lengths(n_labels: int, texts: Iterable[str], sample_weight: npt.ArrayLike | None) -> None:
    """Say as soon as it is known that there is another number of texts or of weights than of labels."""
    if isinstance(texts, Sized) and len(texts) != n_labels:
        raise InputError(f"{len(texts):,} texts but {n_labels:,} labels: there must be one label a text.")
    if sample_weight is not None and np.shape(sample_weight) not in ((), (n_labels,)):
        raise InputError(f"sample_weight has the shape {np.shape(sample_weight)}; expected ({n_labels},), one a text.")


def _learnt_alpha(classifier: WGCNClassifier) -> list[float] | None:
    """Return alpha; if there is one for each word, the smallest, median and largest of words with an edge."""
    alpha = classifier.alpha_
    if alpha is None:
        return None
    edges = np.diff(classifier.word_graph_.adjacency.indptr) > 0
    if np.ndim(alpha) == 0 or not edges.any():
        return [float(np.ravel(alpha)[0])]
    return [float(value) for value in np.quantile(np.asarray(alpha)[edges], [0, 0.5, 1])]
