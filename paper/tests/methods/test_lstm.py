import numpy as np
import pytest
import torch

from wgcn_paper.methods.lstm import LSTMMethod
from wgcn_paper.methods.network import TRAINING
from wgcn_paper.methods.sequences import SEQUENCES
from wgcn_paper.protocol import Query, Task

FILLER = np.array(["one", "two", "three", "four", "five", "six"])
SMALL = {"word_vectors": "", "dimension": 8, "hidden": 6, "learning_rate": 0.02, "max_epochs": 2}


pytestmark = pytest.mark.usefixtures("one_thread")


def phrases(n: int, seed: int) -> tuple[tuple[str, ...], np.ndarray]:
    """The same words in both classes; what comes last tells, wherever it stands."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    texts = []
    for label in labels:
        parts = [" ".join(rng.choice(FILLER, rng.integers(0, 3))) for _ in range(3)]
        first, second = ("good", "bad") if label else ("bad", "good")
        texts.append(f"{parts[0]} {first} {parts[1]} {second} {parts[2]}")
    return tuple(texts), np.array(["good", "bad"], object)[labels]


TEXTS, LABELS = phrases(160, 0)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_it_learns_the_order_of_words(bidirectional: bool) -> None:
    settings = {
        "max_epochs": 12,
        "patience": 12,
        "learning_rate": 0.05,
        "bidirectional": bidirectional,
        "batch_size": 12,
        "dropout": 0.1,
    }
    method = LSTMMethod(SMALL | settings, device="cpu")
    method.fit(TASK)
    texts, labels = phrases(80, 1)
    assert np.mean(method.predict(Query(texts, None, None)) == labels) > 0.9


@pytest.mark.parametrize("bidirectional", [False, True])
def test_logits_are_those_of_the_equations(bidirectional: bool) -> None:
    method = LSTMMethod(SMALL | {"bidirectional": bidirectional}, device="cpu")
    method.fit(TASK)
    method.network.eval()
    texts = ("one good two bad", "bad", "good five five six one two three")
    with torch.no_grad():
        found = method._query_logits(Query(texts, None, None)).numpy()
    state = {name: value.numpy() for name, value in method.network.state_dict().items()}
    index = {word: i + 1 for i, word in enumerate(method.sequences.vocabulary.words)}
    for text, row in zip(texts, found, strict=True):
        vectors = state["embedding.weight"][[index[word] for word in text.split()]]
        states = [last_state(vectors, state, "")]
        if bidirectional:
            states.append(last_state(vectors[::-1], state, "_reverse"))
        expected = state["output.weight"] @ np.concatenate(states) + state["output.bias"]
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-5)


def last_state(vectors: np.ndarray, state: dict[str, np.ndarray], direction: str) -> np.ndarray:
    w, u, b, c = (state[f"lstm.{name}_l0{direction}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    hidden = cell = np.zeros(6)
    for vector in vectors:
        i, f, g, o = np.split(w @ vector + u @ hidden + b + c, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
    return hidden


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def test_it_begins_with_a_long_memory() -> None:
    method = LSTMMethod(SMALL | {"learning_rate": 0.0}, device="cpu")
    method.fit(TASK)
    bias = method.network.lstm.bias_ih_l0  # type: ignore[union-attr]
    assert bias[6:12].tolist() == [1.0] * 6  # type: ignore[index]
    assert 1.0 not in bias[:6].tolist() + bias[12:].tolist()  # type: ignore[index]


def test_only_the_first_words_are_read() -> None:
    method = LSTMMethod(SMALL | {"max_length": 3}, device="cpu")
    method.fit(TASK)
    method.network.eval()
    with torch.no_grad():
        found = method._query_logits(Query(("one two bad", "one two bad good six", "one two good"), None, None))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_every_setting_of_its_own_is_used() -> None:
    own = {"hidden": 5, "bidirectional": True, "dropout": 0.1}
    assert set(LSTMMethod.defaults) == {*SEQUENCES, *TRAINING, *own}
    digests = [LSTMMethod(SMALL | {name: value}, device="cpu").fit(TASK).digest for name, value in own.items()]
    digests.append(LSTMMethod(SMALL, device="cpu").fit(TASK).digest)
    assert len(set(digests)) == len(digests)
