"""GIN's equation; what it shares with the other networks on citations is in test_gcn."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from wgcn_paper.methods.gin import GINMethod
from wgcn_paper.protocol import Task


def made(n_documents: int = 40) -> Task:
    rng = np.random.default_rng(5)
    features = rng.random((n_documents, 12)) * (rng.random((n_documents, 12)) < 0.4)
    features[0] = 0
    links = np.triu(rng.random((n_documents, n_documents)) < 0.1, 1)
    labels = np.array([i % 3 if i % 4 else None for i in range(n_documents)], object)
    graph = csr_array((links | links.T).astype(np.float32))
    return Task(None, csr_array(features.astype(np.float32)), labels, np.empty(0, np.int64), graph)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_it_sums_over_neighbours_and_applies_a_perceptron(layers: int) -> None:
    task = made()
    assert task.features is not None
    assert task.document_graph is not None
    method = GINMethod({"layers": layers, "hidden": 6, "max_epochs": 15}, device="cpu")
    method.fit(task)
    state = {name: value.numpy() for name, value in method.network.state_dict().items()}
    rows = task.features.toarray()
    rows = rows / np.maximum(rows.sum(1, keepdims=True), 1e-9)
    graph = task.document_graph.toarray()
    for i in range(layers):
        epsilon = state[f"layers.{i}.eps"]
        assert epsilon != 0
        summed = (1 + epsilon) * rows + graph @ rows
        # The first layer has its first weights before the sum, so what is in the module begins one part later.
        first = state["first.weight"] if i == 0 else state[f"layers.{i}.nn.0.weight"]
        second = f"layers.{i}.nn.{1 if i == 0 else 2}"
        hidden = np.maximum(summed @ first.T, 0)
        rows = np.maximum(hidden @ state[f"{second}.weight"].T + state[f"{second}.bias"], 0)
    expected = rows @ state["last.weight"].T + state["last.bias"]
    method.network.eval()
    with torch.no_grad():
        found = method._query_logits(task.documents(np.arange(40)))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_the_number_of_neighbours_counts() -> None:
    """A mean over neighbours could not tell these kinds apart: all rows are the same."""
    n_leaves = np.array([1, 4] * 15)
    owners = np.repeat(np.arange(30), n_leaves)
    n = 30 + len(owners)
    leaves = np.arange(30, n)
    graph = csr_array((np.ones(2 * len(owners), np.float32), (np.r_[owners, leaves], np.r_[leaves, owners])), (n, n))
    labels = np.full(n, None, object)
    labels[:20] = n_leaves[:20]
    task = Task(None, csr_array(np.ones((n, 2), np.float32)), labels, np.empty(0, np.int64), graph)
    method = GINMethod({"layers": 1, "hidden": 8, "max_epochs": 100, "validation_fraction": 0.0}, device="cpu")
    method.fit(task)
    assert method.predict(task.documents(np.arange(20, 30))).tolist() == n_leaves[20:].tolist()
