"""Checkpoints: where a training is, in a file from which it goes on bit for bit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import safe_open
from safetensors.numpy import save

from wgcn.errors import InputError, StoreError
from wgcn.files import write_file
from wgcn.network.settings import EpochRecord, Result

if TYPE_CHECKING:
    from wgcn.network.training import Run, Training

__all__ = ["Checkpoint", "digest"]

Arrays = dict[str, npt.NDArray[Any]]

_FORMAT = "wgcn-checkpoint-1"
_PARTS = ("word_table", "class_weights", "bias")
_COUNTERS = ("epoch", "best_epoch", "best_loss", "losses")
_LARGEST_STEP = 2**24  # Adam counts in float32, which stops there


class Checkpoint:
    """The state of a training in one safetensors file, with JSON in its header and a digest over both."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path, self.fingerprint = path, fingerprint

    def save(self, training: Training, run: Run) -> None:
        """Write where a training is, whose current run is given: whole, or not at all."""
        arrays = {f"run.{name}": tensor.cpu().numpy() for name, tensor in run.tensors().items()}
        for i, result in enumerate(training.done):
            arrays.update({f"done.{i}.{name}": getattr(result, name) for name in _PARTS})
        state = {
            "format": _FORMAT,
            "fingerprint": self.fingerprint,
            "run": {name: getattr(run, name) for name in _COUNTERS},
            "done": [(result.epochs, result.validated) for result in training.done],
            "records": training.records,
        }
        text = json.dumps(state)
        content = save(arrays, {"state": text, "digest": digest(text, arrays)})
        write_file(self.path, lambda file: file.write(content))

    def restore(self, training: Training) -> None:
        """Bring a training to where the file left off; without a file it begins at the beginning.

        The training is changed only after the whole file was checked: the optimiser of torch takes the shapes of its
        state on trust, and writes past the end of what is too short.
        """
        if not self.path.exists():
            return
        read = copy(training)
        with self._checked():
            state, arrays = self._read()
            read.done = _read_done(state["done"], arrays, read)
        run = read.current_run()
        with self._checked():
            if run is None:
                raise ValueError("it has no network left to train")
            _load_run(run, state["run"], arrays)
            read.records = _read_records(state["records"], read, run)
        training.done, training.records, training.run = read.done, read.records, read.run

    def _read(self) -> tuple[dict[str, Any], Arrays]:
        with safe_open(self.path, framework="numpy") as file:
            header = file.metadata() or {}
            arrays: Arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        state = json.loads(header["state"])
        if header["digest"] != digest(header["state"], arrays) or state["format"] != _FORMAT:
            raise ValueError("its contents do not match their digest, or it has another format")
        if state["fingerprint"] != self.fingerprint:
            raise InputError(
                f"{self.path} was written by a training with other data, settings or device. Give those again, or "
                "train without resume."
            )
        _require(state.keys() == {"format", "fingerprint", "run", "done", "records"}, "its fields")
        return state, arrays

    @contextmanager
    def _checked(self) -> Iterator[None]:
        try:
            yield
        except InputError:
            raise
        except Exception as error:  # There is no end of ways to damage a file, and one answer to all of them.
            raise StoreError(
                f"{self.path} is damaged or no checkpoint: {error}. Delete it, or train without resume."
            ) from error


def _require(right: bool, what: str) -> None:
    if not right:
        raise ValueError(f"{what} cannot be those of this training")


def _read_done(given: Any, arrays: Arrays, training: Training) -> list[Result]:
    """Return the networks that are trained to their end, which must be as `Training` leaves them."""
    settings = training.task.settings
    _require(type(given) is list and len(given) <= settings.n_models, "the finished networks")
    shapes = dict(zip(_PARTS, training.task.shapes(), strict=True))
    done = []
    for i, (epochs, validated) in enumerate(given):
        _require(type(epochs) is int and 1 <= epochs <= settings.max_epochs, "the epochs of a finished network")
        # All but the last were trained once more if that is asked for, which is without validation.
        possible = {training.task.validates}
        if settings.refit:
            possible = {False, training.task.validates} if i == len(given) - 1 else {False}
        _require(type(validated) is bool and validated in possible, "the finished networks")
        parts = {name: arrays[f"done.{i}.{name}"] for name in _PARTS}
        for name, array in parts.items():
            right = array.dtype == np.float32 and array.shape == shapes[name] and bool(np.isfinite(array).all())
            _require(right, f"the values of 'done.{i}.{name}'")
        done.append(Result(**parts, epochs=epochs, validated=validated))
    names = {f"done.{i}.{name}" for i in range(len(given)) for name in _PARTS}
    _require({name for name in arrays if not name.startswith("run.")} == names, "the names of its tensors")
    return done


def _load_run(run: Run, state: Any, arrays: Arrays) -> None:
    """Bring a run that has not begun to where the file left off."""
    _require(state.keys() == set(_COUNTERS), "the fields of its run")
    epoch, losses = state["epoch"], state["losses"]
    _require(type(epoch) is int and 1 <= epoch <= run.limit, "its number of epochs")
    _require(type(losses) is list and len(losses) == (0 if run.validation is None else epoch), "its losses")
    _require(all(type(loss) is float and np.isfinite(loss) for loss in losses), "its losses")
    best = (min(losses), losses.index(min(losses)) + 1) if run.keeps_best else (np.inf, epoch)
    _require((state["best_loss"], state["best_epoch"]) == best, "its best epoch")
    _require(type(state["best_loss"]) is float and type(state["best_epoch"]) is int, "its best epoch")

    tensors = {name[4:]: torch.from_numpy(array) for name, array in arrays.items() if name.startswith("run.")}
    expected = {"generator": run.generator.get_state()}
    step = torch.tensor(min(epoch * run.n_batches, _LARGEST_STEP), dtype=torch.float32)
    for name, weights in run.model.named_parameters():
        expected.update({f"{part}.{name}": weights for part in ("weights", "exp_avg", "exp_avg_sq")})
        expected[f"step.{name}"] = step
        if run.keeps_best:
            expected[f"best.{name}"] = weights
    _require(tensors.keys() == expected.keys(), "the names of its tensors")
    for name, tensor in tensors.items():
        right = tensor.dtype == expected[name].dtype and tensor.shape == expected[name].shape
        _require(right, f"type and shape of 'run.{name}'")
        if name.startswith("step."):
            right = bool(tensor == step)
        elif name.startswith("exp_avg_sq."):
            right = bool((tensor >= 0).all())  # which may overflow
        elif name != "generator":
            right = bool(tensor.isfinite().all())
        _require(right, f"the values of 'run.{name}'")
    run.load_tensors(tensors)
    run.epoch, run.losses, (run.best_loss, run.best_epoch) = epoch, losses, best


def _read_records(given: Any, training: Training, run: Run) -> list[EpochRecord]:
    """Return the epochs so far: those of each network in turn, from the first on."""
    _require(type(given) is list and all(len(record) == len(EpochRecord._fields) for record in given), "its epochs")
    records = [EpochRecord(*record) for record in given]
    for record in records:
        validated = training.task.validates and not record.refit
        right = (
            [type(number) for number in (record.epoch, record.network, record.refit)] == [int, int, bool]
            and all(type(figure) is float and np.isfinite(figure) for figure in (record.loss, record.seconds))
            and all(
                type(figure) is float and np.isfinite(figure) if validated else figure is None
                for figure in (record.validation_loss, record.validation_accuracy)
            )
        )
        _require(right, "its epochs")
    runs = [(key, list(part)) for key, part in groupby(records, lambda record: (record.network, record.refit))]
    kinds = (False, True) if training.task.settings.refit and training.task.validates else (False,)
    expected = [(network, refit) for network in range(run.number + 1) for refit in kinds]
    _require([key for key, _ in runs] == expected[: expected.index((run.number, run.refit)) + 1], "its epochs")
    for _, part in runs:
        _require([record.epoch for record in part] == list(range(1, len(part) + 1)), "its epochs")
    settings = training.task.settings
    for (network, refit), part in runs[:-1]:
        epochs = n_expected = training.done[network].epochs
        if training.task.validates and settings.stopping == "best" and not refit:
            losses = [np.inf if record.validation_loss is None else record.validation_loss for record in part]
            _require(losses.index(min(losses)) + 1 == epochs, "its epochs")
            n_expected = min(epochs + settings.patience, settings.max_epochs)
        _require(len(part) == n_expected, "its epochs")
    last = [record.validation_loss for record in runs[-1][1]]
    _require(len(last) == run.epoch and (run.validation is None or last == run.losses), "its epochs")
    return records


def digest(text: str, arrays: Arrays) -> str:
    """Return the SHA-256 of a text and of arrays with their names."""
    found = hashlib.sha256(text.encode())
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()
