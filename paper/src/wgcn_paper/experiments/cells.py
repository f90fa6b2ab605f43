"""Cells: one method with its settings, on one data set under one protocol, with one seed; and how a cell is run."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date
from functools import lru_cache
from pathlib import Path
from statistics import median
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError
from wgcn_paper.datasets import Dataset, load_dataset
from wgcn_paper.experiments.environment import environment
from wgcn_paper.memory import peak_memory
from wgcn_paper.methods.baseline import Baseline, Method, check_packages, make_baseline, method_class
from wgcn_paper.protocol import Protocol, Query

# The types in a file of what a cell and a run say, by their annotations.
_IN_FILES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "str | None": (str, NoneType),
    "int | None": (int, NoneType),
    "float | None": (int, float, NoneType),
    "dict[str, Any]": (dict,),
    "dict[str, str]": (dict,),
}


@dataclass(frozen=True)
class Cell:
    """What to run."""

    dataset: str
    protocol: str
    method: str
    settings: dict[str, Any]  # all settings of the method, so that a changed default is a changed cell
    seed: int = 0  # of training, and under few-label and unseen also of the draw of documents
    variant: str = ""  # its name within its table, such as "order 2"
    version: int = 1  # of the method's code: see `wgcn_paper.methods.baseline.Method`

    @property
    def key(self) -> str:
        """Digest of everything that the outcome depends on, so without the variant, which is a name."""
        parts = [self.dataset, self.protocol, self.method, self.version, self.settings, self.seed]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]

    @property
    def place(self) -> tuple[str, str, str, str, int]:
        """Its place in the table: a run with other settings or of another version in the same place is out of date."""
        return self.dataset, self.protocol, self.method, self.variant, self.seed


@dataclass(frozen=True)
class Run:
    """A cell and its outcome. Accuracies are shares, memory is in MiB."""

    cell: Cell
    accuracy: float
    n_test: int
    validation_accuracy: float | None
    epochs: int | None
    ms_per_epoch: float | None
    fit_seconds: float
    predict_seconds: float | None  # None for an experiment of the labelling loop; its `fit_seconds` are of all it does
    memory: float | None  # None where the system does not report it
    gpu_memory: float | None
    model: str | None
    device: str
    date: str
    environment: dict[str, str] = field(default_factory=dict)
    predict_one_ms: float | None = None  # one document at a time, the median; None for transductive methods
    metrics: dict[str, Any] = field(default_factory=dict)  # what else an experiment of the labelling loop measured
    right: str | None = None  # which test documents got their label: see `rights`

    def as_json(self) -> dict[str, Any]:
        """Return the run as JSON values, for `from_json`."""
        content = asdict(self)
        for name in ("metrics", "right"):
            if not content[name]:
                del content[name]
        return {"key": self.cell.key, **content.pop("cell"), **content}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Run:
        """Return the run of `as_json`; a ValueError, KeyError or TypeError if it cannot be one."""
        rest = dict(content)
        key = rest.pop("key")
        for each in (*fields(Cell), *fields(cls)[1:]):
            value = rest.get(each.name)
            if each.name in rest and type(value) not in _IN_FILES[str(each.type)]:
                raise ValueError(f"the {each.name} of a run is {value!r:.60}")
            if isinstance(value, int | float) and not abs(value) < 2**63:
                raise ValueError(f"the {each.name} of a run is {value!r:.60}")
        cell = Cell(**{name: rest.pop(name) for name in Cell.__dataclass_fields__})
        if cell.key != key:
            raise ValueError("the key of a run does not match its settings")
        run = cls(cell, **rest)
        if run.n_test < 0:
            raise ValueError(f"a run has {run.n_test} test documents")
        rights(run)
        return run


def rights(run: Run) -> npt.NDArray[np.bool_] | None:
    """Return which test documents got their label, in the order of the data set; None for runs that did not say."""
    if run.right is None:
        return None
    packed = np.frombuffer(base64.b64decode(run.right, validate=True), np.uint8)
    if len(packed) != (run.n_test + 7) // 8:
        raise ValueError(f"a run says of {8 * len(packed)} documents whether they are right, but has {run.n_test}")
    return np.unpackbits(packed, count=run.n_test).astype(bool)


def _packed(right: npt.NDArray[np.bool_]) -> str:
    return base64.b64encode(np.packbits(right).tobytes()).decode()


def make_cell(
    dataset: str,
    protocol: Protocol | str,
    method: str,
    settings: dict[str, Any],
    seed: int = 0,
    variant: str = "",
    version: int | None = None,
) -> Cell:
    """Make a cell, with all settings of its method, and the present version of its code unless an earlier is named."""
    kind = method_class(method)
    protocol = Protocol.parse(protocol) if isinstance(protocol, str) else protocol
    if protocol.name not in kind.protocols:
        raise InputError(f"{method} cannot run under the protocol {protocol.name}. {kind.why_not}".strip())
    version = version or kind.version
    for last, values in kind.former.items():
        settings = {**values, **settings} if version <= last else settings
    return Cell(dataset, str(protocol), method, kind(settings).settings, seed, variant, version)


def run_cell(cell: Cell, device: str = "auto") -> Run:
    """Fit, predict the test documents, and return the run.

    Only here, and in experiments of the labelling loop, which are run from here, are test labels used.
    """
    kind = method_class(cell.method)
    if cell.version != kind.version:
        raise InputError(
            f"{cell.method} is at version {kind.version}; runs of version {cell.version} are kept but cannot be made."
        )
    if not issubclass(kind, Baseline):
        return _run_measure(kind, cell)
    dataset = _dataset(cell.dataset)
    protocol = Protocol.parse(cell.protocol)
    method = make_baseline(cell.method, cell.settings, cell.seed, device)
    query = protocol.query(dataset, cell.seed)
    _reset_peaks()
    started = time.perf_counter()
    fit = method.fit(protocol.task(dataset, cell.seed))
    fitted = time.perf_counter()
    memory, gpu_memory = _peaks()
    guesses = method.predict(query)
    ended = time.perf_counter()
    right = np.asarray(guesses == dataset.labels[protocol.tested(dataset, cell.seed)])
    return Run(
        cell=cell,
        accuracy=float(np.mean(right)),
        n_test=len(right),
        validation_accuracy=fit.validation_accuracy,
        epochs=fit.epochs,
        ms_per_epoch=None if fit.seconds_per_epoch is None else round(fit.seconds_per_epoch * 1000, 3),
        fit_seconds=round(fitted - started, 3),
        predict_seconds=round(ended - fitted, 3),
        memory=memory,
        gpu_memory=gpu_memory,
        model=fit.digest,
        device="cpu" if gpu_memory is None else "cuda",
        date=date.today().isoformat(),
        environment=environment(),
        predict_one_ms=_predict_one(method, query),
        right=_packed(right),
    )


def _run_measure(kind: type[Method], cell: Cell) -> Run:
    """Run an experiment of the labelling loop."""
    from wgcn_paper.measures.measure import Measure, load_data

    check_packages([cell.method])
    measure = kind(cell.settings, cell.seed)
    assert isinstance(measure, Measure)
    dataset = load_data(cell.dataset, cell.settings["held_out"])
    _reset_peaks()
    started, started_cpu = time.perf_counter(), time.process_time()
    metrics = measure.measure(dataset)
    metrics["cpu_seconds"] = round(time.process_time() - started_cpu, 3)
    return Run(
        cell=cell,
        accuracy=metrics.pop("accuracy"),
        n_test=len(dataset.test),
        validation_accuracy=None,
        epochs=None,
        ms_per_epoch=None,
        fit_seconds=round(time.perf_counter() - started, 3),
        predict_seconds=None,
        memory=_peaks()[0],
        gpu_memory=None,
        model=None,
        device="cpu",
        date=date.today().isoformat(),
        environment=environment(),
        metrics=metrics,
    )


def _predict_one(method: Baseline, query: Query) -> float | None:
    """Return the time to predict a single new document, in milliseconds; None for transductive methods."""
    seconds = []
    for i in range(min(20, len(query))):
        one = replace(query.only(np.array([i])), places=None)
        started = time.perf_counter()
        try:
            method.predict(one)
        except InputError:
            return None
        seconds.append(time.perf_counter() - started)
    return round(median(seconds) * 1000, 3) if seconds else None


def validate_cell(cell: Cell, device: str = "auto") -> float:
    """Fit, and return the accuracy on validation documents, without test documents."""
    dataset = _dataset(cell.dataset)
    task = Protocol.parse(cell.protocol).task(dataset, cell.seed)
    method = make_baseline(cell.method, cell.settings, cell.seed, device)
    fit = method.fit(task)
    if len(task.validation):
        guesses = method.predict(task.documents(task.validation))
        return float(np.mean(guesses == task.labels[task.validation]))
    if fit.validation_accuracy is None:
        raise InputError(f"{cell.method} held out no documents, so there is no validation accuracy on {cell.dataset}.")
    return fit.validation_accuracy


@lru_cache(maxsize=2)
def _dataset(name: str) -> Dataset:
    return load_dataset(name)


def _reset_peaks() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # Linux: reset the peak memory


def _peaks() -> tuple[float | None, float | None]:
    """Return the peak memory of the process, if it is known, and of the GPU, if it was used, in MiB."""
    peak = peak_memory()
    torch = sys.modules.get("torch")
    gpu = torch.cuda.max_memory_allocated() / 2**20 if torch is not None and torch.cuda.is_available() else 0.0
    return None if peak is None else round(peak / 2**20, 1), round(gpu, 1) if gpu else None


def renamed(run: Run, cell: Cell) -> Run:
    """Return a run under the name that its cell has in another table."""
    return replace(run, cell=cell)
