"""Words that training did not see: where their rows come from, and what they leave as it was."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgcn import TextModel, WGCNNetworkClassifier, WGCNTextClassifier
from wgcn.base.errors import InputError
from wgcn.estimators.preparation import Preparation
from wgcn.model import extend as module
from wgcn.model.card import model_card
from wgcn.text.tokenize import words

SIDES = ("drink", "drive")
KNOWN = {side: [f"{side}{i}" for i in range(8)] for side in SIDES}
NEW = {side: [f"neu{side[-2:]}{i}" for i in range(6)] for side in SIDES}


def made(n: int, seed: int, *, new: bool) -> tuple[list[str], list[str]]:
    """Write texts of words of their class and of others, with new words of the class or without."""
    rng = np.random.default_rng(seed)
    labels = [SIDES[i % 2] for i in range(n)]
    texts = []
    for label in labels:
        own = [*rng.choice(KNOWN[label], 3), *(rng.choice(NEW[label], 3) if new else ())]
        texts.append(" ".join(rng.permutation([*own, *(f"word{i}" for i in rng.integers(0, 20, 3))])))
    return texts, labels


TEXTS, LABELS = made(40, 0, new=False)
POOL, _ = made(60, 1, new=True)


@pytest.fixture(scope="module")
def estimator() -> WGCNTextClassifier:
    return WGCNTextClassifier().fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def model(estimator: WGCNTextClassifier) -> TextModel:
    return estimator.model_


@pytest.fixture(scope="module")
def network() -> TextModel:
    prepared = Preparation(ngram_range=(1, 1)).prepare(TEXTS)
    classifier = WGCNNetworkClassifier(hidden=8, max_epochs=20, device="cpu")
    classifier.fit(prepared.document_terms, LABELS, word_graph=prepared.word_graph)
    return prepared.text_model(classifier, {})


def row(model: TextModel, word: str) -> np.ndarray:
    return model.scorer.word_embeddings[model.vocabulary.id_of(word)]


@pytest.mark.parametrize("kind", ["model", "network"])
def test_new_words_are_classified_as_the_words_beside_them(kind: str, request: pytest.FixtureRequest) -> None:
    model: TextModel = request.getfixturevalue(kind)
    larger = model.extend(POOL)
    for side in SIDES:
        alone = NEW[side]
        without = replace(model, spelling=None)  # which says something of any word
        np.testing.assert_allclose(without.predict_proba(alone), np.tile(model.scorer.prior, (6, 1)), rtol=1e-5)
        assert larger.predict(alone).tolist() == [side] * 6


def test_a_network_has_no_spelling(network: TextModel) -> None:
    assert network.spelling is None
    assert np.array_equal(network.scores(["drink0 drinkable"]), network.scores(["drink0"]))
    assert network.explain(["drink0 drinkable"])[0].spelling is None


def test_rows_by_the_graph_are_those_of_a_plain_reference(model: TextModel) -> None:
    texts = [*POOL, "drink0 neu1 word1", "neu1 neu2", "neu2", "never known neu3 neu3"]
    larger = model.extend(texts, min_count=1)
    known = set(model.vocabulary.words)
    documents = [words(text) for text in texts]
    vocabulary = sorted({word for document in documents for word in document})
    has = np.array([[word in document for word in vocabulary] for document in documents], float)
    counts = has.sum(axis=0)
    share = len(TEXTS) / len(texts)
    idf = np.array(
        [
            model.weighting.idf[model.vocabulary.index[word]]
            if word in known
            else np.log((1 + len(TEXTS)) / (1 + count * share)) + 1
            for word, count in zip(vocabulary, counts, strict=True)
        ]
    )
    frequency = np.array([[document.count(word) for word in vocabulary] for document in documents], float)
    x = np.where(frequency > 0, 1 + np.log(np.maximum(frequency, 1)), 0) * idf
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    is_known = np.array([word in known for word in vocabulary])
    table = np.array([row(model, word) if word in known else np.zeros(2) for word in vocabulary], float)
    weights = np.sqrt(counts) * is_known
    mean = weights @ table / weights.sum()
    table[is_known] -= mean
    said = x @ table
    near = np.zeros_like(table)
    for w in range(len(vocabulary)):
        others = [said[d] - x[d, w] * table[w] for d in np.flatnonzero(has[:, w])]
        near[w] = (np.mean(others, axis=0) - said.mean(axis=0)) * counts[w] / (counts[w] + 2)
    near -= weights @ near / weights.sum()
    scale = np.sqrt((weights @ np.square(table)).sum() / (weights @ np.square(near)).sum())
    longest = np.linalg.norm(table, axis=1).max()
    added = larger.vocabulary.words[len(model.vocabulary) :]
    # The others stand beside no known word.
    assert set(added) == {word for word in vocabulary if word not in known} - {"never", "known", "neu2", "neu3"}
    for word in added:
        w = vocabulary.index(word)
        own = scale * near[w]
        own *= min(1, longest / np.linalg.norm(own))
        np.testing.assert_allclose(row(larger, word), 2 * (mean + own), rtol=1e-4, atol=1e-6)
        assert larger.weighting.idf[larger.vocabulary.id_of(word)] == pytest.approx(idf[w] / 2, rel=1e-6)


def test_texts_from_elsewhere_count_among_those_of_training() -> None:
    for elsewhere in ([], ["drink0 of old", "drive0 of old"] * 20):
        model = WGCNTextClassifier().fit(TEXTS, LABELS, background=elsewhere).model_
        larger = model.extend(POOL, min_count=1)
        word = larger.vocabulary.words[len(model.vocabulary)]
        n_texts, count = len(TEXTS) + len(elsewhere), sum(word in words(text) for text in POOL)
        idf = np.log((1 + n_texts) / (1 + count * n_texts / len(POOL))) + 1
        assert larger.weighting.idf[larger.vocabulary.id_of(word)] == pytest.approx(idf / 2, rel=1e-6)


def test_what_was_known_stays_as_it_was(model: TextModel) -> None:
    larger = model.extend(POOL)
    n = len(model.vocabulary)
    assert larger.vocabulary.words[:n] == model.vocabulary.words
    added = larger.vocabulary
    order = [(-added.counts[i], added.words[i]) for i in range(n, len(added))]
    assert order == sorted(order)
    assert {word for side in SIDES for word in NEW[side]} == set(added.words[n:])
    assert np.array_equal(larger.weighting.idf[:n], model.weighting.idf)
    assert np.array_equal(larger.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert len(model.vocabulary) == n


@pytest.mark.parametrize("texts", [[], [""], ["", " .", "!"], TEXTS[:3], ["word1 drink2"]])
def test_texts_without_a_new_word_change_nothing(model: TextModel, texts: list[str]) -> None:
    assert model.extend(texts, min_count=1) is model


def test_texts_without_a_known_word_teach_nothing(model: TextModel) -> None:
    assert model.extend(["alpha beta gamma", "alpha beta"]).vocabulary == model.vocabulary


def test_rare_words_stop_words_and_ngrams_are_left_out() -> None:
    model = WGCNTextClassifier(stop_words=["the"]).fit(TEXTS, LABELS).model_
    texts = ["the once drink1 twice", "the twice drink2", "the twice drink1"]
    for options, expected in (({}, {"twice"}), ({"min_count": 4}, set()), ({"min_count": 1}, {"once", "twice"})):
        larger = model.extend(texts, **options)
        assert set(larger.vocabulary.words) - set(model.vocabulary.words) == expected


def test_a_model_that_was_extended_can_be_extended_again(model: TextModel) -> None:
    first = model.extend(POOL[:30])
    again = first.extend(["glug drink0 drink1", f"glug drink2 {NEW['drink'][0]}", *POOL[30:]])
    assert again.vocabulary.words[: len(first.vocabulary)] == first.vocabulary.words
    assert again.vocabulary.words[len(first.vocabulary) :] == ("glug",)
    assert again.predict(["glug", *NEW["drive"]]).tolist() == ["drink", *["drive"] * 6]
    assert [entry["words"] for entry in again.extensions] == [12, 1]
    assert again.extend(POOL).vocabulary == again.vocabulary


def test_added_words_have_no_say_in_how_long_rows_are(model: TextModel) -> None:
    texts = ["glug drink0 drink1", "glug drink2"]
    plain, after = model.extend(texts), model.extend(POOL).extend(texts)
    np.testing.assert_allclose(row(after, "glug"), row(plain, "glug"), rtol=1e-5)


def test_the_size_of_blocks_does_not_matter(model: TextModel, monkeypatch: pytest.MonkeyPatch) -> None:
    before = model.extend(POOL)
    monkeypatch.setattr(module, "BLOCK_VALUES", 3)
    after = model.extend(POOL)
    assert before.vocabulary == after.vocabulary
    np.testing.assert_allclose(before.scorer.word_embeddings, after.scorer.word_embeddings, rtol=1e-5, atol=1e-7)


def test_a_loaded_model_is_extended_alike(model: TextModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    here, there = (each.extend(POOL) for each in (model, TextModel.load(tmp_path / "model")))
    assert here.save(tmp_path / "here") == there.save(tmp_path / "there")
    again = TextModel.load(tmp_path / "here")
    assert again.extensions == [{"how": "graph", "words": 12, "texts": 60}]
    assert np.array_equal(again.predict_proba(POOL), here.predict_proba(POOL))


def test_the_card_says_what_was_added(model: TextModel) -> None:
    larger = model.extend(POOL).extend(["glug drink0", "glug drink1"])
    added = "12 from 60 texts (by graph), 1 from 2 texts (by graph)"
    assert f"| words added without training | {added} |" in model_card(larger)


def test_an_extended_estimator_is_a_new_one_that_predicts_with_the_new_words(
    estimator: WGCNTextClassifier, tmp_path: Path
) -> None:
    before, fitted, graph = estimator.predict_proba(POOL), estimator.model_, estimator.word_graph_
    larger, expected = estimator.extend(POOL), fitted.extend(POOL)
    assert np.array_equal(larger.predict_proba(POOL), expected.predict_proba(POOL))
    assert not np.array_equal(larger.predict_proba(POOL), before)
    larger.save(tmp_path / "larger")
    assert TextModel.load(tmp_path / "larger").vocabulary == expected.vocabulary
    larger.set_params(C=0.9)
    assert estimator.model_ is fitted
    assert estimator.word_graph_ is graph
    assert np.array_equal(estimator.predict_proba(POOL), before)
    assert estimator.get_params()["C"] == 0.5
    with pytest.raises(InputError, match="not one text"):
        estimator.extend("one text")


def test_graph_and_table_of_an_extended_estimator_have_the_same_words(estimator: WGCNTextClassifier) -> None:
    larger = estimator.extend(POOL)
    n_old, n_words = len(estimator.word_embeddings_), len(larger.word_embeddings_)
    assert n_words > n_old
    assert larger.word_graph_.vocabulary == larger.model_.vocabulary
    assert larger.word_graph_.adjacency.shape == (n_words, n_words)
    assert (larger.word_graph_.adjacency[:n_old, :n_old] != estimator.word_graph_.adjacency).nnz == 0
    assert larger.word_graph_.adjacency[n_old:].nnz == 0
    again = larger.extend(["glug drink0 drink1", "glug drink2 drink0"])
    assert len(again.word_embeddings_) == again.word_graph_.adjacency.shape[0] == n_words + 1


def test_models_of_several_labels_are_extended_too() -> None:
    labels = [[label] if i % 5 else list(SIDES) for i, label in enumerate(LABELS)]
    model = WGCNTextClassifier().fit(TEXTS, labels).model_
    guesses = model.extend(POOL).predict([" ".join(NEW["drink"]), " ".join(NEW["drive"])])
    assert guesses.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("tokenizer", ["text_gcn", str.split])
def test_other_tokenisers(tokenizer: Any) -> None:
    model = WGCNTextClassifier(tokenizer=tokenizer, ngram_range=(1, 1)).fit(TEXTS, LABELS).model_
    assert model.extend(POOL).predict(NEW["drive"]).tolist() == ["drive"] * 6


@given(st.lists(st.text(max_size=30), max_size=5))
def test_no_text_breaks_it(model: TextModel, texts: list[str]) -> None:
    larger = model.extend([*texts, *(f"drink0 {text}" for text in texts)], min_count=1)
    assert np.isfinite(larger.scorer.word_embeddings).all()
    assert np.isfinite(larger.weighting.idf).all()
    assert (larger.weighting.idf > 0).all()
    assert np.isfinite(larger.predict_proba([*texts, "drink0"])).all()


def test_long_and_broken_words_are_words_too(model: TextModel, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="not valid Unicode"):
        larger = model.extend([f"drink0 {'winery' * 50_000}", "drink0 \ud800x"], min_count=1)
    larger.save(tmp_path / "model")
    assert TextModel.load(tmp_path / "model").vocabulary == larger.vocabulary


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"texts": "one text"}, "not one text"),
        ({"texts": [1]}, "must be a str"),
        ({"min_count": 0}, "min_count must be at least 1"),
    ],
)
def test_what_cannot_be_used_is_explained(model: TextModel, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.extend(**{"texts": POOL, **given})


def test_a_model_without_single_words_takes_none() -> None:
    model = WGCNTextClassifier(ngram_range=(2, 2)).fit(TEXTS * 2, LABELS * 2).model_
    with pytest.raises(InputError, match="no single words"):
        model.extend(POOL)


def test_where_known_words_have_no_company_new_ones_get_rows_all_the_same(model: TextModel) -> None:
    texts = ["glug drink0 glug", "glug drink1", "vroom drive0 vroom", "vroom drive1"]
    larger = model.extend(texts)
    assert larger.predict(["glug", "vroom"]).tolist() == ["drink", "drive"]
    lengths = np.linalg.norm(larger.scorer.word_embeddings, axis=1)
    assert lengths[-2:].max() < 5 * lengths[:-2].max()


def test_a_model_that_learnt_nothing_has_nothing_to_give(model: TextModel) -> None:
    scorer = replace(model.scorer, word_embeddings=np.zeros_like(model.scorer.word_embeddings))
    larger = replace(model, scorer=scorer).extend(POOL)
    assert len(larger.vocabulary) == len(model.vocabulary) + 12
    assert not larger.scorer.word_embeddings.any()
