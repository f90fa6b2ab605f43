"""Text-GCN: its equation, what it learns, and that only content and seed decide."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.sparse import csr_array, eye_array

from wgcn.base.errors import InputError
from wgcn.network.module import sparse_matrix
from wgcn_paper.methods import document_word_graph as graph_module
from wgcn_paper.methods.document_word_graph import GRAPH
from wgcn_paper.methods.network import TRAINING
from wgcn_paper.methods.text_gcn import TextGCN, TextGCNMethod
from wgcn_paper.protocol import Query, Task

SMALL = {"stop_words": False, "min_count": 1, "hidden": 8, "max_epochs": 30}


def made_texts(n: int) -> tuple[tuple[str, ...], npt.NDArray[np.object_]]:
    """Two kinds of documents with words of their own and words that they share."""
    rng = np.random.default_rng(5)
    own = (["wine", "grape", "merlot", "cork", "cellar"], ["car", "wheel", "engine", "road", "driver"])
    shared = ["and", "the", "old", "new", "fast", "it's"]
    truth = np.arange(n) % 2
    texts = [" ".join([*rng.choice(own[kind], 4), *rng.choice(shared, 4)]) for kind in truth]
    return tuple(texts), np.array(["drink", "drive"], object)[truth]


TEXTS, TRUTH = made_texts(40)
LABELS = np.where(np.arange(40) < 20, TRUTH, None)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def few_stop_words(monkeypatch: pytest.MonkeyPatch) -> None:
    graph_module._graphs.clear()
    monkeypatch.setattr("wgcn_paper.methods.preparation.stop_words", lambda: frozenset({"and", "the"}))


def fitted(task: Task = TASK, seed: int = 0, **settings: Any) -> TextGCNMethod:
    method = TextGCNMethod(SMALL | settings, seed, "cpu")
    method.fit(task)
    return method


def digest(**settings: Any) -> str | None:
    return TextGCNMethod(SMALL | settings, 0, "cpu").fit(TASK).digest


def test_it_learns_what_has_no_label() -> None:
    method = TextGCNMethod(SMALL | {"max_epochs": 60}, 0, "cpu")
    fit = method.fit(TASK)
    places = np.arange(20, 40)
    assert np.mean(method.predict(TASK.documents(places)) == TRUTH[places]) >= 0.95
    assert fit.validation_accuracy == 1
    assert fit.epochs is not None
    assert fit.epochs <= 60


def test_logits_and_gradients_are_those_of_the_equation() -> None:
    method = fitted(input_dropout=0.0, dropout=0.0, max_epochs=3)
    network = method.network
    assert isinstance(network, TextGCN)
    a = torch.from_numpy(method._graph.adjacency.toarray())
    w0, w1 = (weights.detach().clone().requires_grad_() for weights in (network.node_weights, network.class_weights))
    expected = a @ torch.relu(a @ torch.eye(len(a)) @ w0) @ w1
    found = network(method._adjacency)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    network.zero_grad()
    for logits in (found, expected):
        torch.log_softmax(logits, 1)[:, 0].sum().backward()
    torch.testing.assert_close(network.node_weights.grad, w0.grad, atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(network.class_weights.grad, w1.grad, atol=1e-6, rtol=1e-4)


def test_input_dropout_drops_whole_nodes_and_dropout_single_entries() -> None:
    own = sparse_matrix(csr_array(eye_array(200, dtype=np.float32)), symmetric=True)
    nodes = TextGCN(200, 3, hidden=16, input_dropout=0.5, dropout=0.0)
    whole = nodes.eval()(own)
    ratio = nodes.train()(own) / whole
    torch.testing.assert_close(ratio, ratio[:, :1].expand(-1, 3).round(), atol=1e-4, rtol=0)
    assert set(ratio.round().int().flatten().tolist()) == {0, 2}
    entries = TextGCN(200, 16, hidden=16, input_dropout=0.0, dropout=0.5)
    with torch.no_grad():
        entries.class_weights.copy_(torch.eye(16))
        entries.node_weights.abs_()
    ratio = (entries.train()(own) / entries.eval()(own)).round().int()
    assert set(ratio.flatten().tolist()) == {0, 2}
    assert len(set(ratio.sum(1).tolist())) > 2


def test_the_order_of_documents_does_not_matter() -> None:
    method = fitted()
    before = method.predict(TASK.documents(np.arange(40)))
    order = np.random.default_rng(1).permutation(40)
    moved = replace(TASK, texts=tuple(TEXTS[i] for i in order), labels=LABELS[order])
    assert fitted(moved).predict(moved.documents(np.arange(40))).tolist() == before[order].tolist()
    assert TextGCNMethod(SMALL, 0, "cpu").fit(moved).digest == digest()
    assert method.predict(TASK.documents(order)).tolist() == before[order].tolist()


def test_same_seed_same_model() -> None:
    assert digest() == digest()
    assert TextGCNMethod(SMALL, 1, "cpu").fit(TASK).digest != digest()


OTHER = {
    "learning_rate": 0.1,
    "weight_decay": 0.1,
    "batch_size": 5,
    "max_epochs": 7,
    "patience": 1,
    "stopping": "accuracy",
    "validation_fraction": 0.1,
    "tokenizer": "words",
    "stop_words": True,
    "min_count": 15,
    "window": 3,
    "hidden": 5,
    "input_dropout": 0.1,
    "dropout": 0.1,
}


@pytest.mark.parametrize("setting", OTHER)
def test_every_setting_is_used(setting: str) -> None:
    assert set(TextGCNMethod.defaults) == {*TRAINING, *GRAPH, "hidden", "input_dropout", "dropout"} == set(OTHER)
    noisy = {"learning_rate": 2.0, "max_epochs": 20, "patience": 4, "validation_fraction": 0.4}  # so that it is stopped
    assert digest(**noisy) != digest(**noisy | {setting: OTHER[setting]})


def test_documents_that_have_little_to_say() -> None:
    texts = ("", "hapax", *TEXTS, "zebra")
    labels = np.array(["drink", None, *LABELS, "animal"], object)
    task = Task(texts, None, labels, np.empty(0, np.int64), None)
    method = fitted(task, min_count=2)
    guesses = method.predict(task.documents(np.arange(len(texts))))
    assert set(guesses) <= {"drink", "drive", "animal"}
    assert method.classes.tolist() == ["animal", "drink", "drive"]
    assert np.mean(guesses[2:-1] == TRUTH) >= 0.9


def test_new_documents_are_refused() -> None:
    with pytest.raises(InputError, match=r"not seen.*nodes of the graph"):
        fitted(max_epochs=1).predict(Query(("old wine",), None, None))
    assert TextGCNMethod.protocols == ("corpus",)
    assert TextGCNMethod.why_not
