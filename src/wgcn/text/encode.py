"""Batches of texts as bytes, the way the compiled tokenisers read them. Needs numpy alone."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.errors import InputError
from wgcn.text.tokenize import Tokenizer, fold, words

__all__ = ["checked_texts", "in_batches", "lay_out"]

# Large enough that merging a batch's words costs little beside finding them, small enough for the caches.
BATCH_CHARACTERS = 1 << 22


def checked_texts(texts: Iterable[str], name: str = "texts") -> Iterator[str]:
    """Return the texts, checked: no collection is an error at once, an element that is no text when it is reached."""
    if isinstance(texts, str | bytes):
        raise InputError(f"{name} must be a list of texts, not one text, {texts!r:.80}: put it into a list.")
    dimensions = getattr(texts, "ndim", 1)
    if dimensions != 1:
        advice = "give one column of it, or its values as a list" if dimensions else "put it into a list"
        raise InputError(f"{name} must be one-dimensional, got {dimensions} dimensions: {advice}.")
    if not isinstance(texts, Iterable):
        raise InputError(f"{name} must be a list of texts, got {type(texts).__name__}: {texts!r:.80}.")
    return _each_checked(texts, name)


def _each_checked(texts: Iterable[Any], name: str) -> Iterator[str]:
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            advice = "Decode it." if isinstance(text, bytes) else "Convert it, or give '' where there is no text."
            raise InputError(
                f"Each of {name} must be a str, got {type(text).__name__} at place {place} (counted from 0): "
                f"{text!r:.80}. {advice}"
            )
        yield text


def in_batches(texts: Iterable[str], characters: int = BATCH_CHARACTERS) -> Iterator[list[str]]:
    """Cut texts into lists of about so many characters."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text) + 1
        if size >= characters:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def lay_out(batch: list[str], tokenizer: Tokenizer) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], str, int]:
    """Lay a batch out as UTF-8 for the kernels.

    Return the bytes of all texts, folded for `words`, otherwise one token per line; where each text begins, of shape
    (texts + 1,); which of these it is, "words" or "lines"; and the number of texts that were not valid Unicode.
    """
    rule = "words" if tokenizer is words else "lines"
    n_replaced = 0
    encoded = []
    for text in batch:
        text = fold(text) if rule == "words" else _one_per_line(tokenizer(text))
        try:
            encoded.append(text.encode())
        except UnicodeEncodeError:
            encoded.append(re.sub("[\ud800-\udfff]", "\ufffd", text).encode())
            n_replaced += 1
    data = np.frombuffer(b"".join(encoded), np.uint8)
    if len(data) >= 2**31:
        raise InputError(f"A document of {max(map(len, encoded)):,} bytes is too long: 2 GB is the limit. Split it.")
    return data, np.cumsum([0, *map(len, encoded)], dtype=np.int64), rule, n_replaced


def _one_per_line(tokens: Sequence[str]) -> str:
    if isinstance(tokens, str):
        raise InputError("A tokenizer must return a list of tokens, not one str.")
    lines = "".join([f"{token}\n" for token in tokens])
    if lines.count("\n") != len(tokens) or not all(tokens):
        raise InputError("A tokenizer must return tokens that are not empty and have no line break in them.")
    return lines
