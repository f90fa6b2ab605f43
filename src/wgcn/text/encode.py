"""Batches of texts as bytes, as the compiled tokenisers read them, and whether these are in use. Needs numpy alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError
from wgcn.text.tokenize import Tokenizer, fold, words

# Large enough that merging a batch's words costs little beside finding them, small enough for the caches.
BATCH_CHARACTERS = 1 << 22


class TermCode:
    """Which code turns texts into terms and sums of rows: numpy or, once loaded, its compiled twin, with equal bits."""

    is_compiled = False


term_code = TermCode()  # of this process; `wgcn.scoring.terms.load_compiled` switches it


class WordBytes(NamedTuple):
    """Words as parts of UTF-8 text: as str they are made only where they are shown, because that takes long."""

    data: npt.NDArray[np.uint8]
    begins: npt.NDArray[np.int32]  # (words,)
    ends: npt.NDArray[np.int32]  # (words,)

    @classmethod
    def of(cls, words: Iterable[str]) -> WordBytes:
        """Return the bytes of words."""
        parts = [word.encode("utf-8", "surrogatepass") for word in words]
        places = np.cumsum([0, *map(len, parts)], dtype=np.int32)
        return cls(np.frombuffer(b"".join(parts), np.uint8), places[:-1], places[1:])

    def decoded(self) -> list[str]:
        """Return the words one by one."""
        text, places = self.data.tobytes(), zip(self.begins.tolist(), self.ends.tolist(), strict=True)
        return [text[begin:end].decode("utf-8", "surrogatepass") for begin, end in places]


def text_digest(text: str) -> int:
    """Return a number of 64 bits by which a text is known again, in other processes and releases too."""
    found = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(found, "little", signed=True)


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
    n_replaced, encoded = 0, list[bytes]()
    if rule == "words" and (joined := "".join(batch)).isascii():  # all at once is faster
        data, lengths = joined.lower().encode(), list(map(len, batch))
    else:
        for text in batch:
            text = fold(text) if rule == "words" else _one_per_line(tokenizer(text))
            try:
                encoded.append(text.encode())
            except UnicodeEncodeError:
                encoded.append(re.sub("[\ud800-\udfff]", "\ufffd", text).encode())
                n_replaced += 1
        data, lengths = b"".join(encoded), list(map(len, encoded))
    if len(data) >= 2**31:
        raise InputError(f"A document of {max(lengths):,} bytes is too long: 2 GB is the limit. Split it.")
    return np.frombuffer(data, np.uint8), np.cumsum([0, *lengths], dtype=np.int64), rule, n_replaced


def _one_per_line(tokens: Sequence[str]) -> str:
    if isinstance(tokens, str):
        raise InputError("A tokenizer must return a list of tokens, not one str.")
    lines = "".join([f"{token}\n" for token in tokens])
    if lines.count("\n") != len(tokens) or not all(tokens):
        raise InputError("A tokenizer must return tokens that are not empty and have no line break in them.")
    return lines
