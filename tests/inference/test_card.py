"""The README.md of saved folders."""

from pathlib import Path

import numpy as np
import pytest

from wgcn import TextModel, WGCNClassifier, WGCNEmbedder, WGCNTextClassifier
from wgcn.network.settings import NetworkSettings, TrainingSettings

TEXTS = ["red wine", "white wine", "fast car", "slow car"]
LABELS = ["drink", "drink", "drive", "drive"]


def test_model_card_says_what_it_was_trained_on(tmp_path: Path) -> None:
    WGCNTextClassifier().fit(TEXTS, LABELS).save(tmp_path / "m")
    card = (tmp_path / "m" / "README.md").read_text()
    assert "| of these with labels | 4 |" in card
    assert '- "drink": 50.00%' in card
    assert "`window`: `20`" in card


def test_model_card_tells_words_from_ngrams(tmp_path: Path) -> None:
    for ngram_range in ((1, 1), (1, 2)):
        model = WGCNTextClassifier(ngram_range=ngram_range).fit(TEXTS * 2, LABELS * 2)
        model.save(tmp_path / "m")
        card = (tmp_path / "m" / "README.md").read_text()
        assert "| words | 6 |" in card
        assert ("| n-grams | 4 |" in card) == (ngram_range == (1, 2))


def test_cards_name_all_windows(tmp_path: Path) -> None:
    WGCNTextClassifier(window=(50, 5)).fit(TEXTS, LABELS).save(tmp_path / "m")
    WGCNEmbedder(4, window=[5, 50]).fit(TEXTS).save(tmp_path / "e")
    for folder in ("m", "e"):
        assert "- `window`: `[5, 50]`" in (tmp_path / folder / "README.md").read_text()
    assert TextModel.load(tmp_path / "m").settings["window"] == [5, 50]


def test_model_card_says_of_an_average_what_was_held_out_of_what(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the network needs torch")
    settings = {"network": NetworkSettings(hidden=4), "training": TrainingSettings(max_epochs=2, device="cpu")}
    for kind in ("network", "average"):
        model = WGCNTextClassifier(classifier=WGCNClassifier(model=kind, **settings)).fit(TEXTS * 30, LABELS * 30)
        model.save(tmp_path / "m")
        card = (tmp_path / "m" / "README.md").read_text()
        accuracy = f"{model.classifier_.held_out_accuracy_:.2%} of 12"
        assert ("| model | the mean of the scores of the paper's network and of the linear model |" in card) == (
            kind == "average"
        )
        whose = ", of the linear model alone" if kind == "average" else ""
        assert f"| accuracy on held-out training documents{whose} | {accuracy} |" in card
        assert '- `network`: `"NetworkSettings(hidden=4' in card


def test_embedder_card_says_what_it_was_fitted_to(tmp_path: Path) -> None:
    WGCNEmbedder(4).fit(TEXTS).save(tmp_path / "e")
    card = (tmp_path / "e" / "README.md").read_text()
    for line in ("| texts it was fitted to | 4 |", "| words and n-grams | 6 |", "| columns | 4 |", "`window`: `20`"):
        assert line in card


def test_model_card_says_what_was_learnt_of_alpha(tmp_path: Path) -> None:
    for learn_alpha in (None, "shared", "word"):
        classifier = WGCNClassifier(learn_alpha=learn_alpha, C=20)
        model = WGCNTextClassifier(classifier=classifier).fit(TEXTS * 2, LABELS * 2)
        model.save(tmp_path / "m")
        lines = [line for line in (tmp_path / "m" / "README.md").read_text().splitlines() if "(alpha), learnt" in line]
        alpha = model.classifier_.alpha_
        if learn_alpha is None:
            assert lines == []
        elif learn_alpha == "shared":
            assert lines == [f"| weight of the graph (alpha), learnt | {alpha:.3g} |"]
        else:
            each = np.asarray(alpha)[np.diff(model.word_graph_.adjacency.indptr) > 0]
            parts = zip(("smallest", "median", "largest"), (each.min(), np.median(each), each.max()), strict=True)
            shown = ", ".join(f"{name} {value:.3g}" for name, value in parts)
            assert lines == [f"| weight of the graph (alpha), learnt | for each word: {shown} |"]
            assert each.min() < each.max()
        assert TextModel.load(tmp_path / "m").report == model.model_.report
