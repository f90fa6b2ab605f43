import random

import numpy as np
import pytest

from wgcn import TextModel, WGCNTextClassifier
from wgcn.base.errors import InputError, WGCNWarning
from wgcn.linear.task import Thresholds

TOPICS = {
    "sport": ["game", "team", "player", "score", "win", "coach", "season", "ball", "league", "goal"],
    "politics": ["vote", "party", "law", "minister", "election", "senate", "tax", "president", "bill", "policy"],
    "food": ["bread", "cheese", "wine", "cook", "oven", "salt", "sugar", "butter", "meal", "soup"],
}
SEEDS = {"sport": ["game", "team"], "politics": ["vote", "party"], "food": ["bread", "cheese"]}


def _texts(n: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return texts of three topics, half of them about sport, in which every second word is common to all."""
    draw = random.Random(seed)
    labels = [draw.choice(["sport", "sport", "politics", "food"]) for _ in range(n)]
    common = ["the", "a", "of", "and", "to", "in", "is", "it"]
    return [" ".join(draw.choice(draw.choice([TOPICS[label], common])) for _ in range(20)) for label in labels], labels


TEXTS, LABELS = _texts(240)


@pytest.fixture(scope="module")
def fitted() -> WGCNTextClassifier:
    return WGCNTextClassifier(n_jobs=1).fit(TEXTS, seeds=SEEDS)


def test_seeds_alone_train_a_model(fitted: WGCNTextClassifier) -> None:
    texts, labels = _texts(100, seed=1)
    assert fitted.classes_.tolist() == ["food", "politics", "sport"]
    assert fitted.score(texts, labels) > 0.97


def test_without_labels_no_accuracy_is_claimed_and_the_prior_is_that_of_the_answers(fitted: WGCNTextClassifier) -> None:
    report = fitted.model_.report
    assert report["held_out_accuracy"] is None
    assert report["n_labelled"] == 0
    assert report["seeds"] == SEEDS
    shares = np.mean(fitted.predict(TEXTS)[:, None] == fitted.classes_, axis=0)
    np.testing.assert_allclose(fitted.model_.scorer.prior, shares, atol=0.03)


def test_the_words_of_a_class_begin_with_the_seeds_and_go_on_with_its_topic(fitted: WGCNTextClassifier) -> None:
    for name, words in fitted.seed_words_.items():
        assert [word.word for word in words if word.given] == SEEDS[name]
        added = [word.word for word in words if not word.given]
        assert len(added) >= 5
        assert set(added[:5]) <= set(TOPICS[name])
    expanded = WGCNTextClassifier(n_jobs=1).expand_seeds(TEXTS, SEEDS)
    for name, words in fitted.seed_words_.items():  # sums in another order of the texts
        assert [word.word for word in words] == [word.word for word in expanded[name]]
        assert [word.weight for word in words] == pytest.approx([word.weight for word in expanded[name]], rel=1e-3)


def test_without_a_label_there_is_none_to_review(fitted: WGCNTextClassifier) -> None:
    assert fitted.review() == []


def test_a_saved_model_keeps_its_seeds(fitted: WGCNTextClassifier, tmp_path: object) -> None:
    fitted.save(f"{tmp_path}/model")
    loaded = TextModel.load(f"{tmp_path}/model")
    assert loaded.report["seeds"] == SEEDS
    np.testing.assert_array_equal(loaded.predict(TEXTS[:20]), fitted.predict(TEXTS[:20]))


def test_the_same_seeds_give_the_same_model(fitted: WGCNTextClassifier) -> None:
    again = WGCNTextClassifier(n_jobs=1).fit(iter(TEXTS), [None] * len(TEXTS), seeds=SEEDS)
    np.testing.assert_array_equal(again.word_embeddings_, fitted.word_embeddings_)


def test_one_wrong_seed_per_class_is_reported_and_does_little_harm() -> None:
    wrong = {
        "sport": ["game", "team", "goal", "vote"],
        "politics": ["vote", "party", "law", "bread"],
        "food": ["bread"],
    }
    wrong["food"] += ["cheese", "wine", "ball"]
    with pytest.warns(WGCNWarning, match="'ball' goes with another class than 'food'"):
        model = WGCNTextClassifier(n_jobs=1).fit(TEXTS, seeds=wrong)
    assert model.score(TEXTS, LABELS) > 0.95
    assert "'vote' is a seed of 'politics' and 'sport'." in model.model_.report["seed_problems"]


def test_labels_and_seeds_are_mixed_and_classes_are_their_union() -> None:
    texts, labels = _texts(200, seed=2)
    known = [label if i < 40 and label == "food" else None for i, label in enumerate(labels)]
    with pytest.warns(WGCNWarning, match="those of the seeds have no label"):
        model = WGCNTextClassifier(n_jobs=1).fit(texts, known, seeds={"sport": ["game"], "politics": ["vote", "tax"]})
    assert model.classes_.tolist() == ["food", "politics", "sport"]
    assert model.score(texts, labels) > 0.95
    some = [label if i < 30 else None for i, label in enumerate(labels)]
    model = WGCNTextClassifier(n_jobs=1).fit(texts, some, seeds=SEEDS)
    assert model.score(texts, labels) > 0.97
    assert model.model_.report["n_labelled"] == 30


def test_class_names_alone_can_be_seeds_also_of_two_classes() -> None:
    model = WGCNTextClassifier(n_jobs=1).fit(TEXTS, seeds=["game", "vote"])
    predicted = model.predict(TEXTS)
    sport, politics = (predicted[np.array(LABELS) == name] for name in ("sport", "politics"))
    assert np.mean(sport == "game") > 0.97
    assert np.mean(politics == "vote") > 0.97


def test_update_adds_labels_beside_the_seeds() -> None:
    model = WGCNTextClassifier(n_jobs=1).fit(TEXTS[:150], seeds=SEEDS)
    model.update(TEXTS[140:], LABELS[140:])
    assert model.model_.report["n_labelled"] == 100
    assert model.model_.report["seeds"] == SEEDS
    assert model.score(TEXTS, LABELS) > 0.97


def test_struck_words_do_not_come_back() -> None:
    words = WGCNTextClassifier(n_jobs=1).expand_seeds(TEXTS, {"sport": ["game", "-team", "-coach"], "other": ["vote"]})
    assert not {"team", "coach"} & {word.word for word in words["sport"]}


@pytest.mark.parametrize(
    ("y", "seeds", "message"),
    [
        (None, {"sport": ["gmae"], "food": ["bread"]}, "'gmae' of class 'sport' is in no text. Near it are 'game'"),
        (None, {"sport": ["game"]}, "only one class, 'sport', among the labels and seeds"),
        ([1] * 240, {"sport": ["game"]}, "all strings or all numbers"),
        ([["sport"]] * 240, {"food": ["bread"]}, "several labels"),
        (None, None, "requires y"),
    ],
)
def test_what_cannot_be_used_is_said(y: object, seeds: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        WGCNTextClassifier(n_jobs=1).fit(TEXTS, y, seeds=seeds)


def test_without_labels_no_settings_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgcn.linear.task.THRESHOLDS", Thresholds(tune=0))
    assert WGCNTextClassifier(tune=True).fit(TEXTS, seeds=SEEDS).tuned_ is None
