"""WGCNClassifier: the linear model under scikit-learn's interface, for document-term matrices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, diags_array
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from wgcn.base.arrays import Floats
from wgcn.base.errors import InputError, check_numbers
from wgcn.base.progress import shown
from wgcn.base.threads import n_threads
from wgcn.graph import EdgeRules, WordGraph
from wgcn.labels.reading import (
    Labels,
    check_class_weight,
    checked_weights,
    class_options,
    divided_rows,
    labelled_accuracy,
    read_labels,
)
from wgcn.labels.splits import row_digests
from wgcn.linear.operator import row_slice
from wgcn.linear.task import Earlier, LinearTask, LinearTrained, LinearTraining
from wgcn.linear.training import MakeTrainer, train_linear
from wgcn.linear.tuning import Tuned
from wgcn.scoring.scorer import Scorer
from wgcn.semi.seed_words import SeedRows
from wgcn.text.vocabulary import Vocabulary

ClassWeight = dict[Any, float] | str | None
ClassPrior = dict[Any, float] | Literal["uniform"] | None


class MatrixClassifier(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator):
    """What the estimators for document-term matrices have in common; their `fit` sets the attributes below."""

    classes_: npt.NDArray[Any]
    scorer_: Scorer
    history_: list[dict[str, Any]]
    tuned_: Tuned | None
    held_out_accuracy_: float | None
    n_held_out_: int
    top_k: int | None
    class_weight: ClassWeight
    class_prior: ClassPrior

    def check_parameters(self, y: object = None) -> None:
        """Raise an InputError if a parameter cannot be used, or does not fit the labels `y`. `fit` does so first."""
        check_numbers(self, whole=["top_k"])
        EdgeRules(top_k=self.top_k)
        check_class_weight(self.class_weight)
        self._check_settings()
        if y is not None:
            labels = read_labels(y)
            class_options(labels, np.ones(len(labels.labelled)), self.class_weight, self.class_prior)

    @abstractmethod
    def _check_settings(self) -> None:
        """Raise an InputError if a parameter of the model itself cannot be used."""

    def task(
        self,
        X: Any,
        y: object,
        sample_weight: npt.ArrayLike | None = None,
        *,
        word_graph: WordGraph | None = None,
        document_graph: csr_array | None = None,
        unlabeled: csr_array | None = None,
        word_vectors: Floats | None = None,
        seeds: SeedRows | None = None,
        subwords: csr_array | None = None,
        leads: Mapping[int, csr_array] | None = None,
        digests: npt.NDArray[np.int64] | None = None,
    ) -> LinearTask:
        """Return what to train on, checked, with the word graph; parameters as in `WGCNClassifier.fit`."""
        terms = self._rows(X, reset=True)
        self.check_parameters()
        labels = read_labels(y)
        check_consistent_length(terms, labels.labelled)
        weight = checked_weights(sample_weight, terms.shape[0])
        own, others = divided_rows(terms, labels.labelled, unlabeled)
        vectors = None if word_vectors is None else _checked_vectors(word_vectors, terms.shape[1])
        own_weight, prior = class_options(labels, weight, self.class_weight, self.class_prior)
        graph = self._graph(terms, weight, word_graph, document_graph)
        if subwords is not None and subwords.shape[0] != terms.shape[1]:
            raise InputError(
                f"X has {terms.shape[1]:,} features but subwords has {subwords.shape[0]:,} rows: there must be one row "
                "per column of X."
            )
        self.take_labels(labels, graph)
        n, is_own = terms.shape[0], labels.labelled
        divided = ((k, row_slice(each, 0, n), each[n:]) for k, each in (leads or {}).items())
        if digests is None:
            every = np.append(row_digests(own), row_digests(others))
        else:  # those of unlabelled documents, also of X, come after the others
            every = np.concatenate([digests[:n][is_own], digests[:n][~is_own], digests[n:]])
        return LinearTask(
            terms=own,
            targets=labels.targets,
            multilabel=labels.multilabel,
            weight=own_weight,
            unlabelled=others,
            adjacency=graph.adjacency,
            word_vectors=vectors,
            class_prior=prior,
            seeds=seeds,
            subwords=subwords,
            leads={k: divided_rows(each, is_own, more) for k, each, more in divided},
            digests=every,
            are_texts=digests is not None,
        )

    def _graph(
        self,
        terms: csr_array,
        weight: npt.NDArray[np.float64],
        word_graph: WordGraph | None,
        document_graph: csr_array | None,
    ) -> WordGraph:
        """Return the given word graph, checked, or one that is made from the documents."""
        if word_graph is not None:
            if word_graph.adjacency.shape[0] == terms.shape[1]:
                return word_graph
            raise InputError(
                f"X has {terms.shape[1]:,} features but the word graph has {word_graph.adjacency.shape[0]:,} words: "
                "the columns of X must be the words of the graph, in its order."
            )
        names, rules = getattr(self, "feature_names_in_", None), EdgeRules(top_k=self.top_k)
        vocabulary = Vocabulary([f"x{i}" for i in range(terms.shape[1])] if names is None else names.tolist())
        if document_graph is not None:
            return WordGraph.from_citations(terms, document_graph, vocabulary, rules=rules)
        # A document of weight 2 counts as if it were there twice.
        weighted = csr_array(diags_array(np.sqrt(weight).astype(terms.dtype)) @ terms)
        return WordGraph.from_documents(weighted, vocabulary, weight="cosine", rules=rules)

    def take_labels(self, labels: Labels, word_graph: WordGraph) -> None:
        """Set the attributes that say what is fitted."""
        self.classes_, self.n_labelled_, self.tuned_ = labels.classes, int(labels.labelled.sum()), None
        self.word_graph_ = word_graph

    @property
    def word_embeddings_(self) -> Floats:
        """H_vm of eq. 5, one row per word."""
        return self.scorer_.word_embeddings

    @property
    def n_iter_(self) -> int:
        """Number of iterations or epochs."""
        return max(len(self.history_), 1)

    def _rows(self, X: Any, reset: bool = False) -> csr_array:
        types = [np.float32, np.float64]
        return csr_array(validate_data(self, X, accept_sparse="csr", dtype=types, reset=reset))

    @property
    def _fitted(self) -> Scorer:
        check_is_fitted(self)
        return self.scorer_

    def _scores(self, X: Any) -> Floats:
        return self._fitted.scores_of(self._rows(X))

    def decision_function(self, X: Any) -> Floats:
        """Return scores of shape (n_documents, n_classes), or (n_documents,) for two classes."""
        return self._fitted.margins(self._scores(X))

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return probabilities of shape (n_documents, n_classes)."""
        return self._fitted.probabilities(self._scores(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return one label per document; for a multi-label model a 0/1 matrix of shape (n_documents, n_classes).

        X is weighted as the matrix that was fitted. For documents that come with citations, give what
        `wgcn.graph.citations.attach_citations` makes of it.
        """
        scorer, rows = self._fitted, self._rows(X)
        return scorer.named(scorer.decisions(rows.data, rows.indices, rows.indptr), self.classes_)

    def transform(self, X: Any) -> Floats:
        """Return document embeddings H_dm (eq. 5) of shape (n_documents, n_embedding)."""
        scorer, rows = self._fitted, self._rows(X)
        return scorer.embed(rows.data, rows.indices, rows.indptr)

    @property
    def _n_features_out(self) -> int:
        return int(self.word_embeddings_.shape[1])

    def score(self, X: Any, y: object, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the accuracy on the labelled documents; with several labels, the share that is wholly right.

        Unlabelled documents do not count. For cross-validation, `wgcn.LabelledKFold` as `cv` leaves them in
        training, where they help, and stratifies the others. Labels are as for `fit`, and `sample_weight` has the
        shape (n_documents,).
        """
        return labelled_accuracy(y, self.predict(X), self.classes_, sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.classifier_tags.multi_label = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class WGCNClassifier(MatrixClassifier):
    """Linearised word grounded graph convolutional network, for document-term matrices.

    The model is X (I + a A) W + b with the word graph A: convex, fast to train, without torch. It also learns from
    unlabelled documents: see `wgcn.semi.teacher` and `wgcn.linear.training`. `WGCNNetworkClassifier` is the paper's
    own network.

    Parameters
    ----------
    alpha, subwords, C, class_weight, class_prior, tune, n_jobs
        As in `WGCNTextClassifier`; subwords have to be given to `fit`.
    naive_bayes : float, default=0.5
        Strength of the naive Bayes scales, from 0 to 1: words that the classes use differently are regularised less.
    teacher : float, default=1.5
        Weight of the teacher's scores, multiplied by the share of unlabelled documents; 0 for no teacher. Multi-label
        models have none.
    self_training : float, default=0.3
        Weight of a document with a pseudo-label relative to a labelled one, in a second fit without the teacher; 0
        leaves this fit out. Not for multi-label models.
    top_k : int or None, default=100
        Number of edges that a word keeps in a graph made from X.
    random_state : int, RandomState or None, default=0
        Chooses the held-out documents and the folds of `tune`.

    Attributes
    ----------
    classes_, word_graph_, word_embeddings_, history_, tuned_
        As in `WGCNTextClassifier`.
    held_out_accuracy_ : float or None
        Share of held-out documents that a first fit, or with few labels the teacher, got right (multi-label: wholly
        right).
    trained_ : LinearTrained
        What the fit leaves behind for later ones: duals, held-out scores, the teacher. Copies and pickles have it too.
    n_iter_, n_features_in_ : int

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> texts = ["red wine", "white wine", "fast car", "slow car"]
    >>> vectorizer = TfidfVectorizer()
    >>> model = WGCNClassifier().fit(vectorizer.fit_transform(texts), ["drink", "drink", "drive", "drive"])
    >>> model.predict(vectorizer.transform(["a glass of red", "a fast one"])).tolist()
    ['drink', 'drive']
    """

    alpha: float = 0.5
    subwords: float = 1.5
    naive_bayes: float = 0.5
    C: float = 0.5
    teacher: float = 1.5
    self_training: float = 0.3
    top_k: int | None = 100
    class_weight: ClassWeight = None
    class_prior: ClassPrior = None
    tune: bool = True
    n_jobs: int | None = None
    random_state: Any = 0

    def fit(
        self,
        X: Any,
        y: object,
        sample_weight: npt.ArrayLike | None = None,
        *,
        word_graph: WordGraph | None = None,
        document_graph: csr_array | None = None,
        unlabeled: csr_array | None = None,
        word_vectors: Floats | None = None,
        seeds: SeedRows | None = None,
        subwords: csr_array | None = None,
        leads: Mapping[int, csr_array] | None = None,
        digests: npt.NDArray[np.int64] | None = None,
        verbose: bool = False,
    ) -> WGCNClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_features)
            Document-term matrix, weighted as wanted (tf-idf rows of length 1 are a good choice).
        y : sequence
            One label per document, -1 or a missing value for an unlabelled one: see `wgcn.labels.reading`.
            Unlabelled documents still shape a graph that is made from X.
        sample_weight : array of shape (n_documents,), optional
            Not negative. A document of weight 0 does not count.
        word_graph : WordGraph, optional
            A_vv. Without it, the graph is made from X: the cosines between its columns (eq. 2), or, with
            `document_graph`, X^T A_dd X (eq. 4).
        document_graph : csr_array of shape (n_documents, n_documents), optional
            Citations between the documents of X.
        unlabeled : csr_array of shape (n_more, n_features), optional
            More unlabelled documents, for the teacher and self-training.
        word_vectors : array of shape (n_features, n_values), optional
            Vectors of the words from elsewhere, zeros for a word without one, for the teacher. Of use where most
            documents are unlabelled.
        seeds : SeedRows, optional
            Words that stand for classes, from `wgcn.semi.seed_words.find_seeds`; `y` is read with their classes.
        subwords : csr_array of shape (n_features, n_subwords), optional
            Which subwords a word has, with their weights: see `wgcn.text.subwords`.
        leads : mapping from int to csr_array of shape (n_documents + n_more, n_features), optional
            The documents of X and `unlabeled` weighted otherwise, by how many terms at their beginning count more. With
            `tune`, the fit may choose one of them instead; `tuned_` says which.
        digests : int64 array of shape (n_documents + n_more,), optional
            A number for each document of X and `unlabeled`, by which folds and samples are drawn in the same way in
            any order of rows; by default a hash of its row.
        verbose : bool, default=False
            Whether to print the stages of the work with the seconds that each took.
        """
        with shown(verbose):
            task = self.task(
                X,
                y,
                sample_weight,
                word_graph=word_graph,
                document_graph=document_graph,
                unlabeled=unlabeled,
                word_vectors=word_vectors,
                seeds=seeds,
                subwords=subwords,
                leads=leads,
                digests=digests,
            )
            return self.train(task)

    @classmethod
    def of(cls, parameters: object) -> Self:
        """Return a classifier with the attributes of an object that are its parameters; others have their defaults."""
        names = [each.name for each in fields(cls) if hasattr(parameters, each.name)]
        return cls(**{name: getattr(parameters, name) for name in names})

    def train(
        self,
        task: LinearTask,
        earlier: Earlier | None = None,
        training: LinearTraining | None = None,
        make_trainer: MakeTrainer | None = None,
    ) -> Self:
        """Train on a task; `training` is that of the parameters by default. For the rest see `train_linear`."""
        return self.resume(train_linear(task, training or LinearTraining.of(self), earlier, make_trainer))

    def resume(self, trained: LinearTrained) -> Self:
        """Take over what a training left behind."""
        self.trained_, self.scorer_ = trained, trained.scorer
        self.history_, self.tuned_ = trained.history, trained.tuned
        self.held_out_accuracy_, self.n_held_out_ = trained.held_out_accuracy, trained.n_held_out
        return self

    def _check_settings(self) -> None:
        check_numbers(self, real=["alpha", "subwords", "naive_bayes", "C", "teacher", "self_training"])
        LinearTraining.of(self)
        n_threads(self.n_jobs)
        try:
            check_random_state(self.random_state)
        except ValueError as error:
            raise InputError(f"random_state cannot be used: {error}") from error


def _checked_vectors(given: npt.ArrayLike, n_words: int) -> Floats:
    vectors: Floats = np.asarray(given)
    if vectors.ndim != 2 or len(vectors) != n_words or vectors.dtype.kind != "f":
        raise InputError(
            f"word_vectors must have a row of numbers for each of the {n_words:,} columns of X, got {vectors.dtype} of "
            f"shape {vectors.shape}."
        )
    if not np.isfinite(vectors).all():
        raise InputError("word_vectors has values that are not finite.")
    return vectors
