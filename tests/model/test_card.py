"""The README.md of saved folders."""

import json
from pathlib import Path

import numpy as np

from wgcn import TextModel, WGCNEmbedder, WGCNTextClassifier
from wgcn.model.card import model_card

TEXTS = ["red wine", "white wine", "fast car", "slow car"]
LABELS = ["drink", "drink", "drive", "drive"]


def test_model_card_says_what_it_was_trained_on(tmp_path: Path) -> None:
    for ngram_range in ((1, 1), (1, 2)):
        WGCNTextClassifier(ngram_range=ngram_range).fit(TEXTS * 2, LABELS * 2).save(tmp_path / "m")
        card = (tmp_path / "m" / "README.md").read_text()
        assert "| of these with labels | 8 |" in card
        assert '- "drink": 50.00%' in card
        assert "`window`: `20`" in card
        assert "| words | 6 |" in card
        assert ("| n-grams | 4 |" in card) == (ngram_range == (1, 2))


def test_model_card_shows_only_what_there_is() -> None:
    model = WGCNTextClassifier().fit(TEXTS[1:3], LABELS[1:3]).model_
    card = model_card(model)
    assert "| accuracy on held-out training documents | not measured: no class has two labelled documents" in card
    for name in ("settings chosen", "more texts", "words added", "a document may have several"):
        assert name not in card
    accuracies = {"accuracy": 0.75, "default_accuracy": 0.5, "n_held_out": 600, "n_fits": 7}
    model.report.update(n_background=1234, tuned={"settings": {"C": 0.25}, **accuracies})
    model.report.update(held_out_accuracy=0.5, n_held_out=2)
    card = model_card(model)
    assert "| more texts, for vocabulary and word graph alone | 1,234 |" in card
    assert "| settings chosen | C 0.25 |" in card
    assert "| accuracy on held-out training documents | 50.00% (95% interval 9.5 to 90.5, 2 documents) |" in card


def test_cards_begin_with_the_metadata_of_the_hub(tmp_path: Path) -> None:
    model = WGCNTextClassifier().fit(TEXTS, LABELS).model_
    card = [
        "---",
        'library_name: "wgcn"',
        'pipeline_tag: "text-classification"',
        'tags: ["wgcn", "text-classification"]',
    ]
    assert model_card(model).splitlines()[:7] == [*card, "---", "", "# A wgcn text classifier"]
    model.report["metadata"] = {"license": "mit", "language": ["en"], "tags": ["wine\n---\n"]}  # of the user
    model.save(tmp_path / "m")
    lines = (tmp_path / "m" / "README.md").read_text().split("\n---\n")[0].splitlines()[1:]
    metadata = {name: json.loads(value) for name, value in (line.split(": ", 1) for line in lines)}
    assert metadata == {"library_name": "wgcn", "pipeline_tag": "text-classification", **model.report["metadata"]}
    assert TextModel.load(tmp_path / "m").report["metadata"] == model.report["metadata"]
    for odd in (None, "mit", ["mit"]):
        model.report["metadata"] = odd
        assert model_card(model).startswith('---\nlibrary_name: "wgcn"\n')


def test_model_card_of_several_labels_says_so() -> None:
    model = WGCNTextClassifier().fit(TEXTS, np.array([[1, 0], [1, 0], [0, 1], [1, 1]])).model_
    assert "| classes | 2 (a document may have several) |" in model_card(model)


def test_cards_say_what_is_done_with_unknown_words() -> None:
    read = model_card(WGCNTextClassifier().fit(TEXTS * 2, LABELS * 2).model_)
    ignored = model_card(WGCNTextClassifier(subwords=0).fit(TEXTS * 2, LABELS * 2).model_)
    assert "are read by their spelling" in read
    assert "are ignored" not in read
    assert "Words that are not in the vocabulary are ignored.\nA text without any word" in ignored


def test_cards_say_how_the_accuracy_was_measured() -> None:
    unlabelled = [f"{text} {i}" for i in range(9) for text in TEXTS]
    by_folds = WGCNTextClassifier().fit(TEXTS, LABELS)
    by_teacher = WGCNTextClassifier().fit(TEXTS + unlabelled, LABELS + [None] * len(unlabelled))
    many = [f"{text} w{i}a w{i}b w{i}c w{i}d" for i in range(60) for text in TEXTS]
    held_out = WGCNTextClassifier().fit(many, LABELS * 60)
    for fitted, how in ((by_folds, "by a fit without it"), (by_teacher, "of the teacher"), (held_out, "left out of a")):
        card = model_card(fitted.model_)
        assert how in card
        assert "leave-one-out" not in card
        assert sum(each in card for each in ("by a fit without it", "of the teacher", "left out of a")) == 1
    none = model_card(WGCNTextClassifier().fit(TEXTS[1:3], LABELS[1:3]).model_)
    assert "The accuracy is" not in none


def test_embedder_card_says_what_it_was_fitted_to(tmp_path: Path) -> None:
    WGCNEmbedder(4).fit(TEXTS).save(tmp_path / "e")
    card = (tmp_path / "e" / "README.md").read_text()
    for line in ("| texts it was fitted to | 4 |", "| words and n-grams | 6 |", "| columns | 4 |", "`window`: `20`"):
        assert line in card
