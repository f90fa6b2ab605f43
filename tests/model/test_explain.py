"""Explanations from a saved folder: with numpy alone, from older folders, and nothing unsound gets in."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from wgcn import TextModel, WGCNTextClassifier
from wgcn.base.errors import StoreError
from wgcn.store import folder as store

TEXTS = ["red wine", "white wine", "red and white wine", "fast car", "slow car", "a fast red car"]


@pytest.fixture(scope="module")
def model() -> TextModel:
    return WGCNTextClassifier(n_jobs=1).fit(TEXTS, ["drink"] * 3 + ["drive"] * 3).model_


@pytest.fixture
def folder(model: TextModel, tmp_path: Path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


def change(folder: Path, **tensors: np.ndarray | None) -> None:
    """Replace tensors, or take them out, as someone who can also compute digests would."""
    file = folder / "model.safetensors"
    changed = load_file(file) | {f"split.{name}": tensor for name, tensor in tensors.items()}
    save_file({name: tensor for name, tensor in changed.items() if tensor is not None}, file)
    document = json.loads((folder / "config.json").read_text())
    document["files"][file.name] = store.hashlib.sha256(file.read_bytes()).hexdigest()
    document["digest"] = store._digest(document)
    (folder / "config.json").write_text(json.dumps(document))


def test_a_loaded_model_explains_as_the_fitted_one(model: TextModel, folder: Path) -> None:
    ours, theirs = (each.explain(["a glass of red wine"])[0] for each in (model, TextModel.load(folder)))
    assert ours.own is not None
    assert theirs.own is not None
    assert ours.own.tobytes() == theirs.own.tobytes()
    assert str(ours.neighbours) == str(theirs.neighbours)
    assert ours.total().tobytes() == theirs.total().tobytes()


def test_explaining_needs_numpy_alone(folder: Path) -> None:
    script = (
        "import sys; from wgcn import TextModel\n"
        f"model = TextModel.load({str(folder)!r})\n"
        "print(model.explain(['some wine'])[0].top(n=1)[0][0], model.top_words('drive', 1)[0][0])\n"
        "from wgcn.explain.render import as_html, as_text\n"
        "print(*{'torch', 'scipy', 'sklearn', 'numba', 'matplotlib', 'rich'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "wine car\n\n"


def test_a_folder_that_has_kept_no_split_explains_by_terms(model: TextModel, folder: Path) -> None:
    change(folder, words=None, own=None, neighbours=None, strengths=None)
    why = TextModel.load(folder).explain(["red wine"])[0]
    assert why.own is None
    assert np.array_equal(why.contributions, model.explain(["red wine"])[0].contributions)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("words", lambda t: t + np.int32(100)),
        ("words", lambda t: t - np.int32(100)),
        ("words", lambda t: t[::-1].copy()),
        ("words", lambda t: np.repeat(t[:1], len(t))),
        ("words", lambda t: t[:-1]),
        ("words", lambda t: t.astype(np.int64)),
        ("own", lambda t: t * np.float16(np.nan)),
        ("own", lambda t: t[:, :1]),
        ("own", lambda t: t.astype(np.float32)),
        ("neighbours", lambda t: t + np.int32(100)),
        ("neighbours", lambda t: t - np.int32(1)),
        ("neighbours", lambda t: t[:, 0]),
        ("neighbours", lambda _: None),
        ("strengths", lambda t: t[:, :-1]),
        ("strengths", lambda t: t + np.float16(np.inf)),
    ],
)
def test_a_signed_split_that_is_unsound_is_refused(folder: Path, name: str, value: object) -> None:
    assert callable(value)
    tensor = load_file(folder / "model.safetensors")[f"split.{name}"]
    changed = value(tensor)
    change(folder, **{name: None if changed is None else np.ascontiguousarray(changed)})
    with pytest.raises(StoreError, match="split"):
        TextModel.load(folder)


def test_a_model_without_a_graph_can_be_saved(tmp_path: Path) -> None:
    WGCNTextClassifier(alpha=0.0, n_jobs=1).fit(TEXTS, ["drink"] * 3 + ["drive"] * 3).save(tmp_path / "model")
    why = TextModel.load(tmp_path / "model").explain(["red wine"])[0]
    assert why.own is not None
    assert why.spelling is not None
    assert np.array_equal(why.own, why.contributions - why.spelling)
