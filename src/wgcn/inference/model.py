"""Prediction with numpy alone: a document is a sparse row times a table.

After training the word embeddings are fixed, so the graph is folded into them: H_dm = X_dv H_vm (eq. 5), then the head
of eq. 7. Neither graph nor torch is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from wgcn.errors import InputError, StoreError, needs
from wgcn.inference import folder as store
from wgcn.inference.card import model_card
from wgcn.inference.terms import TERM_SCHEMA, UNSOUND, Floats, TextTerms, add_up, load_terms
from wgcn.text.tokenize import Tokenizer
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import TermWeighting

__all__ = ["Scorer", "TextModel"]


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

    def with_prior(self, prior: Floats) -> Scorer:
        """Return the scorer for documents among which the classes have other shares than in training."""
        shift = (np.log(prior) - np.log(np.clip(self.prior.astype(np.float64), 1e-12, None))) / self.sharpness
        dtype = self.bias.dtype
        return replace(self, bias=(self.bias + shift).astype(dtype), prior=np.asarray(prior).astype(dtype))

    def probabilities(self, scores: Floats) -> npt.NDArray[np.float64]:
        """Return probabilities of shape (documents, classes): eq. 7's softmax, or a sigmoid a class if multilabel."""
        logits = scores.astype(np.float64) * self.sharpness
        if self.multilabel:
            return np.where(logits >= 0, 1 / (1 + np.exp(-np.abs(logits))), 1 - 1 / (1 + np.exp(-np.abs(logits))))
        logits -= logits.max(axis=1, keepdims=True)
        exponentials = np.exp(logits)
        return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


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

    def transform(self, texts: Iterable[str], n_jobs: int | None = 1) -> Floats:
        """Return document embeddings, of shape (documents, hidden); see `scores`."""
        return self._rows(self.scorer.embed, texts, n_jobs, self.scorer.word_embeddings.shape[1])

    def scores(self, texts: Iterable[str], n_jobs: int | None = 1) -> Floats:
        """Return scores of shape (documents, classes).

        Parameters
        ----------
        texts : iterable of str
            Read in batches.
        n_jobs : int or None
            Threads, of use where numba is there; -1 or None for as many as there are cores.
        """
        return self._rows(self.scorer.scores, texts, n_jobs, len(self.classes))

    def predict_proba(self, texts: Iterable[str], n_jobs: int | None = 1) -> npt.NDArray[np.float64]:
        """Return probabilities of shape (documents, classes)."""
        return self.scorer.probabilities(self.scores(texts, n_jobs))

    def predict(self, texts: Iterable[str], n_jobs: int | None = 1) -> npt.NDArray[Any]:
        """Return one label a document; for a multi-label model a 0/1 matrix of shape (documents, classes)."""
        scores = self.scores(texts, n_jobs)
        return (scores > 0).astype(np.int64) if self.scorer.multilabel else self.classes[scores.argmax(axis=1)]

    def extend(
        self,
        texts: Iterable[str],
        how: Literal["graph", "spelling", "vectors"] = "graph",
        *,
        vectors: str | Path | None = None,
        min_count: int | None = None,
    ) -> TextModel:
        """Return the model with rows for words that it does not know. Nothing is trained, and no label is needed.

        New words come after the others, and nothing changes for a text that has none of them.

        Parameters
        ----------
        texts : iterable of str
            Texts that have the words.
        how : {"graph", "spelling", "vectors"}
            "graph": a word gets what the known words say that it shares texts with, so the texts should be many, and
            like those to be classified. "spelling": it gets what the known words say that are spelt like it, whatever
            texts it stands in; a word that is spelt like no other stays unknown. "vectors": it gets what the known
            words say whose vectors are nearest to its own; one without a vector, or with none near it, stays unknown.
        vectors : str or path, optional
            For "vectors", and needed there: "distilled", what a sentence encoder makes of each word (it needs
            the extra ``vectors``), or the path of a file, such as GloVe's: see docs/word-vectors.md.
        min_count : int, optional
            Leave out words that occur less often than this in the texts. By default 2 for "graph", else 1.

        Examples
        --------
        >>> from wgcn import WGCNTextClassifier
        >>> model = WGCNTextClassifier().fit(["red wine", "fast car"], ["drink", "drive"]).model_
        >>> model = model.extend(["merlot is red wine", "a glass of merlot", "turbo for a fast car", "turbo car"])
        >>> model.predict(["merlot", "turbo"]).tolist()
        ['drink', 'drive']
        """
        with needs("Adding words to a model"):
            from wgcn.inference.extend import extend
        return extend(self, texts, how, vectors=vectors, min_count=min_count)

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
        raise StoreError(UNSOUND.format(folder.path))
    return np.array(classes)
