"""Corpora by the settings of a method, and a small cache of preparations for consecutive fits."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import VocabularyRules
from wgcn_paper.datasets import stop_words

T = TypeVar("T")


class Kept(OrderedDict[str, T]):
    """The last preparations, for consecutive fits, which often differ only in the seed.

    The least recently used one is dropped when there are more than `most`.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def find(self, source: Any, make: Callable[[], T]) -> T:
        """Return what was made from a source, or make it.

        The source is everything that it depends on, such as the digest of a task and some settings, as JSON can hold
        it.
        """
        key = json.dumps(source)
        if key not in self:
            while len(self) >= self.most:  # before the new one is made, to save memory
                self.popitem(last=False)
            self[key] = make()
        self.move_to_end(key)
        return self[key]


def make_corpus(texts: Sequence[str], settings: Mapping[str, Any], max_size: int | None = None) -> Corpus:
    """Return texts as ids of words, by the settings "tokenizer", "stop_words" and "min_count".

    With `max_size` only so many of the most frequent words are kept.
    """
    rules = VocabularyRules(
        min_count=settings["min_count"],
        max_size=max_size,
        stop_words=stop_words() if settings["stop_words"] else frozenset(),
    )
    return Corpus.from_texts(texts, tokenizer=settings["tokenizer"], rules=rules)
