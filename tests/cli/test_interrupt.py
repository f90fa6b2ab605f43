"""Ctrl-C: status 130, and what was there before is there as it was."""

import csv
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgcn import TextModel, cli

Run = Callable[..., tuple[int, str, str]]

TEXTS = ["red wine", "white wine", "fast car", "slow car"] * 3
LABELS = ["drink", "drink", "drive", "drive"] * 3
NETWORK = ["--network", "--epochs", 6]


@pytest.fixture(autouse=True)
def _heed_interrupts() -> Iterator[None]:
    """What a shell starts in the background ignores Ctrl-C, and so would these tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press(*_: object, **__: object) -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture
def folder(tmp_path: Path, run: Run) -> Path:
    """A folder with texts, and a model, an embedder, vectors and a graph of them."""
    with (tmp_path / "train.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("label", "text"), *zip(LABELS, TEXTS, strict=True)])
    (tmp_path / "more.csv").write_text("text\nmerlot is red wine\nturbo for a fast car\nmerlot wine\nturbo car\n")
    assert run("fit", tmp_path / "train.csv", "-m", tmp_path / "model")[0] == 0
    assert run("embed", tmp_path / "train.csv", "-o", tmp_path / "v.npy", "--save", tmp_path / "embedder")[0] == 0
    assert run("graph", "build", tmp_path / "train.csv", "-o", tmp_path / "graph")[0] == 0
    assert run("extend", tmp_path / "model", tmp_path / "more.csv", "-o", tmp_path / "larger")[0] == 0
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Pressing:
    """A progress bar in whose second epoch Ctrl-C is pressed."""

    def __init__(self, *_: object) -> None:
        pass

    def on_epoch(self, record: Any, model: object) -> None:
        if record.epoch == 2:
            press()


def test_ctrl_c_in_the_network_writes_no_model(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(folder)
    fit = ["fit", folder / "train.csv", "-m", folder / "model", *NETWORK, "--overwrite"]
    monkeypatch.setattr("wgcn.cli.fit.EpochBar", Pressing)
    code, out, err = run(*fit)
    assert (code, out) == (130, "")
    assert err.splitlines()[-1:] == [
        f"Interrupted. Nothing was written to {folder / 'model'}. To be able to go on after an interruption, give "
        "--checkpoint FILE."
    ]
    assert contents(folder) == before
    state = folder / "state"
    code, out, err = run(*fit, "--checkpoint", state)
    assert (code, out) == (130, "")
    assert err.splitlines()[-1:] == [
        f"Interrupted. Nothing was written to {folder / 'model'}. The same command goes on from {state}."
    ]
    assert contents(folder).keys() - before.keys() == {"state"}
    assert {name: content for name, content in contents(folder).items() if name != "state"} == before
    monkeypatch.undo()
    assert run(*fit, "--checkpoint", state)[0] == 0
    assert run(*fit[:3], folder / "whole", *fit[4:])[0] == 0
    whole, resumed = ((folder / name / "model.safetensors").read_bytes() for name in ("whole", "model"))
    assert whole == resumed


WORK = {
    "fit": (["fit", "train.csv", "-m", "model", "--overwrite"], "wgcn.estimators.matrix.train_linear"),
    "embed": (
        ["embed", "train.csv", "-o", "v.npy", "--save", "embedder", "--overwrite"],
        "wgcn.estimators.embedder.WGCNEmbedder.fit_transform",
    ),
    "embed with a model": (
        ["embed", "more.csv", "-m", "embedder", "-o", "v.npy", "--overwrite"],
        "wgcn.model.embedding.add_up",
    ),
    "graph": (["graph", "build", "train.csv", "-o", "graph", "--overwrite"], "wgcn.graph.counts.count_rows"),
    "extend": (["extend", "model", "more.csv", "-o", "larger", "--overwrite"], "wgcn.model.extend.extend"),
    "predict": (["predict", "model", "train.csv", "-o", "labels.txt"], "wgcn.model.text_model.Scorer.scores"),
}


@pytest.mark.parametrize("command", WORK)
def test_ctrl_c_at_work_writes_nothing(run: Run, folder: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, where = WORK[command]
    before = contents(folder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(where, press)
    code, out, err = run(*arguments)
    assert (code, out) == (130, "")
    assert "Traceback" not in err
    assert contents(folder) == before
    if command == "fit":
        assert err.endswith("Interrupted. Nothing was written to model.\n")


@pytest.mark.parametrize("command", ["fit", "graph", "extend"])
def test_ctrl_c_while_a_folder_is_written_leaves_the_old_one(
    run: Run, folder: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(folder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(os, "fsync", press)
    assert run(*WORK[command][0])[:2] == (130, "")
    monkeypatch.undo()
    assert contents(folder) == before
    # The new files are complete, but do not count yet.
    monkeypatch.chdir(folder)
    monkeypatch.setattr(Path, "rename", press)
    assert run(*WORK[command][0])[:2] == (130, "")
    assert contents(folder) == before


def test_ctrl_c_after_a_folder_is_written_is_made_good_by_the_next_save(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", press)
        assert run("fit", "train.csv", "-m", "model", "--ngrams", 1, "--overwrite")[:2] == (130, "")
    assert TextModel.load("model").ngram_range == (1, 1)
    assert run(*WORK["fit"][0])[0] == 0
    assert TextModel.load("model").ngram_range == (1, 2)
    assert not (folder / "model" / ".wgcn-pending").exists()


def test_ctrl_c_while_an_array_is_written_leaves_the_old_one(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(folder)
    monkeypatch.chdir(folder)

    def save(file: Any, *_: object, **__: object) -> None:
        file.write(b"half of it")
        press()

    monkeypatch.setattr(np, "save", save)
    assert run("embed", "more.csv", "-m", "embedder", "-o", "v.npy", "--overwrite")[:2] == (130, "")
    assert contents(folder) == before


def test_ctrl_c_before_a_command_begins_is_no_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.app, "app", press)
    assert run("fit") == (130, "", "")


def test_a_signal_ends_the_program_with_130(folder: Path) -> None:
    os.mkfifo(folder / "in.txt")
    before = contents(folder)
    command = [sys.executable, "-m", "wgcn", "graph", "build", str(folder / "in.txt"), "-o", str(folder / "graph")]
    command.append("--overwrite")
    # The pipe opens once the program reads, so it is at work by then.
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE) as process,
        (folder / "in.txt").open("w") as pipe,
    ):
        pipe.write("some text\n" * 50_000)
        pipe.flush()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert contents(folder) == before


def test_a_reader_of_labels_that_stops_early_is_no_traceback(folder: Path) -> None:
    (folder / "many.txt").write_text("red wine\n" * 200_000)
    command = [sys.executable, "-m", "wgcn", "predict", str(folder / "model"), str(folder / "many.txt")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"drink\n"
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 1)
