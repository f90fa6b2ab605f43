"""From raw strings to word ids, beside scikit-learn's CountVectorizer on the same strings."""

from __future__ import annotations

from collections.abc import Callable

import wgcn
from benchmarks import sets
from benchmarks.measure import Cell, Section, in_seconds, peak_megabytes, run_cell, timed, whole


def measure_tokenising() -> Section:
    name = "20ng" if sets.available() else sets.DOCS
    cells = [run_cell(f"tokenise: {name}, {way}", tokenise, name=name, way=way) for way in WAYS]
    base = cells[0]
    header = ("way", "seconds", "MB/s", "times as fast", "words", "peak MB")
    rows = [
        (
            cell["way"],
            in_seconds(cell["seconds"]),
            f"{cell['megabytes'] / cell['seconds']:.1f}",
            f"{base['seconds'] / cell['seconds']:.1f}",
            whole(cell["words"]),
            whole(cell["peak_mb"]),
        )
        for cell in cells
    ]
    remark = (
        f"{base['megabytes']:.1f} MB of text in {base['documents']:,} strings in memory. CountVectorizer uses one "
        "core, drops words of one letter and ends in a matrix of counts. wgcn ends in word ids in the order of the "
        "text, and in the last row makes the matrix of counts as well."
    )
    return Section(f"Tokenising, {name}", header, rows, cells, remarks=[remark])


def tokenise(name: str, way: str) -> Cell:
    texts = list(sets.texts(name))
    function = WAYS[way]
    function(["Load what is needed", "and compile the kernels"])
    times, words = timed(lambda: function(texts))
    return {
        "set": name,
        "way": way,
        "documents": len(texts),
        "megabytes": sum(len(text.encode()) for text in texts) / 1e6,
        "words": words,
        "seconds": min(times),
        "times": times,
        "peak_mb": peak_megabytes(),
    }


# The ways; each returns the number of different words.


def count_vectorizer(texts: list[str]) -> int:
    from sklearn.feature_extraction.text import CountVectorizer

    return int(CountVectorizer().fit_transform(texts).shape[1])


def one_core(texts: list[str]) -> int:
    return len(wgcn.Corpus.from_texts(texts, n_jobs=1).vocabulary)


def all_cores(texts: list[str]) -> int:
    return len(wgcn.Corpus.from_texts(texts).vocabulary)


def all_cores_to_matrix(texts: list[str]) -> int:
    from wgcn.text.weighting import document_terms

    return int(document_terms(wgcn.Corpus.from_texts(texts), "count").shape[1])


# The first is what the others are compared with.
WAYS: dict[str, Callable[[list[str]], int]] = {
    "CountVectorizer": count_vectorizer,
    "wgcn, 1 thread": one_core,
    "wgcn, all cores": all_cores,
    "wgcn, all cores, matrix": all_cores_to_matrix,
}
