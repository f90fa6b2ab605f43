"""Whatever a checkpoint holds, resuming goes on from it or refuses it in one message: its digest may be right."""

import json
import os
import struct
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save
from scipy.sparse import csr_array

from wgcn.base.errors import StoreError
from wgcn.network.checkpoint import digest
from wgcn.network.settings import EpochRecord, NetworkSettings, TrainedNetwork, TrainingSettings
from wgcn.network.training import Training

Arrays = dict[str, npt.NDArray[Any]]
State = dict[str, Any]

A = csr_array(np.eye(6, dtype=np.float32))
X = csr_array(np.tile(np.eye(6, dtype=np.float32), (4, 1)))
Y = np.arange(24) % 2


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Stop:
    """Interrupts the second network in its third epoch."""

    def __init__(self, refit: bool) -> None:
        self.refit = refit

    def on_epoch(self, record: EpochRecord, model: object) -> None:
        if (record.epoch, record.network, record.refit) == (3, 1, self.refit):
            raise KeyboardInterrupt


def fit(file: Path, settings: TrainingSettings, **options: Any) -> TrainedNetwork:
    return Training(A, X, Y, network=NetworkSettings(hidden=3), settings=settings).train(checkpoint=file, **options)


# In the search, with the best weights so far; in the refit; and without validation.
CASES = {
    "search": (TrainingSettings(max_epochs=5, n_models=2, patience=9, device="cpu"), False),
    "refit": (TrainingSettings(max_epochs=5, n_models=2, patience=9, device="cpu", refit=True), True),
    "mean": (TrainingSettings(max_epochs=5, n_models=2, patience=9, device="cpu", stopping="mean"), False),
    "no validation": (TrainingSettings(max_epochs=5, n_models=2, device="cpu", validation_fraction=0.0), False),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, TrainingSettings, State, Arrays]:
    settings, refit = CASES[request.param]
    file = tmp_path / "state"
    assert fit(file, settings, callbacks=[Stop(refit)]).interrupted
    with safe_open(file, "numpy") as opened:
        state = json.loads(opened.metadata()["state"])
        return file, settings, state, {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118


def write(file: Path, state: Any, arrays: Arrays) -> None:
    text = json.dumps(state)
    file.write_bytes(save(arrays, {"state": text, "digest": digest(text, arrays)}))


def altered_tensors(arrays: Arrays) -> Iterator[tuple[str, Arrays]]:
    """Each tensor in turn: missing, of another shape, size or type, not finite, and twice."""
    for name, array in arrays.items():
        flat = array.reshape(-1)
        others = {
            "empty": flat[:0],
            "shorter": flat[:-1],
            "longer": np.concatenate([flat, flat[:1]]),
            "more dimensions": array[None],
            "int64": array.astype(np.int64),
            "float64": array.astype(np.float64),
            "float16": array.astype(np.float16),
            "bool": array.astype(bool),
        }
        if array.ndim == 2:
            others["transposed"] = np.ascontiguousarray(array.T)
        if name == "run.generator":
            others |= {"zeros": np.zeros_like(array), "ones": np.full_like(array, 255)}
        else:
            others |= {"NaN": np.full_like(array, np.nan), "infinite": np.full_like(array, -np.inf)}
        if name.startswith("run.step."):
            others |= {"zero": np.zeros_like(array), "other": np.asarray(array + 1)}
        for what, other in others.items():
            yield f"{name}: {what}", {**arrays, name: other}
        yield f"{name}: missing", {key: value for key, value in arrays.items() if key != name}
        yield f"{name}: twice", {**arrays, f"{name}.x": array}
        yield f"{name}: renamed", {(f"x{key}" if key == name else key): value for key, value in arrays.items()}
    yield "none", {}
    yield "one more", {**arrays, "other": np.zeros(1, np.float32)}
    yield "one more network", {**arrays, "done.7.bias": np.zeros(2, np.float32)}


WRONG = [None, True, -1, 0, 2**70, 0.5, float("nan"), float("inf"), "1", [], [1], {}, [[]], [None]]


def next_epoch(record: list[Any]) -> list[Any]:
    return [record[0] + 1, *record[1:]]


def altered_states(state: State) -> Iterator[tuple[str, Any]]:
    """Each field in turn, at any depth: missing, one more, and with other values."""

    def places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        yield path
        if isinstance(value, dict | list):
            for key in value if isinstance(value, dict) else range(len(value)):
                yield from places(value[key], (*path, key))

    def at(path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> State:
        changed = deepcopy(state)
        inside: Any = changed
        for key in path[:-1]:
            inside = inside[key]
        change(inside, path[-1])
        return changed

    for path in places(state, ()):
        if not path or path == ("fingerprint",):
            continue
        # Of the epochs, the first, the first of the second network and the last: the others are like them.
        if path[0] == "records" and len(path) > 1 and path[1] not in (0, 5, len(state["records"]) - 1):
            continue
        old = state
        for key in path:
            old = old[key]
        for value in WRONG:
            # A loss or a number of seconds may be another number; NaN is equal to nothing.
            number = isinstance(old, float) and value == 0.5
            if number or (type(value) is type(old) and value == old):
                continue
            yield f"{path} = {value}", at(path, lambda inside, key, value=value: inside.__setitem__(key, value))
        yield f"{path} missing", at(path, lambda inside, key: inside.__delitem__(key))
        if isinstance(old, list):
            yield f"{path} one more", at(path, lambda inside, key: inside[key].append(inside[key][-1:] or 1))
        if isinstance(old, dict):
            yield f"{path} one more", at(path, lambda inside, key: inside[key].__setitem__("x", 1))
    yield "one more field", {**state, "x": 1}
    for value in WRONG:
        yield f"all is {value}", value
    for i in range(len(state["records"])):
        yield f"record {i} twice", {**state, "records": state["records"][: i + 1] + state["records"][i:]}
    yield "records in another order", {**state, "records": state["records"][::-1]}
    yield "an epoch too many", {**state, "records": [*state["records"], next_epoch(state["records"][-1])]}
    yield "an epoch too few", {**state, "records": state["records"][:-1]}
    yield "a network too many", {**state, "records": [*state["records"], [1, *state["records"][-1][1:5], 2, False]]}


def refused(file: Path, settings: TrainingSettings) -> bool:
    try:
        fit(file, settings, resume=True)
    except StoreError as error:
        return str(error).startswith(f"{file} is damaged or no checkpoint: ")
    return False


def test_every_alteration_of_a_tensor_is_refused(case: tuple[Path, TrainingSettings, State, Arrays]) -> None:
    file, settings, state, arrays = case
    write(file, state, arrays)
    fit(file, settings, resume=True)
    for what, changed in altered_tensors(arrays):
        write(file, state, changed)
        assert refused(file, settings), what


def test_every_alteration_of_the_state_is_refused(case: tuple[Path, TrainingSettings, State, Arrays]) -> None:
    file, settings, state, arrays = case
    for what, changed in altered_states(state):
        write(file, changed, arrays)
        assert refused(file, settings), what


def test_types_that_numpy_has_not_are_refused(case: tuple[Path, TrainingSettings, State, Arrays]) -> None:
    file, settings, state, arrays = case
    text = json.dumps(state)
    for kind in ("BF16", "F8_E4M3"):
        header = {
            "run.bias": {"dtype": kind, "shape": [0], "data_offsets": [0, 0]},
            "__metadata__": {"state": text, "digest": digest(text, arrays)},
        }
        content = json.dumps(header).encode()
        file.write_bytes(struct.pack("<Q", len(content)) + content)
        assert refused(file, settings), kind


def test_a_refused_checkpoint_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"text")
    assert refused(tmp_path / "state", CASES["search"][0])
    assert (tmp_path / "state").read_bytes() == b"text"


def test_a_pipe_in_place_of_a_checkpoint_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "state")
    with pytest.raises(StoreError, match="damaged or no checkpoint"):
        fit(tmp_path / "state", CASES["search"][0], resume=True)


def test_notes_as_long_as_the_file_are_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgcn.network.checkpoint.safe_open", lambda *_, **__: pytest.fail("it was read"))
    content = f'{{"__metadata__":{{"a":"{"x" * (4 << 20)}"}}}}'.encode()
    (tmp_path / "file").write_bytes(struct.pack("<Q", len(content)) + content)
    with pytest.raises(StoreError, match="its notes cannot be those"):
        fit(tmp_path / "file", CASES["search"][0], resume=True)


@pytest.mark.parametrize("kind", ["weights", "exp_avg"])
def test_values_that_would_overflow_in_the_next_epoch_are_refused(
    case: tuple[Path, TrainingSettings, State, Arrays], kind: str
) -> None:
    file, settings, state, arrays = case
    name = next(name for name in arrays if name.startswith(f"run.{kind}."))
    write(file, state, {**arrays, name: np.full_like(arrays[name], 1e30)})
    with pytest.raises(StoreError, match=f"the values of '{name}'"):
        fit(file, settings, resume=True)


@pytest.mark.parametrize("odd", ["9" * 5000, "[" * 100_000], ids=["a huge number", "deep"])
def test_odd_json_in_a_checkpoint_is_refused(
    case: tuple[Path, TrainingSettings, State, Arrays], odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, settings, state, arrays = case
    text = json.dumps({**state, "records": "odd"})
    monkeypatch.setattr(json, "dumps", lambda _: text.replace('"odd"', odd))
    write(file, state, arrays)
    monkeypatch.undo()
    with pytest.raises(StoreError, match="damaged or no checkpoint"):
        fit(file, settings, resume=True)
