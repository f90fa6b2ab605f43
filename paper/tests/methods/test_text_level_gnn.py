from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from wgcn_paper.methods import text_level_gnn
from wgcn_paper.methods.network import TRAINING
from wgcn_paper.methods.sequences import SEQUENCES
from wgcn_paper.methods.text_level_gnn import TextLevelGNNMethod
from wgcn_paper.protocol import Query, Task

WORDS = np.array([f"w{i}" for i in range(24)])
SMALL = {"word_vectors": "", "dimension": 6, "min_count": 1, "window": 2, "learning_rate": 0.02, "max_epochs": 2}


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    text_level_gnn._pairs.clear()


def topics(n: int, seed: int) -> tuple[tuple[str, ...], np.ndarray]:
    """Two thirds of a text's words are of its class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    texts = []
    for label in labels:
        shares = np.where(np.arange(24) % 2 == label, 2.0, 1.0)
        texts.append(" ".join(rng.choice(WORDS, rng.integers(8, 25), p=shares / shares.sum())))
    return tuple(texts), np.array(["even", "odd"], object)[labels]


TEXTS, LABELS = topics(200, 0)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)


def pairs_by_hand(texts: tuple[str, ...], window: int) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for text in texts:
        words = text.split()
        for n, word in enumerate(words):
            found.update((a, word) for a in words[max(n - window, 0) : n + window + 1])
    return found


def test_it_learns_topics() -> None:
    method = TextLevelGNNMethod(SMALL | {"max_epochs": 15}, device="cpu")
    method.fit(TASK)
    texts, labels = topics(100, 1)
    assert np.mean(method.predict(Query(texts, None, None)) == labels) > 0.8


@pytest.mark.parametrize("window", [1, 3])
def test_logits_are_those_of_the_equations(window: int) -> None:
    method = TextLevelGNNMethod(SMALL | {"window": window, "min_pairs": 40, "max_epochs": 3}, device="cpu")
    method.fit(TASK)
    method.network.eval()
    texts = (TEXTS[0], "w3", "w1 w1", "w5 w4 w3 w2 w1 w0 w5 w4", TEXTS[7], "")
    with torch.no_grad():
        found = method._query_logits(Query(texts, None, None)).numpy()
    state = {name: value.numpy() for name, value in method.network.state_dict().items()}
    index = {word: i + 1 for i, word in enumerate(method.sequences.vocabulary.words)}
    counts = pairs_by_hand(TEXTS, window)
    own = sorted((index[a], index[n]) for (a, n), count in counts.items() if count >= 40)
    assert 0 < len(own) < len(counts)
    assert len(state["edges"]) == len(own) + 1
    edges = dict(zip(own, state["edges"][1:], strict=True))
    for text, row in zip(texts, found, strict=True):
        ids = [index[word] for word in text.split()]
        total = np.zeros(6)
        for n, node in enumerate(ids):
            near = ids[max(n - window, 0) : n + window + 1]
            vectors = state["embedding.weight"]
            largest = np.max([edges.get((a, node), state["edges"][0]) * vectors[a] for a in near], axis=0)
            kept = state["kept"][node]
            total += (1 - kept) * largest + kept * vectors[node]
        expected = state["output.weight"] @ total + state["output.bias"]
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-4)


def test_rare_pairs_share_a_weight_and_all_weights_are_trained() -> None:
    method = TextLevelGNNMethod(SMALL | {"min_pairs": 10_000}, device="cpu")
    method.fit(TASK)
    network = method.network
    assert network.edges.shape == (1,)  # type: ignore[union-attr]
    assert network.edges.item() != 1.0  # type: ignore[union-attr,operator]
    many = TextLevelGNNMethod(SMALL, device="cpu")
    many.fit(TASK)
    assert (many.network.edges[1:] != 1.0).float().mean() > 0.9  # type: ignore[index,union-attr,operator]
    assert (many.network.kept[1:] != 0.5).all()  # type: ignore[index,union-attr]


def test_pairs_are_counted_in_texts_with_labels_alone() -> None:
    texts = ("a b", "a b", "c d", "c d", "c d e")
    labels = np.array(["x", "y", None, None, None], object)
    method = TextLevelGNNMethod(SMALL | {"validation_fraction": 0.0}, device="cpu")
    method.fit(replace(TASK, texts=texts, labels=labels))
    index = method.sequences.vocabulary.index
    a, b = index["a"] + 1, index["b"] + 1
    size = len(index) + 1
    assert method.pairs.tolist() == sorted([a * size + b, b * size + a, a * size + a, b * size + b])


def test_counting_in_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = [TextLevelGNNMethod(SMALL, device="cpu") for _ in range(2)]
    methods[0].fit(TASK)
    text_level_gnn._pairs.clear()
    monkeypatch.setattr(text_level_gnn, "_DOCUMENTS_AT_ONCE", 7)
    methods[1].fit(TASK)
    assert methods[0].pairs.tolist() == methods[1].pairs.tolist()
    expected = {pair for pair, count in pairs_by_hand(TEXTS, 2).items() if count >= 2}
    assert len(methods[0].pairs) == len(expected)


def test_pairs_are_shared_by_seeds_and_never_mixed() -> None:
    for seed in range(2):
        TextLevelGNNMethod(SMALL, seed=seed, device="cpu").fit(TASK)
    assert len(text_level_gnn._pairs) == 1
    labels = LABELS.copy()
    labels[:50] = None
    few = TextLevelGNNMethod(SMALL, device="cpu").fit(replace(TASK, labels=labels)).digest
    assert len(text_level_gnn._pairs) == 2
    text_level_gnn._pairs.clear()
    assert TextLevelGNNMethod(SMALL, device="cpu").fit(replace(TASK, labels=labels)).digest == few
    for window in range(1, 5):
        TextLevelGNNMethod(SMALL | {"window": window, "max_epochs": 1}, device="cpu").fit(TASK)
    assert len(text_level_gnn._pairs) == text_level_gnn._pairs.most == 2


def test_every_setting_of_its_own_is_used() -> None:
    own = {"window": 1, "min_pairs": 40, "dropout": 0.1}
    assert set(TextLevelGNNMethod.defaults) == {*SEQUENCES, *TRAINING, *own}
    digests = [TextLevelGNNMethod(SMALL | {name: value}, device="cpu").fit(TASK).digest for name, value in own.items()]
    digests.append(TextLevelGNNMethod(SMALL, device="cpu").fit(TASK).digest)
    assert len(set(digests)) == len(digests)
