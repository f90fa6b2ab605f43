"""wgcn fit, predict, evaluate and info, as a user runs them."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from wgcn import TextModel, WGCNClassifier, WGCNTextClassifier

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
    assert "classes   2\nwords     6\nn-grams   4\n" in out
    assert "12 texts, 12 of them with a label" in err
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
    assert f"Read {8 if kind == 'jsonl' else 6} texts, 4 of them with a label" in err
    assert TextModel.load(tmp_path / "m").classes.tolist() == ["drive", "nan"]


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
    assert "3 texts. 14.3% of their words and n-grams are unknown" in result.stderr
    assert "1 have no known word" in result.stderr


def test_options_left_out_have_the_defaults_of_the_estimators(run: Run, train: Path) -> None:
    assert run("fit", train, "--model", train.parent / "m")[0] == 0
    expected = {**WGCNClassifier().get_params(), **WGCNTextClassifier().get_params()}
    settings = TextModel.load(train.parent / "m").settings
    names = ("tokenizer", "min_count", "stop_words", "window", "weight", "alpha", "naive_bayes", "teacher", "C")
    assert {name: settings[name] for name in names} == {name: expected[name] for name in names}
    assert settings["ngram_range"] == str(expected["ngram_range"])


def test_help_of_fit_says_the_defaults_of_the_estimators(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    code, out, _ = run("fit", "--help")
    assert code == 0
    lines = {line.split()[1]: line for line in out.splitlines() if line.startswith(("│ --", "│    --"))}
    expected = {**WGCNClassifier().get_params(), **WGCNTextClassifier().get_params()}
    graph = ("window", "weight", "threshold", "min_pairs", "smoothing")
    for name in ("tokenizer", *graph, "alpha", "naive_bayes", "teacher", "self_training", "C"):
        assert f"[default: {expected[name]}]" in lines["--" + name.replace("_", "-")]
    assert f"Default: {expected['ngram_range'][1]}, or 1 with --network" in lines["--ngrams"]
    assert "(the extra 'vectors')" in lines["--vectors"]


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ([], {"ngram_range": "(1, 2)", "ngram_edges": None}),
        (["--ngrams", 1], {"ngram_range": "(1, 1)"}),
        (["--ngrams", 3], {"ngram_range": "(1, 3)"}),
        (["--naive-bayes", 0], {"naive_bayes": 0.0}),
        (["--naive-bayes", 1], {"naive_bayes": 1.0}),
        (["--teacher", 0], {"teacher": 0.0}),
        (["--self-training", 0], {"self_training": 0.0}),
        (["--alpha", 0.25, "--C", 2], {"alpha": 0.25, "C": 2.0}),
        (["--window", 2], {"window": 2}),
        (["--top-k", 3], {"top_k": 3}),
        (["--weight", "npmi", "--threshold", 0.3], {"weight": "npmi", "threshold": 0.3}),
        (["--min-pairs", 3], {"min_pairs": 3}),
        (["--smoothing", 0.5], {"smoothing": 0.5}),
        (["--ngram-edges"], {"ngram_edges": True}),
        (["--no-ngram-edges"], {"ngram_edges": False}),
        (["--window", 50, "--window", 2], {"window": [2, 50]}),
        (["--learn-alpha", "shared"], {"learn_alpha": "shared", "alpha": 0.5}),
        (["--learn-alpha", "word", "--alpha", 1], {"learn_alpha": "word", "alpha": 1.0}),
    ],
)
def test_options_reach_the_model(run: Run, train: Path, options: list[object], settings: dict[str, object]) -> None:
    with train.open("a") as file:
        file.write("drive,fast slow red car\n,white wine\n,slow red car\n")
    assert run("fit", train, "--model", train.parent / "m", *options)[0] == 0
    model = TextModel.load(train.parent / "m")
    assert {name: model.settings[name] for name in settings} == settings
    values = {
        name: model.settings[name] for name in ("alpha", "learn_alpha", "naive_bayes", "teacher", "self_training", "C")
    }
    names = ("window", "weight", "threshold", "min_pairs", "top_k", "smoothing", "ngram_edges")
    rules = {name: model.settings[name] for name in names}
    estimator = WGCNTextClassifier(ngram_range=model.ngram_range, **rules, classifier=WGCNClassifier(**values))
    texts, labels = [*TEXTS, "fast slow red car"], [*LABELS, "drive"]
    estimator.fit(texts, labels, unlabeled=["white wine", "slow red car"])
    assert model.vocabulary == estimator.model_.vocabulary
    np.testing.assert_allclose(model.scores(texts), estimator.model_.scores(texts), rtol=1e-4, atol=1e-5)
    assert sum(" " in word for word in model.vocabulary) == {1: 0, 2: 6, 3: 7}[model.ngram_range[1]]


def test_shares_of_classes_are_those_of_texts_without_a_word(run: Run, train: Path) -> None:
    shares = ("--class-prior", "drink=1", "--class-prior", "drive=3")
    assert run("fit", train, "--model", train.parent / "m", *shares)[0] == 0
    model = TextModel.load(train.parent / "m")
    np.testing.assert_allclose(model.predict_proba(["zzz"]), [[0.25, 0.75]], rtol=1e-5)
    code, _, err = run("fit", train, "--model", train.parent / "n", "--class-prior", "drink=1")
    assert code == 2
    assert "'drive'" in err


def test_a_file_of_word_vectors_is_used_and_named_on_the_card(run: Run, train: Path) -> None:
    vectors = train.parent / "vectors.txt"
    vectors.write_text("wine 1 0\ncar 0 1\nbeer 1 0\n")
    with train.open("a") as file:
        file.write(",beer\n,a beer\n")
    assert run("fit", train, "--model", train.parent / "m", "--vectors", vectors)[0] == 0
    model = TextModel.load(train.parent / "m")
    assert model.predict(["beer"]).tolist() == ["drink"]
    assert model.settings["vectors"] == "vectors.txt"
    code, _, err = run("fit", train, "--model", train.parent / "n", "--vectors", train.parent / "none.txt")
    assert code == 2
    assert "none.txt" in err
    assert not (train.parent / "n").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--ngrams", 0],
        ["--naive-bayes", 1.1],
        ["--naive-bayes", -0.1],
        ["--teacher", -1],
        ["--alpha", -1],
        ["--learn-alpha", "each"],
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
    assert model.predict(texts).tolist() == [str(i % 4 in (0, 3)) for i in range(12)]


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


def test_texts_from_elsewhere_shape_vocabulary_and_graph_alone(run: Run, tmp_path: Path) -> None:
    rows = [("drink", "wine"), ("drive", "car"), ("", "wine merlot")]
    (tmp_path / "train.csv").write_text("label,text\n" + "".join(f"{label},{text}\n" for label, text in rows))
    elsewhere = [["wine merlot shiraz", "a shiraz"], ["sedan car", "sedan car", "car"]]
    options: list[object] = []
    for i, texts in enumerate(elsewhere):
        (tmp_path / f"{i}.txt").write_text("\n".join(texts) + "\n")
        options += ["--background", tmp_path / f"{i}.txt"]
    assert run("fit", tmp_path / "train.csv", "--model", tmp_path / "m", *options)[0] == 0
    model = TextModel.load(tmp_path / "m")
    assert (model.report["n_documents"], model.report["n_labelled"], model.report["n_background"]) == (3, 2, 5)
    assert "more texts, for vocabulary and word graph alone | 5 |" in (tmp_path / "m/README.md").read_text()
    expected = WGCNTextClassifier().fit(
        [text for _, text in rows], ["drink", "drive", None], background=chain.from_iterable(elsewhere)
    )
    assert model.vocabulary == expected.model_.vocabulary
    np.testing.assert_allclose(
        model.scores(["sedan", "shiraz"]), expected.model_.scores(["sedan", "shiraz"]), rtol=1e-5
    )
    assert model.predict(["sedan", "shiraz"]).tolist() == ["drive", "drink"]
    code, _, err = run("fit", tmp_path / "train.csv", "--model", tmp_path / "n", "--background", tmp_path / "no.txt")
    assert code == 2
    assert "no.txt" in err
    assert not (tmp_path / "n").exists()


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
        ("label,text\na,x\nb,y\n", ["--window", "1"], "--window must be at least 2 tokens, got 1"),
        ("label,text\na,x\nb,y\n", ["--window", "5", "--window", "0"], "--window must be at least 2 tokens, got 0"),
        ("label,text\na,x\nb,y\n", ["--window", "5", "--window", "5"], "--window has 5 more than once"),
        ("label,text\na,x\nb,y\n", ["--window", "5,50"], "--window"),
        ("label,text\na,x\nb,y\n", ["--window", ""], "--window"),
        ("label,text\na,x\nb,y\n", ["--window", "5", "--window", "9", "--weight", "cosine"], "one window at most"),
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
    whole = TextModel.load(folder / "whole")
    assert whole.scorer.word_embeddings.shape[1] == 4
    assert whole.ngram_range == (1, 1)
    kept = ["--checkpoint", folder / "state"]
    assert run("fit", train, "--model", folder / "kept", *arguments, "--epochs", 12, *kept)[0] == 0
    assert run("fit", train, "--model", folder / "again", *arguments, "--epochs", 12, *kept, "--resume")[0] == 0
    tables = [(folder / name / "model.safetensors").read_bytes() for name in ("whole", "kept", "again")]
    assert tables[0] == tables[1] == tables[2]
    code, _, err = run("fit", train, "--model", folder / "other", *arguments, "--epochs", 9, "--resume")
    assert code == 2
    assert "resume needs a checkpoint" in err


def test_ngrams_count_in_the_network(run: Run, train: Path) -> None:
    arguments = ["--network", "--hidden", 4, "--device", "cpu", "--epochs", 2, "--ngrams", 2]
    assert run("fit", train, "--model", train.parent / "m", *arguments)[0] == 0
    model = TextModel.load(train.parent / "m")
    assert model.ngram_range == (1, 2)
    assert model.vocabulary.are_ngrams.sum() == 4
    assert np.abs(model.scorer.word_embeddings).max(axis=1).min() > 0


def test_the_average_of_both_models_can_be_fitted(run: Run, train: Path) -> None:
    arguments = ["--average", "--hidden", 4, "--device", "cpu", "--epochs", 2]
    code, out, _ = run("fit", train, "--model", train.parent / "m", *arguments)
    assert code == 0
    assert "accuracy" not in out  # too few texts to hold any out
    model = TextModel.load(train.parent / "m")
    assert model.settings["model"] == "average"
    assert model.ngram_range == (1, 2)
    assert model.scorer.word_embeddings.shape[1] == 4 + 2 * 2
    assert model.predict(TEXTS).tolist() == LABELS
    train.write_text(train.read_text() + "".join(f"{row}\n" for row in train.read_text().splitlines()[1:] * 30))
    assert "by the linear model alone" in run("fit", train, "--model", train.parent / "m", *arguments)[1]


def test_the_average_is_not_asked_for_with_the_network_alone(run: Run, train: Path) -> None:
    code, out, err = run("fit", train, "--model", train.parent / "m", "--average", "--network")
    assert (code, out) == (2, "")
    assert "give one of the two" in err
    assert not (train.parent / "m").exists()


def test_fit_chooses_settings(run: Run, train: Path) -> None:
    code, out, err = run("fit", train, "--model", train.parent / "m", "--tune", "--tune-seconds", 1000)
    assert code == 0
    assert err.count("\n") == 2
    assert "settings  C 0.5, alpha 0.5, naive_bayes 0.5\n" in out
    assert "chosen    100.00% in cross-validation, 100.00% with those given at first; 25 trials, " in out
    model = TextModel.load(train.parent / "m")
    assert model.settings["tune"] is True
    assert (
        "| settings chosen | C 0.5, alpha 0.5, naive_bayes 0.5: 100.00%" in (train.parent / "m/README.md").read_text()
    )
    assert model.predict(TEXTS).tolist() == LABELS


def test_ctrl_c_while_settings_are_chosen_leaves_nothing(
    run: Run, train: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("wgcn.cli.fit._Trials.on_trial", interrupt)
    assert run("fit", train, "--model", train.parent / "m", "--tune")[:2] == (130, "")
    assert [entry.name for entry in train.parent.iterdir()] == ["train.csv"]


def test_the_network_cannot_be_tuned(run: Run, train: Path) -> None:
    code, out, err = run("fit", train, "--model", train.parent / "m", "--tune", "--network")
    assert (code, out) == (2, "")
    assert "tune is for the linear model" in err
    assert not (train.parent / "m").exists()


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
    assert "| 3 from 4 texts |" in run("info", larger)[1]


def test_extend_by_spelling_and_with_nothing(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("red wine\n")
    for how in ("graph", "spelling"):
        code, out, _ = run("extend", model, tmp_path / "more.txt", "--how", how, "--output", tmp_path / how)
        assert (code, out) == (0, "words added  0: the texts have none that can be added\n")
        assert TextModel.load(tmp_path / how).vocabulary == TextModel.load(model).vocabulary


def test_extend_by_vectors(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("merlot\nturbo\n")
    sides = {"wine": [1, 0, 0], "red": [1, 0, 0], "car": [0, 1, 0], "fast": [0, 1, 0]}
    given = {"merlot": [1, 0, 0], "turbo": [0, 1, 0], **sides}
    (tmp_path / "vectors.txt").write_text("".join(f"{word} {' '.join(map(str, v))}\n" for word, v in given.items()))
    how = ("--how", "vectors", "--vectors", tmp_path / "vectors.txt")
    code, out, _ = run("extend", model, tmp_path / "more.txt", *how, "-o", tmp_path / "larger")
    assert (code, out) == (0, "words added  2 from 2 texts\n")
    assert TextModel.load(tmp_path / "larger").predict(["merlot", "turbo"]).tolist() == ["drink", "drive"]


def test_extend_says_what_it_cannot_use(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("red wine\n")
    for arguments, message in (
        ((model, tmp_path / "none.txt", "-o", tmp_path / "m"), "none.txt"),
        ((tmp_path / "none", tmp_path / "more.txt", "-o", tmp_path / "m"), "no model folder"),
        ((model, tmp_path / "more.txt", "--how", "magic", "-o", tmp_path / "m"), "magic"),
        ((model, tmp_path / "more.txt", "--how", "vectors", "-o", tmp_path / "m"), "needs vectors"),
        ((model, tmp_path / "more.txt", "--vectors", "distilled", "-o", tmp_path / "m"), "vectors are for"),
    ):
        code, _, err = run("extend", *arguments)
        assert code == 2
        assert message in err.replace("\n", "")
    assert not (tmp_path / "m").exists()
