from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from wgcn.base.errors import InputError
from wgcn_paper.methods import graph_cnn
from wgcn_paper.methods.graph_cnn import GraphCNNMethod, heavy_pairs, nearest_words
from wgcn_paper.methods.network import TRAINING
from wgcn_paper.protocol import Query, Task

DRINKS = ["wine", "beer", "juice", "water", "merlot"]
CARS = ["car", "truck", "bus", "tram", "coupe"]
OTHERS = ["red", "old", "good", "and", "zzz"]


def made_texts() -> tuple[tuple[str, ...], np.ndarray]:
    """Texts of two kinds, where "merlot" and "coupe" never occur with a label."""
    rng = np.random.default_rng(0)
    texts, labels = [], []
    for i in range(60):
        own = (DRINKS, CARS)[i % 2]
        words = [*rng.choice(own[:4], 2), *rng.choice(OTHERS, 2)]
        texts.append(f"{' '.join(words)} {'and ' * (i % 3)}{' '.join(rng.choice(own[:4], i % 4))}")
        labels.append(("drink", "drive")[i % 2])
    texts += ["old merlot", "old coupe", "merlot and coupe", ""]
    return tuple(texts), np.array([*labels, None, None, None, "drink"], object)


TEXTS, LABELS = made_texts()
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)
TINY = {"stop_words": False, "min_count": 1, "word_vectors": "made", "neighbours": 2, "filters": 4, "max_epochs": 3}
NEW = Query(("old beer", "red bus and tram", "", "nothing of this occurs", "merlot", "coupe"), None, None)


def made_vectors(words: Sequence[str], source: str) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors that point the same way for words of a kind; "zzz" has none, nor have the words of "fewer"."""
    rng = np.random.default_rng(4)
    kinds = np.array([0 if word in DRINKS else 1 if word in CARS else 2 for word in sorted(words)])
    vectors = np.eye(3)[kinds] * 3 + rng.random((len(words), 3))
    by_word = dict(zip(sorted(words), vectors, strict=True))
    known = np.array([word != "zzz" and (source == "made" or word not in OTHERS) for word in words])
    table = np.array([by_word[word] for word in words], np.float32)
    table[~known] = 0
    return table, known


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    graph_cnn._prepared.clear()
    monkeypatch.setattr(graph_cnn, "word_vectors", made_vectors)
    monkeypatch.setattr("wgcn_paper.methods.preparation.stop_words", lambda: frozenset({"and"}))


def fitted(task: Task = TASK, seed: int = 0, **settings: Any) -> GraphCNNMethod:
    method = GraphCNNMethod(TINY | settings, seed=seed, device="cpu")
    method.fit(task)
    return method


def digest(task: Task = TASK, seed: int = 0, **settings: Any) -> str | None:
    return GraphCNNMethod(TINY | settings, seed=seed, device="cpu").fit(task).digest


def logits(method: GraphCNNMethod, query: Query) -> np.ndarray:
    method.network.eval()
    with torch.no_grad():
        found: np.ndarray = method._query_logits(query).numpy()
    return found


# The graph of words


@pytest.mark.parametrize("block", [1, 50, 2**24])
def test_words_are_joined_to_their_nearest(block: int) -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(20, 5)).astype(np.float32)
    known = np.ones(20, bool)
    known[[3, 11]] = False
    graph = nearest_words(vectors, known, 4, block=block).toarray()

    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    distances = 1 - units @ units.T
    distances[~known] = distances[:, ~known] = np.inf
    np.fill_diagonal(distances, np.inf)
    near = np.argsort(distances, axis=1)[:, :4]
    sigma = np.mean([distances[i, near[i, -1]] for i in np.flatnonzero(known)])
    expected = np.zeros((20, 20))
    for i in np.flatnonzero(known):
        expected[i, near[i]] = np.exp(-((distances[i, near[i]] / sigma) ** 2))
    expected = np.maximum(expected, expected.T)
    np.testing.assert_allclose(graph, expected, atol=1e-5)
    assert np.array_equal(graph, graph.T)
    assert not graph[~known].any()


def test_graph_of_few_words_has_fewer_edges() -> None:
    vectors = np.eye(4, dtype=np.float32)
    assert nearest_words(vectors, np.ones(4, bool), 16).nnz == 12
    for n_known in (0, 1):
        graph = nearest_words(vectors, np.arange(4) < n_known, 16)
        assert (graph.shape, graph.nnz) == ((4, 4), 0)
    same = nearest_words(np.ones((4, 2), np.float32), np.ones(4, bool), 2)
    assert np.isfinite(same.data).all()


def test_pairs_follow_heavy_edges_and_leave_no_node_out() -> None:
    graph = np.zeros((6, 6), np.float32)
    for i, j, weight in ((0, 1, 0.9), (1, 2, 0.5), (2, 3, 0.8), (3, 4, 0.1)):
        graph[i, j] = graph[j, i] = weight
    pairs = heavy_pairs(csr_array(graph))
    # 4 has the smallest degree and chooses first, so that 3 is no longer free for 2.
    assert {tuple(sorted(set(pair))) for pair in pairs.tolist()} == {(0, 1), (3, 4), (2,), (5,)}
    rng = np.random.default_rng(2)
    made = rng.random((40, 40)) * (rng.random((40, 40)) < 0.2)
    pairs = heavy_pairs(csr_array(np.triu(made, 1) + np.triu(made, 1).T))
    members = [node for pair in pairs.tolist() for node in set(pair)]
    assert sorted(members) == list(range(40))
    assert len(pairs) < 30


@pytest.mark.parametrize("pooling", [1, 2, 4])
def test_clusters_hold_every_word_once(pooling: int) -> None:
    method = fitted(pooling=pooling)
    clusters = method._made.clusters
    assert clusters.shape[1] == pooling
    members = [word for cluster in clusters.tolist() for word in set(cluster)]
    assert sorted(members) == list(range(len(method._made.vocabulary)))
    assert len(clusters) <= {1: 15, 2: 11, 4: 8}[pooling]


# The network


@pytest.mark.parametrize(("order", "pooling"), [(1, 1), (2, 1), (5, 1), (4, 2), (3, 4)])
def test_it_is_a_sum_of_chebyshev_polynomials(order: int, pooling: int) -> None:
    method = fitted(order=order, pooling=pooling)
    state = {name: value.numpy() for name, value in method.network.state_dict().items()}
    graph = method._made.graph.toarray().astype(np.float64)
    degrees = graph.sum(1)
    roots = np.where(degrees > 0, np.sqrt(np.maximum(degrees, 1e-30)), np.inf)
    laplacian = np.eye(len(graph)) - graph / roots[:, None] / roots
    scaled = 2 * laplacian / 2 - np.eye(len(graph))

    counts = np.zeros((len(NEW.texts or ()), len(graph)))
    for i, text in enumerate(NEW.texts or ()):
        for word in text.split():
            if word in method._made.vocabulary:
                counts[i, method._made.vocabulary.index[word]] += 1
    rows = counts * method._made.weighting.idf
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    polynomials = [np.eye(len(graph)), scaled]
    while len(polynomials) < order:
        polynomials.append(2 * scaled @ polynomials[-1] - polynomials[-2])
    maps = sum((rows @ polynomials[n])[:, :, None] * state[f"filters.lins.{n}.weight"][:, 0] for n in range(order))
    maps = np.maximum(maps + state["filters.bias"], 0)
    pooled = np.stack([maps[:, cluster].max(1) for cluster in method._made.clusters], 1)
    expected = pooled.reshape(len(rows), -1) @ state["last.weight"].T + state["last.bias"]
    np.testing.assert_allclose(logits(method, NEW), expected, atol=1e-5)


def test_counts_are_shares_of_a_document() -> None:
    method = fitted(weighting="count")
    rows = method._made.terms.toarray()
    lengths = [len(text.split()) for text in sorted(TEXTS)]
    assert sorted(np.round(rows.sum(1), 5).tolist()) == [0.0] + [1.0] * (len(TEXTS) - 1)
    assert np.isclose(rows[rows > 0].min(), 1 / max(lengths))


@pytest.mark.parametrize("pooling", [1, 2])
def test_it_learns_and_words_without_labels_follow_their_neighbours(pooling: int) -> None:
    method = fitted(max_epochs=30, learning_rate=0.04, batch_size=20, patience=30, pooling=pooling)
    guesses = method.predict(NEW)
    assert guesses[[0, 1, 4, 5]].tolist() == ["drink", "drive", "drink", "drive"]


def test_documents_without_known_words_get_the_same_answer() -> None:
    method = fitted()
    found = logits(method, NEW)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[2], found[3])
    assert method.predict(replace(NEW, texts=())).tolist() == []


def test_one_label_for_a_class_is_enough() -> None:
    labels = np.full(len(TEXTS), None, object)
    labels[:2] = LABELS[:2]
    method = fitted(replace(TASK, labels=labels))
    assert method.classes.tolist() == ["drink", "drive"]
    assert set(method.predict(NEW).tolist()) <= {"drink", "drive"}


def test_order_of_documents_changes_nothing() -> None:
    order = np.random.default_rng(3).permutation(len(TEXTS))
    other = replace(TASK, texts=tuple(TEXTS[i] for i in order), labels=LABELS[order])
    methods = [fitted(task, batch_size=16) for task in (TASK, other)]
    states = [method.network.state_dict() for method in methods]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert NEW.texts is not None
    turned = replace(NEW, texts=NEW.texts[::-1])
    np.testing.assert_allclose(logits(methods[1], turned), logits(methods[0], NEW)[::-1], atol=1e-6)
    assert methods[1].predict(turned).tolist() == methods[0].predict(NEW)[::-1].tolist()


def test_batches_of_a_query_change_nothing() -> None:
    methods = [fitted(batch_size=size, max_epochs=1) for size in (2, 0)]
    methods[1].network.load_state_dict(methods[0].network.state_dict())
    np.testing.assert_allclose(logits(methods[0], NEW), logits(methods[1], NEW), atol=1e-6)


VALUES = {
    "tokenizer": "words",
    "stop_words": True,
    "min_count": 4,
    "max_words": 8,
    "weighting": "count",
    "word_vectors": "fewer",
    "neighbours": 3,
    "filters": 5,
    "order": 2,
    "pooling": 2,
    "dropout": 0.1,
    "learning_rate": 0.01,
    "weight_decay": 0.1,
    "batch_size": 10,
    "max_epochs": 2,
    "validation_fraction": 0.3,
}


def test_every_setting_is_used() -> None:
    assert set(GraphCNNMethod.defaults) == {*TRAINING, *VALUES}
    # With a hyphen, which the two tokenizers read differently.
    task = replace(TASK, texts=("beer-wine don't", *TEXTS[1:]))
    digests = [digest(task, **settings) for settings in ({}, *({name: value} for name, value in VALUES.items()))]
    assert len(set(digests)) == len(digests)
    wrong = replace(TASK, labels=LABELS, validation=np.arange(20))
    flipped = LABELS.copy()
    flipped[:20] = np.roll(LABELS[:20], 1)
    wrong = replace(wrong, labels=flipped)
    fits = [
        GraphCNNMethod(
            TINY | {"max_epochs": 30, "learning_rate": 0.05, "stopping": stopping, "patience": patience}, device="cpu"
        ).fit(wrong)
        for stopping, patience in (("mean", 30), ("loss", 30), ("loss", 1))
    ]
    assert fits[0].digest != fits[1].digest
    assert [fits[0].epochs, fits[1].epochs] == [30, 30]
    assert (fits[2].epochs or 30) < 30


def test_same_seed_same_model() -> None:
    digests = [digest(seed=seed) for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]
    assert len(graph_cnn._prepared) == 1


def test_preparation_is_shared_by_labels_and_never_mixed() -> None:
    others: list[tuple[Task, dict[str, Any]]] = [
        (replace(TASK, texts=("red wine", *TEXTS[1:])), {}),
        *((TASK, {name: VALUES[name]}) for name in graph_cnn._PREPARATION if name != "tokenizer"),
    ]
    plain = digest()
    digest(replace(TASK, labels=LABELS[::-1].copy()))
    # Documents with the same text are put in order by their labels, so other labels may be another task.
    assert len(graph_cnn._prepared) <= 2
    for task, settings in others:
        graph_cnn._prepared.clear()
        alone = digest(task, **settings)
        graph_cnn._prepared.clear()
        assert digest() == plain
        assert digest(task, **settings) == alone
        assert len(graph_cnn._prepared) == 2
        assert digest() == plain
    for n_words in range(5, 11):
        digest(max_words=n_words)
    assert len(graph_cnn._prepared) == graph_cnn._prepared.most == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"word_vectors": ""}, "word vectors"),
        ({"weighting": "bm25"}, "'tfidf' or 'count', got 'bm25'"),
        ({"pooling": 3}, "1, 2 or 4, got 3"),
    ],
)
def test_settings_that_cannot_be_are_an_error(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        digest(**settings)


def test_features_without_texts_are_an_error_that_says_so() -> None:
    task = Task(None, csr_array(np.eye(2)), np.array(["a", "b"], object), np.empty(0, np.int64), None)
    with pytest.raises(InputError, match="graph-cnn reads texts"):
        GraphCNNMethod(device="cpu").fit(task)
