"""Places and values that cannot be used are told before any work, which would be lost; and nothing is left behind."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from wgcn import TextModel, WGCNEmbedder, WGCNTextClassifier
from wgcn.estimators.preparation import Preparation
from wgcn.scoring.scorer import Scorer
from wgcn.text.corpus import Corpus

Run = Callable[..., tuple[int, str, str]]

TEXTS = ["red wine", "white wine", "fast car", "slow car"]
LABELS = ["drink", "drink", "drive", "drive"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with texts, a saved model, graph and embedder, and things in the way; no command may begin its work."""
    rows = "".join(f"{label},{text}\n" for label, text in zip(LABELS, TEXTS, strict=True))
    (tmp_path / "train.csv").write_text(f"label,text\n{rows}")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "thesis.tex").write_text("mine")
    model = WGCNTextClassifier().fit(TEXTS, LABELS)
    model.save(tmp_path / "model")
    model.word_graph_.save(tmp_path / "graph")
    WGCNEmbedder(n_components=2).fit(TEXTS).save(tmp_path / "embedder")

    def too_late(*_: object, **__: object) -> None:
        pytest.fail("the work was begun")

    monkeypatch.setattr(Preparation, "prepare", too_late)
    monkeypatch.setattr(Scorer, "scores", too_late)
    monkeypatch.setattr(TextModel, "extend", too_late)
    monkeypatch.setattr(Corpus, "from_texts", too_late)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


FIT = ["fit", "train.csv"]
NETWORK = [*FIT, "--model", "new", "--network"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*FIT, "--model", "file"], "file exists and is not a folder"),
        ([*FIT, "--model", "file/new"], "is not a folder"),
        ([*FIT, "--model", "others"], "not a saved model"),
        ([*FIT, "--model", "graph"], "holds 'wgcn-graph', which 'wgcn-model' must not replace"),
        ([*NETWORK, "--checkpoint", "others"], "others is a folder"),
        ([*NETWORK, "--checkpoint", "file/state"], "file/state cannot be written"),
        ([*FIT, "--model", "new", "--epochs", 3], "give --network too"),
        ([*FIT, "--model", "new", "--checkpoint", "state"], "give --network too"),
        ([*FIT, "--model", "new", "--C", 0], "C must be above 0"),
        ([*FIT, "--model", "new", "--class-prior", "drink=1", "--class-prior", "sleep=1"], "'sleep'"),
        ([*FIT, "--model", "new", "--class-prior", "drink=1"], "'drive'"),
        ([*FIT, "--model", "new", "--class-prior", "drink=0", "--class-prior", "drive=1"], "above 0"),
        ([*FIT, "--model", "new", "--class-prior", "uniform", "--label-separator", ";"], "one class each"),
        ([*FIT, "--model", "new", "--balanced", "--label-separator", ";"], "one class each"),
        (["extend", "model", "train.csv", "-o", "graph"], "holds 'wgcn-graph'"),
        (["extend", "model", "train.csv", "-o", "others"], "not a saved model"),
        (["embed", "train.csv", "-o", "file/v.npy"], "file/v.npy cannot be written"),
        (["embed", "train.csv", "-o", "new/v.npy", "--save", "model"], "holds 'wgcn-model'"),
        (["embed", "train.csv", "-o", "new/v.npy", "--save", "file"], "not a folder"),
        (["graph", "build", "train.csv", "-o", "model"], "holds 'wgcn-model', which 'wgcn-graph' must not replace"),
        (["graph", "build", "train.csv", "-o", "others"], "not a saved graph"),
        (["graph", "plot", "graph", "wine", "-o", "wine.gif"], "A picture ends in .png, .svg, .pdf, got 'wine.gif'"),
        (["graph", "plot", "graph", "wine", "-o", "file/wine.png"], "file/wine.png cannot be written"),
        (["evaluate", "model", "train.csv", "--picture", "new/c.bmp"], "A picture ends in"),
        (["evaluate", "model", "train.csv", "--picture", "file/c.png"], "file/c.png cannot be written"),
        (["predict", "model", "train.csv", "-o", "others"], "others is a folder"),
        (["predict", "model", "train.csv", "-o", "file/labels.txt"], "file/labels.txt cannot be written"),
    ],
)
def test_what_cannot_be_used_is_told_before_any_work(
    run: Run, place: Path, arguments: list[object], message: str
) -> None:
    before = contents(place)
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())
    assert contents(place) == before


HELD = "holds a model of 4 documents, 2 classes, fitted on 20"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*FIT, "--model", "model"], HELD),
        (["extend", "model", "file.txt", "-o", "model2"], HELD),
        (["embed", "train.csv", "-o", "full.npy"], "full.npy is there already, 4 bytes from 20"),
        (["embed", "train.csv", "-o", "new.npy", "--save", "embedder"], "holds an embedder of 4 documents, fitted on"),
        (["graph", "build", "train.csv", "-o", "graph"], "holds a graph"),
        (["graph", "plot", "graph", "wine", "-o", "full.png"], "full.png is there already"),
        (["predict", "model", "train.csv", "-o", "full.txt"], "full.txt is there already"),
        (["predict", "model", "train.csv", "test.csv", "-o", "full"], "full/train.csv is there already"),
        (["evaluate", "model", "train.csv", "--picture", "full.png"], "full.png is there already"),
        (["explain", "model", "wine", "--html", "full.html"], "full.html is there already"),
        (["export", "model", "--html", "full.html"], "full.html is there already"),
        (["export", "model", "--js", "package"], "holds an exported model"),
        (["review", "train.csv", "-o", "full.csv"], "full.csv is there already"),
        (["suggest", "train.csv", "-o", "full.csv"], "full.csv is there already"),
        (["curve", "train.csv", "-o", "full.png"], "full.png is there already"),
    ],
)
def test_what_is_there_is_named_and_not_replaced_unasked(
    run: Run, place: Path, arguments: list[object], message: str
) -> None:
    for name in ("full.npy", "full.png", "full.txt", "full.html", "full.csv", "full/train.csv"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("mine")
    shutil.copytree(place / "model", place / "model2")
    shutil.copy(place / "train.csv", place / "test.csv")
    (place / "file.txt").write_text("more text")
    (place / "package").mkdir()
    (place / "package" / "package.json").write_text('{"wgcn": "0"}')
    before = contents(place)
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())
    assert "--overwrite" in err
    assert contents(place) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "model", "train.csv", "-o", "train.csv"],
        ["predict", "model", "train.csv", "-o", "link.csv"],
        ["predict", "model", "link.csv", "-o", "train.csv"],
        ["predict", "model", "train.csv", "-o", "hard.csv"],
        ["predict", "model", "train.csv", "test.csv", "-o", "."],
        ["extend", "model", "test.csv", "-o", "model"],
        ["extend", "model", "test.csv", "-o", "model-link"],
        ["suggest", "train.csv", "-o", "train.csv"],
        ["review", "train.csv", "-o", "./others/../train.csv"],
        ["embed", "array.npy", "--format", "txt", "-o", "array.npy"],
    ],
)
def test_an_input_is_never_replaced(run: Run, place: Path, arguments: list[object]) -> None:
    shutil.copy(place / "train.csv", place / "test.csv")
    (place / "array.npy").write_text("red wine\n")
    (place / "link.csv").symlink_to("train.csv")
    (place / "hard.csv").hardlink_to(place / "train.csv")
    (place / "model-link").symlink_to("model")
    before = contents(place)
    code, out, err = run(*arguments, "--overwrite")
    assert (code, out) == (2, "")
    assert "is an input of this command, which it would replace" in err
    assert contents(place) == before


def test_standard_input_that_is_a_file_is_not_replaced(tmp_path: Path) -> None:
    WGCNTextClassifier().fit(TEXTS, LABELS).save(tmp_path / "model")
    (tmp_path / "new.csv").write_text("text\nwine\n")
    command = [sys.executable, "-m", "wgcn", "predict", "model", "-", "--format", "csv", "--overwrite", "-o", "new.csv"]
    with (tmp_path / "new.csv").open() as file:
        done = subprocess.run(command, stdin=file, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "is an input of this command" in done.stderr) == (2, True)
    assert (tmp_path / "new.csv").read_text() == "text\nwine\n"


def test_what_holds_nothing_and_what_is_no_file_needs_no_overwrite(run: Run, tmp_path: Path) -> None:
    WGCNTextClassifier().fit(TEXTS, LABELS).save(tmp_path / "model")
    (tmp_path / "new.txt").write_text("wine\n")
    (tmp_path / "empty.txt").touch()
    for output in (tmp_path / "empty.txt", "/dev/null"):
        assert run("predict", tmp_path / "model", tmp_path / "new.txt", "-o", output)[0] == 0
    assert (tmp_path / "empty.txt").read_text() == "drink\n"
    assert run("predict", tmp_path / "model", tmp_path / "new.txt", "-o", tmp_path / "empty.txt")[0] == 2
    assert run("predict", tmp_path / "model", tmp_path / "new.txt", "-o", tmp_path / "empty.txt", "--overwrite")[0] == 0


def test_a_work_that_fails_leaves_no_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("label,text\na,!\nb,?\n")
    outputs = {"fit": "--model", "graph build": "-o"}
    for command, option in outputs.items():
        code, _, err = run(*command.split(), tmp_path / "train.csv", option, tmp_path / "a" / "b")
        assert code == 2
        assert "no word" in err
    assert run("embed", tmp_path / "train.csv", "-o", tmp_path / "a/v.npy", "--save", tmp_path / "b")[0] == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["train.csv"]


def test_a_model_is_fitted_anew_into_its_folder_with_notes(run: Run, tmp_path: Path) -> None:
    rows = "".join(f"{label},{text}\n" for label, text in zip(LABELS, TEXTS, strict=True))
    (tmp_path / "train.csv").write_text(f"label,text\n{rows}")
    assert run("fit", tmp_path / "train.csv", "--model", tmp_path / "m")[0] == 0
    (tmp_path / "m" / "notes.txt").write_text("mine")
    assert run("fit", tmp_path / "train.csv", "--model", tmp_path / "m", "--ngrams", 1, "--overwrite")[0] == 0
    assert (tmp_path / "m" / "notes.txt").read_text() == "mine"
    assert TextModel.load(tmp_path / "m").ngram_range == (1, 1)
