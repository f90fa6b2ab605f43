"""Prediction with numpy alone: a document is a sparse row times a table.

After training the word embeddings are fixed, so the graph is folded into them: H_dm = X_dv H_vm (eq. 5), then the head
of eq. 7. Neither graph nor torch is needed. Where numba is installed, texts are tokenised and looked up by compiled
code that gives the same ids.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from functools import cached_property
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from wgcn import store
from wgcn.errors import InputError, MissingDependencyError, StoreError
from wgcn.features import Norm, TermWeighting, count_terms
from wgcn.text.encode import in_batches, lay_out
from wgcn.text.ngram_table import NgramTable
from wgcn.text.tokenize import TOKENIZERS, Tokenizer, ngrams, resolve_tokenizer
from wgcn.text.vocabulary import Vocabulary

__all__ = ["TERM_SCHEMA", "Scorer", "TextModel", "TextTerms", "add_up", "load_terms"]

Floats = npt.NDArray[Any]  # single precision, or double where a model was fitted in it
Offsets = npt.NDArray[np.int64]

# Values of gathered embeddings, and characters of text, that are worked on at a time: small enough for the caches.
_BLOCK_VALUES = 1 << 20
BATCH_CHARACTERS = 1 << 18
# Characters or terms from which on compiled code is loaded.
_WORTH_COMPILING = 1 << 17
# Characters from which on, without compiled code, a table of n-grams is made and used.
_WORTH_A_TABLE = 1 << 17

_UNSOUND = "{}: config.json has values that no model has. Save or fetch it again."


@dataclass(frozen=True, eq=False)
class Scorer:
    """What training leaves: from weighted terms to scores and probabilities.

    Parameters
    ----------
    word_embeddings : float32 array of shape (words, hidden)
        H_vm of eq. 5. For a linear model, hidden is the number of classes.
    class_weights : float32 array of shape (hidden, classes), optional
        W_1 of eq. 7, applied after a ReLU; None for a linear model, whose document embeddings are its scores.
    bias : float32 array of shape (classes,)
    prior : float32 array of shape (classes,)
        Share of each class in the training documents: the answer for a document with no known word.
    sharpness : float
        What scores are multiplied by before they become probabilities, found on held-out documents.
    multilabel : bool
        Whether a document may have several classes: then each has a probability of its own.
    """

    word_embeddings: Floats
    class_weights: Floats | None
    bias: Floats
    prior: Floats
    sharpness: float = 1.0
    multilabel: bool = False

    def embed(self, weights: Floats, words: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> Floats:
        """Return H_dm = X_dv H_vm; see `add_up`."""
        return add_up(self.word_embeddings, weights, words, offsets)

    def scores(self, weights: Floats, words: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> Floats:
        """Return scores of shape (documents, classes); a document with no term gets the logarithm of the prior."""
        scores = self.embed(weights, words, offsets)
        if self.class_weights is not None:
            # One row at a time, because a matrix product may round a row differently in another company.
            scores = (
                np.stack([np.maximum(row, 0) @ self.class_weights for row in scores]) if len(scores) else scores[:, :0]
            )
            scores = scores.reshape(len(offsets) - 1, len(self.bias))
        scores = scores + self.bias
        scores[np.diff(offsets) == 0] = self._prior_scores
        return scores

    @cached_property
    def _prior_scores(self) -> Floats:
        """The scores whose probabilities are the prior."""
        prior = np.clip(self.prior.astype(np.float64), 1e-12, 1 - 1e-12)
        logits = np.log(prior) - np.log1p(-prior) if self.multilabel else np.log(prior)
        return (logits / self.sharpness).astype(self.bias.dtype)

    def probabilities(self, scores: Floats) -> npt.NDArray[np.float64]:
        """Return probabilities of shape (documents, classes): eq. 7's softmax, or a sigmoid a class if multilabel."""
        logits = scores.astype(np.float64) * self.sharpness
        if self.multilabel:
            return np.where(logits >= 0, 1 / (1 + np.exp(-np.abs(logits))), 1 - 1 / (1 + np.exp(-np.abs(logits))))
        logits -= logits.max(axis=1, keepdims=True)
        exponentials = np.exp(logits)
        return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


def add_up(word_embeddings: Floats, weights: Floats, words: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> Floats:
    """Return X_dv H_vm: for each document the weighted sum of the embeddings of its words.

    Parameters
    ----------
    word_embeddings : float array of shape (words, hidden)
    weights, words : arrays of shape (terms,)
        The non-zero entries of X_dv and their columns, row by row.
    offsets : int array of shape (documents + 1,)
        Where each row begins.

    Returns
    -------
    float array of shape (documents, hidden)
    """
    n_documents, hidden = len(offsets) - 1, word_embeddings.shape[1]
    embedded = np.zeros((n_documents, hidden), word_embeddings.dtype)
    if weights.dtype == embedded.dtype and _worth_compiling(len(words)):
        from wgcn.text.kernels import add_rows

        add_rows(word_embeddings, words, weights, offsets, embedded)
        return embedded
    for first, last in _row_blocks(offsets, max(_BLOCK_VALUES // max(hidden, 1), 1)):
        begin, end = int(offsets[first]), int(offsets[last])
        if begin == end:
            continue
        # In double precision, where a product of two single ones is exact: the compiled twin may fuse it with the
        # addition, and gives the same bits all the same.
        terms = word_embeddings[words[begin:end]] * weights[begin:end, None].astype(np.float64)
        has_terms = np.diff(offsets[first : last + 1]) > 0
        starts = (offsets[first:last] - begin)[has_terms]
        embedded[first:last][has_terms] = np.add.reduceat(terms, starts, axis=0)
    return embedded


class Terms(NamedTuple):
    """Weighted terms of documents: the rows of X_dv, and what could not enter them."""

    weights: Floats  # (terms,)
    words: npt.NDArray[Any]  # (terms,)
    offsets: Offsets  # (documents + 1,)
    n_tokens: int
    n_unknown: int


class TextTerms:
    """From texts to weighted terms: what models of texts have in common. A dataclass that derives from it has these."""

    tokenizer: str | Tokenizer
    ngram_range: tuple[int, int]
    vocabulary: Vocabulary
    weighting: TermWeighting
    stop_words: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop_words", tuple(sorted(set(self.stop_words))))

    def terms(self, texts: Iterable[str]) -> Terms:
        """Tokenise texts and weigh their terms."""
        ids, offsets = self._encode(list(texts))
        known = ids >= 0
        before = np.zeros(len(ids) + 1, np.int64)
        np.cumsum(known, out=before[1:])
        counts, words, new_offsets = count_terms(ids[known], before[offsets], len(self.vocabulary))
        weights = self.weighting.weigh(counts, words, new_offsets)
        return Terms(weights, words, new_offsets, len(ids), int(len(ids) - before[-1]))

    def _rows(self, function: Callable[..., Floats], texts: Iterable[str], n_jobs: int, n_columns: int) -> Floats:
        """Return the rows that a function gives for the terms of texts, batch by batch, on `n_jobs` threads."""

        def work(batch: list[str]) -> Floats:
            return function(*self.terms(batch)[:3])

        batches = in_batches(texts, BATCH_CHARACTERS)
        if n_jobs == 1:
            parts = list(map(work, batches))
        else:
            with ThreadPoolExecutor(n_jobs) as pool:
                parts = list(pool.map(work, batches))
        return np.concatenate(parts) if parts else np.empty((0, n_columns), np.float32)

    def _encode(self, texts: list[str]) -> tuple[npt.NDArray[np.int32], Offsets]:
        """Return ids of words or n-grams, -1 for unknown ones, and where each text begins."""
        function, size = resolve_tokenizer(self.tokenizer), sum(map(len, texts))
        single = self.ngram_range == (1, 1)
        # Another function may give tokens with spaces in them, and then an n-gram does not tell its tokens.
        if single or function in TOKENIZERS.values():
            if _worth_compiling(size):
                data, documents, rule, _ = lay_out(texts, function)
                ids, offsets = self._table.encode(data, documents, rule)
                return (ids, offsets) if single else self._ngrams.look_up(ids, offsets)
            if not single and size > _WORTH_A_TABLE:
                return self._ngrams.look_up(*_plain_ids(map(function, texts), self._ngrams.index))
        stop_words = frozenset() if single else self._stop_words
        return _plain_ids(map(function, texts), self.vocabulary.index, self.ngram_range, stop_words)

    @cached_property
    def _table(self) -> Any:
        """The vocabulary, or the words of its n-grams, for the compiled look-up."""
        from wgcn.text.kernels import LookUpTable

        words = self.vocabulary.words if self.ngram_range == (1, 1) else self._ngrams.index
        return LookUpTable([word.encode() for word in words])

    @cached_property
    def _ngrams(self) -> NgramTable:
        """The vocabulary for the look-up by the ids that `_table` gives."""
        return NgramTable(self.vocabulary.words, self.ngram_range, self.stop_words)

    @cached_property
    def _stop_words(self) -> frozenset[str]:
        return frozenset(self.stop_words)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is cached: the hashes in `_table` are of no use to another process."""
        return {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]

    def _term_config(self) -> dict[str, Any]:
        """Return the settings of a saved folder that tell how texts become terms; `load_terms` takes them back."""
        if not isinstance(self.tokenizer, str):
            raise InputError("A model with a tokenizer of your own cannot be saved: a file cannot hold a function.")
        return {
            "tokenizer": self.tokenizer,
            "ngram_range": list(self.ngram_range),
            "stop_words": list(self.stop_words),
            "sublinear": self.weighting.sublinear,
            "norm": self.weighting.norm,
        }


@dataclass(frozen=True, eq=False)
class TextModel(TextTerms):
    """A trained model that takes texts: what a saved model folder holds.

    Parameters
    ----------
    tokenizer : str or callable
    ngram_range : (int, int)
    vocabulary : Vocabulary
    weighting : TermWeighting
    scorer : Scorer
    classes : array of shape (classes,)
        The labels, strings or integers.
    settings, report : dict
        How the model was fitted, and what came of it: for the model card.
    stop_words : tuple of str
        Words that are dropped before n-grams are formed, in order. They count as unknown words.
    """

    tokenizer: str | Tokenizer
    ngram_range: tuple[int, int]
    vocabulary: Vocabulary
    weighting: TermWeighting
    scorer: Scorer
    classes: npt.NDArray[Any]
    settings: dict[str, Any] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    stop_words: tuple[str, ...] = ()

    def transform(self, texts: Iterable[str]) -> Floats:
        """Return document embeddings, of shape (documents, hidden)."""
        return self.scorer.embed(*self.terms(texts)[:3])

    def scores(self, texts: Iterable[str], n_jobs: int = 1) -> Floats:
        """Return scores of shape (documents, classes), computed on `n_jobs` threads (of use where numba is there)."""
        return self._rows(self.scorer.scores, texts, n_jobs, len(self.classes))

    def predict_proba(self, texts: Iterable[str], n_jobs: int = 1) -> npt.NDArray[np.float64]:
        """Return probabilities of shape (documents, classes)."""
        return self.scorer.probabilities(self.scores(texts, n_jobs))

    def predict(self, texts: Iterable[str], n_jobs: int = 1) -> npt.NDArray[Any]:
        """Return one label a document; for a multi-label model a 0/1 matrix of shape (documents, classes)."""
        scores = self.scores(texts, n_jobs)
        return (scores > 0).astype(np.int64) if self.scorer.multilabel else self.classes[scores.argmax(axis=1)]

    def extend(
        self, texts: Iterable[str], how: Literal["graph", "spelling"] = "graph", *, min_count: int | None = None
    ) -> TextModel:
        """Return the model with rows for words that it does not know. Nothing is trained, and no label is needed.

        New words come after the others, and nothing changes for a text that has none of them.

        Parameters
        ----------
        texts : iterable of str
            Texts that have the words.
        how : {"graph", "spelling"}
            "graph": a word gets what the known words say that it shares texts with, so the texts should be many, and
            like those to be classified. "spelling": it gets what the known words say that are spelt like it, whatever
            texts it stands in; a word that is spelt like no other stays unknown.
        min_count : int, optional
            Leave out words that occur less often than this in the texts. By default 2 for "graph", 1 for "spelling".

        Examples
        --------
        >>> from wgcn import WGCNTextClassifier
        >>> model = WGCNTextClassifier().fit(["red wine", "fast car"], ["drink", "drive"]).model_
        >>> model = model.extend(["merlot is red wine", "a glass of merlot", "turbo for a fast car", "turbo car"])
        >>> model.predict(["merlot", "turbo"]).tolist()
        ['drink', 'drive']
        """
        try:
            from wgcn.model.extend import extend
        except ImportError as error:
            raise MissingDependencyError(error.name or "scipy", "graph", "Adding words to a model") from error
        return extend(self, texts, how, min_count=min_count)

    @property
    def extensions(self) -> list[dict[str, Any]]:
        """What `extend` added, an entry a call: how, the number of words, and that of texts."""
        return list(self.report.get("extended", ()))

    def save(self, path: str | Path) -> str:
        """Write the model to a folder, whole or not at all; return its digest."""
        terms = self._term_config()
        if self.classes.dtype.kind not in "Uiu":
            raise InputError(f"Labels must be strings or integers to be saved, got {self.classes.dtype}. Convert them.")
        tensors = {
            "word_embeddings": self.scorer.word_embeddings,
            "bias": self.scorer.bias,
            "prior": self.scorer.prior,
            "idf": self.weighting.idf,
        }
        if self.scorer.class_weights is not None:
            tensors["class_weights"] = self.scorer.class_weights
        config = {
            **terms,
            "classes": self.classes.tolist(),
            "sharpness": self.scorer.sharpness,
            "multilabel": self.scorer.multilabel,
            "settings": self.settings,
            "report": self.report,
        }
        return store.save_folder(path, "model", config, tensors, self.vocabulary, model_card(self))

    @classmethod
    def load(cls, path: str | Path) -> TextModel:
        """Read a model that `save` wrote. Nothing in it is executed."""
        folder = store.load_folder(path, "model", _SCHEMA)
        config, n_words = folder.config, len(folder.vocabulary)
        terms, classes = load_terms(folder), _checked_classes(folder)
        n_classes = len(classes)
        hidden = folder.matrix("word_embeddings", n_words, None).shape[1]
        head = folder.matrix("class_weights", hidden, n_classes) if "class_weights" in folder.tensors else None
        if head is None and hidden != n_classes:
            raise StoreError(f"{folder.path}: a linear model of {n_classes} classes has a table {hidden} wide.")
        scorer = Scorer(
            folder.matrix("word_embeddings", n_words, hidden),
            head,
            folder.vector("bias", n_classes, np.float32),
            folder.vector("prior", n_classes, np.float32),
            config["sharpness"],
            config["multilabel"],
        )
        return cls(**terms, scorer=scorer, classes=classes, settings=config["settings"], report=config["report"])


TERM_SCHEMA: dict[str, type | tuple[type, ...]] = {
    "tokenizer": str,
    "ngram_range": list,
    "stop_words": list,
    "sublinear": bool,
    "norm": str,
}

_SCHEMA: dict[str, type | tuple[type, ...]] = {
    **TERM_SCHEMA,
    "classes": list,
    "sharpness": float,
    "multilabel": bool,
    "settings": dict,
    "report": dict,
}


def _are_extensions(given: Any, n_words: int) -> bool:
    """Whether a report tells of words that `extend` can have added."""
    keys = {"how": str, "words": int, "texts": int}
    return (
        isinstance(given, list)
        and all(isinstance(entry, dict) and entry.keys() == keys.keys() for entry in given)
        and all(type(entry[key]) is kind for entry in given for key, kind in keys.items())
        and all(entry["words"] > 0 for entry in given)
        and sum(entry["words"] for entry in given) < n_words
    )


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
        raise StoreError(_UNSOUND.format(folder.path))
    idf = folder.vector("idf", len(folder.vocabulary), np.float32)
    return {
        "tokenizer": config["tokenizer"],
        "ngram_range": tuple(config["ngram_range"]),
        "vocabulary": folder.vocabulary,
        "weighting": TermWeighting(idf, config["sublinear"], config["norm"]),
        "stop_words": tuple(config["stop_words"]),
    }


def _checked_classes(folder: store.Folder) -> npt.NDArray[Any]:
    config = folder.config
    classes = config["classes"]
    sound = (
        np.isfinite(config["sharpness"])
        and config["sharpness"] > 0
        and (all(type(c) is str for c in classes) or all(type(c) is int and abs(c) < 2**63 for c in classes))
        and len(set(classes)) == len(classes) >= 1
        and _are_extensions(config["report"].get("extended", []), len(folder.vocabulary))
    )
    if not sound:
        raise StoreError(_UNSOUND.format(folder.path))
    return np.array(classes)


def model_card(model: TextModel) -> str:
    """Return the README.md of a model folder."""
    report = model.report
    accuracy = report.get("held_out_accuracy")
    n_ngrams = int(model.vocabulary.are_ngrams.sum())
    lines = [
        "# A wgcn text classifier",
        "",
        "Classifies texts through a graph of words. Use it with `wgcn predict DIR FILE`, or in Python:",
        "",
        "    from wgcn import TextModel",
        '    TextModel.load("DIR").predict(["a text"])',
        "",
        "| | |",
        "|---|---|",
        f"| documents in training | {report.get('n_documents', 0):,} |",
        f"| of these with labels | {report.get('n_labelled', 0):,} |",
        f"| classes | {len(model.classes)}{' (a document may have several)' if model.scorer.multilabel else ''} |",
        f"| words | {len(model.vocabulary) - n_ngrams:,} |",
        *([f"| n-grams | {n_ngrams:,} |"] if n_ngrams else []),
        *(
            f"| words among them that were added by {added['how']}, without training | {added['words']:,} from "
            f"{added['texts']:,} texts |"
            for added in model.extensions
        ),
        f"| edges of the word graph | {report.get('n_edges', 0):,} |",
        "| accuracy on held-out training documents | "
        + (f"{accuracy:.2%} of {report['n_held_out']:,} |" if accuracy is not None else "not measured |"),
        *_tuned(report.get("tuned")),
        *_learnt_alpha(report.get("learnt_alpha")),
        f"| time to fit | {report.get('seconds', 0):.1f} s |",
        f"| made | {report.get('date', 'unknown')}, wgcn {report.get('version', 'unknown')} |",
        "",
        "Held-out documents were left out of a first fit and joined the final one. A word that is not among these is",
        "ignored; a text with no known word gets the shares of the classes in training.",
        "",
        "## Classes",
        "",
        *(f"- {json.dumps(name, ensure_ascii=False)}: {share:.2%}" for name, share in _shares(model)),
        "",
        "## Settings",
        "",
        *(f"- `{name}`: `{json.dumps(value)}`" for name, value in sorted(model.settings.items())),
    ]
    return "\n".join(lines) + "\n"


def _tuned(tuned: dict[str, Any] | None) -> list[str]:
    """Return the line that says how settings were chosen, if they were."""
    if tuned is None or tuned["accuracy"] is None:
        return []
    chosen = ", ".join(f"{name} {value:g}" for name, value in sorted(tuned["settings"].items()))
    return [
        f"| settings chosen | {chosen}: {tuned['accuracy']:.2%} in cross-validation, the values given at first "
        f"{tuned['default_accuracy']:.2%}, of {tuned['n_trials']} trials |"
    ]


def _learnt_alpha(learnt: list[float] | None) -> list[str]:
    """Return the line that says how much the graph weighs, if that was learnt."""
    if not learnt:
        return []
    names = ("smallest", "median", "largest")
    each = ", ".join(f"{name} {value:.3g}" for name, value in zip(names, learnt, strict=True)) if learnt[1:] else ""
    return [f"| weight of the graph (alpha), learnt | {f'for each word: {each}' if each else f'{learnt[0]:.3g}'} |"]


def _shares(model: TextModel) -> list[tuple[Any, float]]:
    return list(zip(model.classes.tolist(), model.scorer.prior.tolist(), strict=True))


def _plain_ids(
    documents: Iterable[list[str]],
    index: dict[str, int],
    ngram_range: tuple[int, int] = (1, 1),
    stop_words: frozenset[str] = frozenset(),
) -> tuple[npt.NDArray[np.int32], Offsets]:
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


def _worth_compiling(size: int) -> bool:
    """Whether numba is there, and loaded already or worth the second that loading it takes."""
    return "numba" in sys.modules or (size > _WORTH_COMPILING and find_spec("numba") is not None)


def _row_blocks(offsets: npt.NDArray[Any], n_terms: int) -> Iterator[tuple[int, int]]:
    first, n_rows = 0, len(offsets) - 1
    while first < n_rows:
        last = int(np.searchsorted(offsets, offsets[first] + n_terms, side="right")) - 1
        last = min(max(last, first + 1), n_rows)
        yield first, last
        first = last
