"""Saved folders that several processes write and read at once: each reader sees one version, whole."""

import subprocess
import sys
from pathlib import Path

import pytest

from wgcn.store.folder import load_folder

SCHEMA = {"window": int}
PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from wgcn.store.folder import load_folder, save_folder
from wgcn.text.vocabulary import Vocabulary

folder, what, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
if what == "save":
    windows = [int(argument) for argument in sys.argv[4:]]
    for i in range(number):
        window = windows[i % len(windows)]
        words = Vocabulary([f"{window}-{i}" for i in range(100)])
        save_folder(folder, "test", {"window": window}, {"vector": np.full(100, window)}, words, f"{window}")
else:
    for _ in range(number):
        loaded = load_folder(folder, "test", {"window": int})
        window = loaded.config["window"]
        assert loaded.vocabulary.words[7] == f"{window}-7"
        assert (loaded.tensor("vector", 100, dtype=np.int64) == window).all()
"""


def start(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, str(folder), *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("first", [True, False])
def test_savers_and_readers_at_once_each_see_a_whole_version(tmp_path: Path, first: bool) -> None:
    folder = tmp_path / "saved"
    if not first:  # savers of a new folder may otherwise be the first to make it
        assert start(folder, "save", 1, 9).communicate()[1] == ""
    # Two of the versions come again and again, to the last bit: a reader must not take them for one that stayed.
    processes = [start(folder, "save", 60, 1, 2), start(folder, "save", 60, 2, 1, 3)]
    processes += [] if first else [start(folder, "load", 150) for _ in range(2)]
    assert [process.communicate()[1] for process in processes] == [""] * len(processes)
    assert load_folder(folder, "test", SCHEMA).config["window"] in (1, 2, 3)
    assert not [entry.name for entry in folder.iterdir() if entry.name.startswith(".")]
