"""Tokenisers, plain functions from a text to its list of tokens, and texts as bytes for compiled ones. numpy alone.

`words` is the default and serves languages that write words apart, `characters` those that do not; `text_gcn` repeats
the cleaning of Yao et al. (2019) that the paper's five text sets went through. Any other callable from str to a list of
str can be used in their place. Each takes time linear in the text, whatever the text is.

These functions define what a token is. `wgcn.text.kernels` has a compiled twin of `words`, and tests hold them equal.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, groupby
from operator import add
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError

Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]

Tokenizer = Callable[[str], list[str]]

# Large enough that merging a batch's words costs little beside finding them, small enough for the caches.
BATCH_CHARACTERS = 1 << 22

# In Indic and Persian script these two stand inside words.
_JOINERS = "\u200c\u200d"
# Regional indicators: two are the flag of a country.
FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
# What may follow an emoji and belongs to it: variation selectors, the keycap, skin tones, and tags (regional flags).
EMOJI_SUFFIXES = "\ufe0e\ufe0f\u20e3" + "".join(map(chr, chain(range(0x1F3FB, 0x1F400), range(0xE0020, 0xE0080))))
_ASCII_PLAIN_WORD = re.compile(r"[a-z0-9_]+")
_ASCII_WORD = re.compile(r"[a-z0-9_]+(?:'[a-z0-9_]+)*")


def words(text: str) -> list[str]:
    """Lower-case words: letters, digits and underscores, with apostrophes inside a word; and emoji, one token each.

    Combining marks belong to the letter they follow, so scripts that write vowels as marks stay whole. Text is not
    normalised otherwise: composed and decomposed accents are different words.

    An emoji is a character of `emoji_bases` with the `EMOJI_SUFFIXES` that follow it, or several of these joined by
    U+200D, or one or two `FLAG_LETTERS`. A digit with a keycap is a word, as all digits are; ``#`` and ``*`` are none.

    Examples
    --------
    >>> words("Don't panic: naïve café №7, हिन्दी! 👍🏽👩‍💻")
    ["don't", 'panic', 'naïve', 'café', '7', 'हिन्दी', '👍🏽', '👩\u200d💻']
    """
    text = fold(text)
    if not text.isascii():
        return _unicode_word().findall(text)
    return (_ASCII_WORD if "'" in text else _ASCII_PLAIN_WORD).findall(text)


def fold(text: str) -> str:
    """Lower-case a text and write its apostrophes as ASCII: what `words` does before it looks for words."""
    text = text.lower()
    return text if text.isascii() else text.replace("\u2019", "'")


@lru_cache(maxsize=1)
def word_marks() -> str:
    """Every character that may stand inside a word but not begin it: combining marks and joiners."""
    # The other planes of Unicode have none, and looking there takes a tenth of a second.
    codes = chain(range(0x300, 0x20000), range(0xE0000, 0xF0000))
    return "".join(c for c in map(chr, codes) if unicodedata.category(c)[0] == "M") + _JOINERS


@lru_cache(maxsize=1)
def emoji_bases() -> str:
    """Every character that can begin an emoji, apart from flags.

    These are the symbols (category So) of U+231A-231B, U+23E9-23FF, U+2600-27BF, U+2B00-2BFF and U+1F000-1FAFF, ★ and ✓
    among them, and what is not assigned there (Cn): newer versions of Unicode put their emoji there.
    """
    blocks = (0x231A, 0x231C), (0x23E9, 0x2400), (0x2600, 0x27C0), (0x2B00, 0x2C00), (0x1F000, 0x1FB00)
    symbols = (c for block in blocks for c in map(chr, range(*block)) if unicodedata.category(c) in ("So", "Cn"))
    return "".join(c for c in symbols if c not in FLAG_LETTERS)


def _as_class(characters: Iterable[str]) -> str:
    """Write characters for a class of a regular expression: as ranges, since it is searched from its beginning."""
    codes = enumerate(sorted(map(ord, characters)))
    runs = [[code for _, code in run] for _, run in groupby(codes, lambda pair: pair[1] - pair[0])]
    return "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs)


@lru_cache(maxsize=1)
def _unicode_word() -> re.Pattern[str]:
    piece = rf"\w[\w{_as_class(word_marks())}]*"
    emoji = f"[{_as_class(emoji_bases())}][{_as_class(EMOJI_SUFFIXES)}]*"
    return re.compile(f"{piece}(?:'{piece})*|[{_as_class(FLAG_LETTERS)}]{{1,2}}|{emoji}(?:\u200d{emoji})*")


@lru_cache(maxsize=1)
def unspaced() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what finds runs of letters of scripts that do not separate words, and each letter with its marks."""
    south_east_asia = (0x0E00, 0x0F00), (0x1000, 0x10A0), (0x1780, 0x1800), (0xA9E0, 0xAA00), (0xAA60, 0xAA80)
    blocks = *south_east_asia, (0x3040, 0x3100), (0x31F0, 0x3200), (0xFF66, 0xFFA0), (0x1B000, 0x1B170)  # and kana
    found = (c for block in blocks for c in map(chr, range(*block)) if unicodedata.category(c)[0] == "L")
    han = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    letters, marks = _as_class(found) + han, _as_class(word_marks())
    return re.compile(f"([{letters}][{letters}{marks}]*)"), re.compile(f"[{letters}][{marks}]*")


def characters(text: str) -> list[str]:
    """Overlapping pairs of characters in Han and kana, Thai, Lao, Khmer and Burmese, and all else as `words` has it.

    A character is a letter with the marks that follow it; one that stands alone is a token. Many pairs are words, so
    the word graph says something, and two tokens that follow each other, as an n-gram, are three characters.

    Examples
    --------
    >>> characters("我喜欢Python, ภาษาไทย 3 年!")
    ['我喜', '喜欢', 'python', 'ภา', 'าษ', 'ษา', 'าไ', 'ไท', 'ทย', '3', '年']
    """
    tokens: list[str] = []
    run, unit = unspaced()
    for place, piece in enumerate(run.split(fold(text))):
        if place % 2:  # a run
            units: Sequence[str] = piece if piece.isalpha() else unit.findall(piece)  # no mark is alphabetic
            tokens += map(add, units, units[1:]) if len(units) > 1 else units
        else:
            tokens += words(piece)
    return tokens


_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789(),!?'`")
_BLANKED = bytes(b if b in _KEPT else ord(" ") for b in range(256))
# Case counts here: N'T is left whole.
_CONTRACTION = re.compile(r"(?='s|'ve|n't|'re|'d|'ll)")
_TEXT_GCN_TOKEN = re.compile(r"[,!()?]|[^ ,!()?]+")


def text_gcn(text: str) -> list[str]:
    """Tokens as in the Text-GCN literature, before stop words and rare words are dropped.

    Characters other than ``A-Za-z0-9(),!?'`` and the back-tick become spaces; the contractions ``'s 've n't 're 'd
    'll`` and the marks ``, ! ( ) ?`` are split off; then lower case.

    Examples
    --------
    >>> text_gcn("It's good, isn't it? (Yes!)")
    ['it', "'s", 'good', ',', 'is', "n't", 'it', '?', '(', 'yes', '!', ')']
    """
    text = text.encode("utf-8", "surrogatepass").translate(_BLANKED).decode()
    if "'" in text:
        text = _CONTRACTION.sub(" ", text)
    return _TEXT_GCN_TOKEN.findall(text.lower())


TOKENIZERS: dict[str, Tokenizer] = {"words": words, "text_gcn": text_gcn, "characters": characters}


def resolve_tokenizer(tokenizer: str | Tokenizer) -> Tokenizer:
    """Return the function that a name stands for, or the callable itself."""
    if callable(tokenizer):
        return tokenizer
    if tokenizer in TOKENIZERS:
        return TOKENIZERS[tokenizer]
    raise InputError(f"Unknown tokenizer {tokenizer!r}. Use one of {', '.join(TOKENIZERS)}, or a function.")


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
    """Return the texts, checked: what is no list is an error at once, what is no text when it is reached."""
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


def in_batches(texts: Iterable[str], characters: int) -> Iterator[list[str]]:
    """Cut texts into lists of about so many characters."""
    batch, size = list[str](), 0
    for text in texts:
        batch.append(text)
        size += len(text) + 1
        if size >= characters:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class TextBytes(NamedTuple):
    """A batch of texts for the kernels."""

    data: npt.NDArray[np.uint8]  # UTF-8: folded texts for `words`, otherwise one token per line
    offsets: Offsets  # (texts + 1,), where each text begins
    by_words: bool  # which of both it is
    n_replaced: int  # texts that were not valid Unicode


def lay_out(batch: list[str], tokenizer: Tokenizer) -> TextBytes:
    """Lay a batch of texts out for the kernels."""
    by_words, n_replaced, encoded = tokenizer is words, 0, list[bytes]()
    if by_words and (joined := "".join(batch)).isascii():  # all at once is faster
        data, lengths = joined.lower().encode(), list(map(len, batch))
    else:
        for text in batch:
            text = fold(text) if by_words else _one_per_line(tokenizer(text))
            try:
                encoded.append(text.encode())
            except UnicodeEncodeError:
                encoded.append(re.sub("[\ud800-\udfff]", "\ufffd", text).encode())
                n_replaced += 1
        data, lengths = b"".join(encoded), list(map(len, encoded))
    if len(data) >= 2**31:
        raise InputError(f"A document of {max(lengths):,} bytes is too long: 2 GB is the limit. Split it.")
    return TextBytes(np.frombuffer(data, np.uint8), np.cumsum([0, *lengths], dtype=np.int64), by_words, n_replaced)


def _one_per_line(tokens: Sequence[str]) -> str:
    if isinstance(tokens, str):
        raise InputError("A tokenizer must return a list of tokens, not one str.")
    lines = "".join([f"{token}\n" for token in tokens])
    if lines.count("\n") != len(tokens) or not all(tokens):
        raise InputError("A tokenizer must return tokens that are not empty and have no line break in them.")
    return lines
