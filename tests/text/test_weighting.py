from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer

from wgcn.errors import InputError
from wgcn.text import kernels
from wgcn.text.corpus import Corpus
from wgcn.text.weighting import Norm, TermWeighting, count_terms, document_terms
from wgcn_paper.datasets.docstrings import DocsCorpus


@pytest.mark.parametrize(("weighting", "vectorizer"), [("count", CountVectorizer), ("tfidf", TfidfVectorizer)])
def test_matrix_equals_that_of_scikit_learn(docs: DocsCorpus, weighting: str, vectorizer: type) -> None:
    assert docs.texts is not None
    texts = docs.texts[:150]
    corpus = Corpus.from_texts(texts)
    ours = document_terms(corpus, weighting)  # type: ignore[arg-type]
    theirs = vectorizer(vocabulary=corpus.vocabulary.index, token_pattern=r"(?u)\w+(?:'\w+)*").fit_transform(texts)
    np.testing.assert_allclose(ours.toarray(), theirs.toarray(), rtol=1e-5)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("sublinear", [False, True])
def test_norms_are_those_of_scikit_learn(docs: DocsCorpus, norm: Norm, sublinear: bool) -> None:
    assert docs.texts is not None
    corpus = Corpus.from_texts([*docs.texts[:150], ""])
    weighting = TermWeighting.from_counts(
        corpus.vocabulary.document_counts, len(corpus), sublinear=sublinear, norm=norm
    )
    ours = document_terms(corpus, weighting).toarray()
    theirs = TfidfTransformer(norm=norm, sublinear_tf=sublinear).fit_transform(document_terms(corpus, "count"))
    np.testing.assert_allclose(ours, theirs.toarray(), rtol=1e-5)
    sizes = ours.sum(axis=1) if norm == "l1" else np.sqrt((ours**2).sum(axis=1))
    np.testing.assert_allclose(sizes[:-1], 1, rtol=1e-5)
    assert not ours[-1].any()


@given(st.lists(st.lists(st.integers(-1, 90), max_size=60)), st.sampled_from([0, 30, 91, 5000, 300_000]))
@example([[1, 0, 1, -1, 0], [], [2, 1]], 1)
@example([[]], 0)
def test_terms_are_sorted_and_those_of_new_words_in_order_of_occurrence(
    documents: list[list[int]], n_words: int
) -> None:
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    ids = np.array([i for document in documents for i in document], np.int32)
    expected = []
    for document in documents:
        new = [i for i in dict.fromkeys(document) if i >= n_words]
        expected.append(sorted({i for i in document if 0 <= i < n_words}) + new)
    for count in (count_terms, kernels.count_terms):
        counts, words, starts = count(ids, offsets, n_words, max(91 - n_words, 0))
        assert [words[a:b].tolist() for a, b in pairwise(starts)] == expected
        assert counts.tolist() == [each.count(i) for each, own in zip(documents, expected, strict=True) for i in own]


def test_rows_have_length_1_unless_told_otherwise() -> None:
    assert TermWeighting(np.ones(1, np.float32)).norm == "l2"
    assert TermWeighting.from_counts(np.ones(1, np.int64), 1).norm == "l2"


@pytest.mark.parametrize("norm", ["l3", "", None, "L1"])
def test_unknown_norm_is_refused(norm: object) -> None:
    with pytest.raises(InputError, match="norm must be one of l2, l1, got"):
        TermWeighting(np.ones(1, np.float32), norm=norm)  # type: ignore[arg-type]


def test_indices_are_of_the_type_that_scikit_learn_takes() -> None:
    terms = document_terms(Corpus.from_texts(["b a b", "c a"]))
    assert terms.indices.dtype == terms.indptr.dtype == np.int32


def test_the_corpus_is_left_as_it_was() -> None:
    corpus = Corpus.from_texts(["b a b", "c a"])
    before = corpus.ids.copy()
    document_terms(corpus)
    assert np.array_equal(corpus.ids, before)


def test_unknown_weighting_is_refused() -> None:
    with pytest.raises(InputError, match="'count', 'tfidf' or a TermWeighting"):
        document_terms(Corpus.from_texts(["a"]), "bm25")  # type: ignore[arg-type]
