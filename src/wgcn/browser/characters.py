"""What Python knows of characters, as arrays: an exported model carries it, so that JavaScript has the same tokens.

Python and JavaScript disagree about some letters, and versions of either about more, so nothing is left to the browser.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.text.tokenize import EMOJI_SUFFIXES, FLAG_LETTERS, emoji_bases, fold, unspaced, word_marks

# The part of a character in words, as in `wgcn.text.kernels`; then bits: its part in emoji, whether it is a letter of a
# script without blanks, and what `str.lower` looks at around a capital sigma.
START, INSIDE, APOSTROPHE, EMOJI, FLAG, SUFFIX, UNSPACED, CASED, IGNORABLE = 1, 2, 3, 4, 8, 16, 32, 64, 128
_SIGMA, _FINAL_SIGMA = "Σ", "ς"
_SURROGATES = range(0xD800, 0xE000)


@lru_cache(maxsize=1)
def character_classes() -> npt.NDArray[np.uint8]:
    """Return the class of every code point; surrogates have none."""
    everything = np.arange(sys.maxunicode + 1, dtype="<u4").tobytes().decode("utf-32-le", "replace")
    classes = np.zeros(len(everything), np.uint8)
    for run in re.finditer(r"\w+", everything):
        classes[run.start() : run.end()] = START
    classes[ord("'")] = APOSTROPHE
    classes[[ord(c) for c in word_marks()]] = INSIDE
    for characters, part in ((emoji_bases(), EMOJI), (FLAG_LETTERS, FLAG), (EMOJI_SUFFIXES, SUFFIX)):
        classes[[ord(c) for c in characters]] |= part
    classes[[letter.start() for letter in unspaced()[1].finditer(everything)]] |= UNSPACED  # with its marks
    # A sigma is final after a cased character, whatever ignorable ones are between; a blank is neither.
    after_it = np.array([word[-1] == _FINAL_SIGMA for word in _lowered(f"{c}{_SIGMA}" for c in everything)])
    beside_it = np.array([word[-1] == _FINAL_SIGMA for word in _lowered(f"A{c}{_SIGMA}" for c in everything)])
    classes[after_it] |= CASED
    classes[beside_it & ~after_it] |= IGNORABLE
    classes[_SURROGATES] = 0
    return classes


def _lowered(words: Any) -> list[str]:
    """Return words in lower case, all at once; a line break may be one of their characters."""
    return "\0\n\0".join(words).lower().split("\0\n\0")


@lru_cache(maxsize=1)
def character_arrays() -> dict[str, npt.NDArray[Any]]:
    """Return what tokenisers need: classes in runs, and what each character becomes when text is folded.

    `characters.begins` and `characters.classes` are of shape (runs,); `fold.from` and `fold.to` of shape (characters,).
    `fold.long`, of shape (n, 3), has those that become two. A capital sigma is not among them: it depends on others.
    """
    classes = character_classes()
    begins = np.flatnonzero(np.diff(classes, prepend=~classes[:1]))
    folded = {code: fold(chr(code)) for code in range(sys.maxunicode + 1) if code not in _SURROGATES}
    changed = {code: to for code, to in folded.items() if to != chr(code) and chr(code) != _SIGMA}
    single = [(code, ord(to)) for code, to in changed.items() if len(to) == 1]
    double = [(code, *map(ord, to)) for code, to in changed.items() if len(to) == 2]
    assert len(single) + len(double) == len(changed)
    return {
        "characters.begins": begins.astype(np.uint32),
        "characters.classes": classes[begins],
        "fold.from": np.array([code for code, _ in single], np.uint32),
        "fold.to": np.array([to for _, to in single], np.uint32),
        "fold.long": np.array(double, np.uint32).reshape(-1, 3),
    }
