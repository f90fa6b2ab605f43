"""The training loop: Adam on the loss of eq. 7, early stopping, callbacks, and checkpoints that resume bit for bit."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812
from scipy.sparse import csr_array
from torch import Tensor

from wgcn.base.errors import InputError
from wgcn.base.threads import find_device
from wgcn.labels.splits import Rows, validation_rows
from wgcn.network.checkpoint import Checkpoint, digest
from wgcn.network.cuda import Recorded
from wgcn.network.module import WGCN, can_fold, find_centring, fold, sparse_matrix
from wgcn.network.settings import Callback, EpochRecord, Network, NetworkSettings, TrainedNetwork, TrainingSettings
from wgcn.store.folder import csr_tensors

EPOCHS_WITHOUT_VALIDATION = 100


class _Documents:
    """Some documents on the device, with weights whose mean is 1."""

    def __init__(self, training: Training, rows: Rows) -> None:
        weights = torch.from_numpy(training.weights[rows] / float(training.weights[rows].mean())).float()
        self.terms = sparse_matrix(training.document_terms[rows], training.device)  # (documents, words)
        self.targets = torch.from_numpy(training.targets[rows]).to(training.device)
        self.weights = weights.to(training.device)  # (documents,)

    def loss(self, logits: Tensor, smoothing: float = 0.0) -> Tensor:
        if self.targets.ndim == 1:  # eq. 7
            losses = F.cross_entropy(logits, self.targets, reduction="none", label_smoothing=smoothing)
        else:
            targets = self.targets * (1 - smoothing) + smoothing / 2
            losses = F.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(dim=1)
        return (losses * self.weights).mean()

    def accuracy(self, logits: Tensor) -> Tensor:
        """Return the share of documents that get the right class, or exactly the right labels."""
        if self.targets.ndim == 1:
            right = logits.argmax(dim=1) == self.targets
        else:
            right = ((logits > 0) == (self.targets > 0)).all(dim=1)
        return right.float().mean()


@dataclass
class Epochs:
    """The epochs of one run so far, and when it ends: all follows from the validation losses."""

    settings: TrainingSettings
    number: int  # of the network
    limit: int  # of epochs
    validates: bool
    refit: bool = False
    losses: list[float] = field(default_factory=list)  # after each epoch; infinite without validation

    @property
    def n_done(self) -> int:
        """Number of epochs so far."""
        return len(self.losses)

    @property
    def keeps_best(self) -> bool:
        """Whether the best weights so far are kept, and not the last ones."""
        return self.validates and self.settings.stopping == "best"

    @property
    def best_epoch(self) -> int:
        """The epoch whose weights are kept."""
        return 1 + self.losses.index(min(self.losses)) if self.keeps_best else self.n_done

    @property
    def finished(self) -> bool:
        """Whether there is no further epoch."""
        patience = self.settings.patience
        if self.n_done >= self.limit or not self.validates or self.n_done <= patience:
            return self.n_done >= self.limit
        if self.keeps_best:
            return self.n_done - self.best_epoch >= patience
        return self.losses[-1] > float(np.mean(self.losses[-patience - 1 : -1]))


class Run:
    """One network from its first weights to its last epoch."""

    def __init__(self, training: Training, epochs: Epochs) -> None:
        settings, seed = training.settings, training.settings.seed + epochs.number
        self.training, self.epochs = training, epochs
        held_out = validation_rows(training.targets, settings.validation_fraction if epochs.validates else 0, seed)
        self.documents = _Documents(training, np.setdiff1d(np.arange(len(training.targets)), held_out))
        self.validation = _Documents(training, held_out) if len(held_out) else None
        start = torch.Generator().manual_seed(seed)
        sizes = training.document_terms.shape[1], training.n_classes
        self.model = WGCN(*sizes, training.network, training.centring, start).to(training.device)
        # Dropout has a stream of its own, not the one that the first weights came from.
        self.generator = torch.Generator(training.device).manual_seed(int(torch.randint(2**62, (), generator=start)))
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        self.word_embeddings: Tensor | None = None
        self.best: dict[str, Tensor] = {}
        self.recorded = Recorded(self.optimizer, self.generator)

    def train_epoch(self) -> EpochRecord:
        """Train on all documents once."""
        started = time.perf_counter()
        settings, epochs = self.training.settings, self.epochs
        mean, *figures = self.recorded(self._step).tolist()  # all at once: a GPU idles while a number is read
        validation_loss, accuracy = figures or (None, None)
        epochs.losses.append(np.inf if validation_loss is None else validation_loss)
        if not np.isfinite([mean, validation_loss or 0.0]).all():
            raise InputError(
                f"The loss became {mean} in epoch {epochs.n_done} (validation: {validation_loss}): look for huge or "
                f"missing values in the data, or lower learning_rate ({settings.learning_rate})."
            )
        if epochs.keeps_best and epochs.best_epoch == epochs.n_done:
            self.best = {name: weights.detach().clone() for name, weights in self.model.named_parameters()}
        seconds = time.perf_counter() - started
        return EpochRecord(epochs.n_done, mean, validation_loss, accuracy, seconds, epochs.number, epochs.refit)

    def _embeddings(self) -> Tensor:
        """Return the rows of words that the rows of documents are multiplied by."""
        return self.model.word_weights if self.training.folded else self.model.word_embeddings(self.training.adjacency)

    def _step(self) -> Tensor:
        """Train on all documents once; return the loss, and loss and accuracy on the validation documents, if any."""
        self.model.train()
        # The validation of the last epoch had the embeddings of the same weights: a third of the work is saved.
        known = self.word_embeddings
        embeddings = self._embeddings() if known is None else known
        logits = self.model.classify(self.documents.terms, embeddings, self.generator)
        loss = self.documents.loss(logits, self.training.settings.label_smoothing)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.model.train(mode=False)
        figures = [loss.detach()]
        if self.validation is not None:
            self.word_embeddings = self._embeddings()
            with torch.no_grad():
                logits = self.model.classify(self.validation.terms, self.word_embeddings)
                figures += [self.validation.loss(logits), self.validation.accuracy(logits)]
                if self.recorded.graph is not None and known is not None:
                    self.word_embeddings = known.copy_(self.word_embeddings)  # where each replay reads them
        return torch.stack(figures)

    @torch.no_grad()
    def result(self) -> Network:
        """Return the best network so far, or the last with stopping="mean"; the run is over then."""
        for name, weights in self.best.items():
            self.model.get_parameter(name).copy_(weights)
        parts = (self.model.word_embeddings(self.training.adjacency), self.model.class_weights, self.model.bias)
        return Network(*(part.detach().cpu().numpy() for part in parts))

    def tensors(self) -> dict[str, Tensor]:
        """Return all that the next epochs depend on, beside the losses."""
        tensors = {"generator": self.generator.get_state()}
        for name, weights in self.model.named_parameters():
            tensors[f"weights.{name}"] = weights.detach()
            tensors.update({f"{key}.{name}": value for key, value in self.optimizer.state[weights].items()})
            if self.best:
                tensors[f"best.{name}"] = self.best[name]
        return tensors

    @torch.no_grad()
    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Take what `tensors` returned. Names, types and shapes must be right: nothing here checks them."""
        self.generator.set_state(tensors["generator"])
        for name, weights in self.model.named_parameters():
            weights.copy_(tensors[f"weights.{name}"])
            for key in ("step", "exp_avg", "exp_avg_sq"):
                self.optimizer.state[weights][key] = tensors[f"{key}.{name}"].to(self.training.device, copy=True)
            if f"best.{name}" in tensors:
                self.best[name] = tensors[f"best.{name}"].to(self.training.device, copy=True)


class Training:
    """A WGCN to be trained on labelled documents, which `wgcn.estimators` has checked, and all runs of it.

    adjacency : (words, words), A_vv, symmetric; document_terms : (documents, words); targets : (documents,) with the
    class of each (softmax, eq. 7), or (documents, classes) with all its labels as 0 and 1 (one sigmoid each).
    A document of weight 0 is left out.
    """

    def __init__(
        self,
        adjacency: csr_array,
        document_terms: csr_array,
        targets: npt.NDArray[Any],
        sample_weight: npt.ArrayLike | None = None,
        network: NetworkSettings | None = None,
        settings: TrainingSettings | None = None,
    ) -> None:
        self.network = network = network or NetworkSettings()
        self.settings = settings = settings or TrainingSettings()
        self.device = find_device(settings.device)
        weights = np.ones(len(targets)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        used = weights > 0
        self.n_classes = targets.shape[1] if targets.ndim == 2 else int(targets.max()) + 1
        self.targets = targets[used].astype(np.float32 if targets.ndim == 2 else np.int64)
        self.weights = weights[used]  # (documents,)
        self.graph = csr_array(adjacency, dtype=np.float32)  # A_vv, (words, words)
        self.adjacency = sparse_matrix(self.graph, self.device, symmetric=True)
        self.document_terms = terms = csr_array(document_terms, dtype=np.float32)[used]  # (documents, words)
        self.centring = find_centring(adjacency, terms, network.order) if network.centred and network.order else None
        self.folded = can_fold(adjacency, terms, network)  # then document_terms is X A already
        if self.folded:
            self.document_terms = fold(adjacency, terms, network, self.centring)
        # With every seed as many documents are held out.
        self.n_held_out = len(validation_rows(self.targets, settings.validation_fraction, settings.seed))
        self.finished: list[Epochs] = []
        self.networks: list[Network] = []
        self.records: list[EpochRecord] = []
        self.run: Run | None = None

    def train(
        self,
        callbacks: Sequence[Callback] = (),
        checkpoint: str | Path | None = None,
        resume: bool = False,
        checkpoint_every: int = 25,
    ) -> TrainedNetwork:
        """Train to the end. `checkpoint` is the file that keeps the state; with `resume` the training continues there.

        The state is kept every so many epochs. Ctrl-C ends the training after the epoch in progress and keeps the best
        network so far; a second one raises KeyboardInterrupt at once.
        """
        file = None if checkpoint is None else Checkpoint(Path(checkpoint), self.fingerprint())
        if file is not None and resume:
            file.restore(self)
        interrupted = False
        with _deferred_interrupt() as interrupt:
            while not interrupted and (run := self.current_run()) is not None:
                while not interrupted and not run.epochs.finished:
                    self.records.append(run.train_epoch())
                    try:
                        for callback in callbacks:
                            callback.on_epoch(self.records[-1], run.model)
                    except KeyboardInterrupt:
                        interrupt.set()
                    interrupted = interrupt.is_set()
                    if file is not None and (interrupted or run.epochs.n_done % checkpoint_every == 0):
                        file.save(self, run)
                if run.epochs.finished:
                    self.finish_run(run)
        unfinished = self.run is not None or self.next_epochs() is not None
        if self.run is not None and not self.run.epochs.refit:
            self.finish_run(self.run)
        networks = self.networks
        return TrainedNetwork(  # the networks side by side, as one whose logits are the mean of theirs
            np.hstack([each.word_table for each in networks]),
            np.vstack([each.class_weights for each in networks], dtype=np.float32) / np.float32(len(networks)),
            np.mean([each.bias for each in networks], axis=0, dtype=np.float32),
            tuple({epochs.number: epochs.best_epoch for epochs in self.finished}.values()),
            tuple(self.records),
            self.n_held_out,
            interrupted and unfinished,
        )

    def fingerprint(self) -> str:
        """Digest of all that decides the result, so that no checkpoint is taken for one of another training."""
        shape = [*self.document_terms.shape, self.n_classes]
        settings = {**asdict(self.network), **asdict(self.settings), "device": self.device.type, "shape": shape}
        arrays = {"targets": self.targets, "weights": self.weights, **csr_tensors("graph", self.graph)}
        arrays |= csr_tensors("documents", self.document_terms)
        return digest(json.dumps(settings, sort_keys=True, default=float), arrays)

    def next_epochs(self) -> Epochs | None:
        """Return the beginning of the run after the finished ones, or None when all are done."""
        settings, last = self.settings, self.finished[-1] if self.finished else None
        # What was trained without validation was trained on all documents already.
        if last is not None and last.validates and settings.refit:
            return Epochs(settings, last.number, last.best_epoch, validates=False, refit=True)
        number = 0 if last is None else last.number + 1
        if number == settings.n_models:
            return None
        validates, limit = self.n_held_out > 0, settings.max_epochs
        if not validates and settings.validation_fraction > 0:
            limit = min(limit, EPOCHS_WITHOUT_VALIDATION)
        return Epochs(settings, number, limit, validates)

    def current_run(self) -> Run | None:
        """Return the run to continue, or None when all are done."""
        if self.run is None and (epochs := self.next_epochs()) is not None:
            return self.begin(epochs)
        return self.run

    def begin(self, epochs: Epochs) -> Run:
        """Make a run the current one."""
        self.run = Run(self, epochs)
        return self.run

    def finish_run(self, run: Run) -> None:
        """Keep the network of the current run; that of a refit replaces the one before."""
        self.networks[run.epochs.number :] = [run.result()]
        self.finished.append(run.epochs)
        self.run = None


@contextmanager
def _deferred_interrupt() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event, so that no epoch is left half done; the second one acts as usual."""
    event = threading.Event()
    usual = signal.getsignal(signal.SIGINT)
    defers = threading.current_thread() is threading.main_thread() and usual is signal.default_int_handler

    def note(*_: object) -> None:
        event.set()
        signal.signal(signal.SIGINT, usual)

    if defers:
        signal.signal(signal.SIGINT, note)
    try:
        yield event
    finally:
        if defers:
            signal.signal(signal.SIGINT, usual)
