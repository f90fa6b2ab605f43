"""Embeddings from a saved embedder: what it needs, and what it refuses."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from wgcn import EmbeddingModel, TextModel, WGCNEmbedder
from wgcn.base.errors import InputError, StoreError
from wgcn.store import folder as store
from wgcn.text.vocabulary import Vocabulary
from wgcn.text.weighting import TermWeighting

TEXTS = ["red wine", "white wine", "fast car", "slow car"]


@pytest.fixture(scope="module")
def model() -> EmbeddingModel:
    return WGCNEmbedder(4).fit(TEXTS).model_


@pytest.fixture
def folder(model: EmbeddingModel, tmp_path: Path) -> Path:
    model.save(tmp_path / "embedder")
    return tmp_path / "embedder"


def resign(folder: Path, **config: object) -> None:
    """Change a folder as someone who can also compute digests would."""
    document = json.loads((folder / "config.json").read_text())
    document["config"].update(config)
    document["files"] = {
        name: store.hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in document["files"]
    }
    document["digest"] = store._digest(document)
    (folder / "config.json").write_text(json.dumps(document))


def small_model(ngram_range: tuple[int, int] = (1, 1)) -> EmbeddingModel:
    words = ["a", "b", "c", "a b"]
    table = np.array([[3, 0], [0, 2], [0, 0], [1, 1]], np.float32)
    return EmbeddingModel("words", ngram_range, Vocabulary(words), TermWeighting(np.ones(4, np.float32)), table)


def test_embedding_imports_neither_torch_nor_scipy_nor_scikit_learn(folder: Path) -> None:
    script = (
        "import sys; from wgcn import EmbeddingModel\n"
        f"print(EmbeddingModel.load({str(folder)!r}).transform(['some wine', 'zzz']).shape)\n"
        "print(*{'torch', 'scipy', 'sklearn', 'numba', 'matplotlib', 'rich'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "(2, 4)\n\n"


def test_a_row_is_the_weighted_sum_of_words_at_length_one() -> None:
    rows = small_model().transform(["a b", "A a a", "c", "zzz", ""])
    expected = [[3 / 13**0.5, 2 / 13**0.5], [1, 0], [0, 0], [0, 0], [0, 0]]
    np.testing.assert_allclose(rows, expected, rtol=1e-6)
    # "a", "b" and "a b", each of the same weight.
    np.testing.assert_allclose(small_model((1, 2)).transform(["a b"]), [[4 / 5, 3 / 5]], rtol=1e-6)


@given(st.lists(st.text(alphabet="abc zé", max_size=12), max_size=8), st.integers(1, 3))
def test_other_texts_and_threads_change_nothing(texts: list[str], n_jobs: int) -> None:
    model = small_model((1, 2))
    rows = model.transform(texts, n_jobs)
    assert rows.shape == (len(texts), 2)
    alone = [model.transform([text]) for text in texts]
    assert np.array_equal(rows, np.concatenate(alone) if alone else rows)
    lengths = np.linalg.norm(rows, axis=1)
    assert np.all((lengths == 0) | (np.abs(lengths - 1) < 1e-6))


def test_batches_and_compiled_code_give_the_same_bits(model: EmbeddingModel, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [" ".join(TEXTS[i % 4 :]) for i in range(50)]
    expected = model.transform(texts)
    monkeypatch.setattr("wgcn.scoring.terms.BATCH_CHARACTERS", 40)
    assert np.array_equal(model.transform(iter(texts), n_jobs=2), expected)
    for compiled in (False, True):
        monkeypatch.setattr("wgcn.text.tokenize.term_code.is_compiled", compiled)
        assert np.array_equal(pickle.loads(pickle.dumps(model)).transform(texts), expected)


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    embedder = WGCNEmbedder(4, ngram_range=(1, 2), min_count=1, stop_words=["the"], tokenizer="text_gcn").fit(TEXTS)
    digest = embedder.save(tmp_path / "e")
    loaded = EmbeddingModel.load(tmp_path / "e")
    texts = [*TEXTS, "the red the car", "", "zzz"]
    assert np.array_equal(loaded.transform(texts), embedder.transform(texts))
    assert (loaded.settings, loaded.report) == (embedder.model_.settings, embedder.model_.report)
    assert loaded.save(tmp_path / "again") == digest
    assert sorted(file.name for file in (tmp_path / "e").iterdir()) == [
        "README.md",
        "config.json",
        "embedder.safetensors",
        "vocabulary.txt",
    ]


@pytest.mark.parametrize(
    "config",
    [
        {"tokenizer": "eval"},
        {"ngram_range": [2, 1]},
        {"stop_words": ["of", "a"]},
        {"norm": "l3"},
        {"lead": -1},
        {"lead": False},
        {"sublinear": 1},
        {"settings": []},
        {"classes": ["a"]},
    ],
)
def test_a_signed_embedder_with_invalid_settings_is_refused(folder: Path, config: dict[str, object]) -> None:
    resign(folder, **config)
    with pytest.raises(StoreError):
        EmbeddingModel.load(folder)


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("word_embeddings", np.zeros((3, 2), np.float32)),
        ("word_embeddings", np.full((6, 2), np.inf, np.float32)),
        ("word_embeddings", np.zeros((6, 2), np.float64)),
        ("idf", np.zeros(2, np.float32)),
    ],
)
def test_a_signed_embedder_with_a_tensor_that_does_not_fit_is_refused(
    folder: Path, name: str, tensor: np.ndarray
) -> None:
    save_file({**load_file(folder / "embedder.safetensors"), name: tensor}, folder / "embedder.safetensors")
    resign(folder)
    with pytest.raises(StoreError):
        EmbeddingModel.load(folder)


def test_a_damaged_embedder_and_one_of_another_kind_are_refused(folder: Path) -> None:
    with pytest.raises(StoreError, match=r"'wgcn-embedder', but 'wgcn-model' is expected"):
        TextModel.load(folder)
    (folder / "vocabulary.txt").write_text("x\n")
    with pytest.raises(StoreError, match="is damaged"):
        EmbeddingModel.load(folder)


def test_a_tokenizer_of_your_own_transforms_but_is_not_saved(tmp_path: Path) -> None:
    embedder = WGCNEmbedder(4, tokenizer=str.split).fit(TEXTS)
    assert embedder.transform(["red wine"]).any()
    with pytest.raises(InputError, match="cannot be saved"):
        embedder.save(tmp_path / "e")
    assert not (tmp_path / "e").exists()
