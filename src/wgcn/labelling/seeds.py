"""Seed words: some words per class instead of labels.

Seeds and documents have places in one space, in which texts about the same thing are near each other
(`wgcn.linear.space`). With z_d the place of a document and z_s that of a seed, both of length 1:

    near_ds = max(0, z_d z_s)^6                        how much a document is about a seed
    E_dc    = sum over the seeds s of class c of w_s near_ds         evidence; a struck word has w_s = -1
    P_dc    = E_dc pi_c / sum_d E_dc, rows scaled to 1               shares of the classes in a document

w_s is how well a seed agrees with the others of its class (`agreement`), so that a wrong one counts little. pi are the
shares of the classes: equal at first, then those that a model of the first P gives to the documents. In the end P is
corrected by such a model and by similar documents (`seed_shares`). Constants were chosen on training documents.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.errors import InputError, WGCNWarning
from wgcn.text.corpus import Corpus
from wgcn.text.tokenize import Tokenizer
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import TermWeighting, document_terms

__all__ = [
    "GivenSeeds",
    "SeedEvidence",
    "SeedRows",
    "SeedWord",
    "agreement",
    "evidence",
    "expand",
    "find_seeds",
    "label_evidence",
    "near_words",
    "nearness",
    "problems",
    "read_seed_options",
    "read_seeds",
    "seed_evidence",
    "seed_report",
    "seed_shares",
    "shown_words",
]

Floats = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Place = Callable[[csr_array], Floats]  # from rows of terms to places in the space

_POWER = 6  # of the cosine
_PRIOR_SHARPNESS = 4.0  # factor of a model's scores, for the shares of the classes
_ANSWER_SHARPNESS = 8.0  # the same, for its answers
_SPREADING, _STEPS = 0.8, 3  # how much a document takes from similar ones in a step
_RARE = 5  # texts that have a seed
_DOUBTFUL = 0.3  # agreement
_CANDIDATES = 20_000  # most frequent words that are looked at, for near words and for neighbours
_FEWEST = 3  # texts that have a word which is added
_ADDED_WORDS = 10  # per class
_LEAST = 0.02  # value of an added word beside the first
_SAMPLE = 20_000  # documents
_BLOCK = 10_000  # documents


@dataclass(frozen=True)
class GivenSeeds:
    """Seeds as they were given."""

    classes: tuple[Any, ...]
    seeds: tuple[tuple[str, ...], ...]  # of each class
    struck: tuple[tuple[str, ...], ...]  # words that must not count for a class


@dataclass(frozen=True, eq=False)
class SeedRows:
    """Seeds as documents of their own words. The struck words come last."""

    names: tuple[str, ...]
    classes: Ints  # (seeds,), place of the class of each
    struck: npt.NDArray[np.bool_]  # (seeds,)
    rows: csr_array  # (seeds, words)
    counts: Ints  # (seeds,), documents that have the seed
    n_classes: int
    vocabulary: Vocabulary  # the words of the columns


class SeedWord(NamedTuple):
    """A word that stands for a class."""

    word: str
    weight: float  # of a seed, how well it agrees with its class; of words that are added, the nearest has 1
    n_documents: int
    given: bool


class SeedEvidence(NamedTuple):
    """What seeds say about documents."""

    evidence: Floats  # E, (documents, classes)
    words: list[list[SeedWord]]  # of each class


# Reading


def read_seeds(given: Any) -> GivenSeeds:
    """Read ``{class: [word, ...]}``, where a word that begins with "-" is struck, or a list of class names."""
    if isinstance(given, GivenSeeds):
        return given
    if isinstance(given, str | bytes) or not isinstance(given, Mapping | Sequence):
        raise InputError(f"seeds must be a dict from each class to its words, or a list of class names, got {given!r}.")
    words = given if isinstance(given, Mapping) else {name: [str(name)] for name in given}
    if len(words) < 1 or len(words) != len(given):
        raise InputError(f"seeds must name at least one class, and each once, got {given!r:.200}.")
    kept, struck = [], []
    for name, own in words.items():
        own = [own] if isinstance(own, str) else list(own)
        if not all(isinstance(word, str) and word.strip(" -") for word in own):
            raise InputError(f"The seeds of class {name!r} must be words, got {own!r:.200}.")
        own = [word.strip() for word in own]
        kept.append(tuple(dict.fromkeys(word for word in own if not word.startswith("-"))))
        struck.append(tuple(dict.fromkeys(word[1:].strip() for word in own if word.startswith("-"))))
        if not kept[-1]:
            raise InputError(f"The class {name!r} has no seed. Give at least one word, such as its name.")
    return GivenSeeds(tuple(words), tuple(kept), tuple(struck))


def read_seed_options(options: Sequence[str] | None, file: Path | None = None) -> dict[str, list[str]]:
    """Read ``class=word,word`` and the lines ``class: word, word`` of a file; a class alone is its own seed.

    Lines that are empty or begin with "#" are left out. Words of a class that comes twice are joined.
    """
    try:
        lines = [] if file is None else file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The seeds cannot be read from {file}: {error}.") from error
    parts = [(*option.partition("="), option) for option in options or ()]
    parts += [(*line.partition(":"), line) for line in lines if line.strip() and not line.startswith("#")]
    seeds: dict[str, list[str]] = {}
    for name, sign, words, whole in parts:
        own = [word.strip() for word in words.split(",") if word.strip()] if sign else [name.strip()]
        if not name.strip() or not own:
            raise InputError(f"Seeds are given as class=word,word, or class: word, word in a file, got {whole!r}.")
        seeds.setdefault(name.strip(), []).extend(own)
    return seeds


def find_seeds(
    given: GivenSeeds,
    classes: Sequence[Any],
    vocabulary: Vocabulary,
    weighting: TermWeighting,
    terms: csr_array,
    tokenizer: str | Tokenizer = "words",
    ngram_range: tuple[int, int] = (1, 1),
) -> SeedRows:
    """Return seeds as rows of terms, of shape (seeds, words); one that no document has is an InputError.

    `classes` are those of the model, among them those of the seeds; `terms` has the shape (documents, words). A phrase
    is in a document that has all of its terms.
    """
    order = {name: i for i, name in enumerate(classes)}
    pairs = [
        (word, order[name], struck)
        for struck, lists in ((False, given.seeds), (True, given.struck))
        for name, words in zip(given.classes, lists, strict=True)
        for word in words
    ]
    names = [word for word, _, _ in pairs]
    corpus = Corpus.from_texts(names, tokenizer=tokenizer, ngram_range=ngram_range, vocabulary=vocabulary, n_jobs=1)
    single = Corpus.from_texts(names, tokenizer=tokenizer, n_jobs=1)  # all words, known or not
    counts = np.array([_n_documents(single.document(i), vocabulary, terms) for i in range(len(names))], np.int64)
    missing = [(word, classes[place]) for (word, place, _), n in zip(pairs, counts, strict=True) if n == 0]
    if missing:
        raise InputError(" ".join(_advice(word, name, vocabulary) for word, name in missing))
    places = np.array([place for _, place, _ in pairs], np.int64)
    struck = np.array([flag for _, _, flag in pairs], bool)
    return SeedRows(tuple(names), places, struck, document_terms(corpus, weighting), counts, len(classes), vocabulary)


def _n_documents(words: list[str], vocabulary: Vocabulary, terms: csr_array) -> int:
    """Return the number of documents that have all words, or their n-gram if it is a term."""
    phrase = " ".join(words)
    if phrase in vocabulary:
        words = [phrase]
    if not words or any(word not in vocabulary for word in words):
        return 0
    places = [vocabulary.index[word] for word in dict.fromkeys(words)]
    return int(np.sum(np.diff(csr_array(terms[:, places]).indptr) == len(places)))


def _advice(seed: str, name: Any, vocabulary: Vocabulary) -> str:
    near = near_words(seed, vocabulary)
    hint = f"Near it are {', '.join(map(repr, near))}." if near else "Look for a word that the texts use."
    return f"The seed {seed!r} of class {name!r} is in no text. {hint}"


def near_words(word: str, vocabulary: Vocabulary, n: int = 4) -> list[str]:
    """Return words of the vocabulary that are spelt like a word, frequent ones first."""
    lower = word.lower()
    frequent = [known for known in vocabulary.words[: 2 * _CANDIDATES] if " " not in known or " " in word]
    close = get_close_matches(lower, frequent[:_CANDIDATES], n=10, cutoff=0.7)
    longer = [known for known in frequent if len(lower) > 3 and known != lower and known.startswith(lower)]
    return sorted({*close, *longer[:10]}, key=vocabulary.index.__getitem__)[:n]


# Arrays


def nearness(documents: Floats, seeds: Floats) -> Floats:
    """Return how near documents are to seeds, from places of length 1: near_ds, of shape (documents, seeds)."""
    return np.asarray(np.maximum(documents @ seeds.T, 0) ** _POWER)


def agreement(near: Floats, seeds: SeedRows) -> Floats:
    """Return how well each seed agrees with the others of its class, from 0 to 1: w_s, of shape (seeds,).

    Two seeds are as much alike as they are near to the same documents. A seed's agreement is its mean likeness to its
    class, divided by the sum of that and its mean likeness to the nearest other class, and then by the mean of its
    class: the seeds of a wide class are all unlike each other, and none of them is wrong. The same word in another
    class says nothing. A seed that is alone in its class agrees. `near` is of shape (documents, seeds).
    """
    profile = near / np.maximum(near.sum(axis=0), 1e-12)
    alike = profile.T @ profile
    other_word = np.array([[a != b for b in seeds.names] for a in seeds.names])
    likeness = np.full((len(alike), seeds.n_classes), np.nan)
    for place in range(seeds.n_classes):
        counted = other_word & ((seeds.classes == place) & ~seeds.struck)[None, :]
        n = counted.sum(axis=1)
        np.divide((alike * counted).sum(axis=1), n, out=likeness[:, place], where=n > 0)
    rows = np.arange(len(alike))
    own, others = likeness[rows, seeds.classes], likeness
    others[rows, seeds.classes] = 0
    nearest = np.nan_to_num(others).max(axis=1)
    share = np.where(np.isnan(own), np.nan, np.nan_to_num(own) / np.maximum(np.nan_to_num(own) + nearest, 1e-30))
    weights = np.ones(len(alike))
    for place in np.unique(seeds.classes):
        members = (seeds.classes == place) & ~seeds.struck & ~np.isnan(share)
        if members.any():
            weights[members] = np.minimum(share[members] / max(float(share[members].mean()), 1e-30), 1)
    weights[seeds.struck] = -1
    return weights


def evidence(near: Floats, weights: Floats, classes: Ints, n_classes: int) -> Floats:
    """Return E_dc, of shape (documents, classes)."""
    members = np.zeros((len(classes), n_classes), near.dtype)
    members[np.arange(len(classes)), classes] = weights
    return np.asarray(np.maximum(near @ members, 0))


def seed_shares(
    found: Floats,
    fit: Callable[[Floats], Floats],
    neighbours: Callable[[Floats], Floats],
    prior: Floats | None = None,
) -> Floats:
    """Return P_dc, of shape (documents, classes): 0 where there is no evidence.

    `fit` fits a model to shares and returns its scores of the documents. Without `prior`, the shares of the classes
    among all documents are those that the model gives, fitted to equal ones. A model of P is asked once more: its
    answers, times P, are averaged with those of similar documents, which `neighbours` adds up.
    """
    if prior is None:
        equal = np.full(found.shape[1], 1 / found.shape[1])
        prior = _likely(_PRIOR_SHARPNESS * fit(_shares(found, equal))).mean(axis=0)
    shares = _shares(found, prior)
    agreed = _scaled(shares * _likely(_ANSWER_SHARPNESS * fit(shares)).astype(np.float32))
    mixed = agreed
    for _ in range(_STEPS):
        mixed = np.float32(_SPREADING) * neighbours(mixed) + np.float32(1 - _SPREADING) * agreed
    return _shares(mixed, prior)  # a class that spreads easily would get more than its share


def _likely(scores: Floats) -> npt.NDArray[np.float64]:
    """Return the softmax of scores."""
    exponentials = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


def _scaled(shares: Floats) -> Floats:
    totals = shares.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(shares, totals, out=np.zeros_like(shares), where=totals > 0))


def _shares(found: Floats, prior: Floats) -> Floats:
    return _scaled((found * (prior / np.maximum(found.sum(axis=0, dtype=np.float64), 1e-12))).astype(np.float32))


def seed_evidence(seeds: SeedRows, terms: csr_array, place: Place) -> SeedEvidence:
    """Return the evidence in documents of shape (documents, words), and the words of the classes.

    `place` gives rows of terms their places in the space, of length 1 or 0. What seeds agree on is judged by at most
    20,000 documents, evenly chosen.
    """
    n, places = terms.shape[0], place(seeds.rows)
    sample = np.unique(np.linspace(0, n - 1, _SAMPLE).astype(int))
    weights = agreement(nearness(place(terms[sample]), places), seeds)
    words = expand(seeds, weights, places, place)
    found = np.empty((n, seeds.n_classes), np.float32)
    for begin in range(0, n, _BLOCK):
        near = nearness(place(terms[begin : begin + _BLOCK]), places)
        found[begin : begin + _BLOCK] = evidence(near, weights, seeds.classes, seeds.n_classes)
    return SeedEvidence(found, words)


def label_evidence(documents: csr_array, labelled: csr_array, targets: Floats, place: Place) -> Floats:
    """Return the evidence of labelled documents, which count as seeds do, of shape (documents, classes).

    `documents` and `labelled` have one column per word, `targets` are of shape (labelled documents, classes).
    """
    known, found = place(labelled), np.zeros((documents.shape[0], targets.shape[1]), np.float32)
    for begin in range(0, documents.shape[0] if len(known) else 0, _BLOCK):
        found[begin : begin + _BLOCK] = nearness(place(documents[begin : begin + _BLOCK]), known) @ targets
    return found


def expand(seeds: SeedRows, weights: Floats, places: Floats, place: Place) -> list[list[SeedWord]]:
    """Return the words of each class: the seeds, then words that are near them and near no other class.

    `weights` are those of the seeds, `places` where they are, (seeds, columns). Words that are struck do not come back.
    """
    vocabulary = seeds.vocabulary
    usable = ~vocabulary.are_ngrams & (vocabulary.document_counts >= _FEWEST)
    usable[np.diff(csr_array(seeds.rows.T).indptr) > 0] = False  # words of the seeds themselves
    ids = np.flatnonzero(usable)[:_CANDIDATES]
    near = nearness(place(_unit_rows(ids, seeds.rows)), places)
    found = evidence(near, weights, seeds.classes, seeds.n_classes)
    value = found * found / np.maximum(found.sum(axis=1, keepdims=True), 1e-30)  # near, and specific
    words = []
    for i in range(seeds.n_classes):
        own = np.flatnonzero((seeds.classes == i) & ~seeds.struck)
        given = [SeedWord(seeds.names[j], float(weights[j]), int(seeds.counts[j]), True) for j in own]
        best = np.argsort(-value[:, i], kind="stable")[:_ADDED_WORDS] if len(own) else own
        best = best[value[best, i] > _LEAST * value[:, i].max(initial=0)]
        counts = vocabulary.document_counts[ids[best]]
        added = [
            SeedWord(vocabulary[int(word)], float(weight), int(n), False)
            for word, weight, n in zip(
                ids[best], value[best, i] / value[best, i].max(initial=1e-30), counts, strict=True
            )
        ]
        words.append(given + added)
    return words


def _unit_rows(words: Ints, like: csr_array) -> csr_array:
    """Return documents of one word each, with as many columns as another matrix."""
    values = np.ones(len(words), like.dtype)
    return csr_array((values, words, np.arange(len(words) + 1)), shape=(len(words), like.shape[1]))


# What the user sees


def seed_report(given: GivenSeeds | None, words: Mapping[Any, Sequence[SeedWord]]) -> dict[str, Any]:
    """Return what a model's report says of its seeds, and warn of those that may do harm."""
    doubts = problems(words)
    if doubts:
        warnings.warn(f"Seeds to look at: {' '.join(doubts)}", WGCNWarning, stacklevel=4)
    both = () if given is None else zip(given.classes, given.seeds, given.struck, strict=True)
    seeds = {str(name): [*own, *(f"-{word}" for word in struck)] for name, own, struck in both}
    return {"seeds": seeds, "seed_problems": doubts}


def problems(words: Mapping[Any, Sequence[SeedWord]]) -> list[str]:
    """Return a sentence for each seed that several classes share, that is rare, or that agrees with another class."""
    found = []
    shared: dict[str, list[str]] = {}
    for name, own in words.items():
        for seed in own:
            if not seed.given:
                continue
            shared.setdefault(seed.word, []).append(repr(name))
            if seed.weight < _DOUBTFUL:
                found.append(f"{seed.word!r} goes with another class than {name!r}: its weight is {seed.weight:.2f}.")
            if seed.n_documents < _RARE:
                texts = "text has" if seed.n_documents == 1 else "texts have"
                found.append(f"Only {seed.n_documents} {texts} {seed.word!r}, a seed of {name!r}.")
    return [f"{word!r} is a seed of {' and '.join(names)}." for word, names in shared.items() if len(names) > 1] + found


def shown_words(words: Mapping[Any, Sequence[SeedWord]]) -> str:
    """Return the words of the classes as text, each with the number of texts that have it."""
    lines = []
    for name, own in words.items():
        given = ", ".join(f"{seed.word} ({seed.n_documents:,})" for seed in own if seed.given)
        added = ", ".join(f"{seed.word} ({seed.n_documents:,})" for seed in own if not seed.given)
        lines += [f"{name}", f"  given  {given}", f"  added  {added or 'no word'}"]
    return "\n".join(lines)
