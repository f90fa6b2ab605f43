"""Predictions as columns of a table, from arrays of decisions and probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.text.tokenize import Tokenizer, resolve_tokenizer

Column = tuple[str, list[Any]]  # its name, and one value per text

DIGITS = 4


class Tally:
    """What was seen in texts that were classified: their number, and which words are not in the vocabulary."""

    def __init__(self) -> None:
        self.n_texts = self.n_empty = self.n_words = self.n_new = self.n_spelt = 0

    def add(self, n_words: int, n_new: int, n_spelt: int, n_terms: npt.NDArray[Any]) -> None:
        """Add texts: their words, those not in the vocabulary, of these the ones that are spelt; terms of each text."""
        self.n_texts += len(n_terms)
        self.n_empty += int((n_terms == 0).sum())
        self.n_words += n_words
        self.n_new += n_new
        self.n_spelt += n_spelt

    def summary(self) -> str:
        """Return one line for people to read. Words of the training texts may be too rare for the vocabulary."""
        said = [f"{self.n_texts:,} text{'s' * (self.n_texts != 1)}."]
        if self.n_new:
            spelt, ignored = self.n_spelt, self.n_new - self.n_spelt
            parts = [f"{spelt / self.n_words:.1%} are read by their spelling"] * (spelt > 0)
            parts += [f"{ignored / self.n_words:.1%} are ignored"] * (ignored > 0)
            share = f"{self.n_new / self.n_words:.1%} of their words are not in the vocabulary"
            said.append(f"{share}, as new or too rare in training: {', '.join(parts)}.")
        if self.n_empty:
            have = "has" if self.n_empty == 1 else "have"
            said.append(f"{self.n_empty:,} {have} no word that the model can read, and got the most frequent class.")
        return " ".join(said)


def known_words(vocabulary: Iterable[str]) -> frozenset[str]:
    """Return the words of a vocabulary, those of its n-grams too."""
    return frozenset(word for entry in vocabulary for word in (entry, *entry.split(" ")))


def unknown_words(texts: Iterable[str], tokenizer: str | Tokenizer, known: Set[str]) -> npt.NDArray[np.float64]:
    """Return for each text the share of its words that are not among the `known` ones; 1 for a text without words.

    Examples
    --------
    >>> unknown_words(["Red car", "zzz car", ""], "words", known_words(["red car"])).tolist()
    [0.0, 0.5, 1.0]
    """
    words = map(resolve_tokenizer(tokenizer), texts)
    return np.array(
        [sum(word not in known for word in each) / len(each) if each else 1.0 for each in words], np.float64
    )


def prediction_columns(
    classes: Sequence[str],
    decided: npt.NDArray[np.int64],
    probabilities: npt.NDArray[np.float64] | None = None,
    unknown: npt.NDArray[np.float64] | None = None,
    *,
    top: int = 1,
    proba: bool = False,
    nested: bool = False,
) -> list[Column]:
    """Return the columns label, confidence, unknown_words, and those of further classes.

    Parameters
    ----------
    classes : names of the classes
    decided : array of shape (texts,) or (texts, classes)
        The class of each text, or a 0/1 matrix if a text may have several: then labels and confidences are lists.
    probabilities : array of shape (texts, classes), or None for labels alone
    unknown : array of shape (texts,), optional
        Share of the words of each text that the model does not know.
    top : int
        Number of classes, the most likely first: label_2, confidence_2 and so on, or, if `nested`, one list ``top``.
    proba : bool
        Whether to add one column per class: probability_a is that of the class a.
    """
    if decided.ndim == 2:
        chosen = [row.nonzero()[0].tolist() for row in decided]
        columns: list[Column] = [("label", [[classes[i] for i in row] for row in chosen])]
    else:
        chosen = decided.tolist()
        columns = [("label", [classes[i] for i in chosen])]
    if probabilities is None:
        return columns
    rounded = np.round(probabilities, DIGITS)
    if decided.ndim == 2:
        columns.append(("confidence", [rounded[i, row].tolist() for i, row in enumerate(chosen)]))
    else:
        columns.append(("confidence", rounded[np.arange(len(chosen)), decided].tolist()))
    if unknown is not None:
        columns.append(("unknown_words", np.round(unknown, DIGITS).tolist()))
    if top > 1:
        order = np.argsort(-probabilities, axis=1, kind="stable")[:, :top]  # (texts, top)
        columns += _further(classes, order, np.take_along_axis(rounded, order, axis=1), nested)
    if proba:
        columns += [(f"probability_{name}", rounded[:, i].tolist()) for i, name in enumerate(classes)]
    return columns


def _further(
    classes: Sequence[str], order: npt.NDArray[Any], likely: npt.NDArray[np.float64], nested: bool
) -> list[Column]:
    """Return the columns of the most likely classes, whose places and probabilities have the shape (texts, top)."""
    if nested:
        pairs = zip(order.tolist(), likely.tolist(), strict=True)
        lists = [[{"label": classes[i], "confidence": p} for i, p in zip(*pair, strict=True)] for pair in pairs]
        return [("top", lists)]
    columns: list[Column] = []
    for place in range(1, order.shape[1]):
        columns.append((f"label_{place + 1}", [classes[i] for i in order[:, place].tolist()]))
        columns.append((f"confidence_{place + 1}", likely[:, place].tolist()))
    return columns
