"""wgcn predict, fit and evaluate with the files that people have: tables in and out, and standard input."""

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgcn import TextModel, WGCNTextClassifier

Run = Callable[..., tuple[int, str, str]]

TEXTS = ["red wine", "white wine", "fast car", "slow car"] * 3
LABELS = ["drink", "drink", "drive", "drive"] * 3
NEW = ["red wine, please", "a fast\ncar", "", "zzz"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    WGCNTextClassifier().fit(TEXTS, LABELS).save(folder / "model")
    several = [["drink", "red"] if "red" in text else [label] for text, label in zip(TEXTS, LABELS, strict=True)]
    WGCNTextClassifier().fit(TEXTS, several).save(folder / "several")
    return folder / "model"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    with (tmp_path / "new.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "text"), *enumerate(NEW)])
    return tmp_path / "new.csv"


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    return lambda data: monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return list(pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist())
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    quoting: Any = {} if path.suffix == ".csv" else {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, **quoting))


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_a_table_keeps_its_columns_and_gets_labels(run: Run, model: Path, new: Path, ending: str) -> None:
    output = new.parent / f"labels.{ending}"
    assert run("predict", model, new, "--output", output, "--proba", "--top", 2)[:2] == (0, "")
    rows, loaded = rows_of(output), TextModel.load(model)
    likely = loaded.predict_proba(NEW).round(4)
    assert [row["id"] for row in rows] == ["0", "1", "2", "3"]
    assert [row["text"] for row in rows] == ([text.replace("\n", " ") for text in NEW] if ending == "tsv" else NEW)
    assert [row["label"] for row in rows] == loaded.predict(NEW).tolist()
    assert np.array_equal([float(row["confidence"]) for row in rows], likely.max(axis=1))
    assert np.array_equal([[float(row["probability_drink"]), float(row["probability_drive"])] for row in rows], likely)
    assert [float(row["unknown_words"]) for row in rows] == [0.3333, 0.3333, 1, 1]
    if ending == "jsonl":
        top = [[(each["label"], each["confidence"]) for each in row["top"]] for row in rows]
    else:
        top = [[(row[f"label{n}"], float(row[f"confidence{n}"])) for n in ("", "_2")] for row in rows]
    expected = [sorted(zip(loaded.classes, row, strict=True), key=lambda pair: -pair[1]) for row in likely.tolist()]
    assert top == expected


def test_what_is_taken_is_told(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "new.jsonl").write_text('{"label": 5, "text": "red wine", "more": {"a": [1.50]}}\n')
    code, out, err = run("predict", model, tmp_path / "new.jsonl", "--output-format", "jsonl")
    assert code == 0
    assert "new ones are named 'label_predicted'" in err
    row = json.loads(out)
    assert (row["label"], row["label_predicted"], row["more"]) == (5, "drink", {"a": [1.5]})


def test_parquet_keeps_its_types(run: Run, model: Path, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"n": pa.array([1, None], pa.int16()), "text": ["wine", "car"], "tags": [["a"], None]})
    pq.write_table(table, tmp_path / "new.parquet")
    assert run("predict", model, tmp_path / "new.parquet", "-o", tmp_path / "out.parquet")[0] == 0
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.schema.types[:3] == table.schema.types
    assert found.select(["n", "text", "tags"]).to_pylist() == table.to_pylist()
    assert found.column("label").to_pylist() == ["drink", "drive"]


@pytest.mark.parametrize(
    ("options", "header"),
    [
        (["--confidence"], "label confidence unknown_words"),
        (["--top", "5"], "label confidence label_2 confidence_2"),
        (["--proba"], "label confidence probability_drink probability_drive"),
    ],
)
def test_options_make_a_table_of_standard_output(
    run: Run, model: Path, new: Path, options: list[str], header: str
) -> None:
    code, out, _ = run("predict", model, new, *options)
    lines = [line.split("\t") for line in out.splitlines()]
    assert (code, lines[0]) == (0, header.split())
    assert [len(line) for line in lines] == [len(lines[0])] * 5
    assert [line[0] for line in lines[1:]] == TextModel.load(model).predict(NEW).tolist()
    assert all(len(line[1]) == 6 for line in lines[1:])  # 0.1234


def test_overlong_line_of_standard_input_is_an_error(
    run: Run, model: Path, stdin: Callable[[bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wgcn.io.tables.MAX_LINE", 100)
    stdin(b"red wine\n" + b"x" * 99 + b"\n")
    assert run("predict", model)[0] == 0
    stdin(b"red wine\n" + b"x" * 101)
    code, _, err = run("predict", model)
    assert (code, err) == (2, "Error: Standard input, line 2: the line is longer than 100 bytes. Split it.\n")


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv", "parquet"])
def test_huge_numbers_and_deep_values_of_json_are_kept(run: Run, model: Path, tmp_path: Path, kind: str) -> None:
    deep = "[" * 90 + "]" * 90
    numbers = [f"1{'0' * 5000}", f"-1{'0' * 200}", "1e999", deep]
    lines = [f'{{"text": "red wine", "n": {number}}}\n' for number in numbers]
    (tmp_path / "new.jsonl").write_text("".join(lines))
    assert run("predict", model, tmp_path / "new.jsonl", "-o", tmp_path / f"out.{kind}")[0] == 0
    found = [row["n"] for row in rows_of(tmp_path / f"out.{kind}")]
    assert [each if isinstance(each, str) else json.dumps(each) for each in found] == numbers


def test_several_labels(run: Run, model: Path, new: Path) -> None:
    several = model.with_name("several")
    code, out, _ = run("predict", several, new, "--output-format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert (code, rows[0]["label"], rows[2]["label"]) == (0, "drink;red", "")
    assert len(rows[0]["confidence"].split(";")) == 2
    row = json.loads(run("predict", several, new, "--output-format", "jsonl")[1].splitlines()[0])
    assert (row["label"], len(row["confidence"])) == (["drink", "red"], 2)
    code, _, err = run("predict", several, new, "--top", 2)
    assert code == 2
    assert "--proba" in err


def test_standard_input_with_a_format(run: Run, model: Path, stdin: Callable[[bytes], None], new: Path) -> None:
    stdin(b'[{"body": "red wine"}, {"body": "a car"}]')
    assert run("predict", model, "-", "--format", "json", "--text-column", "body")[1] == "drink\ndrive\n"
    stdin("body;n\nröd wine;1\n".encode("cp1252"))
    code, out, err = run("predict", model, "-", "--format", "csv", "--text-column", "body", "--output-format", "csv")
    assert (code, out.splitlines()[0]) == (0, "body,n,label,confidence,unknown_words")
    assert "semicolons" in err
    assert "Windows-1252" in err
    stdin(b"body,n\nred wine,1\n")  # a column, but of what?
    code, out, err = run("predict", model, "-", "--text-column", "body")
    assert (code, out) == (2, "")
    assert "--format" in err
    stdin(b"red wine\ncar\n")
    assert run("predict", model, "--output-format", "csv")[1].splitlines()[1].startswith("red wine,drink,0.")
    stdin(b"")
    assert run("predict", model, "--output-format", "csv")[:2] == (0, "text,label,confidence,unknown_words\n")


def test_fit_and_evaluate_read_standard_input(
    run: Run, stdin: Callable[[bytes], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "more.txt").write_text("red car\n")
    data = "".join(json.dumps({"d": {"t": t}, "label": label}) + "\n" for t, label in zip(TEXTS, LABELS, strict=True))
    stdin(data.encode())
    arguments = ["--format", "jsonl", "--text-column", "d.t"]
    code, _, err = run("fit", "-", "-m", tmp_path / "m", *arguments)
    assert (code, "Read 12 texts, 12 of them labelled" in err) == (0, True)
    stdin(data.encode())
    code, out, _ = run("evaluate", tmp_path / "m", "-", *arguments)
    assert (code, "accuracy  100.00% (95% interval 75.8 to 100.0, 12 texts)" in out) == (0, True)
    stdin(b"label,text\ndrink,wine\ndrive,car\n")
    unlabelled = ["--unlabeled", tmp_path / "more.txt"]  # whose name says what it is
    assert run("fit", "-", "-m", tmp_path / "m", "--format", "csv", *unlabelled, "--overwrite")[0] == 0
    assert TextModel.load(tmp_path / "m").report["n_documents"] == 3
    stdin(data.encode())
    code, _, err = run("evaluate", tmp_path / "m", "-")
    assert (code, "--format" in err) == (2, True)


def test_lists_of_labels_need_no_separator(run: Run, tmp_path: Path, model: Path) -> None:
    rows = [{"text": "red wine", "label": ["drink", "red"]}, {"text": "car", "label": "drive"}] * 4
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert run("fit", tmp_path / "train.jsonl", "-m", tmp_path / "m")[0] == 0
    loaded = TextModel.load(tmp_path / "m")
    assert (loaded.scorer.multilabel, loaded.classes.tolist()) == (True, ["drink", "drive", "red"])
    code, out, _ = run("evaluate", tmp_path / "m", tmp_path / "train.jsonl")
    assert (code, "accuracy  100.00%" in out) == (0, True)
    code, _, err = run("evaluate", model, tmp_path / "train.jsonl", "--skip-unknown")
    assert (code, "texts     4" in run("evaluate", model, tmp_path / "train.jsonl", "--skip-unknown")[1]) == (0, True)
    (tmp_path / "two.jsonl").write_text('{"text": "x", "label": ["drink", "drive"]}')
    code, _, err = run("evaluate", model, tmp_path / "two.jsonl")
    assert (code, "one label per text" in err) == (2, True)


def test_every_command_that_reads_files_has_the_same_options(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    names = ("--text-column", "--no-header", "--delimiter", "--encoding", "--format")
    for command in ("fit", "predict", "evaluate", "extend", "embed", "graph build"):
        monkeypatch.setattr(sys, "argv", ["wgcn"])
        out = run(*command.split(), "--help")[1]
        assert [name for name in names if name not in out] == [], command


def test_options_of_reading_reach_every_command(run: Run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "odd.data"
    path.write_bytes("größe~drink\nred wine merlot merlot~drink\ncar turbo turbo~drive\n".encode("utf-16"))
    options = ["--format", "csv", "--delimiter", "~", "--encoding", "utf-16", "--no-header", "--text-column", "0"]
    for command in (
        ["predict", model, path],
        ["evaluate", model, path, "--label-column", "1"],
        ["fit", path, "--label-column", "1", "-m", tmp_path / "m"],
        ["extend", model, path, "-o", tmp_path / "larger"],
        ["embed", path, "--components", "2", "-o", tmp_path / "v.npy"],
        ["graph", "build", path, "--min-count", "1", "-o", tmp_path / "g"],
    ):
        code, _, err = run(*command, *options)
        assert code == 0, err
        assert "Warning" not in err
    assert np.load(tmp_path / "v.npy").shape == (3, 2)
    assert TextModel.load(tmp_path / "m").report["n_documents"] == 3


GERMAN = "Die Katze sitzt auf der Matte und schläft"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that was fitted to so many texts that a tenth was held out."""
    folder, rng = tmp_path_factory.mktemp("judged"), np.random.default_rng(0)
    kinds = [("drink", "red white wine glass grape cork"), ("drive", "fast slow car road wheel gear")] * 100
    others = ["the", "a", "with", *(f"thing{i}" for i in range(40))]
    texts = [" ".join([*rng.choice(words.split(), 3), *rng.choice(others, 5)]) for _, words in kinds]
    WGCNTextClassifier().fit(texts, [label for label, _ in kinds]).save(folder / "model")
    return folder / "model"


def test_an_answer_that_is_left_out_is_an_empty_line(run: Run, judged: Path, stdin: Callable[[bytes], None]) -> None:
    stdin(f"red wine\n{GERMAN}\nfast car with a wheel\n\n".encode())
    code, out, _ = run("predict", judged, "--abstain", "0.6")
    assert (code, out) == (0, "drink\n\ndrive\n\n")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_table_gets_sets_of_labels_and_how_strange_its_texts_are(run: Run, judged: Path, ending: str) -> None:
    texts, output = ["zzz", "red wine with a glass", GERMAN], judged.parent / f"answers.{ending}"
    source = judged.parent / "texts.csv"
    source.write_text("text\n" + "".join(f"{text}\n" for text in texts), encoding="utf-8")
    options = ["--coverage", "0.8", "--scope", "--abstain", "0.6", "--output", output]
    assert run("predict", judged, source, *options)[:2] == (0, "")
    rows, model = rows_of(output), TextModel.load(judged)
    sets, nothing = model.predict_set(texts, 0.8), "" if ending == "csv" else None
    assert [row["label"] for row in rows] == [nothing, "drink", nothing]
    assert [row["set"] for row in rows] == ([",".join(names) for names in sets] if ending == "csv" else sets)
    assert [round(float(row["out_of_scope"]), 4) for row in rows] == model.out_of_scope(texts).round(4).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--abstain", "80"], "abstain must be a probability above 0 and below 1, got 80"),
        (["--coverage", "1"], "coverage must be above 0 and below 1, got 1"),
        (["--coverage", "0.999"], "need at least 999 held-out texts, but training held out 20"),
    ],
)
def test_what_cannot_be_answered_is_said_before_a_text_is_read(
    run: Run, judged: Path, options: list[str], message: str
) -> None:
    code, out, err = run("predict", judged, *options)  # standard input is closed
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("option", [["--abstain", "0.5"], ["--coverage", "0.5"], ["--scope"]])
def test_a_model_that_cannot_tell_says_why(run: Run, tmp_path: Path, option: list[str]) -> None:
    WGCNTextClassifier().fit(["red wine", "fast car"], ["drink", "drive"]).save(tmp_path / "model")
    code, _, err = run("predict", tmp_path / "model", *option)
    assert code == 2
    assert "does not know how it does on held-out texts" in err


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("separator", [None, "|"])
def test_several_labels_that_are_written_are_read_back(
    run: Run, tmp_path: Path, ending: str, separator: str | None
) -> None:
    labels = [["wine, beer"], ["cars"], ["cars", "wine, beer"]] * 8
    texts = ["red wine", "fast car", "car wine"] * 8
    WGCNTextClassifier().fit(texts, labels).save(tmp_path / "m")
    (tmp_path / "new.txt").write_text("\n".join(texts))
    option = [] if separator is None else ["--label-separator", separator]
    output = tmp_path / f"out.{ending}"
    assert run("predict", tmp_path / "m", tmp_path / "new.txt", "-o", output, *option)[0] == 0
    code, out, _ = run("evaluate", tmp_path / "m", output, "--label-separator", separator or ";")
    assert (code, "accuracy  100.00%" in out, "texts     24" in out) == (0, True, True)


def test_a_separator_that_labels_hold_is_an_error_before_any_work(run: Run, model: Path, tmp_path: Path) -> None:
    several = [["a;b"], ["c"], ["a;b", "c"]] * 4
    WGCNTextClassifier().fit(["red wine", "fast car", "car wine"] * 4, several).save(tmp_path / "m")
    (tmp_path / "new.txt").write_text("red wine\n")
    code, out, err = run("predict", tmp_path / "m", tmp_path / "new.txt", "-o", tmp_path / "out.csv")
    assert (code, out, "'a;b'" in err, "--label-separator" in err) == (2, "", True, True)
    assert not (tmp_path / "out.csv").exists()
    assert run("predict", tmp_path / "m", tmp_path / "new.txt", "--label-separator", "/")[1] == "a;b\n"
    assert run("predict", tmp_path / "m", tmp_path / "new.txt", "--output-format", "jsonl")[0] == 0
    for folder, given in ((tmp_path / "m", ""), (tmp_path / "m", "\t"), (model, ";")):
        assert run("predict", folder, tmp_path / "new.txt", "--label-separator", given)[:2] == (2, "")
    assert run("evaluate", tmp_path / "m", tmp_path / "new.txt", "--label-separator", "")[0] == 2


def test_columns_of_probabilities_are_named_after_their_classes(run: Run, tmp_path: Path) -> None:
    names = ["confidence", "label", "text"]
    WGCNTextClassifier().fit(["red wine", "fast car", "hot oven"] * 4, names * 4).save(tmp_path / "m")
    (tmp_path / "new.txt").write_text("red wine\n")
    assert run("predict", tmp_path / "m", tmp_path / "new.txt", "--proba", "-o", tmp_path / "out.csv")[0] == 0
    (row,) = rows_of(tmp_path / "out.csv")
    added = [f"probability_{name}" for name in names]
    assert list(row) == ["text", "label", "confidence", "unknown_words", *added]
    assert float(row["confidence"]) == max(float(row[name]) for name in added)


def test_words_of_training_are_not_said_to_be_unknown(run: Run, tmp_path: Path) -> None:
    texts = [f"{text} rare{i}" for i, text in enumerate(TEXTS * 3)]
    with (tmp_path / "train.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("label", "text"), *zip(LABELS * 3, texts, strict=True)])
    words = ["fit", tmp_path / "train.csv", "--stop-words", "english", "-m"]
    assert run(*words, tmp_path / "m")[0] == 0
    assert run("predict", tmp_path / "m", tmp_path / "train.csv")[2] == "36 texts.\n"
    (tmp_path / "new.txt").write_text("the redwine of the zzz\n")  # two stop words, one known by parts of it, one not
    err = run("predict", tmp_path / "m", tmp_path / "new.txt")[2]
    assert "40.0% of their words are not in the vocabulary" in err
    assert "20.0% are read by their spelling, 20.0% are ignored" in err
    assert run("predict", tmp_path / "m", tmp_path / "new.txt", "-o", tmp_path / "out.csv")[0] == 0
    assert rows_of(tmp_path / "out.csv")[0]["unknown_words"] == "0.4000"
