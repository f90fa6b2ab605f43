"""Tokenisers: plain functions from a text to its list of tokens.

`words` is the default and serves any language that writes words apart; `text_gcn` repeats the cleaning of Yao et al.
(2019) that the paper's five text sets went through. Any other callable from str to a list of str can be used in their
place. Each takes time linear in the text, whatever the text is.

These functions define what a token is. `wgcn.text.kernels` has a compiled twin of `words`, and tests hold them equal.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import chain, groupby

from wgcn.errors import InputError

__all__ = ["TOKENIZERS", "Tokenizer", "resolve_tokenizer", "text_gcn", "words"]

Tokenizer = Callable[[str], list[str]]

# In Indic and Persian script these two stand inside words.
_JOINERS = "\u200c\u200d"
_ASCII_PLAIN_WORD = re.compile(r"[a-z0-9_]+")
_ASCII_WORD = re.compile(r"[a-z0-9_]+(?:'[a-z0-9_]+)*")


def words(text: str) -> list[str]:
    """Lower-case words: letters, digits and underscores, with apostrophes inside a word.

    Combining marks belong to the letter they follow, so scripts that write vowels as marks stay whole. Text is not
    normalised otherwise: composed and decomposed accents are different words.

    Examples
    --------
    >>> words("Don't panic: naïve café №7, हिन्दी!")
    ["don't", 'panic', 'naïve', 'café', '7', 'हिन्दी']
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
def _unicode_word() -> re.Pattern[str]:
    # As ranges: they are searched one after another, and the marks are thousands.
    codes = enumerate(sorted(map(ord, word_marks())))
    runs = [[code for _, code in run] for _, run in groupby(codes, lambda pair: pair[1] - pair[0])]
    marks = "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs)
    piece = rf"\w[\w{marks}]*"
    return re.compile(f"{piece}(?:'{piece})*")


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


TOKENIZERS: dict[str, Tokenizer] = {"words": words, "text_gcn": text_gcn}


def resolve_tokenizer(tokenizer: str | Tokenizer) -> Tokenizer:
    """Return the function that a name stands for, or the callable itself."""
    if callable(tokenizer):
        return tokenizer
    if tokenizer in TOKENIZERS:
        return TOKENIZERS[tokenizer]
    raise InputError(f"Unknown tokenizer {tokenizer!r}. Use one of {', '.join(TOKENIZERS)}, or a function.")
