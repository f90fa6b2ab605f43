"""Training learns, repeats itself to the byte, stops at the best epoch, and goes on where it was interrupted."""

import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.linalg import block_diag
from scipy.sparse import csr_array

from wgcn.base.errors import InputError, StoreError
from wgcn.network.cuda import Recorded
from wgcn.network.module import WGCN, can_fold, find_centring, sparse_matrix
from wgcn.network.settings import Callback, EpochRecord, NetworkSettings, TrainedNetwork, TrainingSettings
from wgcn.network.training import Training

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_cuda)]
NETWORK = NetworkSettings(hidden=8)
SETTINGS = TrainingSettings(max_epochs=30, patience=30, device="cpu", learning_rate=0.05)

Topics = tuple[csr_array, csr_array, np.ndarray, csr_array]


def made_topics(n_documents: int = 60) -> Topics:
    """Two topics of ten words. Each word 0-4 has a synonym 5-9, its neighbour in the graph.

    Training documents have the words 0-4 of their topic alone, and the last documents their synonyms alone.
    """
    rng = np.random.default_rng(0)
    y = np.arange(n_documents) % 2
    x = np.zeros((n_documents, 20), np.float32)
    for row, topic in zip(x, y, strict=True):
        row[topic * 10 + rng.choice(5, 3, replace=False)] = 1 / 3
    a = np.eye(20, dtype=np.float32) / 2
    for word in range(20):
        a[word, word - word % 10 + (word % 10 + 5) % 10] = 0.5
    return csr_array(a), csr_array(x), y, csr_array(np.roll(x, 5, axis=1))


TOPICS = made_topics()


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """The problems are tiny, and on a busy machine threads that wait for each other take a hundred times as long."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def logits(trained: TrainedNetwork, x: csr_array) -> np.ndarray:
    return np.maximum(x @ trained.word_table, 0) @ trained.class_weights + trained.bias


def train(
    *data: Any,
    callbacks: Sequence[Callback] = (),
    checkpoint: Path | None = None,
    resume: bool = False,
    checkpoint_every: int = 25,
    **options: Any,
) -> TrainedNetwork:
    return Training(*data, **options).train(callbacks, checkpoint, resume, checkpoint_every)


def fit(*, network: NetworkSettings = NETWORK, settings: TrainingSettings = SETTINGS, **options: Any) -> TrainedNetwork:
    a, x, y, _ = TOPICS
    return train(a, x, options.pop("targets", y), network=network, settings=settings, **options)


def assert_same(left: TrainedNetwork, right: TrainedNetwork) -> None:
    for name in ("word_table", "class_weights", "bias"):
        assert getattr(left, name).tobytes() == getattr(right, name).tobytes(), name
    assert left.epochs == right.epochs
    assert [r._replace(seconds=0) for r in left.records] == [r._replace(seconds=0) for r in right.records]


class Watch:
    """Calls a function at the end of each epoch."""

    def __init__(self, function: Callable[[EpochRecord, WGCN], None]) -> None:
        self.function = function

    def on_epoch(self, record: EpochRecord, model: WGCN) -> None:
        self.function(record, model)


def interrupt_at(epoch: int, **where: object) -> Watch:
    def stop(record: EpochRecord, model: WGCN) -> None:
        if record.epoch == epoch and all(getattr(record, name) == value for name, value in where.items()):
            raise KeyboardInterrupt

    return Watch(stop)


@pytest.mark.parametrize("device", DEVICES)
def test_words_that_no_labelled_document_has_are_learnt_through_the_graph(device: str) -> None:
    _, x, y, unseen = TOPICS
    settings = replace(SETTINGS, device=device)
    with_graph = fit(settings=settings)
    assert (logits(with_graph, x).argmax(1) == y).all()
    assert (logits(with_graph, unseen).argmax(1) == y).all()
    without = fit(network=replace(NETWORK, order=0), settings=settings)
    assert (logits(without, x).argmax(1) == y).all()
    # Their rows are as they were drawn: all documents of a topic get what chance gives them.
    assert not (logits(without, unseen).argmax(1) == y).all()


def test_several_labels_are_learnt() -> None:
    _, _, y, unseen = TOPICS
    targets = np.stack([y == 0, y == 1, np.ones_like(y)], axis=1).astype(float)
    trained = fit(targets=targets, settings=replace(SETTINGS, max_epochs=60, label_smoothing=0.1))
    assert ((logits(trained, unseen) > 0) == targets).all()
    assert trained.records[-1].validation_accuracy == 1


@pytest.mark.parametrize("device", DEVICES)
def test_the_seed_decides_every_byte(device: str) -> None:
    settings = replace(SETTINGS, device=device)
    assert_same(fit(settings=settings), fit(settings=settings))
    assert fit(settings=settings).word_table.tobytes() != fit(settings=replace(settings, seed=1)).word_table.tobytes()


def test_random_state_of_numpy_and_torch_is_neither_read_nor_changed() -> None:
    torch.manual_seed(1)
    first, state = fit(), torch.get_rng_state()
    torch.manual_seed(2)
    before = torch.get_rng_state()
    legacy = np.random.get_state()[1].tobytes()  # type: ignore[union-attr] # noqa: NPY002
    assert_same(fit(settings=SETTINGS), first)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(state, before)
    assert np.random.get_state()[1].tobytes() == legacy  # type: ignore[union-attr] # noqa: NPY002


def test_weights_of_the_best_epoch_are_kept_and_patience_ends_it() -> None:
    rng = np.random.default_rng(0)
    tables: dict[int, np.ndarray] = {}
    graph = sparse_matrix(TOPICS[0], symmetric=True)

    def copy(record: EpochRecord, model: WGCN) -> None:
        with torch.no_grad():
            tables[record.epoch] = model.word_embeddings(graph).numpy().copy()

    # Labels that mean nothing: the validation loss soon rises.
    settings = replace(SETTINGS, max_epochs=500, patience=5, validation_fraction=0.3)
    trained = fit(targets=rng.integers(0, 2, 60), settings=settings, callbacks=[Watch(copy)])
    losses = [record.validation_loss for record in trained.records]
    best = int(np.argmin(losses)) + 1  # type: ignore[arg-type]
    assert trained.epochs == (best,)
    assert len(losses) == best + 5 < 500
    np.testing.assert_array_equal(trained.word_table, tables[best])
    assert trained.n_held_out > 0


def test_refit_trains_on_all_documents_for_the_best_number_of_epochs() -> None:
    targets = np.random.default_rng(0).integers(0, 2, 60)
    settings = replace(SETTINGS, max_epochs=500, patience=5)
    searched = fit(targets=targets, settings=settings)
    refitted = fit(targets=targets, settings=replace(settings, refit=True))
    assert refitted.epochs == searched.epochs
    whole = replace(settings, max_epochs=searched.epochs[0], validation_fraction=0)
    expected = fit(targets=targets, settings=whole)
    assert refitted.word_table.tobytes() == expected.word_table.tobytes()
    assert [record.refit for record in refitted.records].count(True) == searched.epochs[0]


def mean_rule(losses: list[float], patience: int) -> int | None:
    """The epoch that ends the training, as the published code has it: later losses were not to be seen."""
    for epoch in range(patience + 1, len(losses) + 1):
        if losses[epoch - 1] > sum(losses[epoch - 1 - patience : epoch - 1]) / patience:
            return epoch
    return None


@pytest.mark.parametrize("patience", [1, 4, 10])
def test_stopping_by_the_mean_keeps_the_last_weights(patience: int) -> None:
    tables: list[np.ndarray] = []
    graph = sparse_matrix(TOPICS[0], symmetric=True)

    def copy(record: EpochRecord, model: WGCN) -> None:
        with torch.no_grad():
            tables.append(model.word_embeddings(graph).numpy().copy())

    # Labels that mean nothing: the validation loss soon rises.
    targets = np.random.default_rng(0).integers(0, 2, 60)
    settings = replace(SETTINGS, max_epochs=100, validation_fraction=0.3)
    mean = replace(settings, patience=patience, stopping="mean")
    trained = fit(targets=targets, settings=mean, callbacks=[Watch(copy)])
    endless = fit(targets=targets, settings=replace(settings, patience=100)).records
    last = mean_rule([record.validation_loss for record in endless], patience)  # type: ignore[misc]
    assert last is not None
    assert trained.epochs == (last,)
    assert [record._replace(seconds=0) for record in trained.records] == [
        record._replace(seconds=0) for record in endless[:last]
    ]
    np.testing.assert_array_equal(trained.word_table, tables[last - 1])
    # The rule has not been met by max_epochs.
    assert fit(targets=targets, settings=replace(mean, max_epochs=last - 1)).epochs == (last - 1,)


def test_stopping_by_the_mean_decides_how_long_a_refit_takes() -> None:
    targets = np.random.default_rng(0).integers(0, 2, 60)
    settings = replace(SETTINGS, max_epochs=500, patience=5, stopping="mean")
    searched = fit(targets=targets, settings=settings)
    refitted = fit(targets=targets, settings=replace(settings, refit=True))
    n = len(searched.records)
    assert refitted.epochs == searched.epochs == (n,)
    assert [record.refit for record in refitted.records] == [False] * n + [True] * n
    whole = fit(targets=targets, settings=replace(settings, max_epochs=n, validation_fraction=0))
    assert refitted.word_table.tobytes() == whole.word_table.tobytes()


def normalized(g: np.ndarray) -> csr_array:
    d = g.sum(axis=1)
    root = np.sqrt(np.where(d > 0, d, 1))
    return csr_array(g / np.outer(root, root))


def made_weights(n: int, density: float = 0.4) -> np.ndarray:
    """A symmetric matrix of edges, with self-loops."""
    rng = np.random.default_rng(n)
    g = rng.random((n, n)) * (rng.random((n, n)) < density)
    return g + g.T + np.diag(rng.random(n))


def block(*parts: np.ndarray) -> np.ndarray:
    return np.asarray(block_diag(*parts))


def centred_rows(s: csr_array, x: np.ndarray, u: np.ndarray, order: int) -> np.ndarray:
    """X D^-1/2 (S - u u^T)^n D^1/2, written out; what a word without edges gives is 0."""
    inverse = np.divide(1, u, out=np.zeros_like(u), where=u > 0)
    return x @ (inverse[:, None] * np.linalg.matrix_power(s.toarray() - np.outer(u, u), order) * u)


TREE = np.zeros((5, 5))
TREE[[0, 0, 1, 1], [1, 2, 3, 4]] = TREE[[1, 2, 3, 4], [0, 0, 1, 1]] = [1, 2, 3, 4]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "g", [made_weights(12), block(made_weights(12), np.zeros((3, 3))), TREE], ids=["whole", "lonely words", "tree"]
)
def test_centring_finds_the_first_eigenvector_and_makes_rows_1_long(g: np.ndarray, dtype: type, order: int) -> None:
    s, x = normalized(g), np.random.default_rng(0).random((9, len(g))).astype(np.float32)
    u = np.sqrt(g.sum(axis=1) / g.sum())
    found = find_centring(csr_array(s, dtype=dtype), csr_array(x), order)
    np.testing.assert_allclose(found.common, u, rtol=1e-5)
    rows = found.length * centred_rows(s, x, u, order)
    assert np.sqrt(np.mean(np.sum(rows**2, axis=1))) == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize("order", [1, 2])
def test_centring_takes_one_mean_from_a_graph_of_several_parts(order: int) -> None:
    g = block(made_weights(6, 0.9), made_weights(4, 0.9), np.ones((1, 1)), np.zeros((2, 2)))
    s, x = normalized(g), np.random.default_rng(0).random((9, 13)).astype(np.float32)
    found = find_centring(s, csr_array(x), order)
    u = found.common.astype(np.float64)
    assert np.isfinite(u).all()
    # Each part has an eigenvector of its own, and any mixture of them is one too: this one has something of all.
    np.testing.assert_allclose(s @ u, u, atol=1e-6)
    assert u @ u == pytest.approx(1, rel=1e-5)
    assert (u[:11] > 0.05).all()
    assert not u[11:].any()
    for part in (slice(6), slice(6, 10)):
        factors = u[part] / np.sqrt(g[part, part].sum(axis=1))
        np.testing.assert_allclose(factors, factors[0], rtol=1e-5)
    # The same as without centring, less a mean over all words that is the same for every word with edges.
    d = g[:11, :11].sum(axis=1)
    walk = np.linalg.matrix_power(g[:11, :11] / d[:, None], order)
    rows = centred_rows(s, x, u, order)
    np.testing.assert_allclose(rows[:, :11], x[:, :11] @ (walk - u[:11] ** 2), atol=1e-5)
    assert not rows[:, 11:].any()
    assert found.length * np.sqrt(np.mean(np.sum(rows**2, axis=1))) == pytest.approx(1, rel=1e-4)


def test_centring_does_not_blow_up_rounding_errors() -> None:
    # All words alike: nothing is left when that is taken away.
    found = find_centring(csr_array(np.full((6, 6), 1 / 6, np.float32)), csr_array(np.eye(6, dtype=np.float32)), 1)
    np.testing.assert_allclose(found.common, 6**-0.5, rtol=1e-6)
    assert found.length == 1


def test_a_graph_that_cannot_be_centred_is_refused() -> None:
    _, x, y, _ = TOPICS
    network = replace(NETWORK, centred=True)
    with pytest.raises(InputError, match="no edges, so that there is nothing to centre"):
        train(csr_array((20, 20), dtype=np.float32), x, y, network=network)
    with pytest.raises(InputError, match="negative edges"):
        train(csr_array(-np.eye(20, dtype=np.float32)), x, y, network=network)


def test_without_a_graph_there_is_nothing_to_centre() -> None:
    _, x, y, _ = TOPICS
    plain, centred = (replace(NETWORK, order=0, centred=centred) for centred in (False, True))
    assert_same(fit(network=centred), fit(network=plain))
    train(csr_array((20, 20), dtype=np.float32), x, y, network=centred, settings=SETTINGS)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", [1, 2])
def test_a_centred_graph_is_learnt_through_too(order: int, device: str) -> None:
    _, x, y, unseen = TOPICS
    trained = fit(network=replace(NETWORK, order=order, centred=True), settings=replace(SETTINGS, device=device))
    assert (logits(trained, x).argmax(1) == y).all()
    assert (logits(trained, unseen).argmax(1) == y).all()


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("residual", [0.0, 0.5])
def test_documents_multiplied_with_the_graph_beforehand_learn_the_same(
    order: int, centred: bool, residual: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # X A is formed once where A has more entries than it; the last words have no edges.
    s = normalized(block(made_weights(36, 0.9), np.zeros((4, 4))))
    x = csr_array(np.random.default_rng(0).random((20, 40)), dtype=np.float32)
    network = replace(NETWORK, order=order, centred=centred, residual=residual, word_dropout=0.0)
    assert can_fold(s, x, network)
    for other in (
        replace(network, word_activation=True),
        replace(network, word_dropout=0.1),
        replace(network, order=0),
    ):
        assert not can_fold(s, x, other)
    y = np.arange(20) % 3
    folded = train(s, x, y, network=network, settings=SETTINGS)
    monkeypatch.setattr("wgcn.network.training.can_fold", lambda *_: False)
    usual = train(s, x, y, network=network, settings=SETTINGS)
    assert folded.epochs == usual.epochs
    np.testing.assert_allclose(logits(folded, x), logits(usual, x), rtol=1e-3, atol=1e-3)


def test_a_document_of_weight_0_is_left_out() -> None:
    a, x, y, _ = TOPICS
    weights = (np.arange(60) % 3 > 0).astype(float)
    settings = SETTINGS
    kept = weights > 0
    assert_same(
        fit(sample_weight=weights, settings=settings), train(a, x[kept], y[kept], network=NETWORK, settings=settings)
    )


def test_equal_weights_change_nothing_and_heavy_documents_win() -> None:
    assert_same(fit(sample_weight=np.full(60, 0.3)), fit())
    a, x, y, _ = TOPICS
    twice = csr_array(np.vstack([x.toarray(), x.toarray()]))
    contradicting = np.concatenate([y, 1 - y])
    settings = replace(SETTINGS, validation_fraction=0)
    for heavy in (0, 1):
        weights = np.repeat([1.0, 9.0] if heavy else [9.0, 1.0], 60)
        trained = train(a, twice, contradicting, network=NETWORK, settings=settings, sample_weight=weights)
        assert (logits(trained, x).argmax(1) == (1 - y if heavy else y)).all()


def test_several_networks_become_one_that_averages_their_logits() -> None:
    _, x, _, _ = TOPICS
    together = fit(settings=replace(SETTINGS, n_models=3, seed=5))
    alone = [fit(settings=replace(SETTINGS, seed=seed)) for seed in (5, 6, 7)]
    assert together.word_table.shape == (20, 24)
    assert together.epochs == tuple(network.epochs[0] for network in alone)
    expected = np.mean([logits(network, x) for network in alone], axis=0)
    np.testing.assert_allclose(logits(together, x), expected, rtol=1e-5, atol=1e-6)
    assert {record.network for record in together.records} == {0, 1, 2}


@pytest.mark.parametrize(
    ("n_documents", "y"), [(6, [0, 1] * 3), (1, [0]), (12, list(range(12)))], ids=["few", "one", "one a class"]
)
def test_too_few_documents_are_all_trained_on(n_documents: int, y: list[int]) -> None:
    a, x, _, _ = TOPICS
    trained = train(a, x[:n_documents], np.array(y), network=NETWORK, settings=replace(SETTINGS, max_epochs=500))
    assert trained.n_held_out == 0
    assert trained.epochs == (100,)
    assert trained.records[-1].validation_loss is None
    assert (logits(trained, x[:n_documents]).argmax(1) == y).mean() > 0.4


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fraction", [0.0, 0.1])
def test_interrupted_training_resumes_to_the_same_bytes(tmp_path: Path, device: str, fraction: float) -> None:
    settings = replace(SETTINGS, device=device, validation_fraction=fraction)
    file = tmp_path / "state.safetensors"
    halfway = fit(settings=settings, checkpoint=file, callbacks=[interrupt_at(15)])
    assert halfway.interrupted
    assert len(halfway.records) == 15
    resumed = fit(settings=settings, checkpoint=file, resume=True)
    assert not resumed.interrupted
    assert_same(resumed, fit(settings=settings))


@pytest.mark.parametrize("stopping", ["best", "mean"])
def test_centred_training_and_either_stopping_resume_to_the_same_bytes(tmp_path: Path, stopping: Any) -> None:
    targets = np.random.default_rng(0).integers(0, 2, 60)
    network = replace(NETWORK, centred=True, residual=0.1)
    settings = replace(SETTINGS, max_epochs=200, patience=15, refit=True, stopping=stopping)
    whole = fit(targets=targets, network=network, settings=settings)
    n_searched = [record.refit for record in whole.records].count(False)
    assert 15 < n_searched < 200
    # In the middle, right before the last epoch of the search, and in the refit.
    for at, refit in ((8, False), (n_searched - 1, False), (1, True)):
        file = tmp_path / f"state {at} {refit}"
        watch = interrupt_at(at, refit=refit)
        halfway = fit(targets=targets, network=network, settings=settings, checkpoint=file, callbacks=[watch])
        assert halfway.interrupted
        resumed = fit(targets=targets, network=network, settings=settings, checkpoint=file, resume=True)
        assert_same(resumed, whole)


@pytest.mark.parametrize("where", [{"network": 0}, {"network": 1}, {"network": 1, "refit": True}])
def test_resuming_knows_which_network_it_was_at(tmp_path: Path, where: dict[str, object]) -> None:
    settings = replace(SETTINGS, n_models=2, refit=True, max_epochs=12)
    file = tmp_path / "state"
    fit(settings=settings, checkpoint=file, callbacks=[interrupt_at(4, **where)])
    assert_same(fit(settings=settings, checkpoint=file, resume=True), fit(settings=settings))


def test_a_killed_training_resumes_from_the_last_checkpoint(tmp_path: Path) -> None:
    def die(record: EpochRecord, model: WGCN) -> None:
        if record.epoch == 18:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        fit(checkpoint=tmp_path / "state", checkpoint_every=7, callbacks=[Watch(die)])
    seen: list[int] = []
    resumed = fit(
        checkpoint=tmp_path / "state",
        resume=True,
        callbacks=[Watch(lambda record, model: seen.append(record.epoch))],
    )
    assert seen == list(range(15, 31))
    assert_same(resumed, fit())
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


def test_resuming_a_training_that_ended_gives_it_again(tmp_path: Path) -> None:
    first = fit(checkpoint=tmp_path / "state", checkpoint_every=10)
    assert_same(fit(checkpoint=tmp_path / "state", resume=True), first)


def test_resuming_without_a_file_begins_at_the_beginning(tmp_path: Path) -> None:
    assert_same(fit(checkpoint=tmp_path / "state", resume=True), fit())


@pytest.mark.parametrize(
    "change",
    [
        {"settings": replace(SETTINGS, learning_rate=0.01)},
        {"settings": replace(SETTINGS, seed=1)},
        {"settings": replace(SETTINGS, stopping="mean")},
        {"network": replace(NETWORK, residual=0.5)},
        {"network": replace(NETWORK, centred=True)},
        {"targets": 1 - TOPICS[2]},
        {"sample_weight": np.arange(1.0, 61)},
    ],
    ids=["learning rate", "seed", "stopping", "residual", "centred", "targets", "weights"],
)
def test_resuming_another_training_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    fit(checkpoint=tmp_path / "state")
    with pytest.raises(InputError, match="other data, settings or device"):
        fit(checkpoint=tmp_path / "state", resume=True, **change)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "state"
    fit(checkpoint=file)
    content = file.read_bytes()
    places = np.random.default_rng(0).integers(0, len(content), 40)
    damaged = [content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :] for place in places]
    for wrong in [b"", b"text", content[:100], content[:-1], content + b" ", *damaged]:
        file.write_bytes(wrong)
        with pytest.raises(StoreError, match=r"state is damaged or no checkpoint"):
            fit(checkpoint=file, resume=True)


def test_an_interrupt_keeps_the_best_network_so_far() -> None:
    targets = np.random.default_rng(0).integers(0, 2, 60)
    full = fit(targets=targets, settings=replace(SETTINGS, patience=10, max_epochs=100))
    best = full.epochs[0]
    trained = fit(
        targets=targets, settings=replace(SETTINGS, patience=10, max_epochs=100), callbacks=[interrupt_at(best + 3)]
    )
    assert trained.interrupted
    assert trained.epochs == (best,)
    assert trained.word_table.tobytes() == full.word_table.tobytes()


def test_an_interrupted_refit_keeps_the_network_that_was_found_before() -> None:
    settings = replace(SETTINGS, refit=True)
    trained = fit(settings=settings, callbacks=[interrupt_at(1, refit=True)])
    assert trained.interrupted
    assert trained.word_table.tobytes() == fit().word_table.tobytes()


@pytest.fixture
def handler() -> Iterator[Callable[[Any], None]]:
    """Set what Ctrl-C does, whatever the tests were started with: a shell's background jobs ignore it."""
    before = signal.getsignal(signal.SIGINT)
    yield lambda wanted: signal.signal(signal.SIGINT, wanted) and None
    signal.signal(signal.SIGINT, before)


def test_control_c_ends_the_training_after_the_epoch(handler: Callable[[Any], None]) -> None:
    handler(signal.default_int_handler)

    def press(record: EpochRecord, model: WGCN) -> None:
        if record.epoch == 3:
            signal.raise_signal(signal.SIGINT)

    trained = fit(callbacks=[Watch(press)])
    assert len(trained.records) == 3
    assert trained.interrupted
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def press_twice(record: EpochRecord, model: WGCN) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    assert len(fit(callbacks=[Watch(press_twice)]).records) == 1


def test_control_c_stays_ignored_where_it_was_ignored(handler: Callable[[Any], None]) -> None:
    handler(signal.SIG_IGN)
    trained = fit(callbacks=[Watch(lambda record, model: signal.raise_signal(signal.SIGINT))])
    assert len(trained.records) == 30
    assert not trained.interrupted
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_control_c_goes_to_a_handler_of_the_users_own(handler: Callable[[Any], None]) -> None:
    seen: list[int] = []

    def own(number: int, frame: object) -> None:
        seen.append(number)

    handler(own)
    trained = fit(callbacks=[Watch(lambda record, model: signal.raise_signal(signal.SIGINT))])
    assert len(seen) == len(trained.records) == 30
    assert signal.getsignal(signal.SIGINT) is own


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 0}, "learning_rate must be above 0"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"weight_decay": -1}, "weight_decay"),
        ({"max_epochs": 0}, "max_epochs must be at least 1, got 0"),
        ({"patience": 0}, "patience"),
        ({"stopping": "never"}, "stopping must be 'best' or 'mean', got 'never'"),
        ({"patience": None}, "patience must be at least 1, got None"),
        ({"label_smoothing": 1}, "label_smoothing"),
        ({"validation_fraction": 1.0}, "below 1, got 1.0"),
        ({"n_models": 0}, "n_models"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_settings_are_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainingSettings(**options)


@pytest.mark.parametrize("options", [{"hidden": 0}, {"order": -1}, {"residual": np.inf}, {"word_dropout": 1}])
def test_wrong_networks_are_explained(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        NetworkSettings(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"settings": replace(SETTINGS, device="abacus")}, "Unknown device 'abacus'"),
        ({"settings": replace(SETTINGS, device="meta")}, "'meta' is not there"),
        ({"settings": replace(SETTINGS, learning_rate=1e30)}, "The loss became"),
    ],
)
def test_what_cannot_be_trained_on_is_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit(**options)


@needs_cuda
def test_cuda_learns_what_the_cpu_learns() -> None:
    _, x, _, _ = TOPICS
    network = replace(NETWORK, word_dropout=0, document_dropout=0)
    cpu, cuda = (fit(network=network, settings=replace(SETTINGS, device=device)) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(logits(cpu, x), logits(cuda, x), rtol=1e-2, atol=1e-2)


@needs_cuda
@pytest.mark.parametrize("stopping", ["best", "mean"])
@pytest.mark.parametrize("network", [{}, {"word_activation": True}, {"centred": True, "order": 2}, {"order": 0}])
def test_recorded_epochs_learn_what_others_learn(
    network: dict[str, Any], stopping: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = np.random.default_rng(0).integers(0, 2, 60)
    settings = replace(SETTINGS, device="cuda", max_epochs=100, patience=8, stopping=stopping, refit=True)
    recorded = fit(targets=targets, network=replace(NETWORK, **network), settings=settings)
    monkeypatch.setattr(Recorded, "warm_up", 10**9)
    assert_same(recorded, fit(targets=targets, network=replace(NETWORK, **network), settings=settings))
