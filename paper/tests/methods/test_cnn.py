import numpy as np
import pytest
import torch

from wgcn_paper.methods.cnn import CNNMethod
from wgcn_paper.methods.network import TRAINING
from wgcn_paper.methods.sequences import SEQUENCES
from wgcn_paper.protocol import Query, Task

FILLER = np.array(["one", "two", "three", "four", "five", "six"])
SMALL = {"word_vectors": "", "dimension": 8, "feature_maps": 6, "learning_rate": 0.02, "max_epochs": 2}


pytestmark = pytest.mark.usefixtures("one_thread")


def phrases(n: int, seed: int) -> tuple[tuple[str, ...], np.ndarray]:
    """The same words in both classes; only their order tells."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    texts = []
    for label in labels:
        before, after = (" ".join(rng.choice(FILLER, rng.integers(0, 6))) for _ in range(2))
        texts.append(f"{before} {'not good but bad' if label else 'not bad but good'} {after}")
    return tuple(texts), np.array(["good", "bad"], object)[labels]


TEXTS, LABELS = phrases(200, 0)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)


def test_it_learns_the_order_of_words() -> None:
    method = CNNMethod(SMALL | {"max_epochs": 12, "patience": 12}, device="cpu")
    fit = method.fit(TASK)
    assert fit.validation_accuracy == 1.0
    texts, labels = phrases(80, 1)
    assert np.mean(method.predict(Query(texts, None, None)) == labels) > 0.95


def test_logits_are_those_of_the_equations() -> None:
    method = CNNMethod(SMALL, device="cpu")
    method.fit(TASK)
    method.network.eval()
    texts = ("not good but bad one two three", "one not", "", "two three four")
    with torch.no_grad():
        found = method._query_logits(Query(texts, None, None)).numpy()
    state = {name: value.numpy() for name, value in method.network.state_dict().items()}
    index = {word: i + 1 for i, word in enumerate(method.sequences.vocabulary.words)}
    for text, row in zip(texts, found, strict=True):
        vectors = state["embedding.weight"][[index[word] for word in text.split()]]
        features = []
        for i, width in enumerate((3, 4, 5)):
            weight, bias = state[f"filters.{i}.weight"], state[f"filters.{i}.bias"]
            filled = np.concatenate([vectors, np.zeros((max(width - len(vectors), 0), 8), np.float32)])
            windows = [filled[t : t + width] for t in range(len(filled) - width + 1)]
            values = [np.maximum(np.einsum("fdw,wd->f", weight, window) + bias, 0) for window in windows]
            features.append(np.max(values, axis=0))
        expected = state["output.weight"] @ np.concatenate(features) + state["output.bias"]
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-5)


def test_a_neighbour_in_the_batch_or_padding_never_wins() -> None:
    method = CNNMethod(SMALL, device="cpu")
    method.fit(TASK)
    with torch.no_grad():
        for filters in method.network.filters:  # type: ignore[union-attr]
            filters.weight.fill_(-1.0)  # type: ignore[union-attr]
            filters.bias.fill_(1.0)  # type: ignore[union-attr]
        method.network.embedding.weight[1:] = 1.0  # type: ignore[index,union-attr,operator]
        method.network.output.weight.fill_(1.0)  # type: ignore[union-attr,operator]
        method.network.output.bias.zero_()  # type: ignore[union-attr,operator]
        method.network.eval()
        # A window with a word gives less than nothing, one of padding alone would give 1.
        full = method._query_logits(Query(("not", "one two three four five six one", "not good"), None, None))
        empty = method._query_logits(Query(("",), None, None))
    assert not full.any()
    assert empty.all()


def test_rows_of_the_last_layer_keep_to_the_norm() -> None:
    free, bound = (CNNMethod(SMALL | {"max_norm": norm, "max_epochs": 8}, device="cpu") for norm in (100.0, 0.5))
    norms = []
    for method in (free, bound):
        method.fit(TASK)
        norms.append(method.network.output.weight.norm(dim=1).max().item())  # type: ignore[union-attr,operator]
    assert norms[1] <= 0.5 + 1e-5 < norms[0]


def test_every_setting_of_its_own_is_used() -> None:
    own = {"feature_maps": 5, "dropout": 0.1, "max_norm": 0.4}
    assert set(CNNMethod.defaults) == {*SEQUENCES, *TRAINING, *own}
    digests = [CNNMethod(SMALL | {name: value}, device="cpu").fit(TASK).digest for name, value in own.items()]
    digests.append(CNNMethod(SMALL, device="cpu").fit(TASK).digest)
    assert len(set(digests)) == len(digests)


def test_published_settings_are_the_defaults() -> None:
    found = CNNMethod.defaults
    assert (found["feature_maps"], found["dropout"], found["max_norm"], found["batch_size"]) == (100, 0.5, 3.0, 50)
