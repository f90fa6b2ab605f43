"""The words that a model knows, in a defined order."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from numbers import Integral

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError, NoWordError, check_least

MAX_WORD = 1000  # characters of a word or an n-gram; longer ones, such as encoded data, are never kept


@dataclass(frozen=True)
class VocabularyRules:
    """Which words of a corpus are kept.

    Parameters
    ----------
    min_count : int
        Keep words that occur at least this often in the corpus.
    min_ngram_count : int
        Keep n-grams, that is words with a space in them, that occur at least this often.
    min_df, max_df : int or float
        Keep words that occur in at least, at most, this many documents; a float is a share of the documents.
    max_size : int, optional
        Keep only so many of the most frequent words.
    max_ngrams : int, optional
        If there are more n-grams of one length, `min_ngram_count` is raised.
    stop_words : collection of str
        Words to drop, compared with the tokens as the tokeniser gives them.
    """

    min_count: int = 1
    min_ngram_count: int = 1
    min_df: int | float = 1
    max_df: int | float = 1.0
    max_size: int | None = None
    max_ngrams: int | None = None
    stop_words: Collection[str] = field(default=frozenset(), repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.stop_words, str):
            raise InputError(f"stop_words must be a collection of words, not the text {self.stop_words!r}.")
        limits = "min_count", "min_ngram_count", "max_size", "max_ngrams"
        check_least(self, 1, *(name for name in limits if getattr(self, name) is not None))
        for name in ("min_df", "max_df"):
            value = getattr(self, name)
            if value < 0 or not (isinstance(value, Integral) or value <= 1.0):
                raise InputError(f"{name} must be a number of documents or a share between 0.0 and 1.0, got {value}.")


class Vocabulary:
    """An ordered list of distinct words with their frequencies, which does not change.

    Parameters
    ----------
    words : sequence of str
        The words. A word's id is its place. Corpora put frequent words first, equally frequent ones by code point.
    counts, document_counts : int64 arrays of shape (n_words,), optional
        How often each word occurs, and in how many documents. Zero where nothing was counted.
    """

    def __init__(
        self,
        words: Sequence[str],
        counts: npt.ArrayLike | None = None,
        document_counts: npt.ArrayLike | None = None,
        *,
        are_distinct: bool = False,  # known already, so that it needs no check
    ) -> None:
        self.words = tuple(words)
        self.counts, self.document_counts = (
            np.zeros(len(words), np.int64) if given is None else np.asarray(given, np.int64)
            for given in (counts, document_counts)
        )
        if not len(self.words) == len(self.counts) == len(self.document_counts):
            raise InputError(f"{len(self.words)} words but {len(self.counts)} counts: they must be equally many.")
        if are_distinct:
            return
        hashes = np.fromiter(map(hash, self.words), np.int64, len(self.words))
        hashes.sort()  # a set of all words takes several times their memory; a hundred equal hashes are no accident
        equal = set(hashes[1:][hashes[1:] == hashes[:-1]][:100].tolist())
        doubtful = [word for word in self.words if hash(word) in equal] if equal else []
        if len(set(doubtful)) != len(doubtful):
            raise InputError("A vocabulary must not hold a word twice.")

    def part(self, places: npt.NDArray[np.int64]) -> "Vocabulary":
        """Return the words at some places, each place once."""
        words = tuple(map(self.words.__getitem__, places.tolist()))
        return Vocabulary(words, self.counts[places], self.document_counts[places], are_distinct=True)

    @cached_property
    def index(self) -> dict[str, int]:
        """Id of each word."""
        return dict(zip(self.words, range(len(self.words)), strict=True))

    @cached_property
    def are_ngrams(self) -> npt.NDArray[np.bool_]:
        """Which of the words are n-grams: those with a space in them."""
        return np.array([" " in word for word in self.words], bool)

    def id_of(self, word: str) -> int:
        """Id of a word; an unknown one raises an error that names words like it."""
        if word in self.index:
            return self.index[word]
        near = get_close_matches(word.lower(), self.words[:20_000], n=3)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise InputError(f"The word {word!r} is not among the {len(self):,} words of the vocabulary.{hint}")

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.index

    def __getitem__(self, i: int) -> str:
        return self.words[i]

    def __eq__(self, other: object) -> bool:
        """Vocabularies are equal when they give the same ids to the same words, whatever their counts."""
        return self.words == other.words if isinstance(other, Vocabulary) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.words[:4])) + (", ..." if len(self) > 4 else "")
        return f"Vocabulary({len(self):,} words: {shown})"


def choose_words(
    words: Sequence[str],
    counts: npt.NDArray[np.int64],
    document_counts: npt.NDArray[np.int64],
    n_documents: int,
    rules: VocabularyRules,
    n_rare: int = 0,  # further n-grams that occur fewer than `min_ngram_count` times
) -> npt.NDArray[np.int64]:
    """Return the places of the words of a corpus that the rules keep, in the order that a vocabulary has.

    Every fit asks here, and prediction knows kept words alone, so nothing else needs a rule for long ones.
    """
    if not len(words) + n_rare:
        raise NoWordError(f"There is no word in the {n_documents:,} documents: they are empty or have no letters.")
    stop_words = frozenset(rules.stop_words)
    min_df, max_df = (
        limit if isinstance(limit, Integral) else limit * n_documents for limit in (rules.min_df, rules.max_df)
    )
    rare_ngrams = counts < rules.min_ngram_count
    rare_ngrams[rare_ngrams] = [" " in words[i] for i in np.flatnonzero(rare_ngrams).tolist()]
    dropped = {
        "are stop words": np.array([word in stop_words for word in words] if stop_words else counts < 0, bool),
        f"are longer than {MAX_WORD:,} characters": np.array([len(word) > MAX_WORD for word in words], bool),
        f"occur fewer than {rules.min_count} times (min_count)": counts < rules.min_count,
        f"are n-grams that occur fewer than {rules.min_ngram_count} times": rare_ngrams,
        f"are in fewer than {min_df:g} documents (min_df)": document_counts < min_df,
        f"are in more than {max_df:g} documents (max_df)": document_counts > max_df,
    }
    keep = ~np.any(list(dropped.values()), axis=0)
    if not keep.any():
        numbers = {reason: np.sum(mask) + n_rare * (mask is rare_ngrams) for reason, mask in dropped.items()}
        reasons = "; ".join(f"{number:,} {reason}" for reason, number in numbers.items() if number)
        n_words = len(words) + n_rare
        raise InputError(f"No word remains of the {n_words:,} distinct ones: {reasons}. Loosen these rules.")
    by_word = np.array(sorted(np.flatnonzero(keep).tolist(), key=words.__getitem__), np.int64)
    return by_word[np.argsort(-counts[by_word], kind="stable")][: rules.max_size]
