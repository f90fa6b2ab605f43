"""Tables from beginning to end, and what is left when the process is killed on the way."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgcn.errors import InputError
from wgcn_paper.datasets import Dataset, layout
from wgcn_paper.experiments import cells, reproduce, runner, statistics
from wgcn_paper.experiments.cells import Cell, Run
from wgcn_paper.experiments.reproduce import TABLES, all_cells, table_of, write_overview
from wgcn_paper.experiments.results import ResultFile
from wgcn_paper.experiments.runner import Workers
from wgcn_paper.experiments.table import Options, load_table

SETTINGS = """
title = "Small"
datasets = ["r8"]
protocols = ["corpus", "inductive"]
seeds = 3

[[row]]
name = "LinearSVC"
method = "linear-svc"

[[row]]
name = "linear"
method = "wgcn-linear"

[[row]]
name = "network"
published = "WGCN"
method = "wgcn"
[row.settings]
stop_words = false
min_count = 2
hidden = 8
max_epochs = 5
"""
N_CELLS = 10


def small_set(folder: Path) -> None:
    """Write a small set in the place of r8."""
    rng = np.random.default_rng(0)
    labels = np.array(["earn", "grain", "trade"] * 60)
    texts = tuple(
        " ".join([*(f"{label}{i}" for i in rng.integers(0, 12, 2)), *(f"word{i}" for i in rng.integers(0, 30, 10))])
        for label in labels
    )
    (folder / "text/r8").mkdir(parents=True)
    layout.write_text_set(
        folder / "text/r8", Dataset("r8", texts, None, labels, np.arange(120), np.arange(120, len(labels)))
    )


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    small_set(tmp_path / "data")
    monkeypatch.setenv("WGCN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    cells._dataset.cache_clear()
    return tmp_path / "data"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Cell, str]]:
    """The cells that are run, and where; nothing is fitted, and every set is there."""
    called: list[tuple[Cell, str]] = []

    def run(cell: Cell, device: str) -> Run:
        called.append((cell, device))
        return Run(cell, 0.9, 10, None, 3, 1.5, 1.0, 0.1, 100.0, None, "abc", "cpu", "2026-01-01", {"machine": "m"})

    monkeypatch.setattr(runner, "run_cell", run)
    monkeypatch.setattr(reproduce, "load_dataset", lambda name: None)
    monkeypatch.setattr(reproduce, "stop_words", lambda: frozenset())
    return called


def test_tables_are_known_by_name() -> None:
    assert [table_of(name).name for name in TABLES] == list(TABLES)
    with pytest.raises(InputError, match=r"no table 'figure'. There are: datasets, accuracy"):
        table_of("figure")


def test_representations_from_beginning_to_end(tmp_path: Path, data: Path) -> None:
    path = reproduce.reproduce(load_table("embedder"), Options(["r8"], seeds=2), tmp_path / "out", Workers())
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith(("| WGCN", "| tf-idf"))]
    # Three protocols with a probe, then the nearest documents; after the methods the differences.
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines] == [
        *["WGCNEmbedder, probe", "tf-idf + SVD, probe", "WGCNEmbedder \u2212 tf-idf + SVD"] * 3,
        *["WGCNEmbedder, nearest", "tf-idf + SVD, nearest", "tf-idf, nearest"],
        *["WGCNEmbedder \u2212 tf-idf + SVD", "WGCNEmbedder \u2212 tf-idf"],
    ]
    assert [line.count(" \u2013 ") for line in lines] == [4] * len(lines)
    assert float(lines[6].split(" | ")[-1].split()[0]) > 90


@pytest.mark.parametrize("name", [name for name in TABLES if name != "datasets"])
@pytest.mark.parametrize("device", ["auto", "cpu", "cuda"])
def test_every_table_runs_its_cells_on_every_device(
    name: str, device: str, tmp_path: Path, calls: list[tuple[Cell, str]]
) -> None:
    table = load_table(name)
    dataset = table.datasets[-1]
    where = "cpu" if (name, device) == ("efficiency", "auto") else device
    path = reproduce.reproduce(table, Options([dataset], seeds=1), tmp_path, Workers(), device=where)
    wanted = [cell for cell in table.cells() if cell.dataset == dataset and cell.seed == 0]
    assert {cell.key for cell, _ in calls} == {cell.key for cell in wanted}
    assert {used for _, used in calls} == {where}
    assert path.read_text(encoding="utf-8").count("Made by") == 1
    found = ResultFile(tmp_path, name).runs(all_cells(table))
    assert len(found) == len(wanted)


def test_costs_on_two_devices_stand_beside_each_other(tmp_path: Path, calls: list[tuple[Cell, str]]) -> None:
    table = load_table("efficiency")
    for device in ("cpu", "cuda", "cpu"):
        path = reproduce.reproduce(table, Options(["r8"]), tmp_path, Workers(), device=device)
    # On each device a run a row, and nothing is run again.
    assert [device for _, device in calls] == ["cpu"] * len(table.rows) + ["cuda"] * len(table.rows)
    # An epoch, the whole training, a new document: each on both.
    assert path.read_text().count("| WGCN |") == 6


def test_costs_are_not_taken_from_another_table(tmp_path: Path, calls: list[tuple[Cell, str]]) -> None:
    table = load_table("efficiency")
    reproduce.reproduce(table, Options(["r8"]), tmp_path, Workers(), device="cpu")
    (tmp_path / "efficiency.json").rename(tmp_path / "accuracy.json")
    reproduce.reproduce(table, Options(["r8"]), tmp_path, Workers(), device="cpu")
    assert len(calls) == 2 * len(table.rows)


def test_models_choose_what_is_run(tmp_path: Path, calls: list[tuple[Cell, str]]) -> None:
    table = load_table("accuracy")
    options = Options(["r8"], ["inductive"], models=["lstm"])
    path = reproduce.reproduce(table, options, tmp_path, Workers())
    assert [(cell.variant, cell.seed) for cell, _ in calls] == [(n, i) for n in ("LSTM", "Bi-LSTM") for i in range(3)]
    assert {cell.settings["bidirectional"] for cell, _ in calls if cell.variant == "Bi-LSTM"} == {True}
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    # The published figures of no other row.
    assert [line.split(" | ")[0].strip("| ") for line in lines] == ["", "published: LSTM", "LSTM", "Bi-LSTM"]
    assert lines[2].endswith("90.00 ± 0.00 (-6.31) [3] |")


def test_report_shows_what_was_run_before(tmp_path: Path, calls: list[tuple[Cell, str]]) -> None:
    table = load_table("accuracy")
    for dataset in ("r8", "mr"):
        path = reproduce.reproduce(table, Options([dataset], ["inductive"], seeds=2), tmp_path, Workers())
    line = next(line for line in path.read_text().splitlines() if line.startswith("| WGCN |"))
    assert [cell.strip()[:5] for cell in line.split("|")[2:-1]] == ["–", "90.00", "–", "–", "90.00"]


def test_names_are_checked_before_data_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WGCN_DATA", raising=False)
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    for options, message in (
        (Options(["cora"]), "no data set 'cora' in this table"),
        (Options(rows=["bert"]), "no row 'bert'"),
        (Options(protocols=["few-label:5%"]), "no protocol 'few-label:5%'"),
        (Options(models=["gin"]), "no model 'gin' in this table"),
        (Options(["r8"], ["inductive"], models=["text-gcn"]), "Text-GCN cannot run under the protocol inductive here"),
        (Options(["r8"], ["inductive"], ["Fast-GCN"]), "Fast-GCN cannot run .* here. On texts, documents are nodes"),
    ):
        with pytest.raises(InputError, match=message):
            reproduce.reproduce(load_table("accuracy"), options, tmp_path / "out", Workers())
    with pytest.raises(InputError, match="no data set 'docs' in this table"):
        reproduce.reproduce(load_table("datasets"), Options(["docs"]), tmp_path / "out", Workers())
    assert not (tmp_path / "out").exists()


def test_without_data_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WGCN_DATA", raising=False)
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(runner, "run_cell", None)
    for name in TABLES:
        with pytest.raises(InputError, match="wgcn-paper data prepare"):
            reproduce.reproduce(load_table(name), Options(), tmp_path / "out", Workers())
    assert not (tmp_path / "out").exists()


def test_statistics_are_measured(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "stop_words", frozenset)
    table = load_table("datasets")
    path = reproduce.reproduce(table, Options(["r8"]), tmp_path / "out", Workers())
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# The data sets"
    [line] = [line for line in lines if line.startswith("| R8 |")]
    assert line.startswith("| R8 | 180 (7,674) | 120 (5,485) | 60 (2,189) | ")
    assert "| 3 (8) |" in line
    assert "Citeseer" not in path.read_text()


def test_overview_leads_to_all_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "orders.md").touch()
    (tmp_path / "labels.md").touch()
    (tmp_path / "labels.json").touch()
    lines = [line for line in write_overview(tmp_path).read_text().splitlines() if line.startswith("-")]
    assert lines == [
        "- [Orders of the word graph](orders.md): `wgcn-paper reproduce orders`",
        "- [Accuracy against the share of labels](labels.md): `wgcn-paper reproduce labels` ([every run](labels.json))",
    ]


def test_the_table_of_unseen_words_is_made_from_beginning_to_end(data: Path, tmp_path: Path) -> None:
    path = reproduce.reproduce(load_table("unseen"), Options(["r8"], seeds=2), tmp_path / "out", Workers())
    text = path.read_text(encoding="utf-8")
    assert text.count("### Protocol: unseen:") == 1
    for row in load_table("unseen").rows:
        assert text.count(f"| {row.name} | ") == (1 if row.name == "WGCN" else 2)


# A process that is killed


def start(tmp_path: Path, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    (tmp_path / "small.toml").write_text(SETTINGS)
    command = [sys.executable, "-m", "wgcn", "reproduce", "accuracy", "--settings", str(tmp_path / "small.toml")]
    command += ["--datasets", "r8", "--device", "cpu", "-o", str(folder), *more]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> None:
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()


def saved(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the runs that are saved; what is there must be whole at any moment."""
    path = folder / "accuracy.json"
    return {run["key"]: run for run in json.loads(path.read_bytes())["runs"]} if path.exists() else {}


def outcome(folder: Path) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return what does not depend on the time: the report without dates, and accuracies and digests of models."""
    report = re.sub(r"\d{4}-\d\d-\d\d( to \d{4}-\d\d-\d\d)?", "", (folder / "accuracy.md").read_text(encoding="utf-8"))
    timed = ("fit_seconds", "predict_seconds", "predict_one_ms", "ms_per_epoch", "memory", "date", "environment")
    runs = saved(folder)
    return report, {key: {name: run[name] for name in run if name not in timed} for key, run in runs.items()}


def kill_after(process: subprocess.Popen[bytes], folder: Path, n_runs: int, pause: float) -> None:
    ends = time.monotonic() + 120
    while len(saved(folder)) < n_runs and process.poll() is None and time.monotonic() < ends:
        time.sleep(0.002)
    time.sleep(pause)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    assert process.stderr is not None
    process.stderr.close()


def test_a_killed_run_goes_on_where_it_was(data: Path, tmp_path: Path) -> None:
    finish(start(tmp_path, tmp_path / "whole"))
    report, runs = outcome(tmp_path / "whole")
    assert len(runs) == N_CELLS
    assert len({run["model"] for run in runs.values()}) == N_CELLS
    assert "97.90 ± 0.14" in report

    rng, folder = np.random.default_rng(20), tmp_path / "killed"
    done: dict[str, dict[str, Any]] = {}
    for _ in range(2):
        process = start(tmp_path, folder)
        kill_after(process, folder, len(done) + int(rng.integers(1, 3)), float(rng.uniform(0, 0.02)))
        now = saved(folder)
        assert len(now) > len(done)
        assert {key: now[key] for key in done} == done
        done = now
    assert process.returncode == -signal.SIGKILL
    assert len(done) < N_CELLS
    assert not (folder / "accuracy.md").exists()
    finish(start(tmp_path, folder))
    assert outcome(folder) == (report, runs)
    # What was finished was not run again: even the times are the same.
    final = saved(folder)
    for key, run in done.items():
        assert final[key]["fit_seconds"] == run["fit_seconds"]
        assert {**final[key], "environment": 0} == {**run, "environment": 0}


def test_two_processes_that_are_killed_leave_no_one_behind(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "two"
    process = start(tmp_path, folder, "--jobs", "2")
    kill_after(process, folder, 2, 0.0)
    assert saved(folder)
    ends = time.monotonic() + 20
    while (left := of_this_run(tmp_path)) and time.monotonic() < ends:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def of_this_run(tmp_path: Path) -> list[int]:
    """Return the processes that have the data folder of this test in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"WGCN_DATA={tmp_path}/data\0".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def test_a_changed_setting_in_the_file_runs_only_its_row(data: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(SETTINGS.split('[[row]]\nname = "network"')[0])
    folder = tmp_path / "out"
    reproduce.reproduce(load_table("accuracy", own), Options(), folder, Workers(), device="cpu")
    before = saved(folder)
    table = load_table("accuracy", own)
    changed = replace(table, rows=[replace(table.rows[0], settings={"C": 0.5}), table.rows[1]])
    reproduce.reproduce(changed, Options(), folder, Workers(), device="cpu")
    after = saved(folder)
    assert len(before) == len(after) == 4
    assert {run["method"] for key, run in after.items() if key in before} == {"wgcn-linear"}
    assert {run["settings"]["C"] for key, run in after.items() if key not in before} == {0.5}
