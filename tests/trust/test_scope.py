"""How familiar texts look, and how strange that is beside held-out texts."""

from collections import Counter
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgcn import Corpus, WGCNTextClassifier
from wgcn.text.ngrams import ngrams
from wgcn.text.vocabulary import Vocabulary, VocabularyRules
from wgcn.text.weighting import count_terms, smooth_idf
from wgcn.trust.scope import Scope, doubt, familiarity, n_tokens

texts = st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=8), min_size=2, max_size=6)


def familiar(vocabulary: Vocabulary, n_texts: int, documents: list[list[str]], leave_one_out: bool) -> np.ndarray:
    found = [ngrams(words, (1, 2)) for words in documents]
    ids = np.array([vocabulary.index.get(term, -1) for terms in found for term in terms], np.int32)
    offsets = np.cumsum([0, *map(len, found)])
    counts, words, starts = count_terms(ids, offsets, len(vocabulary), 0)
    idf = smooth_idf(vocabulary.document_counts, n_texts)
    parts = words, starts, counts, np.diff(offsets)
    return familiarity(vocabulary, idf, (1, 2), *parts, leave_one_out=leave_one_out)


def expected(
    others: list[list[str]], n_texts: int, total: int, least: dict[bool, int], words: list[str]
) -> tuple[float, float, float]:
    """Surprise, unknown share and negative information of a text, from a vocabulary that the others make."""
    counts = Counter(term for text in others for term in ngrams(text, (1, 2)))
    in_texts = Counter(term for text in others for term in set(ngrams(text, (1, 2))))
    known = {term for term, count in counts.items() if count >= least[" " in term]}
    surprise = sum(log(total / (1 + counts[word])) if word in known else log(total) for word in words)
    phrases = [term for term in ngrams(words, (1, 2)) if " " in term and term in known]
    information = sum(max(log((1 + n_texts) / (1 + in_texts[term])), 0) for term in phrases)
    n = len(words)
    return surprise / n, sum(word not in known for word in words) / n, -information / n


@given(texts)
def test_leaving_a_text_out_equals_a_vocabulary_made_without_it(documents: list[list[str]]) -> None:
    corpus = Corpus.from_texts(
        [" ".join(words) for words in documents], ngram_range=(1, 2), rules=VocabularyRules(min_ngram_count=2)
    )
    vocabulary = corpus.vocabulary
    kinds = {kind: vocabulary.counts[vocabulary.are_ngrams == kind] for kind in (False, True)}
    least = {kind: int(counts.min()) if len(counts) else 1 for kind, counts in kinds.items()}
    found = familiar(vocabulary, len(documents), documents, leave_one_out=True)
    for i, words in enumerate(documents):
        others = documents[:i] + documents[i + 1 :]
        reference = expected(others, len(documents), int(kinds[False].sum()), least, words)
        np.testing.assert_allclose(found[i], [len(words), *reference], atol=1e-6)


def test_new_texts_are_compared_with_the_whole_vocabulary() -> None:
    documents = [["a", "b"], ["a", "b"], ["c"]]
    vocabulary = Vocabulary(["a", "b", "a b", "c"], [2, 2, 2, 1], [2, 2, 2, 1])
    known, half, unknown = familiar(vocabulary, 3, [["a", "b"], ["a", "x"], ["x", "y"]], leave_one_out=False)
    reference = expected(documents, 3, 5, {False: 1, True: 2}, ["a", "b"])
    np.testing.assert_allclose(known, [2, *reference], atol=1e-6)
    assert (half[2], unknown[2]) == (0.5, 1.0)
    assert unknown[1] == pytest.approx(log(5))
    assert unknown[0] == 0  # no term is known


def calibrated(rng: np.random.Generator, n: int = 2000) -> tuple[Scope, np.ndarray, np.ndarray]:
    """A scope of texts whose first signs are means over their words, and doubt, which is not."""
    n_words = rng.integers(2, 200, size=n).astype(float)
    signs = np.column_stack([rng.normal(size=(n, 3)) / np.sqrt(n_words)[:, None], rng.exponential(size=n)])
    return Scope.calibrate(n_words, signs), n_words, signs


def test_new_texts_like_the_held_out_ones_are_spread_evenly() -> None:
    rng = np.random.default_rng(0)
    scope, _, _ = calibrated(rng)
    _, n_words, signs = calibrated(rng)
    shares = scope.share_below(scope.strange(n_words, signs))
    for limit in (0.1, 0.5, 0.9, 0.95, 0.99):
        assert np.mean(shares > limit) == pytest.approx(1 - limit, abs=3 * np.sqrt(limit * (1 - limit) / 1000))


def test_short_texts_are_not_strange_because_they_are_short() -> None:
    rng = np.random.default_rng(0)
    scope, n_words, signs = calibrated(rng, 5000)
    strange = scope.share_below(scope.strange(n_words, signs)) > 0.95
    assert np.mean(strange[n_words < 20]) == pytest.approx(np.mean(strange[n_words > 100]), abs=0.03)


def test_beyond_the_strangest_held_out_text_the_order_is_kept() -> None:
    scope, _, _ = calibrated(np.random.default_rng(0), 30)
    shares = scope.share_below(np.linspace(scope.strangeness[0] - 1, scope.strangeness[-1] + 8, 400))
    assert shares[0] == 0
    assert (np.diff(shares[shares > 0]) > 0).all()
    assert 0.99 < shares[-1] < 1


def test_a_sign_that_is_the_same_in_all_texts_says_nothing() -> None:
    rng = np.random.default_rng(0)
    signs = np.column_stack([np.full(50, 3.0), rng.normal(size=(50, 3))])
    scope = Scope.calibrate(np.full(50, 10.0), signs)
    other = signs.copy()
    other[:, 0] = 99
    assert np.array_equal(scope.strange(np.full(50, 10.0), signs), scope.strange(np.full(50, 10.0), other))


def test_doubt_is_least_where_one_class_is_certain() -> None:
    found = doubt(np.array([[1.0, 0.0, 0.0], [0.8, 0.1, 0.1], [1 / 3, 1 / 3, 1 / 3]]))
    assert found[0] == 0
    assert found[0] < found[1] < found[2]


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 3), (2, 3)])
@pytest.mark.parametrize("stop_words", [None, ["the", "of"]])
@pytest.mark.parametrize("tokenizer", ["words", str.split])
def test_what_a_fit_counts_is_what_the_model_counts(ngram_range: Any, stop_words: Any, tokenizer: Any) -> None:
    documents = ["the art of the art", "the sea", "of", "", "a sea of art of the sea of art", "art art art"]
    model = WGCNTextClassifier(tokenizer=tokenizer, ngram_range=ngram_range, stop_words=stop_words, min_count=1)
    model.fit(documents, ["x", "y"] * 3, background=["a sea of words"])
    prepared, chosen = model.session_.prepared, np.array([4, 0, 3, 2])
    terms, counts = model.model_.terms([documents[i] for i in chosen]), prepared.term_counts[chosen]
    assert np.array_equal(n_tokens(prepared.tokens, chosen, ngram_range, stop_words or ()), terms.lengths)
    for mine, theirs in ((counts.data, terms.counts), (counts.indices, terms.words), (counts.indptr, terms.offsets)):
        assert np.array_equal(mine, theirs)


def test_one_very_familiar_sign_does_not_make_up_for_the_strange_ones() -> None:
    scope = Scope(np.tile([0.0, 1.0, 0.0], (4, 1)), np.arange(3.0))
    familiar_once, usual = np.array([[3.0, 3.0, 3.0, -100.0]]), np.array([[3.0, 3.0, 3.0, -1.0]])
    assert scope.strange(np.array([10.0]), familiar_once) == scope.strange(np.array([10.0]), usual) > 0
