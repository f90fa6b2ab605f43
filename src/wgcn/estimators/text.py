"""WGCNTextClassifier: texts in, labels out."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self
from warnings import warn

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.active.notices import Observed, notices, told_apart
from wgcn.base.errors import InputError, WGCNWarning
from wgcn.base.progress import shown
from wgcn.estimators.classifier import LabelledClassifier
from wgcn.estimators.loop import LabellingLoop
from wgcn.estimators.matrix import WGCNClassifier
from wgcn.estimators.preparation import Preparation, TextEstimator
from wgcn.estimators.session import TrainingSet, read_parameters, read_session, session_parts
from wgcn.estimators.update import Updating
from wgcn.graph import WordGraph
from wgcn.graph.citations import attach_citations
from wgcn.labels.reading import Labels, check_lengths, checked_weights, read_labels
from wgcn.linear.operator import row_slice
from wgcn.linear.tuning import LEADS, MIN_LABELS
from wgcn.model.answers import Answers
from wgcn.model.text_model import MODEL_SCHEMA, TextModel
from wgcn.semi.seed_words import GivenSeeds, read_seeds, seed_report
from wgcn.store.folder import Folder, Session, load_folder
from wgcn.text.tokenize import Tokenizer, checked_texts
from wgcn.trust.abstention import held_out_trust
from wgcn.trust.scope import n_tokens

Texts = Iterable[str]


@dataclass(kw_only=True, eq=False, repr=False)
class WGCNTextClassifier(LabelledClassifier, TextEstimator[TextModel], Answers, Updating, LabellingLoop):
    """Classify texts through a graph of their words.

    Every text given to `fit`, labelled or not, shapes the vocabulary, the idf and the word graph. Nothing of the texts
    to be predicted is seen before.

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
        Tokens in a window of the word graph; the graph joins words that share windows.
    alpha : float, default=0.5
        Weight of the word graph beside the words themselves; 0 leaves the graph out.
    subwords : float, default=1.5
        Weight of the character n-grams of words, likewise; 0 leaves them out, and then words that training did not see
        do not count.
    C : float, default=0.5
        Weight of the loss beside the L2 penalty: larger fits the training texts closer.
    class_weight : dict, "balanced" or None, default=None
    class_prior : dict, "uniform" or None, default=None
        Shares of the classes among the texts to be predicted and the unlabelled ones, if they are other than among the
        labels. Scores are shifted by the logarithms of the shares. Not for multi-label models.
    tune : bool, default=True
        Whether to compare a few other settings with those given, where at least 1,000 texts are labelled: long texts
        whose beginning counts more, another C, and a model that penalises all words alike: `wgcn.linear.tuning`.
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
    training_set_ : TrainingSet
        The texts of the last fit as numbers, and their labels. Copies and pickles have it too; a folder does if it was
        saved with `session`.

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
    class_weight: dict[Any, float] | str | None = None
    class_prior: dict[Any, float] | Literal["uniform"] | None = None
    tune: bool = True
    n_jobs: int | None = None

    def fit(
        self,
        X: Texts,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        seeds: Mapping[Any, Sequence[str]] | Sequence[Any] | None = None,
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
            Classes that may have no label yet, beside those of the labels. They are in `classes_` and have
            probabilities, so that few labels claim no more than they can tell; they are hardly ever predicted.
        unlabeled : iterable of str, optional
            More unlabelled texts.
        background : iterable of str, optional
            Texts from elsewhere, such as a larger collection, for vocabulary, idf and word graph alone: unlike
            `unlabeled` they need not be of the classes.
        document_graph : csr_array of shape (n_texts, n_texts), optional
            Citations between the texts of X: the word graph is then made from them (eq. 4), not from windows.
        vectors : mapping from str to array, optional
            Vectors of words from elsewhere, such as GloVe's, for the teacher: they help where few texts are labelled.
            Prediction needs none.
        """
        X, labels, given = _with_labels(X, y, seeds, classes)
        n_labels = len(labels.labelled)
        self.check_parameters(labels)
        classifier, preparation = self._classifier(), Preparation.of(self)
        own = Observed(told_apart(checked_texts(X, "X"), labels))
        check_lengths(len(X) if isinstance(X, Sized) else n_labels, n_labels)
        weight = checked_weights(sample_weight, n_labels)
        with shown(verbose):
            prepared = preparation.prepare(
                chain(own, checked_texts(unlabeled, "unlabeled")),
                background=checked_texts(background, "background"),
                with_graph=document_graph is None,
                leads=LEADS if self.tune and labels.labelled.sum() >= MIN_LABELS else (),
            )
            check_lengths(own.n, n_labels)
            for notice in notices(own, *labels, own_tokenizer=self.tokenizer not in ("words", "text_gcn")):
                warn(notice, WGCNWarning, stacklevel=2)
            started = time.perf_counter()
            classifier.fit(
                row_slice(prepared.document_terms, 0, n_labels),
                labels,
                sample_weight,
                word_graph=prepared.word_graph if document_graph is None else prepared.citation_graph(document_graph),
                unlabeled=row_slice(prepared.document_terms, n_labels, prepared.document_terms.shape[0]),
                word_vectors=None if vectors is None else prepared.word_vectors(vectors),
                seeds=prepared.seed_rows(given, labels.classes),
                subwords=prepared.subword_matrix(self.subwords),
                leads=prepared.by_lead,
                digests=prepared.digests,
            )
        if classifier.tuned_ is not None:
            prepared = prepared.with_lead(int(classifier.tuned_.settings["lead"]))
        fixed = "" if document_graph is None and vectors is None else "vectors" if vectors else "document_graph"
        return self._finish(classifier, TrainingSet(prepared, labels, weight, fixed, given), started)

    def _finish(self, classifier: WGCNClassifier, training_set: TrainingSet, started: float) -> WGCNTextClassifier:
        settings = self.get_params(deep=False)
        del settings["tune"], settings["n_jobs"]
        if classifier.tuned_ is not None:
            settings.update(classifier.tuned_.settings, lead=training_set.prepared.weighting.lead)
        model = training_set.prepared.text_model(classifier, settings, time.perf_counter() - started)
        self.training_set_ = training_set
        self.__dict__.pop("seed_words_", None)  # of an earlier fit
        if (teacher := classifier.trained_.teacher) and teacher.seeded:
            self.seed_words_ = dict(zip(classifier.classes_.tolist(), teacher.seeded.words, strict=True))
            shares = dict(zip(classifier.classes_.tolist(), teacher.estimated_shares().tolist(), strict=True))
            given = None if self.class_prior is None else model.scorer.prior.tolist()
            told = seed_report(training_set.seeds, self.seed_words_, teacher.seeded.trust, shares, given)
            model = replace(model, report=model.report | told)
        if (held_out := classifier.trained_.held_out) is not None:
            prepared = training_set.prepared
            lengths = partial(n_tokens, prepared.tokens, ngram_range=self.ngram_range, stop_words=model.stop_words)
            known = prepared.document_terms, prepared.term_counts, lengths, training_set.labels
            model = replace(model, trust=held_out_trust(model, *known, *held_out))
        return self._keep(classifier, classifier.word_graph_, model)

    def _keep(self, classifier: WGCNClassifier, word_graph: WordGraph, model: TextModel) -> Self:
        self.classifier_, self.word_graph_ = classifier, word_graph
        self.tuned_, self.history_ = classifier.tuned_, classifier.history_
        return self._with_model(model)

    def _with_model(self, model: TextModel) -> Self:
        self.model_, self.classes_, self.word_embeddings_ = model, model.classes, model.scorer.word_embeddings
        return self

    def save(self, path: str | Path, *, session: bool = False) -> str:
        """Write the fitted model to a folder, completely or not at all; return its digest.

        `TextModel.load` reads it, and so does `load`. With `session`, the folder also has what `update`, `suggest` and
        `review` need: the words of the training texts in their order, and their labels. Whoever has the folder can read
        them; a model without a session holds words and weights alone. Saving without a session removes an earlier one.
        """
        if not session:
            return self._fitted.save(path)
        seen, words = self._training_set(), getattr(self, "seed_words_", None)
        given = self.get_params(deep=False), seen, self.word_graph_, self.classifier_.trained_, words
        return self._fitted.save(path, session=Session(*session_parts(*given), self._resumed))

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
        session, model = folder.session, TextModel.from_folder(folder)
        assert session is not None
        estimator = cls(**read_parameters(session))
        with session.checked():
            preparation, classifier = Preparation.of(estimator), estimator._classifier()
        found = read_session(session, model, preparation)
        with session.checked():
            estimator.check_parameters(found.training_set.labels)
        labels, estimator.training_set_ = found.training_set.labels, found.training_set
        classifier.classes_, classifier.n_labelled_ = labels.classes, int(labels.labelled.sum())
        classifier.word_graph_, classifier.n_features_in_ = found.graph, len(model.vocabulary)
        if found.seed_words is not None:
            estimator.seed_words_ = found.seed_words
        return estimator._keep(classifier.resume(found.trained), found.graph, model)

    def check_parameters(self, y: Any = None) -> None:
        """Raise an InputError if a parameter cannot be used, or does not fit the labels `y`. `fit` does so first."""
        Preparation.of(self)
        self._classifier().check_parameters(y)

    def _classifier(self) -> WGCNClassifier:
        names = [field.name for field in fields(WGCNClassifier) if hasattr(self, field.name)]
        return WGCNClassifier(**{name: getattr(self, name) for name in names})

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

    def decision_function(self, X: Texts) -> npt.NDArray[Any]:
        """Return scores of shape (n_texts, n_classes), or (n_texts,) for two classes."""
        return self._fitted.scorer.margins(self._fitted.scores(checked_texts(X, "X")))

    def transform(self, X: Texts) -> npt.NDArray[Any]:
        """Return document embeddings H_dm (eq. 5) of shape (n_texts, n_classes)."""
        return self._fitted.transform(checked_texts(X, "X"))

    def _cited(
        self, X: Texts, document_graph: csr_array | None, documents: Texts | None, hops: int
    ) -> tuple[Any, Any, Any, Any]:
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


def _with_labels(X: Texts, y: Any, seeds: Any, classes: Sequence[Any]) -> tuple[Texts, Labels, GivenSeeds | None]:
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
