"""The training loop: Adam on the loss of eq. 7, early stopping, callbacks, and checkpoints that resume bit for bit."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812
from scipy.sparse import csr_array
from torch import Tensor

from wgcn.device import find_device
from wgcn.errors import InputError
from wgcn.network.callbacks import Callback
from wgcn.network.centring import can_fold, find_centring, fold
from wgcn.network.checkpoint import Checkpoint, digest
from wgcn.network.module import WGCN, Centring, SparseMatrix, sparse_matrix
from wgcn.network.settings import EpochRecord, History, NetworkSettings, Result, TrainedNetwork, TrainingSettings

__all__ = ["Run", "Training", "train"]

MIN_DOCUMENTS_TO_SPLIT = 10
EPOCHS_WITHOUT_VALIDATION = 100


def train(
    adjacency: csr_array,
    document_terms: csr_array,
    targets: npt.NDArray[Any],
    *,
    network: NetworkSettings | None = None,
    settings: TrainingSettings | None = None,
    sample_weight: npt.ArrayLike | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | Path | None = None,
    resume: bool = False,
) -> TrainedNetwork:
    """Train a WGCN on labelled documents.

    Ctrl-C ends the training after the epoch in progress and keeps the best network so far; a second one raises
    KeyboardInterrupt at once.

    Parameters
    ----------
    adjacency : csr_array of shape (words, words)
        A_vv, which must be symmetric.
    document_terms : csr_array of shape (documents, words)
    targets : int array of shape (documents,), or array of 0 and 1 of shape (documents, classes)
        The class of each document (softmax, eq. 7), or all its labels (a sigmoid each).
    network : NetworkSettings, optional
    settings : TrainingSettings, optional
    sample_weight : array of shape (documents,), optional
        Factors of the documents' losses. A document of weight 0 is left out.
    callbacks : sequence of Callback
    checkpoint : path, optional
        File in which to keep the state of the training.
    resume : bool
        Whether to go on from the checkpoint, if there is one, to the same bytes as without a break.

    Returns
    -------
    TrainedNetwork
    """
    network, settings = network or NetworkSettings(), settings or TrainingSettings()
    if resume and checkpoint is None:
        raise InputError("resume needs a checkpoint: give the file to go on from.")
    task = _prepare(adjacency, document_terms, targets, sample_weight, network, settings)
    training = Training(task)
    file = None if checkpoint is None else Checkpoint(Path(checkpoint), task.fingerprint())
    if file is not None and resume:
        file.restore(training)
    interrupted = False
    with _deferred_interrupt() as interrupt:
        while not interrupted and (run := training.current_run()) is not None:
            while not interrupted and not run.finished:
                training.records.append(run.train_epoch())
                interrupted = _tell(callbacks, training.records[-1], run.model) or interrupt.is_set()
                if file is not None and (interrupted or run.epoch % settings.checkpoint_every == 0):
                    file.save(training, run)
            if run.finished:
                training.finish_run(run)
    return training.outcome(interrupted)


@dataclass(frozen=True, eq=False)
class _Task:
    """What is to be learnt, checked, with the graph on the device."""

    adjacency: SparseMatrix
    document_terms: csr_array  # (documents, words)
    targets: npt.NDArray[Any]  # (documents,) int64 or (documents, classes) float32
    weights: npt.NDArray[np.float64]  # (documents,)
    n_classes: int
    network: NetworkSettings
    settings: TrainingSettings
    device: torch.device
    centring: Centring | None = None
    folded: bool = False  # whether the rows of document_terms are those of X A already

    @cached_property
    def validates(self) -> bool:
        """Whether documents are held out for validation, which is so with every seed or with none."""
        return len(_held_out(self, self.settings.seed)) > 0

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of a network's word table, class weights and bias."""
        hidden = self.network.hidden
        return (self.document_terms.shape[1], hidden), (hidden, self.n_classes), (self.n_classes,)

    def fingerprint(self) -> str:
        """Digest of all that decides the result, so that no checkpoint is taken for one of another training."""
        settings = {
            **asdict(replace(self.network, word_features=None)),
            **asdict(self.settings),
            "device": self.device.type,
            "shape": [*self.document_terms.shape, self.n_classes],
        }
        del settings["checkpoint_every"]
        graph, terms, features = self.adjacency.matrix, self.document_terms, self.network.word_features
        arrays = {
            "rows": graph.crow_indices().cpu().numpy(),
            "columns": graph.col_indices().cpu().numpy(),
            "edges": graph.values().cpu().numpy(),
            "offsets": terms.indptr,
            "words": terms.indices,
            "terms": terms.data,
            "targets": self.targets,
            "weights": self.weights,
            "features": np.empty(0) if features is None else np.asarray(features),
        }
        return digest(json.dumps(settings, sort_keys=True, default=float), arrays)


def _prepare(
    adjacency: csr_array,
    document_terms: csr_array,
    targets: npt.NDArray[Any],
    sample_weight: npt.ArrayLike | None,
    network: NetworkSettings,
    settings: TrainingSettings,
) -> _Task:
    device = find_device(settings.device)
    n_documents, n_words = document_terms.shape
    targets = np.asarray(targets)
    weights = np.ones(n_documents) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if not n_documents:
        raise InputError("There are no labelled documents to train on.")
    if adjacency.shape != (n_words, n_words):
        raise InputError(
            f"adjacency has the shape {adjacency.shape}, but document_terms has {n_words:,} columns: expected a row "
            "and a column for each."
        )
    if len(targets) != n_documents or weights.shape != (n_documents,):
        raise InputError(
            f"document_terms has {n_documents:,} rows, targets {len(targets):,}, and sample_weight has the shape "
            f"{weights.shape}: expected one of each for every document."
        )
    if not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
        raise InputError("sample_weight must be finite, not negative, and above 0 for at least one document.")
    if targets.ndim == 2 and np.isin(targets, (0, 1)).all():
        targets, n_classes = targets.astype(np.float32), targets.shape[1]
    elif targets.ndim == 1 and np.issubdtype(targets.dtype, np.integer) and targets.min() >= 0:
        targets, n_classes = targets.astype(np.int64), int(targets.max()) + 1
    else:
        raise InputError(
            f"targets is {targets.dtype} of shape {targets.shape}; expected class numbers from 0 on, one for each "
            "document, or a matrix of 0 and 1 with a column for each class."
        )
    used = weights > 0
    terms = csr_array(document_terms, dtype=np.float32)[used]
    graph = sparse_matrix(csr_array(adjacency, dtype=np.float32), device, symmetric=True)
    centring = find_centring(adjacency, terms, network.order) if network.centred and network.order else None
    folded = can_fold(adjacency, terms, network)
    if folded:
        terms = fold(adjacency, terms, network, centring)
    return _Task(graph, terms, targets[used], weights[used], n_classes, network, settings, device, centring, folded)


class _Batch(NamedTuple):
    terms: SparseMatrix  # (documents, words)
    targets: Tensor
    weights: Tensor  # (documents,)

    @classmethod
    def take(cls, task: _Task, rows: npt.NDArray[np.int64], mean_weight: float) -> _Batch:
        weights = torch.from_numpy(task.weights[rows] / mean_weight).float()
        terms = sparse_matrix(task.document_terms[rows], task.device)
        return cls(terms, torch.from_numpy(task.targets[rows]).to(task.device), weights.to(task.device))

    def loss(self, logits: Tensor, smoothing: float = 0.0) -> Tensor:
        if self.targets.ndim == 1:  # eq. 7
            losses = F.cross_entropy(logits, self.targets, reduction="none", label_smoothing=smoothing)
        else:
            targets = self.targets * (1 - smoothing) + smoothing / 2
            losses = F.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(dim=1)
        return (losses * self.weights).mean()

    def accuracy(self, logits: Tensor) -> Tensor:
        """Share of the documents that get the right class, or just the right labels."""
        if self.targets.ndim == 1:
            right = logits.argmax(dim=1) == self.targets
        else:
            right = ((logits > 0) == (self.targets > 0)).all(dim=1)
        return right.float().mean()


class Run:
    """One network from its first weights to its last epoch."""

    def __init__(self, task: _Task, number: int, refit_epochs: int | None = None) -> None:
        settings = task.settings
        self.task, self.number, self.refit = task, number, refit_epochs is not None
        held_out = np.empty(0, np.int64) if self.refit else _held_out(task, settings.seed + number)
        self.rows = np.setdiff1d(np.arange(len(task.targets)), held_out)
        self.limit = refit_epochs or settings.max_epochs
        if not self.refit and not len(held_out) and settings.validation_fraction > 0:
            self.limit = min(self.limit, EPOCHS_WITHOUT_VALIDATION)
        self.mean_weight = float(task.weights[self.rows].mean())
        self.whole = _Batch.take(task, self.rows, self.mean_weight) if settings.batch_size is None else None
        self.validation = _Batch.take(task, held_out, float(task.weights[held_out].mean())) if len(held_out) else None

        start = torch.Generator().manual_seed(settings.seed + number)
        n_words = task.document_terms.shape[1]
        options = {name: value for name, value in vars(task.network).items() if name != "centred"}
        self.model = WGCN(n_words, task.n_classes, **options, centring=task.centring, generator=start).to(task.device)
        # Dropout and the order of mini-batches; a stream of its own, not the one that the first weights came from.
        self.generator = torch.Generator(task.device).manual_seed(int(torch.randint(2**62, (), generator=start)))
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        self.word_embeddings: Tensor | None = None
        self.epoch = self.best_epoch = 0
        self.best_loss = np.inf
        self.losses: list[float] = []  # of the validation documents
        self.best: dict[str, Tensor] = {}

    @property
    def finished(self) -> bool:
        """Whether there is no further epoch."""
        return self.epoch >= self.limit or (self.validation is not None and self._stale())

    @property
    def keeps_best(self) -> bool:
        """Whether the best weights so far are kept, which are the result."""
        return self.validation is not None and self.task.settings.stopping == "best"

    @property
    def n_batches(self) -> int:
        """Mini-batches in an epoch."""
        return -(-len(self.rows) // (self.task.settings.batch_size or len(self.rows)))

    def _stale(self) -> bool:
        patience = self.task.settings.patience
        if self.task.settings.stopping == "best":
            return self.epoch - self.best_epoch >= patience
        return self.epoch > patience and self.losses[-1] > float(np.mean(self.losses[-patience - 1 : -1]))

    def train_epoch(self) -> EpochRecord:
        """Train on all documents once."""
        started = time.perf_counter()
        self.model.train()
        total = torch.zeros((), device=self.task.device)
        for batch in self._batches():
            # The validation of the last epoch had the embeddings of the same weights: a third of the work is saved.
            embeddings, self.word_embeddings = self.word_embeddings, None
            if embeddings is None:
                embeddings = self._embeddings()
            logits = self.model.classify(batch.terms, embeddings, self.generator)
            loss = batch.loss(logits, self.task.settings.label_smoothing)
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            total += loss.detach() * len(batch.targets)
        self.epoch += 1
        mean, validation_loss, accuracy = self._measure(total / len(self.rows))
        if not np.isfinite([mean, validation_loss or 0.0]).all():
            raise InputError(
                f"The loss became {mean} in epoch {self.epoch} (validation: {validation_loss}): look for huge or "
                f"missing values in the data, or lower learning_rate ({self.task.settings.learning_rate})."
            )
        seconds = time.perf_counter() - started
        return EpochRecord(self.epoch, mean, validation_loss, accuracy, seconds, self.number, self.refit)

    def _embeddings(self) -> Tensor:
        """Return the words' rows that the documents' rows are multiplied by."""
        return self.model.own_rows() if self.task.folded else self.model.word_embeddings(self.task.adjacency)

    def _batches(self) -> Iterator[_Batch]:
        if self.whole is not None:
            yield self.whole
            return
        size = self.task.settings.batch_size or len(self.rows)
        order = torch.randperm(len(self.rows), generator=self.generator, device=self.task.device).cpu().numpy()
        for begin in range(0, len(order), size):
            yield _Batch.take(self.task, self.rows[order[begin : begin + size]], self.mean_weight)

    def _measure(self, training_loss: Tensor) -> tuple[float, float | None, float | None]:
        """Return the losses of both parts and the accuracy on the validation documents, which decides what is kept."""
        self.model.eval()
        if self.validation is None:
            self.best_epoch = self.epoch
            return float(training_loss), None, None
        self.word_embeddings = self._embeddings()
        with torch.no_grad():
            logits = self.model.classify(self.validation.terms, self.word_embeddings)
            figures = [training_loss, self.validation.loss(logits), self.validation.accuracy(logits)]
            # All at once: a graphics card stands still while it is asked for a number.
            mean, loss, accuracy = torch.stack(figures).tolist()
        self.losses.append(loss)
        if self.task.settings.stopping == "mean":
            self.best_epoch = self.epoch
        elif loss < self.best_loss:
            self.best_loss, self.best_epoch = loss, self.epoch
            self.best = {name: weights.detach().clone() for name, weights in self.model.named_parameters()}
        return mean, loss, accuracy

    @torch.no_grad()
    def result(self) -> Result:
        """Return the best network so far, or the last with stopping="mean"; the run is over then."""
        for name, weights in self.best.items():
            self.model.get_parameter(name).copy_(weights)
        parts = (self.model.word_embeddings(self.task.adjacency), self.model.class_weights, self.model.bias)
        table, class_weights, bias = (part.detach().cpu().numpy() for part in parts)
        return Result(table, class_weights, bias, self.best_epoch, self.validation is not None)

    def tensors(self) -> dict[str, Tensor]:
        """Return all that the next epochs depend on, beside the numbers that a checkpoint takes by name."""
        tensors = {"generator": self.generator.get_state()}
        for name, weights in self.model.named_parameters():
            tensors[f"weights.{name}"] = weights.detach()
            tensors.update({f"{key}.{name}": value for key, value in self.optimizer.state[weights].items()})
            if self.best:
                tensors[f"best.{name}"] = self.best[name]
        return tensors

    @torch.no_grad()
    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Take what `tensors` returned. Names, types and shapes must be right: nothing here looks at them."""
        self.generator.set_state(tensors["generator"])
        for name, weights in self.model.named_parameters():
            weights.copy_(tensors[f"weights.{name}"])
            for key in ("step", "exp_avg", "exp_avg_sq"):
                self.optimizer.state[weights][key] = tensors[f"{key}.{name}"].to(self.task.device, copy=True)
            if f"best.{name}" in tensors:
                self.best[name] = tensors[f"best.{name}"].to(self.task.device, copy=True)


class Training:
    """All runs: a network after the other, each trained again on all documents if that is asked for."""

    def __init__(self, task: _Task) -> None:
        self.task = task
        self.done: list[Result] = []
        self.records: list[EpochRecord] = []
        self.run: Run | None = None

    def current_run(self) -> Run | None:
        """Return the run to go on with, or None when all are done."""
        if self.run is None:
            last = self.done[-1] if self.done else None
            # What was trained without validation was trained on all documents already.
            if last is not None and last.validated and self.task.settings.refit:
                self.run = Run(self.task, len(self.done) - 1, last.epochs)
            elif len(self.done) < self.task.settings.n_models:
                self.run = Run(self.task, len(self.done))
        return self.run

    def finish_run(self, run: Run) -> None:
        """Keep what the current run has come to, in the place of what it repeats if it is a refit."""
        if run.refit:
            self.done.pop()
        self.done.append(run.result())
        self.run = None

    def outcome(self, interrupted: bool) -> TrainedNetwork:
        """Return the networks side by side, as one whose logits are the mean of theirs."""
        unfinished = self.current_run()
        if unfinished is not None and unfinished.epoch and not unfinished.refit:
            self.done.append(unfinished.result())
        validated = any(record.validation_loss is not None for record in self.records)
        return TrainedNetwork(
            np.hstack([result.word_table for result in self.done]),
            np.vstack([result.class_weights for result in self.done]) / np.float32(len(self.done)),
            np.mean([result.bias for result in self.done], axis=0, dtype=np.float32),
            History(
                tuple(self.records),
                validated,
                interrupted and unfinished is not None,
                len(_held_out(self.task, self.task.settings.seed)) if validated else 0,
            ),
            tuple(result.epochs for result in self.done),
        )


def _held_out(task: _Task, seed: int) -> npt.NDArray[np.int64]:
    """Choose the documents for validation: of each class its share, but never its last document."""
    targets, fraction = task.targets, task.settings.validation_fraction
    if fraction == 0 or len(targets) < MIN_DOCUMENTS_TO_SPLIT:
        return np.empty(0, np.int64)
    wanted = min(max(1, round(len(targets) * fraction)), len(targets) - 1)
    order = np.random.default_rng(seed).permutation(len(targets))
    if targets.ndim == 2:
        return order[:wanted]
    counts = np.bincount(targets)
    shares = wanted * counts / len(targets)
    take = np.floor(shares).astype(np.int64)
    # What rounding down left over goes to the classes that lost most by it.
    by_loss = np.argsort(take - shares, kind="stable")
    take[by_loss[counts[by_loss] > take[by_loss] + 1][: wanted - take.sum()]] += 1
    return np.concatenate([order[targets[order] == c][:n] for c, n in enumerate(take)])


@contextmanager
def _deferred_interrupt() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event, so that no epoch is left half done; the second one is as ever."""
    event = threading.Event()
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or usual is not signal.default_int_handler:
        yield event
        return

    def note(*_: object) -> None:
        event.set()
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, note)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, usual)


def _tell(callbacks: Sequence[Callback], record: EpochRecord, model: WGCN) -> bool:
    """Call the callbacks; return whether one of them ended the training."""
    try:
        for callback in callbacks:
            callback.on_epoch(record, model)
    except KeyboardInterrupt:
        return True
    return False
