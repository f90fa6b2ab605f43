"""Prediction from a saved model: what it needs, and what it refuses."""

import json
import subprocess
import sys
import tracemalloc
import warnings
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from wgcn import TextModel, WGCNTextClassifier
from wgcn.base.errors import InputError, StoreError
from wgcn.scoring.scorer import Scorer
from wgcn.store import folder as store
from wgcn.text.weighting import Norm

TEXTS = ["red wine", "white wine", "fast car", "slow car"]
DEEP = reduce(lambda value, _: [value], range(100), [])


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
    assert (terms.n_words, terms.n_new, terms.n_spelt) == (4, 3, 0)
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
    monkeypatch.setattr("wgcn.scoring.terms.BATCH_CHARACTERS", 50)
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
        {"ngram_range": [True, 2]},
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
        {"lead": -1},
        {"lead": True},
        {"lead": "50"},
        {"lead": 50.0},
        {"lead": None},
        {"lead": 2**31},
        {"lead": 10**400},
        {"code": "import os"},
        {"report": {"extended": {}}},
        {"report": {"extended": [{"how": "graph", "words": 1}]}},
        {"report": {"extended": [{"how": "graph", "words": "1", "texts": 1}]}},
        {"report": {"extended": [{"how": "graph", "words": 0, "texts": 1}]}},
        {"report": {"extended": [{"how": "graph", "words": 10**6, "texts": 1}]}},
        {"report": {"extended": [{"how": "graph", "words": 1, "texts": -1}]}},
        {"report": {"extended": None}},
        {"report": {"n_documents": "many"}},
        {"report": {"n_labelled": -1}},
        {"report": {"n_edges": 1.5}},
        {"report": {"seconds": None}},
        {"report": {"seconds": float("inf")}},
        {"report": {"date": 5}},
        {"report": {"version": ["1"]}},
        {"report": {"held_out_accuracy": 2.0, "n_held_out": 5}},
        {"report": {"held_out_accuracy": 0.5}},
        {"report": {"held_out_accuracy": 0.5, "n_held_out": 0}},
        {"report": {"tuned": 1}},
        {"report": {"tuned": {"accuracy": 0.5}}},
        {"report": {"tuned": {"accuracy": 0.5, "default_accuracy": 0.5, "settings": {"C": "1"}}}},
        {"report": {"own": "\x1b[31m"}},
        {"settings": {"\x1b[31m": 1}},
        {"settings": {"huge": 10**30}},
        {"settings": {"deep": DEEP}},
        {"ngram_range": [1, 17]},
        {"sharpness": 1e300},
        {"sharpness": 1e-300},
        {"classes": ["a\x1b[31m", "b"]},
        {"classes": ["a\ud800", "b"]},
        {"classes": [["a"], ["b"]]},
        {"classes": [True, False]},
        {"classes": [2**63, 1]},
        {"stop_words": ["a\x9b"]},
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


@pytest.mark.parametrize("lead", [0, 1, 50, 2**31 - 1])
def test_the_lead_is_saved(model: TextModel, tmp_path: Path, lead: int) -> None:
    other = replace(model, weighting=replace(model.weighting, lead=lead))
    other.save(tmp_path / "m")
    loaded = TextModel.load(tmp_path / "m")
    assert loaded.weighting.lead == lead
    long = "red wine " + "fast car " * 60
    assert np.array_equal(loaded.scores([long]), other.scores([long]))
    assert np.array_equal(loaded.scores([long]), model.scores([long])) == (lead == 0)


@pytest.mark.parametrize("labels", [[3, 3, 7, 7], ["ä\n\tb", "ä\n\tb", "c", "c"], [False, False, True, True]])
def test_labels_of_other_kinds_come_back(tmp_path: Path, labels: list[object]) -> None:
    model = WGCNTextClassifier().fit(TEXTS, labels)
    if isinstance(labels[0], bool):
        with pytest.raises(store.InputError, match="strings or integers"):
            model.save(tmp_path / "m")
        return
    model.save(tmp_path / "m")
    assert TextModel.load(tmp_path / "m").predict(TEXTS).tolist() == labels


WORDS = {
    "drink": "red white wine glass cork grape sweet dry cellar taste",
    "drive": "fast car road wheel fuel motor gear",
}
COMMON = "the a of and in with was very some new old good"
GERMAN = "Die Katze sitzt auf der Matte und schläft den ganzen Tag"


def made_texts(n: int, seed: int) -> tuple[list[str], list[str]]:
    """Texts of two classes; one word in ten is of the other class."""
    rng, names = np.random.default_rng(seed), list(WORDS)
    labels = [names[i % 2] for i in range(n)]
    texts = []
    for label in labels:
        own, other = (WORDS[name].split() for name in (label, names[label == names[0]]))
        words = rng.choice(own + own + COMMON.split(), 9).tolist() + rng.choice(own + other, 3).tolist()
        texts.append(" ".join(rng.permutation(words).tolist()))
    return texts, labels


@pytest.fixture(scope="module")
def judged() -> WGCNTextClassifier:
    return WGCNTextClassifier().fit(*made_texts(400, 0))


def test_a_german_sentence_random_words_and_an_empty_text_are_out_of_scope(judged: WGCNTextClassifier) -> None:
    usual = judged.out_of_scope(made_texts(300, 1)[0])
    assert np.mean(usual > 0.99) < 0.04
    assert np.mean(usual < 0.5) == pytest.approx(0.5, abs=0.25)
    strange = [GERMAN, "", "zzz", "qwe rtz uio pas dfg hjk"]
    assert (judged.out_of_scope(strange) > 0.99).all()
    assert judged.predict(strange, abstain=0.01).tolist() == [None] * 4
    assert judged.out_of_scope([]).shape == (0,)


def test_an_answer_is_left_out_where_its_probability_is_low(judged: WGCNTextClassifier) -> None:
    texts = [*made_texts(50, 2)[0], "wine car glass road"]
    likely, labels = judged.predict_proba(texts).max(axis=1), judged.predict(texts)
    limit, scope = float(np.median(likely)), judged.out_of_scope(texts)
    answered = judged.predict(texts, abstain=limit)
    expected = [None if p < limit or s > 0.99 else y for p, s, y in zip(likely, scope, labels, strict=True)]
    assert answered.dtype == object
    assert answered.tolist() == expected
    assert None in expected
    assert set(expected) > {None}
    with pytest.raises(InputError, match="abstain must be a probability"):
        judged.predict(texts, abstain=1.0)
    with pytest.raises(InputError, match="abstain is for texts without citations"):
        judged.predict(texts, abstain=0.5, documents=texts)


def test_sets_hold_the_right_label_and_their_mask_says_the_same(judged: WGCNTextClassifier) -> None:
    texts, labels = made_texts(300, 3)
    sets, mask = judged.predict_set(texts, 0.8), judged.predict_set(texts, 0.8, as_mask=True)
    assert 0.65 < np.mean([label in found for label, found in zip(labels, sets, strict=True)]) < 0.95
    assert [sorted(found) for found in sets] == [judged.classes_[row].tolist() for row in mask]


def test_what_is_known_of_held_out_texts_is_saved(judged: WGCNTextClassifier, tmp_path: Path) -> None:
    texts = [*made_texts(20, 4)[0], GERMAN]
    judged.save(tmp_path / "m")
    loaded = TextModel.load(tmp_path / "m")
    assert np.array_equal(loaded.out_of_scope(texts), judged.out_of_scope(texts))
    assert loaded.predict_set(texts) == judged.predict_set(texts)
    assert loaded.predict(texts, abstain=0.9).tolist() == judged.predict(texts, abstain=0.9).tolist()
    tensors = load_file(tmp_path / "m" / "model.safetensors")
    save_file({**tensors, "trust.weights": -tensors["trust.weights"]}, tmp_path / "m" / "model.safetensors")
    resign(tmp_path / "m")
    with pytest.raises(StoreError, match="held-out texts"):
        TextModel.load(tmp_path / "m")
    older = {name: tensor for name, tensor in tensors.items() if not name.startswith("trust.")}
    save_file(older, tmp_path / "m" / "model.safetensors")
    resign(tmp_path / "m")
    old = TextModel.load(tmp_path / "m")
    assert np.array_equal(old.scores(texts), judged.model_.scores(texts))
    for ask in (old.out_of_scope, old.predict_set, partial(old.predict, abstain=0.5)):
        with pytest.raises(InputError, match="does not know how it does on held-out texts"):
            ask(texts)


def test_judging_imports_neither_torch_nor_scipy_nor_scikit_learn(judged: WGCNTextClassifier, tmp_path: Path) -> None:
    judged.save(tmp_path / "m")
    script = (
        "import sys; from wgcn import TextModel\n"
        f"model = TextModel.load({str(tmp_path / 'm')!r})\n"
        f"print(model.predict([{GERMAN!r}], abstain=0.5), model.out_of_scope(['']))\n"
        "print(len(model.predict_set(['red wine'], 0.5)))\n"
        "print(*{'torch', 'scipy', 'sklearn', 'numba', 'matplotlib', 'rich'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "[None] [1.]\n1\n\n"


def test_a_model_of_several_labels_knows_what_is_out_of_scope_but_gives_no_sets() -> None:
    texts, labels = made_texts(200, 5)
    model = WGCNTextClassifier().fit(texts, [[label] for label in labels])
    assert model.out_of_scope([GERMAN])[0] > 0.99
    for ask in (model.predict_set, partial(model.predict, abstain=0.5)):
        with pytest.raises(InputError, match="one label per text"):
            ask(texts)


def test_texts_that_are_read_once_are_judged_like_a_list(judged: WGCNTextClassifier) -> None:
    texts, labels = made_texts(400, 0)
    other = WGCNTextClassifier().fit(iter(texts), labels)
    assert np.array_equal(other.out_of_scope(texts), judged.out_of_scope(texts))


def test_a_text_of_weight_0_is_not_held_out_in_place_of_another() -> None:
    texts, labels = made_texts(300, 6)
    weight = np.arange(300) % 3 > 0
    wrong = ["drive" if label == "drink" and not used else label for label, used in zip(labels, weight, strict=True)]
    fitted = WGCNTextClassifier().fit(texts, wrong, weight.astype(float))
    held_out = fitted.classifier_.trained_.held_out
    assert held_out is not None
    assert weight[held_out.rows].all()
    right = fitted.classes_[held_out.scores.argmax(axis=1)] == np.array(wrong)[held_out.rows]
    assert np.mean(right) == fitted.classifier_.held_out_accuracy_


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("idf", np.nan),
        ("idf", 0),
        ("idf", -1),
        ("idf", 1e30),
        ("bias", np.inf),
        ("bias", 3e38),
        ("prior", np.nan),
        ("prior", -0.5),
        ("prior", 2),
        ("word_embeddings", 3e38),
        ("spelling.idf", 1e-30),
    ],
)
def test_a_signed_model_whose_values_no_model_has_is_refused(folder: Path, name: str, value: float) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors[name].flat[0] = value
    save_file(tensors, folder / "model.safetensors")
    resign(folder)
    with pytest.raises(StoreError, match=f"'{name}' is float32"):
        TextModel.load(folder)


def test_many_classes_beside_one_with_a_long_name_take_no_memory(folder: Path) -> None:
    # As an array, these would be texts of one length: 30 GB.
    resign(folder, classes=["x" * 150_000, *(f"{i}" for i in range(50_000))])
    tracemalloc.start()
    try:
        with pytest.raises(StoreError, match="too many for one of 50,001 classes"):
            TextModel.load(folder)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("label", ["a\x1b[31m", "a\ud800", "a" * 60, "a" * (1 + (1 << 20))])
def test_labels_that_could_not_be_loaded_are_not_fitted(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgcn.store.contents._MAX_CHARACTERS", 100)
    with pytest.raises(InputError, match="The label 'a"):
        WGCNTextClassifier().fit(TEXTS, [label, "b"] * 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ngram_range": (1, 200)}, "second <= 16"),
        ({"alpha": 1e38}, "alpha must be at most 1e"),
        ({"alpha": 10**400}, "alpha must be below"),
        ({"subwords": 1e38}, "subwords must be at most 1e"),
        ({"C": 1e38}, "C must be above 0 and at most 1e18"),
        ({"window": 10**30}, "window must be below"),
    ],
)
def test_settings_whose_model_could_not_be_loaded_are_not_fitted(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        WGCNTextClassifier(**options).fit(TEXTS, ["a", "b", "a", "b"])


def test_the_largest_settings_can_be_fitted_saved_and_loaded(tmp_path: Path) -> None:
    largest = WGCNTextClassifier(ngram_range=(1, 16), alpha=1e6, subwords=1e6, C=1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        largest.fit(TEXTS, ["a", "a", "b", "b"]).save(tmp_path / "model")
    assert np.isfinite(TextModel.load(tmp_path / "model").predict_proba([*TEXTS, "unseen"])).all()


def test_what_could_not_be_loaded_is_not_saved(model: TextModel, folder: Path) -> None:
    before = (folder / "config.json").read_bytes()
    for unsound in (
        replace(model, scorer=replace(model.scorer, bias=model.scorer.bias * np.float32(np.nan))),
        replace(model, classes=np.array(["a", "b\x1b[1m"])),
        replace(model, classes=np.array([1, 2**63], np.uint64)),
        replace(model, stop_words=("a\x1b",)),
        replace(model, settings={"deep": DEEP}),
    ):
        with pytest.raises(InputError, match="could not be read back"):
            unsound.save(folder)
    assert (folder / "config.json").read_bytes() == before
