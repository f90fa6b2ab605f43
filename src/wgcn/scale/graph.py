"""Stopgap."""

from typing import Any

import numpy as np

from wgcn.graph import EdgeRules, WordGraph
from wgcn.text.corpus import Corpus


def word_graph(
    pieces: Any, place: Any, coding: Any, words: Any, nodes: Any, preparation: Any, limits: Any
) -> WordGraph:
    encoded = [coding.encode(place.work, piece) for piece in pieces]
    begins = np.cumsum([0, *(len(ids) for ids, _ in encoded)])
    ids = np.concatenate([each for each, _ in encoded])
    offsets = np.concatenate([[0], *(each[1:] + begin for (_, each), begin in zip(encoded, begins, strict=False))])
    vocabulary = words.part(np.flatnonzero(nodes))
    corpus = Corpus(ids, offsets, vocabulary)
    rules = EdgeRules(preparation.threshold, preparation.min_pairs, preparation.top_k)
    return WordGraph.from_corpus(
        corpus, window=preparation.window, weight=preparation.weight, rules=rules, max_pairs=20_000_000
    ).among(words, np.flatnonzero(nodes))
