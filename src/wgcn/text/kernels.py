"""The default tokeniser `words`, compiled: it reads UTF-8 bytes and gives word ids, without the interpreter lock.

Written by hand because no library gives word ids in the order of the text at this speed: the raw text of 20ng (35.8 MB)
takes 1.4 s, where scikit-learn's CountVectorizer takes 6.1 s for the counts alone (docs/benchmarks.md, Tokenising).
`wgcn.text.tokenize.words` defines the tokens, and tests hold the two equal.

Words are found in an open-addressing table whose hash has a secret of its own in each process, so that no text can be
made that takes quadratic time. Ids are given in order of first occurrence and do not depend on the hash.
"""

import re
import secrets
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from wgcn.base.threads import compiled
from wgcn.text.ngrams import Encoded, NgramTable
from wgcn.text.tokenize import (
    EMOJI_SUFFIXES,
    FLAG_LETTERS,
    Ids,
    Offsets,
    TextBytes,
    WordBytes,
    emoji_bases,
    word_marks,
)
from wgcn.text.weighting import LONG

Keys = npt.NDArray[np.uint64]

# The part that a character has in words, 0 for none, and as further bits its part in emoji.
_START, _INSIDE, _APOSTROPHE, _PART_IN_WORDS, _EMOJI, _FLAG, _SUFFIX = 1, 2, 3, 3, 4, 8, 16
_PRIME = np.uint64(2**31 - 1)
_LONG = np.uint64(1 << 63)  # from here on, keys of words do not tell them apart
SECRET = np.uint64(secrets.randbits(64) | 1)


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
        begin, inside = at, False  # of a word
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
            goes_on = (kind == _START) | (inside & (kind == _INSIDE))
            if kind == _APOSTROPHE:  # it goes on only if a letter follows at once
                goes_on = inside and at + 1 < end and classes[_decode(data, at + 1)[0]] == _START
            begin = begin if inside else at
            begins[n], ends[n] = begin, at  # until the word ends, again and again: a branch would take longer
            n += inside & (not goes_on)
            inside = goes_on
            at += width
        ends[n] = end
        n += inside
        offsets[document + 1] = n
    return begins[:n], ends[:n], offsets


# The functions below call nothing with an array in their loops: numba counts references at every such call, which would
# cost more than the look-up itself.


@compiled
def _keys(data, begins, ends, secret):  # type: ignore[no-untyped-def]
    """Return keys of tokens: up to seven bytes with a 1 before them, otherwise `_LONG` and a hash of the bytes.

    The hash is a polynomial in the secret modulo 2^31 - 1: two words of n bytes collide with chance n / 2^30.
    """
    blocks = np.zeros(len(data) // 8 + 2, np.uint64)  # eight bytes are read at a time
    blocks.view(np.uint8)[: len(data)] = data
    keys = np.empty(len(begins), np.uint64)
    for token in range(len(begins)):
        begin, size = begins[token], ends[token] - begins[token]
        if size < 8:
            shift, end = np.uint64(8 * (begin & 7)), np.uint64(1) << np.uint64(8 * size)
            block = blocks[begin >> 3] >> shift | blocks[(begin >> 3) + 1] << np.uint64(1) << (np.uint64(63) - shift)
            keys[token] = block & (end - np.uint64(1)) | end
        else:
            key = np.uint64(1)
            for i in range(begin, begin + size):
                key = key * (secret >> np.uint64(34)) + np.uint64(data[i])
                key = (key & _PRIME) + (key >> np.uint64(31))
            keys[token] = key | _LONG
    return keys


@compiled
def _slot(key, n_slots, secret):  # type: ignore[no-untyped-def]
    """Return the slot where the search for a key begins: the upper bits of its product with the secret.

    Of two keys, the chance to share one is at most 2 / n_slots (Dietzfelbinger et al., 1997).
    """
    return ((np.uint64(key) * secret) >> np.uint64(32)) * np.uint64(n_slots) >> np.uint64(32)


@compiled
def _filled_slots(keys, n_words, secret):  # type: ignore[no-untyped-def]
    """Return slots of an open-addressing table, a power of two, with place for so many words, the first put in."""
    n_slots = 2
    while n_slots < 2 * n_words:
        n_slots *= 2
    slots = np.full(n_slots, -1, np.int32)
    for word in range(len(keys)):
        slot = _slot(keys[word], n_slots, secret)
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & np.uint64(n_slots - 1)
        slots[slot] = word
    return slots


@compiled
def _match(data, begins, ends, keys, secret, known, firsts, lasts, known_keys, slots, adds):  # type: ignore[no-untyped-def]
    """Return the id of each token among the words known[firsts:lasts], and how many were added.

    A token that is not among them gets -1 or, if `adds`, becomes the next word; then `known` is the same data.
    """
    ids = np.empty(len(begins), np.int32)
    n_added = 0
    for token in range(len(begins)):
        key, slot = keys[token], _slot(keys[token], len(slots), secret)
        word = slots[slot]
        while word >= 0:
            if known_keys[word] == key:
                if key < _LONG:
                    break
                first, begin, size = firsts[word], begins[token], ends[token] - begins[token]
                i = 0 if lasts[word] - first == size else size + 1
                while i < size and known[first + i] == data[begin + i]:
                    i += 1
                if i == size:
                    break
            slot = (slot + np.uint64(1)) & np.uint64(len(slots) - 1)
            word = slots[slot]
        if adds and word < 0:
            word = slots[slot] = n_added
            firsts[word], lasts[word], known_keys[word] = begins[token], ends[token], key
            n_added += 1
        ids[token] = word
    return ids, n_added


@compiled
def number_keys(keys, secret):  # type: ignore[no-untyped-def]
    """Give numbers to keys, -1 to negative ones; return also the distinct keys."""
    numbers, distinct = np.empty(len(keys), np.int32), np.empty(len(keys), np.int64)
    slots, n = np.full(1 << 12, -1, np.int32), 0
    for i in range(len(keys)):
        numbers[i] = -1
        if keys[i] >= 0:
            slot = _slot(keys[i], len(slots), secret)
            while slots[slot] >= 0 and distinct[slots[slot]] != keys[i]:
                slot = (slot + np.uint64(1)) & np.uint64(len(slots) - 1)
            if slots[slot] < 0:
                slots[slot], distinct[n] = n, keys[i]
                n += 1
            numbers[i] = slots[slot]
            if 2 * n > len(slots):
                slots = _filled_slots(distinct[:n], len(slots), secret)
    return numbers, distinct[:n].copy()


@compiled
def _look_up_ngrams(ids, offsets, is_kept, bits, slots, slot_keys, entry_of, ngram_range, secret):  # type: ignore[no-untyped-def]
    """Do what `NgramTable.look_up` does, with its keys in a table of slots."""
    shortest, longest = ngram_range
    found = np.empty(len(ids) * (longest - shortest + 1), np.int32)
    new_offsets = np.zeros(len(offsets), np.int64)
    tokens, places = np.empty(len(ids) + 1, np.int64), np.empty(len(ids) + 1, np.int64)
    n_words, n, n_new = len(is_kept) - 1, 0, 0
    for document in range(len(offsets) - 1):
        end = offsets[document + 1]
        for begin in range(offsets[document], end):
            node, at = np.int64(ids[begin]), begin
            if not is_kept[node]:  # it counts as one that is no entry
                found[n] = -1
                n += shortest == 1
                continue
            if shortest == 1:
                found[n], tokens[n_new], places[n_new] = entry_of[node], begin, n
                n_new += entry_of[node] < 0
                n += 1
            for length in range(2, longest + 1):
                at += 1
                while at < end and not is_kept[ids[at]]:
                    at += 1
                if at >= end:
                    break
                if node >= 0:
                    key, node = node * n_words + ids[at], np.int64(-1)
                    place = _slot(key, 4 * len(slots), secret)
                    if ids[at] >= 0 and bits[place >> np.uint64(3)] >> (place & np.uint64(7)) & np.uint64(1):
                        slot = place >> np.uint64(2)
                        while slot_keys[slot] >= 0 and slot_keys[slot] != key:
                            slot = (slot + np.uint64(1)) & np.uint64(len(slots) - 1)
                        node = np.int64(n_words + slots[slot] if slot_keys[slot] == key else -1)
                if length >= shortest:
                    found[n] = entry_of[node]
                    n += 1
        new_offsets[document + 1] = n
    return found[:n], new_offsets, tokens[:n_new], places[:n_new]


# The position of the only bit of a 64-bit number: each such number times this constant has its own upper six bits.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT_POSITIONS = np.zeros(64, np.int32)
_BIT_POSITIONS[[((1 << i) * int(_DE_BRUIJN) >> 58) & 63 for i in range(64)]] = np.arange(64)


@compiled
def sort_words(touched, n_touched, bitmap, summary):  # type: ignore[no-untyped-def]
    """Sort distinct words in place, by a bitmap of all words and one of its blocks of 64, both 0 before and after."""
    for t in range(n_touched):
        bitmap[touched[t] >> 6] |= np.uint64(1) << np.uint64(touched[t] & 63)
        summary[touched[t] >> 12] |= np.uint64(1) << np.uint64(touched[t] >> 6 & 63)
    n = 0
    for part in range(len(summary)):
        blocks, summary[part] = summary[part], 0
        while blocks != 0:
            block = (part << 6) + _BIT_POSITIONS[((blocks & (~blocks + np.uint64(1))) * _DE_BRUIJN) >> np.uint64(58)]
            blocks &= blocks - np.uint64(1)
            bits, bitmap[block] = bitmap[block], 0
            while bits != 0:
                lowest = bits & (~bits + np.uint64(1))
                touched[n] = (block << 6) + _BIT_POSITIONS[(lowest * _DE_BRUIJN) >> np.uint64(58)]
                n += 1
                bits ^= lowest


@compiled
def count_words(ids, offsets, n_words):  # type: ignore[no-untyped-def]
    """Return how often each word occurs, and in how many documents; negative ids are no words."""
    counts, document_counts = np.zeros(n_words, np.int64), np.zeros(n_words, np.int64)
    last = np.zeros(n_words, np.int32)
    for document in range(1, len(offsets)):
        for i in range(offsets[document - 1], offsets[document]):
            word = ids[i]
            if word >= 0:
                counts[word] += 1
                document_counts[word] += last[word] != document
                last[word] = document
    return counts, document_counts


@compiled
def count_terms(ids, offsets, n_words, n_new):  # type: ignore[no-untyped-def]
    """Do what `wgcn.text.weighting.count_terms` does."""
    words, counts = np.empty(len(ids), np.int32), np.empty(len(ids), np.int32)
    new_offsets, new = np.zeros(len(offsets), np.int64), np.empty(n_new + 1, np.int32)
    count_of = np.zeros(n_words + n_new, np.int32)
    bitmap, summary = np.zeros((n_words >> 6) + 1, np.uint64), np.zeros((n_words >> 12) + 1, np.uint64)
    for document in range(len(offsets) - 1):
        first, n, n_own = new_offsets[document], 0, 0
        for i in range(offsets[document], offsets[document + 1]):
            word = ids[i]
            if word >= n_words:
                new[n_own] = word
                n_own += count_of[word] == 0
                count_of[word] += 1
            elif word >= 0:
                words[first + n] = word
                n += count_of[word] == 0
                count_of[word] += 1
        sort_words(words[first:], n, bitmap, summary)
        last = new_offsets[document + 1] = first + n + n_own
        words[first + n : last] = new[:n_own]
        for k in range(first, last):
            counts[k] = count_of[words[k]]
            count_of[words[k]] = 0
    return counts[: new_offsets[-1]], words[: new_offsets[-1]], new_offsets


@compiled
def leading_counts(ids, offsets, words, term_offsets, n_words, lead):  # type: ignore[no-untyped-def]
    """Do what `wgcn.text.weighting.leading_counts` does."""
    leading, count_of = np.zeros(len(words), np.uint8), np.zeros(n_words, np.uint8)
    for document in range(len(offsets) - 1):
        n = 0
        for i in range(offsets[document], offsets[document + 1]):
            n += 0 <= ids[i] < n_words
        at, left = offsets[document], min(lead, n) if n > LONG else 0
        while left > 0:
            if 0 <= ids[at] < n_words:
                count_of[ids[at]] += count_of[ids[at]] < 255
                left -= 1
            at += 1
        for k in range(term_offsets[document], term_offsets[document + 1] if n > LONG else 0):
            if words[k] < n_words:
                leading[k] = count_of[words[k]]
                count_of[words[k]] = 0
    return leading


@compiled
def add_subwords(data, begins, ends, table, hashes, starts, shift, sizes, longest_word, numbers):  # type: ignore[no-untyped-def]
    """Return the sums of the rows of the subwords of words data[begins:ends], in the order of `subword_hashes`.

    `starts` says where the hashes of each bucket begin, which are equal when shifted; one more number follows them.
    """
    (shortest, longest), (first, factor, mixer) = sizes, numbers
    codes, states = np.zeros(longest_word + 2, np.uint32), np.empty(longest_word + 2, np.uint32)
    places = np.empty(len(codes) * longest + 1, np.int32)
    sums, total = np.zeros((len(begins), table.shape[1]), table.dtype), np.empty(table.shape[1])
    for word in range(len(begins)):
        at, size, n_found = begins[word], 1, 0
        codes[0] = ord("<")
        while at < ends[word] and size <= longest_word and data[at] != ord(" "):
            codes[size], width = _decode(data, at)
            at += width
            size += 1
        if at < ends[word] or size == 1:
            continue
        codes[size], states[: size + 1], total[:] = ord(">"), first, 0
        for n in range(1, longest + 1):
            for i in range(size + 2 - n):
                states[i] = (states[i] ^ codes[i + n - 1]) * factor
            for i in range(size + 2 - n if n >= shortest else 0):
                h = np.uint32((states[i] ^ (states[i] >> np.uint32(16))) * mixer)
                h = np.uint32(h ^ (h >> np.uint32(13)))
                bucket = h >> np.uint32(shift)
                for place in range(starts[bucket], max(starts[bucket + np.uint32(1)], starts[bucket] + 1)):
                    places[n_found] = place
                    n_found += hashes[place] == h
        for place in places[:n_found]:
            for j in range(len(total)):
                total[j] += table[place, j]
        sums[word] = total
    return sums


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


def _tokens(texts: TextBytes) -> tuple[Ids, Ids, Keys, Offsets]:
    """Return where each token of a batch begins and ends, its key, and the first token of each document."""
    if texts.by_words:
        begins, ends, offsets = _scan_words(texts.data, texts.offsets, character_classes())
    else:  # one token per line
        ends = np.flatnonzero(texts.data == ord("\n")).astype(np.int32)
        begins = np.concatenate([np.zeros(1, np.int32), ends + np.int32(1)])[: len(ends)]
        offsets = np.searchsorted(ends, texts.offsets)
    return begins, ends, _keys(texts.data, begins, ends, SECRET), offsets


def encode_new(texts: TextBytes) -> tuple[Ids, Offsets, list[str]]:
    """Tokenise a batch: the ids of words by first occurrence, where each text begins, and these words."""
    begins, ends, keys, offsets = _tokens(texts)
    ids, words = _numbered(texts.data, begins, ends, keys)
    return ids, offsets, words.decoded()


def _numbered(data: npt.NDArray[np.uint8], begins: Ids, ends: Ids, keys: Keys) -> tuple[Ids, WordBytes]:
    """Return the ids of tokens by first occurrence, and their words."""
    firsts, lasts, slots = np.empty_like(begins), np.empty_like(ends), _filled_slots(keys[:0], len(keys), SECRET)
    ids, n = _match(data, begins, ends, keys, SECRET, data, firsts, lasts, np.empty_like(keys), slots, True)
    return ids, WordBytes(data, firsts[:n], lasts[:n])


class LookUpTable:
    """A table of n-grams for the compiled look-up."""

    def __init__(self, ngrams: NgramTable) -> None:
        words = WordBytes.of(ngrams.index)
        keys = _keys(*words, SECRET)
        self._known = *words, keys, _filled_slots(keys, len(keys), SECRET)
        slots = _filled_slots(ngrams.keys, len(ngrams.keys), SECRET)
        slot_keys = np.append(ngrams.keys, -1)[slots]
        # Four bits per slot: where the search for a key that is not there would begin, most are 0.
        begins = np.zeros(4 * len(slots), bool)
        begins[_slot.py_func(ngrams.keys, len(begins), SECRET)] = True
        bits = np.packbits(begins, bitorder="little")
        self._ngrams = ngrams.is_kept, bits, slots, slot_keys, ngrams.entry_of, ngrams.ngram_range

    def encode(self, texts: TextBytes) -> Encoded:
        """Tokenise a batch into ids of n-grams."""
        (begins, ends, keys, offsets), data = _tokens(texts), texts.data
        ids, _ = _match(data, begins, ends, keys, SECRET, *self._known, False)
        ids, offsets, new, places = _look_up_ngrams(ids, offsets, *self._ngrams, SECRET)
        return Encoded(ids, offsets, places, *_numbered(data, begins[new], ends[new], keys[new]), len(begins))
