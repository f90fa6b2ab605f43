"""The texts that are measured: five public sets in the folder WGCN_DATA, or the docs corpus where they are absent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import wgcn
from benchmarks.measure import Cell, run_cell

SETS = ("20ng", "mr", "ohsumed", "r52", "r8")
DOCS = "docs"
ABSENT = (
    "WGCN_DATA is not set or lacks text/<set>/{train,test}.tsv.gz: the docs corpus is measured instead, and windows is "
    "left out."
)


def available() -> bool:
    """Whether every set is there."""
    return bool(os.environ.get("WGCN_DATA")) and all(file.exists() for name in SETS for file in files(name))


def folder() -> Path:
    return Path(os.environ["WGCN_DATA"]).expanduser()


def files(name: str) -> list[Path]:
    return [folder() / "text" / name / f"{part}.tsv.gz" for part in ("train", "test")]


def texts(name: str) -> Iterator[str]:
    """Yield the raw texts of a set, those for training first."""
    if name == DOCS:
        from wgcn_paper.datasets.docstrings import docs_corpus

        return iter(docs_corpus().texts or ())
    from wgcn.io.read import read_texts

    return chain.from_iterable(read_texts(file, text_column=1, header=False) for file in files(name))


def split(name: str) -> tuple[list[str], list[str], list[str]]:
    """Return the training texts, their labels, and the test texts."""
    if name == DOCS:
        from wgcn_paper.datasets.docstrings import docs_corpus

        docs = docs_corpus()
        assert docs.texts is not None
        train, test = ([docs.texts[i] for i in part] for part in (docs.train, docs.test))
        return train, docs.labels[docs.train].tolist(), test
    from wgcn.io.read import read_rows

    (labels, train), (_, test) = (
        map(list, zip(*read_rows(file, [0, 1], header=False), strict=True)) for file in files(name)
    )
    return train, labels, test


def few_labels(labels: list[str], share: float) -> list[str | None]:
    """Keep a share of the labels of every class, at least one, always the same ones; the others become None."""
    import numpy as np

    random, given = np.random.default_rng(0), np.array(labels)
    kept: list[str | None] = [None] * len(labels)
    for label in np.unique(given):
        members = random.permutation(np.flatnonzero(given == label))
        for i in members[: max(round(share * len(members)), 1)].tolist():
            kept[i] = labels[i]
    return kept


def corpus(name: str) -> wgcn.Corpus:
    """Tokenise a set as Text-GCN does; of mr and the docs corpus every word is kept."""
    rules = None
    if name not in ("mr", DOCS):
        stop_words = (folder() / "stopwords_english.txt").read_text().split()
        rules = wgcn.VocabularyRules(min_count=5, stop_words=stop_words)
    return wgcn.Corpus.from_texts(texts(name), tokenizer="text_gcn", rules=rules)


def prepare_docs() -> None:
    """Have the docs corpus cached: to build it means to import every module, which no cell should have to hold."""
    run_cell("nothing yet, but building the docs corpus", build_docs)


def build_docs() -> Cell:
    return {"documents": sum(1 for _ in texts(DOCS))}
