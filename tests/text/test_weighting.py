import numpy as np
import pytest
from hypothesis import given
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


@given(st.lists(st.lists(st.integers(-1, 90), max_size=60)), st.sampled_from([91, 5000]))
def test_compiled_counts_of_terms_equal_the_plain_ones(documents: list[list[int]], n_words: int) -> None:
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    ids = np.array([i for document in documents for i in document], np.int32)
    plain, compiled = count_terms(ids, offsets, n_words), kernels.count_terms(ids, offsets, n_words)
    assert [part.tolist() for part in compiled] == [part.tolist() for part in plain]


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
