"""What is made of texts before any label is looked at."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from wgcn import Corpus, EdgeRules, WGCNEmbedder, WGCNTextClassifier, WordGraph
from wgcn.base.errors import InputError
from wgcn.estimators.preparation import Preparation, find_texts, plain_settings, renumbered
from wgcn.scoring.terms import TextTerms
from wgcn.text.tokenize import text_digest
from wgcn.text.vocabulary import Vocabulary

SENTENCES = [
    "the old red wine of the north",
    "the old white wine of the south",
    "a glass of red wine",
    "a glass of cold water",
    "the cold water of the north",
    "an old car and a fast car",
] * 3


@pytest.mark.parametrize("weight", ["pmi", "npmi", "count", "cosine"])
def test_ngrams_have_no_edge_and_words_the_edges_that_they_have_alone(weight: str) -> None:
    preparation = Preparation(ngram_range=(1, 3), window=3, weight=weight)  # type: ignore[arg-type]
    prepared = preparation.prepare(SENTENCES)
    graph, are_ngrams = prepared.word_graph, prepared.vocabulary.are_ngrams
    assert graph is not None
    assert graph.vocabulary == prepared.vocabulary
    assert {"red wine", "of the north"} < set(prepared.vocabulary.words)
    assert not np.diff(graph.adjacency.indptr)[are_ngrams].any()
    assert not graph.adjacency[:, are_ngrams].nnz
    alone = replace(preparation, ngram_range=(1, 1)).prepare(SENTENCES).word_graph
    assert alone is not None
    assert alone.vocabulary.words == tuple(np.array(graph.vocabulary.words)[~are_ngrams])
    assert np.array_equal(graph.adjacency[~are_ngrams][:, ~are_ngrams].toarray(), alone.adjacency.toarray())
    assert np.array_equal(graph.degrees[~are_ngrams], alone.degrees)
    assert alone.adjacency.nnz > 0


def test_ngrams_with_edges_are_tokens_of_the_windows() -> None:
    prepared = Preparation(ngram_edges=True, window=3).prepare(SENTENCES)
    corpus = Corpus.from_texts(SENTENCES, ngram_range=(1, 2))
    expected = WordGraph.from_corpus(corpus, window=3, weight="pmi", rules=EdgeRules(min_count=2))
    assert prepared.word_graph is not None
    assert prepared.word_graph.vocabulary == expected.vocabulary
    assert np.array_equal(prepared.word_graph.adjacency.toarray(), expected.adjacency.toarray())
    assert prepared.word_graph.neighbours("red wine", min_count=0)


def test_where_there_are_ngrams_alone_they_have_edges() -> None:
    graph = Preparation(ngram_range=(2, 2), window=3).prepare(SENTENCES).word_graph
    assert graph is not None
    assert graph.info().edges > 0


def test_by_default_all_words_are_kept_and_ngrams_that_occur_twice() -> None:
    texts = ["red wine once", "old red wine"]
    words = Preparation().prepare(texts).vocabulary.words
    assert words == ("red", "red wine", "wine", "old", "once")
    assert set(Preparation(min_count=1).prepare(texts).vocabulary) == {*words, "wine once", "old red"}
    assert Preparation(min_count=2).prepare(texts).vocabulary.words == ("red", "red wine", "wine")


def test_of_very_many_words_those_that_occur_once_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["red wine once", "old red wine"]
    monkeypatch.setattr("wgcn.estimators.preparation.MANY_WORDS", 3)
    assert Preparation().prepare(texts).vocabulary.words == ("red", "red wine", "wine")
    # n-grams are not counted among the words, and words that all occur once are kept.
    assert Preparation().prepare(["a b c", "a b"]).vocabulary.words == ("a", "a b", "b", "c")
    assert Preparation().prepare(["a b c d", "e"]).vocabulary.words == ("a", "b", "c", "d", "e")


def test_the_threshold_prunes_edges() -> None:
    graphs = [Preparation(weight="npmi", threshold=value).prepare(SENTENCES).word_graph for value in (0.0, 0.3, 0.6)]
    edges = [graph.info().edges for graph in graphs if graph is not None]
    assert edges[0] > edges[1] > edges[2] > 0
    assert graphs[2] is not None
    pruned = graphs[2].adjacency.tocoo()
    weights = pruned.data * np.sqrt(graphs[2].degrees[pruned.row] * graphs[2].degrees[pruned.col])
    assert weights[pruned.row != pruned.col].min() > 0.6 - 1e-5


@pytest.mark.parametrize("wrong", [{"threshold": float("nan")}, {"top_k": 0}, {"min_pairs": 0}])
def test_wrong_rules_of_edges_are_told_before_texts_are_read(wrong: dict[str, Any]) -> None:
    texts = iter(SENTENCES)
    with pytest.raises(InputError, match="must be"):
        Preparation(**wrong).prepare(texts)
    assert next(texts) == SENTENCES[0]


def test_background_shapes_vocabulary_idf_and_graph_but_has_no_row() -> None:
    together = Preparation().prepare(SENTENCES)
    prepared = Preparation().prepare(iter(SENTENCES[:4]), background=iter(SENTENCES[4:]))
    assert prepared.n_background == len(SENTENCES) - 4
    assert together.n_background == 0
    assert prepared.vocabulary == together.vocabulary
    assert np.array_equal(prepared.weighting.idf, together.weighting.idf)
    assert prepared.word_graph is not None
    assert together.word_graph is not None
    assert np.array_equal(prepared.word_graph.adjacency.toarray(), together.word_graph.adjacency.toarray())
    assert np.array_equal(prepared.document_terms.toarray(), together.document_terms[:4].toarray())


def test_settings_are_those_of_the_estimators() -> None:
    assert Preparation.of(WGCNTextClassifier()) == Preparation()
    embedder = WGCNEmbedder(window=7, min_count=3)
    assert Preparation.of(embedder) == Preparation(ngram_range=(1, 1), window=7, min_count=3)


def test_settings_are_shown_as_json_can_hold_them() -> None:
    given = {"stop_words": ["a", "of"], "norm": "l2", "top_k": None, "tokenizer": str.split, "C": 0.5, "window": 7}
    assert plain_settings(given) == {**given, "stop_words": "2 words", "tokenizer": str(str.split)}
    assert json.loads(json.dumps(plain_settings(given))) == plain_settings(given)


def test_a_window_longer_than_every_text_joins_all_words_of_a_text() -> None:
    texts = ["a b c d e f g", "a g x", "b c d", "y z"] * 3
    weights = []
    for window in (2, 10**6):
        graph = Preparation(window=window, min_pairs=1).prepare(texts).word_graph
        assert graph is not None
        weights.append(graph.adjacency[graph.vocabulary.id_of("x"), graph.vocabulary.id_of("a")])
    assert weights[0] == 0
    assert weights[1] > 0


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (0, "window must be at least 2 tokens, got 0"),
        (None, "window must be at least 2 tokens, got None"),
        ((5, 20), r"window must be a whole number, got \(5, 20\)"),
        (2.5, "window must be a whole number, got 2.5"),
        ("20", "window must be a whole number, got '20'"),
    ],
)
def test_senseless_windows_are_refused_before_a_text_is_read(window: Any, message: str) -> None:
    texts = iter(SENTENCES)
    with pytest.raises(InputError, match=message):
        Preparation(window=window).prepare(texts)
    assert next(texts) == SENTENCES[0]


LISTS = st.lists(st.sampled_from("abcde"), max_size=8)


@given(LISTS, LISTS)
def test_texts_are_found_as_often_as_they_are_there(known: list[str], wanted: list[str]) -> None:
    found = find_texts(np.array(list(map(text_digest, known)), np.int64), wanted)
    pairs = {(i, j) for i, text in enumerate(wanted) for j, other in enumerate(known) if text == other}
    assert set(zip(found.given.tolist(), found.documents.tolist(), strict=True)) == pairs
    assert len(found.given) == len(pairs)
    assert found.new.tolist() == [i for i, text in enumerate(wanted) if text not in known]


def test_terms_are_weighted_as_by_the_earlier_model() -> None:
    first, more = ["a b", "b c c"], ["c a", "new a a b", "new"]
    earlier = Preparation(ngram_range=(1, 1)).prepare(first)
    both = Preparation(ngram_range=(1, 1)).prepare(more, earlier=earlier)
    found = both.terms_as_in(earlier, np.array([2, 3, 4]))
    terms = TextTerms("words", (1, 1), earlier.vocabulary, earlier.weighting).terms(more)
    expected = csr_array((terms.weights, terms.words, terms.offsets), shape=(3, 3))
    np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=1e-6)


@given(st.permutations("abcdefg"), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_a_renumbered_graph_joins_the_same_words(words: list[str], n_before: int, seed: int) -> None:
    rng, before = np.random.default_rng(seed), sorted(words[:n_before])
    weights = np.triu(rng.random((n_before, n_before)) * (rng.random((n_before, n_before)) < 0.5))
    weights = (weights + weights.T).astype(np.float32)
    found = renumbered(csr_array(weights), Vocabulary(before), Vocabulary(words))
    assert found is not None
    graph, places = found
    edged = weights.any(axis=1)
    assert [words[place] for place in places[edged]] == [word for word, has in zip(before, edged, strict=True) if has]
    assert (places[~edged] == -1).all()
    assert graph.nnz == np.count_nonzero(weights)
    assert graph.has_sorted_indices
    assert np.array_equal(graph.toarray()[np.ix_(places[edged], places[edged])], weights[np.ix_(edged, edged)])


def test_a_graph_whose_words_are_gone_is_not_renumbered() -> None:
    assert renumbered(csr_array(np.eye(2)), Vocabulary(["a", "b"]), Vocabulary(["b", "c"])) is None
    assert renumbered(csr_array(np.diag([0.0, 1.0])), Vocabulary(["a", "b"]), Vocabulary(["b", "c"])) is not None
