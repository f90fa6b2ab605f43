"""WGCN on citations as a method: which word graph it makes, and how it attaches new documents."""

import json
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from wgcn.base.errors import InputError, InterruptWarning
from wgcn.graph.citations import attach_citations, normalize_documents
from wgcn_paper.datasets import Dataset
from wgcn_paper.methods import wgcn_citations
from wgcn_paper.methods.wgcn_citations import CitationMethod, attach_alone
from wgcn_paper.protocol import Protocol, Query

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    wgcn_citations._graphs.clear()


SMALL = {"hidden": 8, "max_epochs": 8, "learning_rate": 0.05}


def fitted(papers: Dataset, protocol: str, **settings: object) -> CitationMethod:
    method = CitationMethod(SMALL | settings, device="cpu")
    method.fit(Protocol.parse(protocol).task(papers))
    return method


# Another value for each setting that changes the model.
VALUES = {
    "power": 0.25,
    "norm": "l1",
    "citation_order": 2,
    "directed": True,
    "normalized": False,
    "hidden": 7,
    "word_activation": True,
    "residual": 0.7,
    "word_dropout": 0.7,
    "document_dropout": 0.7,
    "centred": True,
    "learning_rate": 0.7,
    "weight_decay": 0.7,
    "max_epochs": 7,
    "n_models": 2,
}


def test_every_setting_of_citations_is_used(papers: Dataset) -> None:
    assert set(CitationMethod.defaults) == {*VALUES, "hops", "alone"}
    task = Protocol("corpus").task(papers)
    settings = CitationMethod.defaults | {"max_epochs": 3, "hidden": 6}
    digests = [CitationMethod(settings, device="cpu").fit(task).digest]
    for name, value in VALUES.items():
        method = CitationMethod(settings | {name: value}, device="cpu")
        digests.append(method.fit(task).digest)
        if name not in wgcn_citations._GRAPH:
            assert method._classifier.get_params()[name] == value
    assert len(set(digests)) == len(digests)
    assert CitationMethod(settings, device="cpu").fit(task).digest == digests[0]


def test_citations_of_a_document_to_itself_are_left_out(papers: Dataset) -> None:
    assert papers.document_graph is not None
    graph = papers.document_graph.toarray()
    np.fill_diagonal(graph, 0)
    without = replace(papers, document_graph=csr_array(graph))
    embeddings = [fitted(one, "corpus")._classifier.scorer_.word_embeddings for one in (papers, without)]
    assert np.array_equal(*embeddings)


def test_labels_for_validation_are_not_trained_on(papers: Dataset) -> None:
    assert papers.validation is not None
    labels = papers.labels.copy()
    labels[papers.validation] = 1 - labels[papers.validation]
    digests = [
        CitationMethod(SMALL, device="cpu").fit(Protocol("corpus").task(one)).digest
        for one in (papers, replace(papers, labels=labels))
    ]
    assert digests[0] == digests[1]


# The word graph


def word_graph(dataset: Dataset, protocol: str = "corpus", **settings: object) -> np.ndarray:
    """Return A_vv of a fit, which is kept."""
    fitted(dataset, protocol, max_epochs=1, **settings)
    *_, graph = wgcn_citations._graphs.values()
    adjacency: np.ndarray = graph.adjacency.toarray()
    return adjacency


def by_hand(dataset: Dataset, part: Any = slice(None), *, directed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return X with rows of length 1 and A_dd of some documents; directed, from the later to the earlier ones."""
    assert dataset.features is not None
    assert dataset.document_graph is not None
    rows = dataset.features.toarray().astype(np.float64)[part]
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    links = dataset.document_graph.toarray()[part][:, part]
    np.fill_diagonal(links, 0)
    links = np.tril(links) if directed else links
    return rows, normalize_documents(csr_array(links), directed=directed).toarray().astype(np.float64)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_without_normalisation_the_graph_is_that_of_equation_6(papers: Dataset, order: int) -> None:
    x, a = by_hand(papers)
    found = word_graph(papers, normalized=False, citation_order=order)
    np.testing.assert_allclose(found, x.T @ np.linalg.matrix_power(a, order) @ x, rtol=1e-4, atol=1e-6)
    degrees = found.sum(axis=1)
    expected = found / np.sqrt(np.outer(degrees, degrees))
    np.testing.assert_allclose(word_graph(papers, citation_order=order), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("m", "n"), [(0, 1), (1, 0), (1, 1), (2, 0), (0, 2), (1, 2)])
def test_orders_of_directed_links_are_the_symmetric_part_of_equation_3(papers: Dataset, m: int, n: int) -> None:
    x, a = by_hand(papers, directed=True)
    one_way = x.T @ np.linalg.matrix_power(a, m) @ np.linalg.matrix_power(a.T, n) @ x
    found = word_graph(papers, normalized=False, directed=True, citation_order=[m, n])
    np.testing.assert_allclose(found, (one_way + one_way.T) / 2, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("m", "n"), [(0, 1), (2, 0), (1, 2)])
def test_without_directions_two_orders_are_their_sum(papers: Dataset, m: int, n: int) -> None:
    found, expected = (word_graph(papers, citation_order=order) for order in ([m, n], m + n))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_directed_orders_can_be_exchanged_but_not_split_otherwise(papers: Dataset) -> None:
    first, exchanged, even = (word_graph(papers, directed=True, citation_order=order) for order in ([2, 0], [0, 2], 2))
    np.testing.assert_allclose(first, exchanged, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(even, word_graph(papers, directed=True, citation_order=[1, 1]), rtol=1e-4, atol=1e-6)
    assert not np.allclose(first, even, rtol=1e-2)


@pytest.mark.parametrize("protocol", ["corpus", "inductive", "few-label:50%"])
def test_links_point_to_what_comes_earlier_in_the_data_set(papers: Dataset, protocol: str) -> None:
    x, a = by_hand(papers, np.sort(Protocol.parse(protocol).seen(papers)), directed=True)
    one_way = x.T @ a @ x
    found = word_graph(papers, protocol, normalized=False, directed=True, citation_order=[1, 0])
    np.testing.assert_allclose(found, (one_way + one_way.T) / 2, rtol=1e-4, atol=1e-6)


def test_a_link_that_is_listed_once_is_oriented_too(papers: Dataset) -> None:
    assert papers.document_graph is not None
    once = replace(papers, document_graph=csr_array(np.triu(papers.document_graph.toarray())))
    settings = {"directed": True, "citation_order": [2, 0]}
    assert np.array_equal(word_graph(once, **settings), word_graph(papers, **settings))


@pytest.mark.parametrize("order", [(1, 0), [1], [1, 2, 3], [1.0, 0], "1", 1.5, None])
def test_an_unusable_order_is_explained(order: object) -> None:
    with pytest.raises(InputError, match=r"citation_order must be a whole number k or a list of two"):
        CitationMethod({"citation_order": order})


def test_settings_stay_json_values(papers: Dataset) -> None:
    method = fitted(papers, "corpus", citation_order=[1, 0], directed=True)
    assert json.loads(json.dumps(method.settings)) == method.settings


def test_a_graph_that_is_not_normalised_cannot_be_centred() -> None:
    with pytest.raises(InputError, match="centred needs a normalised graph"):
        CitationMethod({"centred": True, "normalized": False})


# Attached citations


@pytest.mark.parametrize("protocol", ["corpus", "inductive"])
def test_hops_change_predictions_but_not_the_model(papers: Dataset, protocol: str) -> None:
    query = Protocol.parse(protocol).query(papers)
    truth = papers.labels[papers.test]
    plain, attached = (fitted(papers, protocol, hops=hops) for hops in (0, 2))
    assert np.array_equal(plain._classifier.scorer_.word_embeddings, attached._classifier.scorer_.word_embeddings)
    guesses = plain.predict(query), attached.predict(query)
    assert not np.array_equal(*guesses)
    assert np.mean(guesses[1] == truth) > np.mean(guesses[0] == truth)


def test_attached_citations_are_those_of_the_library(papers: Dataset) -> None:
    assert papers.document_graph is not None
    assert papers.features is not None
    method = fitted(papers, "corpus", hops=2)
    graph = papers.document_graph.toarray()
    np.fill_diagonal(graph, 0)
    rows = papers.features.toarray()
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    by_hand = attach_citations(csr_array(rows.astype(np.float32)), csr_array(graph), hops=2)[papers.test]
    expected = method._classifier.predict_proba(by_hand)
    guesses = method.predict(Protocol("corpus").query(papers))
    assert guesses.tolist() == method._classifier.classes_[expected.argmax(axis=1)].tolist()


def test_links_among_test_documents_are_unknown_to_inductive_prediction(papers: Dataset) -> None:
    assert papers.document_graph is not None
    method = fitted(papers, "inductive", hops=2)
    graph = papers.document_graph.toarray()
    graph[np.ix_(papers.test, papers.test)] = 0
    cut = replace(papers, document_graph=csr_array(graph))
    query, other = (Protocol("inductive").query(dataset) for dataset in (papers, cut))
    assert method.predict(query).tolist() == method.predict(other).tolist()


# Documents that are attached alone

small_graphs = arrays(np.int8, (7, 7), elements=st.integers(0, 1))
small_terms = arrays(np.float32, (7, 4), elements=st.integers(0, 2))


@given(small_graphs, small_terms, st.integers(0, 4), st.integers(0, 4))
def test_attaching_alone_is_attaching_one_document_at_a_time(
    graph: np.ndarray, terms: np.ndarray, hops: int, n_new: int
) -> None:
    links, between = csr_array(graph[n_new:, n_new:] - np.diag(np.diag(graph[n_new:, n_new:]))), graph[:n_new, n_new:]
    new, known = csr_array(terms[:n_new]), csr_array(terms[n_new:])
    found = attach_alone(new, csr_array(between), known, links, hops=hops)
    assert found.shape == new.shape
    assert found.dtype == np.float32
    for i in range(n_new):
        both = np.block([[np.zeros((1, 1)), between[[i]]], [np.zeros((7 - n_new, 1)), links.toarray()]])
        expected = attach_citations(new[[i]], csr_array(both), known, hops=hops)
        np.testing.assert_allclose(found[[i]].toarray(), expected.toarray(), rtol=1e-5, atol=1e-6)


def test_an_answer_to_a_document_alone_does_not_depend_on_the_query(papers: Dataset) -> None:
    query = Protocol("inductive").query(papers)
    together, alone = (fitted(papers, "inductive", hops=3, alone=alone) for alone in (False, True))
    one_by_one = [alone.predict(query.only(np.array([i])))[0] for i in range(len(query))]
    assert alone.predict(query).tolist() == one_by_one
    # Of a single document, both settings say the same; of all of them, they do not.
    assert [together.predict(query.only(np.array([i])))[0] for i in range(len(query))] == one_by_one
    assert together.predict(query).tolist() != one_by_one


def test_new_documents_that_share_a_citation_exchange_words_only_together() -> None:
    # Two new documents, with the words 0 and 1, cite one known document, with the word 2.
    new, known = csr_array(np.eye(2, 3, dtype=np.float32)), csr_array(np.eye(1, 3, k=2, dtype=np.float32))
    between = csr_array(np.ones((2, 1), np.float32))
    together = attach_citations(new, between, known, hops=2).toarray()
    alone = attach_alone(new, between, known, csr_array((1, 1)), hops=2).toarray()
    assert together[0, 1] > 0
    np.testing.assert_allclose(alone, [[0.5, 0, 0.5], [0, 0.5, 0.5]], rtol=1e-6)


def test_documents_of_the_task_are_in_its_graph_with_and_without_alone(papers: Dataset) -> None:
    query = Protocol("corpus").query(papers)
    guesses = [fitted(papers, "corpus", hops=2, alone=alone).predict(query).tolist() for alone in (False, True)]
    assert guesses[0] == guesses[1]


def test_a_query_without_links_is_answered_from_its_own_words(papers: Dataset) -> None:
    query = Protocol("inductive").query(papers)
    assert query.document_graph is not None
    apart = Query(None, query.features, csr_array(query.document_graph.shape, dtype=np.float32))
    plain, alone = (fitted(papers, "inductive", **settings) for settings in ({}, {"hops": 2, "alone": True}))
    assert plain.predict(apart).tolist() == alone.predict(apart).tolist()


# What is kept between fits, and errors


def test_graphs_of_citations_are_never_mixed(papers: Dataset) -> None:
    assert papers.features is not None
    wide = csr_array((papers.features.data, papers.features.indices, papers.features.indptr), shape=(60, 21))
    others: list[tuple[Dataset, dict[str, object]]] = [
        (replace(papers, features=wide), {}),
        (papers, {"power": 0.5}),
        (papers, {"norm": "none"}),
        (papers, {"citation_order": 3}),
        (papers, {"citation_order": [2, 1], "directed": True}),
        (papers, {"normalized": False}),
    ]
    plain = fitted(papers, "corpus")._classifier.scorer_.word_embeddings
    for dataset, settings in others:
        wgcn_citations._graphs.clear()
        alone = fitted(dataset, "corpus", **settings)._classifier.scorer_.word_embeddings
        wgcn_citations._graphs.clear()
        fitted(papers, "corpus")
        mixed = fitted(dataset, "corpus", **settings)._classifier.scorer_.word_embeddings
        assert np.array_equal(alone, mixed)
        assert np.array_equal(fitted(papers, "corpus")._classifier.scorer_.word_embeddings, plain)
        assert len(wgcn_citations._graphs) == 2


def test_graphs_are_shared_by_labels_and_seeds(papers: Dataset) -> None:
    for seed in range(3):
        CitationMethod(SMALL, seed=seed, device="cpu").fit(Protocol("few-label", 0.5).task(papers, seed))
    assert len(wgcn_citations._graphs) == 1


def test_unknown_setting_is_one_error() -> None:
    with pytest.raises(InputError, match=r"^wgcn-citations has no setting colour\. It has: "):
        CitationMethod({"colour": "red"})


def test_an_interrupted_training_is_not_a_result(papers: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        warnings.warn("Ctrl-C ended the training.", InterruptWarning, stacklevel=2)

    monkeypatch.setattr("wgcn.estimators.network.WGCNNetworkClassifier.fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        CitationMethod(device="cpu").fit(Protocol("corpus").task(papers))
