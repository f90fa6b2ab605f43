"""The loop that all networks share, on the smallest of networks: logistic regression on features."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from wgcn.base.errors import InputError
from wgcn.base.threads import find_device
from wgcn_paper.methods.baseline import hold_out, in_fixed_order
from wgcn_paper.methods.network import TRAINING, NetworkBaseline, seeded
from wgcn_paper.protocol import Query, Task

pytestmark = pytest.mark.usefixtures("one_thread")


class Plain(NetworkBaseline):
    """Logits are features times weights; notes down what it is asked for."""

    name = "plain"
    why_not = "It is a test."
    defaults: ClassVar = {**TRAINING, "learning_rate": 0.1, "max_epochs": 20}

    def _prepare(self, task: Task) -> None:
        assert task.features is not None
        self.task = task
        self.trained_on: list[list[int]] = []
        self.validated_on: list[list[int]] = []
        self.rows = torch.from_numpy(task.features.toarray()).float().to(self.torch_device)

    def _make_network(self, n_classes: int) -> nn.Module:
        return nn.Linear(self.rows.shape[1], n_classes)

    def _logits(self, rows: npt.NDArray[np.int64]) -> Tensor:
        (self.trained_on if self.network.training else self.validated_on).append(rows.tolist())
        logits: Tensor = self.network(self.rows[torch.from_numpy(rows)])
        return logits

    def _query_logits(self, query: Query) -> Tensor:
        return self._logits(self._places(query))


class Told(Plain):
    """The losses and accuracies on validation documents are given, and the weight counts the epochs."""

    told: tuple[tuple[float, float], ...] = ()

    def _make_network(self, n_classes: int) -> nn.Module:
        made = nn.Linear(self.rows.shape[1], n_classes)
        made.register_buffer("epoch", torch.zeros(()))
        return made

    def _validate(self, rows: npt.NDArray[np.int64]) -> tuple[float, float]:
        self.network.epoch += 1
        return self.told[int(self.network.epoch) - 1]


def make_task(n: int = 40, n_classes: int = 2, seed: int = 0) -> Task:
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    features = rng.normal(size=(n, 4)) + 3 * np.eye(4)[codes]
    links = csr_array((rng.random((n, n)) < 0.2).astype(np.float32))
    labels = np.array([f"class {code}" for code in codes], object)
    return Task(None, csr_array(features), labels, np.empty(0, np.int64), links)


def permuted(task: Task, order: npt.NDArray[np.int64]) -> Task:
    assert task.features is not None
    assert task.document_graph is not None
    place = np.argsort(order)
    graph = task.document_graph[order][:, order]
    return Task(None, task.features[order], task.labels[order], place[task.validation], graph)


def fitted(task: Task, **settings: Any) -> Plain:
    method = Plain(settings, device="cpu")
    method.fit(task)
    return method


def flat(batches: list[list[int]]) -> list[int]:
    return [row for batch in batches for row in batch]


# What is held out


@pytest.mark.parametrize("fraction", [0.1, 0.5, 1.0])
def test_hold_out_leaves_each_class_a_document(fraction: float) -> None:
    codes = np.array([0] * 20 + [1] * 3 + [2] + [-1] * 5)
    taken = [hold_out(codes, fraction, seed) for seed in range(50)]
    for held_out in taken:
        assert set(codes[~held_out]) == {0, 1, 2, -1}
        assert not held_out[codes < 0].any()
        assert 0 < held_out.sum() <= round(24 * fraction)
    assert len({held_out.tobytes() for held_out in taken}) > 10
    assert np.array_equal(hold_out(codes, fraction, 3), taken[3])


def test_a_share_is_held_out_and_never_trained_on() -> None:
    method = fitted(make_task(), validation_fraction=0.25)
    trained, held_out = set(flat(method.trained_on)), set(flat(method.validated_on))
    assert (len(trained), len(held_out)) == (30, 10)
    assert trained | held_out == set(range(40))


def test_documents_for_validation_are_the_ones_held_out() -> None:
    task = replace(make_task(), validation=np.array([3, 30, 7]))
    method = Plain(device="cpu")
    fit = method.fit(task)
    assert set(flat(method.validated_on)) == set(method._rank[task.validation])
    assert len(set(flat(method.trained_on))) == 37
    guesses = method.predict(task.documents(task.validation))
    assert fit.validation_accuracy == pytest.approx(np.mean(guesses == task.labels[task.validation]))


def test_without_validation_all_epochs_are_run() -> None:
    method = Plain({"validation_fraction": 0.0, "patience": 1}, device="cpu")
    fit = method.fit(make_task())
    assert (fit.epochs, fit.validation_accuracy, method.validated_on) == (20, None, [])


@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_few_labels(n_labels: int) -> None:
    task = make_task()
    labels = np.full(40, None, object)
    labels[:n_labels] = task.labels[:n_labels]
    method = fitted(replace(task, labels=labels))
    assert set(flat(method.trained_on)) <= set(method._rank[:n_labels])
    assert np.mean(method.predict(task.documents(np.arange(40))) == task.labels) > 0.7


# Which epoch is kept

CURVE = ((5.0, 0.2), (3.0, 0.4), (4.0, 0.6), (2.0, 0.5), (2.5, 0.6), (2.6, 0.7), (2.7, 0.1), (2.8, 0.1), (9.0, 0.1))


@pytest.mark.parametrize(
    ("stopping", "patience", "epochs", "kept"),
    [
        ("loss", 1, 3, 2),
        ("loss", 2, 6, 4),
        ("loss", 4, 8, 4),
        ("accuracy", 1, 4, 3),
        ("accuracy", 2, 5, 3),  # an equal accuracy later is no better
        ("accuracy", 3, 9, 6),
        ("mean", 1, 3, 3),  # 4 > 3
        ("mean", 2, 6, 6),  # 2.6 > mean of 2 and 2.5; in epoch 3 the loss equals the mean, which is not above it
        ("mean", 3, 7, 7),
    ],
)
def test_stopping(stopping: str, patience: int, epochs: int, kept: int) -> None:
    method = Told({"stopping": stopping, "patience": patience, "max_epochs": len(CURVE)}, device="cpu")
    method.told = CURVE
    fit = method.fit(make_task())
    assert fit.epochs == epochs
    assert int(method.network.epoch) == kept
    assert fit.validation_accuracy == CURVE[kept - 1][1]


def test_best_weights_are_restored() -> None:
    # A learning rate this large throws good weights away at once, and labels this wrong cannot be learnt.
    method = Plain({"learning_rate": 5.0, "patience": 30, "max_epochs": 30, "stopping": "loss"}, device="cpu")
    losses: list[tuple[float, float]] = []
    validate = method._validate

    def noted(rows: npt.NDArray[np.int64]) -> tuple[float, float]:
        losses.append(validate(rows))
        return losses[-1]

    method._validate = noted  # type: ignore[method-assign]
    task = make_task()
    method.fit(replace(task, labels=np.random.default_rng(0).permutation(task.labels)))
    assert len(losses) == 30
    assert losses[-1][0] > min(losses)[0]
    held_out = np.array(sorted(set(flat(method.validated_on))))
    assert validate(held_out) == pytest.approx(min(losses))


# Order and random numbers


def test_order_depends_on_content_alone() -> None:
    task = replace(make_task(), validation=np.array([1, 5, 8]))
    order = np.random.default_rng(1).permutation(40)
    other = permuted(task, order)
    (first, rank), (second, other_rank) = in_fixed_order(task), in_fixed_order(other)
    assert first.digest == second.digest != task.digest
    assert np.array_equal(first.labels, second.labels)
    assert np.array_equal(first.validation, second.validation)
    assert np.array_equal(rank[order], other_rank)
    assert first.features is not None
    assert first.document_graph is not None
    assert task.features is not None
    assert task.document_graph is not None
    # Nothing is lost on the way: what stood at i stands at rank[i].
    assert np.array_equal(first.features.toarray()[rank], task.features.toarray())
    assert np.array_equal(first.document_graph.toarray()[rank][:, rank], task.document_graph.toarray())
    assert np.array_equal(first.labels[rank], task.labels)
    assert set(first.validation) == set(rank[task.validation])


def test_order_of_texts() -> None:
    texts = ("b", "a", "", "a", "\ud800")
    task = Task(texts, None, np.array([None, "x", "y", "w", None], object), np.empty(0, np.int64), None)
    order = np.array([3, 0, 4, 2, 1])
    other = replace(task, texts=tuple(texts[i] for i in order), labels=task.labels[order])
    (first, rank), (second, _) = in_fixed_order(task), in_fixed_order(other)
    assert (first.texts, first.labels.tolist()) == (second.texts, second.labels.tolist())
    assert first.texts is not None
    assert [first.texts[i] for i in rank] == list(texts)


@pytest.mark.parametrize("batch_size", [0, 7])
def test_results_do_not_depend_on_order(batch_size: int) -> None:
    task = make_task()
    order = np.random.default_rng(1).permutation(40)
    methods = [Plain({"batch_size": batch_size}, device="cpu") for _ in range(2)]
    fits = [method.fit(one) for method, one in zip(methods, (task, permuted(task, order)), strict=True)]
    assert fits[0].digest == fits[1].digest
    places = np.array([4, 0, 9])
    guesses = methods[0].predict(task.documents(order[places]))
    other = methods[1].predict(Query(None, None, None, places))
    assert guesses.tolist() == other.tolist()


def test_each_epoch_takes_every_document_once_in_another_order() -> None:
    method = fitted(make_task(), batch_size=7, max_epochs=2, validation_fraction=0.0)
    sizes = [len(batch) for batch in method.trained_on]
    assert sizes == [7, 7, 7, 7, 7, 5] * 2
    first, second = flat(method.trained_on[:6]), flat(method.trained_on[6:])
    assert sorted(first) == sorted(second) == list(range(40))
    assert first != second


def test_random_numbers_of_torch_are_given_back() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fitted(make_task())
    assert torch.equal(torch.rand(3), expected)
    torch.manual_seed(5)
    with seeded(0, torch.device("cpu")):
        assert not torch.equal(torch.rand(3), expected)
    assert torch.equal(torch.rand(3), expected)


def test_the_seed_and_nothing_else_counts() -> None:
    digests = []
    for seed, torch_seed in ((0, 1), (0, 2), (1, 1)):
        torch.manual_seed(torch_seed)
        digests.append(Plain(seed=seed, device="cpu").fit(make_task()).digest)
    assert digests[0] == digests[1] != digests[2]


# What goes wrong


def test_a_loss_that_is_no_number_is_one_clear_error() -> None:
    task = make_task()
    assert task.features is not None
    values = task.features.toarray()
    values[0, 0] = np.nan
    with pytest.raises(InputError, match=r"The loss of plain became nan in epoch 1.*learning_rate \(0.1\)"):
        fitted(replace(task, features=csr_array(values)), validation_fraction=0.0)


def test_an_unknown_rule_of_stopping_is_an_error() -> None:
    with pytest.raises(InputError, match="stopping is one of loss, accuracy, mean, got 'best'"):
        fitted(make_task(), stopping="best")


def test_documents_without_a_place_are_unknown_to_a_transductive_method() -> None:
    method = fitted(make_task())
    with pytest.raises(InputError, match=r"plain cannot classify documents that it has not seen. It is a test."):
        method.predict(Query(None, csr_array(np.eye(4)), None))


def test_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="'cuda' is not there"):
        Plain(device="cuda").fit(make_task())
    assert find_device("auto") == torch.device("cpu")
