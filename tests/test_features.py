import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from wgcn.datasets import Dataset
from wgcn.errors import InputError
from wgcn.features import document_terms
from wgcn.text.corpus import Corpus


@pytest.mark.parametrize(("weighting", "vectorizer"), [("count", CountVectorizer), ("tfidf", TfidfVectorizer)])
def test_matrix_equals_that_of_scikit_learn(docs: Dataset, weighting: str, vectorizer: type) -> None:
    assert docs.texts is not None
    texts = docs.texts[:150]
    corpus = Corpus.from_texts(texts)
    ours = document_terms(corpus, weighting)  # type: ignore[arg-type]
    theirs = vectorizer(vocabulary=corpus.vocabulary.index, token_pattern=r"(?u)\w+(?:'\w+)*").fit_transform(texts)
    np.testing.assert_allclose(ours.toarray(), theirs.toarray(), rtol=1e-5)


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
