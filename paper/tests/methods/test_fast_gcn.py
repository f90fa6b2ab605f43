"""FastGCN: its equations, its samples, and citations as well as texts."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor

from wgcn.base.errors import InputError
from wgcn.network.module import sparse_tensor
from wgcn_paper.datasets import Dataset
from wgcn_paper.methods import document_word_graph as graph_module
from wgcn_paper.methods.document_word_graph import GRAPH
from wgcn_paper.methods.fast_gcn import FastGCN, FastGCNMethod, Rows, gather_rows, sample_columns
from wgcn_paper.methods.network import TRAINING
from wgcn_paper.protocol import Protocol, Query, Task

TEXT = {"stop_words": False, "min_count": 1, "hidden": 8, "weight_decay": 0.0, "max_epochs": 15, "samples": 12}
CITATIONS = {"hidden": 8, "learning_rate": 0.03, "max_epochs": 40}


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def few_stop_words(monkeypatch: pytest.MonkeyPatch) -> None:
    graph_module._graphs.clear()
    monkeypatch.setattr("wgcn_paper.methods.preparation.stop_words", lambda: frozenset({"and", "the"}))


# Sampling

rng = np.random.default_rng(3)
MATRIX = csr_array((rng.random((30, 25)) < 0.3) * rng.random((30, 25)), dtype=np.float32)
MATRIX.data[: MATRIX.indptr[1]] = 0  # a row without entries
MATRIX.eliminate_zeros()
DENSE = torch.from_numpy(rng.random((25, 4)).astype(np.float32))
IMPORTANCE = torch.from_numpy(csr_array(MATRIX.power(2)).sum(axis=0))


def as_dense(rows: Rows, n_columns: int) -> npt.NDArray[np.float32]:
    parts = [part.numpy() for part in (rows.values, rows.columns, rows.offsets)]
    dense: npt.NDArray[np.float32] = csr_array(tuple(parts), shape=(len(parts[2]) - 1, n_columns)).toarray()
    return dense


@pytest.mark.parametrize("wanted", [[4, 0, 29, 4], [0], [], list(range(30))])
def test_rows_are_gathered_in_any_order(wanted: list[int]) -> None:
    found = gather_rows(sparse_tensor(MATRIX), torch.tensor(wanted, dtype=torch.int64))
    np.testing.assert_array_equal(as_dense(found, 25), MATRIX.toarray()[wanted])


def test_rows_times_dense_and_its_gradient() -> None:
    places = torch.tensor([7, 0, 3, 7])
    dense, same = (DENSE.clone().requires_grad_() for _ in range(2))
    found = gather_rows(sparse_tensor(MATRIX), places) @ dense
    expected = torch.from_numpy(MATRIX.toarray())[places] @ same
    torch.testing.assert_close(found, expected)
    for product in (found, expected):
        (product**2).sum().backward()
    torch.testing.assert_close(dense.grad, same.grad)


def test_sampled_values_are_those_of_the_estimate() -> None:
    rows = gather_rows(sparse_tensor(MATRIX), torch.tensor([1, 2, 0, 5]))
    dense = MATRIX.toarray()[[1, 2, 0, 5]]
    linked = np.flatnonzero(dense.any(axis=0))
    q = np.where(dense.any(axis=0), IMPORTANCE.numpy(), 0).astype(np.float64)
    q /= q.sum()
    torch.manual_seed(4)
    draws = linked[torch.multinomial(torch.from_numpy(q[linked]), 9, replacement=True).numpy()]
    expected = np.zeros_like(dense)
    for u in draws:
        expected[:, u] += dense[:, u] / (9 * q[u])
    torch.manual_seed(4)
    sampled, drawn = sample_columns(rows, IMPORTANCE, 9)
    assert drawn.tolist() == sorted(set(draws.tolist()))
    assert len(drawn) < 9  # one was drawn twice, and counts twice
    np.testing.assert_allclose(as_dense(sampled, len(drawn)), expected[:, drawn.numpy()], rtol=1e-5)


def test_the_estimate_is_unbiased() -> None:
    rows = gather_rows(sparse_tensor(MATRIX), torch.tensor([1, 2, 0, 5]))
    exact = rows @ DENSE

    def estimate() -> Tensor:
        sampled, drawn = sample_columns(rows, IMPORTANCE, 6)
        return sampled @ DENSE[drawn]

    torch.manual_seed(0)
    estimates = torch.stack([estimate() for _ in range(600)])
    # Four standard errors, at most 0.4, where a single estimate is off by more than 1.
    bound = 4 * estimates.std(0) / len(estimates) ** 0.5 + 1e-6
    assert ((estimates.mean(0) - exact).abs() <= bound).all()
    assert bound.max() < 0.4
    assert estimates.std(0).max() > 1


def test_more_samples_than_neighbours_give_the_exact_sum() -> None:
    rows = gather_rows(sparse_tensor(MATRIX), torch.tensor([1, 2, 0, 5]))
    n_linked = len(torch.unique(rows.columns))
    for n_samples in (n_linked, 1000):
        sampled, drawn = sample_columns(rows, IMPORTANCE, n_samples)
        assert len(drawn) == n_linked
        torch.testing.assert_close(sampled @ DENSE[drawn], rows @ DENSE)


# Texts


def made_texts(n: int) -> tuple[tuple[str, ...], npt.NDArray[np.object_]]:
    """Two kinds of documents with words of their own and words that they share."""
    rng = np.random.default_rng(5)
    own = (["wine", "grape", "merlot", "cork", "cellar"], ["car", "wheel", "engine", "road", "driver"])
    shared = ["and", "the", "old", "new", "fast", "it's"]
    truth = np.arange(n) % 2
    texts = [" ".join([*rng.choice(own[kind], 4), *rng.choice(shared, 4)]) for kind in truth]
    return tuple(texts), np.array(["drink", "drive"], object)[truth]


TEXTS, TRUTH = made_texts(60)
TASK = Task(TEXTS, None, np.where(np.arange(60) < 40, TRUTH, None), np.empty(0, np.int64), None)


def fitted(task: Task, seed: int = 0, **settings: Any) -> FastGCNMethod:
    base = CITATIONS if task.texts is None else TEXT
    method = FastGCNMethod(base | settings, seed, "cpu")
    method.fit(task)
    return method


def digest(task: Task, seed: int = 0, **settings: Any) -> str | None:
    base = CITATIONS if task.texts is None else TEXT
    return FastGCNMethod(base | settings, seed, "cpu").fit(task).digest


def test_it_learns_texts_without_labels() -> None:
    method = fitted(TASK, batch_size=8, max_epochs=30)
    places = np.arange(40, 60)
    assert np.mean(method.predict(TASK.documents(places)) == TRUTH[places]) >= 0.9


def test_new_texts_are_refused() -> None:
    method = fitted(TASK, max_epochs=1)
    with pytest.raises(InputError, match=r"fast-gcn cannot classify documents that it has not seen. On texts.*nodes"):
        method.predict(Query(("old wine",), None, None))


def test_texts_that_have_little_to_say() -> None:
    texts = ("", "hapax", *TEXTS, "zebra")
    labels = np.array(["drink", None, *TASK.labels, "animal"], object)
    task = Task(texts, None, labels, np.empty(0, np.int64), None)
    method = fitted(task, min_count=2, batch_size=8)
    guesses = method.predict(task.documents(np.arange(len(texts))))
    assert method.classes.tolist() == ["animal", "drink", "drive"]
    assert np.mean(guesses[2:-1] == TRUTH) >= 0.9


# Citations


@pytest.fixture(scope="module")
def papers(papers: Dataset) -> Dataset:
    """The documents that all share, but one alone cites itself, one nothing, and one has no words."""
    assert papers.features is not None
    assert papers.document_graph is not None
    features, graph = papers.features.toarray(), papers.document_graph.toarray()
    np.fill_diagonal(graph, np.arange(60) == 1)
    graph[59] = graph[:, 59] = 0
    features[40] = 0
    return replace(papers, features=csr_array(features), document_graph=csr_array(graph))


def dense_parts(task: Task) -> tuple[Tensor, Tensor]:
    """Return A_hat and X, written out."""
    assert task.features is not None
    assert task.document_graph is not None
    graph = task.document_graph.toarray() + np.eye(len(task.labels))
    scale = 1 / np.sqrt(graph.sum(axis=1))
    features = task.features.toarray() / np.maximum(task.features.toarray().sum(axis=1, keepdims=True), 1e-9)
    return torch.from_numpy(graph * scale[:, None] * scale).float(), torch.from_numpy(features).float()


def all_logits(method: FastGCNMethod, query: Query) -> Tensor:
    method.network.eval()
    with torch.no_grad():
        return method._query_logits(query)


@pytest.mark.parametrize("protocol", ["corpus", "inductive"])
def test_it_learns_citations(papers: Dataset, protocol: str) -> None:
    rules = Protocol.parse(protocol)
    method = fitted(rules.task(papers))
    assert np.mean(method.predict(rules.query(papers)) == papers.labels[papers.test]) >= 0.85


def test_logits_are_those_of_the_equation(papers: Dataset) -> None:
    task = Protocol.parse("corpus").task(papers)
    method = fitted(task, max_epochs=5)
    a, x = dense_parts(task)
    expected = a @ torch.relu(a @ x @ method.network.input_weights) @ method.network.class_weights
    found = all_logits(method, task.documents(np.arange(60)))
    torch.testing.assert_close(found, expected.detach(), atol=1e-6, rtol=1e-4)


def test_a_step_with_all_neighbours_has_the_exact_gradient(papers: Dataset) -> None:
    task = Protocol.parse("corpus").task(papers)
    method = fitted(task, max_epochs=2, samples=60)
    network = method.network.train()
    assert isinstance(network, FastGCN)
    network.zero_grad()
    rows = np.array([5, 2, 40])
    method._logits(method._rank[rows]).pow(2).sum().backward()
    a, x = dense_parts(task)
    w0, w1 = (weights.detach().clone().requires_grad_() for weights in (network.input_weights, network.class_weights))
    (a @ torch.relu(a @ x @ w0) @ w1)[rows].pow(2).sum().backward()
    torch.testing.assert_close(network.input_weights.grad, w0.grad, atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(network.class_weights.grad, w1.grad, atol=1e-6, rtol=1e-4)


def test_new_documents_join_the_graph_alone(papers: Dataset) -> None:
    rules = Protocol.parse("inductive")
    task, query = rules.task(papers), rules.query(papers)
    assert query.features is not None
    assert query.document_graph is not None
    method = fitted(task, max_epochs=5)
    a, x = dense_parts(task)
    known = torch.relu(a @ x @ method.network.input_weights)
    found = all_logits(method, query)
    for i in range(len(papers.test)):
        new = query.document_graph.toarray()[i]
        joined = task.document_graph.toarray()  # type: ignore[union-attr]
        both = replace(
            task,
            labels=np.append(task.labels, None),
            features=csr_array(np.vstack([task.features.toarray(), query.features.toarray()[i]])),  # type: ignore[union-attr]
            document_graph=csr_array(np.block([[joined, new[:, None]], [new, np.zeros(1)]])),
        )
        a_new, x_new = dense_parts(both)
        own = torch.relu(a_new[-1] @ x_new @ method.network.input_weights)
        expected = (a_new[-1, :-1] @ known + a_new[-1, -1] * own) @ method.network.class_weights
        torch.testing.assert_close(found[i], expected.detach(), atol=1e-6, rtol=1e-4)


def test_new_documents_may_come_without_links(papers: Dataset) -> None:
    rules = Protocol.parse("inductive")
    method, query = fitted(rules.task(papers)), rules.query(papers)
    nothing = csr_array((len(papers.test), 30), dtype=np.float32)
    alone = all_logits(method, replace(query, document_graph=nothing))
    torch.testing.assert_close(all_logits(method, replace(query, document_graph=None)), alone)
    assert not torch.allclose(all_logits(method, query), alone)


def test_weight_decay_acts_on_the_first_weights_alone(papers: Dataset) -> None:
    method = fitted(Protocol.parse("corpus").task(papers), weight_decay=0.7, max_epochs=1)
    first, second = method._parameter_groups()
    assert (first["weight_decay"], second.get("weight_decay", 0)) == (0.7, 0)
    assert [p is method.network.input_weights for p in first["params"]] == [True]
    assert [p is method.network.class_weights for p in second["params"]] == [True]


def test_features_need_links(papers: Dataset) -> None:
    task = replace(Protocol.parse("corpus").task(papers), document_graph=None)
    with pytest.raises(InputError, match="needs texts, or features with a document graph"):
        fitted(task)


# Both


def shuffled(task: Task, order: npt.NDArray[np.int64]) -> Task:
    graph = task.document_graph
    return replace(
        task,
        texts=None if task.texts is None else tuple(task.texts[i] for i in order),
        features=None if task.features is None else task.features[order],
        labels=task.labels[order],
        validation=np.flatnonzero(np.isin(order, task.validation)),
        document_graph=None if graph is None else graph[order][:, order],
    )


@pytest.mark.parametrize("kind", ["texts", "citations"])
def test_the_order_of_documents_does_not_matter(kind: str, papers: Dataset) -> None:
    task = TASK if kind == "texts" else Protocol.parse("corpus").task(papers)
    method = fitted(task, batch_size=8)
    before = method.predict(task.documents(np.arange(60)))
    order = np.random.default_rng(1).permutation(60)
    moved = shuffled(task, order)
    assert fitted(moved, batch_size=8).predict(moved.documents(np.arange(60))).tolist() == before[order].tolist()
    assert method.predict(task.documents(order)).tolist() == before[order].tolist()


def test_the_order_of_new_documents_does_not_matter(papers: Dataset) -> None:
    rules = Protocol.parse("inductive")
    task, query = rules.task(papers), rules.query(papers)
    assert query.features is not None
    assert query.document_graph is not None
    before = all_logits(fitted(task), query)
    order = np.random.default_rng(1).permutation(30)
    other = Query(None, query.features[order], query.document_graph[order][:, order])
    torch.testing.assert_close(all_logits(fitted(shuffled(task, order)), other), before[torch.from_numpy(order)])


def test_same_seed_same_model(papers: Dataset) -> None:
    for task in (TASK, Protocol.parse("corpus").task(papers)):
        settings = {"batch_size": 8, "samples": 12, "max_epochs": 5}
        assert digest(task, **settings) == digest(task, **settings)
        assert digest(task, 1, **settings) != digest(task, **settings)


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
    "min_count": 25,
    "window": 3,
    "hidden": 5,
    "dropout": 0.1,
    "samples": 7,
}


@pytest.mark.parametrize("setting", OTHER)
def test_every_setting_is_used(setting: str) -> None:
    assert set(FastGCNMethod.defaults) == {*TRAINING, *GRAPH, "hidden", "dropout", "samples"} == set(OTHER)
    noisy = {"learning_rate": 0.5, "patience": 4, "validation_fraction": 0.4}  # so that it is stopped
    assert digest(TASK, **noisy) != digest(TASK, **noisy | {setting: OTHER[setting]})


def test_dropout_acts_on_both_layers() -> None:
    network = FastGCN(25, 2, hidden=6, dropout=0.5).train()
    rows = gather_rows(sparse_tensor(MATRIX), torch.arange(30))
    whole = torch.relu(rows @ network.input_weights)
    torch.manual_seed(0)
    found = network.hidden(rows)
    torch.manual_seed(0)
    inputs = rows._replace(values=torch.dropout(rows.values, 0.5, True))
    expected = torch.dropout(torch.relu(inputs @ network.input_weights), 0.5, True)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(network.eval().hidden(rows), whole)
