"""wgcn fit, predict, evaluate and info, as a user runs them."""

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgcn import TextModel, WGCNTextClassifier
from wgcn.linear.task import Thresholds

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
    rows = dict(line.split("  ", 1) for line in out.splitlines())
    assert {name: rows[name].strip() for name in ("classes", "words", "n-grams")} == {
        "classes": "2",
        "words": "6",
        "n-grams": "4",
    }
    assert "12 texts, 12 of them labelled" in err
    assert f"wgcn predict {train.parent / 'm'}" in err
    assert sorted(file.name for file in (train.parent / "m").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "vocabulary.txt",
    ]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_label_that_is_empty_or_missing_is_none_and_the_word_nan_is_a_class(
    run: Run, tmp_path: Path, kind: str
) -> None:
    path, labels = tmp_path / f"train.{kind}", ["nan", "drive", None] * 2
    if kind == "csv":
        path.write_text("label,text\n" + "".join(f"{label or ' '},red wine\n" for label in labels))
    elif kind == "jsonl":
        lines = [json.dumps({"text": "red wine", "label": label}) for label in labels]
        lines.append('{"text": "a car"}')
        path.write_text("\n".join([*lines, '{"text": "a car", "label": NaN}']))
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"text": ["red wine"] * 6, "label": labels}), path)
    code, _, err = run("fit", path, "--model", tmp_path / "m")
    assert code == 0
    assert f"Read {8 if kind == 'jsonl' else 6} texts, 4 of them labelled" in err
    assert TextModel.load(tmp_path / "m").classes.tolist() == ["drive", "nan"]


def test_command_line_gives_the_probabilities_of_the_estimator(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("wine bar\n\nfast red thing\nzzz\n")
    code, out, _ = run("predict", model, tmp_path / "new.txt", "--proba")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out), delimiter="\t"))
    estimator = WGCNTextClassifier().fit(TEXTS, LABELS)
    expected = estimator.predict_proba(["wine bar", "", "fast red thing", "zzz"])
    assert np.array_equal(
        [[float(row[f"probability_{name}"]) for name in estimator.classes_] for row in rows], expected.round(4)
    )
    assert [row["label"] for row in rows] == estimator.predict(["wine bar", "", "fast red thing", "zzz"]).tolist()


def test_predict_reads_a_pipe_and_answers_a_label_a_line(model: Path) -> None:
    command = [sys.executable, "-m", "wgcn", "predict", str(model)]
    result = subprocess.run(command, input="red wine\nslow car\n\xff\n", capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[:2] == ["drink", "drive"]
    assert "3 texts. 20.0% of their words are not in the vocabulary" in result.stderr
    assert "1 has no word that the model can read" in result.stderr


def test_options_left_out_have_the_defaults_of_the_estimator(model: Path) -> None:
    expected, settings = WGCNTextClassifier().get_params(), TextModel.load(model).settings
    for name in ("tokenizer", "min_count", "stop_words", "window", "alpha", "subwords", "C", "class_weight"):
        assert settings[name] == expected[name]
    assert settings["ngram_range"] == str(expected["ngram_range"])


def test_help_of_fit_is_short_and_has_the_defaults_of_the_estimator(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = run("fit", "--help")
    assert code == 0
    assert len(out.splitlines()) <= 80
    monkeypatch.setenv("COLUMNS", "400")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", run("fit", "--help")[1])
    lines = {match[1]: line for line in plain.splitlines() if (match := re.match(r"│ \*? *--([A-Za-z-]+)", line))}
    assert len(lines) - 1 <= 32  # --help beside them, and five for text that does not fit into memory
    expected = WGCNTextClassifier().get_params()
    for name in ("tokenizer", "window", "alpha", "subwords", "C"):
        assert f"[default: {expected[name]}]" in lines[name]
    assert f"Default: {expected['ngram_range'][1]}; 1 with --network" in lines["ngrams"]


def test_help_loads_nothing_heavy() -> None:
    script = "import sys; sys.argv = ['wgcn', 'fit', '--help']\nfrom wgcn.cli import main\ntry: main()\n"
    script += "except SystemExit: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not set(done.stdout.splitlines()[-1].split()) & {"numpy", "scipy", "sklearn", "numba", "torch"}


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--ngrams", 3, "--alpha", 0.25, "--C", 2], {"ngram_range": (1, 3), "alpha": 0.25, "C": 2.0}),
        (
            ["--ngrams", 1, "--window", 2, "--balanced"],
            {"ngram_range": (1, 1), "window": 2, "class_weight": "balanced"},
        ),
        (["--min-count", 3, "--tokenizer", "text_gcn"], {"min_count": 3, "tokenizer": "text_gcn"}),
        (["--class-prior", "uniform"], {"class_prior": "uniform"}),
    ],
)
def test_options_reach_the_model(run: Run, train: Path, options: list[object], settings: dict[str, Any]) -> None:
    with train.open("a") as file:
        file.write("drive,fast slow red car\n,white wine\n,slow red car\n")
    assert run("fit", train, "--model", train.parent / "m", *options)[0] == 0
    model = TextModel.load(train.parent / "m")
    texts, labels = [*TEXTS, "fast slow red car", "white wine", "slow red car"], [*LABELS, "drive", None, None]
    estimator = WGCNTextClassifier(**settings).fit(texts, labels)
    for name, value in settings.items():
        assert model.settings[name] == (str(value) if isinstance(value, tuple) else value)
    assert model.vocabulary == estimator.model_.vocabulary
    np.testing.assert_allclose(model.scores(texts), estimator.model_.scores(texts), rtol=1e-4, atol=1e-5)


def test_shares_of_classes_are_those_of_texts_without_a_word(run: Run, train: Path) -> None:
    shares = ("--class-prior", "drink=1", "--class-prior", "drive=3")
    assert run("fit", train, "--model", train.parent / "m", *shares)[0] == 0
    model = TextModel.load(train.parent / "m")
    np.testing.assert_allclose(model.predict_proba(["zzz"]), [[0.25, 0.75]], rtol=1e-5)
    code, _, err = run("fit", train, "--model", train.parent / "n", "--class-prior", "drink=1")
    assert code == 2
    assert "'drive'" in err


@pytest.mark.parametrize(
    "options",
    [
        ["--ngrams", 0],
        ["--alpha", -1],
        ["--window", 1],
        ["--class-prior", "half"],
        ["--class-prior", "=0.5"],
        ["--class-prior", "drink=much"],
    ],
)
def test_values_out_of_range_are_refused_before_any_work(run: Run, train: Path, options: list[object]) -> None:
    code, out, err = run("fit", train, "--model", train.parent / "m", *options)
    assert (code, out) == (2, "")
    assert str(options[0]) in err
    assert not (train.parent / "m").exists()


def test_stop_words_do_not_part_ngrams_at_prediction(run: Run, tmp_path: Path) -> None:
    texts = ["king of spain", "king of the hill", "queen of spain", "queen of the hill"] * 3
    rows = "".join(f"{i % 4 in (0, 3)},{text}\n" for i, text in enumerate(texts))
    (tmp_path / "train.csv").write_text(f"label,text\n{rows}")
    (tmp_path / "stop.txt").write_text("the\nof\nthe\n")
    # The label depends on the pair of words, and on none of them alone.
    assert run("fit", tmp_path / "train.csv", "--model", tmp_path / "m", "--stop-words", tmp_path / "stop.txt")[0] == 0
    model = TextModel.load(tmp_path / "m")
    assert model.stop_words == ("of", "the")
    assert {"king spain", "queen hill"} < set(model.vocabulary)
    assert model.predict(texts).tolist() == [str(i % 4 in (0, 3)).lower() for i in range(12)]


def test_predict_writes_a_file_whole(run: Run, model: Path, train: Path) -> None:
    output = train.parent / "labels.txt"
    assert run("predict", model, train, "--output", output)[:2] == (0, "")
    assert output.read_text().splitlines() == LABELS


def test_a_csv_of_labels_with_commas_line_breaks_and_none(run: Run, tmp_path: Path) -> None:
    rows = [("red, dry", "red wine"), ("two\nlines", "fast car")] * 4
    with (tmp_path / "train.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("label", "text"), *rows])
    (tmp_path / "new.txt").write_text("red wine\nfast car\n")
    assert run("fit", tmp_path / "train.csv", "-m", tmp_path / "m", "--label-separator", ";")[0] == 0
    assert run("predict", tmp_path / "m", tmp_path / "new.txt")[1].splitlines() == ["red, dry", "two lines"]
    assert run("predict", tmp_path / "m", tmp_path / "new.txt", "-o", tmp_path / "new.csv")[0] == 0
    with (tmp_path / "new.csv").open(newline="") as file:
        assert [row["label"] for row in csv.DictReader(file)] == ["red, dry", "two\nlines"]


def test_predict_leaves_no_half_file(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "wine"}\nnot json\n')
    code, _, err = run("predict", model, tmp_path / "bad.jsonl", "--output", tmp_path / "labels.txt")
    assert code == 2
    assert "line 2" in err
    assert not (tmp_path / "labels.txt").exists()


def test_evaluate_measures_and_draws(run: Run, model: Path, train: Path) -> None:
    code, out, err = run("evaluate", model, train, "--picture", train.parent / "confusion.png")
    assert code == 0
    assert "accuracy  100.00% (95% interval 75.8 to 100.0, 12 texts)" in out
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
    assert "texts     1\n" in out
    assert "1 of 2 classes, which no text has or is given" in out


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
    assert "3 texts, 2 of them labelled" in err
    report = TextModel.load(tmp_path / "m").report
    assert (report["n_documents"], report["n_labelled"]) == (4, 2)


def test_several_labels_a_text(run: Run, tmp_path: Path) -> None:
    rows = "drink;red,red wine\ndrink,white wine\ndrive,car\n" * 4
    (tmp_path / "train.csv").write_text("label,text\n" + rows)
    assert run("fit", tmp_path / "train.csv", "--model", tmp_path / "m", "--label-separator", ";")[0] == 0
    (tmp_path / "new.txt").write_text("red wine\ncar\n")
    assert run("predict", tmp_path / "m", tmp_path / "new.txt")[1].splitlines() == ["drink;red", "drive"]
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
        ("label,text\na,x\nb,y\n", ["--window", "5,50"], "--window"),
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


def test_the_network_can_be_fitted_and_resumed(run: Run, train: Path) -> None:
    pytest.importorskip("torch", reason="the network needs torch")
    folder = train.parent
    arguments = ["--network", "--epochs", 6]
    assert run("fit", train, "--model", folder / "whole", *arguments)[0] == 0
    whole = TextModel.load(folder / "whole")
    assert whole.scorer.word_embeddings.shape[1] == 250
    assert whole.ngram_range == (1, 1)
    assert whole.settings["model"] == "network"
    for name in ("kept", "again"):
        assert run("fit", train, "--model", folder / name, *arguments, "--checkpoint", folder / "state")[0] == 0
    tables = [(folder / name / "model.safetensors").read_bytes() for name in ("whole", "kept", "again")]
    assert tables[0] == tables[1] == tables[2]


def test_ngrams_count_in_the_network(run: Run, train: Path) -> None:
    pytest.importorskip("torch", reason="the network needs torch")
    arguments = ["--network", "--epochs", 2, "--ngrams", 2]
    assert run("fit", train, "--model", train.parent / "m", *arguments)[0] == 0
    model = TextModel.load(train.parent / "m")
    assert model.ngram_range == (1, 2)
    assert model.vocabulary.are_ngrams.sum() == 4


@pytest.fixture
def varied(train: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """60 texts of which none is a near-copy of another, enough to choose settings by."""
    monkeypatch.setattr("wgcn.linear.task.THRESHOLDS", Thresholds(tune=50, hold_out=50))
    rng, kinds = np.random.default_rng(0), {"drink": "red white wine glass grape", "drive": "fast slow car road wheel"}
    others = [f"thing{i}" for i in range(40)]
    rows = [
        (label, " ".join([*rng.choice(words.split(), 3), *rng.choice(others, 5)]))
        for _ in range(30)
        for label, words in kinds.items()
    ]
    with train.open("w", newline="") as file:
        csv.writer(file).writerows([("label", "text"), *rows])
    return train


def test_too_few_labels_choose_nothing(run: Run, train: Path) -> None:
    assert "settings chosen" not in run("fit", train, "--model", train.parent / "m")[1]


def test_fit_chooses_settings(run: Run, varied: Path) -> None:
    train = varied
    assert "settings chosen" not in run("fit", train, "--model", train.parent / "m", "--no-tune")[1]
    code, out, err = run("fit", train, "--model", train.parent / "m", "--overwrite")
    assert code == 0
    lines = err.splitlines()
    assert lines[0].startswith("Read ")
    assert lines[-1].startswith("The model is in ")
    assert all(" s  " in line for line in lines[1:-1])  # one line per stage
    assert any("Choosing settings: " in line and " fits" in line for line in lines)
    assert "C 0.5, lead 0, naive_bayes 0.5" in out
    assert "| settings chosen | C 0.5, lead 0, naive_bayes 0.5" in (train.parent / "m/README.md").read_text()
    assert TextModel.load(train.parent / "m").predict(TEXTS).tolist() == LABELS


def test_ctrl_c_while_settings_are_chosen_leaves_nothing(
    run: Run, varied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = varied

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("wgcn.linear.training.tune", interrupt)
    assert run("fit", train, "--model", train.parent / "m", "--tune")[:2] == (130, "")
    assert [entry.name for entry in train.parent.iterdir()] == ["train.csv"]


def test_extend_adds_words_and_says_how_many(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("body\nmerlot is red wine\nturbo for a fast car\n")
    (tmp_path / "other.csv").write_text("body\na white merlot\nturbo car\n")
    larger = tmp_path / "larger"
    files = (tmp_path / "more.csv", tmp_path / "other.csv")
    code, out, err = run("extend", model, *files, "--text-column", "body", "--output", larger)
    assert (code, out) == (0, "words added  3 from 4 texts\n")
    assert f"wgcn predict {larger}" in err
    before, after = TextModel.load(model), TextModel.load(larger)
    assert after.vocabulary.words[len(before.vocabulary) :] == ("a", "merlot", "turbo")
    assert after.predict(["merlot", "turbo"]).tolist() == ["drink", "drive"]
    assert "3 from 4 texts" in run("info", larger)[1]


def test_extend_with_nothing_to_add(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("red wine\n")
    code, out, _ = run("extend", model, tmp_path / "more.txt", "--output", tmp_path / "same")
    assert (code, out) == (0, "words added  0: the texts have none that can be added\n")
    assert TextModel.load(tmp_path / "same").vocabulary == TextModel.load(model).vocabulary


def test_extend_says_what_it_cannot_use(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("red wine\n")
    for arguments, message in (
        ((model, tmp_path / "none.txt", "-o", tmp_path / "m"), "none.txt"),
        ((tmp_path / "none", tmp_path / "more.txt", "-o", tmp_path / "m"), "no model folder"),
    ):
        code, _, err = run("extend", *arguments)
        assert code == 2
        assert message in err.replace("\n", "")
    assert not (tmp_path / "m").exists()


def write_rows(path: Path, *columns: list[str]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *zip(*columns, strict=True)])
    return path


COMMANDS = {
    "fit": lambda folder: ["--model", folder / "m"],
    "fit out of core": lambda folder: ["--model", folder / "n", "--memory", "1GB"],
    "fit network": lambda folder: ["--model", folder / "o", "--network", "--epochs", "2"],
    "evaluate": lambda folder: [],
    "suggest": lambda folder: [],
    "review": lambda folder: [],
    "curve": lambda folder: [],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_labels_that_stand_for_none_are_counted_once_or_left_out(
    run: Run, model: Path, tmp_path: Path, command: str
) -> None:
    texts = [f"{text} number{i}" for i, text in enumerate([*TEXTS, *TEXTS])]
    path = write_rows(
        tmp_path / "a.csv", texts, ["N/A" if i % 6 == 0 else "nan" if i == 1 else y for i, y in enumerate(LABELS * 2)]
    )
    own = [command.split()[0], *([model] if command == "evaluate" else []), path, *COMMANDS[command](tmp_path)]
    err = run(*own)[2]
    assert "5 rows of" in err
    assert "--missing N/A,nan" in err
    assert err.count("often stand") == 1
    replace = ["--overwrite"] if command.startswith("fit") else []
    code, out, err = run(*own, "--missing", "N/A,nan", *replace)
    assert (code, err.count("often stand")) == (0, 0), err
    assert "N/A" not in out


@pytest.mark.parametrize("command", COMMANDS)
def test_columns_that_are_mixed_up_are_an_error_of_every_command(
    run: Run, model: Path, tmp_path: Path, command: str
) -> None:
    texts = [f"{text} number{i}" for i, text in enumerate(TEXTS * 2)]
    path = write_rows(tmp_path / "a.csv", LABELS * 2, texts)
    own = [command.split()[0], *([model] if command == "evaluate" else []), path, *COMMANDS[command](tmp_path)]
    code, _, err = run(*own)
    assert (code, "look swapped" in err, "Fitting" in err) == (2, True, False), err
    code, _, err = run(*own, "--label-column", "0")
    assert (code, "has texts and labels at once" in err) == (2, True), err
    path.write_text("text,label\nred wine,drink\nso, so wine,drink\n")
    code, _, err = run(*own)
    assert (code, "line 3: the row has 3 fields, but the header has 2" in err) == (2, True), err


@pytest.mark.parametrize("command", COMMANDS)
def test_labels_that_differ_by_a_nul_are_refused(run: Run, model: Path, tmp_path: Path, command: str) -> None:
    path = tmp_path / "a.jsonl"
    labels = [label + "\0" * (i % 8 < 2) for i, label in enumerate(LABELS)]
    path.write_text("\n".join(json.dumps({"text": t, "label": y}) for t, y in zip(TEXTS, labels, strict=True)))
    own = [command.split()[0], *([model] if command == "evaluate" else []), path, *COMMANDS[command](tmp_path)]
    code, _, err = run(*own)
    assert (code, r"'drink\x00'" in err) == (2, True), err
