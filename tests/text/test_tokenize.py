import re
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wgcn.errors import InputError
from wgcn.text.tokenize import resolve_tokenizer, text_gcn, word_marks, words


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, World!", ["hello", "world"]),
        ("don't 'quote' rock'n'roll dogs'", ["don't", "quote", "rock'n'roll", "dogs"]),
        ("don’t", ["don't"]),
        ("random_state=0; x2", ["random_state", "0", "x2"]),
        ("ÉCOLE straße ΟΔΟΣ", ["école", "straße", "οδος"]),
        ("हिन्दी में लिखा", ["हिन्दी", "में", "लिखा"]),
        ("می‌خواهم", ["می‌خواهم"]),  # Persian, with a zero-width non-joiner inside
        ("cafe\u0301", ["cafe\u0301"]),
        ("\u0301 \u200d ' ''", []),
        ("", []),
    ],
)
def test_words_are_unicode_words_in_lower_case(text: str, tokens: list[str]) -> None:
    assert words(text) == tokens


@given(st.text())
def test_words_of_joined_words_are_the_same_words(text: str) -> None:
    tokens = words(text)
    assert words(" ".join(tokens)) == tokens


def reference_text_gcn(text: str) -> list[str]:
    """The cleaning step by step, as the data sets' description lists it."""
    text = re.sub(r"[^A-Za-z0-9(),!?'`]", " ", text)
    for contraction in ("'s", "'ve", "n't", "'re", "'d", "'ll"):
        text = text.replace(contraction, f" {contraction}")
    for mark in (",", "!", "(", ")", "?"):
        text = text.replace(mark, f" {mark} ")
    return text.lower().split()


@given(st.text(alphabet="ntsvedrl'NT (),!?`a1é\n"))
@example("isn't it's we've 'd'd 'll're n'tn't N'T")
def test_text_gcn_equals_its_description_step_by_step(text: str) -> None:
    assert text_gcn(text) == reference_text_gcn(text)


def test_contractions_are_split_before_lower_casing() -> None:
    assert text_gcn("DON'T don't") == ["don't", "do", "n't"]


@pytest.mark.parametrize("tokenize", [words, text_gcn])
@pytest.mark.parametrize("unit", ["a", "'", "a'", "n't", "Σ'", "\u0301", "é\u0301'", "\u200d", "(", " "])
def test_hostile_repetition_gives_tokens_in_proportion(tokenize, unit: str) -> None:  # type: ignore[no-untyped-def]
    # Linear time cannot be asserted by a clock; a quadratic tokeniser would not come back from so many characters.
    text = unit * (300_000 // len(unit))
    assert sum(map(len, tokenize(text))) <= len(text)


def test_unknown_tokenizer_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="words, text_gcn"):
        resolve_tokenizer("wrods")


def test_every_combining_mark_is_known() -> None:
    marks = {c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c)[0] == "M"}
    assert set(word_marks()) == marks | {"\u200c", "\u200d"}
