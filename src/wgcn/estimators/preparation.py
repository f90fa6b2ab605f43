"""What estimators for texts share: above all the work that needs no labels (vocabulary, weights, word graph)."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from wgcn import __version__
from wgcn.active.notices import Observed
from wgcn.base.errors import InputError, check_numbers
from wgcn.base.progress import stage
from wgcn.base.threads import n_threads
from wgcn.explain.explanation import make_split
from wgcn.graph import EdgeRules, WordGraph
from wgcn.graph.association import WEIGHTS, Weight
from wgcn.linear.additions import carried_graph
from wgcn.model.embedding import EmbeddingModel
from wgcn.model.text_model import TextModel
from wgcn.scoring.spelling import make_spelling
from wgcn.scoring.terms import load_compiled
from wgcn.semi.seed_words import GivenSeeds, SeedRows, find_seeds
from wgcn.text import kernels
from wgcn.text.corpus import Corpus, Tokens
from wgcn.text.ngrams import check_ngram_range
from wgcn.text.subwords import Subwords, find_subwords
from wgcn.text.tokenize import Tokenizer, checked_texts, resolve_tokenizer
from wgcn.text.vocabulary import Vocabulary, VocabularyRules
from wgcn.text.weighting import LONG, Norm, TermWeighting, document_terms, smooth_idf

if TYPE_CHECKING:
    from wgcn.estimators.matrix import MatrixClassifier

Model = TypeVar("Model", TextModel, EmbeddingModel)

_MANY_WORDS = 100_000
_MANY_NGRAMS = 1_000_000  # of one length: in more text, an n-gram has to occur more often to count
_MANY_PAIRS = 20_000_000  # of words that share windows: in more text, a pair has to be seen more often to count
_LONG_SHARE = 0.25  # of texts: where fewer are long, it makes no difference what counts in these
_CITATION_EDGES = 100  # per word, of a graph of citations: it is dense otherwise


@dataclass(frozen=True)
class Preparation:
    """How texts are prepared: `WGCNTextClassifier` describes the first settings, and `EdgeRules` those of edges."""

    tokenizer: str | Tokenizer = "words"
    ngram_range: tuple[int, int] = (1, 2)
    min_count: int | None = None
    stop_words: Collection[str] | None = None
    window: int = 20
    sublinear: bool = True  # a word that occurs n times counts 1 + log(n)
    norm: Norm = "l2"  # of the weights of a document
    weight: Weight = "pmi"  # of the edges
    threshold: float = 0.0
    min_pairs: int = 2
    top_k: int | None = None
    ngram_edges: bool = False  # whether n-grams of two words and more have edges too
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        check_numbers(self, real=["threshold"], whole=["min_count", "min_pairs", "top_k", "window"])
        if self.window is None or self.window < 2:
            raise InputError(f"window must be at least 2 tokens, got {self.window}: a pair of words needs two places.")
        resolve_tokenizer(self.tokenizer)
        check_ngram_range(self.ngram_range)
        if not isinstance(self.stop_words, Collection | None):
            raise InputError(f"stop_words must be a collection of words or None, got {self.stop_words!r}.")
        if self.weight not in WEIGHTS:
            raise InputError(f"Unknown weight {self.weight!r}. Use one of {', '.join(WEIGHTS)}.")
        TermWeighting(np.empty(0, np.float32), norm=self.norm)
        n_threads(self.n_jobs)
        self.graph_settings()
        self.vocabulary_rules()

    def graph_settings(self) -> dict[str, Any]:
        """Return the settings of the word graph, as `WordGraph.from_corpus` has them."""
        rules = EdgeRules(self.threshold, self.min_pairs, self.top_k)
        return {"window": self.window, "weight": self.weight, "rules": rules, "max_pairs": _MANY_PAIRS}

    def vocabulary_rules(self) -> VocabularyRules:
        """Return which words and n-grams are kept."""
        words, ngrams = (1, 2) if self.min_count is None else (self.min_count, self.min_count)
        most = _MANY_NGRAMS if self.min_count is None else None
        return VocabularyRules(words, ngrams, max_ngrams=most, stop_words=self.stop_words or ())

    @classmethod
    def of(cls, estimator: Any) -> Preparation:
        """Return the preparation that the parameters of an estimator for texts describe."""
        names = ("tokenizer", "ngram_range", "min_count", "stop_words", "window", "n_jobs")
        return cls(**{name: getattr(estimator, name) for name in names})

    def prepare(
        self,
        texts: Iterable[str],
        *,
        background: Iterable[str] = (),
        with_graph: bool = True,
        leads: Iterable[int] = (),
        earlier: Prepared | None = None,
    ) -> Prepared:
        """Do what needs no labels, for texts of which the labelled come first.

        `background` are texts from elsewhere, for vocabulary, idf and word graph alone. The word graph is left out if
        it is made from citations. `leads` are those that can be chosen between later, by `Prepared.with_lead`. The
        texts that were prepared `earlier` come before these, with their lead, and are not read again.
        """
        started = time.perf_counter()
        own, n_jobs = Observed(checked_texts(texts)), self.n_jobs
        with stage("Tokenising") as tokenising:
            tokens = Tokens.from_texts(chain(own, checked_texts(background)), self.tokenizer, n_jobs)
            digests = np.array(own.digests)
            if earlier is not None:
                tokens = earlier.tokens.insert(len(earlier.digests), tokens)
                digests = np.concatenate([earlier.digests, digests])
            n_own = len(digests)
            corpus = Corpus.from_tokens(tokens, ngram_range=self.ngram_range, rules=self.vocabulary_rules())
            if (often := self.often_enough(corpus.vocabulary)) is not None:
                corpus = corpus.with_words(often)
            words = corpus.vocabulary
            tokenising.detail = f"{len(corpus):,} texts, {corpus.n_tokens:,} tokens, {len(words):,} words and n-grams"
        with stage("Weighting terms"):
            weighting = TermWeighting(
                smooth_idf(words.document_counts, len(corpus)), sublinear=self.sublinear, norm=self.norm
            )
            counts = document_terms(corpus, "count")
            counts = counts if n_own == len(corpus) else counts[:n_own]
            counts.data = counts.data.astype(np.min_scalar_type(int(counts.data.max(initial=0))))
            leads = leads if earlier is None else [earlier.weighting.lead]
            if earlier is None and not self.are_long(int(np.sum(counts.sum(axis=1) > LONG)), n_own):
                leads = ()
            parts = corpus.ids, corpus.offsets[: n_own + 1], counts.indices, counts.indptr, len(words)
            leading = {lead: kernels.leading_counts(*parts, lead) for lead in leads if lead}
        graph, n_in_graph = carried_graph(earlier, words, len(corpus), corpus.n_tokens)
        if with_graph and graph is None:
            with stage("Counting windows") as counting:
                nodes = self.nodes(words)
                corpus = corpus.with_words(nodes)
                graph = WordGraph.from_corpus(corpus, **self.graph_settings(), n_jobs=n_jobs)
                graph = graph.among(words, np.flatnonzero(nodes))
                counting.detail = f"{graph.adjacency.nnz:,} weights of the word graph"
        load_compiled()
        seconds = time.perf_counter() - started
        own_texts = tokens, digests, counts, leading
        made = Prepared(self, words, weighting, graph, len(corpus) - n_own, seconds, *own_texts, n_in_graph)
        return made if earlier is None else made.with_lead(earlier.weighting.lead)

    def often_enough(self, words: Vocabulary) -> npt.NDArray[np.bool_] | None:
        """Return which words occur often enough, where there are so many that some are left out."""
        many = self.min_count is None and np.sum(~words.are_ngrams) > _MANY_WORDS
        return np.asarray(words.counts >= min(2, words.counts.max())) if many else None

    @staticmethod
    def are_long(n_long: int, n_texts: int) -> bool:
        """Whether so many texts are long that it may matter what counts in them."""
        return n_long >= _LONG_SHARE * n_texts

    def nodes(self, vocabulary: Vocabulary) -> npt.NDArray[np.bool_]:
        """Return which words may have edges. If there are no single words, n-grams have edges anyway."""
        words = ~vocabulary.are_ngrams
        return np.ones(len(words), bool) if self.ngram_edges or not words.any() else words


@dataclass(frozen=True, eq=False)
class Prepared:
    """What `Preparation.prepare` makes of texts. Fits with other labels or seeds can share it."""

    preparation: Preparation
    vocabulary: Vocabulary
    weighting: TermWeighting
    word_graph: WordGraph | None
    n_background: int  # texts that shaped all of this, but have no row in `document_terms`
    seconds: float
    tokens: Tokens  # of all texts, those in the background last, for texts that are added later
    digests: npt.NDArray[np.int64]  # (texts,), of `text_digest`, to know these texts again
    term_counts: csr_array  # (texts, words), how often; mostly one byte each, and the indices are those of the terms
    leading: Mapping[int, npt.NDArray[np.uint8]]  # by lead, how often each term occurs in the lead of its text
    n_in_graph: int  # texts whose windows the word graph has: of few new ones, it has none

    @cached_property
    def document_terms(self) -> csr_array:
        """X_dv, (texts, words)."""
        counts = self.term_counts
        parts = counts.data, counts.indices, counts.indptr
        weights = self.weighting.weigh(*parts, leading=self.leading.get(self.weighting.lead))
        return csr_array((weights, *parts[1:]), shape=counts.shape)

    def with_lead(self, lead: int) -> Prepared:
        """Return the same with a number of terms at the beginning of texts that count more, one of `leading` or 0."""
        if lead == self.weighting.lead:
            return self
        other = replace(self, weighting=replace(self.weighting, lead=lead))
        vars(other).update({name: value for name, value in vars(self).items() if name == "subwords"})  # found before
        return other

    @property
    def by_lead(self) -> dict[int, csr_array]:
        """The rows of texts as they are with each lead."""
        return {lead: self.with_lead(lead).document_terms for lead in self.leading}

    def word_vectors(self, given: Mapping[str, npt.ArrayLike]) -> npt.NDArray[np.float32]:
        """Return vectors as a matrix of words by values; a word that has none, and an n-gram, has zeros."""
        found = {i: np.asarray(given[word], np.float32) for word, i in self.vocabulary.index.items() if word in given}
        shapes = {vector.shape for vector in found.values()}
        if len(shapes) != 1 or len(next(iter(shapes))) != 1:
            raise InputError(
                f"vectors must have vectors of one length for some of the {len(self.vocabulary):,} words, got "
                f"{'none of these words' if not found else f'the shapes {sorted(shapes)[:3]}'}."
            )
        matrix = np.zeros((len(self.vocabulary), *shapes.pop()), np.float32)
        matrix[list(found)] = list(found.values())
        return matrix

    def seed_rows(self, given: GivenSeeds | None, classes: npt.NDArray[Any]) -> SeedRows | None:
        """Return seeds as rows of terms; one that no text has is an InputError."""
        if given is None:
            return None
        how = self.preparation.tokenizer, self.preparation.ngram_range
        return find_seeds(given, classes.tolist(), self.vocabulary, self.weighting, self.document_terms, *how)

    @cached_property
    def subwords(self) -> Subwords:
        """The subwords of the vocabulary."""
        return find_subwords(self.vocabulary, self.document_terms.shape[0] + self.n_background)

    def subword_matrix(self, weight: float = 1.0) -> csr_array | None:
        """Return S, (words, subwords), or None if their weight is 0.

        A word counts by its tf-idf in a document, but its subwords by their own idf, so that of the word is taken out.
        """
        if weight == 0:
            return None
        found, n_words = self.subwords, len(self.vocabulary)
        weights = found.weights[found.places] / np.repeat(self.weighting.idf, np.diff(found.offsets))
        return csr_array((weights, found.places, found.offsets), shape=(n_words, len(found.hashes)))

    def citation_graph(self, document_graph: csr_array) -> WordGraph:
        """Return the word graph of linked documents (eq. 4); unlinked documents come last."""
        nodes = np.flatnonzero(self.preparation.nodes(self.vocabulary))
        terms = self.document_terms[: document_graph.shape[0], nodes]
        vocabulary = Vocabulary([self.vocabulary.words[i] for i in nodes])
        rules = EdgeRules(top_k=self.preparation.top_k or _CITATION_EDGES)
        return WordGraph.from_citations(terms, document_graph, vocabulary, rules=rules).among(self.vocabulary)

    def text_model(self, classifier: MatrixClassifier, settings: dict[str, Any], seconds: float = 0.0) -> TextModel:
        """Return a model for texts from a classifier fitted to `document_terms`; its card has settings and seconds."""
        parts = self.model_parts(
            settings,
            n_labelled=int(classifier.n_labelled_),
            **({"n_background": self.n_background} if self.n_background else {}),
            n_edges=classifier.word_graph_.info().edges,
            held_out_accuracy=classifier.held_out_accuracy_,
            n_held_out=classifier.n_held_out_,
            **({} if classifier.tuned_ is None else {"tuned": classifier.tuned_._asdict()}),
            seconds=round(self.seconds + seconds, 2),
        )
        split, trained = None, getattr(classifier, "trained_", None)  # a network has none
        if trained is not None:
            parts["report"] |= {"n_copies": trained.n_copies, "measured": trained.measured}
            split = make_split(trained.adjacency, trained.own_rows, trained.factor)
            if trained.subword_rows is not None:
                parts["spelling"] = make_spelling(self.subwords, trained.subword_rows, self.weighting.idf)
        return TextModel(scorer=classifier.scorer_, classes=classifier.classes_, split=split, **parts)

    def model_parts(self, settings: dict[str, Any], **report: Any) -> dict[str, Any]:
        """Return the fields that all models of texts have, with settings and a report for the model card."""
        n_documents, today = self.document_terms.shape[0], date.today().isoformat()
        return {
            "tokenizer": self.preparation.tokenizer,
            "ngram_range": self.preparation.ngram_range,
            "vocabulary": self.vocabulary,
            "weighting": self.weighting,
            "settings": plain_settings(settings),
            "report": {"n_documents": n_documents, **report, "date": today, "version": __version__},
            "stop_words": tuple(self.preparation.stop_words or ()),
        }


def plain_settings(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an estimator for texts as JSON can hold them."""
    stop_words = parameters.get("stop_words")
    shown = {**parameters, "stop_words": None if stop_words is None else f"{len(stop_words)} words"}
    plain = (str, int, float, bool, list, type(None))
    return {name: value if isinstance(value, plain) else str(value) for name, value in shown.items()}


class TextEstimator(BaseEstimator, Generic[Model]):
    """What the estimators for texts have in common. `fit` sets `model_` and `word_embeddings_`."""

    model_: Model
    word_embeddings_: npt.NDArray[Any]

    @property
    def _fitted(self) -> Model:
        check_is_fitted(self, "model_")
        return self.model_

    def _prepare(self, texts: Iterable[str]) -> Prepared:
        return Preparation.of(self).prepare(texts)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the columns that `transform` gives."""
        check_is_fitted(self, "model_")
        return np.array([f"wgcn{i}" for i in range(self.word_embeddings_.shape[1])], dtype=object)

    def save(self, path: str | Path) -> str:
        """Write the fitted model to a folder, which `load` of the class of `model_` reads. Return its digest."""
        return self._fitted.save(path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
