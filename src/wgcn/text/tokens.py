"""Tokens: documents as word ids before any word is left out, so that texts can be added later."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from wgcn.cores import n_threads
from wgcn.errors import WGCNWarning
from wgcn.text.encode import in_batches, lay_out
from wgcn.text.kernels import encode_new
from wgcn.text.ngrams import Ids, Offsets
from wgcn.text.tokenize import Tokenizer, resolve_tokenizer

__all__ = ["Tokens"]


class Tokens(NamedTuple):
    """Documents as ids of all their words. Document d is ``ids[offsets[d]:offsets[d + 1]]``."""

    ids: Ids  # (tokens,)
    offsets: Offsets  # (documents + 1,)
    words: list[str]  # distinct, by code point: the id of a word is its place

    @classmethod
    def from_texts(cls, texts: Iterable[str], tokenizer: str | Tokenizer, n_jobs: int | None = None) -> Tokens:
        """Tokenise texts: batches on several threads, taken in order, so that only a few are in memory at a time."""
        index: dict[str, int] = {}  # by first occurrence
        ids, lengths, n_replaced = [np.empty(0, np.int32)], [np.zeros(1, np.int64)], 0
        waiting: deque[Future[tuple[Ids, Offsets, list[str]]]] = deque()
        function, threads = resolve_tokenizer(tokenizer), n_threads(n_jobs)

        def take() -> None:
            batch_ids, offsets, words = waiting.popleft().result()
            numbers = np.array([index.setdefault(word, len(index)) for word in words], np.int32)
            ids.append(numbers[batch_ids])
            lengths.append(np.diff(offsets))

        with ThreadPoolExecutor(threads) as pool:
            for batch in in_batches(texts):
                data, documents, rule, replaced = lay_out(batch, function)
                n_replaced += replaced
                waiting.append(pool.submit(encode_new, data, documents, rule))
                if len(waiting) > threads:
                    take()
            while waiting:
                take()
        if n_replaced:
            had = "had characters that are not valid Unicode (lone surrogates); these were replaced."
            warnings.warn(f"{n_replaced:,} texts {had}", WGCNWarning, stacklevel=3)
        words, numbers = _sorted(list(index))
        return cls(numbers[np.concatenate(ids)], np.cumsum(np.concatenate(lengths)), words)

    def insert(self, place: int, more: Tokens) -> Tokens:
        """Return these documents with others before the one at `place`, as if all had been tokenised together."""
        known = set(self.words)
        words, numbers = _sorted([*self.words, *(word for word in more.words if word not in known)])
        index = dict(zip(words, range(len(words)), strict=True))
        others = np.array([index[word] for word in more.words], np.int32)[more.ids]
        begin = self.offsets[place]
        before, after = numbers[self.ids[:begin]], numbers[self.ids[begin:]]
        parts = self.offsets[:place], begin + more.offsets, self.offsets[place + 1 :] + len(others)
        return Tokens(np.concatenate([before, others, after]), np.concatenate(parts), words)


def _sorted(words: list[str]) -> tuple[list[str], Ids]:
    """Return words by code point, and the new place of each."""
    order = sorted(range(len(words)), key=words.__getitem__)
    places = np.empty(len(words), np.int32)
    places[order] = np.arange(len(words))
    return [words[i] for i in order], places
