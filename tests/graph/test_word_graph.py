from itertools import combinations
from operator import attrgetter
from pathlib import Path

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from wgcn import Corpus, EdgeRules, VocabularyRules, WordGraph
from wgcn.errors import InputError
from wgcn.graph.plot import plot_neighbourhood
from wgcn.text.docs_corpus import DocsCorpus
from wgcn.text.vocabulary import Vocabulary

TEXTS = ["red wine and bread", "white wine and bread", "red rose", "white rose", "lonely"] * 3


@pytest.fixture
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


def test_rare_neighbours_are_left_out_unless_asked_for() -> None:
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
def test_among_more_words_the_edges_are_the_same(data: st.DataObject) -> None:
    graph = WordGraph.from_corpus(Corpus.from_texts(TEXTS), window=2, weight="pmi")
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


def test_networkx_form_has_the_same_edges(graph: WordGraph) -> None:
    converted = graph.to_networkx()
    assert set(converted.nodes) == set(graph.vocabulary)
    np.testing.assert_allclose(
        networkx.to_numpy_array(converted, nodelist=list(graph.vocabulary)), graph.adjacency.toarray()
    )


def test_edge_index_form_has_the_same_edges(graph: WordGraph) -> None:
    index, weight = graph.to_edge_index()
    assert index.dtype == torch.int64
    dense = torch.sparse_coo_tensor(index, weight, graph.adjacency.shape, check_invariants=True).to_dense().numpy()
    np.testing.assert_array_equal(dense, graph.adjacency.toarray())


def test_scipy_form_is_a_copy(graph: WordGraph) -> None:
    copy = graph.to_scipy()
    copy.data[:] = 0
    assert graph.adjacency.data.any()


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


@pytest.mark.parametrize(("ending", "magic"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_picture_is_the_same_every_time(graph: WordGraph, tmp_path: Path, ending: str, magic: bytes) -> None:
    pictures = [tmp_path / f"{name}{ending}" for name in "ab"]
    for picture in pictures:
        plot_neighbourhood(graph, "wine", picture)
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    assert pictures[0].read_bytes().startswith(magic)


def test_svg_picture_names_the_neighbours(graph: WordGraph, tmp_path: Path) -> None:
    plot_neighbourhood(graph, "wine", tmp_path / "wine.svg")
    picture = (tmp_path / "wine.svg").read_text()
    for neighbour in graph.neighbours("wine"):
        assert f">{neighbour.word}<" in picture


def test_a_word_with_markup_is_drawn_as_it_is(tmp_path: Path) -> None:
    corpus = Corpus.from_texts(["x"], tokenizer=lambda text: ["$\\bad{", "<b>", "100%"])
    plot_neighbourhood(WordGraph.from_corpus(corpus), "$\\bad{", tmp_path / "x.svg")
    assert "&lt;b&gt;" in (tmp_path / "x.svg").read_text()


@pytest.mark.parametrize(
    ("word", "name", "message"),
    [("wine", "wine.bmp", r"ends in \.png"), ("lonely", "l.png", "no neighbours"), ("nothing", "n.png", "not among")],
)
def test_a_picture_that_cannot_be_drawn_leaves_no_file(
    graph: WordGraph, tmp_path: Path, word: str, name: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        plot_neighbourhood(graph, word, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_rules_reach_the_graph() -> None:
    rules = EdgeRules(top_k=1, diagonal="none")
    graph = WordGraph.from_corpus(Corpus.from_texts(TEXTS), rules=rules)
    assert graph.adjacency.diagonal().sum() == 0
    assert graph.settings["top_k"] == 1


# Several windows

WINDOWS = st.lists(st.sampled_from([2, 3, 5, 8, 1000]), min_size=1, max_size=3, unique=True)
SEQUENCES = st.lists(st.lists(st.sampled_from("abcdef"), max_size=9), min_size=1, max_size=10).filter(any)


def dense_pmi(sequences: list[list[str]], words: tuple[str, ...], window: int, min_count: int) -> np.ndarray:
    """Return the normalised graph of one window: look at every window, one by one."""
    pairs, n_windows = np.zeros((len(words), len(words))), 0
    for sequence in filter(None, sequences):
        for start in range(max(len(sequence) - window, 0) + 1):
            inside = sorted({words.index(word) for word in sequence[start : start + window]})
            n_windows += 1
            pairs[inside, inside] += 1
            for i, j in combinations(inside, 2):
                pairs[i, j] += 1
                pairs[j, i] += 1
    own = pairs.diagonal()
    with np.errstate(divide="ignore"):
        weights = np.log(pairs * n_windows / np.outer(own, own))
    kept = (pairs >= min_count) & (weights > 1e-12)
    weights = np.where(kept, weights, 0)
    np.fill_diagonal(weights, np.log(n_windows / own))
    degrees = weights.sum(axis=1)
    scale = np.divide(1, np.sqrt(degrees), out=np.zeros(len(words)), where=degrees > 0)
    return scale[:, None] * weights * scale


@given(SEQUENCES, WINDOWS, st.integers(1, 2))
def test_the_mean_of_graphs_is_that_of_dense_ones(sequences: list[list[str]], windows: list[int], least: int) -> None:
    corpus = Corpus.from_texts(map(" ".join, sequences), tokenizer=str.split)
    rules = EdgeRules(min_count=least)
    graphs = [WordGraph.from_corpus(corpus, window=window, weight="pmi", rules=rules) for window in windows]
    mean = WordGraph.mean_of(graphs)
    words = corpus.vocabulary.words
    expected = np.mean([dense_pmi(sequences, words, window, least) for window in windows], axis=0)
    np.testing.assert_allclose(mean.adjacency.toarray(), expected, atol=1e-6)
    np.testing.assert_allclose(mean.degrees, np.mean([graph.degrees for graph in graphs], axis=0))
    assert isinstance(mean.adjacency, csr_array)
    assert mean.adjacency.dtype == np.float32
    assert mean.adjacency.has_canonical_format
    assert np.array_equal(mean.adjacency.toarray(), mean.adjacency.toarray().T)
    # An edge of any of them is an edge of the mean, and there are no others.
    union = np.any([graph.adjacency.toarray() != 0 for graph in graphs], axis=0)
    assert np.array_equal(mean.adjacency.toarray() != 0, union)
    assert mean.adjacency.nnz == union.sum()
    assert mean.settings["window"] == (windows if len(windows) > 1 else windows[0])


def test_the_mean_of_graphs_is_saved_and_has_neighbours(tmp_path: Path) -> None:
    corpus = Corpus.from_texts(TEXTS)
    mean = WordGraph.mean_of([WordGraph.from_corpus(corpus, window=window, weight="pmi") for window in (2, 1000)])
    mean.save(tmp_path / "g")
    loaded = WordGraph.load(tmp_path / "g")
    assert loaded.settings == mean.settings
    assert loaded.settings["window"] == [2, 1000]
    assert (loaded.adjacency != mean.adjacency).nnz == 0
    # In windows of two tokens, red and bread never meet.
    assert {n.word for n in mean.neighbours("red", min_count=0)} >= {"wine", "rose", "bread"}
    assert {"window": [2, 1000]}.items() <= mean.info().settings.items()


def test_graphs_of_other_words_or_rules_have_no_mean(graph: WordGraph) -> None:
    with pytest.raises(InputError, match="no mean of no graphs"):
        WordGraph.mean_of([])
    others = Corpus.from_texts(["other words"])
    with pytest.raises(InputError, match="different words"):
        WordGraph.mean_of([graph, WordGraph.from_corpus(others, window=2, weight="pmi")])
    for changed in ({"weight": "npmi"}, {"normalized": False}, {"rules": EdgeRules(min_count=2)}):
        other = WordGraph.from_corpus(Corpus.from_texts(TEXTS), **{"window": 2, "weight": "pmi", **changed})
        with pytest.raises(InputError, match="only their windows may differ"):
            WordGraph.mean_of([graph, other])
    assert WordGraph.mean_of([graph]) is graph
