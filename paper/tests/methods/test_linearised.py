"""The linearised models against their formulas: eq. 8, 9 and 11, and how eq. 8 and 10 meet."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from wgcn.base.errors import InputError
from wgcn.graph import WordGraph
from wgcn.graph.citations import normalize_documents
from wgcn_paper.methods.document_word_graph import document_word_graph
from wgcn_paper.methods.linearised_text_gcn import LinearisedTextGCNMethod
from wgcn_paper.methods.linearised_wgcn import LinearisedBaseline, LinearisedWGCNMethod
from wgcn_paper.protocol import Query, Task

PLAIN = {"stop_words": False, "min_count": 1, "max_epochs": 12}


def texts() -> Task:
    rng = np.random.default_rng(3)
    words = {"a": "red wine grape vine", "b": "fast car road wheel"}
    drawn = [
        " ".join(rng.choice([*words[label].split(), "the", "with", f"word{i % 5}"], 8))
        for i, label in enumerate("ab" * 20)
    ]
    labels = np.array([label if i % 4 else None for i, label in enumerate("ab" * 20)], object)
    return Task(tuple(drawn), None, labels, np.empty(0, np.int64), None)


def papers() -> Task:
    rng = np.random.default_rng(4)
    features = rng.random((40, 9)) * (rng.random((40, 9)) < 0.5) + np.eye(40, 9)
    links = np.triu(rng.random((40, 40)) < 0.1, 1)
    labels = np.array([i % 3 if i % 4 else None for i in range(40)], object)
    graph = csr_array((links | links.T).astype(np.float32))
    return Task(None, csr_array(features.astype(np.float32)), labels, np.empty(0, np.int64), graph)


def logits(method: LinearisedBaseline, query: Query) -> np.ndarray:
    with torch.no_grad():
        return method._query_logits(query).numpy()


def fitted(kind: type[LinearisedBaseline], task: Task, **settings: object) -> tuple[LinearisedBaseline, np.ndarray]:
    """A method and X of its task, in the order of the task."""
    method = kind({**PLAIN, **settings}, device="cpu")
    method.fit(task)
    return method, method._rows.toarray()[method._rank]


def weights(method: LinearisedBaseline) -> tuple[np.ndarray, np.ndarray]:
    return method.network.weights.detach().numpy(), method.network.bias.detach().numpy()


@pytest.mark.parametrize("order", [0, 1, 2])
def test_equation_8_is_documents_times_powers_of_the_graph_times_weights(order: int) -> None:
    task = texts()
    method, x = fitted(LinearisedWGCNMethod, task, order=order)
    assert method._corpus is not None
    graph = WordGraph.from_corpus(method._corpus, window=20, weight="pmi").adjacency.toarray()
    w, b = weights(method)
    expected = x @ np.linalg.matrix_power(graph, order) @ w + b
    np.testing.assert_allclose(x.sum(1), 1, atol=1e-5)
    np.testing.assert_allclose(logits(method, task.documents(np.arange(40))), expected, atol=1e-5)


@pytest.mark.parametrize("order", [0, 1, 3])
@pytest.mark.parametrize("normalized", [True, False])
def test_equation_11_has_the_citations_in_the_word_graph(order: int, normalized: bool) -> None:
    task = papers()
    assert task.document_graph is not None
    method, x = fitted(LinearisedWGCNMethod, task, citation_order=order, normalized=normalized)
    between = np.linalg.matrix_power(normalize_documents(task.document_graph).toarray(), order)
    graph = x.T @ between @ x
    if normalized:
        roots = np.sqrt(graph.sum(1))
        graph = graph / roots[:, None] / roots
    w, b = weights(method)
    found = logits(method, task.documents(np.arange(40)))
    np.testing.assert_allclose(found, x @ graph @ w + b, atol=1e-4)
    # Its second line: the similarities of documents, then the citations.
    if not normalized:
        np.testing.assert_allclose(found, (x @ x.T) @ between @ x @ w + b, atol=1e-4)


def test_with_equation_2_equation_8_is_equation_10_on_similarities_of_documents() -> None:
    method, x = fitted(LinearisedWGCNMethod, papers(), citation_order=0, normalized=False, order=2)
    w, b = weights(method)
    found = logits(method, papers().documents(np.arange(40)))
    np.testing.assert_allclose(found, np.linalg.matrix_power(x @ x.T, 2) @ x @ w + b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("order", [1, 2])
def test_equation_9_is_a_power_of_the_graph_of_documents_and_words(order: int) -> None:
    task = texts()
    method, x = fitted(LinearisedTextGCNMethod, task, order=order)
    graph = document_word_graph(task, method.settings).adjacency.toarray()
    nodes = np.concatenate([x, np.eye(x.shape[1])])
    w, b = weights(method)
    expected = (np.linalg.matrix_power(graph, order) @ nodes @ w)[:40] + b
    np.testing.assert_allclose(logits(method, task.documents(np.arange(40))), expected, atol=1e-5)


def test_equation_9_has_citations_where_there_are_some() -> None:
    task = papers()
    assert task.document_graph is not None
    method, x = fitted(LinearisedTextGCNMethod, task, order=2)
    similar = x.T @ x
    roots = np.sqrt(similar.sum(1))
    joined = np.block([[task.document_graph.toarray() + np.eye(40), x], [x.T, similar / roots[:, None] / roots]])
    roots = np.sqrt(joined.sum(1))
    graph = joined / roots[:, None] / roots
    w, b = weights(method)
    expected = (graph @ graph @ np.concatenate([x, np.eye(9)]) @ w)[:40] + b
    np.testing.assert_allclose(logits(method, task.documents(np.arange(40))), expected, atol=1e-4)


@pytest.mark.parametrize("kind", [LinearisedWGCNMethod, LinearisedTextGCNMethod])
def test_they_learn_and_the_order_of_documents_changes_nothing(kind: type[LinearisedBaseline]) -> None:
    task = texts()
    settings = {**PLAIN, "max_epochs": 60}
    first, second = kind(settings, device="cpu"), kind(settings, device="cpu")
    digest = first.fit(task).digest
    turned = Task(task.texts[::-1] if task.texts else None, None, task.labels[::-1], task.validation, None)
    assert second.fit(turned).digest == digest
    guesses = first.predict(task.documents(np.arange(40)))
    assert np.mean(guesses == np.array(list("ab" * 20))) > 0.9


def test_a_new_document_needs_words_alone_in_equation_8_and_is_refused_in_equation_9() -> None:
    task = texts()
    new = Query(("wine and vine and unheard", "wheel of a car", ""), None, None)
    method, _ = fitted(LinearisedWGCNMethod, task, max_epochs=60)
    assert method.predict(new)[:2].tolist() == ["a", "b"]
    other, _ = fitted(LinearisedTextGCNMethod, task)
    with pytest.raises(InputError, match="linearised-text-gcn cannot classify documents that it has not seen"):
        other.predict(new)
