"""SGC's equation; what it shares with the other networks on citations is in test_gcn."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from wgcn_paper.methods.sgc import SGCMethod
from wgcn_paper.protocol import Query, Task


def made() -> Task:
    rng = np.random.default_rng(6)
    features = rng.random((40, 12)) * (rng.random((40, 12)) < 0.4)
    links = np.triu(rng.random((40, 40)) < 0.1, 1)
    graph = (links | links.T).astype(np.float32)
    graph[3, 3] = 1
    labels = np.array([i % 3 if i % 4 else None for i in range(40)], object)
    return Task(None, csr_array(features.astype(np.float32)), labels, np.empty(0, np.int64), csr_array(graph))


def smoothed(features: np.ndarray, graph: np.ndarray, hops: int) -> np.ndarray:
    graph = graph.copy()
    np.fill_diagonal(graph, 1)
    roots = np.sqrt(graph.sum(1))
    rows = features / np.maximum(features.sum(1, keepdims=True), 1e-9)
    for _ in range(hops):
        rows = graph / roots[:, None] / roots @ rows
    return rows


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_it_is_a_linear_model_of_smoothed_features(hops: int) -> None:
    task = made()
    assert task.features is not None
    assert task.document_graph is not None
    method = SGCMethod({"hops": hops, "max_epochs": 10}, device="cpu")
    method.fit(task)
    weight, bias = (method.network.state_dict()[name].numpy() for name in ("lin.weight", "lin.bias"))
    expected = smoothed(task.features.toarray(), task.document_graph.toarray(), hops) @ weight.T + bias
    method.network.eval()
    with torch.no_grad():
        found = method._query_logits(task.documents(np.arange(40)))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_new_document_is_smoothed_with_its_neighbours() -> None:
    task = made()
    assert task.features is not None
    assert task.document_graph is not None
    method = SGCMethod({"max_epochs": 10}, device="cpu")
    method.fit(task)
    new = np.zeros((1, 12), np.float32)
    new[0, 2] = 4
    links = np.zeros((1, 40), np.float32)
    links[0, [1, 7]] = 1
    rows = np.concatenate([task.features.toarray(), new])
    graph = np.block([[task.document_graph.toarray(), links.T], [links, np.zeros((1, 1))]])
    weight, bias = (method.network.state_dict()[name].numpy() for name in ("lin.weight", "lin.bias"))
    expected = smoothed(rows, graph, 2)[-1:] @ weight.T + bias
    with torch.no_grad():
        found = method._query_logits(Query(None, csr_array(new), csr_array(links)))
        again = method._query_logits(task.documents(np.arange(40)))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    plain = smoothed(task.features.toarray(), task.document_graph.toarray(), 2) @ weight.T + bias
    np.testing.assert_allclose(again, plain, atol=1e-5)


def test_all_epochs_run_and_the_last_weights_are_kept() -> None:
    fits = [SGCMethod({"max_epochs": n}, device="cpu").fit(made()) for n in (99, 100)]
    assert [fit.epochs for fit in fits] == [99, 100]
    assert fits[0].digest != fits[1].digest
    assert SGCMethod(device="cpu").fit(made()).epochs == 100
