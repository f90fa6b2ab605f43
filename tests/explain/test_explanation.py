"""Explanations: sums to the last bit, parts that add up to the whole, and the words of a class."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from wgcn import TextModel, WGCNTextClassifier
from wgcn.base.errors import InputError
from wgcn.explain.explanation import Explanation, make_split
from wgcn.scoring.scorer import Scorer
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import TermWeighting

WORDS = [f"w{i}" for i in range(30)]
VOCABULARY = [*WORDS[:24], *(f"{a} {b}" for a, b in zip(WORDS[:20], WORDS[3:23], strict=True)), "w1 w1", "w2 w2"]
TEXTS = ["red wine", "white wine", "red and white wine", "fast car", "slow car", "a fast red car"]
LABELS = ["drink", "drink", "drink", "drive", "drive", "drive"]

texts_of_words = st.lists(st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join), min_size=1, max_size=6)


def made_model(seed: int, n_classes: int, *, hidden: int = 0, multilabel: bool = False, **parts: Any) -> TextModel:
    """A model with random weights of very different sizes, so that the order of a sum shows in its bits."""
    rng = np.random.default_rng(seed)

    def numbers(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)).astype(np.float32)

    head = numbers(hidden, n_classes) if hidden else None
    prior = rng.dirichlet(np.ones(n_classes)).astype(np.float32)
    scorer = Scorer(numbers(len(VOCABULARY), hidden or n_classes), head, numbers(n_classes), prior, 1.5, multilabel)
    weighting = TermWeighting(rng.random(len(VOCABULARY), np.float32) + 1)
    return TextModel("words", (1, 2), Vocabulary(VOCABULARY), weighting, scorer, np.arange(n_classes), **parts)


@pytest.mark.parametrize("compiled", [False, True])
@given(
    seed=st.integers(0, 1000),
    n_classes=st.integers(1, 5),
    multilabel=st.booleans(),
    stop_words=st.sampled_from([(), ("w1", "w5")]),
    texts=texts_of_words,
)
@example(seed=0, n_classes=1, multilabel=True, stop_words=(), texts=[" ".join(WORDS), "", "unknown"])
@settings(max_examples=60)
def test_contributions_and_bias_are_the_score_to_the_last_bit(
    compiled: bool, seed: int, n_classes: int, multilabel: bool, stop_words: tuple[str, ...], texts: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wgcn.text.tokenize.term_code.is_compiled", compiled)
        model = made_model(seed, n_classes, multilabel=multilabel, stop_words=stop_words)
        scores, explanations = model.scores(texts), model.explain(texts)
    for text, row, why in zip(texts, scores, explanations, strict=True):
        assert why.total().tobytes() == row.tobytes() == why.scores.tobytes()
        assert why.contributions.shape == (len(why.terms), n_classes)
        assert set(why.terms) <= set(VOCABULARY)
        assert why.tokens == text.split()
        assert np.array_equal(why.probabilities, model.predict_proba([text])[0])


@given(seed=st.integers(0, 1000), hidden=st.integers(1, 6), texts=texts_of_words)
@settings(max_examples=40)
def test_a_network_is_explained_through_its_active_units_up_to_rounding(
    seed: int, hidden: int, texts: list[str]
) -> None:
    model = made_model(seed, 3, hidden=hidden)
    for why, row in zip(model.explain(texts), model.scores(texts), strict=True):
        size = np.abs(why.contributions).sum() + np.abs(why.bias).max()
        np.testing.assert_allclose(why.total(), row, atol=1e-5 * float(size))
        assert why.own is why.neighbours is why.other_neighbours is None


def test_a_text_with_no_known_word_is_explained_by_the_prior() -> None:
    model = made_model(0, 3)
    why = model.explain(["nothing known"])[0]
    assert (why.terms, why.unknown, why.top(), why.words()) == ([], ["nothing", "known"], [], [])
    np.testing.assert_allclose(why.probabilities, model.scorer.prior, rtol=1e-5)
    assert why.label == model.predict(["nothing known"])[0]
    assert why.other_neighbours is None


@pytest.mark.parametrize("multilabel", [False, True])
def test_one_class_alone_is_explained_as_among_all(multilabel: bool) -> None:
    kinds = [{label, text.split()[0]} for text, label in zip(TEXTS, LABELS, strict=True)]
    model = WGCNTextClassifier(n_jobs=1).fit(TEXTS, kinds if multilabel else LABELS)
    texts = ["red wine", "a slow redd car", "", "zzz winee"]
    for label in (None, *model.classes_.tolist()):
        for whole, alone in zip(model.explain(texts), model.explain(texts, label, alone=True), strict=True):
            own = slice(whole.place(label), whole.place(label) + 1)
            assert alone.classes.tolist() == whole.classes[own].tolist()
            assert (alone.label, alone.terms, alone.unknown) == (whole.label, whole.terms, whole.unknown)
            assert (alone.words(), alone.top()) == (whole.words(label), whole.top(label))
            for name in ("scores", "bias", "probabilities"):
                assert getattr(alone, name).tolist() == getattr(whole, name)[own].tolist()
            for name in ("contributions", "own", "spelling"):
                assert getattr(alone, name).tobytes() == getattr(whole, name)[:, own].tobytes()
            named = [
                [(each.word, each.contributions[own].tolist()) for each in near] for near in whole.neighbours or ()
            ]
            assert [[(word, part.tolist()) for word, part in near] for near in alone.neighbours or ()] == named
            assert alone.total().tobytes() == whole.scores[own].tobytes()


def test_one_class_of_a_network_is_explained_alone() -> None:
    model = made_model(1, 4, hidden=6)
    for whole, alone in zip(model.explain(TEXTS), model.explain(TEXTS, 2, alone=True), strict=True):
        np.testing.assert_allclose(alone.contributions, whole.contributions[:, 2:3], rtol=1e-6)
    with pytest.raises(InputError, match="There is no class 9"):
        model.explain(["a"], 9, alone=True)


def test_labels_are_those_of_the_model() -> None:
    texts = [" ".join(WORDS[i : i + 5]) for i in range(20)]
    single, several = made_model(1, 4), made_model(1, 4, multilabel=True)
    assert [why.label for why in single.explain(texts)] == single.predict(texts).tolist()
    assert [why.label for why in several.explain(texts)] == [
        np.flatnonzero(row).tolist() for row in several.predict(texts)
    ]


@given(seed=st.integers(0, 1000), texts=texts_of_words)
@settings(max_examples=40)
def test_words_share_what_terms_contribute(seed: int, texts: list[str]) -> None:
    for why in made_model(seed, 2, stop_words=("w4",)).explain(texts):
        column = why.contributions[:, 1]
        size = float(np.abs(column).sum()) + 1e-12
        assert abs(why.shares(1).sum() - column.sum()) < 1e-9 * size
        for word, value in why.words(1):
            held = [column[i] for i, term in enumerate(why.terms) if word in term.split()]
            # With a stop word between them, two words that are apart make one n-gram too.
            assert abs(value - sum(held)) < 1e-9 * size
        values = [value for _, value in why.words(1)]
        assert values == sorted(values, reverse=True)
        known = {word for term in why.terms for word in term.split()}
        assert {word for word, _ in why.words(1)} == known
        assert set(why.unknown) == set(why.tokens) - known - {"w4"}


def test_the_top_terms_are_the_largest_for_and_against() -> None:
    why = made_model(3, 3).explain([" ".join(WORDS)])[0]
    column = sorted(why.contributions[:, 2].tolist())
    assert [value for _, value in why.top(2, 4)] == column[::-1][:4]
    assert [value for _, value in why.top(2, 4, against=True)] == column[:4]
    assert why.top(n=3) == why.top(int(why.scores.argmax()), 3)
    assert all(value > 0 for _, value in why.top(2, 1000))
    with pytest.raises(InputError, match="at least 1"):
        why.top(n=0)


@pytest.fixture(scope="module")
def classifier() -> WGCNTextClassifier:
    return WGCNTextClassifier(n_jobs=1).fit(TEXTS, LABELS)


def named(why: Explanation) -> np.ndarray:
    assert why.neighbours is not None
    return np.array([sum((part for _, part in near), np.zeros(len(why.classes))) for near in why.neighbours])


def spelt_rows(fitted: WGCNTextClassifier) -> np.ndarray:
    """Return S V, the part of their spelling in the rows of words."""
    matrix, trained = fitted.session_.prepared.subword_matrix(), fitted.classifier_.trained_
    assert matrix is not None
    assert trained.subword_rows is not None
    return np.asarray(matrix @ trained.subword_rows).astype(float)


def known_terms(why: Explanation, model: TextModel) -> Explanation:
    """Return an explanation without the words that training did not see, which only their spelling explains."""
    assert why.own is not None
    assert why.neighbours is not None
    assert why.spelling is not None
    n = sum(term in model.vocabulary.index for term in why.terms)
    assert set(why.terms[n:]) <= set(why.unknown)
    assert not why.own[n:].any()
    assert not any(why.neighbours[n:])
    assert np.array_equal(why.spelling[n:], why.contributions[n:])
    parts = {
        name: getattr(why, name)[:n] for name in ("terms", "weights", "contributions", "own", "neighbours", "spelling")
    }
    return replace(why, **parts)


@pytest.mark.parametrize("case", ["two classes", "three classes", "unlabelled", "several labels", "no graph"])
def test_parts_are_those_of_the_fitted_graph_and_sum_to_the_whole(case: str) -> None:
    labels: list[Any] = list(LABELS)
    if case == "three classes":
        labels[1] = labels[4] = "third"
    elif case == "several labels":
        labels = [[label] for label in LABELS]
    unlabelled = ["white and red rose", "slow fast train"] if case == "unlabelled" else []
    fitted = WGCNTextClassifier(alpha=0.0 if case == "no graph" else 0.7, n_jobs=1)
    model = fitted.fit(TEXTS, labels, unlabeled=unlabelled).model_
    trained, adjacency = fitted.classifier_.trained_, fitted.word_graph_.adjacency.toarray().astype(float)
    spelt = spelt_rows(fitted)
    rows = model.scorer.word_embeddings.astype(float) - spelt
    spread = trained.factor * adjacency  # a A
    u = rows.copy()
    if case != "no graph":
        u[adjacency.any(axis=1)] = trained.own_rows
    np.testing.assert_allclose(u + spread @ u, rows, atol=1e-5)
    why = known_terms(model.explain(["a glass of red and white wine in a fast car"])[0], model)
    ids = [model.vocabulary.index[term] for term in why.terms]
    assert why.own is not None
    assert why.neighbours is not None
    assert why.spelling is not None
    weights = why.weights[:, None].astype(float)
    np.testing.assert_allclose(why.spelling, weights * spelt[ids], atol=2e-3)
    np.testing.assert_allclose(why.own, weights * (u + spread.diagonal()[:, None] * u)[ids], atol=1e-3)
    for i, near, weight in zip(ids, why.neighbours, why.weights, strict=True):
        sizes = np.abs(spread[i]) * np.linalg.norm(u, axis=1)
        sizes[i] = 0
        found = [model.vocabulary.index[word] for word, _ in near]
        assert len(found) == min(5, int((sizes > 0).sum()))
        np.testing.assert_allclose(sizes[found], np.sort(sizes)[::-1][: len(found)], rtol=1e-3)
        for j, (_, part) in zip(found, near, strict=True):
            np.testing.assert_allclose(part, weight * spread[i, j] * u[j], atol=1e-3)
    assert why.other_neighbours is not None
    parts = why.own + why.spelling + named(why) + why.other_neighbours
    np.testing.assert_allclose(parts, why.contributions, rtol=1e-14, atol=1e-15)
    assert model.explain([why.text])[0].total().tobytes() == model.scores([why.text])[0].tobytes()


def test_a_word_that_was_added_has_no_part_of_its_own(classifier: WGCNTextClassifier) -> None:
    larger = classifier.extend(["merlot is red wine", "a glass of merlot", "merlot wine"])
    why = larger.explain(["merlot wine"])[0]
    place = why.terms.index("merlot")
    assert why.own is not None
    assert why.neighbours is not None
    assert why.other_neighbours is not None
    assert (why.own[place] == 0).all()
    assert why.neighbours[place] == []
    assert np.array_equal(why.other_neighbours[place], why.contributions[place])
    assert why.contributions[place].any()
    assert np.array_equal(why.total(), larger.model_.scores(["merlot wine"])[0])


def test_a_model_without_a_split_is_explained_by_terms(classifier: WGCNTextClassifier) -> None:
    old = replace(classifier.model_, split=None).explain(["red wine"])[0]
    new = classifier.explain(["red wine"])[0]
    assert old.own is old.neighbours is None
    assert np.array_equal(old.contributions, new.contributions)


def test_an_unknown_class_is_refused_with_the_names_of_the_classes(classifier: WGCNTextClassifier) -> None:
    why = classifier.explain(["red wine"])[0]
    for call in (classifier.top_words, classifier.model_.top_words, why.top, why.words, why.shares):
        with pytest.raises(InputError, match=r"no class 'fly'. The classes are 'drink', 'drive'\."):
            call("fly")
    with pytest.raises(InputError, match="and 5 more"):
        made_model(0, 25).top_words(99)


def test_texts_must_be_texts(classifier: WGCNTextClassifier) -> None:
    with pytest.raises(InputError, match="texts must be a list of texts"):
        classifier.explain("red wine")
    assert classifier.explain([]) == []


@pytest.mark.parametrize("multilabel", [False, True])
@pytest.mark.parametrize("hidden", [0, 4])
def test_top_words_are_ranked_by_what_they_add_and_how_frequent_they_are(multilabel: bool, hidden: int) -> None:
    counts = np.arange(len(VOCABULARY)) % 7
    model = made_model(5, 3, hidden=hidden, multilabel=multilabel)
    model = replace(model, vocabulary=Vocabulary(VOCABULARY, counts, counts))
    rows = model.scorer.word_embeddings
    if model.scorer.class_weights is not None:
        rows = np.maximum(rows, 0) @ model.scorer.class_weights
    beyond = rows[:, 1] - (0 if multilabel else rows.mean(axis=1))
    values = {
        word: beyond[i] * model.weighting.idf[i] * np.log(1 + counts[i])
        for i, word in enumerate(VOCABULARY)
        if counts[i] >= 3 and beyond[i] > 0
    }
    expected = sorted(values, key=lambda word: -values[word])[:6]
    found = model.top_words(1, 6)
    assert [word for word, _ in found] == expected
    np.testing.assert_allclose([value for _, value in found], [values[word] for word in expected], rtol=1e-5)


def test_top_words_of_a_small_corpus_are_its_words(classifier: WGCNTextClassifier) -> None:
    assert classifier.top_words("drink", 1)[0][0] == "wine"
    assert classifier.top_words("drive", 1)[0][0] == "car"
    assert made_model(0, 2).top_words(0, 5) == []  # nothing was counted


@given(seed=st.integers(0, 1000), n=st.integers(1, 12), k=st.integers(1, 6), ties=st.booleans())
@settings(max_examples=60)
def test_the_strongest_neighbours_are_kept_and_equal_ones_by_their_order(seed: int, n: int, k: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    a = rng.choice([0.0, 0.25, 0.5], (n, n)) if ties else rng.random((n, n)) * (rng.random((n, n)) < 0.5)
    a = np.triu(a) + np.triu(a, 1).T
    u = np.ones((n, 2)) if ties else rng.standard_normal((n, 2))
    linked = a.any(axis=1)
    split = make_split(csr_array(a.astype(np.float32)), u[linked].astype(np.float32), 0.5, k)
    others = a * (1 - np.eye(n))
    assert split.words.tolist() == np.flatnonzero(others.any(axis=1)).tolist()
    own = u * (1 + 0.5 * np.diag(a))[:, None]
    np.testing.assert_allclose(split.own, own[split.words], rtol=1e-3, atol=1e-6)
    sizes = others.astype(np.float32) * np.linalg.norm(u, axis=1).astype(np.float32)
    for word, places, strengths in zip(split.words, split.neighbours, split.strengths, strict=True):
        best = [j for j in np.argsort(-sizes[word], kind="stable")[:k] if sizes[word, j] > 0]
        found = split.words[places[strengths != 0]]
        assert found.tolist() == best
        parts = strengths[strengths != 0, None].astype(float) * split.own[places[strengths != 0]]
        np.testing.assert_allclose(parts, 0.5 * a[word, best][:, None] * u[best], rtol=5e-3, atol=1e-5)


def test_values_beyond_half_precision_stay_finite() -> None:
    a = csr_array(np.array([[0, 1], [1, 0]], np.float32))
    split = make_split(a, np.array([[1e9], [-1e9]], np.float32), 1.0)
    assert np.isfinite(split.own).all()


def test_without_a_graph_there_is_nothing_to_keep() -> None:
    linked, empty = csr_array(np.ones((3, 3), np.float32)), csr_array((3, 3), dtype=np.float32)
    for graph, rows, factor in ((linked, np.empty((0, 2), np.float32), 0.0), (empty, np.empty((0, 2)), 1.0)):
        split = make_split(graph, rows, factor)
        assert (len(split.words), split.own.shape, split.neighbours.shape) == (0, (0, 2), (0, 5))
