from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from wgcn_paper.methods import text_level_gnn
from wgcn_paper.methods.network import TRAINING
from wgcn_paper.methods.sequences import SEQUENCES, Batch
from wgcn_paper.methods.text_level_gnn import TextLevelGNNMethod, near_tokens, text_graphs
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


def edges_by_hand(words: Sequence[int], window: int) -> set[tuple[int, int]]:
    """The edges of one text, from word to word."""
    return {(a, b) for i, a in enumerate(words) for j, b in enumerate(words) if abs(i - j) <= window}


def made_batch(*texts: Sequence[int]) -> Batch:
    sizes = np.array([len(text) for text in texts], np.int64)
    ids = torch.tensor([word for text in texts for word in text], dtype=torch.long)
    document = torch.from_numpy(np.repeat(np.arange(len(texts)), sizes))
    place = torch.tensor([i for text in texts for i in range(len(text))], dtype=torch.long)
    return Batch(ids, document, place, torch.from_numpy(sizes), sizes)


def random_texts(seed: int) -> list[list[int]]:
    """Short texts of few words, so that words are repeated; the second one is empty."""
    rng = np.random.default_rng(seed)
    return [rng.integers(1, 8, n).tolist() for n in (1, 0, 2, *rng.integers(3, 15, 5))]


def made_network(mixed: bool = False, window: int = 2, seed: int = 0) -> text_level_gnn._Network:
    """Weights of all kinds for seven words; about half of the pairs have one of their own."""
    torch.manual_seed(seed)
    pairs = torch.tensor([number for number in range(9, 64) if number % 8 and torch.rand(()) < 0.5])
    network = text_level_gnn._Network(torch.nn.Embedding(8, 6), pairs, 3, window, mixed, dropout=0.5)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_()
    return network.eval()


def logits_by_hand(network: text_level_gnn._Network, words: Sequence[int], window: int) -> np.ndarray:
    """The equations, word by word."""
    state = {name: value.numpy() for name, value in network.state_dict().items()}
    vectors, weights = state["embedding.weight"], state["edges"]
    own = {number: weights[i] for i, number in enumerate(network.pairs.tolist())}
    edges, total = edges_by_hand(words, window), np.zeros(vectors.shape[1])
    for n in set(words):
        node = np.max([own.get(a * len(vectors) + n, weights[0]) * vectors[a] for a, b in edges if b == n], axis=0)
        kept = state["kept"][n] if "kept" in state else 0.0
        total += (1 - kept) * node + kept * vectors[n]
    result: np.ndarray = state["output.weight"] @ np.maximum(total, 0) + state["output.bias"]
    return result


def test_it_learns_topics() -> None:
    method = TextLevelGNNMethod(SMALL | {"max_epochs": 15}, device="cpu")
    method.fit(TASK)
    texts, labels = topics(100, 1)
    assert np.mean(method.predict(Query(texts, None, None)) == labels) > 0.8


# The graph


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("window", [1, 3])
def test_graphs_are_those_of_loops_over_words(seed: int, window: int) -> None:
    texts = random_texts(seed)
    batch = made_batch(*texts)
    document, words, source, target = (part.tolist() for part in text_graphs(batch, window, 8))
    nodes = list(zip(document, words, strict=True))
    assert nodes == [(i, word) for i, text in enumerate(texts) for word in sorted(set(text))]
    edges = [(document[a], document[b], words[a], words[b]) for a, b in zip(source, target, strict=True)]
    expected = {(i, i, a, b) for i, text in enumerate(texts) for a, b in edges_by_hand(text, window)}
    assert len(edges) == len(expected)
    assert set(edges) == expected


def test_a_repeated_word_is_one_node_with_the_neighbours_of_all_its_places() -> None:
    _, words, source, target = text_graphs(made_batch([1, 2, 3, 4, 1, 5]), 1, 8)
    assert words.tolist() == [1, 2, 3, 4, 5]
    assert words[source[words[target] == 1]].tolist() == [1, 2, 4, 5]


def test_tokens_of_different_texts_are_not_near() -> None:
    sources, targets = near_tokens(made_batch([1], [2, 3], [], [4]), 3)
    assert sources.tolist() == [0, 1, 2, 1, 2, 3]
    assert targets.tolist() == [0, 1, 1, 2, 2, 3]


# The network


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mixed", [False, True])
def test_logits_are_those_of_the_equations(seed: int, mixed: bool) -> None:
    network, texts = made_network(mixed, window=1 + seed % 3, seed=seed), random_texts(seed)
    with torch.no_grad():
        found = network(made_batch(*texts)).numpy()
    expected = [logits_by_hand(network, text, 1 + seed % 3) for text in texts]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_logits_do_not_depend_on_the_other_documents_or_their_order() -> None:
    network, texts = made_network(), random_texts(0)
    order = np.random.default_rng(1).permutation(len(texts))
    with torch.no_grad():
        together = network(made_batch(*texts))
        torch.testing.assert_close(network(made_batch(*(texts[i] for i in order))), together[order])
        alone = torch.cat([network(made_batch(text)) for text in texts])
    torch.testing.assert_close(alone, together)


def test_what_the_window_cannot_tell_apart_is_the_same_text() -> None:
    network = made_network(window=2)
    with torch.no_grad():
        once, *others = network(made_batch([1, 2], [1, 1, 2], [2, 1, 2, 1], [1, 2, 3], [1, 1, 1, 2, 3]))
    torch.testing.assert_close(others[0], once)
    torch.testing.assert_close(others[1], once)
    torch.testing.assert_close(others[3], others[2])
    with torch.no_grad():
        apart, near = made_network(window=1)(made_batch([1, 2, 3], [1, 2, 3, 1]))
    assert not torch.allclose(apart, near)


def test_values_of_the_sum_below_zero_count_as_zero() -> None:
    network = made_network(window=0)
    with torch.no_grad():
        network.edges.fill_(1.0)
        network.embedding.weight[1] = torch.tensor([1.0, -1.0, 2.0, -3.0, 0.5, -0.5])
        network.embedding.weight[2] = torch.tensor([0.0, 2.0, 0.0, 0.0, -4.0, 0.0])
        found = network(made_batch([1], [1, 2]))
        # Where the sum is positive, words below zero still count.
        expected = torch.tensor([[1.0, 0.0, 2.0, 0.0, 0.5, 0.0], [1.0, 1.0, 2.0, 0.0, 0.0, 0.0]])
        torch.testing.assert_close(found, network.output(expected))


def test_every_weight_of_a_batch_gets_a_gradient_of_the_right_size() -> None:
    network = made_network(mixed=True).double()
    batch = made_batch([1, 2, 3, 1], [4, 4, 5])
    network(batch).square().sum().backward()
    for parameter in (network.edges, network.embedding.weight, network.kept):
        assert parameter is not None
        assert parameter.grad is not None
        gradient, values = parameter.grad.flatten().clone(), parameter.data.flatten()
        for i in range(len(values)):
            begin, losses = values[i].item(), []
            for step in (1e-6, -1e-6):
                values[i] = begin + step
                with torch.no_grad():
                    losses.append(network(batch).square().sum().item())
            values[i] = begin
            assert gradient[i].item() == pytest.approx((losses[0] - losses[1]) / 2e-6, rel=1e-3, abs=1e-4)


def test_texts_without_words_get_the_bias() -> None:
    network = made_network()
    with torch.no_grad():
        torch.testing.assert_close(network(made_batch([], [])), network.output.bias.expand(2, -1))


# Pairs and their weights


def test_rare_pairs_share_a_weight_and_all_weights_are_trained() -> None:
    method = TextLevelGNNMethod(SMALL | {"min_pairs": 10_000}, device="cpu")
    method.fit(TASK)
    network = method.network
    assert network.edges.shape == (1,)  # type: ignore[union-attr]
    assert network.edges.item() != 1.0  # type: ignore[union-attr,operator]
    many = TextLevelGNNMethod(SMALL | {"mixed": True}, device="cpu")
    many.fit(TASK)
    assert (many.network.edges[1:] != 1.0).float().mean() > 0.9  # type: ignore[index,union-attr,operator]
    assert (many.network.kept[1:] != 0.5).all()  # type: ignore[index,union-attr]


def test_frequent_pairs_have_weights_of_their_own() -> None:
    method = TextLevelGNNMethod(SMALL | {"min_pairs": 40}, device="cpu")
    method.fit(TASK)
    index = {word: i + 1 for i, word in enumerate(method.sequences.vocabulary.words)}
    counts = pairs_by_hand(TEXTS, 2)
    own = sorted(index[a] * 25 + index[n] for (a, n), count in counts.items() if count >= 40)
    assert 0 < len(own) < len(counts)
    assert method.pairs.tolist() == own
    assert method.network.edges.shape == (len(own) + 1,)  # type: ignore[union-attr]


def test_pairs_are_counted_in_texts_with_labels_alone() -> None:
    texts = ("a b", "a b", "c d", "c d", "c d e")
    labels = np.array(["x", "y", None, None, None], object)
    method = TextLevelGNNMethod(SMALL | {"validation_fraction": 0.0}, device="cpu")
    method.fit(replace(TASK, texts=texts, labels=labels))
    index = method.sequences.vocabulary.index
    a, b = index["a"] + 1, index["b"] + 1
    size = len(index) + 1
    assert method.pairs.tolist() == sorted([a * size + b, b * size + a, a * size + a, b * size + b])


def test_counting_in_parts_changes_nothing() -> None:
    methods = [TextLevelGNNMethod(SMALL, device="cpu") for _ in range(2)]
    methods[0].fit(TASK)
    text_level_gnn._pairs.clear()
    methods[1].documents_at_once = 7
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
    own = {"window": 1, "min_pairs": 40, "mixed": True, "dropout": 0.1}
    assert set(TextLevelGNNMethod.defaults) == {*SEQUENCES, *TRAINING, *own}
    digests = [TextLevelGNNMethod(SMALL | {name: value}, device="cpu").fit(TASK).digest for name, value in own.items()]
    digests.append(TextLevelGNNMethod(SMALL, device="cpu").fit(TASK).digest)
    assert len(set(digests)) == len(digests)
