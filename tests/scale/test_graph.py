"""Out of core, graphs are those in memory, to the last bit."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgcn.base.errors import InputError
from wgcn.graph.association import EdgeRules
from wgcn.graph.word_graph import WordGraph
from wgcn.scale.build import build_graph
from wgcn.scale.corpus import choose_vocabulary
from wgcn.scale.workers import Limits
from wgcn.text.corpus import Corpus

from .test_vocabulary import pieces_of

texts = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=30).map(" ".join), min_size=1, max_size=6)
corpora = st.lists(texts, min_size=1, max_size=3).filter(lambda shards: any("a" in text for text in shards[0]))
limits = st.builds(
    Limits,
    characters=st.sampled_from([1, 60, 1 << 26]),
    tokens=st.sampled_from([1, 20, 1 << 24]),
    merged=st.sampled_from([1, 30, 1 << 26]),
    fan_in=st.sampled_from([2, 64]),
    chosen=st.sampled_from([1, 1 << 29]),
)
rules = st.builds(
    EdgeRules,
    threshold=st.sampled_from([-2.0, 0.0, 0.1]),
    min_count=st.integers(1, 3),
    top_k=st.sampled_from([None, 1, 2, 4]),
    diagonal=st.sampled_from(["self", "none"]),
)


def saved(graph: WordGraph, folder: Path) -> dict[str, bytes]:
    graph.save(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@given(corpora, st.integers(2, 9), st.sampled_from(["npmi", "pmi", "count"]), rules, limits)
def test_graphs_are_those_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    shards: list[list[str]],
    window: int,
    weight: str,
    rules: EdgeRules,
    limits: Limits,
) -> None:
    corpus = Corpus.from_texts([text for shard in shards for text in shard])
    how = {"window": window, "weight": weight, "rules": rules}
    expected = WordGraph.from_corpus(corpus, **how)
    with pieces_of(shards, limits) as (site, pieces):
        vocabulary, coding = choose_vocabulary(pieces, site)
        graph = build_graph(pieces, site, vocabulary, coding, **how)
    folder = tmp_path_factory.mktemp("graph")
    assert saved(graph, folder / "a") == saved(expected, folder / "b")


@pytest.mark.parametrize("max_pairs", [1, 700, 5_000, 10**6])
def test_the_limit_for_very_many_pairs_is_that_in_memory(max_pairs: int, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    names = [f"w{i}" for i in range(300)]
    shards = [
        [" ".join(names[int(300 ** random.random()) - 1] for _ in range(60)) for _ in range(60)] for _ in range(2)
    ]
    corpus = Corpus.from_texts(shards[0] + shards[1])
    expected = WordGraph.from_corpus(corpus, window=5, max_pairs=max_pairs, rules=EdgeRules(top_k=7))
    with pieces_of(shards, Limits(characters=2_000, tokens=999, merged=999)) as (site, pieces):
        vocabulary, coding = choose_vocabulary(pieces, site)
        rules = EdgeRules(top_k=7)
        graph = build_graph(pieces, site, vocabulary, coding, window=5, max_pairs=max_pairs, rules=rules)
    assert saved(graph, tmp_path / "a") == saved(expected, tmp_path / "b")
    assert (graph.settings["min_count"] > 1) == (max_pairs < 10**6)


def test_a_graph_that_does_not_fit_is_an_error_that_says_what_to_do() -> None:
    with pieces_of([["a b c", "b c d"]], Limits(graph=60)) as (site, pieces):
        vocabulary, coding = choose_vocabulary(pieces, site)
        with pytest.raises(InputError, match=r"would have 5 edges, and 1 fit the memory .* --top-k"):
            build_graph(pieces, site, vocabulary, coding, weight="count")
