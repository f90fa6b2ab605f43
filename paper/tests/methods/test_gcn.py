"""GCN, and what all networks on a graph of citations share."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from wgcn.base.errors import InputError
from wgcn_paper.datasets import Dataset
from wgcn_paper.methods.citation_graph import CitationBaseline, sparse_dropout
from wgcn_paper.methods.gcn import GCNMethod
from wgcn_paper.methods.gin import GINMethod
from wgcn_paper.methods.network import TRAINING
from wgcn_paper.methods.sgc import SGCMethod
from wgcn_paper.protocol import Protocol, Query, Task

KINDS = (GCNMethod, GINMethod, SGCMethod)
EMPTY, EMPTY_TEST = 25, 61  # documents without a word


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def papers() -> Dataset:
    """Two kinds of documents that share few words and mostly cite their own kind; some cite themselves."""
    rng = np.random.default_rng(3)
    labels = np.arange(90) % 2
    words = rng.random((90, 30)) < 0.1 + 0.25 * (np.arange(30) % 2 == labels[:, None])
    features = words * rng.integers(1, 9, (90, 30))
    features[[EMPTY, EMPTY_TEST]] = 0
    links = rng.random((90, 90)) < np.where(labels[:, None] == labels, 0.06, 0.005)
    graph = (links | links.T).astype(np.float32)
    np.fill_diagonal(graph, np.arange(90) < 7)
    return Dataset(
        "papers",
        None,
        csr_array(features.astype(np.float32)),
        labels,
        np.arange(20),
        np.arange(60, 90),
        csr_array(graph),
        None,
        np.arange(20, 35),
    )


def fitted(kind: type[CitationBaseline], task: Task, seed: int = 0, **settings: object) -> CitationBaseline:
    method = kind(settings, seed=seed, device="cpu")
    method.fit(task)
    return method


def logits(method: CitationBaseline, query: Query) -> torch.Tensor:
    method.network.eval()
    with torch.no_grad():
        return method._query_logits(query)


def smoothing(graph: np.ndarray) -> np.ndarray:
    """Return D^-1/2 (A + I) D^-1/2."""
    graph = graph.copy()
    np.fill_diagonal(graph, 1)
    roots = np.sqrt(graph.sum(1))
    return graph / roots[:, None] / roots


def in_rows(features: csr_array) -> np.ndarray:
    rows = features.toarray()
    return rows / np.maximum(rows.sum(1, keepdims=True), 1e-9)


def shuffled(task: Task) -> tuple[Task, np.ndarray]:
    order = np.random.default_rng(8).permutation(len(task.labels))
    assert task.features is not None
    assert task.document_graph is not None
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return Task(
        None, task.features[order], task.labels[order], places[task.validation], task.document_graph[order][:, order]
    ), order


# GCN alone


def test_it_is_two_products_with_the_normalised_graph(papers: Dataset) -> None:
    assert papers.features is not None
    assert papers.document_graph is not None
    method = fitted(GCNMethod, Protocol("corpus").task(papers), max_epochs=20)
    s = smoothing(papers.document_graph.toarray())
    first, second = (value.numpy().T for value in method.network.state_dict().values())
    assert first.shape == (30, 16)
    expected = s @ np.maximum(s @ in_rows(papers.features) @ first, 0) @ second
    found = logits(method, Protocol("corpus").query(papers))
    np.testing.assert_allclose(found, expected[papers.test], atol=1e-5)


def test_dropout_drops_features_and_keeps_their_mean() -> None:
    values = torch.ones(2000)
    inputs = torch.sparse_coo_tensor(
        torch.stack([torch.arange(2000), torch.zeros(2000, dtype=torch.long)]),
        values,
        (2000, 1),
        is_coalesced=True,
        check_invariants=False,
    )
    torch.manual_seed(0)
    dropped = sparse_dropout(inputs, 0.75, training=True).to_dense()
    assert set(dropped.unique().tolist()) == {0.0, 4.0}
    assert abs(float(dropped.mean()) - 1) < 0.1
    assert torch.equal(sparse_dropout(inputs, 0.75, training=False).to_dense(), inputs.to_dense())


def test_weight_decay_is_for_the_first_layer_alone(papers: Dataset) -> None:
    method = fitted(GCNMethod, Protocol("corpus").task(papers), max_epochs=1, weight_decay=0.7)
    groups = [(list(group["params"]), group.get("weight_decay", 0)) for group in method._parameter_groups()]
    assert [(len(weights), weights[0].shape[0], decay) for weights, decay in groups] == [(1, 16, 0.7), (1, 2, 0)]


GCN_VALUES = {"hidden": 5, "dropout": 0.1}
TRAINING_VALUES = {
    "learning_rate": 0.03,
    "weight_decay": 0.1,
    "batch_size": 7,
    "max_epochs": 5,
}


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        (GCNMethod, GCN_VALUES),
        (GINMethod, {"hidden": 5, "dropout": 0.1, "layers": 3, "input_dropout": 0.2}),
        (SGCMethod, {"hops": 1}),
    ],
)
def test_every_setting_is_used(papers: Dataset, kind: type[CitationBaseline], own: dict[str, object]) -> None:
    assert set(kind.defaults) == {*TRAINING, *own}
    task = Protocol("corpus").task(papers)
    few = {"max_epochs": 6, "stopping": "mean", "patience": 6}
    digests = [kind(few | more, device="cpu").fit(task).digest for more in ({}, *({k: v} for k, v in own.items()))]
    digests += [kind(few | {k: v}, device="cpu").fit(task).digest for k, v in TRAINING_VALUES.items()]
    assert len(set(digests)) == len(digests)
    # What chooses the epoch: with wrong labels for validation the first epochs are the best.
    assert papers.validation is not None
    labels = papers.labels.copy()
    labels[papers.validation] = 1 - labels[papers.validation]
    wrong = Protocol("corpus").task(replace(papers, labels=labels))
    last, best, early, accurate = (
        kind({"max_epochs": 15, "patience": patience, "stopping": stopping}, device="cpu").fit(wrong)
        for stopping, patience in (("mean", 15), ("loss", 15), ("loss", 1), ("accuracy", 1))
    )
    assert last.digest != best.digest
    assert (last.epochs, best.epochs) == (15, 15)
    assert early.epochs is not None
    assert accurate.epochs is not None
    assert early.epochs < 15
    assert accurate.epochs < 15
    without = replace(task, validation=np.empty(0, np.int64))
    shares = [kind(few | {"validation_fraction": share}, device="cpu").fit(without) for share in (0.0, 0.5)]
    assert shares[0].digest != shares[1].digest
    assert shares[0].validation_accuracy is None


# What they share


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", ["corpus", "inductive"])
def test_it_learns_documents_that_it_saw_and_others(
    papers: Dataset, kind: type[CitationBaseline], protocol: str
) -> None:
    rule = Protocol.parse(protocol)
    method = fitted(kind, rule.task(papers), max_epochs=30, learning_rate=0.1)
    guesses = method.predict(rule.query(papers))
    assert guesses.dtype == papers.labels.dtype
    assert np.mean(guesses == papers.labels[papers.test]) > 0.85


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_model(papers: Dataset, kind: type[CitationBaseline]) -> None:
    task = Protocol("corpus").task(papers)
    before = torch.random.get_rng_state()
    digests = [kind({"max_epochs": 5}, seed=seed, device="cpu").fit(task).digest for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", ["corpus", "inductive"])
def test_order_of_documents_changes_nothing(papers: Dataset, kind: type[CitationBaseline], protocol: str) -> None:
    rule = Protocol.parse(protocol)
    # Two documents without a word cannot be told apart by their content.
    one = replace(papers, test=np.setdiff1d(papers.test, EMPTY_TEST))
    if protocol == "corpus":
        features = papers.features.toarray()  # type: ignore[union-attr]
        features[EMPTY_TEST, 0] = 1
        one = replace(one, features=csr_array(features))
    task, query = rule.task(one), rule.query(one)
    other, order = shuffled(task)
    methods = [fitted(kind, some, max_epochs=10) for some in (task, other)]
    states = [method.network.state_dict() for method in methods]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert query.features is not None
    assert query.document_graph is not None
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    mixed = np.random.default_rng(1).permutation(query.features.shape[0])
    moved = Query(
        None,
        query.features[mixed],
        query.document_graph[mixed][:, order],
        None if query.places is None else places[query.places][mixed],
    )
    found = logits(methods[0], query)
    torch.testing.assert_close(logits(methods[1], moved), found[mixed], atol=1e-5, rtol=1e-4)
    assert methods[1].predict(moved).tolist() == methods[0].predict(query)[mixed].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_document_joins_the_graph(papers: Dataset, kind: type[CitationBaseline]) -> None:
    """A graph that has the new documents from the start, without labels, must give the same logits."""
    assert papers.features is not None
    assert papers.document_graph is not None
    graph = papers.document_graph.toarray()
    graph[np.ix_(papers.test, papers.test)] = 0
    cut = replace(papers, document_graph=csr_array(graph))
    seen, later = (fitted(kind, Protocol(name).task(cut), max_epochs=5) for name in ("corpus", "inductive"))
    seen.network.load_state_dict(later.network.state_dict())
    queries = [Protocol(name).query(cut) for name in ("corpus", "inductive")]
    if kind is SGCMethod:
        seen.network.reset_parameters()
        seen.network.load_state_dict(later.network.state_dict())
    expected, found = logits(seen, queries[0]), logits(later, queries[1])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    # Links among the new documents are in no query, and what was predicted before leaves no trace.
    torch.testing.assert_close(logits(later, Protocol("inductive").query(papers)), found)


@pytest.mark.parametrize("kind", KINDS)
def test_new_documents_without_words_or_links_get_an_answer(papers: Dataset, kind: type[CitationBaseline]) -> None:
    task = Protocol("inductive").task(papers)
    method = fitted(kind, task, max_epochs=5)
    empty = csr_array((2, 30), dtype=np.float32)
    alone = method.predict(Query(None, empty, None))
    assert alone.tolist() == method.predict(Query(None, empty, csr_array((2, len(task.labels))))).tolist()
    assert alone[0] == alone[1]
    assert torch.isfinite(logits(method, Query(None, empty, None))).all()
    assert method.predict(Query(None, empty[:0], None)).tolist() == []


@pytest.mark.parametrize("kind", KINDS)
def test_links_count_but_not_their_direction_weight_or_loops(papers: Dataset, kind: type[CitationBaseline]) -> None:
    task = Protocol("corpus").task(papers)
    assert task.document_graph is not None
    graph = task.document_graph.toarray()
    plain = kind({"max_epochs": 3}, device="cpu").fit(task).digest
    for changed, same in ((np.triu(graph), True), (graph * 3, True), (graph + np.eye(90), True), (graph * 0, False)):
        other = replace(task, document_graph=csr_array(changed.astype(np.float32)))
        assert (kind({"max_epochs": 3}, device="cpu").fit(other).digest == plain) == same


@pytest.mark.parametrize("kind", KINDS)
def test_labels_for_validation_are_not_trained_on(papers: Dataset, kind: type[CitationBaseline]) -> None:
    assert papers.validation is not None
    labels = papers.labels.copy()
    labels[papers.validation] = 1 - labels[papers.validation]
    same = {"max_epochs": 5, "stopping": "mean", "patience": 5}
    fits = [
        kind(same, device="cpu").fit(Protocol("corpus").task(one)) for one in (papers, replace(papers, labels=labels))
    ]
    assert fits[0].digest == fits[1].digest
    assert fits[0].validation_accuracy != fits[1].validation_accuracy


@pytest.mark.parametrize("kind", KINDS)
def test_one_label_for_a_class_is_enough(papers: Dataset, kind: type[CitationBaseline]) -> None:
    task = Protocol("few-label", per_class=1).task(papers)
    labels = task.labels.copy()
    labels[task.validation] = None
    alone = replace(task, labels=labels, validation=np.empty(0, np.int64))
    assert sum(label is not None for label in labels) == 2
    method = fitted(kind, alone, max_epochs=5)
    assert method.classes.tolist() == [0, 1]
    assert set(method.predict(alone.documents(np.arange(40))).tolist()) <= {0, 1}


@pytest.mark.parametrize("kind", KINDS)
def test_texts_without_links_are_an_error_that_says_so(kind: type[CitationBaseline]) -> None:
    task = Task(("red wine", "fast car"), None, np.array(["a", "b"], object), np.empty(0, np.int64), None)
    with pytest.raises(InputError, match=f"^{kind.name} needs features and citations"):
        kind(device="cpu").fit(task)
