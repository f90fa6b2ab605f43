import json
from dataclasses import replace
from hashlib import sha256
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_array

from wgcn import Corpus, EdgeRules, VocabularyRules, WordGraph
from wgcn.base.errors import InputError, StoreError
from wgcn.store import folder as store
from wgcn.text.vocabulary import Vocabulary
from wgcn_paper.datasets.docstrings import DocsCorpus

TEXTS = ["red wine and bread", "white wine and bread", "red rose", "white rose", "lonely"] * 3


@pytest.fixture(scope="module")
def graph() -> WordGraph:
    return WordGraph.from_corpus(Corpus.from_texts(TEXTS), window=2, weight="pmi")


@pytest.fixture(scope="module")
def docs_graph(docs: DocsCorpus) -> WordGraph:
    assert docs.texts is not None
    return WordGraph.from_corpus(Corpus.from_texts(docs.texts, rules=VocabularyRules(min_df=5)))


def test_neighbours_are_ranked_by_weight_before_normalisation(graph: WordGraph) -> None:
    raw = WordGraph.from_corpus(Corpus.from_texts(TEXTS), window=2, weight="pmi", normalized=False)
    for word in graph.vocabulary:
        row = raw.adjacency[[raw.vocabulary.id_of(word)]].toarray().ravel()
        row[raw.vocabulary.id_of(word)] = 0
        expected = [raw.vocabulary[int(i)] for i in np.lexsort((np.arange(len(row)), -row.round(5))) if row[i] > 0]
        got = graph.neighbours(word, 99, min_count=0)
        assert [neighbour.word for neighbour in got] == expected
        np.testing.assert_allclose([n.weight for n in got], [row[raw.vocabulary.id_of(n.word)] for n in got], rtol=1e-5)


def test_rare_neighbours_are_left_out_by_default() -> None:
    texts = ["common other"] * 200 + ["common rare"] + ["something else"] * 100
    graph = WordGraph.from_corpus(Corpus.from_texts(texts), window=2, weight="pmi")
    assert {n.word for n in graph.neighbours("common", min_count=0)} == {"other", "rare"}
    assert [n.word for n in graph.neighbours("common")] == ["other"]


def test_docs_corpus_has_neighbours_that_make_sense(docs_graph: WordGraph) -> None:
    assert "eigenvectors" in {n.word for n in docs_graph.neighbours("eigenvalues", 5)}
    assert "skewness" in {n.word for n in docs_graph.neighbours("kurtosis", 5)}


def test_info_counts_an_edge_once_and_no_self_loop(graph: WordGraph) -> None:
    dense = graph.adjacency.toarray()
    np.fill_diagonal(dense, 0)
    info = graph.info()
    assert info.edges == np.count_nonzero(dense) / 2
    assert info.nodes == 7
    assert info.density == info.edges / 21
    assert info.isolated == 1  # lonely


@pytest.mark.parametrize("weight", ["npmi", "pmi", "count", "cosine", "product"])
def test_every_weight_gives_a_normalised_symmetric_graph(weight: str) -> None:
    graph = WordGraph.from_corpus(Corpus.from_texts(TEXTS), weight=weight)  # type: ignore[arg-type]
    assert (graph.adjacency != graph.adjacency.T).nnz == 0
    assert graph.adjacency.dtype == np.float32
    # The largest eigenvalue of D^-1/2 A D^-1/2 is 1 where no weight is negative.
    assert np.linalg.eigvalsh(graph.adjacency.toarray().astype(float)).max() == pytest.approx(1, abs=1e-6)


@given(st.data())
def test_among_more_words_the_edges_are_the_same(graph: WordGraph, data: st.DataObject) -> None:
    own = list(graph.vocabulary.words)
    added = data.draw(st.lists(st.integers(0, len(own)), max_size=6))
    larger = list(own)
    for i, place in enumerate(sorted(added, reverse=True)):
        larger.insert(place, f"new {i}")
    wide = graph.among(Vocabulary(larger))
    places = [larger.index(word) for word in own]
    dense = np.zeros((len(larger), len(larger)), np.float32)
    dense[np.ix_(places, places)] = graph.adjacency.toarray()
    assert np.array_equal(wide.adjacency.toarray(), dense)
    assert wide.adjacency.nnz == graph.adjacency.nnz
    assert wide.adjacency.has_canonical_format
    for part in ("dtype", "indices.dtype", "indptr.dtype"):
        assert attrgetter(part)(wide.adjacency) == attrgetter(part)(graph.adjacency)
    assert np.array_equal(wide.degrees[places], graph.degrees)
    assert wide.degrees.sum() == graph.degrees.sum()
    assert wide.vocabulary.words == tuple(larger)
    assert wide.settings == graph.settings
    assert wide.info().edges == graph.info().edges


def test_neighbours_among_more_words_are_the_same(tmp_path: Path) -> None:
    corpus = Corpus.from_texts(TEXTS, ngram_range=(1, 2))
    words = corpus.with_words(~corpus.vocabulary.are_ngrams)
    graph = WordGraph.from_corpus(words, window=2, weight="pmi")
    wide = graph.among(corpus.vocabulary)
    for word in words.vocabulary:
        assert wide.neighbours(word) == graph.neighbours(word)
    assert wide.neighbours("red wine") == []
    wide.save(tmp_path / "wide")
    assert (WordGraph.load(tmp_path / "wide").adjacency != wide.adjacency).nnz == 0


def test_among_its_own_words_a_graph_stays_as_it_is(graph: WordGraph) -> None:
    same = graph.among(graph.vocabulary)
    assert np.array_equal(same.adjacency.toarray(), graph.adjacency.toarray())
    assert np.array_equal(same.degrees, graph.degrees)


def test_among_words_that_lack_one_or_have_another_order_is_refused(graph: WordGraph) -> None:
    own = list(graph.vocabulary.words)
    for others in (own[1:], [*own[:-1], "new"], own[::-1], [own[1], own[0], *own[2:]], []):
        with pytest.raises(InputError, match="all words of the graph, in the same order"):
            graph.among(Vocabulary(others))


def test_saved_graph_comes_back_and_saves_to_the_same_bytes(graph: WordGraph, tmp_path: Path) -> None:
    digest = graph.save(tmp_path / "a")
    loaded = WordGraph.load(tmp_path / "a")
    assert (loaded.adjacency != graph.adjacency).nnz == 0
    assert loaded.vocabulary == graph.vocabulary
    assert loaded.settings == graph.settings
    assert loaded.neighbours("wine") == graph.neighbours("wine")
    assert loaded.save(tmp_path / "b") == digest
    for file in ("config.json", "vocabulary.txt", "graph.safetensors"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_graph_of_citations_can_be_saved(tmp_path: Path) -> None:
    corpus = Corpus.from_texts(["a b", "b c"])
    x = csr_array(np.array([[1, 1, 0], [0, 1, 1]], np.float32))
    graph = WordGraph.from_citations(x, csr_array(np.eye(2)), corpus.vocabulary, order=(1, 0), directed=True)
    graph.save(tmp_path / "graph")
    assert WordGraph.load(tmp_path / "graph").settings == graph.settings


def test_unknown_word_and_weight_are_explained(graph: WordGraph) -> None:
    with pytest.raises(InputError, match=r"'wime' is not among the 7 words.*'wine'"):
        graph.neighbours("wime")
    with pytest.raises(InputError, match="npmi"):
        WordGraph.from_corpus(Corpus.from_texts(TEXTS), weight="mutual")  # type: ignore[arg-type]


def test_columns_must_be_the_words() -> None:
    corpus = Corpus.from_texts(["a b"])
    with pytest.raises(InputError, match="3 columns but the vocabulary has 2 words"):
        WordGraph.from_documents(csr_array(np.eye(3)), corpus.vocabulary)


def test_rules_reach_the_graph() -> None:
    rules = EdgeRules(top_k=1, diagonal="none")
    graph = WordGraph.from_corpus(Corpus.from_texts(TEXTS), rules=rules)
    assert graph.adjacency.diagonal().sum() == 0
    assert graph.settings["top_k"] == 1


def test_a_signed_graph_that_none_can_be_is_refused(tmp_path: Path) -> None:
    graph = WordGraph.from_corpus(Corpus.from_texts(["red white wine", "red wine", "white rose"]), window=2)
    graph.save(tmp_path / "graph")
    file, document = tmp_path / "graph" / "graph.safetensors", tmp_path / "graph" / "config.json"
    tensors, config = load_file(file), json.loads(document.read_text())
    data, degrees = tensors["adjacency.data"], tensors["degrees"]
    for changed in (
        {"degrees": -degrees},
        {"degrees": degrees * np.nan},
        {"degrees": degrees.astype(np.float32)},
        {"adjacency.data": data * np.arange(len(data), dtype=data.dtype)},
        {"adjacency.data": data.astype(np.int32)},
        {"adjacency.data": data.astype(np.float64) * 1e60},
        {"adjacency.indices": tensors["adjacency.indices"][::-1].copy()},
        {"adjacency.indices": tensors["adjacency.indices"].astype(np.uint32)},
    ):
        save_file({**tensors, **changed}, file)
        resigned = {**config, "files": {**config["files"], file.name: sha256(file.read_bytes()).hexdigest()}}
        document.write_text(json.dumps({**resigned, "digest": store._digest(resigned)}))
        with pytest.raises(StoreError):
            WordGraph.load(tmp_path / "graph")


def test_a_graph_that_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    graph = WordGraph.from_corpus(Corpus.from_texts(["red wine"]))
    for unsound in (replace(graph, settings={}), replace(graph, degrees=-graph.degrees)):
        with pytest.raises(InputError, match="could not be read back"):
            unsound.save(tmp_path / "graph")
    assert not (tmp_path / "graph").exists()
