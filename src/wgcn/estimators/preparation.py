"""What is made of texts before any label is looked at: vocabulary, weights, word graph, vectors from elsewhere."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.errors import InputError
from wgcn.graph import EdgeRules, WordGraph
from wgcn.graph.association import WEIGHTS, WINDOW_WEIGHTS, Weight
from wgcn.network.settings import check_numbers
from wgcn.text.corpus import Corpus, check_ngram_range
from wgcn.text.encode import checked_texts
from wgcn.text.tokenize import Tokenizer, resolve_tokenizer
from wgcn.text.vocabulary import Vocabulary, VocabularyRules
from wgcn.text.weighting import Norm, TermWeighting, document_terms

__all__ = ["Counted", "Preparation", "Prepared", "checked_windows", "plain_settings"]

ENCODER = "encoder"  # vectors of words that add up to those of documents
_MANY_WORDS = 100_000


@dataclass(frozen=True, eq=False)
class Prepared:
    """What `Preparation.prepare` makes of texts."""

    vocabulary: Vocabulary
    weighting: TermWeighting
    document_terms: csr_array  # (texts, words)
    word_graph: WordGraph | None
    seconds: float
    word_vectors: npt.NDArray[np.float32] | None = None  # (words, values)
    n_background: int = 0  # texts that shaped all of this, but have no row in `document_terms`


@dataclass(frozen=True)
class Preparation:
    """How texts are prepared; the parameters are those of `WGCNTextClassifier`, None for `ngram_edges` is False."""

    tokenizer: str | Tokenizer = "words"
    ngram_range: tuple[int, int] = (1, 2)
    ngram_edges: bool | None = None
    min_count: int | None = None
    stop_words: Collection[str] | None = None
    sublinear: bool = True
    norm: Norm = "l2"
    window: int | Sequence[int] = 20
    weight: Weight = "pmi"
    threshold: float = 0.0
    min_pairs: int = 2
    top_k: int | None = None
    smoothing: float = 1.0
    vectors: str | None = None
    n_jobs: int | None = None

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Preparation:
        """Take from the parameters of an estimator those that have their names here."""
        names = [item.name for item in fields(cls)]
        return cls(**{name: parameters[name] for name in names if name in parameters})

    def prepare(self, texts: Iterable[str], *, background: Iterable[str] = (), with_graph: bool = True) -> Prepared:
        """Do what needs no labels.

        Parameters
        ----------
        texts : iterable of str
            Those to be labelled first, then all others.
        background : iterable of str
            Texts from elsewhere, for vocabulary, idf and word graph alone.
        with_graph : bool
            Whether to build the word graph.
        """
        started = time.perf_counter()
        self.check()
        rules = EdgeRules(self.threshold, self.min_pairs, self.top_k, self.smoothing)
        if self.vectors == ENCODER:
            texts = list(checked_texts(texts))  # they are read twice
        own = Counted(checked_texts(texts))
        corpus = self._corpus(chain(own, checked_texts(background, "background")))
        weighting = TermWeighting.from_counts(
            corpus.vocabulary.document_counts, len(corpus), sublinear=self.sublinear, norm=self.norm
        )
        terms = document_terms(corpus, weighting)
        if own.n < len(corpus):
            terms = terms[: own.n]
        graph = self._graph(corpus, rules) if with_graph else None
        vectors = self._word_vectors(texts, corpus.vocabulary, terms)
        seconds = time.perf_counter() - started
        return Prepared(corpus.vocabulary, weighting, terms, graph, seconds, vectors, len(corpus) - own.n)

    def check(self) -> None:
        """Raise an InputError if a parameter cannot be used: before any text is read."""
        check_numbers(self, real=("threshold", "smoothing"), whole=("min_count", "min_pairs", "top_k"))
        resolve_tokenizer(self.tokenizer)
        check_ngram_range(self.ngram_range)
        for name in ("min_count", "min_pairs"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if not isinstance(self.stop_words, Collection | None):
            raise InputError(f"stop_words must be a collection of words or None, got {self.stop_words!r}.")
        VocabularyRules(stop_words=self.stop_words or ())
        if self.norm not in get_args(Norm):
            raise InputError(f"norm must be one of {', '.join(get_args(Norm))}, got {self.norm!r}.")
        if self.weight not in WEIGHTS:
            raise InputError(f"Unknown weight {self.weight!r}. Use one of {', '.join(WEIGHTS)}.")
        EdgeRules(self.threshold, self.min_pairs, self.top_k, self.smoothing)
        self._check_windows()
        self._check_vectors()

    def linked(self, prepared: Prepared, document_graph: csr_array, rules: EdgeRules) -> WordGraph:
        """Return the word graph of linked documents (eq. 4); those without a place in the graph come last."""
        nodes = np.flatnonzero(self._nodes(prepared.vocabulary))
        terms = prepared.document_terms[: document_graph.shape[0], nodes]
        vocabulary = Vocabulary([prepared.vocabulary.words[i] for i in nodes])
        return WordGraph.from_citations(terms, document_graph, vocabulary, rules=rules).among(prepared.vocabulary)

    def _corpus(self, texts: Iterable[str]) -> Corpus:
        rules = VocabularyRules(
            min_count=self.min_count or 1, min_ngram_count=self.min_count or 2, stop_words=self.stop_words or ()
        )
        corpus = Corpus.from_texts(
            texts, tokenizer=self.tokenizer, ngram_range=self.ngram_range, rules=rules, n_jobs=self.n_jobs
        )
        words = corpus.vocabulary
        if self.min_count is None and np.sum(~words.are_ngrams) > _MANY_WORDS:
            corpus = corpus.with_words(words.counts >= min(2, words.counts.max()))
        return corpus

    def _graph(self, corpus: Corpus, rules: EdgeRules) -> WordGraph:
        nodes = corpus.with_words(self._nodes(corpus.vocabulary))
        graphs = [
            WordGraph.from_corpus(nodes, window=window, weight=self.weight, rules=rules, n_jobs=self.n_jobs)
            for window in checked_windows(self.window)
        ]
        return WordGraph.mean_of(graphs).among(corpus.vocabulary)

    def _nodes(self, vocabulary: Vocabulary) -> npt.NDArray[np.bool_]:
        """Return which words may have edges."""
        words = ~vocabulary.are_ngrams
        return np.ones(len(words), bool) if self.ngram_edges or not words.any() else words

    def _check_windows(self) -> None:
        """Say before anything takes long that there can be no graph of these windows."""
        if len(checked_windows(self.window)) > 1 and self.weight not in WINDOW_WEIGHTS:
            raise InputError(
                f"Edges weighted by {self.weight!r} come from whole documents and have one window at most, got "
                f"{self.window}. Give one, or a weight that counts windows: {', '.join(WINDOW_WEIGHTS)}."
            )

    def _check_vectors(self) -> None:
        """Say before anything takes long that vectors are not there."""
        if self.vectors is None:
            return
        from wgcn.text.word_vectors import DISTILLED, check_word_vectors

        source = DISTILLED if self.vectors == ENCODER else str(self.vectors)
        if source != DISTILLED and ":" not in source and not Path(source).expanduser().is_file():  # NAME:DIGEST
            raise InputError(
                f"There are no word vectors {self.vectors!r}. vectors is 'encoder', 'distilled', or the path of a file."
            )
        check_word_vectors(source)

    def _word_vectors(
        self, texts: Iterable[str], vocabulary: Vocabulary, terms: csr_array
    ) -> npt.NDArray[np.float32] | None:
        """Return vectors from elsewhere of single words; n-grams have zeros."""
        if self.vectors is None:
            return None
        from wgcn.text.word_vectors import word_vectors

        single = np.flatnonzero(~vocabulary.are_ngrams)
        if self.vectors == ENCODER:
            from wgcn.linear.vectors import distil
            from wgcn.text.encoder import encode_cached

            assert isinstance(texts, list)
            found = distil(terms[:, single], encode_cached(texts, "documents"))
        else:
            found = word_vectors([vocabulary.words[i] for i in single], self.vectors)[0]
        vectors = np.zeros((len(vocabulary), found.shape[1]), np.float32)
        vectors[single] = found
        return vectors


class Counted:
    """Texts that are read once, and how many they were."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts, self.n = texts, 0

    def __iter__(self) -> Iterator[str]:
        for text in self.texts:
            self.n += 1
            yield text


def plain_settings(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an estimator for texts as JSON can hold them."""
    stop_words = parameters["stop_words"]
    windows = checked_windows(parameters["window"])
    shown = {
        **parameters,
        "stop_words": None if stop_words is None else f"{len(stop_words)} words",
        "window": windows if len(windows) > 1 else windows[0],
    }
    plain = (str, int, float, bool, list, type(None))
    return {name: value if isinstance(value, plain) else str(value) for name, value in shown.items()}


def checked_windows(given: int | Sequence[int], name: str = "window") -> list[int]:
    """Return one window or several in increasing order, or say what is wrong with them.

    Parameters
    ----------
    given : int or sequence of int
        Tokens in a window.
    name : str
        What the user calls it.
    """
    windows = list(given) if isinstance(given, Iterable) else [given]
    if not windows:
        raise InputError(f"{name} is empty: give at least one number of tokens, such as 20.")
    for window in windows:
        if not isinstance(window, Integral):
            raise InputError(f"{name} must be a whole number of tokens, or several of them, got {given!r}.")
        if window < 2:
            raise InputError(f"{name} must be at least 2 tokens, got {window}: a pair of words needs two places.")
        if windows.count(window) > 1:
            raise InputError(f"{name} has {window} more than once. Give each number of tokens once.")
    return sorted(map(int, windows))
