"""The benchmark sets that the literature reports on: their published figures, their sources and their digests.

Facts only. `wgcn_paper.datasets.layout` reads the sets, `wgcn_paper.datasets.prepare` puts them into the cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


_TEXT_SETS = (
    TextSet(
        name="20ng",
        source="20ng",
        train=11_314,
        test=7_532,
        classes=20,
        words=42_757,
        mean_length=221.26,
        digest="5f9f9a08dd405ab526d3c2aebdcacd79f8e535aec65bbb062549e2c1502f694d",
    ),
    TextSet(
        name="r8",
        source="R8",
        train=5_485,
        test=2_189,
        classes=8,
        words=7_688,
        mean_length=65.72,
        digest="66af37e3d0d2d0b89cd9aba6f7b1938728117ab8335d39433174c821dae0293b",
    ),
    TextSet(
        name="r52",
        source="R52",
        train=6_532,
        test=2_568,
        classes=52,
        words=8_892,
        mean_length=69.82,
        digest="5fd507827b4e16ff40eb00bb3f03f5c85ed13ebc1a9b2d22a8d8d3c7def1677e",
    ),
    TextSet(
        name="ohsumed",
        source="ohsumed",
        train=3_357,
        test=4_043,
        classes=23,
        words=14_157,
        mean_length=135.82,
        digest="69b22d66420282d3d09cf17cf32be501838832b35eefcba03bb309ce39532565",
    ),
    TextSet(
        name="mr",
        source="mr",
        train=7_108,
        test=3_554,
        classes=2,
        words=18_764,
        mean_length=20.39,
        digest="e83189360dc731585120a6427e46818d3d7dbde18f80fa4e9bf184696285ff90",
    ),
)

_CITATION_SETS = (
    CitationSet(
        name="citeseer",
        documents=3_327,
        published_edges=4_732,
        edges=4_676,
        features=3_703,
        classes=6,
        train=120,
        validation=500,
        test=1_000,
        digest="58f5d4468094ebf0eaa3895a338f8a699f162840f9aadb339be289a498258c89",
        sources={
            "x": "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
            "y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
            "tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
            "ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
            "allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
            "ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
            "graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
            "test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
        },
    ),
    CitationSet(
        name="pubmed",
        documents=19_717,
        published_edges=44_338,
        edges=44_327,
        features=500,
        classes=3,
        train=60,
        validation=500,
        test=1_000,
        digest="1d2e994e593be9edfac4ab22bb871d0cb93258593b4eaaabc6bae2387bc2832c",
        sources={
            "x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
            "y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
            "tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
            "ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
            "allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
            "ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
            "graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
            "test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
        },
    ),
    CitationSet(
        name="cora",
        documents=2_708,
        published_edges=5_429,
        edges=5_278,
        features=1_433,
        classes=7,
        train=140,
        validation=500,
        test=1_000,
        digest="68e0956fc5df68b89f6486631e5e3cee92551273707fb2c7d0dd578b09429315",
        sources={
            "x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
            "y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
            "tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
            "ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
            "allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
            "ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
            "graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
            "test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
        },
    ),
)

DATASETS: Mapping[str, TextSet | CitationSet] = MappingProxyType(
    {known.name: known for known in (*_TEXT_SETS, *_CITATION_SETS)}
)


def dataset_names() -> tuple[str, ...]:
    """Return the names that :func:`wgcn_paper.datasets.load_dataset` knows.

    Examples
    --------
    >>> dataset_names()
    ('20ng', 'r8', 'r52', 'ohsumed', 'mr', 'citeseer', 'pubmed', 'cora', 'docs')
    """
    return (*DATASETS, DOCS)


def known_set(name: str) -> TextSet | CitationSet:
    """Return the entry of a set; an unknown name is an error that lists the sets."""
    if name not in DATASETS:
        raise InputError(f"There is no data set {name!r:.60}. The sets are {', '.join(dataset_names())}.")
    return DATASETS[name]
