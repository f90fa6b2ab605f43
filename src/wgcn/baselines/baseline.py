"""The interface that all methods share, and the registry of their names."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from wgcn.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from wgcn.protocol import Query, Task

__all__ = ["Baseline", "Fit", "array_digest", "make_baseline", "method_names"]

# Name of a method, and the module and class that hold it: imported when it is asked for, since some need torch.
_METHODS = {
    "wgcn": ("wgcn.baselines.wgcn", "NetworkMethod"),
    "wgcn-linear": ("wgcn.baselines.wgcn", "LinearMethod"),
    "wgcn-citations": ("wgcn.baselines.wgcn_citations", "CitationMethod"),
    "linear-svc": ("wgcn.baselines.linear_svc", "LinearSVCMethod"),
}


class Fit(NamedTuple):
    """What fitting tells of itself."""

    epochs: int | None = None  # None for what does not train in epochs
    validation_accuracy: float | None = None  # on documents that were held out of the training documents
    seconds_per_epoch: float | None = None  # the median
    digest: str | None = None  # of all that was learnt


class Baseline(ABC):
    """A method with its settings.

    Parameters
    ----------
    settings : mapping
        Values for some or all of the keys of `defaults`; any other key is an error. A setting that is added to a method
        needs a default that changes nothing, because results from before are taken to have it.
    seed : int
    device : str
        "cpu", "cuda" or "auto"; of no meaning to methods that know no GPU.
    """

    name: ClassVar[str]
    protocols: ClassVar[tuple[str, ...]] = ("corpus", "inductive", "few-label")
    why_not: ClassVar[str] = ""  # for a method that cannot run under all protocols: why
    seeded: ClassVar[bool] = True  # whether another seed gives another model
    defaults: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, settings: Mapping[str, Any] | None = None, seed: int = 0, device: str = "auto") -> None:
        given = dict(settings or {})
        unknown = sorted(given.keys() - self.defaults.keys())
        if unknown:
            raise InputError(
                f"{self.name} has no setting {', '.join(unknown)}. It has: {', '.join(sorted(self.defaults))}."
            )
        self.settings: dict[str, Any] = {**self.defaults, **given}
        self.seed, self.device = seed, device

    @abstractmethod
    def fit(self, task: Task) -> Fit:
        """Learn from what the task shows."""

    @abstractmethod
    def predict(self, query: Query) -> npt.NDArray[Any]:
        """Return a label a document."""

    def _pick(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: self.settings[name] for name in names}


def method_names() -> tuple[str, ...]:
    """Return the names of all methods."""
    return tuple(_METHODS)


def method_class(name: str) -> type[Baseline]:
    """Return the class of a method."""
    if name not in _METHODS:
        raise InputError(f"There is no method {name!r}. There are: {', '.join(_METHODS)}.")
    module, attribute = _METHODS[name]
    try:
        found: type[Baseline] = getattr(import_module(module), attribute)
    except ImportError as error:
        missing = (error.name or "a package").split(".")[0]
        raise MissingDependencyError(missing, "train", f"The method {name}") from error
    return found


def make_baseline(
    name: str, settings: Mapping[str, Any] | None = None, seed: int = 0, device: str = "auto"
) -> Baseline:
    """Make a method by its name."""
    return method_class(name)(settings, seed, device)


def array_digest(*parts: npt.NDArray[Any] | Iterable[str] | None) -> str:
    """Return the SHA-256 of arrays and words: the fingerprint of a model."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype != object:
            digest.update(f"{part.dtype} {part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update("\n".join(map(str, () if part is None else part)).encode())
    return digest.hexdigest()
