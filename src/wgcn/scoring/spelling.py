"""Rows for words that training did not see, from their subwords, with numpy alone.

A fitted model knows what it has learnt of every subword (V of `wgcn.linear.operator`). The row of a new word is the sum
of the rows of its subwords: it counts in a text as the spelling of a known word does. In the length of the text it
counts as half of the rarest word, because less is known of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wgcn.base.arrays import Floats
from wgcn.base.errors import StoreError
from wgcn.scoring.scorer import add_up
from wgcn.store.folder import Folder
from wgcn.text.subwords import Hashes, Subwords, compiled_parts, subword_places
from wgcn.text.tokenize import WordBytes, term_code

_WEIGHT = 0.5  # of a new word in the length of a text, beside 1 for the rarest known word
_LARGEST = float(np.finfo(np.float16).max)
IDF_RANGE = (1e-2, 1e2)  # in which that of any word is


@dataclass(frozen=True, eq=False)
class Spelling:
    """What a model has learnt of subwords."""

    hashes: Hashes  # (subwords,), ascending
    rows: npt.NDArray[np.float16]  # (subwords, hidden): half precision is enough for a sum of many
    idf: float  # of a new word, as that of known words in the weights of a text

    def sums_of(self, words: Sequence[str], columns: slice = slice(None)) -> Floats:
        """Return the sums of the rows of the subwords of words, of shape (words, hidden), or some of its columns."""
        places, offsets = subword_places(words, self.hashes)
        rows, numbers = self.rows[:, columns][places].astype(np.float32), np.arange(len(places), dtype=np.int32)
        return add_up(rows, np.ones(len(places), np.float32), numbers, offsets)

    def rows_of(self, words: WordBytes) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return rows of words, of shape (words, hidden), times 1 / idf, and which words have a row other than 0."""
        if not (term_code.is_compiled and len(self.hashes)):
            rows = self.sums_of(words.decoded())
        else:
            from wgcn.text.kernels import add_subwords

            rows = add_subwords(*words, *self._parts)
        return rows / np.float32(self.idf), np.asarray(rows.any(axis=1))

    @cached_property
    def _parts(self) -> tuple[Floats, ...]:
        return self.rows.astype(np.float32), *compiled_parts(self.hashes)

    def tensors(self) -> dict[str, Floats]:
        """Return what a model folder holds, for `load`."""
        idf = np.array([self.idf], np.float32)
        return {"spelling.hashes": self.hashes, "spelling.rows": self.rows, "spelling.idf": idf}

    @classmethod
    def load(cls, folder: Folder, hidden: int) -> Spelling | None:
        """Read what `tensors` gave from a folder; None if it has none. Anything unsound is a StoreError."""
        if "spelling.hashes" not in folder.tensors:
            return None
        hashes = folder.tensor("spelling.hashes", None, dtype=np.uint32, within=(0, 2**32))
        rows = folder.tensor("spelling.rows", len(hashes), hidden, dtype=np.float16)
        idf = float(folder.tensor("spelling.idf", 1, within=IDF_RANGE)[0])
        if (hashes[1:] <= hashes[:-1]).any():
            raise StoreError(f"{folder.path}: the tensors 'spelling' are not those of a model. Save it again.")
        return cls(hashes, rows, idf)


def half_precision(values: Floats) -> npt.NDArray[np.float16]:
    """Return values in half precision, the largest that it has instead of infinity."""
    return np.asarray(np.clip(values, -_LARGEST, _LARGEST).astype(np.float16))


def make_spelling(subwords: Subwords, learnt: Floats, idf: Floats) -> Spelling:
    """Return the spelling of a model from V, of shape (subwords, hidden), and the idf of its words."""
    rows = half_precision(learnt * subwords.weights[:, None])
    return Spelling(subwords.hashes, rows, _WEIGHT * float(idf.max(initial=1)))
