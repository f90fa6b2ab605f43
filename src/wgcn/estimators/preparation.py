"""The work that needs no labels: from texts to a vocabulary, weighted terms and a word graph.

Texts that are prepared again, with others after them, are known by a digest, and so are not read a second time.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize

from wgcn import __version__
from wgcn.base.errors import InputError, check_numbers
from wgcn.base.progress import stage
from wgcn.base.threads import n_threads
from wgcn.explain.explanation import make_split
from wgcn.graph import EdgeRules, WordGraph
from wgcn.graph.association import WEIGHTS, Weight
from wgcn.graph.kernels import renumber
from wgcn.linear.task import are_few
from wgcn.model.text_model import TextModel
from wgcn.scoring.spelling import make_spelling
from wgcn.scoring.terms import load_compiled
from wgcn.semi.seed_words import GivenSeeds, SeedRows, find_seeds
from wgcn.text import kernels
from wgcn.text.corpus import Corpus, Observed, Tokens
from wgcn.text.ngrams import check_ngram_range
from wgcn.text.subwords import Subwords, find_subwords
from wgcn.text.tokenize import Tokenizer, checked_texts, resolve_tokenizer, text_digest
from wgcn.text.vocabulary import Vocabulary, VocabularyRules
from wgcn.text.weighting import LONG, Norm, TermWeighting, document_terms, smooth_idf

if TYPE_CHECKING:
    from wgcn.estimators.matrix import MatrixClassifier

Places = npt.NDArray[np.int64]

MANY_WORDS = 100_000
_MANY_NGRAMS = 1_000_000  # of one length: in more text, an n-gram has to occur more often to count
_MANY_PAIRS = 20_000_000  # of words that share windows: in more text, a pair has to be seen more often to count
_LONG_SHARE = 0.25  # of texts: where fewer are long, it makes no difference what counts in these
LEAST_TOKENS = 2_000_000  # in fewer, counting the word graph again takes little time, and new words matter more
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
    def of(cls, estimator: object) -> Preparation:
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
        graph, n_in_graph = None, len(corpus)
        if earlier is not None and (carried := earlier.carried_graph(words, len(corpus), corpus.n_tokens)) is not None:
            graph, n_in_graph = carried, earlier.n_in_graph
        if with_graph and graph is None:
            with stage("Counting windows") as counting:
                nodes = self.nodes(words)
                corpus = corpus.with_words(nodes)
                graph = WordGraph.from_corpus(corpus, **self.graph_settings(), n_jobs=n_jobs)
                graph = graph.among(words, np.flatnonzero(nodes))
                counting.detail = f"{graph.adjacency.nnz:,} weights of the word graph"
        load_compiled()
        seconds = time.perf_counter() - started
        made = Prepared(
            preparation=self,
            vocabulary=words,
            weighting=weighting,
            word_graph=graph,
            n_background=len(corpus) - n_own,
            seconds=seconds,
            tokens=tokens,
            digests=digests,
            term_counts=counts,
            leading=leading,
            n_in_graph=n_in_graph,
        )
        return made if earlier is None else made.with_lead(earlier.weighting.lead)

    def often_enough(self, words: Vocabulary) -> npt.NDArray[np.bool_] | None:
        """Return which words occur often enough, where there are so many that some are left out."""
        many = self.min_count is None and np.sum(~words.are_ngrams) > MANY_WORDS
        return np.asarray(words.counts >= min(2, words.counts.max())) if many else None

    @staticmethod
    def are_long(n_long: int, n_texts: int) -> bool:
        """Whether so many texts are long that it may matter what counts in them."""
        return n_long >= _LONG_SHARE * n_texts

    def nodes(self, vocabulary: Vocabulary) -> npt.NDArray[np.bool_]:
        """Return which words may have edges. If there are no single words, n-grams have edges anyway."""
        words = ~vocabulary.are_ngrams
        return np.ones(len(words), bool) if self.ngram_edges or not words.any() else words


class Matches(NamedTuple):
    """Which of some texts were prepared: text `given[i]` is row `documents[i]`."""

    given: Places  # (matches,): of a text that was prepared several times, several
    documents: Places  # (matches,)
    new: Places  # (new texts,), those that were not


@dataclass(eq=False)
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
    subwords_found: Subwords | None = None  # where they were asked for

    @cached_property
    def document_terms(self) -> csr_array:
        """X_dv, (texts, words)."""
        counts = self.term_counts
        parts = counts.data, counts.indices, counts.indptr
        weights = self.weighting.weigh(*parts, leading=self.leading.get(self.weighting.lead))
        return csr_array((weights, *parts[1:]), shape=counts.shape)

    def with_lead(self, lead: int) -> Prepared:
        """Return the same with a number of terms at the beginning of texts that count more, one of `leading` or 0."""
        return self if lead == self.weighting.lead else replace(self, weighting=replace(self.weighting, lead=lead))

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

    @property
    def subwords(self) -> Subwords:
        """The subwords of the vocabulary, found when they are first asked for."""
        if self.subwords_found is None:
            n_texts = self.document_terms.shape[0] + self.n_background
            self.subwords_found = find_subwords(self.vocabulary, n_texts)
        return self.subwords_found

    def subword_matrix(self, weight: float = 1.0) -> csr_array | None:
        """Return S, (words, subwords), or None if their weight is 0.

        A word counts by its tf-idf in a document, but its subwords by their own idf, so that of the word is taken out.
        """
        if weight == 0:
            return None
        found, n_words = self.subwords, len(self.vocabulary)
        weights = found.weights[found.places] / np.repeat(self.weighting.idf, np.diff(found.offsets))
        return csr_array((weights, found.places, found.offsets), shape=(n_words, len(found.hashes)))

    def terms_as_in(self, earlier: Prepared, rows: Places) -> csr_array:
        """Return rows of texts as an earlier model would have weighted them: with its words and its idf."""
        terms = self.document_terms[rows]
        ids, used = np.full(len(self.vocabulary), -1, np.int64), np.unique(terms.indices)
        ids[used] = _places_of(map(self.vocabulary.words.__getitem__, used.tolist()), earlier.vocabulary)
        factors = np.where(ids >= 0, earlier.weighting.idf[ids] / self.weighting.idf, 0).astype(terms.dtype)
        data, indices = terms.data * factors[terms.indices], np.maximum(ids, 0)[terms.indices]
        found = csr_array((data, indices, terms.indptr.copy()), (terms.shape[0], len(earlier.vocabulary)))
        found.eliminate_zeros()
        return csr_array(normalize(found, earlier.weighting.norm))

    def carried_graph(self, vocabulary: Vocabulary, n_texts: int, n_tokens: int) -> WordGraph | None:
        """Return the word graph over the words of more texts, of which these are the first.

        For more than a few new texts, or in few tokens, or if words are gone, it is None and has to be counted.
        """
        graph = self.word_graph
        if graph is None or n_tokens < LEAST_TOKENS or not are_few(n_texts - self.n_in_graph, n_texts):
            return None
        if (found := renumbered(graph.adjacency, graph.vocabulary, vocabulary)) is None:
            return None
        adjacency, places = found
        degrees = np.zeros(len(vocabulary))
        degrees[places[places >= 0]] = graph.degrees[places >= 0]
        return replace(graph, vocabulary=vocabulary, adjacency=adjacency, degrees=degrees)

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


def find_texts(digests: npt.NDArray[np.int64], texts: Iterable[str]) -> Matches:
    """Find texts among those whose digests (`text_digest`), of shape (documents,), are known."""
    wanted = np.fromiter(map(text_digest, texts), np.int64)
    order = np.argsort(digests, kind="stable")
    first, last = (np.searchsorted(digests[order], wanted, side) for side in ("left", "right"))
    times = last - first
    given = np.repeat(np.arange(len(wanted)), times)
    within = np.arange(len(given)) - np.repeat(np.cumsum(times) - times, times)
    return Matches(given, order[first[given] + within], np.flatnonzero(times == 0))


def renumbered(adjacency: csr_array, vocabulary: Vocabulary, now: Vocabulary) -> tuple[csr_array, Places] | None:
    """Return a word graph over the words of now, and the new places of words with edges, -1 for those without.

    None if a word with edges is gone. `adjacency` is symmetric. Words that are new have no edges.
    """
    edged = np.flatnonzero(np.diff(adjacency.indptr))
    places = np.full(len(vocabulary), -1, np.int64)
    places[edged] = _places_of(map(vocabulary.words.__getitem__, edged.tolist()), now)
    if (places[edged] < 0).any():
        return None
    sizes = np.zeros(len(now) + 1, adjacency.indptr.dtype)
    sizes[places[edged] + 1] = np.diff(adjacency.indptr)[edged]
    indptr = np.cumsum(sizes, dtype=sizes.dtype)
    columns, weights = renumber(adjacency.indptr, adjacency.indices, adjacency.data, places, indptr)
    return csr_array((weights, columns, indptr), shape=(len(now), len(now))), places


def _places_of(words: Iterable[str], vocabulary: Vocabulary) -> Places:
    """Return the places of words in a vocabulary, -1 for those that it does not have."""
    return np.fromiter(map(vocabulary.index.get, words, repeat(-1)), np.int64)
