"""Settings of the network and of its training, its callbacks, and its result. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError, check_least, check_numbers, check_share

if TYPE_CHECKING:
    from wgcn.network.module import WGCN


@dataclass(frozen=True)
class NetworkSettings:
    """The options of `wgcn.network.module.WGCN`."""

    hidden: int = 250  # m, the length of the rows of words and documents
    order: int = 1  # n, how often A is applied: a word sees words that are n steps away
    word_activation: bool = False  # whether act is ReLU: the paper's formula has an activation, its published code none
    residual: float = 0.0  # r, how much of a word's own row is added to what it gets from the graph
    word_dropout: float = 0.6  # share of the entries of H_vm that are dropped in training
    document_dropout: float = 0.6  # likewise of H_dm
    # Whether to take away what the graph gives to all documents alike: see `Centring` there. It needs a normalised
    # graph without negative edges, as all graphs here are by default.
    centred: bool = False

    def __post_init__(self) -> None:
        check_numbers(self, real=("residual", "word_dropout", "document_dropout"), whole=("hidden", "order"))
        check_least(self, 1, "hidden")
        check_least(self, 0, "order")
        if not np.isfinite(self.residual):
            raise InputError(f"residual must be a finite number, got {self.residual}.")
        check_share(self, "word_dropout", "document_dropout")


@dataclass(frozen=True)
class TrainingSettings:
    """How to train.

    stopping: "best" stops when the validation loss has not been below its best for `patience` epochs, and keeps the
    best weights. "mean" stops when it is above the mean of the `patience` epochs before, and keeps the last weights, as
    the published code of the paper does; it trains longer.

    Without validation, that is with validation_fraction 0, with fewer than ten documents or fewer than two in every
    class, all documents are trained on: for max_epochs with 0, for at most 100 epochs otherwise.
    """

    learning_rate: float = 0.018
    weight_decay: float = 0.0  # an L2 penalty in Adam, as in the published code
    max_epochs: int = 800
    patience: int = 10
    stopping: Literal["best", "mean"] = "best"
    label_smoothing: float = 0.0  # share of the target that is spread over all classes, in training alone
    validation_fraction: float = 0.1  # share of the documents that decide when to stop
    refit: bool = False  # train once more on all documents, for as many epochs as the weights that were kept had
    n_models: int = 1  # networks with the seeds seed, seed + 1, ...; their logits are averaged
    seed: int = 0  # decides the split, the first weights and the dropout
    device: str = "auto"  # "cpu", "cuda", or "auto" for CUDA where there is any

    def __post_init__(self) -> None:
        check_numbers(
            self,
            real=("learning_rate", "weight_decay", "label_smoothing", "validation_fraction"),
            whole=("max_epochs", "patience", "n_models", "seed"),
        )
        if not 0 < self.learning_rate < np.inf:
            raise InputError(f"learning_rate must be above 0, got {self.learning_rate}.")
        check_least(self, 0, "weight_decay", "seed")
        check_least(self, 1, "max_epochs", "patience", "n_models")
        if self.stopping not in ("best", "mean"):
            raise InputError(f"stopping must be 'best' or 'mean', got {self.stopping!r}.")
        check_share(self, "label_smoothing", "validation_fraction")


class EpochRecord(NamedTuple):
    """One epoch: the mean loss in training, and loss and accuracy on the validation documents afterwards, if any."""

    epoch: int
    loss: float
    validation_loss: float | None
    validation_accuracy: float | None
    seconds: float
    network: int = 0
    refit: bool = False


class Callback(Protocol):
    """Receives every epoch. It may raise KeyboardInterrupt to end the training."""

    def on_epoch(self, record: EpochRecord, model: WGCN) -> None:
        """Handle the end of an epoch; the model must not be changed."""


@dataclass(frozen=True, eq=False)
class Network:
    """What prediction needs: logits = ReLU(X word_table) class_weights + bias."""

    word_table: npt.NDArray[np.float32]  # (words, hidden)
    class_weights: npt.NDArray[np.float32]  # (hidden, classes)
    bias: npt.NDArray[np.float32]  # (classes,)


@dataclass(frozen=True, eq=False)
class TrainedNetwork(Network):
    """The result of a training. With n_models = k, hidden is k times."""

    epochs: tuple[int, ...]  # that were trained, of each network
    records: tuple[EpochRecord, ...]
    n_held_out: int  # documents for validation
    interrupted: bool  # by Ctrl-C
