import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array, random_array

from wgcn.datasets import Dataset
from wgcn.errors import InputError
from wgcn.features import document_terms
from wgcn.graph import WordGraph
from wgcn.graph.association import EdgeRules
from wgcn.graph.citations import from_citations, normalize_documents
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import VocabularyRules

graphs = arrays(np.int8, (6, 6), elements=st.integers(0, 1))
terms = arrays(np.int8, (6, 4), elements=st.integers(0, 2))
ALL = EdgeRules(threshold=-1.0)


def dense_normalised(a: np.ndarray, directed: bool) -> np.ndarray:
    a = a.astype(float)
    a = (a if directed else np.maximum(a, a.T)) + np.eye(len(a))
    return a / np.sqrt(np.outer(a.sum(axis=1), a.sum(axis=0)))


@given(graphs, st.booleans())
def test_normalisation_equals_the_dense_formula(a: np.ndarray, directed: bool) -> None:
    got = normalize_documents(csr_array(a), directed=directed).toarray()
    np.testing.assert_allclose(got, dense_normalised(a, directed), rtol=1e-5)


@given(graphs, terms, st.integers(0, 4))
def test_undirected_order_is_equation_4(a: np.ndarray, x: np.ndarray, k: int) -> None:
    dense = dense_normalised(a, directed=False)
    expected = x.T @ np.linalg.matrix_power(dense, k) @ x
    got = from_citations(csr_array(x), csr_array(a), order=k, rules=ALL)
    np.testing.assert_allclose(got.toarray(), expected, rtol=1e-4, atol=1e-6)
    assert (got != got.T).nnz == 0


@given(graphs, terms, st.integers(0, 2), st.integers(0, 2))
def test_directed_orders_are_the_symmetric_part_of_equation_3(a: np.ndarray, x: np.ndarray, m: int, n: int) -> None:
    dense = dense_normalised(a, directed=True)
    one_way = x.T @ np.linalg.matrix_power(dense, m) @ np.linalg.matrix_power(dense.T, n) @ x
    got = from_citations(csr_array(x), csr_array(a), order=(m, n), directed=True, rules=ALL)
    np.testing.assert_allclose(got.toarray(), (one_way + one_way.T) / 2, rtol=1e-4, atol=1e-6)


def test_order_zero_is_the_product_of_equation_2() -> None:
    x = csr_array(random_array((8, 5), density=0.5, rng=np.random.default_rng(0)), dtype=np.float32)
    got = from_citations(x, csr_array((8, 8)), order=0, rules=ALL)
    np.testing.assert_allclose(got.toarray(), (x.T @ x).toarray(), rtol=1e-5)


def test_docs_corpus_links_words_of_linked_documents(docs: Dataset) -> None:
    assert docs.texts is not None
    corpus = Corpus.from_texts(docs.texts, rules=VocabularyRules(min_df=5, max_df=0.3))
    x = document_terms(corpus)
    graph = WordGraph.from_citations(x, docs.document_graph, corpus.vocabulary, order=1)
    apart = WordGraph.from_citations(x, docs.document_graph, corpus.vocabulary, order=0)
    assert graph.info().edges > apart.info().edges
    assert graph.settings["weight"] == "citations"


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.ones((3, 2)), "as many rows as columns"),
        (-np.ones((3, 3)), "not negative"),
        (np.full((3, 3), np.nan), "finite"),
        (np.ones((4, 4)), "3 documents in document_terms but 4"),
    ],
)
def test_unusable_document_graphs_are_explained(graph: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_citations(csr_array(np.eye(3)), csr_array(graph))


def test_negative_order_is_refused() -> None:
    with pytest.raises(InputError, match="order must not be negative"):
        from_citations(csr_array(np.eye(3)), csr_array(np.eye(3)), order=-1)
