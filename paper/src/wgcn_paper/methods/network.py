"""Base class of methods that train a network by epochs: training loop, early stopping, order of documents."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from wgcn.base.errors import InputError
from wgcn.base.threads import find_device
from wgcn.network.cuda import Recorded
from wgcn_paper.methods.baseline import Baseline, Fit, array_digest, hold_out, in_fixed_order

if TYPE_CHECKING:
    from wgcn_paper.protocol import Query, Task


# Settings of every network here. A batch size of 0 takes all documents at once. "stopping" chooses the epoch to keep:
# that of the lowest validation "loss" or the highest validation "accuracy", once `patience` epochs were no better; or,
# as in Kipf's code, the first whose validation loss is above the "mean" of those of the `patience` epochs before it.
TRAINING: Mapping[str, Any] = {
    "learning_rate": 0.001,
    "weight_decay": 0.0,
    "batch_size": 0,
    "max_epochs": 200,
    "patience": 10,
    "stopping": "loss",
    "validation_fraction": 0.1,
}
_STOPPING = ("loss", "accuracy", "mean")


class NetworkBaseline(Baseline):
    """A method that trains a network by epochs.

    A subclass prepares the documents, makes the network and computes logits; the rest is done here. The documents are
    sorted by their content first, so results do not depend on the order in which they were given.
    """

    classes: npt.NDArray[Any]
    network: nn.Module
    # Whether an epoch without batches can become a CUDA graph: it has no shapes that change, never waits for the GPU,
    # and takes rows from `_rows_on_device`.
    recordable: ClassVar[bool] = False
    _sent: Sequence[tuple[npt.NDArray[np.int64], Tensor]] = ()

    def fit(self, task: Task) -> Fit:
        """Train on the labelled documents; held-out ones, or the validation documents of the task, choose the epoch."""
        if self.settings["stopping"] not in _STOPPING:
            raise InputError(f"stopping is one of {', '.join(_STOPPING)}, got {self.settings['stopping']!r}.")
        task, self._rank = in_fixed_order(task)
        labelled = np.array([label is not None for label in task.labels])
        self.classes, found = np.unique(np.array(task.labels[labelled].tolist()), return_inverse=True)
        codes = np.full(len(task.labels), -1)
        codes[labelled] = found
        held_out = np.zeros(len(codes), bool)
        if len(task.validation):
            held_out[task.validation] = True
        elif self.settings["validation_fraction"]:
            held_out = hold_out(codes, self.settings["validation_fraction"], self.seed)
        self.torch_device = find_device(self.device)
        with seeded(self.seed, self.torch_device):
            self._prepare(task)
            self.network = self._make_network(len(self.classes)).to(self.torch_device)
            self.targets = torch.from_numpy(codes).to(self.torch_device)
            outcome = self._train(np.flatnonzero(labelled & ~held_out), np.flatnonzero(labelled & held_out))
        state = {name: value.detach().cpu().numpy() for name, value in sorted(self.network.state_dict().items())}
        return outcome._replace(digest=array_digest(list(state), *state.values(), self._words()))

    def predict(self, query: Query) -> npt.NDArray[Any]:
        """Return one label per document."""
        self.network.eval()
        with torch.no_grad():
            guesses = self._query_logits(query).argmax(1).cpu().numpy()
        labels: npt.NDArray[Any] = self.classes[guesses]
        return labels

    # What a subclass defines.

    @abstractmethod
    def _prepare(self, task: Task) -> None:
        """Prepare the documents for the network: vocabulary, graph, tensors on `torch_device`."""

    @abstractmethod
    def _make_network(self, n_classes: int) -> nn.Module:
        """Return the network with initial weights; torch is seeded."""

    @abstractmethod
    def _logits(self, rows: npt.NDArray[np.int64]) -> Tensor:
        """Return the logits of documents of the task, by their places, in training or evaluation mode."""

    @abstractmethod
    def _query_logits(self, query: Query) -> Tensor:
        """Return the logits of documents to be classified; the network is in evaluation mode."""

    def _parameter_groups(self) -> list[dict[str, Any]]:
        """Return the parameter groups of the optimiser: by default all weights, with the same weight decay."""
        return [{"params": list(self.network.parameters()), "weight_decay": self.settings["weight_decay"]}]

    def _loss(self, logits: Tensor, rows: npt.NDArray[np.int64]) -> Tensor:
        return F.cross_entropy(logits, self.targets[self._rows_on_device(rows)])

    def _optimizer(self) -> torch.optim.Adam:
        # On a GPU one kernel for all weights, whose state is where a recording can read it.
        fused = True if self.torch_device.type == "cuda" else None
        return torch.optim.Adam(self._parameter_groups(), lr=self.settings["learning_rate"], fused=fused)

    def _keep_on_device(self, *parts: npt.NDArray[np.int64]) -> None:
        self._sent = [(part, torch.from_numpy(part).to(self.torch_device)) for part in parts]

    def _rows_on_device(self, rows: npt.NDArray[np.int64]) -> Tensor:
        """Return places on the device; those of all documents to train on, or to validate with, are there already."""
        for known, tensor in self._sent:
            if known is rows:
                return tensor
        return torch.from_numpy(rows).to(self.torch_device)

    def _words(self) -> tuple[str, ...]:
        """Return the words that the weights belong to, for the fingerprint of the model."""
        return ()

    def _places(self, query: Query) -> npt.NDArray[np.int64]:
        """Return the places of the documents of a query in the task, for transductive methods."""
        if query.places is None:
            raise InputError(f"{self.name} cannot classify documents that it has not seen. {self.why_not}".strip())
        return self._rank[query.places]

    def _in_batches(self, logits: Callable[[npt.NDArray[np.int64]], Tensor], n_documents: int) -> Tensor:
        """Return the logits of documents of a query, in batches of the same size as in training."""
        batches = _batches(np.arange(n_documents), self.settings["batch_size"])
        parts = [logits(rows) for rows in batches if len(rows)]
        return torch.cat([*parts, torch.empty(0, len(self.classes), device=self.torch_device)])

    # The loop.

    def _train(self, rows: npt.NDArray[np.int64], held_out: npt.NDArray[np.int64]) -> Fit:
        settings = self.settings
        optimizer = self._optimizer()
        recorded = Recorded(optimizer) if self.recordable and not settings["batch_size"] else None
        self._keep_on_device(rows, held_out)
        shuffle = np.random.default_rng(self.seed)
        seconds, losses, accuracies = [], [], []
        best: tuple[float, int, dict[str, Tensor]] = (np.inf, 0, {})
        for epoch in range(1, settings["max_epochs"] + 1):
            started = time.perf_counter()
            if recorded is not None:
                total, *found = recorded(partial(self._whole_epoch, rows, held_out, optimizer)).tolist()
            else:
                total = float(self._train_epoch(rows, optimizer, shuffle))
                found = [*self._validate(held_out)] if len(held_out) and np.isfinite(total) else []
            if not np.isfinite(total):
                raise InputError(
                    f"The loss of {self.name} became {total} in epoch {epoch}: look for huge or missing values "
                    f"in the data, or lower learning_rate ({settings['learning_rate']})."
                )
            if len(held_out):
                loss_there, accuracy = found
                losses.append(loss_there)
                accuracies.append(accuracy)
                badness = -accuracy if settings["stopping"] == "accuracy" else loss_there
                if settings["stopping"] == "mean" or badness < best[0]:
                    kept = {} if settings["stopping"] == "mean" else _copy(self.network)
                    best = (badness, epoch, kept)
            seconds.append(time.perf_counter() - started)
            if len(held_out) and self._stale(losses, epoch - best[1]):
                break
        if best[2]:
            self.network.load_state_dict(best[2])
        return Fit(
            epochs=len(seconds),
            validation_accuracy=accuracies[best[1] - 1] if accuracies else None,
            seconds_per_epoch=median(seconds[2:] or seconds),
        )

    def _train_epoch(
        self, rows: npt.NDArray[np.int64], optimizer: torch.optim.Optimizer, shuffle: np.random.Generator | None = None
    ) -> Tensor:
        """Train on all documents once, and return the sum of their losses."""
        self.network.train()
        total = torch.zeros((), device=self.torch_device)
        for batch in _batches(rows, self.settings["batch_size"], shuffle):
            loss = self._loss(self._logits(batch), batch)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            total += loss.detach() * len(batch)
        return total

    def _whole_epoch(
        self, rows: npt.NDArray[np.int64], held_out: npt.NDArray[np.int64], optimizer: torch.optim.Optimizer
    ) -> Tensor:
        """Train and validate: return the sum of the losses, and loss and accuracy on the held-out documents, if any."""
        total = self._train_epoch(rows, optimizer)[None]
        return torch.cat([total, self._figures(held_out)]) if len(held_out) else total

    def _stale(self, losses: list[float], epochs_since: int) -> bool:
        patience: int = self.settings["patience"]
        if self.settings["stopping"] == "mean":
            return len(losses) > patience and losses[-1] > float(np.mean(losses[-patience - 1 : -1]))
        return epochs_since >= patience

    def _validate(self, rows: npt.NDArray[np.int64]) -> tuple[float, float]:
        loss, accuracy = self._figures(rows).tolist()
        return loss, accuracy

    @torch.no_grad()
    def _figures(self, rows: npt.NDArray[np.int64]) -> Tensor:
        """Return loss and accuracy, still on the device."""
        self.network.eval()
        size = self.settings["batch_size"]
        logits = torch.cat([self._logits(batch) for batch in _batches(rows, size)])
        targets = self.targets[self._rows_on_device(rows)]
        return torch.stack([F.cross_entropy(logits, targets), (logits.argmax(1) == targets).float().mean()])


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's random numbers, and restore their state afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def _batches(
    rows: npt.NDArray[np.int64], size: int, shuffle: np.random.Generator | None = None
) -> Iterator[npt.NDArray[np.int64]]:
    if not size:
        yield rows
        return
    order = rows if shuffle is None else shuffle.permutation(rows)
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]


def _copy(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}
