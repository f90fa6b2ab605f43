"""Whatever a saved file holds, it is used or refused: a short run of what `make fuzz` does at length."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import fuzz
from benchmarks.mutations import Specimen

ROOT = Path(__file__).parents[1]


def test_damaged_files_are_used_or_refused() -> None:
    command = [sys.executable, "-m", "benchmarks.fuzz", "--number", "3000", "--seed", "22"]
    command += ["--seconds", "60"]  # other tests may have the cores
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (total,) = (line for line in done.stdout.splitlines() if line.strip("| ").startswith("all"))
    counted, signed, loaded, refused = (int(figure.replace(",", "")) for figure in total.split("|")[2:6])
    assert counted == loaded + refused >= 3000
    assert signed > counted / 2
    assert loaded > counted / 20
    (projects,) = (line for line in done.stdout.splitlines() if line.strip("| ").startswith("project"))
    assert all(int(figure.replace(",", "")) > 20 for figure in projects.split("|")[4:6])  # loaded and refused


def test_loads_of_large_folders_take_at_most_four_times_their_size() -> None:
    command = [sys.executable, "-m", "benchmarks.large", "--megabytes", "20", "--number", "0", "--seconds", "60"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "24 loads" in done.stdout


def test_a_foreign_error_is_counted_and_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(folder: Path) -> None:
        if (folder / "config.json").read_bytes() != b"{}":
            raise KeyError("foreign")

    monkeypatch.setitem(fuzz.LOADS, "model", load)
    monkeypatch.setitem(fuzz.USES, "model", lambda *_: None)
    bench = fuzz.Bench(tmp_path, {"model": Specimen("model", {"config.json": b"{}"})}, 5)
    tally = bench.run("model", range(50))
    assert tally.number == 50 == tally.loaded + tally.foreign
    assert tally.foreign > 10
    assert re.match(r"python -m benchmarks.fuzz --seed 5 --repeat model:\d+\n", tally.failures[0])
    assert (tmp_path / "model" / "config.json").read_bytes() == b"{}"
    assert "foreign" in next(iter(tally.kinds))
