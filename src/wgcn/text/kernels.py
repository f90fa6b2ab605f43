"""The default tokeniser `words`, compiled: it reads UTF-8 bytes and gives word ids, without the interpreter lock.

Written by hand because no library gives word ids in the order of the text at this speed: the raw text of 20ng (35.8 MB)
takes 1.4 s, where scikit-learn's CountVectorizer takes 6.1 s for the counts alone (docs/benchmarks.md, Tokenising).
`wgcn.text.tokenize.words` defines the tokens, and tests hold the two equal.

Words are found in an open-addressing table whose hash has a secret of its own in each process, so that no text can be
made that takes quadratic time. Ids are given in order of first occurrence and do not depend on the hash.
"""

import re
import secrets
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from wgcn.cores import compiled
from wgcn.text.ngrams import Ids, NgramTable, Offsets
from wgcn.text.tokenize import EMOJI_SUFFIXES, FLAG_LETTERS, emoji_bases, word_marks

Bytes = npt.NDArray[np.uint8]

# The part that a character has in words, 0 for none, and as further bits its part in emoji.
_START, _INSIDE, _APOSTROPHE, _PART_IN_WORDS, _EMOJI, _FLAG, _SUFFIX = 1, 2, 3, 3, 4, 8, 16
_PRIME = np.uint64(2**31 - 1)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
SECRET = np.uint64(2**19 + secrets.randbelow(2**31 - 2**20))


@lru_cache(maxsize=1)
def character_classes() -> npt.NDArray[np.uint8]:
    """Class of every code point: may it begin a word, only stand inside one, or neither; and its part in emoji."""
    classes = np.zeros(0x110000, np.uint8)
    for run in re.finditer(r"\w+", np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "replace")):
        classes[run.start() : run.end()] = _START
    classes[ord("'")] = _APOSTROPHE
    classes[[ord(c) for c in word_marks()]] = _INSIDE
    for characters, part in ((emoji_bases(), _EMOJI), (FLAG_LETTERS, _FLAG), (EMOJI_SUFFIXES, _SUFFIX)):
        classes[[ord(c) for c in characters]] |= part
    return classes


@compiled
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


@compiled
def _emoji_end(data, at, end, classes):  # type: ignore[no-untyped-def]
    """Return where the emoji that begins at a byte ends."""
    code, width = _decode(data, at)
    at += width
    if classes[code] == _FLAG:
        return at + width if at < end and classes[_decode(data, at)[0]] == _FLAG else at
    while at < end:
        code, width = _decode(data, at)
        if code == 0x200D and at + width < end:  # it joins two emoji
            following, size = _decode(data, at + width)
            if classes[following] != _EMOJI:
                break
            width += size
        elif not classes[code] & _SUFFIX:
            break
        at += width
    return at


@compiled
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
                if classes[code] & (_EMOJI | _FLAG):
                    ends[n] = at  # if there was a word before
                    n += inside
                    begins[n], inside = at, False
                    at = ends[n] = _emoji_end(data, at, end, classes)
                    n += 1
                    continue
            kind = classes[code] & _PART_IN_WORDS
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


@compiled
def _hashes(data, begins, ends, secret):  # type: ignore[no-untyped-def]
    """Hash tokens: a polynomial in the secret modulo 2^31 - 1; two words of n bytes collide with chance n / 2^31."""
    hashes = np.empty(len(begins), np.uint32)
    for token in range(len(begins)):
        h = np.uint64(ends[token] - begins[token])
        for i in range(begins[token], ends[token]):
            x = h * secret + np.uint64(data[i])
            h = (x & _PRIME) + (x >> np.uint64(31))
        h = (h & _PRIME) + (h >> np.uint64(31))
        hashes[token] = h * _SPREAD >> np.uint64(32)
    return hashes


@compiled
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


@compiled
def _match(data, begins, ends, hashes, known, firsts, lasts, known_hashes, slots, adds):  # type: ignore[no-untyped-def]
    """Return the id of each token among the words known[firsts:lasts], and how many were added.

    A token that is not among them gets -1 or, if `adds`, becomes the next word; then `known` is the same data.
    """
    ids = np.empty(len(begins), np.int32)
    mask = np.uint32(len(slots) - 1)
    n_added = 0
    for token in range(len(begins)):
        begin, size = begins[token], ends[token] - begins[token]
        slot = hashes[token] & mask
        word = slots[slot]
        while word >= 0:
            first = firsts[word]
            if known_hashes[word] == hashes[token] and lasts[word] - first == size:
                i = 0
                while i < size and known[first + i] == data[begin + i]:
                    i += 1
                if i == size:
                    break
            slot = (slot + np.uint32(1)) & mask
            word = slots[slot]
        if adds and word < 0:
            word = slots[slot] = n_added
            firsts[word], lasts[word], known_hashes[word] = begin, ends[token], hashes[token]
            n_added += 1
            if 2 * n_added > len(slots):
                slots = _filled_slots(known_hashes[:n_added], 2 * len(slots))
                mask = np.uint32(len(slots) - 1)
        ids[token] = word
    return ids, n_added


@compiled
def _hash_key(key, secret):  # type: ignore[no-untyped-def]
    """Hash a whole number below 2^62 as `_hashes` does a word of two characters."""
    x = np.uint64(key >> 31) * secret + (np.uint64(key) & _PRIME)
    h = (x & _PRIME) + (x >> np.uint64(31))
    return ((h & _PRIME) + (h >> np.uint64(31))) * _SPREAD >> np.uint64(32)


@compiled
def number_keys(keys, secret):  # type: ignore[no-untyped-def]
    """Give numbers to keys below 2^62, -1 to negative ones; return also the keys, and each slot's number and key."""
    numbers, distinct = np.empty(len(keys), np.int32), np.empty(len(keys), np.int64)
    slots, slot_keys = np.full(1 << 12, -1, np.int32), np.full(1 << 12, -1, np.int64)
    mask, n = np.uint64(len(slots) - 1), 0
    for i in range(len(keys)):
        numbers[i] = -1
        if keys[i] >= 0:
            slot = _hash_key(keys[i], secret) & mask
            while slot_keys[slot] >= 0 and slot_keys[slot] != keys[i]:
                slot = (slot + np.uint64(1)) & mask
            if slot_keys[slot] < 0:
                slots[slot], slot_keys[slot], distinct[n] = n, keys[i], keys[i]
                n += 1
            numbers[i] = slots[slot]
            if 2 * n > len(slots):
                slots, slot_keys = np.full(2 * len(slots), -1, np.int32), np.full(2 * len(slots), -1, np.int64)
                mask = np.uint64(len(slots) - 1)
                for number in range(n):
                    slot = _hash_key(distinct[number], secret) & mask
                    while slot_keys[slot] >= 0:
                        slot = (slot + np.uint64(1)) & mask
                    slots[slot], slot_keys[slot] = number, distinct[number]
    return numbers, distinct[:n].copy(), slots, slot_keys


@compiled
def _look_up_ngrams(  # type: ignore[no-untyped-def]
    ids, offsets, is_kept, slots, slot_keys, entry_of, ngram_range, secret
):
    """Do what `NgramTable.look_up` does, with its keys in the table that `number_keys` returns."""
    shortest, longest = ngram_range
    found = np.empty(len(ids) * (longest - shortest + 1), np.int32)
    new_offsets = np.zeros(len(offsets), np.int64)
    n_words, mask, n = len(is_kept) - 1, np.uint64(len(slots) - 1), 0
    for document in range(len(offsets) - 1):
        end = offsets[document + 1]
        for begin in range(offsets[document], end):
            node, at = np.int64(ids[begin]), begin
            if not is_kept[node]:  # it counts as one that is no entry
                found[n] = -1
                n += shortest == 1
                continue
            for length in range(1, longest + 1):
                if length >= shortest:
                    found[n] = entry_of[node]
                    n += 1
                at += 1
                while at < end and not is_kept[ids[at]]:
                    at += 1
                if at >= end:
                    break
                if node >= 0 and length < longest:
                    key = node * n_words + ids[at] if ids[at] >= 0 else -1
                    slot = _hash_key(key, secret) & mask
                    while slot_keys[slot] >= 0 and slot_keys[slot] != key:
                        slot = (slot + np.uint64(1)) & mask
                    node = np.int64(n_words + slots[slot] if slot_keys[slot] >= 0 and key >= 0 else -1)
        new_offsets[document + 1] = n
    return found[:n], new_offsets


@compiled
def count_words(ids, offsets, n_words):  # type: ignore[no-untyped-def]
    """Return how often each word occurs, and in how many documents; negative ids are no words."""
    counts, document_counts = np.zeros(n_words, np.int64), np.zeros(n_words, np.int64)
    last = np.full(n_words, -1, np.int32)
    for document in range(len(offsets) - 1):
        for i in range(offsets[document], offsets[document + 1]):
            word = ids[i]
            if word >= 0:
                counts[word] += 1
                document_counts[word] += last[word] != document
                last[word] = document
    return counts, document_counts


# The position of the only bit of a 64-bit number: each such number times this constant has its own upper six bits.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT_POSITIONS = np.zeros(64, np.int32)
_BIT_POSITIONS[[((1 << i) * int(_DE_BRUIJN) >> 58) & 63 for i in range(64)]] = np.arange(64)


@compiled
def sort_words(touched, n_touched, word, bitmap):  # type: ignore[no-untyped-def]
    """Sort distinct words in place: where they are many, by a bitmap of all words above `word`, which is faster."""
    if n_touched * 32 < len(bitmap):
        touched[:n_touched].sort()
        return
    for t in range(n_touched):
        bitmap[touched[t] >> 6] |= np.uint64(1) << np.uint64(touched[t] & 63)
    n = 0
    for block in range(word >> 6, len(bitmap)):
        bits = bitmap[block]
        bitmap[block] = 0
        while bits != 0:
            lowest = bits & (~bits + np.uint64(1))
            touched[n] = (block << 6) + _BIT_POSITIONS[(lowest * _DE_BRUIJN) >> np.uint64(58)]
            n += 1
            bits ^= lowest


@compiled
def count_terms(ids, offsets, n_words):  # type: ignore[no-untyped-def]
    """Do what `wgcn.text.weighting.count_terms` does."""
    words, counts = np.empty(len(ids), np.int32), np.empty(len(ids), np.int32)
    new_offsets = np.zeros(len(offsets), np.int64)
    count_of = np.zeros(n_words, np.int32)
    bitmap = np.zeros((n_words >> 6) + 1, np.uint64)
    for document in range(len(offsets) - 1):
        first, n = new_offsets[document], 0
        for i in range(offsets[document], offsets[document + 1]):
            if ids[i] >= 0:
                words[first + n] = ids[i]
                n += count_of[ids[i]] == 0
                count_of[ids[i]] += 1
        sort_words(words[first:], n, 0, bitmap)
        for k in range(first, first + n):
            counts[k] = count_of[words[k]]
            count_of[words[k]] = 0
        new_offsets[document + 1] = first + n
    return counts[: new_offsets[-1]], words[: new_offsets[-1]], new_offsets


@compiled
def find_subwords(codes, ends, hashes, starts, shortest, longest, first, factor, mixer):  # type: ignore[no-untyped-def]
    """Do what `wgcn.text.subwords.subword_places` does, with the places in `hashes` by the upper 16 bits of a hash."""
    low = np.uint64(0xFFFFFFFF)
    places, offsets = np.empty(len(codes) * (longest - shortest + 1), np.int32), np.zeros(len(ends) + 1, np.int64)
    n_found, begin = 0, 0
    for word in range(len(ends)):
        for n in range(shortest, longest + 1):
            for at in range(begin, ends[word] - n + 1):
                h = np.uint64(first)
                for i in range(at, at + n):
                    h = ((h ^ np.uint64(codes[i])) * np.uint64(factor)) & low
                h = ((h ^ (h >> np.uint64(16))) * np.uint64(mixer)) & low
                h ^= h >> np.uint64(13)
                for place in range(starts[h >> np.uint64(16)], starts[(h >> np.uint64(16)) + np.uint64(1)]):
                    if hashes[place] == h:
                        places[n_found] = place
                        n_found += 1
        begin = ends[word]
        offsets[word + 1] = n_found
    return places[:n_found], offsets


@compiled
def add_rows(table, new_rows, rows, weights, offsets, sums):  # type: ignore[no-untyped-def]
    """Add up weighted rows of a table, and of a second one that goes on from there, group by group, in double."""
    total, n_known = np.zeros(table.shape[1]), len(table)
    for group in range(len(offsets) - 1):
        total[:] = 0
        for i in range(offsets[group], offsets[group + 1]):
            row = rows[i]
            weight = np.float64(weights[i])
            if row < n_known:
                for j in range(table.shape[1]):
                    total[j] += table[row, j] * weight
            else:
                for j in range(table.shape[1]):
                    total[j] += new_rows[row - n_known, j] * weight
        sums[group] = total


def _tokens(data: Bytes, documents: Offsets, rule: str) -> tuple[Ids, Ids, npt.NDArray[np.uint32], Offsets]:
    """Return where each token of a batch begins and ends, its hash, and the first token of each document."""
    if rule == "words":
        begins, ends, offsets = _scan_words(data, documents, character_classes())
    else:  # one token per line
        ends = np.flatnonzero(data == ord("\n")).astype(np.int32)
        begins = np.concatenate([np.zeros(1, np.int32), ends + np.int32(1)])[: len(ends)]
        offsets = np.searchsorted(ends, documents)
    return begins, ends, _hashes(data, begins, ends, SECRET), offsets


def encode_new(data: Bytes, documents: Offsets, rule: str) -> tuple[Ids, Offsets, list[bytes]]:
    """Tokenise what `lay_out` gives: the ids of words by first occurrence, where each text begins, and these words."""
    begins, ends, hashes, offsets = _tokens(data, documents, rule)
    ids, words = _numbered(data, begins, ends, hashes)
    return ids, offsets, words


def _numbered(data: Bytes, begins: Ids, ends: Ids, hashes: npt.NDArray[np.uint32]) -> tuple[Ids, list[bytes]]:
    """Return the ids of tokens by first occurrence, and their words."""
    firsts, lasts, slots = np.empty_like(begins), np.empty_like(ends), np.full(1 << 12, -1, np.int32)
    ids, n = _match(data, begins, ends, hashes, data, firsts, lasts, np.empty_like(hashes), slots, True)
    text = data.tobytes()
    return ids, [text[i:j] for i, j in zip(firsts[:n].tolist(), lasts[:n].tolist(), strict=True)]


class LookUpTable:
    """Words, and n-grams of them, for the compiled look-up; the id of a word is its place."""

    def __init__(self, words: Iterable[str], ngrams: NgramTable | None = None) -> None:
        encoded = [word.encode() for word in words]
        starts = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
        words_at = np.frombuffer(b"".join(encoded), np.uint8), starts[:-1], starts[1:]
        hashes = _hashes(*words_at, SECRET)
        self._known = *words_at, hashes, _filled_slots(hashes, 1 << (2 * len(encoded) + 1).bit_length())
        self._ngrams = ngrams
        if ngrams is not None:
            self._key_slots = number_keys(ngrams.keys, SECRET)[2:]

    def encode(
        self, data: Bytes, documents: Offsets, rule: str, with_new: bool = False
    ) -> tuple[Ids, Offsets, npt.NDArray[np.int64], Ids, list[str]]:
        """Tokenise a batch as `encode_new` does, into ids, -1 for what is not known, and where each text begins.

        If `with_new`, also return of the tokens that are no word of the vocabulary the texts that they are in, their
        own ids by first occurrence, and these words.
        """
        begins, ends, hashes, offsets = _tokens(data, documents, rule)
        ids, table = _match(data, begins, ends, hashes, *self._known, False)[0], self._ngrams
        new, new_ids, words = np.empty(0, np.int64), ids[:0], list[str]()
        if with_new:
            new = np.flatnonzero((ids if table is None else table.entry_of[ids]) < 0)
            new_ids, found = _numbered(data, begins[new], ends[new], hashes[new])
            words = [word.decode() for word in found]
        new_documents = np.searchsorted(offsets, new, side="right") - 1
        if table is not None:
            parts = (table.is_kept, *self._key_slots, table.entry_of, table.ngram_range, SECRET)
            ids, offsets = _look_up_ngrams(ids, offsets, *parts)
        return ids, offsets, new_documents, new_ids, words
