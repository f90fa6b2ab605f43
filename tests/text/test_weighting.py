from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer

from wgcn.base.errors import InputError
from wgcn.text import kernels
from wgcn.text.corpus import Corpus
from wgcn.text.weighting import LONG, Norm, TermWeighting, count_terms, document_terms, leading_counts, smooth_idf
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
    weighting = TermWeighting(
        smooth_idf(corpus.vocabulary.document_counts, len(corpus)), sublinear=sublinear, norm=norm
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


# Ids of documents: some of them long, some of few words that come again and again, with new words and unknown ones.
documents_of_ids = st.lists(
    st.one_of(
        st.lists(st.integers(-1, 12), max_size=30),
        st.tuples(st.lists(st.integers(-1, 40), min_size=1, max_size=40), st.integers(1, 12)).map(
            lambda part: part[0] * part[1]
        ),
        st.tuples(st.integers(-1, 12), st.integers(LONG - 2, 700), st.lists(st.integers(-1, 12), max_size=5)).map(
            lambda part: [part[0]] * part[1] + part[2]
        ),
    ),
    max_size=6,
)


def leading_by_the_definition(document: list[int], n_words: int, lead: int) -> dict[int, int]:
    known = [i for i in document if 0 <= i < n_words]
    first = known[:lead] if len(known) > LONG else []
    return {i: min(first.count(i), 255) for i in first}


@given(documents_of_ids, st.sampled_from([0, 1, 5, 13, 41, 5000]), st.sampled_from([0, 1, 3, 50, 200, 300, 10**6]))
@example([[0] * LONG, [0] * (LONG + 1), [], [0] * LONG + [-1, 5, -1]], 5, 50)
@example([[1] * 254 + [0] * 300, [1] * 255 + [0] * 300, [1] * 256 + [0] * 300, [1] * 257 + [0] * 300], 5, 2**31 - 1)
@example([[-1, 7, 1, 7, -1, 0, 1, 7] * 60, [7, 8, 9] * 60], 5, 3)
@example([], 5, 3)
def test_leading_counts_are_those_of_the_first_known_terms_of_long_documents(
    documents: list[list[int]], n_words: int, lead: int
) -> None:
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    ids = np.array([i for document in documents for i in document], np.int32)
    for count, leading in ((count_terms, leading_counts), (kernels.count_terms, kernels.leading_counts)):
        counts, words, starts = count(ids, offsets, n_words, max(41 - n_words, 0))
        found = leading(ids, offsets, words, starts, n_words, lead)
        assert (found.dtype, found.shape) == (np.uint8, words.shape)
        assert (found <= counts).all()
        for document, (begin, end) in zip(documents, pairwise(starts), strict=True):
            expected = leading_by_the_definition(document, n_words, lead)
            assert found[begin:end].tolist() == [expected.get(i, 0) for i in words[begin:end].tolist()]


def weighed(weighting: TermWeighting, documents: list[list[int]], **more: Any) -> list[dict[int, float]]:
    """Return the weights of the words of documents, of which those from 5 on are new."""
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    ids = np.array([i for document in documents for i in document], np.int32)
    counts, words, starts = count_terms(ids, offsets, 5, 5)
    leading = leading_counts(ids, offsets, words, starts, 5, weighting.lead) if weighting.lead else None
    weights = weighting.weigh(counts, words, starts, leading, **more)
    return [dict(zip(words[a:b].tolist(), weights[a:b].tolist(), strict=True)) for a, b in pairwise(starts)]


IDF = np.array([1.0, 1.5, 2.0, 2.5, 3.0], np.float32)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("sublinear", [False, True])
def test_an_occurrence_in_the_lead_counts_three_times(norm: Norm, sublinear: bool) -> None:
    weighting = TermWeighting(IDF, sublinear, norm, lead=3)
    long, same = [0, 1, -1, 0, *[2] * 60, *[0] * 40], [0] * (42 + 2 * 2) + [1] * 3 + [2] * 60
    as_counted = weighed(replace(weighting, lead=0), [same])[0]
    assert weighed(weighting, [long])[0] == pytest.approx(as_counted, rel=1e-6)
    assert weighed(weighting, [long])[0] != pytest.approx(weighed(replace(weighting, lead=0), [long])[0], rel=1e-2)
    short = long[:-4]  # as many known terms as may be without a lead
    assert weighed(weighting, [short]) == weighed(replace(weighting, lead=0), [short])


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("lead", [0, 4])
def test_new_words_count_in_the_length_of_a_document_only_where_it_has_no_other(norm: Norm, lead: int) -> None:
    weighting = TermWeighting(IDF, norm=norm, lead=lead)
    documents = [[0, 1, 2], [0, 1] * 80, [4]]
    known = weighed(weighting, documents)
    more = weighed(weighting, [[5, *each, 6, 5, 9] for each in documents], new_idf=0.75)
    for one, other in zip(known, more, strict=True):
        assert {word: weight for word, weight in other.items() if word < 5} == one
        ratio = np.log(2) + 1
        assert other[5] == pytest.approx(other[6] * ratio, rel=1e-5)
        assert other[6] == other[9] > 0
    assert more[2][4] == 1
    assert more[2][6] == pytest.approx(0.75 / 3)
    alone = weighed(weighting, [[5, 6, 6, 8], [7] * 300, []], new_idf=0.75)
    for each in alone[:2]:
        assert sum(weight ** (2 if norm == "l2" else 1) for weight in each.values()) == pytest.approx(1, rel=1e-5)
    assert alone[2] == {}


@pytest.mark.parametrize("lead", [0, 3, 50])
def test_the_rows_of_a_corpus_have_the_lead_of_the_weighting(lead: int) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in rng.integers(0, 30, n)) for n in (LONG, LONG + 1, 400, 0)]
    corpus = Corpus.from_texts(texts)
    n_words = len(corpus.vocabulary)
    weighting = replace(TermWeighting(smooth_idf(corpus.vocabulary.document_counts, len(corpus))), lead=lead)
    counts, words, starts = count_terms(corpus.ids, corpus.offsets, n_words, 0)
    leading = leading_counts(corpus.ids, corpus.offsets, words, starts, n_words, lead)
    assert leading.any() == (lead > 0)
    rows = document_terms(corpus, weighting)
    assert np.array_equal(rows.indices, words)
    assert rows.data.tobytes() == weighting.weigh(counts, words, starts, leading).tobytes()


def test_without_an_idf_new_words_weigh_nothing() -> None:
    assert weighed(TermWeighting(IDF), [[0, 7, 1]]) == [{**weighed(TermWeighting(IDF), [[0, 1]])[0], 7: 0.0}]


def test_rows_have_length_1_unless_told_otherwise() -> None:
    assert TermWeighting(np.ones(1, np.float32)).norm == "l2"
    assert TermWeighting(smooth_idf(np.ones(1, np.int64), 1)).norm == "l2"


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
