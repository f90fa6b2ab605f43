"""wgcn fit, predict, evaluate and info, as a user runs them."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from wgcn import TextModel, WGCNTextClassifier

Run = Callable[..., tuple[int, str, str]]

TEXTS = ["red wine", "white wine", "fast car", "slow car"] * 3
LABELS = ["drink", "drink", "drive", "drive"] * 3


@pytest.fixture
def train(tmp_path: Path) -> Path:
    with (tmp_path / "train.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("label", "text"), *zip(LABELS, TEXTS, strict=True)])
    return tmp_path / "train.csv"


@pytest.fixture
def model(run: Run, train: Path) -> Path:
    assert run("fit", train, "--model", train.parent / "model")[0] == 0
    return train.parent / "model"


def test_fit_says_what_it_made_and_where(run: Run, train: Path) -> None:
    code, out, err = run("fit", train, "--model", train.parent / "m")
    assert code == 0
    assert "classes   2" in out
    assert "12 texts, 12 of them with a label" in err
    assert f"wgcn predict {train.parent / 'm'}" in err
    assert sorted(file.name for file in (train.parent / "m").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "vocabulary.txt",
    ]


def test_command_line_gives_the_probabilities_of_the_estimator(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("wine bar\n\nfast red thing\nzzz\n")
    code, out, _ = run("predict", model, tmp_path / "new.txt", "--proba")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out), delimiter="\t"))
    estimator = WGCNTextClassifier().fit(TEXTS, LABELS)
    expected = estimator.predict_proba(["wine bar", "", "fast red thing", "zzz"])
    assert np.array_equal([[float(row[name]) for name in estimator.classes_] for row in rows], expected)
    assert [row["label"] for row in rows] == estimator.predict(["wine bar", "", "fast red thing", "zzz"]).tolist()


def test_predict_reads_a_pipe_and_answers_a_label_a_line(model: Path) -> None:
    command = [sys.executable, "-m", "wgcn", "predict", str(model)]
    result = subprocess.run(command, input="red wine\nslow car\n\xff\n", capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[:2] == ["drink", "drive"]
    assert "3 texts. 20.0% of their words are unknown" in result.stderr
    assert "1 have no known word" in result.stderr


def test_predict_writes_a_file_whole(run: Run, model: Path, train: Path) -> None:
    output = train.parent / "labels.txt"
    assert run("predict", model, train, "--output", output)[:2] == (0, "")
    assert output.read_text().splitlines() == LABELS


def test_predict_leaves_no_half_file(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "wine"}\nnot json\n')
    code, _, err = run("predict", model, tmp_path / "bad.jsonl", "--output", tmp_path / "labels.txt")
    assert code == 2
    assert "line 2" in err
    assert not (tmp_path / "labels.txt").exists()


def test_evaluate_measures_and_draws(run: Run, model: Path, train: Path) -> None:
    code, out, err = run("evaluate", model, train, "--picture", train.parent / "confusion.png")
    assert code == 0
    assert "accuracy  100.00%" in out
    assert "macro F1  100.00%" in out
    assert "drink" in out
    assert "confusion.png" in err
    assert (train.parent / "confusion.png").read_bytes().startswith(b"\x89PNG")


def test_evaluate_names_labels_that_training_did_not_have(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("label,text\ndrink,wine\nsleep,bed\n")
    code, _, err = run("evaluate", model, tmp_path / "test.csv")
    assert code == 2
    assert "'sleep' (1)" in err
    code, out, _ = run("evaluate", model, tmp_path / "test.csv", "--skip-unknown")
    assert code == 0
    assert "texts     1" in out


def test_info_shows_the_card(run: Run, model: Path) -> None:
    assert run("info", model)[1] == (model / "README.md").read_text()


@pytest.mark.parametrize("ending", [".tsv", ".jsonl", ".parquet"])
def test_other_formats_give_the_same_model(run: Run, model: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"train{ending}"
    if ending == ".tsv":
        path.write_text("label\ttext\n" + "".join(f"{a}\t{b}\n" for a, b in zip(LABELS, TEXTS, strict=True)))
    elif ending == ".jsonl":
        rows = zip(LABELS, TEXTS, strict=True)
        path.write_text("".join(json.dumps({"text": b, "label": a}) + "\n" for a, b in rows))
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"text": TEXTS, "label": LABELS}), path)
    assert run("fit", path, "--model", tmp_path / "other")[0] == 0
    assert (tmp_path / "other/model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()


def test_empty_labels_and_a_second_file_are_unlabelled(run: Run, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("label,text\ndrink,wine\ndrive,car\n,wine merlot\n")
    (tmp_path / "more.csv").write_text("text\ncar sedan\n")
    arguments = ["--model", tmp_path / "m", "--unlabeled", tmp_path / "more.csv"]
    code, _, err = run("fit", tmp_path / "train.csv", *arguments)
    assert code == 0
    assert "3 texts, 2 of them with a label" in err
    report = TextModel.load(tmp_path / "m").report
    assert (report["n_documents"], report["n_labelled"]) == (4, 2)


def test_several_labels_a_text(run: Run, tmp_path: Path) -> None:
    rows = "drink;red,red wine\ndrink,white wine\ndrive,car\n" * 4
    (tmp_path / "train.csv").write_text("label,text\n" + rows)
    assert run("fit", tmp_path / "train.csv", "--model", tmp_path / "m", "--label-separator", ";")[0] == 0
    (tmp_path / "new.txt").write_text("red wine\ncar\n")
    assert run("predict", tmp_path / "m", tmp_path / "new.txt")[1].splitlines() == ["drink,red", "drive"]
    code, out, _ = run("evaluate", tmp_path / "m", tmp_path / "train.csv", "--label-separator", ";")
    assert code == 0
    assert "accuracy  100.00%" in out


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("label,text\na,x\na,y\n", [], "one class"),
        ("label,text\n,x\n,y\n", [], "No document has a label"),
        ("label,text\na,\nb,!\n", [], "no word in the 2 documents"),
        ("class,text\na,x\nb,y\n", [], "no column 'label'"),
        ("label,body\na,x\nb,y\n", [], "no column 'text'"),
        ("label,text\na,x\nb,y\n", ["--window", "1"], "--window"),
        ("label,text\na,x\nb,y\n", ["--C", "0"], "C must be above 0"),
    ],
)
def test_bad_training_input_is_one_message_and_leaves_nothing(
    run: Run, tmp_path: Path, content: str, options: list[str], message: str
) -> None:
    (tmp_path / "train.csv").write_text(content)
    code, out, err = run("fit", tmp_path / "train.csv", "--model", tmp_path / "m", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert [entry.name for entry in tmp_path.iterdir()] == ["train.csv"]


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "vocabulary.txt", "README.md"])
def test_a_damaged_model_is_one_message(run: Run, model: Path, train: Path, file: str) -> None:
    content = bytearray((model / file).read_bytes())
    content[len(content) // 2] ^= 1
    (model / file).write_bytes(content)
    code, out, err = run("predict", model, train)
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")


def test_the_network_can_be_fitted_interrupted_and_resumed(run: Run, train: Path) -> None:
    folder = train.parent
    arguments = ["--network", "--hidden", 4, "--device", "cpu"]
    assert run("fit", train, "--model", folder / "whole", *arguments, "--epochs", 12)[0] == 0
    assert TextModel.load(folder / "whole").scorer.word_embeddings.shape[1] == 4
    kept = ["--checkpoint", folder / "state"]
    assert run("fit", train, "--model", folder / "kept", *arguments, "--epochs", 12, *kept)[0] == 0
    assert run("fit", train, "--model", folder / "again", *arguments, "--epochs", 12, *kept, "--resume")[0] == 0
    tables = [(folder / name / "model.safetensors").read_bytes() for name in ("whole", "kept", "again")]
    assert tables[0] == tables[1] == tables[2]
    code, _, err = run("fit", train, "--model", folder / "other", *arguments, "--epochs", 9, "--resume")
    assert code == 2
    assert "resume needs a checkpoint" in err
