"""The model behind the page: refits, what it shows, and that its answers are those of the library."""

from pathlib import Path

import numpy as np
import pytest

from wgcn import TextModel, WGCNTextClassifier
from wgcn.base.errors import InputError
from wgcn.label.decisions import Decision, Entry, State, fold
from wgcn.label.engine import Engine

DRINK, DRIVE = 1, 2
TEXTS = [
    *("red wine and cheese", "white wine with fish", "a glass of wine", "wine from the hills", "cheese and bread"),
    *("a fast red car", "the car has a new engine", "engine oil for the car", "drive a car to town", "slow car"),
]


def state_of(*decisions: Decision) -> State:
    given = [Decision("add", None, DRINK, "drink"), Decision("add", None, DRIVE, "drive"), *decisions]
    return fold([Entry(seq, 0.0, "me", decision) for seq, decision in enumerate(given, 1)], len(TEXTS))


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(TEXTS)


LABELLED = (Decision("label", 0, DRINK), Decision("label", 5, DRIVE))


def test_suggestions_need_no_label_and_leave_out_what_is_done(engine: Engine) -> None:
    found = engine.fit(state_of(Decision("label", 0, DRINK), Decision("skip", 3)))
    assert found["classes"] == []
    assert sorted(found["suggested"]) == [1, 2, 4, 5, 6, 7, 8, 9]
    assert engine.explain(0)["pieces"] == [(TEXTS[0], 0)]
    done = (Decision("label", text, DRINK) for text in range(len(TEXTS)))
    assert engine.fit(state_of(*done))["suggested"] == []


def test_a_fit_is_that_of_the_library(engine: Engine) -> None:
    engine.fitted = None
    found = engine.fit(state_of(*LABELLED))
    labels = [None] * len(TEXTS)
    labels[0], labels[5] = "drink", "drive"  # type: ignore[call-overload]
    model = WGCNTextClassifier().fit(TEXTS, labels)
    likely = model.predict_proba(TEXTS)
    np.testing.assert_allclose(found["confidence"], likely.max(axis=1), rtol=1e-5)
    assert [("drink", "drive")[number - 1] for number in found["guess"]] == model.predict(TEXTS).tolist()
    assert found["words"][DRIVE] == [word for word, _ in model.top_words("drive", 12)]


def test_a_quick_fit_tells_what_the_next_label_needs(engine: Engine) -> None:
    thorough = engine.fit(state_of(*LABELLED))
    more = state_of(*LABELLED, Decision("label", 9, DRIVE))
    quick = engine.fit(more, quick=True)
    assert {"guess", "confidence", "suggested"} <= set(quick)
    assert {"accuracy", "words", "doubts"} <= set(thorough) - set(quick)
    np.testing.assert_array_equal(quick["guess"], engine.fit(more)["guess"])


def test_a_refit_takes_all_kinds_of_changes(engine: Engine) -> None:
    engine.fit(state_of(*LABELLED))
    more = engine.fit(state_of(*LABELLED, Decision("label", 9, DRIVE), Decision("label", 4, DRINK)))
    assert more["n_labels"] == 4
    assert {text for text, *_ in more["doubts"]} == {0, 4, 5, 9}
    assert set(more["disagree"]) <= {0, 4, 5, 9}
    fewer = engine.fit(state_of(Decision("label", 4, DRINK), Decision("label", 5, DRIVE)))
    assert fewer["guess"][4] == DRINK
    renamed = engine.fit(state_of(*LABELLED, Decision("rename", None, DRINK, "wine")))
    assert renamed["guess"][0] == DRINK
    swapped = engine.fit(state_of(Decision("label", 0, DRIVE), Decision("label", 5, DRINK)))
    assert (swapped["guess"][0], swapped["guess"][5]) == (DRIVE, DRINK)


@pytest.mark.filterwarnings("ignore:Seeds to look at")
def test_seeds_are_enough_for_a_model(engine: Engine) -> None:
    seeds = Decision("seeds", None, DRINK, '["wine"]'), Decision("seeds", None, DRIVE, '["car"]')
    found = engine.fit(state_of(*seeds))
    assert found["n_labels"] == 0
    assert found["guess"][0] == DRINK
    assert found["guess"][5] == DRIVE
    others = Decision("seeds", None, DRINK, '["cheese"]'), Decision("seeds", None, DRIVE, '["engine"]')
    again = engine.fit(state_of(*others, Decision("label", 8, DRIVE)))
    fresh = Engine(TEXTS).fit(state_of(*others, Decision("label", 8, DRIVE)))
    np.testing.assert_allclose(again["confidence"], fresh["confidence"], rtol=1e-4)
    with pytest.raises(InputError, match="in no text"):
        engine.check_seeds("drink", ["beer"])
    engine.check_seeds("drink", ["cheese", "-bread"])


def test_the_words_of_a_text_and_of_the_graph(engine: Engine) -> None:
    engine.fit(state_of(*LABELLED))
    why = engine.explain(0)
    assert "".join(piece for piece, _ in why["pieces"]) == TEXTS[0]
    assert why["label"] == DRINK
    assert "wine" in dict(why["for"])
    assert engine.explain(0, DRIVE)["label"] == DRIVE
    found = engine.neighbourhood("Car")
    assert found["nodes"][0] == {"word": "car", "texts": 5, "label": DRIVE, "weight": 0}
    names = [node["word"] for node in found["nodes"]]
    assert "engine" in names
    assert all(0 <= i < j < len(names) for i, j, _ in found["edges"])
    assert engine.neighbourhood("wines")["near"] == ["wine"]
    assert engine.neighbourhood("")["nodes"] == []


def test_an_export_is_a_model_folder(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least two classes"):
        engine.export(state_of(Decision("label", 0, DRINK)), tmp_path / "model")
    engine.export(state_of(*LABELLED), tmp_path / "model")
    assert TextModel.load(tmp_path / "model").predict(["wine", "car"]).tolist() == ["drink", "drive"]
