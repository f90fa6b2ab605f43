"""What files may say: JSON, words, and what a model says of its classes and fit. Checked when saved and when loaded.

Names of classes are shown in terminals and are held in arrays of texts of one length, so they have limits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import CONTROLS, InputError
from wgcn.text.vocabulary import Vocabulary

_MAX_VALUES, _MAX_DEPTH, _MAX_TEXT = 1 << 18, 12, 1 << 20  # in JSON; characters of a text
_MAX_CHARACTERS = 1 << 24  # in the array of all names: four bytes each
MAX_COUNT = 1 << 53
_WORDS_BLOCK, MAX_WORD_BYTES = 1 << 20, 1 << 23  # of words that are decoded at a time
# What a report holds where it holds it; other entries are not read.
_WHOLE = ("n_documents", "n_labelled", "n_background", "n_edges", "n_copies")
_TEXTS = ("date", "version", "seed_note", "measured")
_EXTENSION = {"how": str, "words": int, "texts": int}


def read_json(content: bytes, most: int = _MAX_VALUES) -> Any:
    """Return what JSON holds; a ValueError unless it is small and plain, so that nothing that is done with it fails."""
    if sum(map(content.count, (b",", b"[", b"{"))) > most:
        raise ValueError(f"it has more than {most:,} values")
    try:
        document = json.loads(content, object_pairs_hook=_object)
    except RecursionError:
        document = None
    level: list[Any] = [document]
    for _ in range(_MAX_DEPTH if document is not None else 0):
        for value in level:
            if isinstance(value, str) and len(value) > _MAX_TEXT:
                raise ValueError(f"the text {value:.60} has more than {_MAX_TEXT:,} characters")
            if isinstance(value, str) and CONTROLS.search(value):
                raise ValueError(f"the text {value!r:.60} has a control character in it")
            if isinstance(value, int | float) and not (abs(value) < 2**63 and math.isfinite(value)):
                raise ValueError(f"the number {value!r:.60} is too large")
        groups = [[*value, *value.values()] if isinstance(value, dict) else value for value in level]
        level = [value for group in groups if isinstance(group, list) for value in group]
        if not level:
            return document
    raise ValueError(f"it is nothing, or nested more than {_MAX_DEPTH} times")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # which of them counts, readers do not agree on
        raise ValueError("a key is there twice")
    return found


def read_vocabulary(
    content: bytes, tensors: Mapping[str, npt.NDArray[Any]], block: int = _WORDS_BLOCK, longest: int = MAX_WORD_BYTES
) -> Vocabulary:
    """Return the words of a file, and their counts; anything odd is a ValueError, or a KeyError if there are none."""
    n_words = content.count(b"\n")
    if not content.endswith(b"\n"):
        raise ValueError("the vocabulary is empty or does not end in a line break")
    counts, document_counts = (tensors[f"vocabulary.{name}"] for name in ("counts", "document_counts"))
    for array in (counts, document_counts):
        if array.dtype != np.int64 or array.shape != (n_words,) or (array < 0).any() or (array > MAX_COUNT).any():
            raise ValueError("the counts of the vocabulary are not one number per word")
    if (document_counts > counts).any() or counts.sum(dtype=np.float64) > MAX_COUNT:
        raise ValueError("the counts of the vocabulary cannot be those of texts")
    words = tuple(_Lines(content, n_words, block, longest))
    del content  # words alone take several times its memory
    return Vocabulary(words, counts, document_counts)


@dataclass(frozen=True)
class _Lines:
    """The words of a file, decoded in blocks: a text takes up to four bytes per character. Their number is known."""

    content: bytes
    number: int
    block: int
    longest: int

    def __len__(self) -> int:
        return self.number

    def __iter__(self) -> Iterator[str]:
        first = 0
        while first < len(self.content):
            last = self.content.find(b"\n", first + self.block)
            last = len(self.content) - 1 if last < 0 else last
            if last - first > self.longest:
                raise ValueError("a word of the vocabulary is longer than any of a text")
            words = self.content[first:last].decode()
            if CONTROLS.search(words):
                raise ValueError("a word of the vocabulary has a control character in it")
            yield from words.split("\n")
            first = last + 1


def check_classes(classes: Sequence[Any]) -> None:
    """Raise an InputError unless these are different names that can be shown, or different whole numbers."""
    whole = all(type(name) is int and -(2**63) <= name < 2**63 for name in classes)
    if not whole and not all(type(name) is str for name in classes):
        raise InputError("The classes must be strings, or whole numbers below 2^63.")
    if len(set(classes)) != len(classes) or not classes:
        raise InputError("A model has one class at least, and no class twice.")
    if whole:
        return
    check_names(classes)
    longest = max(classes, key=len)
    if len(longest) > (most := min(_MAX_CHARACTERS // len(classes), _MAX_TEXT)):
        raise InputError(
            f"The label {longest!r:.80} has {len(longest):,} characters, too many for one of {len(classes):,} classes: "
            f"the limit is {most:,}. Shorten it."
        )


def check_names(names: Iterable[str]) -> None:
    """Raise an InputError for a name with control characters; at the end of one, an array of names drops a NUL."""
    for name in names:
        if CONTROLS.search(name):
            raise InputError(
                f"The label {name!r:.80} has a control character in it, which terminals obey, or half of a "
                "character. Rename it."
            )


def check_report(report: dict[str, Any], n_words: int) -> None:
    """Raise an InputError unless a report has what is read of it in the form in which it is read.

    `n_words` are those of the model, some of which may have been added by `TextModel.extend`.
    """
    accuracy, tuned, added = report.get("held_out_accuracy"), report.get("tuned"), report.get("extended", [])
    sound = (
        all(_is_whole(report.get(name, 0)) for name in _WHOLE)
        and _is_number(report.get("seconds", 0))
        and all(isinstance(report.get(name, ""), str) for name in _TEXTS)
        and (accuracy is None or (_is_number(accuracy) and 0 <= accuracy <= 1))
        and (accuracy is None or _is_whole(report.get("n_held_out"), 1))
        and (tuned is None or _is_choice(tuned))
        and isinstance(added, list)
        and all(isinstance(each, dict) and {key: type(each[key]) for key in each} == _EXTENSION for each in added)
        and all(each["words"] > 0 and each["texts"] >= 0 for each in added)
        and sum(each["words"] for each in added) < n_words
    )
    if not sound:
        raise InputError("The report on its fit has values that no report has.")


def _is_choice(tuned: Any) -> bool:
    """Whether this is what `wgcn.linear.tuning` chose."""
    if not isinstance(tuned, dict) or tuned.get("accuracy") is None:
        return isinstance(tuned, dict)
    settings = tuned.get("settings")
    is_right = isinstance(settings, dict) and all(map(_is_number, settings.values()))
    return is_right and _is_number(tuned["accuracy"]) and _is_number(tuned.get("default_accuracy"))


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_whole(value: Any, least: int = 0) -> bool:
    return type(value) is int and value >= least
