"""The benchmark sets that the literature reports on: their published figures, their sources and their digests.

The facts are in ``registry.toml``. `wgcn_paper.datasets.layout` reads the sets, `wgcn_paper.datasets.prepare` puts them
into the cache.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import ClassVar

from wgcn.base.errors import InputError

DOCS = "docs"  # made from what is installed; see wgcn_paper.datasets.docstrings
STOP_WORDS = "stopwords"  # what 'wgcn-paper data prepare' calls the list of English stop words
STOP_WORDS_COUNT = 179
STOP_WORDS_DIGEST = "649e2341238138974f7fc014ba2c3655dc334605136791a9d1918a41fca86143"


@dataclass(frozen=True)
class TextSet:
    """Published figures of a set of texts."""

    kind: ClassVar[str] = "text"

    name: str
    source: str  # name of its files in the repository that it comes from
    train: int  # numbers of documents and of classes
    test: int
    classes: int
    words: int  # different words that the cleaning of Text-GCN leaves
    mean_length: float  # mean number of words per document after that cleaning
    digest: str  # what :func:`wgcn_paper.datasets.layout.text_digest` gives for the documents

    @property
    def documents(self) -> int:
        """Number of documents."""
        return self.train + self.test


@dataclass(frozen=True)
class CitationSet:
    """Published figures of a citation network."""

    kind: ClassVar[str] = "citation"

    name: str  # name of the set, here and in the repository that it comes from
    documents: int  # nodes of the network, with those that are in no split
    published_edges: int  # links as the literature counts them
    edges: int  # different undirected links, with those of a document to itself
    features: int  # numbers of words and of classes
    classes: int
    train: int  # documents in each part of the split
    validation: int
    test: int
    digest: str  # what :func:`wgcn_paper.datasets.layout.citation_digest` gives for the arrays
    sources: Mapping[str, str]  # SHA-256 of each original file, by the end of its name


def _known() -> Iterator[TextSet | CitationSet]:
    text = resources.files("wgcn_paper").joinpath("datasets", "registry.toml").read_text("utf-8")
    content = tomllib.loads(text)
    yield from (TextSet(**entry) for entry in content["text"])
    yield from (CitationSet(**entry) for entry in content["citation"])


DATASETS: Mapping[str, TextSet | CitationSet] = MappingProxyType({known.name: known for known in _known()})


def dataset_names() -> tuple[str, ...]:
    """Return the names that :func:`wgcn_paper.datasets.load_dataset` knows."""
    return (*DATASETS, DOCS)


def known_set(name: str) -> TextSet | CitationSet:
    """Return the entry of a set; an unknown name is an error that lists the sets."""
    if name not in DATASETS:
        raise InputError(f"There is no data set {name!r:.60}. The sets are {', '.join(dataset_names())}.")
    return DATASETS[name]
