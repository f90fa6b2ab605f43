"""wgcn fit --memory, and wgcn predict with several files."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from wgcn import TextModel, WGCNTextClassifier

Run = Callable[..., tuple[int, str, str]]
TEXTS = ["red wine", "white wine", "fast car", "slow car", "a fast red car", "a glass of white"] * 3
LABELS = ["drink", "drink", "drive", "drive", "drive", None] * 3


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    for path, rows in zip(paths, (slice(10), slice(10, None)), strict=True):
        pairs = zip(TEXTS[rows], LABELS[rows], strict=True)
        path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in pairs))
    return paths


def test_several_files_are_fitted_and_predicted(run: Run, files: list[Path], tmp_path: Path) -> None:
    model, found = tmp_path / "model", tmp_path / "found"
    code, _, said = run("fit", *files, "--memory", "2GB", "--workers", 1, "--model", model)
    assert code == 0, said
    assert not (tmp_path / "model.work").exists()
    expected = WGCNTextClassifier().fit(TEXTS, LABELS).model_
    assert TextModel.load(model).predict_proba(TEXTS) == pytest.approx(expected.predict_proba(TEXTS), abs=1e-3)
    code, _, said = run("predict", model, *files, "--output", found, "--output-format", "jsonl")
    assert code == 0, said
    lines = [line for name in ("first", "second") for line in (found / f"{name}.jsonl").read_text().splitlines()]
    rows = list(map(json.loads, lines))
    assert [row["text"] for row in rows] == TEXTS
    assert [row["label_predicted"] for row in rows] == expected.predict(TEXTS).tolist()


def test_what_does_not_go_together_is_said(run: Run, files: list[Path], tmp_path: Path) -> None:
    model = tmp_path / "model"
    assert "give --memory" in run("fit", *files, "--model", model)[2]
    assert "leave out --memory" in run("fit", *files, "--memory", "2GB", "--network", "--model", model)[2]
    assert "are for work out of core" in run("fit", files[0], "--work", tmp_path / "w", "--model", model)[2]
    WGCNTextClassifier().fit(TEXTS, LABELS).save(model)
    assert "--output DIR" in run("predict", model, *files)[2]
