"""The default tokeniser `words`, compiled: it reads UTF-8 bytes and gives word ids, without the interpreter lock.

Written by hand because no library gives word ids in the order of the text at this speed: the raw text of 20ng (35.8 MB)
takes 1.4 s, where scikit-learn's CountVectorizer takes 6.1 s for the counts alone (docs/benchmarks.md, Tokenising).
`wgcn.text.tokenize.words` defines the tokens, and tests hold the two equal.

Words are found in an open-addressing table whose hash has a secret of its own in each process, so that no text can be
made that takes quadratic time. Ids are given in order of first occurrence and do not depend on the hash.
"""

import secrets
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from numba import njit

from wgcn.text.tokenize import word_marks

__all__ = ["add_rows", "count_documents", "encode_known", "encode_new"]

Bytes = npt.NDArray[np.uint8]
Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]

_SEPARATOR, _START, _INSIDE, _APOSTROPHE = 0, 1, 2, 3
_PRIME = np.uint64(2**31 - 1)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SECRET = np.uint64(2**19 + secrets.randbelow(2**31 - 2**20))


@lru_cache(maxsize=1)
def character_classes() -> npt.NDArray[np.uint8]:
    """Class of every code point: may it begin a word, only stand inside one, or neither."""
    points = (chr(c) if not 0xD800 <= c < 0xE000 else " " for c in range(0x110000))
    classes = np.fromiter((c.isalnum() for c in points), np.uint8, count=0x110000) * _START
    classes[ord("_")] = _START
    classes[ord("'")] = _APOSTROPHE
    classes[[ord(c) for c in word_marks()]] = _INSIDE
    return classes


@njit(cache=True, nogil=True)
def _decode(data, at):  # type: ignore[no-untyped-def]
    """Return code point and width of the character at a byte; the input is valid UTF-8."""
    b = np.int64(data[at])
    if b < 0x80:
        return b, 1
    if b < 0xE0:
        return (b & 0x1F) << 6 | (data[at + 1] & 0x3F), 2
    code = (b & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6 | (data[at + 2] & 0x3F)
    if b < 0xF0:
        return code, 3
    return (code & 0x7FFF) << 6 | (data[at + 3] & 0x3F), 4


@njit(cache=True, nogil=True)
def _scan_words(data, documents, classes):  # type: ignore[no-untyped-def]
    """Find the tokens of `words` in folded text: where each begins and ends, and the first token of each document."""
    begins = np.empty(len(data) // 2 + len(documents), np.int32)
    ends = np.empty_like(begins)
    offsets = np.zeros(len(documents), np.int64)
    n = 0
    for document in range(len(documents) - 1):
        at, end = documents[document], documents[document + 1]
        inside = False  # a word
        while at < end:
            code, width = np.int64(data[at]), 1
            if code >= 0x80:
                code, width = _decode(data, at)
            kind = classes[code]
            if kind == _START:
                if not inside:
                    begins[n] = at
                    inside = True
            elif inside and kind != _INSIDE:
                # An apostrophe goes on only if a letter follows at once; that letter is read in the next round.
                goes_on = kind == _APOSTROPHE and at + 1 < end and classes[_decode(data, at + 1)[0]] == _START
                if not goes_on:
                    ends[n] = at
                    n += 1
                    inside = False
            at += width
        if inside:
            ends[n] = end
            n += 1
        offsets[document + 1] = n
    return begins[:n], ends[:n], offsets


# The functions below call nothing with an array in their loops: numba counts references at every such call, which would
# cost more than the look-up itself.


@njit(cache=True, nogil=True)
def _hashes(data, begins, ends, secret):  # type: ignore[no-untyped-def]
    """Hash each token: a polynomial in the secret modulo 2^31 - 1, spread over 64 bits.

    Two given words of n bytes collide with probability at most n / 2^31.
    """
    hashes = np.empty(len(begins), np.uint32)
    for token in range(len(begins)):
        h = np.uint64(ends[token] - begins[token])
        for i in range(begins[token], ends[token]):
            x = h * secret + np.uint64(data[i])
            h = (x & _PRIME) + (x >> np.uint64(31))
        h = (h & _PRIME) + (h >> np.uint64(31))
        hashes[token] = h * _SPREAD >> np.uint64(32)
    return hashes


@njit(cache=True, nogil=True)
def _filled_slots(hashes, n_slots):  # type: ignore[no-untyped-def]
    """Put distinct words into an open-addressing table."""
    slots = np.full(n_slots, -1, np.int32)
    mask = np.uint32(n_slots - 1)
    for word in range(len(hashes)):
        slot = hashes[word] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint32(1)) & mask
        slots[slot] = word
    return slots


@njit(cache=True, nogil=True)
def _number(data, begins, ends, hashes):  # type: ignore[no-untyped-def]
    """Give ids to tokens by first occurrence; return these, and for each id the token where it was first met."""
    ids = np.empty(len(begins), np.int32)
    firsts = np.empty(len(begins), np.int32)
    slots = np.full(1 << 12, -1, np.int32)
    mask = np.uint32(len(slots) - 1)
    n_words = 0
    for token in range(len(begins)):
        begin, size = begins[token], ends[token] - begins[token]
        slot = hashes[token] & mask
        word = slots[slot]
        while word >= 0:
            other = firsts[word]
            first = begins[other]
            if hashes[other] == hashes[token] and ends[other] - first == size:
                i = 0
                while i < size and data[first + i] == data[begin + i]:
                    i += 1
                if i == size:
                    break
            slot = (slot + np.uint32(1)) & mask
            word = slots[slot]
        if word < 0:
            word = n_words
            n_words += 1
            firsts[word] = token
            slots[slot] = word
            if 2 * n_words > len(slots):
                slots = _filled_slots(hashes[firsts[:n_words]], 2 * len(slots))
                mask = np.uint32(len(slots) - 1)
        ids[token] = word
    return ids, firsts[:n_words].copy()


@njit(cache=True, nogil=True)
def count_documents(ids, offsets, n_words):  # type: ignore[no-untyped-def]
    """In how many documents each word occurs."""
    counts = np.zeros(n_words, np.int64)
    last = np.full(n_words, -1, np.int64)
    for document in range(len(offsets) - 1):
        for i in range(offsets[document], offsets[document + 1]):
            word = ids[i]
            if last[word] != document:
                last[word] = document
                counts[word] += 1
    return counts


@njit(cache=True, nogil=True)
def add_rows(table, rows, weights, offsets, sums):  # type: ignore[no-untyped-def]
    """Add up weighted rows of a table, group by group, in double precision."""
    total = np.zeros(table.shape[1])
    for group in range(len(offsets) - 1):
        total[:] = 0
        for i in range(offsets[group], offsets[group + 1]):
            row = rows[i]
            weight = np.float64(weights[i])
            for j in range(table.shape[1]):
                total[j] += table[row, j] * weight
        sums[group] = total


def encode_new(data: Bytes, documents: Offsets, rule: str) -> tuple[Ids, Offsets, list[bytes]]:
    """Tokenise a batch that `wgcn.text.encode.lay_out` laid out, in fewer than 2^31 bytes.

    Return the word ids of all documents, by first occurrence; where each document begins; and the distinct words.
    """
    if rule == "words":
        begins, ends, offsets = _scan_words(data, documents, character_classes())
    else:  # one token per line
        ends = np.flatnonzero(data == ord("\n")).astype(np.int32)
        begins = np.concatenate([np.zeros(1, np.int32), ends + np.int32(1)])[: len(ends)]
        offsets = np.searchsorted(ends, documents)
    ids, firsts = _number(data, begins, ends, _hashes(data, begins, ends, _SECRET))
    text = data.tobytes()
    spans = zip(begins[firsts].tolist(), ends[firsts].tolist(), strict=True)
    return ids, offsets, [text[begin:end] for begin, end in spans]


def encode_known(index: dict[bytes, int], data: Bytes, documents: Offsets, rule: str) -> tuple[Ids, Offsets]:
    """Tokenise a batch as `encode_new` does, into given ids of words in UTF-8; another word becomes -1."""
    ids, offsets, words = encode_new(data, documents, rule)
    return np.array([index.get(word, -1) for word in words], np.int32)[ids], offsets
