"""The graph of documents and words: against counts that are written out, and what is kept between calls."""

from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array

from wgcn.base.errors import InputError
from wgcn_paper.methods import document_word_graph as module
from wgcn_paper.methods.document_word_graph import GRAPH, document_word_graph
from wgcn_paper.protocol import Task

TEXTS = (
    "red wine and white wine and old wine",
    "the red rose and the white rose",
    "",
    "fast car and slow car",
    "wine wine wine",
    "car's wheel and old car",
)
TASK = Task(TEXTS, None, np.full(6, None, object), np.empty(0, np.int64), None)
PLAIN = {"tokenizer": "text_gcn", "stop_words": False, "min_count": 1, "window": 3}


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    module._graphs.clear()
    monkeypatch.setattr("wgcn_paper.methods.preparation.stop_words", lambda: frozenset({"and", "the"}))


def reference(documents: list[list[str]], words: tuple[str, ...], window: int) -> npt.NDArray[np.float64]:
    """Count and weigh as the paper says, with loops."""
    n, place = len(documents), {word: len(documents) + i for i, word in enumerate(words)}
    windows = [
        set(document[i : i + window])
        for document in documents
        if document
        for i in range(max(len(document) - window, 0) + 1)
    ]
    singles = Counter(word for seen in windows for word in seen)
    pairs = Counter(pair for seen in windows for pair in combinations(sorted(seen), 2))
    adjacency = np.eye(n + len(words))
    for (one, other), count in pairs.items():
        pmi = np.log(count * len(windows) / (singles[one] * singles[other]))
        if pmi > 0:
            adjacency[place[one], place[other]] = adjacency[place[other], place[one]] = pmi
    for i, document in enumerate(documents):
        for word, count in Counter(document).items():
            idf = np.log(n / sum(word in other for other in documents))
            adjacency[i, place[word]] = adjacency[place[word], i] = count * idf
    scale = 1 / np.sqrt(adjacency.sum(axis=1))
    normalised: npt.NDArray[np.float64] = adjacency * scale[:, None] * scale
    return normalised


@pytest.mark.parametrize("window", [3, 20])
def test_it_is_the_graph_of_the_paper(window: int) -> None:
    texts = tuple(text.replace("'s", "") for text in TEXTS)
    graph = document_word_graph(replace(TASK, texts=texts), PLAIN | {"window": window})
    dense = graph.adjacency.toarray()
    np.testing.assert_allclose(dense, reference([text.split() for text in texts], graph.words, window), atol=1e-6)
    assert graph.adjacency.dtype == np.float32
    np.testing.assert_array_equal(dense, dense.T)


def test_a_document_without_words_is_linked_with_itself_alone() -> None:
    texts = ("red wine", "", "white wine", "rare", "red wine")
    graph = document_word_graph(replace(TASK, texts=texts, labels=TASK.labels[:5]), PLAIN | {"min_count": 2})
    for row in (1, 3):  # of the latter the only word is too rare
        expected = np.zeros(graph.adjacency.shape[0])
        expected[row] = 1
        np.testing.assert_array_equal(graph.adjacency.toarray()[row], expected)


def test_a_word_of_all_documents_has_no_document() -> None:
    texts = ("a red wine", "a rose", "a car", "a fast car", "a wheel", "a white wine")
    graph = document_word_graph(replace(TASK, texts=texts), PLAIN)
    column = 6 + graph.words.index("a")
    assert graph.adjacency.toarray()[:6, column].tolist() == [0] * 6
    assert (graph.adjacency.data != 0).all()


@pytest.mark.parametrize(
    ("setting", "value"), [("tokenizer", "words"), ("stop_words", True), ("min_count", 2), ("window", 2)]
)
def test_every_setting_is_used(setting: str, value: Any) -> None:
    assert set(GRAPH) == {"tokenizer", "stop_words", "min_count", "window"}
    one, other = (document_word_graph(TASK, settings) for settings in (PLAIN, PLAIN | {setting: value}))
    assert one.words != other.words or (one.adjacency != other.adjacency).nnz
    assert len(module._graphs) == 2


def test_a_graph_is_shared_by_labels_and_few_are_kept() -> None:
    first = document_word_graph(TASK, PLAIN | {"hidden": 3})
    assert document_word_graph(replace(TASK, labels=np.array(list("aabbab"), object)), PLAIN) is first
    assert document_word_graph(replace(TASK, texts=TEXTS[::-1]), PLAIN) is not first
    assert document_word_graph(TASK, PLAIN) is first
    for window in (4, 5):
        document_word_graph(TASK, PLAIN | {"window": window})
    assert len(module._graphs) == module._graphs.most == 2
    assert document_word_graph(TASK, PLAIN) is not first


def test_features_are_no_texts() -> None:
    with pytest.raises(InputError, match="needs texts"):
        document_word_graph(Task(None, csr_array(np.eye(6)), TASK.labels, TASK.validation, None), PLAIN)
