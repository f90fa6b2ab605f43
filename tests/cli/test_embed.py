"""wgcn embed, as a user runs it."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from wgcn import EmbeddingModel, WGCNEmbedder

Run = Callable[..., tuple[int, str, str]]

TEXTS = ["red wine", "white wine", "fast car", "slow car", ""]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    return tmp_path / "texts.txt"


def test_vectors_are_those_of_the_estimator(run: Run, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("id,body\n1,slow red car\n")
    (tmp_path / "texts.csv").write_text("id,body\n" + "".join(f"0,{text}\n" for text in TEXTS[:4]))
    files = (tmp_path / "texts.csv", tmp_path / "more.csv")
    code, out, err = run("embed", *files, "--text-column", "body", "-o", tmp_path / "v.npy")
    assert code == 0
    assert out == "texts     5\ncolumns   10\nwords     6\n"
    assert f"The vectors are in {tmp_path / 'v.npy'}." in err
    expected = WGCNEmbedder().fit_transform([*TEXTS[:4], "slow red car"])
    assert np.array_equal(np.load(tmp_path / "v.npy", allow_pickle=False), expected)


def test_an_embedder_that_was_kept_embeds_new_texts(run: Run, corpus: Path, tmp_path: Path) -> None:
    assert run("embed", corpus, "--output", tmp_path / "v.npy", "--save", tmp_path / "e")[0] == 0
    (tmp_path / "new.txt").write_text("a glass of wine\nzzz\n")
    code, out, err = run("embed", tmp_path / "new.txt", "--model", tmp_path / "e", "--output", tmp_path / "n.npy")
    assert code == 0
    assert out.startswith("texts     2\n")
    assert "1 texts have no known word" in err
    expected = EmbeddingModel.load(tmp_path / "e").transform(["a glass of wine", "zzz"])
    assert np.array_equal(np.load(tmp_path / "n.npy"), expected)
    assert np.array_equal(expected, WGCNEmbedder().fit(TEXTS).transform(["a glass of wine", "zzz"]))


def test_options_reach_the_embedder(run: Run, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "stop.txt").write_text("white\n")
    options = {
        "--components": (4, "n_components", 4),
        "--tokenizer": ("text_gcn", "tokenizer", "text_gcn"),
        "--stop-words": (tmp_path / "stop.txt", "stop_words", "1 words"),
        "--ngrams": (2, "ngram_range", "(1, 2)"),
        "--min-count": (1, "min_count", 1),
        "--window": (5, "window", 5),
        "--graph-weight": (1.5, "graph_weight", 1.5),
    }
    arguments = [part for option, (value, _, _) in options.items() for part in (option, value)]
    assert run("embed", corpus, "-o", tmp_path / "v.npy", "--save", tmp_path / "e", *arguments)[0] == 0
    model = EmbeddingModel.load(tmp_path / "e")
    assert {name: model.settings[name] for _, name, _ in options.values()} == {
        name: shown for _, name, shown in options.values()
    }
    assert "white" not in model.vocabulary
    assert "red wine" in model.vocabulary


def test_help_says_the_defaults_of_the_estimator(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    code, out, _ = run("embed", "--help")
    assert code == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
    lines = {match[1]: line for line in plain.splitlines() if (match := re.search(r"--([a-z-]+)", line))}
    expected = WGCNEmbedder().get_params()
    names = {"components": "n_components"}
    for option in ("components", "tokenizer", "window", "graph-weight"):
        assert f"[default: {expected[names.get(option, option.replace('-', '_'))]}]" in lines[option]
    assert f"[default: {expected['ngram_range'][1]}]" in lines["ngrams"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "v.csv"], "--output must end in .npy, got v.csv"),
        (["--output", "v.npy", "--window", 1], "'--window'"),
        (["--output", "v.npy", "--components", 3], "n_components must be an even number of at least 2, got 3"),
        (["--output", "v.npy", "--model", "e", "--window", 5], "The embedder in e is fitted already"),
        (["--output", "v.npy", "--model", "e", "--save", "f"], "The embedder in e is fitted already"),
        (["--output", "v.npy", "--model", "nowhere"], "There is no embedder folder nowhere"),
        (["--output", "v.npy", "--stop-words", "nowhere.txt"], "The stop words cannot be read"),
        (["--output", "v.npy", "--text-column", "body"], "body"),
    ],
)
def test_what_cannot_be_done_is_one_message_and_leaves_nothing(
    run: Run, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[object], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("embed", corpus, *arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["texts.txt"]
