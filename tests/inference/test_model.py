"""Prediction from a saved model: what it needs, and what it refuses."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from wgcn import TextModel, WGCNTextClassifier
from wgcn.errors import StoreError
from wgcn.inference import folder as store
from wgcn.inference.scorer import Scorer
from wgcn.text.weighting import Norm

TEXTS = ["red wine", "white wine", "fast car", "slow car"]


@pytest.fixture(scope="module")
def model() -> TextModel:
    return WGCNTextClassifier().fit(TEXTS, ["drink", "drink", "drive", "drive"]).model_


@pytest.fixture
def folder(model: TextModel, tmp_path: Path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


def resign(folder: Path, **config: object) -> None:
    """Change a folder as someone who can also compute digests would."""
    document = json.loads((folder / "config.json").read_text())
    document["config"].update(config)
    document["files"] = {
        name: store.hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in document["files"]
    }
    document["digest"] = store._digest(document)
    (folder / "config.json").write_text(json.dumps(document))


def test_prediction_imports_neither_torch_nor_scipy_nor_scikit_learn(folder: Path) -> None:
    script = (
        "import sys; from wgcn import TextModel\n"
        f"print(TextModel.load({str(folder)!r}).predict(['some wine'])[0])\n"
        "print(*{'torch', 'scipy', 'sklearn', 'numba', 'matplotlib', 'rich'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "drink\n\n"


def test_unknown_words_are_counted_and_an_empty_text_gets_the_prior(model: TextModel) -> None:
    terms = model.terms(["wine zzz yyy", "zzz"])  # four words, and two pairs of words
    assert (terms.n_tokens, terms.n_unknown) == (6, 5)
    np.testing.assert_allclose(model.predict_proba(["", "zzz"]), 0.5, rtol=1e-6)


def test_embeddings_are_made_in_batches(model: TextModel, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"red wine {i}" for i in range(40)]
    whole = model.transform(texts)
    sizes: list[int] = []
    encode = TextModel._encode

    def watched(self: TextModel, batch: list[str]) -> tuple[np.ndarray, np.ndarray]:
        sizes.append(len(batch))
        return encode(self, batch)

    monkeypatch.setattr(TextModel, "_encode", watched)
    monkeypatch.setattr("wgcn.inference.terms.BATCH_CHARACTERS", 50)
    assert np.array_equal(model.transform(iter(texts), n_jobs=2), whole)
    assert sum(sizes) == 40
    assert max(sizes) <= 5
    assert model.transform([]).shape == (0, 2)


def test_no_texts_give_no_rows(model: TextModel) -> None:
    assert model.predict_proba([]).shape == (0, 2)
    hidden = np.ones((6, 3), np.float32)
    network = replace(model, scorer=Scorer(hidden, np.ones((3, 2), np.float32), *[np.ones(2, np.float32)] * 2))
    assert network.scores([]).shape == (0, 2)
    assert network.scores(["red wine"]).shape == (1, 2)


@pytest.mark.parametrize(
    "config",
    [
        {"tokenizer": "eval"},
        {"ngram_range": [1]},
        {"ngram_range": [1, 10**9]},
        {"stop_words": ["of", "a"]},
        {"stop_words": ["of", "of"]},
        {"stop_words": [1]},
        {"stop_words": [["of"]]},
        {"stop_words": "of"},
        {"stop_words": None},
        {"sharpness": 0.0},
        {"sharpness": float("nan")},
        {"classes": ["a", "a"]},
        {"classes": ["a", 1]},
        {"classes": []},
        {"classes": ["a", "b", "c"]},
        {"norm": "l3"},
        {"norm": ""},
        {"norm": None},
        {"norm": ["l2"]},
        {"code": "import os"},
        {"report": {"extended": {}}},
        {"report": {"extended": [{"how": "graph", "words": 1}]}},
        {"report": {"extended": [{"how": "graph", "words": "1", "texts": 1}]}},
        {"report": {"extended": [{"how": "graph", "words": 0, "texts": 1}]}},
        {"report": {"extended": [{"how": "graph", "words": 10**6, "texts": 1}]}},
    ],
)
def test_a_signed_model_with_invalid_settings_is_refused(folder: Path, config: dict[str, object]) -> None:
    resign(folder, **config)
    with pytest.raises(StoreError):
        TextModel.load(folder)


def test_a_signed_model_that_lacks_a_setting_is_refused(folder: Path) -> None:
    keys = json.loads((folder / "config.json").read_text())["config"].keys()
    assert "stop_words" in keys
    for key in keys:
        content = (folder / "config.json").read_text()
        document = json.loads(content)
        del document["config"][key]
        (folder / "config.json").write_text(json.dumps(document))
        resign(folder)
        with pytest.raises(StoreError, match=f"lacks .*{key}"):
            TextModel.load(folder)
        (folder / "config.json").write_text(content)


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("word_embeddings", np.zeros((3, 2), np.float32)),
        ("word_embeddings", np.full((6, 2), np.nan, np.float32)),
        ("word_embeddings", np.zeros((6, 3), np.float32)),
        ("word_embeddings", np.zeros((6, 2), np.float64)),
        ("bias", np.zeros(5, np.float32)),
        ("idf", np.zeros(2, np.float32)),
        ("class_weights", np.zeros((9, 2), np.float32)),
    ],
)
def test_a_signed_model_with_a_tensor_that_does_not_fit_is_refused(folder: Path, name: str, tensor: np.ndarray) -> None:
    save_file({**load_file(folder / "model.safetensors"), name: tensor}, folder / "model.safetensors")
    resign(folder)
    with pytest.raises(StoreError):
        TextModel.load(folder)


@pytest.mark.parametrize("norm", get_args(Norm))
def test_the_norm_is_saved(model: TextModel, tmp_path: Path, norm: Norm) -> None:
    other = replace(model, weighting=replace(model.weighting, norm=norm))
    other.save(tmp_path / "m")
    loaded = TextModel.load(tmp_path / "m")
    assert loaded.weighting.norm == norm
    weights = loaded.terms(["red wine red"]).weights
    assert np.sum(weights if norm == "l1" else weights**2) == pytest.approx(1, rel=1e-6)
    assert np.array_equal(loaded.scores(TEXTS), other.scores(TEXTS))


@pytest.mark.parametrize("labels", [[3, 3, 7, 7], ["ä\n\tb", "ä\n\tb", "c", "c"], [False, False, True, True]])
def test_labels_of_other_kinds_come_back(tmp_path: Path, labels: list[object]) -> None:
    model = WGCNTextClassifier().fit(TEXTS, labels)
    if isinstance(labels[0], bool):
        with pytest.raises(store.InputError, match="strings or integers"):
            model.save(tmp_path / "m")
        return
    model.save(tmp_path / "m")
    assert TextModel.load(tmp_path / "m").predict(TEXTS).tolist() == labels
