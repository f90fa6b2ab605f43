"""The graph commands as a user runs them: in this process, through `main`, with what it prints."""

import gzip
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from wgcn import __version__

Run = Callable[..., tuple[int, str, str]]

TEXTS = ["Red wine and bread.", "White wine, and bread!", "A red rose", "A white rose", "wine bar"] * 4


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return tmp_path / "texts.txt"


@pytest.fixture
def graph(run: Run, texts: Path) -> Path:
    folder = texts.parent / "graph"
    assert run("graph", "build", texts, "--output", folder)[0] == 0
    return folder


def test_build_prints_size_and_settings_and_says_what_to_do_next(run: Run, texts: Path) -> None:
    code, out, err = run("graph", "build", texts, "-o", texts.parent / "g", "--weight", "pmi", "--window", 3)
    assert code == 0
    lines = dict(line.split(None, 1) for line in out.splitlines())
    assert lines["words"] == "8"
    assert lines["weight"] == "pmi"
    assert lines["window"] == "3"
    assert "20 documents" in err
    assert "wgcn graph neighbours" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "wine a and bread red rose white bar"),
        (["--min-count", 5], "wine a and bread red rose white"),
        (["--min-df", 5], "wine a and bread red rose white"),
        (["--max-df", 0.5], "a and bread red rose white bar"),
        (["--max-words", 3], "wine a and"),
        (["--stop-words", "english"], "wine bread red rose white bar"),
    ],
)
def test_build_keeps_the_words_that_the_options_say(run: Run, texts: Path, options: list[object], words: str) -> None:
    assert run("graph", "build", texts, "-o", texts.parent / "g", *options)[0] == 0
    assert (texts.parent / "g" / "vocabulary.txt").read_text().split() == words.split()


def test_neighbours_are_tab_separated(run: Run, graph: Path) -> None:
    code, out, err = run("graph", "neighbours", graph, "bread", "rose", "-k", 2)
    assert (code, err) == (0, "")
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[0] for row in rows] == ["bread"] * 2 + ["rose"] * 2
    assert {row[1] for row in rows[:2]} == {"and", "wine"}
    assert all(float(row[2]) > 0 for row in rows)
    assert [row[3] for row in rows[:2]] == ["8", "12"]


def test_info_shows_what_build_showed(run: Run, texts: Path) -> None:
    built = run("graph", "build", texts, "-o", texts.parent / "g")[1]
    assert run("graph", "info", texts.parent / "g") == (0, built, "")


def test_plot_writes_a_picture(run: Run, graph: Path) -> None:
    code, _, err = run("graph", "plot", graph, "wine", "--output", graph.parent / "wine.svg")
    assert code == 0
    assert "wine.svg" in err
    assert ">bread<" in (graph.parent / "wine.svg").read_text()


def test_columns_stop_words_and_rules_reach_the_graph(run: Run, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "texts.tsv.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"label\t{text}\n" for text in TEXTS)
    (tmp_path / "stop.txt").write_text("and\na\n")
    arguments = ["--no-header", "--text-column", 1, "--stop-words", tmp_path / "stop.txt", "--min-count", 5]
    code, _out, _ = run("graph", "build", tmp_path / "texts.tsv.gz", "-o", tmp_path / "g", *arguments)
    assert code == 0
    assert (tmp_path / "g" / "vocabulary.txt").read_text().split() == ["wine", "bread", "red", "rose", "white"]
    assert run("graph", "build", tmp_path / "texts.tsv.gz", "-o", tmp_path / "h", "--no-header", "--text-column", 1,
               "--stop-words", "english")[0] == 0  # fmt: skip
    assert "and" not in (tmp_path / "h" / "vocabulary.txt").read_text().split()


def test_several_files_are_one_corpus(run: Run, texts: Path) -> None:
    _, _, err = run("graph", "build", texts, texts, "-o", texts.parent / "g")
    assert "40 documents" in err


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", [], "has no rows: it is empty"),
        ("\n\n", [], "no word in the 2 documents"),
        ("the of\n", ["--stop-words", "english", "--min-count", "1"], "2 are stop words"),
        ("a b\n", ["--min-count", "9"], "(min_count)"),
        ("a b\n", ["--text-column", "body"], "no column 'body'"),
        ("a b\n", ["--stop-words", "nowhere.txt"], "stop words cannot be read"),
        ("PK\x03\x04", [], "looks like a zip"),
        ("a\0b", [], "binary"),
    ],
)
def test_bad_input_is_one_message_and_leaves_nothing(
    run: Run, tmp_path: Path, content: str, options: list[str], message: str
) -> None:
    (tmp_path / "in.txt").write_text(content)
    code, out, err = run("graph", "build", tmp_path / "in.txt", "-o", tmp_path / "g", *options)
    assert code == 2
    assert out == ""
    assert err.startswith("Error: ")
    assert message in err
    assert [entry.name for entry in tmp_path.iterdir()] == ["in.txt"]


def test_a_missing_file_is_one_message(run: Run, tmp_path: Path) -> None:
    code, _, err = run("graph", "build", tmp_path / "texts.csv", "-o", tmp_path / "g")
    assert code == 2
    assert "There is no file" in err


def test_broken_utf8_is_a_warning_with_a_count(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"good text\ncaf\xe9 text\ngood text\n")
    code, _, err = run("graph", "build", tmp_path / "in.txt", "-o", tmp_path / "g", "--encoding", "utf-8")
    assert code == 0
    assert "Warning: 1 row of" in err


def test_an_unknown_word_is_answered_with_words_like_it(run: Run, graph: Path) -> None:
    code, out, err = run("graph", "neighbours", graph, "wine", "whine")
    assert (code, out) == (2, "")
    assert "'whine' is not among the 8 words" in err
    assert "'wine'" in err


@pytest.mark.parametrize("file", ["config.json", "graph.safetensors", "vocabulary.txt"])
@pytest.mark.parametrize("command", [["info"], ["neighbours", "wine"], ["plot", "wine"]])
def test_a_truncated_graph_is_one_message(run: Run, graph: Path, file: str, command: list[str]) -> None:
    content = (graph / file).read_bytes()
    (graph / file).write_bytes(content[: len(content) // 2])
    code, out, err = run("graph", command[0], graph, *command[1:])
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert "fetch" in err


def test_help_has_an_example_for_every_command(run: Run) -> None:
    commands = [
        "graph build",
        "graph neighbours",
        "graph info",
        "graph plot",
        "fit",
        "predict",
        "evaluate",
        "info",
    ]
    for command in map(str.split, commands):
        code, out, _ = run(*command, "--help")
        assert code == 0
        assert "Example: wgcn" in out


def test_version(run: Run) -> None:
    assert run("--version")[:2] == (0, f"wgcn {__version__}\n")


def test_no_progress_bar_in_a_pipe(run: Run, texts: Path) -> None:
    _, out, err = run("graph", "build", texts, "-o", texts.parent / "g")
    assert [line.partition(" s  ")[2].partition(":")[0] for line in err.splitlines()[:2]] == [
        "Reading text",
        "Counting pairs",
    ]
    assert "\x1b" not in out + err


def test_a_progress_bar_on_a_terminal(texts: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "wgcn", "graph", "build", str(texts), "-o", str(texts.parent / "g")]
    with subprocess.Popen(
        command, stderr=theirs, stdout=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # a terminal whose other end is closed
            pass
        assert process.wait() == 0
    os.close(ours)
    assert b"Counting pairs" in shown
