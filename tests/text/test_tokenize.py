import re
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wgcn.base.errors import InputError
from wgcn.text.tokenize import characters, emoji_bases, resolve_tokenizer, text_gcn, word_marks, words


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


EMOJI = [
    "😀",
    "👍🏽",  # with a skin tone
    "❤",
    "❤️",  # with a variation selector
    "⭐",
    "✅",
    "👩‍💻",  # joined
    "👩🏽‍❤️‍💋‍👨🏿",
    "🏳️‍🌈",
    "🏴󠁧󠁢󠁥󠁮󠁧󠁿",  # with tags
    "🇩🇪",
    "\U0001fae8",  # of Unicode 15, which Python 3.11 does not know
]


@pytest.mark.parametrize("emoji", EMOJI)
@pytest.mark.parametrize("tokenize", [words, characters])
def test_an_emoji_is_one_token_wherever_it_stands(tokenize, emoji: str) -> None:  # type: ignore[no-untyped-def]
    assert tokenize(f"So {emoji}good{emoji}{emoji}!") == ["so", emoji, "good", emoji, emoji]


@given(st.lists(st.sampled_from([*EMOJI, "a", "it's", "7", "é"]), max_size=8))
def test_emoji_need_no_blanks_between(tokens: list[str]) -> None:
    apart = [token if token in EMOJI else f" {token} " for token in tokens]
    assert words("".join(apart)) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("#️⃣ * # © ™ → ▶ ½", ["½"]),
        ("1️⃣ 23", ["1️⃣", "23"]),  # a digit with its marks, as it is without an emoji
        ("👍\u200d x", ["👍", "x"]),  # joiners and suffixes that join nothing
        ("\u200d👍\u200d\u200d👍", ["👍", "👍"]),
        ("👩\u200dx\u200d👩", ["👩", "x\u200d", "👩"]),
        ("\ufe0f🏽\U000e0067", []),
        ("👍\u0301a\ufe0f'👍's", ["👍", "a\ufe0f", "👍", "s"]),
        ("🇩🇪🇫🇷🇩", ["🇩🇪", "🇫🇷", "🇩"]),
        ("🇩\u200d🇪🏽", ["🇩", "🇪"]),
        ("\ud83d\ude00\ud83d", []),  # surrogates are no characters, and two are no emoji
    ],
)
def test_what_is_no_emoji(text: str, tokens: list[str]) -> None:
    assert words(text) == tokens


def test_no_letter_digit_or_mark_is_an_emoji() -> None:
    assert not [c for c in emoji_bases() if re.match(r"\w", c) or c.isascii() or c in word_marks()]


@pytest.mark.parametrize("tokenize", [words, characters])
@given(st.one_of(st.text(), st.text("a'é\u0301\u200d\ufe0f👍❤🏽🇩🏴\U000e0067\ud83d 中ก็")))
def test_tokens_of_joined_tokens_are_the_same_tokens(tokenize, text: str) -> None:  # type: ignore[no-untyped-def]
    tokens = tokenize(text)
    assert tokenize(" ".join(tokens)) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("今天天气很好。", ["今天", "天天", "天气", "气很", "很好"]),
        ("我用Python 3写code，don't！", ["我用", "python", "3", "写", "code", "don't"]),
        ("東京タワーへ行く", ["東京", "京タ", "タワ", "ワー", "ーへ", "へ行", "行く"]),
        ("人々 ｶﾅ 二〇", ["人々", "ｶﾅ", "二〇"]),
        ("ที่นี่ดี", ["ที่นี่", "นี่ดี"]),  # a letter keeps its vowels and tones
        ("ก๒๕", ["ก", "๒๕"]),  # digits are no letters
        ("ລາວ ខ្មែរ မြန်", ["ລາ", "າວ", "ខ្មែ", "មែរ", "မြန်"]),
        ("好👍🏽好❤️", ["好", "👍🏽", "好", "❤️"]),
        ("\U00020000\U0002a6d6", ["\U00020000\U0002a6d6"]),
        ("한국어 русский", ["한국어", "русский"]),
        ("好'it's'好", ["好", "it's", "好"]),
        ("\u0e31\u200d", []),
    ],
)
def test_characters_are_pairs_in_scripts_without_blanks(text: str, tokens: list[str]) -> None:
    assert characters(text) == tokens


@given(st.text(st.characters(exclude_categories=["Cs", "Cn", "Lo", "Lm", "Nl"])))
@example("Don't naïve 👩‍💻 1️⃣")
def test_other_scripts_are_cut_as_words_are(text: str) -> None:
    assert characters(text) == words(text)


@given(st.text("今天気たの", min_size=2))
def test_pairs_overlap_by_one_character(text: str) -> None:
    tokens = characters(text)
    assert "".join(token[0] for token in tokens) + tokens[-1][1] == text


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


HOSTILE = ["👍", "👍\u200d", "\ufe0f", "🏽", "🇩", "🏴\U000e0067", "\ud83d", "中", "ก็", "中a", "中'"]


@pytest.mark.parametrize("tokenize", [words, text_gcn, characters])
@pytest.mark.parametrize("unit", ["a", "'", "a'", "n't", "Σ'", "\u0301", "é\u0301'", "\u200d", "(", " ", *HOSTILE])
def test_hostile_repetition_gives_tokens_in_proportion(tokenize, unit: str) -> None:  # type: ignore[no-untyped-def]
    # Linear time cannot be asserted by a clock; a quadratic tokeniser would not come back from so many characters.
    text = unit * (300_000 // len(unit))
    assert sum(map(len, tokenize(text))) <= len(text) * (2 if tokenize is characters else 1)


def test_unknown_tokenizer_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="words, text_gcn"):
        resolve_tokenizer("wrods")


def test_every_combining_mark_is_known() -> None:
    marks = {c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c)[0] == "M"}
    assert set(word_marks()) == marks | {"\u200c", "\u200d"}
