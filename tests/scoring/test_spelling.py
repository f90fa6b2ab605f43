"""Words that training did not see: their rows, the same bits by every path, and how they are explained and saved."""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from wgcn import TextModel, WGCNClassifier, WGCNEmbedder, WGCNTextClassifier
from wgcn.base.errors import StoreError
from wgcn.estimators.preparation import Preparation
from wgcn.scoring.scorer import Scorer, add_up
from wgcn.scoring.spelling import Spelling, make_spelling
from wgcn.text.subwords import Subwords, subword_hashes
from wgcn.text.tokenize import WordBytes
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import Norm, TermWeighting
from wgcn.trust.scope import familiarity_of

# Whether there is compiled code, and from how many characters on a table is made without it.
PATHS = {"compiled": (True, 0), "table": (False, -1), "plain": (False, 1 << 60)}
TEXTS = ["red wine", "white wines", "red and whiter wine", "fast car", "slow cars", "a faster red car"] * 2
LABELS = ["drink", "drink", "drink", "drive", "drive", "drive"] * 2
NEW = [
    "the reddest wineries",
    "whitest, fastest and slowest",
    "carwash carwash zzzz",
    "red wine",
    "",
    "zzzz",
    "qqq carwash wine qqq slowly carwash",
]
KNOWN = ["red", "wine", "it's", "a"]
OTHERS = ["reds", "wines", "redwine", "its", "zzzz", "é", "b"]
VOCABULARY = [*KNOWN, "red wine", "wine red", "reds wine", "a a"]

texts_of_words = st.lists(
    st.one_of(
        st.lists(st.sampled_from([*KNOWN, *OTHERS]), max_size=15).map(" ".join),
        st.text("redwin' é今\ud800", max_size=20),
    ),
    min_size=1,
    max_size=6,
)


def take(path: str, patch: pytest.MonkeyPatch) -> None:
    compiled, worth_a_table = PATHS[path]
    patch.setattr("wgcn.text.tokenize.term_code.is_compiled", compiled)
    patch.setattr("wgcn.scoring.terms._WORTH_A_TABLE", worth_a_table)


def made_model(
    seed: int = 0, n_classes: int = 3, ngram_range: tuple[int, int] = (1, 2), dtype: type = np.float32, **parts: Any
) -> TextModel:
    """A model with random weights of very different sizes, so that the order of a sum shows in its bits."""
    rng = np.random.default_rng(seed)

    def numbers(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)).astype(dtype)

    hashes = np.unique(subword_hashes([*KNOWN, "reds", "wines", "redwine"])[0])
    spelling = Spelling(hashes, numbers(len(hashes), n_classes).astype(np.float16), 0.75)
    scorer = Scorer(
        numbers(len(VOCABULARY), n_classes), None, numbers(n_classes), np.ones(n_classes, dtype) / n_classes
    )
    weighting = TermWeighting(rng.random(len(VOCABULARY), np.float32) + 1)
    given = {"spelling": spelling, **parts}
    tokenizer = given.pop("tokenizer", "words")
    return TextModel(tokenizer, ngram_range, Vocabulary(VOCABULARY), weighting, scorer, np.arange(n_classes), **given)


def rows_by_the_definition(spelling: Spelling, words: list[str]) -> np.ndarray:
    """Return the sums of the rows of the subwords of each word, one after the other, over the idf of a new word."""
    place_of = {value: place for place, value in enumerate(spelling.hashes.tolist())}
    rows = np.zeros((len(words), spelling.rows.shape[1]))
    for row, word in zip(rows, words, strict=True):
        for value in subword_hashes([word])[0].tolist():
            if value in place_of:
                row += spelling.rows[place_of[value]].astype(float)
    return rows.astype(np.float32) / np.float32(spelling.idf)


@given(st.lists(st.text("redwins's é", max_size=8), max_size=12), st.integers(0, 100))
def test_a_row_is_the_sum_of_the_rows_of_the_subwords(words: list[str], seed: int) -> None:
    spelling = made_model(seed).spelling
    assert spelling is not None
    rows, known = spelling.rows_of(WordBytes.of(words))
    assert np.array_equal(rows, rows_by_the_definition(spelling, words))
    assert np.array_equal(known, rows.any(axis=1))
    assert rows.dtype == np.float32


@pytest.mark.parametrize("path", PATHS)
def test_without_any_subword_no_word_has_a_row(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    take(path, monkeypatch)
    rows, known = Spelling(np.empty(0, np.uint32), np.empty((0, 3), np.float16), 1.0).rows_of(WordBytes.of(["red"]))
    assert (rows.tolist(), known.tolist()) == ([[0, 0, 0]], [False])


def scores_by_the_definition(model: TextModel, text: str) -> np.ndarray:
    """Return the scores of one text: known terms, then new words in the order of the text, in double precision."""
    tokens = [word for word in text.split() if word not in model.stop_words]
    low, high = model.ngram_range
    grams = [" ".join(tokens[i : i + n]) for n in range(low, high + 1) for i in range(len(tokens) - n + 1)]
    known, spelling = sorted({model.vocabulary.index[gram] for gram in grams if gram in model.vocabulary.index}), []
    if model.spelling is not None and low == 1:
        spelling = [word for word in dict.fromkeys(tokens) if word not in model.vocabulary.index]
        spelling = [word for word in spelling if rows_by_the_definition(model.spelling, [word]).any()]
    if not known and not spelling:
        return model.scorer._prior_scores
    weights = [(1 + np.log(grams.count(model.vocabulary.words[i]))) * model.weighting.idf[i] for i in known]
    rows = [model.scorer.word_embeddings[i].astype(float) for i in known]
    for word in spelling:
        assert model.spelling is not None
        weights.append((1 + np.log(tokens.count(word))) * model.spelling.idf)
        rows.append(rows_by_the_definition(model.spelling, [word])[0].astype(float))
    counted = weights[: len(known)] or weights  # in the length: new words only where there is no known term
    length = np.sqrt(sum(float(weight) ** 2 for weight in counted))
    total = sum(np.float32(weight / length) * row for weight, row in zip(weights, rows, strict=True))
    return np.asarray(total + model.scorer.bias)


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2), (2, 2), (2, 3)])
@given(seed=st.integers(0, 1000), n_classes=st.integers(1, 4), texts=texts_of_words)
@example(seed=0, n_classes=2, texts=[" ".join([*OTHERS, *KNOWN] * 5), "", "zzzz", "reds"])
@settings(max_examples=40)
def test_every_path_and_every_batch_give_the_same_bits(
    ngram_range: tuple[int, int], seed: int, n_classes: int, texts: list[str]
) -> None:
    found = []
    for path in PATHS:
        with pytest.MonkeyPatch.context() as patch:
            take(path, patch)
            model = made_model(seed, n_classes, ngram_range, stop_words=("its",))
            found.append(model.scores(texts))
            found.append(np.vstack([model.scores([text]) for text in texts]))
            found.append(model.scores([*texts[::-1], "wines redwine reds"])[:-1][::-1])
            terms = model.terms(texts)
            found.append(model.scorer.scores(*terms.scored))
            assert terms.words.dtype == (np.int32 if path == "compiled" else np.int64)  # which code is compiled for
            assert "its" not in terms.new_words
            assert len(set(terms.new_words)) == len(terms.new_words)
    assert all(each.tobytes() == found[0].tobytes() for each in found)


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2), (2, 2)])
@given(
    seed=st.integers(0, 1000),
    texts=st.lists(st.lists(st.sampled_from([*KNOWN, *OTHERS]), max_size=12).map(" ".join), min_size=1, max_size=4),
    stop_words=st.sampled_from([(), ("its", "reds"), ("zzzz",)]),
    spelt=st.booleans(),
)
@settings(max_examples=40)
def test_scores_are_those_of_the_definition(
    ngram_range: tuple[int, int], seed: int, texts: list[str], stop_words: tuple[str, ...], spelt: bool
) -> None:
    parts = {} if spelt else {"spelling": None}
    model = made_model(seed, 3, ngram_range, stop_words=stop_words, **parts)
    expected = np.array([scores_by_the_definition(model, text) for text in texts])
    np.testing.assert_allclose(model.scores(texts), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2), (2, 2)])
def test_contributions_of_unseen_words_sum_to_the_score_to_the_last_bit(
    monkeypatch: pytest.MonkeyPatch, path: str, ngram_range: tuple[int, int]
) -> None:
    take(path, monkeypatch)
    texts = [" ".join([*OTHERS, *KNOWN] * 3), "reds", "zzzz its", "", "its wines wine it's", "red wine"]
    for seed in range(10):
        for multilabel in (False, True):
            model = made_model(seed, 3, ngram_range, stop_words=("its",))
            model = replace(model, scorer=replace(model.scorer, multilabel=multilabel))
            for text, why, row in zip(texts, model.explain(texts), model.scores(texts), strict=True):
                assert why.total().tobytes() == row.tobytes() == why.scores.tobytes()
                assert why.tokens == text.split()
                unseen = [word for word in dict.fromkeys(text.split()) if word not in VOCABULARY and word != "its"]
                if ngram_range[0] == 1:
                    assert why.unknown == unseen
                    assert set(unseen) - set(why.terms) <= {"zzzz", "é", "b"}
                else:
                    assert not set(why.terms) & set(OTHERS)
                assert why.spelling is not None
                new = [i for i, term in enumerate(why.terms) if term in OTHERS]
                assert np.array_equal(why.spelling[new], why.contributions[new])


def test_a_word_of_no_known_subword_changes_nothing_and_a_stop_word_is_never_unseen() -> None:
    model = made_model(stop_words=("wines",))
    expected = model.scores(["red reds"])
    assert np.array_equal(model.scores(["red reds zzzz"]), expected)
    assert np.array_equal(model.scores(["red wines reds wines"]), model.scores(["red reds"]))
    assert not np.array_equal(model.scores(["red reds redwine"]), expected)
    assert np.array_equal(model.scores(["zzzz", "wines"]), model.scores(["", ""]))
    terms = model.terms(["red reds zzzz", "wines", "zzzz reds"])
    assert (terms.new_words, terms.words.tolist()) == (["reds"], [0, len(VOCABULARY), len(VOCABULARY)])
    assert (terms.n_words, terms.n_new, terms.n_spelt) == (3 + 1 + 2, 2 + 2, 2)


def test_new_words_have_rows_and_ids_after_those_of_the_vocabulary() -> None:
    terms, n_words = made_model().terms(["red reds wine", "reds", "", "redwine a reds"]), len(VOCABULARY)
    assert terms.new_words == ["reds", "redwine"]
    assert terms.new_rows is not None
    assert terms.new_rows.shape == (2, 3)
    assert terms.offsets.tolist() == [0, 4, 5, 5, 8]  # reds wine is an n-gram of the vocabulary
    assert terms.words[3:].tolist() == [n_words, n_words, 3, n_words + 1, n_words]
    assert terms.counts.tolist() == [1] * 8
    none = made_model().terms(["red wine"])
    assert (none.new_words, none.new_rows) == ([], None)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("norm", get_args(Norm))
def test_new_words_leave_the_weights_of_known_terms_as_they_are(
    monkeypatch: pytest.MonkeyPatch, path: str, norm: Norm
) -> None:
    take(path, monkeypatch)
    model = made_model()
    model = replace(model, weighting=replace(model.weighting, norm=norm))
    texts = ["red wine red a", "it's a"]
    known, more = model.terms(texts), model.terms(["reds red wine red a", "it's a redwine redwine"])
    is_new = more.words >= len(VOCABULARY)
    assert (more.new_words, more.words[is_new].tolist()) == (["reds", "redwine"], [8, 9])
    assert more.weights[~is_new].tobytes() == known.weights.tobytes()
    assert more.words[~is_new].tolist() == known.words.tolist()
    assert (more.weights[is_new] > 0).all()
    assert not np.array_equal(model.scores(["reds red wine red a"]), model.scores(texts[:1]))
    # A new word weighs as much beside the known terms as its idf says.
    assert model.spelling is not None
    ratio = more.weights[is_new][0] / more.weights[more.words == 1][0]
    assert ratio == pytest.approx(model.spelling.idf / model.weighting.idf[1], rel=1e-5)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("norm", get_args(Norm))
def test_a_text_of_new_words_alone_has_a_row_of_length_one_and_scores_of_its_own(
    monkeypatch: pytest.MonkeyPatch, path: str, norm: Norm
) -> None:
    take(path, monkeypatch)
    model = made_model()
    model = replace(model, weighting=replace(model.weighting, norm=norm))
    texts = ["reds", "reds redwine wines", "redwine " * 300 + "reds", "reds zzzz"]
    terms, scores = model.terms(texts), model.scores(texts)
    assert (terms.words >= len(VOCABULARY)).all()
    sizes = np.add.reduceat(terms.weights if norm == "l1" else terms.weights**2, terms.offsets[:-1])
    np.testing.assert_allclose(sizes, 1, rtol=1e-5)
    assert np.isfinite(scores).all()
    assert (scores - model.scorer.bias).any(axis=1).all()
    assert np.array_equal(scores[3], scores[0])
    assert not np.array_equal(scores[0], scores[1])


def test_spelling_makes_no_text_more_familiar() -> None:
    model, texts = made_model(), ["red reds wine", "reds", "", "redwine a"]
    without = replace(model, spelling=None)
    found, expected = (familiarity_of(each, each.terms(texts)) for each in (model, without))
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_rows_after_those_of_the_table_are_added_up_too(
    monkeypatch: pytest.MonkeyPatch, compiled: bool, dtype: type, n_columns: int
) -> None:
    monkeypatch.setattr("wgcn.text.tokenize.term_code.is_compiled", compiled)
    rng = np.random.default_rng(0)
    table, new = (rng.standard_normal((n, n_columns)) for n in (5, 3))
    table, new = table.astype(dtype), new.astype(np.float32)
    words, offsets = np.array([0, 6, 4, 7, 5, 5, 2]), np.array([0, 2, 2, 5, 7])
    weights = rng.random(7).astype(dtype)
    whole = np.vstack([table, new.astype(dtype)])
    expected = np.array([weights[a:b].astype(float) @ whole[words[a:b]] for a, b in pairwise(offsets)])
    found = add_up(table, weights, words, offsets, new)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found.dtype == dtype
    known = words[[0, 2, 6]], np.array([0, 1, 1, 2, 3])
    for none in (None, new[:0]):
        assert np.array_equal(add_up(table, weights[:3], *known, none), add_up(whole, weights[:3], *known))


@pytest.fixture(scope="module")
def fitted() -> WGCNTextClassifier:
    return WGCNTextClassifier(n_jobs=1).fit(TEXTS, LABELS)


def test_the_spelling_of_a_fit_is_what_it_learnt_of_subwords(fitted: WGCNTextClassifier) -> None:
    spelling, trained = fitted.model_.spelling, fitted.classifier_.trained_
    found = fitted.session_.prepared.subwords
    assert spelling is not None
    assert trained.subword_rows is not None
    assert np.array_equal(spelling.hashes, found.hashes)
    np.testing.assert_allclose(spelling.rows, trained.subword_rows * found.weights[:, None], rtol=1e-3, atol=1e-6)
    assert spelling.idf == fitted.model_.weighting.idf.max() / 2
    # Of a known word, the sum of its subwords is its part S V, once the idf of the word is taken out.
    matrix = fitted.session_.prepared.subword_matrix()
    assert matrix is not None
    words = list(fitted.model_.vocabulary.words)
    sums = spelling.sums_of(words) / fitted.model_.weighting.idf[:, None]
    np.testing.assert_allclose(sums, matrix @ trained.subword_rows, atol=2e-3)
    assert not sums[[" " in word for word in words]].any()


def test_unseen_words_are_classified_as_those_that_are_spelt_alike(fitted: WGCNTextClassifier) -> None:
    assert fitted.predict(["winery", "whitest", "carwash", "fastest"]).tolist() == ["drink", "drink", "drive", "drive"]
    assert "winery" not in fitted.model_.vocabulary.index
    why = fitted.explain(["a winery by zzzz"])[0]
    assert why.unknown == ["winery", "by", "zzzz"]
    assert "winery" in why.terms
    assert why.top("drink", 1)[0][0] == "winery"
    assert ("winery", why.top("drink", 1)[0][1]) in why.words("drink")


def test_estimator_model_folder_pickle_and_command_line_give_the_same_bits(
    fitted: WGCNTextClassifier, tmp_path: Path
) -> None:
    expected = fitted.predict_proba(NEW)
    fitted.save(tmp_path / "model")
    loaded = TextModel.load(tmp_path / "model")
    copies = (
        fitted.model_,
        loaded,
        pickle.loads(pickle.dumps(loaded)),
        pickle.loads(pickle.dumps(fitted)),
        replace(loaded),
    )
    for path in PATHS:
        with pytest.MonkeyPatch.context() as patch:
            take(path, patch)
            for model in copies:
                assert model.predict_proba(NEW).tobytes() == expected.tobytes()
                assert np.vstack([model.predict_proba([text]) for text in NEW]).tobytes() == expected.tobytes()
    for one, two in zip(fitted.explain(NEW), loaded.explain(NEW), strict=True):
        assert one.contributions.tobytes() == two.contributions.tobytes()
        assert one.spelling is not None
        assert two.spelling is not None
        assert one.spelling.tobytes() == two.spelling.tobytes()
        assert (one.terms, one.unknown) == (two.terms, two.unknown)
    (tmp_path / "new.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in NEW if text))
    command = [sys.executable, "-m", "wgcn", "predict", tmp_path / "model", tmp_path / "new.jsonl", "--proba"]
    subprocess.run([*command, "-o", tmp_path / "out.jsonl"], capture_output=True, check=True)
    shown = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    kept = [row for text, row in zip(NEW, expected, strict=True) if text]
    assert [row["label"] for row in shown] == [fitted.classes_[row.argmax()] for row in kept]
    assert [[row[f"probability_{name}"] for name in fitted.classes_] for row in shown] == np.round(kept, 4).tolist()


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("tokenizer", ["words", "text_gcn", "characters", str.split])
def test_any_tokeniser_and_range_of_ngrams(
    tokenizer: str | Callable[[str], list[str]], ngram_range: tuple[int, int]
) -> None:
    fitted = WGCNTextClassifier(tokenizer=tokenizer, ngram_range=ngram_range, min_count=1, n_jobs=1).fit(TEXTS, LABELS)
    model, found = fitted.model_, []
    for path in PATHS:
        with pytest.MonkeyPatch.context() as patch:
            take(path, patch)
            found.append(replace(model).scores(NEW))
            for why, row in zip(model.explain(NEW), found[0], strict=True):
                assert why.total().tobytes() == row.tobytes()
    assert all(each.tobytes() == found[0].tobytes() for each in found)
    without = replace(model, spelling=None).scores(NEW)
    changed = (without != found[0]).any(axis=1)
    assert changed.any() == (ngram_range[0] == 1)
    assert not changed[[3, 4]].any()


def test_tokens_with_spaces_have_no_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    def split(text: str) -> list[str]:
        return [token for token in text.split("|") if token]

    texts = ["new york|city", "new yorker|cities", "old york|city", "old town|farm"]
    fitted = WGCNTextClassifier(tokenizer=split, ngram_range=(1, 1), n_jobs=1).fit(texts * 2, ["a", "a", "a", "b"] * 2)
    for path in PATHS:
        take(path, monkeypatch)
        assert fitted.model_.terms(["new yorkers|citizen|city"]).new_words == ["citizen"]


def test_without_weight_subwords_are_left_out_and_unseen_words_do_not_count() -> None:
    fitted = WGCNTextClassifier(subwords=0, n_jobs=1).fit(TEXTS, LABELS)
    assert fitted.model_.spelling is None
    assert fitted.classifier_.trained_.subword_rows is None
    assert np.array_equal(fitted.predict_proba(["winery carwash red"]), fitted.predict_proba(["red"]))
    why = fitted.explain(["winery red"])[0]
    assert (why.terms, why.unknown, why.spelling) == (["red"], ["winery"], None)
    assert fitted.model_.terms(["winery red"]).new_words == []


def test_stop_words_of_an_estimator_are_never_unseen_words() -> None:
    fitted = WGCNTextClassifier(stop_words=["whitish", "reddish"], n_jobs=1).fit(TEXTS, LABELS)
    assert np.array_equal(fitted.predict_proba(["a whitish car"]), fitted.predict_proba(["a car"]))
    assert "whitish" not in fitted.explain(["a whitish car"])[0].unknown
    assert not np.array_equal(fitted.predict_proba(["a whitest car"]), fitted.predict_proba(["a car"]))


@pytest.mark.parametrize("labels", ["two", "three", "several", "unlabelled", "seeds"])
def test_every_kind_of_fit_has_a_spelling_of_as_many_columns_as_classes(labels: str) -> None:
    given: dict[str, Any] = {}
    y: Any = list(LABELS)
    if labels == "three":
        y[1] = y[4] = y[7] = "third"
    elif labels == "several":
        y = [[label, "red"] if "red" in text else [label] for text, label in zip(TEXTS, LABELS, strict=True)]
    elif labels == "unlabelled":
        given["unlabeled"] = ["white winery", "slow carwash"] * 3
    elif labels == "seeds":
        y, given["seeds"] = None, {"drink": ["wine"], "drive": ["car"]}
        given["unlabeled"] = ["red wine", "fast car"] * 3
    fitted = WGCNTextClassifier(n_jobs=1).fit(TEXTS, y, **given)
    spelling = fitted.model_.spelling
    assert spelling is not None
    assert spelling.rows.shape == (len(spelling.hashes), len(fitted.classes_))
    for why, row in zip(fitted.explain(NEW), fitted.model_.scores(NEW), strict=True):
        assert why.total().tobytes() == row.tobytes()
    if labels == "two":
        np.testing.assert_array_equal(spelling.rows[:, 0], -spelling.rows[:, 1])


def test_an_update_with_new_words_finds_the_subwords_again(fitted: WGCNTextClassifier) -> None:
    model = clone(fitted).fit(TEXTS, LABELS)
    before = model.model_.spelling
    model.update(["truck trucks", "trucker trucking", "a truck"], ["drive"] * 3)
    after = model.model_.spelling
    assert before is not None
    assert after is not None
    assert not np.isin(subword_hashes(["truck"])[0], before.hashes).any()
    assert np.isin(subword_hashes(["truck"])[0], after.hashes).any()
    assert model.predict(["truckers"]).tolist() == ["drive"]
    afresh = clone(fitted).fit([*TEXTS, "truck trucks", "trucker trucking", "a truck"], [*LABELS, *["drive"] * 3])
    assert afresh.model_.spelling is not None
    assert np.array_equal(afresh.model_.spelling.hashes, after.hashes)
    assert clone(model).get_params() == fitted.get_params()


def test_words_that_extend_adds_are_known_from_then_on(fitted: WGCNTextClassifier, tmp_path: Path) -> None:
    model = fitted.model_
    larger = model.extend(["winery by a car", "winery for a fast car", "a winery, a car"])
    assert "winery" in larger.vocabulary.index
    assert model.terms(["winery"]).new_words == ["winery"]
    assert larger.terms(["winery"]).new_words == []
    assert larger.terms(["wineries"]).new_words == ["wineries"]
    why = larger.explain(["winery wineries car"])[0]
    assert why.unknown == ["wineries"]
    assert why.spelling is not None
    assert not why.spelling[why.terms.index("winery")].any()
    assert why.total().tobytes() == larger.scores(["winery wineries car"])[0].tobytes()
    assert np.array_equal(larger.scores(["carwash red"]), model.scores(["carwash red"]))
    larger.save(tmp_path / "larger")
    assert TextModel.load(tmp_path / "larger").scores(NEW).tobytes() == larger.scores(NEW).tobytes()


def test_a_model_fitted_in_double_precision_has_a_spelling_too() -> None:
    prepared = Preparation().prepare(TEXTS)
    terms, subwords = prepared.document_terms.astype(np.float64), prepared.subword_matrix()
    classifier = WGCNClassifier(n_jobs=1).fit(terms, LABELS, word_graph=prepared.word_graph, subwords=subwords)
    model, found = prepared.text_model(classifier, {}), []
    assert model.scorer.word_embeddings.dtype == np.float64
    for path in PATHS:
        with pytest.MonkeyPatch.context() as patch:
            take(path, patch)
            found.append(model.scores(NEW))
            for why, row in zip(model.explain(NEW), found[0], strict=True):
                assert why.total().tobytes() == row.tobytes()
    assert all(each.tobytes() == found[0].tobytes() for each in found)
    single = WGCNTextClassifier(n_jobs=1).fit(TEXTS, LABELS).model_.scores(NEW)
    np.testing.assert_allclose(found[0], single, atol=0.05)  # up to the tolerance of the solver


def test_an_embedder_has_no_spelling() -> None:
    embedder = WGCNEmbedder(2).fit(TEXTS)
    assert embedder.model_.spelling is None
    assert np.array_equal(embedder.transform(["red winery"]), embedder.transform(["red"]))


def test_rows_too_large_for_half_precision_are_cut() -> None:
    subwords = Subwords(
        np.arange(2, dtype=np.uint32), np.ones(2, np.float32), np.empty(0, np.int32), np.zeros(1, np.int64)
    )
    spelling = make_spelling(subwords, np.array([[1e9, -1e9], [1e-9, 2.0]]), np.array([1.0, 3.0], np.float32))
    assert spelling.rows.tolist() == [[65504, -65504], [0, 2]]
    assert spelling.idf == 1.5


def test_a_tiny_corpus_has_no_subwords_and_no_spelling(tmp_path: Path) -> None:
    fitted = WGCNTextClassifier(n_jobs=1).fit(["red", "blue"], ["a", "b"])
    assert fitted.model_.spelling is None
    fitted.save(tmp_path / "model")
    loaded = TextModel.load(tmp_path / "model")
    assert np.array_equal(loaded.scores(["reds", "red"]), fitted.model_.scores(["reds", "red"]))


def rewritten(model: TextModel, path: Path, monkeypatch: pytest.MonkeyPatch, **tensors: Any) -> None:
    """Save a model with some tensors of its spelling changed, or left out where None."""
    saved = model.spelling.tensors() if model.spelling is not None else {}
    changed = {**saved, **{f"spelling.{name}": value for name, value in tensors.items()}}
    monkeypatch.setattr(Spelling, "tensors", lambda _: {k: v for k, v in changed.items() if v is not None})
    with monkeypatch.context() as unchecked:
        unchecked.setattr(TextModel, "from_folder", lambda *_: None)
        model.save(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("hashes", lambda hashes: hashes[::-1]),
        ("hashes", lambda hashes: np.repeat(hashes[:1], len(hashes))),
        ("hashes", lambda hashes: hashes.astype(np.int64)),
        ("hashes", lambda hashes: hashes[:, None]),
        ("hashes", lambda hashes: hashes[:-1]),
        ("rows", lambda rows: rows.astype(np.float32)),
        ("rows", lambda rows: rows[:-1]),
        ("rows", lambda rows: rows[:, :1]),
        ("rows", lambda rows: rows * np.float16(np.nan)),
        ("rows", lambda rows: None),
        ("idf", lambda idf: 0 * idf),
        ("idf", lambda idf: -idf),
        ("idf", lambda idf: np.inf * idf),
        ("idf", lambda idf: idf.astype(np.float64)),
        ("idf", lambda idf: np.repeat(idf, 2)),
        ("idf", lambda idf: None),
    ],
)
def test_a_damaged_spelling_is_refused(
    fitted: WGCNTextClassifier,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    change: Callable[[np.ndarray], np.ndarray | None],
) -> None:
    assert fitted.model_.spelling is not None
    value = fitted.model_.spelling.tensors()[f"spelling.{name}"]
    rewritten(fitted.model_, tmp_path / "model", monkeypatch, **{name: change(value)})
    with pytest.raises(StoreError, match="spelling"):
        TextModel.load(tmp_path / "model")
