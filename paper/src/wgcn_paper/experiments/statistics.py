"""The paper's two tables of data sets, measured and published. What is measured is kept in ``datasets.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import triu

from wgcn.base.errors import StoreError
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import VocabularyRules
from wgcn_paper.datasets import DATASETS, TextSet, load_dataset, stop_words
from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.published import TITLES
from wgcn_paper.experiments.report import markdown_table
from wgcn_paper.experiments.results import write_if_changed
from wgcn_paper.experiments.table import Table

_OF_TEXTS = ("documents", "train", "test", "words", "classes", "mean length")
_OF_CITATIONS = ("nodes", "edges", "classes", "train", "validation", "test", "features")
_IN_PAPER = ("citeseer", "pubmed")  # of the citation networks

Sizes = Mapping[str, float]


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return both tables; a measured figure that differs has the published one beside it."""
    sizes = read_sizes(folder)
    known = [name for name in table.datasets if name in sizes]
    parts = ["Where a published figure differs from what is measured, it follows in brackets.\n"]
    for names in (_OF_TEXTS, _OF_CITATIONS):
        rows = [_row(name, sizes[name]) for name in known if tuple(sizes[name]) == names]
        parts += [markdown_table(["", *names], rows)] if rows else []
    if any("edges" in sizes[name] for name in known):
        parts.append("Edges are pairs of different documents that cite each other, counted once.\n")
    return "\n".join(parts)


def published_sizes(name: str) -> Sizes:
    """Return the sizes that the paper gives for a data set."""
    known = DATASETS[name]
    if isinstance(known, TextSet):
        sizes = (known.documents, known.train, known.test, known.words, known.classes, known.mean_length)
        return dict(zip(_OF_TEXTS, sizes, strict=True))
    if name not in _IN_PAPER:
        return {}
    splits = (known.train, known.validation, known.test)
    return dict(zip(_OF_CITATIONS, (known.documents, known.published_edges, known.classes, *splits), strict=False))


def read_sizes(folder: Path) -> dict[str, Sizes]:
    """Return what was measured, by data set."""
    try:
        sizes: dict[str, Sizes] = json.loads((folder / "datasets.json").read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StoreError(f"{folder / 'datasets.json'} is damaged: {error}. Move it away to start again.") from error
    return sizes


def measure_sizes(names: Sequence[str], folder: Path) -> None:
    """Measure data sets and add their sizes to what is known."""
    known = read_sizes(folder) | {
        name: _of_texts(name) if isinstance(DATASETS[name], TextSet) else _of_citations(name) for name in names
    }
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(sizes)}" for name, sizes in known.items())
    folder.mkdir(parents=True, exist_ok=True)
    write_if_changed(folder / "datasets.json", f"{{\n{lines}\n}}\n")


def _of_texts(name: str) -> Sizes:
    dataset = load_dataset(name)
    assert dataset.texts is not None
    # The movie reviews are so short that the published cleaning keeps all their words.
    rules = VocabularyRules() if name == "mr" else VocabularyRules(min_count=5, stop_words=stop_words())
    corpus = Corpus.from_texts(dataset.texts, tokenizer="text_gcn", rules=rules)
    sizes = (len(dataset), len(dataset.train), len(dataset.test), len(corpus.vocabulary), len(dataset.classes))
    return dict(zip(_OF_TEXTS, (*sizes, round(float(np.mean(np.diff(corpus.offsets))), 2)), strict=True))


def _of_citations(name: str) -> Sizes:
    dataset = load_dataset(name)
    assert dataset.document_graph is not None
    assert dataset.validation is not None
    assert dataset.features is not None
    graph = dataset.document_graph
    edges = triu(graph.maximum(graph.T), 1).nnz
    splits = map(len, (dataset.train, dataset.validation, dataset.test))
    sizes = (len(dataset), edges, len(dataset.classes), *splits, dataset.features.shape[1])
    return dict(zip(_OF_CITATIONS, sizes, strict=True))


def _row(name: str, sizes: Sizes) -> list[str]:
    published = published_sizes(name)
    return [TITLES[name], *(_beside(measured, published.get(size)) for size, measured in sizes.items())]


def _beside(measured: float, published: float | None) -> str:
    return f"{measured:,}" if published in (None, measured) else f"{measured:,} ({published:,})"
