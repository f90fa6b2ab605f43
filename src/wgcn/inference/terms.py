"""Texts as weighted terms, with numpy alone: shared by all models of texts.

Where numba is installed, compiled code gives the same ids and the same bits. It is used once a process has loaded it,
and loaded if the texts are so many that this takes less time than numpy alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from importlib.util import find_spec
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from wgcn.cores import n_threads
from wgcn.errors import InputError, StoreError
from wgcn.inference import folder as store
from wgcn.inference import sums
from wgcn.inference.spelling import Spelling
from wgcn.inference.sums import Floats
from wgcn.text.encode import checked_texts, in_batches, lay_out
from wgcn.text.ngrams import Ids, NgramTable, Offsets, ngrams
from wgcn.text.tokenize import TOKENIZERS, Tokenizer, resolve_tokenizer
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import Norm, TermWeighting, count_terms

__all__ = ["TERM_SCHEMA", "UNSOUND", "Terms", "TextTerms", "load_compiled", "load_terms"]

# Characters of text that are processed at a time: small enough for the caches.
BATCH_CHARACTERS = 1 << 19
# Characters from which it pays to build a table of n-grams, to load compiled code that is on disk, and to compile it.
_WORTH_A_TABLE, _WORTH_LOADING, _WORTH_COMPILING = 1 << 17, 1 << 24, 1 << 27

UNSOUND = "{}: config.json has values that no model has. Save or fetch it again."

TERM_SCHEMA: dict[str, type | tuple[type, ...]] = {
    "tokenizer": str,
    "ngram_range": list,
    "stop_words": list,
    "sublinear": bool,
    "norm": str,
    "settings": dict,
    "report": dict,
}


class Terms(NamedTuple):
    """Weighted terms of documents: the rows of X_dv, and how many tokens are known or not.

    Words that training did not see have the ids after those of the vocabulary, and rows of their own.
    """

    weights: Floats  # (terms,)
    words: npt.NDArray[Any]  # (terms,)
    offsets: Offsets  # (documents + 1,)
    new_rows: Floats | None  # (new words, hidden)
    new_words: list[str]
    n_tokens: int
    n_unknown: int  # new words count as unknown
    counts: npt.NDArray[Any]  # (terms,), how often each occurs
    lengths: Offsets  # (documents,), tokens known or not

    @property
    def scored(self) -> tuple[Floats, npt.NDArray[Any], Offsets, Floats | None]:
        """What scores are made of."""
        return self[:4]

    def known(self, n_words: int) -> Terms:
        """Return the terms that are among the words of training."""
        if not self.new_words:
            return self
        kept = self.words < n_words
        offsets = np.concatenate([[0], np.cumsum(kept)])[self.offsets]
        parts = (part[kept] for part in (self.weights, self.words, self.counts))
        return Terms(
            next(parts), next(parts), offsets, None, [], self.n_tokens, self.n_unknown, next(parts), self.lengths
        )


Counts = tuple[npt.NDArray[Any], npt.NDArray[Any], Offsets]  # as `count_terms` returns them


class _NewTokens(NamedTuple):
    """Tokens that are no word of the vocabulary, one after the other."""

    documents: npt.NDArray[np.int64]  # (tokens,)
    ids: npt.NDArray[Any]  # (tokens,), places in `words`
    words: list[str]  # each once


@dataclass(frozen=True, eq=False)
class TextTerms:
    """From texts to weighted terms: the base of models of texts. `settings` and `report` are for the model card."""

    tokenizer: str | Tokenizer
    ngram_range: tuple[int, int]
    vocabulary: Vocabulary
    weighting: TermWeighting
    settings: dict[str, Any] = field(default_factory=dict, kw_only=True)
    report: dict[str, Any] = field(default_factory=dict, kw_only=True)
    stop_words: tuple[str, ...] = field(default=(), kw_only=True)
    spelling: Spelling | None = field(default=None, kw_only=True)  # without it, words of no training text do not count

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop_words", tuple(sorted(set(self.stop_words))))

    def terms(self, texts: Iterable[str]) -> Terms:
        """Tokenise texts and weight their terms."""
        ids, offsets, new = self._encode(list(checked_texts(texts)))
        if sums.is_compiled():
            from wgcn.text import kernels

            counts, words, new_offsets = kernels.count_terms(ids, offsets, len(self.vocabulary))
        else:
            counts, words, new_offsets = count_terms(ids, offsets, len(self.vocabulary))
        n_unknown, weighting, names, rows = len(ids) - int(counts.sum()), self.weighting, list[str](), None
        if self.spelling is not None and len(new.words):
            names, rows, added = self._new_words(self.spelling, new, len(new_offsets) - 1)
            counts, words, new_offsets = _joined((counts, words, new_offsets), added, len(self.vocabulary))
            idf = np.full(len(names), self.spelling.idf, weighting.idf.dtype)
            weighting = replace(weighting, idf=np.append(weighting.idf, idf))
        weights = weighting.weigh(counts, words, new_offsets)
        return Terms(weights, words, new_offsets, rows, names, len(ids), n_unknown, counts, np.diff(offsets))

    def _new_words(self, spelling: Spelling, new: _NewTokens, n_documents: int) -> tuple[list[str], Floats, Counts]:
        """Return new words whose spelling says something, their rows, and how often each occurs in which document."""
        order = sorted(range(len(new.words)), key=new.words.__getitem__)  # so that sums do not depend on other texts
        names = [new.words[i] for i in order]
        rows, known = spelling.rows_of(names)
        if self.stop_words:
            known &= ~np.isin(names, self.stop_words)
        places = np.full(len(names), -1, np.int32)
        places[order] = np.where(known, np.cumsum(known) - 1, -1)
        offsets = np.searchsorted(new.documents, np.arange(n_documents + 1))
        counts = count_terms(places[new.ids], offsets, int(known.sum()))
        return [name for name, is_known in zip(names, known.tolist(), strict=True) if is_known], rows[known], counts

    def _rows(
        self, function: Callable[[Terms], Floats], texts: Iterable[str], n_jobs: int | None, n_columns: int
    ) -> Floats:
        """Apply a function of weighted terms to texts in batches, on `n_jobs` threads; return one row per text."""

        def work(batch: list[str]) -> Floats:
            return function(self.terms(batch))

        batches, threads = self._read_ahead(in_batches(checked_texts(texts), BATCH_CHARACTERS)), n_threads(n_jobs)
        if threads == 1:
            parts = list(map(work, batches))
        else:
            with ThreadPoolExecutor(threads) as pool:
                parts = list(pool.map(work, batches))
        return np.concatenate(parts) if parts else np.empty((0, n_columns), np.float32)

    def _read_ahead(self, batches: Iterator[list[str]]) -> Iterator[list[str]]:
        """Return batches of texts, after loading compiled code if these and earlier ones are so many that it pays."""
        ahead: list[list[str]] = []
        n_read = vars(self).get("_n_read", 0)
        for needed in () if sums.is_compiled() else (_WORTH_LOADING, _WORTH_COMPILING):
            while n_read < needed and (batch := next(batches, None)) is not None:
                ahead.append(batch)
                n_read += sum(map(len, batch))
            if n_read < needed or find_spec("numba") is None:
                break
            if needed == _WORTH_COMPILING or _is_on_disk():
                load_compiled()
                break
        vars(self)["_n_read"] = n_read
        return chain(ahead, batches)

    def _encode(self, texts: list[str]) -> tuple[Ids, Offsets, _NewTokens]:
        """Return ids of words or n-grams, -1 for unknown ones, where each text begins, and tokens that are no word."""
        function, single = resolve_tokenizer(self.tokenizer), self.ngram_range == (1, 1)
        # The tokens of another function may have spaces in them, so its n-grams cannot be split into tokens.
        if (single or function in TOKENIZERS.values()) and sums.is_compiled():
            ids, offsets, *found = self._table.encode(*lay_out(texts, function)[:3], self._reads_new_words)
            return ids, offsets, _NewTokens(*found)
        nothing = np.empty(0, np.int64)
        documents, new = list(map(function, texts)), _NewTokens(nothing, nothing, [])
        if self._reads_new_words:
            index = self.vocabulary.index
            found = [[word for word in words if word not in index] for words in documents]
            place_of: dict[str, int] = {}
            places = [place_of.setdefault(word, len(place_of)) for word in chain(*found)]
            in_documents = np.repeat(np.arange(len(found)), list(map(len, found)))
            new = _NewTokens(in_documents, np.array(places, np.int64), list(place_of))
        if not single and function in TOKENIZERS.values() and sum(map(len, texts)) > _WORTH_A_TABLE:
            return *self._ngrams.look_up(*_plain_ids(documents, self._ngrams.index)), new
        stop_words = frozenset(() if single else self.stop_words)
        return *_plain_ids(documents, self.vocabulary.index, self.ngram_range, stop_words), new

    @property
    def _reads_new_words(self) -> bool:
        return self.spelling is not None and self.ngram_range[0] == 1

    @cached_property
    def _table(self) -> Any:
        """The vocabulary for the compiled look-up."""
        from wgcn.text.kernels import LookUpTable

        single = self.ngram_range == (1, 1)
        return LookUpTable(self.vocabulary.words) if single else LookUpTable(self._ngrams.index, self._ngrams)

    @cached_property
    def _ngrams(self) -> NgramTable:
        """The vocabulary for the look-up by the ids of single words."""
        return NgramTable(self.vocabulary.words, self.ngram_range, self.stop_words)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out cached tables: their hashes are not valid in another process."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def _term_config(self) -> dict[str, Any]:
        """Return how texts become terms, for the config of a saved folder; `load_terms` reads it."""
        if not isinstance(self.tokenizer, str):
            raise InputError("A model with a tokenizer of your own cannot be saved: a file cannot hold a function.")
        return {
            "tokenizer": self.tokenizer,
            "ngram_range": list(self.ngram_range),
            "stop_words": list(self.stop_words),
            "sublinear": self.weighting.sublinear,
            "norm": self.weighting.norm,
            "settings": self.settings,
            "report": self.report,
        }


def load_terms(folder: store.Folder) -> dict[str, Any]:
    """Return the parts of a saved folder that `TextTerms` needs, checked."""
    config = folder.config
    sound = (
        config["tokenizer"] in TOKENIZERS
        and config["norm"] in get_args(Norm)
        and len(config["ngram_range"]) == 2
        and all(type(n) is int for n in config["ngram_range"])
        and 1 <= config["ngram_range"][0] <= config["ngram_range"][1] <= 100
        and all(type(word) is str for word in config["stop_words"])
        and sorted(set(config["stop_words"])) == config["stop_words"]
    )
    if not sound:
        raise StoreError(UNSOUND.format(folder.path))
    idf = folder.tensor("idf", len(folder.vocabulary))
    return {
        **{name: config[name] for name in ("tokenizer", "settings", "report")},
        **{name: tuple(config[name]) for name in ("ngram_range", "stop_words")},
        "vocabulary": folder.vocabulary,
        "weighting": TermWeighting(idf, config["sublinear"], config["norm"]),
    }


def _joined(known: Counts, new: Counts, n_words: int) -> Counts:
    """Return counts of terms, as `count_terms` does, with those of new words after the known ones of each document."""
    document = np.concatenate(
        [np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)) for *_, offsets in (known, new)]
    )
    order = np.argsort(document, kind="stable")
    counts = np.concatenate([known[0], new[0]])[order]
    words = np.concatenate([known[1], (new[1] + n_words).astype(known[1].dtype)])[order]  # for which code is compiled
    return counts, words, known[2] + new[2]


def _plain_ids(
    documents: Iterable[list[str]],
    index: dict[str, int],
    ngram_range: tuple[int, int] = (1, 1),
    stop_words: frozenset[str] = frozenset(),
) -> tuple[Ids, Offsets]:
    """Return the id of each n-gram, -1 for unknown ones and for stop words, and where each document begins."""
    ids: list[int] = []
    offsets = [0]
    for words in documents:
        kept = [word for word in words if word not in stop_words] if stop_words else words
        tokens = kept if ngram_range == (1, 1) else ngrams(kept, ngram_range)
        ids.extend(map(index.get, tokens, repeat(-1)))
        if ngram_range[0] == 1:
            ids.extend(repeat(-1, len(words) - len(kept)))
        offsets.append(len(ids))
    return np.array(ids, np.int32), np.array(offsets, np.int64)


def _is_on_disk() -> bool:
    """Whether numba has kept the compiled code; found without numba, whose import takes half a second."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "numba")
    folders = (Path(__file__).parents[1] / "text" / "__pycache__", Path(os.environ.get("NUMBA_CACHE_DIR") or user))
    return any(any(folder.rglob("kernels.add_rows-*.nbi")) for folder in folders)


def load_compiled() -> None:
    """Load the compiled code or, where none was kept on disk, compile it. A fit does so, for all later processes."""
    if sums.is_compiled():
        return
    from wgcn.text import kernels

    model = TextTerms("words", (1, 2), Vocabulary(["a", "a b"]), TermWeighting(np.ones(2, np.float32)))
    ids, offsets = model._table.encode(*lay_out(["a b"], TOKENIZERS["words"])[:3])[:2]
    counts, words, offsets = kernels.count_terms(ids, offsets, 2)
    weights = model.weighting.weigh(counts, words, offsets)
    table = np.ones((2, 1), np.float32)
    kernels.add_rows(table, table, words, weights, offsets, np.ones((1, 1), np.float32))
