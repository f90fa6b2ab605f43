"""WGCNTextClassifier: texts in, labels out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Generic, Self, TypeVar
from warnings import warn

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from wgcn.active.curve import CurvePoint
from wgcn.active.notices import notices, told_apart
from wgcn.active.review import Doubt
from wgcn.base.arrays import Floats, Ints
from wgcn.base.errors import InputError, WGCNWarning
from wgcn.base.progress import shown
from wgcn.estimators.matrix import ClassPrior, ClassWeight, WGCNClassifier
from wgcn.estimators.preparation import Preparation
from wgcn.estimators.saved import read_parameters, read_session, session_files
from wgcn.estimators.session import Session
from wgcn.explain.explanation import Explanation
from wgcn.graph import WordGraph
from wgcn.graph.citations import attach_citations
from wgcn.labels.reading import Labels, check_lengths, checked_weights, labelled_accuracy, read_labels
from wgcn.linear.task import LinearTraining
from wgcn.linear.tuning import LEADS
from wgcn.model.embedding import EmbeddingModel
from wgcn.model.text_model import MODEL_SCHEMA, TextModel
from wgcn.semi.seed_words import GivenSeeds, SeedCheck, SeedWord, read_seeds
from wgcn.store.folder import Folder, load_folder
from wgcn.text.corpus import Observed
from wgcn.text.tokenize import Tokenizer, checked_texts

Model = TypeVar("Model", TextModel, EmbeddingModel)
Texts = Iterable[str]


Seeds = Mapping[Any, Sequence[str]] | Sequence[Any]


class TextEstimator(BaseEstimator, Generic[Model]):
    """What the estimators for texts have in common. `fit` sets `model_` and `word_embeddings_`."""

    model_: Model
    word_embeddings_: Floats

    @property
    def _fitted(self) -> Model:
        check_is_fitted(self, "model_")
        return self.model_

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[np.object_]:
        """Return the names of the columns that `transform` gives."""
        check_is_fitted(self, "model_")
        return np.array([f"wgcn{i}" for i in range(self.word_embeddings_.shape[1])], dtype=object)

    def save(self, path: str | Path) -> str:
        """Write the fitted model to a folder, which `load` of the class of `model_` reads. Return its digest."""
        return self._fitted.save(path)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class WGCNTextClassifier(ClassifierMixin, TextEstimator[TextModel]):
    """Classify texts through a graph of their words.

    Every text given to `fit`, labelled or not, shapes the vocabulary, the idf and the word graph. Texts to be predicted
    are not seen before prediction.

    Parameters
    ----------
    tokenizer : {"words", "characters", "text_gcn"} or callable, default="words"
        "characters" for languages that write no blanks between words, such as Chinese, Japanese and Thai.
    ngram_range : (int, int), default=(1, 2)
        Shortest and longest word n-gram. N-grams have no edges in the word graph, unless there are no single words.
    min_count : int or None, default=None
        Keep words and n-grams that occur at least this often. None keeps n-grams that occur twice, and all words, or,
        if these are more than 100,000, those that occur twice. Of n-grams of one length it keeps a million.
    stop_words : collection of str or None, default=None
        Words to drop.
    window : int, default=20
        Tokens in a window; words that share windows get an edge in the word graph.
    alpha : float, default=0.5
        Weight of the word graph beside the words themselves; 0 leaves the graph out.
    subwords : float, default=1.5
        Weight of the subwords, the character n-grams of words; 0 leaves them out, and words that training did not see
        are then ignored.
    C : float, default=0.5
        Inverse of the regularisation strength: the weight of the loss relative to the L2 penalty.
    class_weight : dict, "balanced" or None, default=None
    class_prior : dict, "uniform" or None, default=None
        Shares of the classes among unlabelled and future texts, if they differ from those among the labels. Wrong
        shares cost accuracy. Not for multi-label models.
    tune : bool, default=True
        Whether to compare a few other settings with those given on held-out texts, from 1,000 labelled texts on: a
        lead for long texts, another C, and no naive Bayes scales: see `wgcn.linear.tuning`.
    n_jobs : int or None, default=None
        Number of threads; None or -1 for one per core, -2 for one less, and so on.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    word_graph_ : WordGraph
        A_vv.
    word_embeddings_ : array of shape (n_words, n_classes)
        H_vm of eq. 5.
    classifier_ : WGCNClassifier
        The fitted model.
    model_ : TextModel
        What is saved, and what predicts.
    tuned_ : Tuned or None
        What `tune` chose, and why; None if there were too few labels.
    history_ : list of dict
        Objective after each iteration of the final fit.
    seed_words_ : dict
        With `seeds`, words of each class as `wgcn.semi.seed_words.SeedWord`: those given, then those near them.
    session_ : Session
        The texts of the last fit as numbers, their labels, and what was trained. Copies and pickles have it too; a
        folder does if it was saved with `session`.

    Examples
    --------
    >>> texts = ["red wine", "white wine", "fast car", "slow car", "a fast red car"]
    >>> model = WGCNTextClassifier().fit(texts, ["drink", "drink", "drive", "drive", None])
    >>> model.predict(["a glass of wine"]).tolist()
    ['drink']
    """

    tokenizer: str | Tokenizer = "words"
    ngram_range: tuple[int, int] = (1, 2)
    min_count: int | None = None
    stop_words: Collection[str] | None = None
    window: int = 20
    alpha: float = 0.5
    subwords: float = 1.5
    C: float = 0.5
    class_weight: ClassWeight = None
    class_prior: ClassPrior = None
    tune: bool = True
    n_jobs: int | None = None

    def fit(
        self,
        X: Texts,
        y: object = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        seeds: Seeds | None = None,
        classes: Sequence[Any] = (),
        unlabeled: Texts = (),
        background: Texts = (),
        document_graph: csr_array | None = None,
        vectors: Mapping[str, npt.ArrayLike] | None = None,
        verbose: bool = False,
    ) -> WGCNTextClassifier:
        """Fit the model.

        Parameters
        ----------
        X : iterable of str
        y : sequence
            One label per text, None (or -1, NaN, pd.NA, a blank string) for an unlabelled one; or a list of labels per
            text. With `seeds`, no text needs a label, and `y` may be None.
        sample_weight, verbose
            As in `WGCNClassifier.fit`.
        seeds : dict or list, optional
            Words that stand for classes instead of labels or beside them, such as ``{"sport": ["game", "team"]}``; a
            list of class names makes these the seeds. A word that begins with "-" must not count for the class.
        classes : sequence, optional
            Classes that may have no label yet, in addition to those of the labels. They are in `classes_` and have
            probabilities, so that few labels do not make the model too certain; they are hardly ever predicted.
        unlabeled : iterable of str, optional
            More unlabelled texts.
        background : iterable of str, optional
            Texts from elsewhere, such as a larger collection, for vocabulary, idf and word graph only: unlike
            `unlabeled` they need not belong to the classes.
        document_graph : csr_array of shape (n_texts, n_texts), optional
            Citations between the texts of X: the word graph is then made from them (eq. 4), not from windows.
        vectors : mapping from str to array, optional
            Vectors of words from elsewhere, such as GloVe's, for the teacher: they help where few texts are labelled.
            Prediction needs none.
        """
        X, labels, given = _with_labels(X, y, seeds, classes)
        n_labels = len(labels.labelled)
        self.check_parameters(labels)
        classifier, preparation = WGCNClassifier.of(self), Preparation.of(self)
        own = Observed(told_apart(checked_texts(X, "X"), labels))
        check_lengths(len(X) if isinstance(X, Sized) else n_labels, n_labels)
        weight = checked_weights(sample_weight, n_labels)
        with shown(verbose):
            prepared = preparation.prepare(
                chain(own, checked_texts(unlabeled, "unlabeled")),
                background=checked_texts(background, "background"),
                with_graph=document_graph is None,
                leads=LEADS if LinearTraining.of(self).tunes(int(labels.labelled.sum())) else (),
            )
            check_lengths(own.n, n_labels)
            for notice in notices(own, *labels, own_tokenizer=self.tokenizer not in ("words", "text_gcn")):
                warn(notice, WGCNWarning, stacklevel=2)
            fixed = "" if document_graph is None and vectors is None else "vectors" if vectors else "document_graph"
            session = Session(prepared, classifier, fixed=fixed)
            session = session.train(labels, weight, seeds=given, vectors=vectors, document_graph=document_graph)
        return self._take(session, session.model(self.get_params(deep=False)))

    def _take(self, session: Session, model: TextModel) -> Self:
        """Take over what was trained."""
        self.session_ = session
        if hasattr(self, "seed_words_"):  # of an earlier fit
            del self.seed_words_
        if session.seed_words is not None:
            self.seed_words_: dict[Any, list[SeedWord]] = session.seed_words
        return self._keep(session.classifier, session.classifier.word_graph_, model)

    def _keep(self, classifier: WGCNClassifier, word_graph: WordGraph, model: TextModel) -> Self:
        self.classifier_, self.word_graph_ = classifier, word_graph
        self.tuned_, self.history_ = classifier.tuned_, classifier.history_
        return self._with_model(model)

    def _with_model(self, model: TextModel) -> Self:
        self.model_, self.classes_, self.word_embeddings_ = model, model.classes, model.scorer.word_embeddings
        return self

    def _session(self) -> Session:
        """Return the session of the last fit, or say why there is none to go on from."""
        check_is_fitted(self, "model_")
        if not hasattr(self, "session_"):
            raise InputError(
                "This model has no training texts, which update, suggest and review need: it was loaded from a folder "
                "that was saved without them, or extended. Save a fitted estimator by save(folder, session=True), or "
                "fit again."
            )
        if Preparation.of(self) != self.session_.prepared.preparation:
            raise InputError("Parameters that say how texts are prepared were changed after the last fit: fit again.")
        return self.session_

    def update(self, texts: Texts, labels: object, *, verbose: bool = False) -> Self:
        """Add texts and labels to those of the last fit, and fit again from where it ended.

        The result is nearly that of a `fit` to all texts, in less time. From two million tokens on, the word graph is
        counted again only once an eighth of all texts are new to it; until then, new words have no edges. The model
        before scores the incoming texts; with earlier held-out ones they calibrate the new one. What `tune` chose
        stays.

        Parameters
        ----------
        texts : iterable of str
            Texts that the last fit had, in X or `unlabeled`, which get the labels, and new ones, which are added to X.
        labels : sequence
            One label per text, as in `fit`, also of new classes. None leaves the label of a known text as it is. A
            sample weight is that of the fit, 1 for a new text.
        verbose : bool, default=False
            Whether to print the stages of the work with the seconds that each took.
        """
        given, session = list(checked_texts(texts)), self._session()
        with shown(verbose):
            session = session.update(given, labels, WGCNClassifier.of(self))
        return self._take(session, session.model(self.get_params(deep=False)))

    def expand_seeds(self, X: Texts, seeds: Seeds) -> dict[Any, list[SeedWord]]:
        """Return the words of each class without fitting: those given, then those they draw in."""
        return self.check_seeds(X, seeds).words

    def check_seeds(self, X: Texts, seeds: Seeds) -> SeedCheck:
        """Check seeds without labels and without fitting: words they draw in, coverage, agreement and class shares."""
        given = read_seeds(seeds)
        return Session.of(self, checked_texts(X, "X")).check_seeds(given)

    def review(self, n: int | None = None) -> list[Doubt]:
        """Return the `n` labels of the last fit that look most wrong, or all, most doubtful first.

        A `Doubt` has the index of the text in X, the given label, the most likely one, and how much speaks against
        the given one, from 0 to 1: see `wgcn.active.review`.
        """
        return self._session().review(n)

    def suggest(self, n: int = 10, texts: Texts | None = None) -> npt.NDArray[np.int64]:
        """Return the indices of `n` unlabelled texts to label next, the most useful first: `wgcn.active.suggest`.

        After a fit they count through its texts, X first and then `unlabeled`. Before one, give the `texts`.
        """
        if texts is None:
            return self._session().suggest(n)
        if hasattr(self, "model_"):
            raise InputError("After a fit, suggest chooses from the texts of the fit: give it more as unlabeled.")
        return Session.of(self, checked_texts(texts, "texts")).suggest(n)

    def learning_curve(self, X: Texts, y: object, sizes: Sequence[int] | None = None) -> list[CurvePoint]:
        """Return the accuracy for growing numbers of labels, by cross-validation: see `wgcn.active.curve`.

        `X` and `y` are as for `fit`. By default, each of at most six numbers is twice the one before. The held-out
        texts shape vocabulary and word graph alone. This estimator stays as it is.
        """
        labels = read_labels(y)
        texts = list(told_apart(checked_texts(X, "X"), labels))
        self.check_parameters(labels)
        check_lengths(len(texts), len(labels.labelled))
        return Session.of(self, texts).learning_curve(labels, sizes)

    def extend(self, texts: Texts, min_count: int = 2) -> Self:
        """Return a fitted estimator with rows for words that training did not see: see `TextModel.extend`.

        This estimator stays as it is. In the new one, `model_`, `word_embeddings_` and `word_graph_` have the words of
        training first, then the new ones, which have no edges in `word_graph_`. `classifier_` is the one that was
        fitted, with the words of training alone.
        """
        model = self._fitted.extend(texts, min_count)
        extended: Self = clone(self)
        if not hasattr(self, "classifier_"):  # it was loaded
            return extended._with_model(model)
        return extended._keep(self.classifier_, self.word_graph_.among(model.vocabulary), model)

    def save(self, path: str | Path, *, session: bool = False) -> str:
        """Write the fitted model to a folder, completely or not at all; return its digest.

        `TextModel.load` reads it, and so does `load`. With `session`, the folder also has what `update`, `suggest` and
        `review` need: the words of the training texts in their order, and their labels. Whoever has the folder can read
        them; a model without a session holds words and weights alone. Saving without a session removes an earlier one.
        """
        if not session:
            return self._fitted.save(path)
        files = session_files(self._session(), self.get_params(deep=False), self._resumed)
        return self._fitted.save(path, session=files)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a folder that `save` wrote. Nothing in it is executed.

        With a session, the estimator goes on as the one that was saved, with the same bits on the same machine. Without
        one it predicts and explains; of its parameters, it has those that prediction needs, and the others by default.
        """
        folder = load_folder(path, "model", MODEL_SCHEMA, with_session=True)
        if folder.session is not None:
            return cls._resumed(folder)
        model = TextModel.from_folder(folder)
        loaded = cls(tokenizer=model.tokenizer, ngram_range=model.ngram_range)
        loaded.stop_words = list(model.stop_words) or None
        return loaded._with_model(model)

    @classmethod
    def _resumed(cls, folder: Folder) -> Self:
        """Return the estimator that a folder with a session holds."""
        assert folder.session is not None
        estimator = cls(**read_parameters(folder.session))
        return estimator._take(*read_session(folder, folder.session, estimator))

    def check_parameters(self, y: object = None) -> None:
        """Raise an InputError if a parameter cannot be used, or does not fit the labels `y`. `fit` does so first."""
        Preparation.of(self)
        WGCNClassifier.of(self).check_parameters(y)

    def predict(
        self,
        X: Texts,
        *,
        document_graph: csr_array | None = None,
        documents: Texts | None = None,
        hops: int = 1,
        abstain: float | None = None,
    ) -> npt.NDArray[Any]:
        """Return one label per text; for a multi-label model a 0/1 matrix of shape (n_texts, n_classes).

        With `abstain`, a label is None where it is not to be trusted: see `TextModel.predict`.

        With `document_graph`, the rows of the texts in X_dv are averaged with the rows of what they cite, up to `hops`
        links away; nothing is fitted again. It is of shape (n_texts, n_others), entry [i, j] positive if text i cites
        `documents[j]`; or square, with the links among all, the texts of X first. It helps most where the texts
        themselves are short: see `wgcn.graph.citations.attach_citations`.
        """
        if document_graph is None and documents is None:
            return self._fitted.predict(checked_texts(X, "X"), abstain=abstain)
        if abstain is not None:
            raise InputError("abstain is for texts without citations: leave out document_graph and documents.")
        scorer = self._fitted.scorer
        return scorer.named(scorer.decisions(*self._cited(X, document_graph, documents, hops)), self.classes_)

    def predict_proba(
        self, X: Texts, *, document_graph: csr_array | None = None, documents: Texts | None = None, hops: int = 1
    ) -> npt.NDArray[np.float64]:
        """Return probabilities of shape (n_texts, n_classes); for citations see `predict`."""
        if document_graph is None and documents is None:
            return self._fitted.predict_proba(checked_texts(X, "X"))
        scorer = self._fitted.scorer
        return scorer.probabilities(scorer.scores(*self._cited(X, document_graph, documents, hops)))

    def decision_function(self, X: Texts) -> Floats:
        """Return scores of shape (n_texts, n_classes), or (n_texts,) for two classes."""
        return self._fitted.scorer.margins(self._fitted.scores(checked_texts(X, "X")))

    def transform(self, X: Texts) -> Floats:
        """Return document embeddings H_dm (eq. 5) of shape (n_texts, n_classes)."""
        return self._fitted.transform(checked_texts(X, "X"))

    def score(self, X: Texts, y: object, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the accuracy on the labelled texts; with several labels, the share that is wholly right.

        Unlabelled texts do not count: see `WGCNClassifier.score`.
        """
        return labelled_accuracy(y, self.predict(X), self.classes_, sample_weight)

    def explain(self, texts: Texts, label: object = None, *, alone: bool = False) -> list[Explanation]:
        """Return for each text the contribution of every term to the score of every class: see `TextModel.explain`."""
        return self._fitted.explain(texts, label, alone=alone)

    def top_words(self, label: object, n: int = 20) -> list[tuple[str, float]]:
        """Return the n words and n-grams that speak most for a class: see `TextModel.top_words`."""
        return self._fitted.top_words(label, n)

    def out_of_scope(self, texts: Texts, n_jobs: int | None = 1) -> npt.NDArray[np.float64]:
        """Return how strange each text is: see `TextModel.out_of_scope`."""
        return self._fitted.out_of_scope(texts, n_jobs)

    def predict_set(
        self, texts: Texts, coverage: float = 0.9, n_jobs: int | None = 1, *, as_mask: bool = False
    ) -> list[list[Any]] | npt.NDArray[np.bool_]:
        """Return for each text a list of the labels that are credible: see `TextModel.predict_set`."""
        return self._fitted.predict_set(texts, coverage, n_jobs, as_mask=as_mask)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _cited(
        self, X: Texts, document_graph: csr_array | None, documents: Texts | None, hops: int
    ) -> tuple[Floats, Ints, Ints, Floats | None]:
        """Return texts with their citations as `Terms.scored` has texts alone."""
        if document_graph is None:
            raise InputError("documents are given, but no document_graph that says which of them X cites.")
        cited = list(checked_texts(() if documents is None else documents, "documents"))
        texts = list(checked_texts(X, "X"))
        terms = self._fitted.terms([*texts, *cited])
        shape = len(texts) + len(cited), len(self._fitted.vocabulary) + len(terms.new.begins)
        rows = csr_array((terms.weights, terms.words, terms.offsets), shape=shape)
        known = None if documents is None else rows[len(texts) :]
        rows = attach_citations(rows[: len(texts)], document_graph, known, hops=hops)
        return rows.data, rows.indices, rows.indptr, terms.new_rows


def _with_labels(X: Texts, y: object, seeds: Any, classes: Sequence[Any]) -> tuple[Texts, Labels, GivenSeeds | None]:
    """Return texts, their labels, of which seeds need none, and the seeds."""
    given = None if seeds is None else read_seeds(seeds)
    if given is not None and y is None:
        X = list(checked_texts(X, "X"))
        y = [None] * len(X)
    labels = read_labels(y, (*(() if given is None else given.classes), *classes))
    if given is None and not labels.labelled.any():
        raise InputError("No text has a label: classes alone say nothing of texts. Label some, or give seeds.")
    if (
        given is not None
        and len(labels.targets)
        and not labels.targets.sums()[np.isin(labels.classes, given.classes)].any()
    ):
        warn("Seeds and labels name different classes: those of the seeds have no label.", WGCNWarning, stacklevel=3)
    return X, labels, given
