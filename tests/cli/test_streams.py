"""Streams that are full, closed or not read, and options that no file, class or number can be: one message each."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wgcn import WGCNTextClassifier

Run = Callable[..., tuple[int, str, str]]
TEXTS = ["red wine", "white wine", "fast car", "slow car"] * 3
HUGE = "99999999999999999999"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    fitted = WGCNTextClassifier().fit(TEXTS, ["drink", "drink", "drive", "drive"] * 3)
    fitted.save(folder / "model")
    (folder / "texts.txt").write_text("\n".join(TEXTS))
    return folder


def wgcn(*arguments: object, **streams: Any) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "wgcn", *map(str, arguments)]
    return subprocess.run(command, env=environment, text=True, timeout=100, check=False, **streams)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has it")
@pytest.mark.parametrize("command", [["predict", "model", "texts.txt"], ["info", "model"], ["words", "model"]])
def test_full_disk_is_one_message(folder: Path, command: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = wgcn(*command, cwd=folder, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "Error: Standard output cannot be used: No space left on device.",
    )
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("command", [["predict", "model", "texts.txt"], ["words", "model"]])
def test_nothing_is_said_about_a_closed_pipe(folder: Path, command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = wgcn(*command, cwd=folder, stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_closed_streams_are_empty(folder: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert run("predict", folder / "model")[:2] == (0, "")
    sys.stdin.close()
    monkeypatch.setattr(sys, "stdin", None)
    code, _, err = run("predict", folder / "model", "--format", "csv")
    assert (code, "Standard input has no rows" in err) == (2, True)
    sys.stdin.close()
    monkeypatch.setattr(sys, "stderr", None)  # messages must not become results
    assert run("predict", folder / "model", folder / "texts.txt")[1].split() == (["drink"] * 2 + ["drive"] * 2) * 3
    sys.stderr.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["graph", "build", "--output", "g", "--top-k", HUGE], "top_k must be below 2**63"),
        (["graph", "build", "--output", "g", "--min-pairs", HUGE], "min_count must be below 2**63"),
        (["embed", "--output", "e.npy", "--ngrams", HUGE], "<= 16"),
        (["embed", "--output", "e.npy", "--graph-weight", "1e300"], "graph_weight must be below 2**63"),
        (["embed", "--output", "e.npy", "--stop-words", "/dev/zero"], "binary file"),
        (["seeds", "--seeds", "/dev/zero"], "binary file"),
        (["seeds", "--seed", "\udcff=wine", "--seed", "b=car"], "bytes that are no text"),
        (["fit", "--model", "m", "--ngrams", HUGE], "<= 16"),
        (["fit", "--model", "m", "--alpha", "1e38"], "alpha must be at most 1e+06"),
        (["fit", "--model", "m", "--network", "--epochs", HUGE], "max_epochs must be below 2^63"),
    ],
)
def test_senseless_options_are_one_message(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    code, out, err = run(*arguments, folder / "texts.txt")
    assert (code, out) == (2, "")
    assert message in err
    assert not list(tmp_path.iterdir())
