"""The interface that all methods share, and the registry of their names."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError
from wgcn_paper.packages import MissingPackageError, packages_for

if TYPE_CHECKING:
    from wgcn_paper.protocol import Query, Task


# Module and class of each method, imported on demand because some need torch.
_METHODS: dict[str, tuple[str, str]] = {
    "wgcn": ("wgcn_paper.methods.wgcn", "NetworkMethod"),
    "wgcn-linear": ("wgcn_paper.methods.wgcn", "LinearMethod"),
    "wgcn-citations": ("wgcn_paper.methods.wgcn_citations", "CitationMethod"),
    "linearised-wgcn": ("wgcn_paper.methods.linearised_wgcn", "LinearisedWGCNMethod"),
    "linearised-text-gcn": ("wgcn_paper.methods.linearised_text_gcn", "LinearisedTextGCNMethod"),
    "cnn": ("wgcn_paper.methods.cnn", "CNNMethod"),
    "lstm": ("wgcn_paper.methods.lstm", "LSTMMethod"),
    "graph-cnn": ("wgcn_paper.methods.graph_cnn", "GraphCNNMethod"),
    "text-gcn": ("wgcn_paper.methods.text_gcn", "TextGCNMethod"),
    "text-level-gnn": ("wgcn_paper.methods.text_level_gnn", "TextLevelGNNMethod"),
    "fast-gcn": ("wgcn_paper.methods.fast_gcn", "FastGCNMethod"),
    "gcn": ("wgcn_paper.methods.gcn", "GCNMethod"),
    "gin": ("wgcn_paper.methods.gin", "GINMethod"),
    "sgc": ("wgcn_paper.methods.sgc", "SGCMethod"),
    "linear-svc": ("wgcn_paper.methods.linear_svc", "LinearSVCMethod"),
    "linear-svc-characters": ("wgcn_paper.methods.linear_svc_characters", "LinearSVCCharactersMethod"),
    "self-training-svc": ("wgcn_paper.methods.self_training_svc", "SelfTrainingSVCMethod"),
    "logistic": ("wgcn_paper.methods.logistic", "LogisticMethod"),
    "fasttext": ("wgcn_paper.methods.fasttext", "FastTextMethod"),
    "fasttext-autotune": ("wgcn_paper.methods.fasttext_autotune", "FastTextAutotuneMethod"),
    "wide-mlp": ("wgcn_paper.methods.wide_mlp", "WideMLPMethod"),
    "static-embedding": ("wgcn_paper.methods.static_embedding", "StaticEmbeddingMethod"),
    "sentence-embedding": ("wgcn_paper.methods.sentence_embedding", "SentenceEmbeddingMethod"),
    "setfit": ("wgcn_paper.methods.setfit", "SetFitMethod"),
    "embedding": ("wgcn_paper.methods.embedder", "EmbeddingMethod"),
}

# The experiments of the labelling loop, which measure more than the accuracy of one fit.
_MEASURES: dict[str, tuple[str, str]] = {
    "explanations": ("wgcn_paper.measures.explanations", "Explanations"),
    "seeds": ("wgcn_paper.measures.seeds", "Seeds"),
    "suggest": ("wgcn_paper.measures.suggest", "Suggest"),
    "small-text": ("wgcn_paper.measures.suggest", "SmallText"),
    "review": ("wgcn_paper.measures.review", "Review"),
    "abstain": ("wgcn_paper.measures.abstain", "Abstain"),
    "update": ("wgcn_paper.measures.update", "Update"),
}

# Methods from outside the package.
_registered: dict[str, type[Baseline]] = {}


class Fit(NamedTuple):
    """The report of a fit."""

    epochs: int | None = None  # None for methods without epochs
    validation_accuracy: float | None = None  # on held-out training documents
    seconds_per_epoch: float | None = None  # the median
    digest: str | None = None  # of all learnt values


class Method(ABC):
    """A name, its settings, and what it needs.

    Parameters
    ----------
    settings : mapping
        Values for some or all of the keys of `defaults`; any other key is an error. A run from before a setting was
        added counts as one with its default, or with its value in `earlier`.
    device : str
        "cpu", "cuda" or "auto"; ignored by methods that cannot use a GPU.
    """

    name: ClassVar[str]
    # Raised by whoever changes the code so that a fit gives another model: earlier runs are then out of date.
    version: ClassVar[int] = 1
    protocols: ClassVar[tuple[str, ...]] = ("corpus", "inductive", "few-label", "unseen")
    why_not: ClassVar[str] = ""  # for a method that cannot run under all protocols: why
    seeded: ClassVar[bool] = True  # whether another seed gives another model
    seeded_since: ClassVar[int] = 1  # the first version of which that is so
    packages: ClassVar[tuple[str, ...]] = ()  # imported only in `fit`, so that the class can be imported without them
    defaults: ClassVar[Mapping[str, Any]] = {}
    earlier: ClassVar[Mapping[str, Any]] = {}  # values in results from before a setting existed, where not the default
    former: ClassVar[Mapping[int, Mapping[str, Any]]] = {}  # defaults up to a version, where they were others

    def __init__(self, settings: Mapping[str, Any] | None = None, seed: int = 0, device: str = "auto") -> None:
        given = dict(settings or {})
        unknown = sorted(given.keys() - self.defaults.keys())
        if unknown:
            raise InputError(
                f"{self.name} has no setting {', '.join(unknown)}. It has: {', '.join(sorted(self.defaults))}."
            )
        self.settings: dict[str, Any] = {**self.defaults, **given}
        self.seed, self.device = seed, device

    def _pick(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: self.settings[name] for name in names}


class Baseline(Method):
    """A method that is fitted to a task and predicts labels."""

    @abstractmethod
    def fit(self, task: Task) -> Fit:
        """Fit on a task."""

    @abstractmethod
    def predict(self, query: Query) -> npt.NDArray[Any]:
        """Return one label per document."""


def method_names() -> tuple[str, ...]:
    """Return the names of all methods."""
    return *_METHODS, *_registered


def register_method(kind: type[Baseline]) -> type[Baseline]:
    """Register a method of your own by its name, in this process; a decorator for its class.

    It replaces a class that was registered under the same name, but never a method of the package.
    """
    if kind.name in _METHODS:
        raise InputError(f"The package has a method {kind.name!r} already. Give {kind.__name__} another name.")
    _registered[kind.name] = kind
    return kind


def method_class(name: str) -> type[Method]:
    """Return the class of a method, or of an experiment of the labelling loop."""
    if name in _registered:
        return _registered[name]
    known = {**_METHODS, **_MEASURES}
    if name not in known:
        raise InputError(f"There is no method {name!r}. There are: {', '.join(method_names())}.")
    module, attribute = known[name]
    with packages_for(f"The method {name}"):
        found: type[Method] = getattr(import_module(module), attribute)
    return found


def check_packages(names: Iterable[str]) -> None:
    """Raise an error if a package is missing that one of these methods needs to run."""
    for name in dict.fromkeys(names):
        for package in method_class(name).packages:
            if find_spec(package) is None:
                raise MissingPackageError(package, f"The method {name}")


def make_baseline(
    name: str, settings: Mapping[str, Any] | None = None, seed: int = 0, device: str = "auto"
) -> Baseline:
    """Make a method by its name, ready to fit."""
    check_packages([name])
    made = method_class(name)(settings, seed, device)
    if not isinstance(made, Baseline):
        raise InputError(
            f"{name} is an experiment, not a method that is fitted. There are: {', '.join(method_names())}."
        )
    return made


def in_fixed_order(task: Task) -> tuple[Task, npt.NDArray[np.int64]]:
    """Return the task with its documents in an order that depends on their content alone, and each one's new place."""
    keys = []
    for i, label in enumerate(task.labels):
        digest = hashlib.sha256()
        if task.texts is not None:
            digest.update(task.texts[i].encode(errors="replace"))
        if task.features is not None:
            row = slice(task.features.indptr[i], task.features.indptr[i + 1])
            digest.update(task.features.indices[row].tobytes() + task.features.data[row].tobytes())
        keys.append((digest.hexdigest(), str(label), i))
    order = np.array([i for _, _, i in sorted(keys)], np.int64)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    graph = task.document_graph
    if graph is not None:
        graph = graph[order][:, order]
        graph.sort_indices()
    return (
        replace(
            task,
            texts=None if task.texts is None else tuple(task.texts[i] for i in order),
            features=None if task.features is None else task.features[order],
            labels=task.labels[order],
            validation=np.sort(rank[task.validation]),
            document_graph=graph,
        ),
        rank,
    )


def hold_out(codes: npt.NDArray[np.int64], fraction: float, seed: int) -> npt.NDArray[np.bool_]:
    """Draw a share of the labelled documents, and leave at least one document per class.

    The committed runs depend on these draws, which scikit-learn's splitters would not give.
    """
    order = np.random.default_rng(seed).permutation(np.flatnonzero(codes >= 0))
    left = np.bincount(codes[order])
    held_out = np.zeros(len(codes), bool)
    for i in order[: round(len(order) * fraction)]:
        if left[codes[i]] > 1:
            left[codes[i]] -= 1
            held_out[i] = True
    return held_out


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
