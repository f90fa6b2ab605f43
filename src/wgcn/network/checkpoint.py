"""Checkpoints: where a training is, in a file from which it goes on bit for bit."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from wgcn.errors import InputError, StoreError
from wgcn.inference.folder import write_file
from wgcn.network.settings import EpochRecord, Result

if TYPE_CHECKING:
    from wgcn.network.training import Training

__all__ = ["Checkpoint", "digest"]

Arrays = dict[str, npt.NDArray[Any]]

_FORMAT = "wgcn-checkpoint-1"
_PARTS = ("word_table", "class_weights", "bias")
_COUNTERS = ("epoch", "best_epoch", "best_loss", "losses")


class Checkpoint:
    """The state of a training in one safetensors file, with JSON in its header and a digest over both."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path, self.fingerprint = path, fingerprint

    def save(self, training: Training) -> None:
        """Write where a training is: whole, or not at all."""
        run = training.run
        assert run is not None
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
        """Bring a training to where the file left off; without a file it begins at the beginning."""
        if not self.path.exists():
            return
        try:
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
            training.records = [EpochRecord(*record) for record in state["records"]]
            for i, (epochs, validated) in enumerate(state["done"]):
                parts = {name: arrays[f"done.{i}.{name}"] for name in _PARTS}
                training.done.append(Result(**parts, epochs=epochs, validated=validated))
            run = training.current_run()
            assert run is not None
            vars(run).update({name: state["run"][name] for name in _COUNTERS})
            run.load_tensors({name[4:]: torch.from_numpy(a) for name, a in arrays.items() if name.startswith("run.")})
        except InputError:
            raise
        except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise StoreError(
                f"{self.path} is damaged or no checkpoint: {error}. Delete it, or train without resume."
            ) from error


def digest(text: str, arrays: Arrays) -> str:
    """Return the SHA-256 of a text and of arrays with their names."""
    found = hashlib.sha256(text.encode())
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()
