"""The docs corpus as linked documents: whom a docstring cites, and what the links are good for."""

import numpy as np
import pytest

from wgcn import Corpus, WGCNTextClassifier, WordGraph
from wgcn.text.vocabulary import VocabularyRules
from wgcn.text.weighting import document_terms
from wgcn_paper.datasets import docstrings as source
from wgcn_paper.datasets.docs import docs_corpus, resolve, see_also
from wgcn_paper.datasets.docstrings import DocsCorpus


@pytest.fixture(scope="module")
def docs(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WGCN_CACHE", str(tmp_path_factory.mktemp("cache")))
        return docs_corpus()


def test_graph_holds_single_directed_links_and_no_self_citation(docs):
    graph = docs.document_graph
    assert graph.shape == (len(docs), len(docs))
    assert graph.dtype == np.float32
    assert graph.nnz >= 1000
    assert set(graph.data.tolist()) == {1.0}
    assert graph.has_canonical_format
    assert graph.diagonal().sum() == 0
    assert (graph != graph.T).nnz > 0


@pytest.mark.parametrize(
    ("citing", "cited"),
    [
        ("numpy.argmax", "numpy.argmin"),  # same module
        ("scipy.sparse.linalg.eigs", "scipy.sparse.linalg.eigsh"),  # same inner module
        ("numpy.dot", "numpy.einsum"),
        ("sklearn.metrics.euclidean_distances", "sklearn.metrics.pairwise.paired_distances"),  # same sub-package
        ("sklearn.metrics.f1_score", "sklearn.metrics.fbeta_score"),
    ],
)
def test_known_links_are_there(docs, citing, cited):
    assert docs.document_graph[docs.names.index(citing), docs.names.index(cited)] == 1


def test_second_call_reads_the_cache(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    labels, rows = np.array(["numpy", "numpy", "numpy.linalg"]), np.arange(3)
    small = DocsCorpus(("a", "b", "c"), labels, rows[:2], rows[2:], ("numpy.a", "numpy.b", "numpy.linalg.c"))
    monkeypatch.setattr(source, "docs_corpus", lambda cache: small)
    listed = dict.fromkeys(small.names, "Text.") | {"numpy.a": "Text.\n\nSee Also\n--------\nlinalg.c : More."}
    monkeypatch.setattr(source, "docstrings", lambda: calls.append(1) or listed)
    for _ in range(2):
        assert docs_corpus().document_graph.toarray().tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert len(calls) == 1
    docs_corpus(cache=False)
    assert len(calls) == 2


def test_see_also_entries_are_read_in_every_form(docstring):
    entries = " ".join(see_also(docstring))
    assert entries == "short spaced tight first second third role scipy.stats.deep ticks numpy.linalg.tilde"


def test_docstring_without_see_also_cites_nothing():
    assert see_also("Do it.\n\nNotes\n-----\nother : A note.") == []


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("svd", "scipy.sparse.linalg.svd"),  # the same module comes before the packages round it
        ("block", "scipy.sparse.block"),
        ("linalg.inv", "scipy.linalg.inv"),
        ("numpy.svd", "numpy.svd"),
        ("np.sum", "numpy.sum"),
        ("sum", "numpy.sum"),
        ("amount", None),
    ],
)
def test_entry_is_the_document_in_the_nearest_package(entry, found):
    names = (
        "numpy.ma.sum numpy.sum numpy.svd scipy.linalg.inv scipy.linalg.svd scipy.sparse.block scipy.sparse.linalg.svd"
    )
    by_last_part = {}
    for name in names.split():
        by_last_part.setdefault(name.split(".")[-1], []).append(name)
    assert resolve(entry, "scipy.sparse.linalg.eigs", by_last_part) == found


def test_docs_corpus_links_words_of_linked_documents(docs):
    assert docs.texts is not None
    corpus = Corpus.from_texts(docs.texts, rules=VocabularyRules(min_df=5, max_df=0.3))
    x = document_terms(corpus)
    graph = WordGraph.from_citations(x, docs.document_graph, corpus.vocabulary, order=1)
    apart = WordGraph.from_citations(x, docs.document_graph, corpus.vocabulary, order=0)
    assert graph.info().edges > apart.info().edges
    assert graph.settings["weight"] == "citations"


def test_citations_say_what_few_words_do_not(docs):
    train, test = ([docs.texts[i] for i in part] for part in (docs.train, docs.test))
    labels, truth = docs.labels[docs.train].astype(object), docs.labels[docs.test]
    for name in docs.classes:
        places = np.flatnonzero(labels == name)
        labels[np.setdiff1d(places, places[::20])] = None
    model = WGCNTextClassifier(min_count=3, ngram_range=(1, 1)).fit(train, labels)
    beginnings = [" ".join(text.split()[:20]) for text in test]
    links = docs.document_graph[docs.test][:, docs.train]
    # From 60 % to 68 % for the first words of a docstring; a whole one, of 260 words, hardly needs the help.
    attached = np.mean(model.predict(beginnings, document_graph=links, documents=train) == truth)
    assert attached > np.mean(model.predict(beginnings) == truth) + 0.06
    attached = np.mean(model.predict(test, document_graph=links, documents=train) == truth)
    assert attached > np.mean(model.predict(test) == truth) - 0.02
