"""The paper's two tables of data sets, measured and published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import triu

from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import VocabularyRules
from wgcn_paper.datasets import load_dataset, stop_words
from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.published import CITATION_STATISTICS, STATISTICS, TITLES
from wgcn_paper.experiments.report import NOTHING, markdown_table
from wgcn_paper.experiments.table import Table

__all__ = ["report"]


def report(table: Table, runs: Sequence[Run], folder: Path) -> str:
    """Return both tables; a measured figure that differs has the published one beside it."""
    text = [_text_row(name) for name in table.datasets if name in STATISTICS]
    citation = [_citation_row(name) for name in table.datasets if name not in STATISTICS]
    parts = ["Where a published figure differs from what is measured, it follows in brackets.\n"]
    if text:
        parts.append(markdown_table(["", "documents", "train", "test", "words", "classes", "mean length"], text))
    if citation:
        header = ["", "nodes", "edges", "classes", "train", "validation", "test", "features"]
        parts.append(markdown_table(header, citation))
        parts.append("Edges are pairs of different documents that cite each other, counted once.\n")
    return "\n".join(parts)


def _text_row(name: str) -> list[str]:
    dataset = load_dataset(name)
    assert dataset.texts is not None
    # The movie reviews are so short that the published cleaning keeps all their words.
    rules = VocabularyRules() if name == "mr" else VocabularyRules(min_count=5, stop_words=stop_words())
    corpus = Corpus.from_texts(dataset.texts, tokenizer="text_gcn", rules=rules)
    sizes = (len(dataset), len(dataset.train), len(dataset.test), len(corpus.vocabulary), len(dataset.classes))
    published = STATISTICS[name]
    length = round(float(np.mean(np.diff(corpus.offsets))), 2)
    return [TITLES[name], *map(_beside, sizes, published), _beside(length, published[5])]


def _citation_row(name: str) -> list[str]:
    dataset = load_dataset(name)
    assert dataset.document_graph is not None
    assert dataset.validation is not None
    assert dataset.features is not None
    graph = dataset.document_graph
    edges = triu(graph.maximum(graph.T), 1).nnz
    sizes = (len(dataset), edges, len(dataset.classes), *map(len, (dataset.train, dataset.validation, dataset.test)))
    published = CITATION_STATISTICS.get(name, (None,) * 6)
    return [TITLES[name], *map(_beside, sizes, published), f"{dataset.features.shape[1]:,}"]


def _beside(measured: float, published: float | None) -> str:
    if published is None or measured == published:
        return f"{measured:,}"
    return f"{measured:,} ({published:,})" if published is not None else NOTHING
