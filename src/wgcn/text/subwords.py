"""Subwords: the character n-grams of a word, two to five characters long, with < and > at its ends. Needs numpy alone.

A subword is named by a 32-bit hash of its characters, as in fastText, so a model stores a number per subword and no
text. Two subwords with one hash share a row: among a hundred thousand subwords, about one pair does.

A subword counts as often as it occurs in a word. Those that occur once in all words say nothing of other words and are
left out, and so are the rarest. The others are weighted by their idf, with the number of documents estimated by the sum
over the words that have the subword. N-grams of words, which have a space in them, have no subwords.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import smooth_idf

Hashes = npt.NDArray[np.uint32]

_SHORTEST, _LONGEST = 2, 5
_LONGEST_WORD = 64  # characters; longer ones, such as encoded data, have no subwords
_MIN_PLACES, _MIN_DOCUMENTS = 2, 3  # in words, and of these words, where a subword occurs
_FIRST, _FACTOR = np.uint32(0x811C9DC5), np.uint32(0x01000193)  # of the hash FNV-1a
_MIXER = np.uint32(0x85EBCA6B)
_BUCKET_SHIFT = 14  # most of the buckets of a hundred thousand hashes have one of them or none


class Subwords(NamedTuple):
    """The subwords of a vocabulary, and of each of its words: a sparse matrix of shape (words, subwords)."""

    hashes: Hashes  # (subwords,), ascending
    weights: npt.NDArray[np.float32]  # (subwords,), the idf
    places: npt.NDArray[np.int32]  # (entries,), of the subwords of all words, one word after the other
    offsets: npt.NDArray[np.int64]  # (words + 1,)


def subword_hashes(words: Sequence[str]) -> tuple[Hashes, npt.NDArray[np.int64]]:
    """Return the hashes of the subwords of words, the short ones first, and where each word begins.

    Examples
    --------
    >>> hashes, offsets = subword_hashes(["red", "reds"])
    >>> offsets.tolist(), len(set(hashes[:10].tolist()) & set(hashes[10:].tolist()))
    ([0, 10, 24], 6)
    """
    padded = [f"<{word}>" if 0 < len(word) <= _LONGEST_WORD and " " not in word else "" for word in words]
    ends = np.cumsum(np.fromiter(map(len, padded), np.int64, len(padded)))
    codes = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), np.uint32)
    left = np.repeat(ends, np.diff(ends, prepend=0)) - np.arange(len(codes))  # characters to the end of the word
    hashes, begins = np.full(len(codes), _FIRST), np.arange(len(codes))
    found, owners = [], []
    for n in range(1, _LONGEST + 1):
        fits = left[begins] >= n
        begins = begins[fits]
        hashes = (hashes[fits] ^ codes[begins + n - 1]) * _FACTOR
        if n >= _SHORTEST:
            found.append(_mixed(hashes))
            owners.append(np.searchsorted(ends, begins, side="right"))
    owner = np.concatenate(owners)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(ends)))])
    return np.concatenate(found)[np.argsort(owner, kind="stable")], offsets


def _mixed(hashes: Hashes) -> Hashes:
    """Spread the last characters over all bits: FNV alone would leave them in the lower ones."""
    hashes = (hashes ^ (hashes >> np.uint32(16))) * _MIXER
    return np.asarray(hashes ^ (hashes >> np.uint32(13)))


def subword_places(words: Sequence[str], hashes: Hashes) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return where the subwords of words are among ascending hashes, without those that are not, and offsets."""
    own, offsets = subword_hashes(words)
    places = np.searchsorted(hashes, own)
    known = np.append(hashes, np.uint32(0))[places] == own if len(hashes) else np.zeros(len(own), bool)
    return places[known].astype(np.int32), np.concatenate([[0], np.cumsum(known)])[offsets]


def compiled_parts(hashes: Hashes) -> tuple[Any, ...]:
    """Return what `wgcn.text.kernels.add_subwords` needs of ascending hashes: see there."""
    starts = np.cumsum(np.bincount(hashes >> _BUCKET_SHIFT, minlength=1 << (32 - _BUCKET_SHIFT)), dtype=np.int32)
    buckets = np.append(hashes, np.uint32(0)), np.append(np.int32(0), starts), _BUCKET_SHIFT
    return *buckets, (_SHORTEST, _LONGEST), _LONGEST_WORD, (_FIRST, _FACTOR, _MIXER)


def find_subwords(vocabulary: Vocabulary, n_documents: int) -> Subwords:
    """Return the subwords of a vocabulary; its n-grams have none."""
    hashes, offsets = subword_hashes(vocabulary.words)
    distinct, places = np.unique(hashes, return_inverse=True)
    n_places = np.bincount(places, minlength=len(distinct))
    in_documents = np.bincount(places, np.repeat(vocabulary.document_counts, np.diff(offsets)), len(distinct))
    keep = (n_places >= _MIN_PLACES) & (in_documents >= _MIN_DOCUMENTS)
    weights = smooth_idf(np.minimum(in_documents[keep], n_documents), n_documents)
    kept, new_places = keep[places], np.cumsum(keep) - 1
    new_offsets = np.concatenate([[0], np.cumsum(kept)])[offsets]
    return Subwords(distinct[keep], weights, new_places[places[kept]].astype(np.int32), new_offsets)
