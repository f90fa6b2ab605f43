"""Protocols: what fitting may see of a data set.

- ``corpus``: the text of all documents, including test documents, but only the labels of the training documents. The
  paper's published code and most of the literature on text graphs do this.
- ``inductive``: the training documents only, as in practice.
- ``few-label``: as inductive, but with the labels of a share (or a number per class) of the training documents; the
  others are unlabelled.
- ``unseen``: only a share (or a number per class) of the training documents, text and labels. The other training texts
  are a pool for methods that can add words later, and only test documents with a word that fitting did not see are
  predicted.

Figures of different protocols are not comparable, so every result names its protocol.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError
from wgcn.text.tokenize import words

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from wgcn_paper.datasets import Dataset


Name = Literal["corpus", "inductive", "few-label", "unseen"]

# Protocols that draw documents with a seed.
_DRAWN = ("few-label", "unseen")


@dataclass(frozen=True, eq=False)
class Task:
    """Everything that fitting is given. It never has labels of test documents, and their text only under ``corpus``."""

    texts: tuple[str, ...] | None  # documents that fitting may see, training documents first
    features: csr_array | None  # (documents, words): the same for a data set that comes as features
    labels: npt.NDArray[np.object_]  # (documents,); one label per document, None for unlabelled ones
    # Documents whose labels may choose settings but not train, if the data set has such
    validation: npt.NDArray[np.int64]
    document_graph: csr_array | None  # (documents, documents): citations between these documents
    # Under ``unseen``, the texts of the other training documents: not for fitting, but for extending a fitted model.
    # Empty otherwise.
    pool: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the documents, without labels: the key under which preparations are shared."""
        digest = hashlib.sha256()
        for text in self.texts or ():
            content = text.encode()
            digest.update(len(content).to_bytes(8))
            digest.update(content)
        for matrix in (self.features, self.document_graph):
            if matrix is not None:
                digest.update(f"{matrix.shape} {matrix.dtype}".encode())
                for array in (matrix.data, matrix.indices, matrix.indptr):
                    digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def documents(self, places: npt.NDArray[np.int64]) -> Query:
        """Return some of the documents as a query."""
        return Query(
            None if self.texts is None else tuple(self.texts[i] for i in places),
            None if self.features is None else self.features[places],
            None if self.document_graph is None else self.document_graph[places],
            places,
        )


@dataclass(frozen=True, eq=False)
class Query:
    """Documents to be classified."""

    texts: tuple[str, ...] | None
    features: csr_array | None  # (documents, words)
    # (documents, documents of the task): their citations of documents that fitting saw, for the methods that use them
    document_graph: csr_array | None
    places: npt.NDArray[np.int64] | None = None  # their places among the documents of the task, if it has them

    def __len__(self) -> int:
        if self.texts is not None:
            return len(self.texts)
        return 0 if self.features is None else int(self.features.shape[0])

    def only(self, documents: npt.NDArray[np.int64]) -> Query:
        """Return some of the documents, by their places in the query."""
        return Query(
            None if self.texts is None else tuple(self.texts[i] for i in documents),
            None if self.features is None else self.features[documents],
            None if self.document_graph is None else self.document_graph[documents],
            None if self.places is None else self.places[documents],
        )


@dataclass(frozen=True)
class Protocol:
    """What fitting may see.

    Examples
    --------
    >>> Protocol.parse("few-label:5%")
    Protocol(name='few-label', fraction=0.05, per_class=None)
    >>> str(Protocol("few-label", per_class=10))
    'few-label:10'
    """

    name: Name
    fraction: float | None = None  # for few-label and unseen: the share of labels, at least one per class
    per_class: int | None = None  # for few-label and unseen: the number of labels per class, instead of a share

    def __post_init__(self) -> None:
        if self.name not in get_args(Name):
            raise InputError(f"A protocol is one of {', '.join(get_args(Name))}, got {self.name!r}.")
        if self.name not in _DRAWN:
            if (self.fraction, self.per_class) != (None, None):
                raise InputError(f"Only few-label and unseen take a share or a number of labels, not {self.name}.")
            return
        if (self.fraction is None) == (self.per_class is None):
            example = f"'{self.name}:5%' or '{self.name}:10'"
            raise InputError(f"{self.name} takes a share or a number of labels: {example}.")
        if self.fraction is not None and not 0 < self.fraction <= 1:
            raise InputError(f"The share of labels must be above 0 and at most 1, got {self.fraction}.")
        if self.per_class is not None and self.per_class < 1:
            raise InputError(f"The number of labels per class must be at least 1, got {self.per_class}.")

    @classmethod
    def parse(cls, text: str) -> Protocol:
        """Parse the output of `str`: corpus, inductive, few-label:5%, few-label:10 or unseen:5%."""
        match = re.fullmatch(r"(corpus|inductive|few-label|unseen)(?::([0-9.]{1,20})(%?))?", text)
        if not match:
            raise InputError(
                f"{text!r} is not a protocol. Use corpus, inductive, few-label:5%, few-label:10 or unseen:5%."
            )
        name: Any
        name, number, percent = match.groups()
        if number is None:
            return cls(name)
        try:
            value = float(number) / 100 if percent else int(number)
        except ValueError as error:
            raise InputError(f"{text!r} is not a protocol: {number!r} is not a number of labels.") from error
        return cls(name, value) if percent else cls(name, per_class=int(value))

    def __str__(self) -> str:
        if self.fraction is not None:
            return f"{self.name}:{self.fraction * 100:.10g}%"
        return self.name if self.per_class is None else f"{self.name}:{self.per_class}"

    @property
    def is_drawn(self) -> bool:
        """Whether the task depends on the seed."""
        return self.name in _DRAWN and self.fraction != 1.0

    def seen(self, dataset: Dataset, seed: int = 0) -> npt.NDArray[np.int64]:
        """Return the documents that fitting may see, training documents first."""
        others = np.setdiff1d(np.arange(len(dataset)), dataset.train)
        if self.name != "corpus":
            others = np.setdiff1d(others, dataset.test)
        return np.concatenate([dataset.train[self._fitted(dataset, seed)], others])

    def _fitted(self, dataset: Dataset, seed: int) -> npt.NDArray[np.int64]:
        """Return which training documents fitting sees."""
        if self.name != "unseen":
            return np.arange(len(dataset.train))
        return self._keep(dataset.labels[dataset.train], seed)

    def tested(self, dataset: Dataset, seed: int = 0) -> npt.NDArray[np.int64]:
        """Return the documents to be predicted: the test documents, under unseen only those with an unseen word."""
        if self.name != "unseen":
            return dataset.test
        if dataset.texts is None:
            raise InputError(f"{dataset.name} has no texts, so there are no unseen words. Use few-label.")
        known = {word for i in self.seen(dataset, seed) for word in words(dataset.texts[i])}
        new = [i for i in dataset.test if not known.issuperset(words(dataset.texts[i]))]
        return np.array(new, np.int64)

    def task(self, dataset: Dataset, seed: int = 0) -> Task:
        """Return what fitting is given; under few-label and unseen the seed draws the labelled documents."""
        seen, fitted = self.seen(dataset, seed), self._fitted(dataset, seed)
        labels = np.full(len(seen), None, object)
        train = dataset.labels[dataset.train[fitted]]
        kept = self._keep(train, seed) if self.name == "few-label" else np.arange(len(train))
        labels[kept] = train[kept]
        validation = np.empty(0, np.int64)
        if dataset.validation is not None:
            validation = np.flatnonzero(np.isin(seen, dataset.validation))
            labels[validation] = dataset.labels[seen[validation]]
        graph = dataset.document_graph
        pool = np.setdiff1d(dataset.train, seen)
        return Task(
            None if dataset.texts is None else tuple(dataset.texts[i] for i in seen),
            None if dataset.features is None else dataset.features[seen],
            labels,
            validation,
            None if graph is None else graph[seen][:, seen],
            tuple(dataset.texts[i] for i in pool) if dataset.texts is not None else (),
        )

    def query(self, dataset: Dataset, seed: int = 0) -> Query:
        """Return the documents of `tested`, with their citations of documents that fitting saw."""
        graph, seen, tested = dataset.document_graph, self.seen(dataset, seed), self.tested(dataset, seed)
        place = np.full(len(dataset), -1)
        place[seen] = np.arange(len(seen))
        return Query(
            None if dataset.texts is None else tuple(dataset.texts[i] for i in tested),
            None if dataset.features is None else dataset.features[tested],
            None if graph is None else graph[tested][:, seen],
            place[tested] if self.name == "corpus" else None,
        )

    def _keep(self, labels: npt.NDArray[Any], seed: int) -> npt.NDArray[np.int64]:
        """Draw documents: the share of each class, at least one; the largest remainders are rounded up.

        The committed runs depend on these draws, which scikit-learn's splitters would not give: they refuse classes
        with a single document.
        """
        order = np.random.default_rng(seed).permutation(len(labels))
        _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        if self.per_class is not None:
            take = np.minimum(counts, self.per_class)
        else:
            assert self.fraction is not None
            shares = counts * self.fraction
            take = np.maximum(np.floor(shares).astype(np.int64), 1)
            missing = max(round(len(labels) * self.fraction) - int(take.sum()), 0)
            by_remainder = np.argsort(take - shares, kind="stable")
            take[by_remainder[take[by_remainder] < counts[by_remainder]][:missing]] += 1
        return np.sort(np.concatenate([order[codes[order] == c][:n] for c, n in enumerate(take)]))
