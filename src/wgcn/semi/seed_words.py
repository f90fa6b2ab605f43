"""Seed words as they are given, found in the texts, and shown: see `wgcn.semi.seeds`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.errors import InputError, WGCNWarning
from wgcn.io.read import read_texts
from wgcn.text.corpus import Corpus
from wgcn.text.tokenize import Tokenizer
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import TermWeighting, document_terms

Label = Any  # a class as users name it: a string or an integer

_RARE = 5  # texts that have a seed
_DOUBTFUL = 0.3  # agreement
FEW_JUDGED = 20  # texts with seeds, by which nothing is judged; see `wgcn.semi.seeds`
_LEAST_KAPPA = 0.4  # of hidden seeds: 0.1 to 0.3 on opinions about films, 0.5 to 0.8 on topics
_FAR = 0.25  # share of the texts
_SHOWN_CLASSES = 10
_CANDIDATES = 20_000  # most frequent words that are looked at for near words


@dataclass(frozen=True)
class GivenSeeds:
    """Seeds as they were given."""

    classes: tuple[Label, ...]
    seeds: tuple[tuple[str, ...], ...]  # of each class
    struck: tuple[tuple[str, ...], ...]  # words that must not count for a class


@dataclass(frozen=True, eq=False)
class SeedRows:
    """Seeds as documents of their own words. The struck words come last."""

    names: tuple[str, ...]
    classes: npt.NDArray[np.int64]  # (seeds,), place of the class of each
    struck: npt.NDArray[np.bool_]  # (seeds,)
    rows: csr_array  # (seeds, words)
    counts: npt.NDArray[np.int64]  # (seeds,), documents that have the seed
    n_classes: int
    vocabulary: Vocabulary  # the words of the columns


class SeedWord(NamedTuple):
    """A word that stands for a class."""

    word: str
    weight: float  # of a seed, how well it agrees with its class; of words that are added, the nearest has 1
    n_documents: int
    given: bool


class SeedCheck(NamedTuple):
    """What is known of seeds without labels, before a fit."""

    words: dict[Label, list[SeedWord]]  # of each class: those given, then those near them
    trust: SeedTrust
    shares: dict[Label, float]  # of the classes, estimated


class SeedTrust(NamedTuple):
    """What is known without a label of how far seeds can be trusted: see `wgcn.semi.seeds.hidden_agreement`."""

    coverage: float  # share of the texts that have a seed
    conflicts: float  # share of the texts that have seeds of several classes
    agreement: float  # share of texts with seeds whose other words, the seeds being hidden, tell the same class
    by_chance: float  # what this share would be if they told nothing
    kappa: float  # the same between 0, by chance, and 1 (Cohen)
    n_judged: int  # different texts by which this was found

    @property
    def is_low(self) -> bool:
        """Whether the words of the texts hardly tell the classes, beyond the standard error of kappa."""
        error = np.sqrt(self.agreement * (1 - self.agreement) / max(self.n_judged, 1)) / max(1 - self.by_chance, 0.01)
        return self.n_judged >= FEW_JUDGED and self.kappa + error < _LEAST_KAPPA

    def expected(self) -> float:
        """Return a careful guess of the accuracy: of texts without a seed, half of what is beyond chance counts."""
        beyond = max(self.agreement - self.by_chance, 0.0)
        return min(self.by_chance, self.agreement) + beyond * (1 + self.coverage) / 2

    def told(self) -> str:
        """Return this in sentences."""
        known = (
            f"{self.coverage:.0%} of the texts have a seed word, {self.conflicts:.0%} have seeds of several classes."
        )
        if self.n_judged < FEW_JUDGED:
            return f"{known} Those that differ are too few to tell whether other words agree with the seeds."
        return (
            f"{known} With the seeds hidden, the other words of these texts tell the class in {self.agreement:.0%} "
            f"({self.by_chance:.0%} by chance)."
        )

    def doubt(self) -> str | None:
        """Return what to do where the agreement is low."""
        if not self.is_low:
            return None
        return (
            f"Seed words hardly serve here. {self.told()} Seeds find classes that are topics; opinions or feelings are "
            "told by other words than topics are. Answers may be little better than counting seed words: label some "
            "texts (wgcn suggest says which), or teach with vectors of an encoder (vectors=...), and measure accuracy "
            "on labelled texts."
        )


# Reading


def read_seeds(given: GivenSeeds | Mapping[Label, Sequence[str]] | Sequence[Label]) -> GivenSeeds:
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
    lines = [] if file is None else list(read_texts(file, format="txt"))
    parts = [(*option.partition("="), option) for option in options or ()]
    parts += [(*line.partition(":"), line) for line in lines if line.strip() and not line.startswith("#")]
    seeds: dict[str, list[str]] = {}
    for name, sign, words, whole in parts:
        own = [word.strip() for word in words.split(",") if word.strip()] if sign else [name.strip()]
        if not name.strip() or not own:
            raise InputError(f"Seeds are given as class=word,word, or class: word, word in a file, got {whole!r}.")
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise InputError(f"The class {name!r} has bytes that are no text. Write it in the terminal's encoding.")
        seeds.setdefault(name.strip(), []).extend(own)
    return seeds


def find_seeds(
    given: GivenSeeds,
    classes: Sequence[Label],
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


def _advice(seed: str, name: Label, vocabulary: Vocabulary) -> str:
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


# What the user sees


def seed_report(
    given: GivenSeeds | None,
    words: Mapping[Label, Sequence[SeedWord]],
    trust: SeedTrust,
    shares: Mapping[Label, float],
    expected: Sequence[float] | None = None,
) -> dict[str, Any]:
    """Return what a model's report says of its seeds, and warn of what may do harm.

    `shares` are those of the classes as estimated, `expected` those that were given, if any.
    """
    doubts = problems(words)
    if expected is not None and not trust.is_low and (far := _far(shares, expected)):
        doubts.append(far)
    if doubts:
        warnings.warn(f"Seeds to look at: {' '.join(doubts)}", WGCNWarning, stacklevel=4)
    if low := trust.doubt():
        warnings.warn(low, WGCNWarning, stacklevel=4)
    both = () if given is None else zip(given.classes, given.seeds, given.struck, strict=True)
    seeds = {str(name): [*own, *(f"-{word}" for word in struck)] for name, own, struck in both}
    rounded = {str(name): round(float(share), 4) for name, share in shares.items()}
    told = {**{name: round(value, 4) for name, value in trust._asdict().items()}, "shares": rounded}
    note = f"{trust.told()} {shown_shares(shares)}"
    return {"seeds": seeds, "seed_problems": [*doubts, *filter(None, [low])], "seed_trust": told, "seed_note": note}


def _far(shares: Mapping[Label, float], expected: Sequence[float]) -> str | None:
    """Return a sentence if given shares are far from estimated ones: if over a quarter of the texts would change."""
    apart = np.array(list(shares.values())) - np.asarray(expected)
    if np.abs(apart).sum() / 2 < _FAR:
        return None
    place = int(np.abs(apart).argmax())
    name, share = list(shares.items())[place]
    return f"class_prior says that {expected[place]:.1%} of the texts are {name!r}; by its seeds, {share:.1%} are."


def shown_shares(shares: Mapping[Label, float]) -> str:
    """Return shares of classes in a sentence, the largest first."""
    largest = sorted(shares.items(), key=lambda each: -each[1])
    more = f" and {len(largest) - _SHOWN_CLASSES} more" if len(largest) > _SHOWN_CLASSES else ""
    return f"Estimated shares: {', '.join(f'{name} {share:.1%}' for name, share in largest[:_SHOWN_CLASSES])}{more}."


def problems(words: Mapping[Label, Sequence[SeedWord]]) -> list[str]:
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


def shown_words(words: Mapping[Label, Sequence[SeedWord]]) -> str:
    """Return the words of the classes as text, each with the number of texts that have it."""
    lines = []
    for name, own in words.items():
        given = ", ".join(f"{seed.word} ({seed.n_documents:,})" for seed in own if seed.given)
        added = ", ".join(f"{seed.word} ({seed.n_documents:,})" for seed in own if not seed.given)
        lines += [f"{name}", f"  given  {given}", f"  added  {added or 'no word'}"]
    return "\n".join(lines)
