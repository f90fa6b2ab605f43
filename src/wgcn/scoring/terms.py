"""Texts as weighted terms, with numpy alone: shared by all models of texts.

Where numba is installed, compiled code gives the same ids and the same bits. It is used once a process has loaded it,
and loaded if the texts are so many that this takes less time than numpy alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from functools import cached_property
from importlib.util import find_spec
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from wgcn.base.arrays import Floats
from wgcn.base.errors import InputError
from wgcn.base.threads import n_threads
from wgcn.scoring.spelling import IDF_RANGE, Spelling
from wgcn.store import folder as store
from wgcn.store.contents import check_report
from wgcn.text import weighting
from wgcn.text.ngrams import Encoded, NgramTable, check_ngram_range, ngrams
from wgcn.text.tokenize import (
    TOKENIZERS,
    Ids,
    Offsets,
    Tokenizer,
    WordBytes,
    checked_texts,
    in_batches,
    lay_out,
    resolve_tokenizer,
    term_code,
)
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import Norm, TermWeighting

if TYPE_CHECKING:
    from wgcn.text.kernels import LookUpTable

# Characters of text that are processed at a time: small enough for the caches.
BATCH_CHARACTERS = 1 << 19
# Characters from which it pays to build a table of n-grams, to load compiled code that is on disk, and to compile it.
_WORTH_A_TABLE, _WORTH_LOADING, _WORTH_COMPILING = 1 << 17, 1 << 24, 1 << 27

TERM_SCHEMA: dict[str, type | tuple[type, ...]] = {
    "tokenizer": str,
    "ngram_range": list,
    "stop_words": list,
    "sublinear": bool,
    "norm": str,
    "lead": int,
    "settings": dict,
    "report": dict,
}


class Terms(NamedTuple):
    """Weighted terms of documents: the rows of X_dv, and how many words are known or not.

    Words that training did not see have the ids after those of the vocabulary, and rows of their own.
    """

    weights: Floats  # (terms,)
    words: npt.NDArray[Any]  # (terms,)
    offsets: Offsets  # (documents + 1,)
    new_rows: Floats | None  # (new words, hidden)
    new: WordBytes  # (new words,)
    n_words: int
    n_new: int  # words that are not in the vocabulary, and are no stop words; 0 if n-grams alone are looked for
    n_spelt: int  # of these, those with a row of their own
    counts: npt.NDArray[Any]  # (terms,), how often each occurs
    lengths: Offsets  # (documents,), tokens known or not

    @property
    def scored(self) -> tuple[Floats, npt.NDArray[Any], Offsets, Floats | None]:
        """What scores are made of."""
        return self[:4]

    @property
    def new_words(self) -> list[str]:
        """The words that training did not see, by their rows."""
        return self.new.decoded()


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
        return self._terms(list(checked_texts(texts)))

    def _terms(self, texts: list[str]) -> Terms:
        ids, offsets, places, numbers, new, n_tokens = self._encode(texts)
        n_words, rows, known, new_idf = len(self.vocabulary), None, np.zeros(len(new.begins), bool), 0.0
        if self.spelling is not None and len(places):
            (rows, known), new_idf = self.spelling.rows_of(new), self.spelling.idf
            ids[places], rows = np.where(known, n_words - 1 + np.cumsum(known), -1)[numbers], rows[known]
        new, leading = WordBytes(new.data, new.begins[known], new.ends[known]), None
        module: Any = weighting
        if term_code.is_compiled:
            from wgcn.text import kernels as module
        counts, words, new_offsets = module.count_terms(ids, offsets, n_words, len(new.begins))
        if self.weighting.lead:
            leading = module.leading_counts(ids, offsets, words, new_offsets, n_words, self.weighting.lead)
        n_spelt = int((ids[places] >= 0).sum())
        weights = self.weighting.weigh(counts, words, new_offsets, leading, new_idf)
        return Terms(weights, words, new_offsets, rows, new, n_tokens, len(places), n_spelt, counts, np.diff(offsets))

    def _rows(self, function: Callable[[Terms], Floats], texts: Iterable[str], n_jobs: int | None) -> Floats:
        """Apply a function of weighted terms to texts in batches, on `n_jobs` threads; return one row per text."""
        batches, threads = self._read_ahead(in_batches(checked_texts(texts), BATCH_CHARACTERS)), n_threads(n_jobs)
        if threads == 1:
            parts = [function(self._terms(batch)) for batch in batches]
        else:
            with ThreadPoolExecutor(threads) as pool:
                parts = list(pool.map(lambda batch: function(self._terms(batch)), batches))
        return np.concatenate(parts) if parts else function(self._terms([]))

    def _read_ahead(self, batches: Iterator[list[str]]) -> Iterator[list[str]]:
        """Return batches of texts, after loading compiled code if these and earlier ones are so many that it pays."""
        ahead: list[list[str]] = []
        n_read = vars(self).get("_n_read", 0)
        for needed in () if term_code.is_compiled else (_WORTH_LOADING, _WORTH_COMPILING):
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

    def _encode(self, texts: list[str]) -> Encoded:
        """Return ids of words or n-grams, -1 for unknown ones, and so on: see `Encoded`."""
        function, single = resolve_tokenizer(self.tokenizer), self.ngram_range == (1, 1)
        # The tokens of another function may have spaces in them, so its n-grams cannot be split into tokens.
        if (single or function in TOKENIZERS.values()) and term_code.is_compiled:
            return self._table.encode(lay_out(texts, function))
        documents = list(map(function, texts))
        if not single and function in TOKENIZERS.values() and sum(map(len, texts)) > _WORTH_A_TABLE:
            words, offsets = list(chain(*documents)), np.cumsum([0, *map(len, documents)])
            ids = np.array(list(map(self._ngrams.index.get, words, repeat(-1))), np.int32)
            ids, offsets, tokens, places = self._ngrams.look_up(ids, offsets)
            new = [words[token] for token in tokens.tolist()]
        else:
            ids, offsets, places, new = self._plain_ids(documents)
        number_of: dict[str, int] = {}
        numbers = np.array([number_of.setdefault(word, len(number_of)) for word in new], np.int64)
        return Encoded(ids, offsets, places, numbers, WordBytes.of(number_of), sum(map(len, documents)))

    def _plain_ids(self, documents: list[list[str]]) -> tuple[Ids, Offsets, Offsets, list[str]]:
        """Return the id of each n-gram, -1 for unknown ones and for stop words, and where each document begins.

        Return also the places and the texts of unknown n-grams of one word.
        """
        ids, offsets, places, new = list[int](), [0], list[int](), list[str]()
        index, stop_words, (shortest, longest) = self.vocabulary.index, frozenset(self.stop_words), self.ngram_range
        for words in documents:
            kept = [word for word in words if word not in stop_words] if stop_words else words
            tokens = kept if longest == 1 else ngrams(kept, self.ngram_range)
            ids.extend(map(index.get, tokens, repeat(-1)))
            if shortest == 1:
                single = frozenset(kept)
                unknown = [i for i, token in enumerate(tokens, offsets[-1]) if ids[i] < 0 and token in single]
                places += unknown
                new += [tokens[i - offsets[-1]] for i in unknown]
                ids.extend(repeat(-1, len(words) - len(kept)))
            offsets.append(len(ids))
        return np.array(ids, np.int32), np.array(offsets, np.int64), np.array(places, np.int64), new

    @cached_property
    def _table(self) -> LookUpTable:
        """The vocabulary for the compiled look-up."""
        from wgcn.text.kernels import LookUpTable

        return LookUpTable(self._ngrams)

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
            "lead": self.weighting.lead,
            "settings": self.settings,
            "report": self.report,
        }


def load_terms(folder: store.Folder) -> dict[str, Any]:
    """Return the parts of a saved folder that `TextTerms` needs, checked."""
    config = folder.config
    with folder.checked():
        sound = (
            config["tokenizer"] in TOKENIZERS
            and config["norm"] in get_args(Norm)
            and 0 <= config["lead"] < 2**31
            and all(type(word) is str for word in config["stop_words"])
            and sorted(set(config["stop_words"])) == config["stop_words"]
        )
        if not sound:
            raise InputError("It has values that no model has.")
        check_ngram_range(config["ngram_range"])
        check_report(config["report"], len(folder.vocabulary))
    idf = folder.tensor("idf", len(folder.vocabulary), within=IDF_RANGE)
    return {
        **{name: config[name] for name in ("tokenizer", "settings", "report")},
        **{name: tuple(config[name]) for name in ("ngram_range", "stop_words")},
        "vocabulary": folder.vocabulary,
        "weighting": TermWeighting(idf, config["sublinear"], config["norm"], config["lead"]),
    }


def _is_on_disk() -> bool:
    """Whether numba has kept the compiled code; found without numba, whose import takes half a second."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "numba")
    folders = (Path(__file__).parents[1] / "text" / "__pycache__", Path(os.environ.get("NUMBA_CACHE_DIR") or user))
    return any(any(folder.rglob("kernels.add_rows-*.nbi")) for folder in folders)


def load_compiled() -> None:
    """Load the compiled code or, where none was kept on disk, compile it. A fit does so, for all later processes."""
    if term_code.is_compiled:
        return
    from wgcn.text.kernels import add_rows

    hashes, rows = np.zeros(1, np.uint32), np.ones((1, 1), np.float32)
    add_rows(rows, rows, np.zeros(1, np.int32), np.ones(1, np.float32), np.arange(2), rows)
    term_code.is_compiled = True
    weighting, spelling = TermWeighting(np.ones(2, np.float32)), Spelling(hashes, rows.astype(np.float16), 1.0)
    TextTerms("words", (1, 2), Vocabulary(["a", "a b"]), weighting, spelling=spelling).terms(["a b"])
