"""What Python knows of characters, for JavaScript."""

import sys

import numpy as np

from wgcn.browser.characters import character_arrays, character_classes
from wgcn.text import kernels
from wgcn.text.tokenize import fold


def test_classes_are_those_of_the_compiled_tokeniser() -> None:
    assert np.array_equal(character_classes() & 31, kernels.character_classes())


def test_folding_each_character_by_the_arrays_is_what_python_does() -> None:
    arrays = character_arrays()
    to = dict(zip(arrays["fold.from"].tolist(), map(chr, arrays["fold.to"].tolist()), strict=True))
    to |= {code: chr(first) + chr(second) for code, first, second in arrays["fold.long"].tolist()}
    codes = [code for code in range(sys.maxunicode + 1) if code != ord("Σ")]
    assert all(to.get(code, chr(code)) == fold(chr(code)) for code in codes)
    assert len(arrays["characters.begins"]) < 4000  # a few kilobytes in every exported model
