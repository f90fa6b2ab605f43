"""Checkpoints: the state of a training in a file, from which it continues bit for bit.

A file may be damaged or made by someone else, and the optimiser of torch trusts the shapes of its state: it writes past
the end of what is too short. So nothing reaches torch before names, types, shapes and values are those that this
training would have written. Only epochs and tensors are stored; what follows from them is computed again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import safe_open
from safetensors.numpy import save

from wgcn.base.errors import LARGEST, InputError, StoreError
from wgcn.base.files import write_file
from wgcn.network.settings import EpochRecord, Network
from wgcn.store.contents import read_json

if TYPE_CHECKING:
    from wgcn.network.training import Epochs, Run, Training

Arrays = dict[str, npt.NDArray[Any]]

_FORMAT = "wgcn-checkpoint-2"
_MAX_HEADER_BYTES = 3 << 20  # more than all epochs need; what is read of them takes twenty times their size
_PARTS = tuple(field.name for field in fields(Network))


@dataclass(frozen=True)
class Checkpoint:
    """The state of a training in one safetensors file, with JSON in its header and a digest over both."""

    path: Path
    fingerprint: str  # of the training

    def save(self, training: Training, run: Run) -> None:
        """Write the state of a training, whose current run is given: whole, or not at all."""
        arrays = {f"run.{name}": tensor.cpu().numpy() for name, tensor in run.tensors().items()}
        for i, network in enumerate(training.networks):
            arrays.update({f"done.{i}.{part}": getattr(network, part) for part in _PARTS})
        text = json.dumps({"format": _FORMAT, "fingerprint": self.fingerprint, "records": training.records})
        content = save(arrays, {"state": text, "digest": digest(text, arrays)})
        write_file(self.path, lambda file: file.write(content))

    def restore(self, training: Training) -> None:
        """Bring a training that has not begun to the state in the file; without a file it stays as it is."""
        if not self.path.exists():
            return
        try:
            _require(self.path.is_file(), "its contents")  # those of a pipe might never end
            with self.path.open("rb") as content:
                _require(int.from_bytes(content.read(8), "little") <= _MAX_HEADER_BYTES, "its notes")
            with safe_open(self.path, framework="numpy") as file:
                header = file.metadata() or {}
                arrays: Arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            state = read_json(header["state"].encode())
            if header["digest"] != digest(header["state"], arrays) or state["format"] != _FORMAT:
                raise ValueError("its contents do not match their digest, or it has another format")
            if state["fingerprint"] != self.fingerprint:
                raise InputError(
                    f"{self.path} was written by a training with other data, settings or device. Give those again, or "
                    "train without resume."
                )
            _require(state.keys() == {"format", "fingerprint", "records"}, "its fields")
            run = training.begin(_replay(training, state["records"]))
            n_networks = run.epochs.number + run.epochs.refit
            _check_tensors(arrays, run, n_networks)
            training.networks = [Network(*(arrays[f"done.{i}.{part}"] for part in _PARTS)) for i in range(n_networks)]
            run.load_tensors({name[4:]: torch.from_numpy(arrays[name]) for name in arrays if name.startswith("run.")})
        except InputError:
            raise
        except Exception as error:  # there is no end of ways to damage a file, and one answer to all of them
            raise StoreError(
                f"{self.path} is damaged or no checkpoint: {error}. Delete it, or train without resume."
            ) from error


def _require(right: bool, what: str) -> None:
    if not right:
        raise ValueError(f"{what} cannot be those of this training")


def _replay(training: Training, records: Any) -> Epochs:
    """Go through the epochs, each of which must be the one that comes next; return the epochs of the current run."""
    _require(type(records) is list and len(records) > 0, "its epochs")
    epochs = training.next_epochs()
    for values in records:
        if epochs is not None and epochs.finished:
            training.finished.append(epochs)
            epochs = training.next_epochs()
        if epochs is None or len(values) != len(EpochRecord._fields):
            raise ValueError("its epochs cannot be those of this training")
        record = EpochRecord(*values)
        place, validation = (record.epoch, record.network, record.refit), record[2:4]
        _require([type(value) for value in place] == [int, int, bool], "its epochs")
        _require(place == (epochs.n_done + 1, epochs.number, epochs.refit), "its epochs")
        figures = [record.loss, record.seconds, *(validation if epochs.validates else ())]
        _require(all(type(figure) is float and np.isfinite(figure) for figure in figures), "its epochs")
        _require(epochs.validates or validation == (None, None), "its epochs")
        epochs.losses.append(np.inf if record.validation_loss is None else record.validation_loss)
        training.records.append(record)
    assert epochs is not None
    return epochs


def _check_tensors(arrays: Arrays, run: Run, n_networks: int) -> None:
    """Check that tensors are those of the finished networks, and of a run after its epochs so far."""
    expected: Arrays = {"run.generator": run.generator.get_state().numpy()}
    for part, (name, tensor) in zip(_PARTS, run.model.named_parameters(), strict=True):
        kinds = ("weights", "exp_avg", "exp_avg_sq", *(["best"] if run.epochs.keeps_best else []))
        names = [f"run.{kind}.{name}" for kind in kinds] + [f"done.{i}.{part}" for i in range(n_networks)]
        expected.update(dict.fromkeys(names, tensor.detach().cpu().numpy()))
        expected[f"run.step.{name}"] = np.array(run.epochs.n_done, np.float32)
    _require(arrays.keys() == expected.keys(), "the names of its tensors")
    for name, array in arrays.items():
        like = expected[name]
        _require(array.dtype == like.dtype and array.shape == like.shape, f"type and shape of '{name}'")
        if name.startswith("run.step."):
            right = array == like
        elif name.startswith("run.exp_avg_sq."):
            right = (array >= 0).all()  # which may overflow
        elif name.startswith("run.exp_avg."):
            # Adam with its usual rates keeps |m| below 7.3 sqrt(v), by the inequality of Cauchy and Schwarz.
            squares = arrays[name.replace("exp_avg", "exp_avg_sq")]
            right = np.isfinite(array).all() and (np.abs(array) <= 8 * np.sqrt(squares) + 1e-15).all()
        else:
            right = name == "run.generator" or (np.abs(array) <= LARGEST).all()
        _require(bool(right), f"the values of '{name}'")


def digest(text: str, arrays: Arrays) -> str:
    """Return the SHA-256 of a text and of arrays with their names."""
    found = hashlib.sha256(text.encode())
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()
