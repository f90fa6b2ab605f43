"""Tables from beginning to end, and what is left when the process is killed on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgcn.base.errors import InputError, WGCNWarning
from wgcn_paper.datasets import Dataset, layout
from wgcn_paper.experiments import (
    abstain,
    accuracy,
    cells,
    labels,
    reproduce,
    runner,
    seeds,
    sensitivity,
    statistics,
    suggest,
)
from wgcn_paper.experiments.cells import Cell, Run
from wgcn_paper.experiments.pages import TABLES
from wgcn_paper.experiments.reproduce import table_of
from wgcn_paper.experiments.results import ResultFile
from wgcn_paper.experiments.runner import Workers
from wgcn_paper.experiments.table import Options, load_table

SETTINGS = """
title = "Small"
datasets = ["r8"]
protocols = ["inductive", "few-label:5"]
seeds = 3

[[row]]
name = "LinearSVC"
method = "linear-svc"

[[row]]
name = "LinearSVC, words"
method = "linear-svc"
settings = { sublinear = false }
"""
N_CELLS = 8


def small_set(folder: Path) -> None:
    """Write a small set in the place of r8."""
    rng = np.random.default_rng(0)
    labels = np.array(["earn", "grain", "trade"] * 30)
    texts = tuple(
        " ".join([*(f"{label}{i}" for i in rng.integers(0, 12, 2)), *(f"word{i}" for i in rng.integers(0, 30, 10))])
        for label in labels
    )
    (folder / "text/r8").mkdir(parents=True)
    layout.write_text_set(
        folder / "text/r8", Dataset("r8", texts, None, labels, np.arange(60), np.arange(60, len(labels)))
    )


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    small_set(tmp_path / "data")
    monkeypatch.setenv("WGCN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    cells._dataset.cache_clear()
    return tmp_path / "data"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, metrics_of: Callable[..., dict[str, Any]]) -> list[tuple[Cell, str]]:
    """The cells that are run, and where; nothing is fitted or drawn, and every data set is there."""
    called: list[tuple[Cell, str]] = []

    def run(cell: Cell, device: str) -> Run:
        called.append((cell, device))
        told = (cell, 0.9, 10, None, 3, 1.5, 1.0, 0.1, 100.0, None, "abc", "cpu", "2026-01-01", {"machine": "m"})
        return Run(*told, metrics=metrics_of(cell, 0.9))

    monkeypatch.setattr(runner, "run_cell", run)
    monkeypatch.setattr(reproduce, "load_dataset", lambda name: None)
    monkeypatch.setattr(reproduce, "stop_words", lambda: frozenset())
    monkeypatch.setattr(reproduce, "check_packages", list)
    for module in (accuracy, labels, sensitivity, abstain, seeds, suggest):
        monkeypatch.setattr(module, "draw", lambda table, runs, paths: None)
    return called


def test_tables_are_known_by_name() -> None:
    assert [table_of(name).name for name in TABLES] == list(TABLES)
    with pytest.raises(InputError, match=r"no table 'figure'. There are: datasets, accuracy"):
        table_of("figure")


def test_representations_from_beginning_to_end(tmp_path: Path, data: Path) -> None:
    path = reproduce.reproduce(load_table("embedder"), Options(["r8"], seeds=1), tmp_path / "out", Workers())
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith(("| WGCN", "| tf-idf"))]
    # Three protocols with a probe, then the nearest documents; after the methods the differences.
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines] == [
        *["WGCNEmbedder, probe", "tf-idf + SVD, probe", "WGCNEmbedder \u2212 tf-idf + SVD"] * 3,
        *["WGCNEmbedder, nearest", "tf-idf + SVD, nearest", "tf-idf, nearest"],
        *["WGCNEmbedder \u2212 tf-idf + SVD", "WGCNEmbedder \u2212 tf-idf"],
    ]
    assert [line.count(" \u2013 ") for line in lines] == [4] * len(lines)
    assert float(lines[6].split(" | ")[-1].split()[0]) > 90


@pytest.mark.parametrize(
    ("name", "device"),
    [
        *((name, "auto") for name in TABLES if load_table(name).rows and name != "efficiency"),
        ("efficiency", "cpu"),
        ("efficiency", "cuda"),
    ],
)
def test_every_table_runs_its_cells(name: str, device: str, tmp_path: Path, calls: list[tuple[Cell, str]]) -> None:
    table = load_table(name)
    dataset = table.datasets[-1]
    with pytest.warns(WGCNWarning, match="Retired") if name == "ablation" else nullcontext():
        path = reproduce.reproduce(table, Options([dataset], seeds=1), tmp_path, Workers(), device=device)
    live = [row.name for row in table.rows if not row.retired and not row.planned]
    wanted = table.cells(Options([dataset], rows=live, seeds=1))
    assert {cell.key for cell, _ in calls} == {cell.key for cell in wanted}
    assert {used for _, used in calls} == {device}
    assert path.read_text(encoding="utf-8").count("Made by") == 1
    found = ResultFile(tmp_path, name).runs(table.all_cells())
    assert len(found) == len(wanted)


def test_costs_that_take_hours_on_a_cpu_are_measured_there_only_on_request(
    tmp_path: Path, calls: list[tuple[Cell, str]]
) -> None:
    table = load_table("efficiency")
    [slow] = {tuple(row.gpu_only) for row in table.rows if row.gpu_only}
    rows = [row.name for row in table.rows if row.gpu_only]
    reproduce.reproduce(table, Options(rows=rows), tmp_path, Workers(), device="cpu")
    assert {cell.dataset for cell, _ in calls} == set(table.datasets) - set(slow)
    calls.clear()
    reproduce.reproduce(table, Options([slow[0]], rows=rows), tmp_path, Workers(), device="cpu")
    assert {cell.dataset for cell, _ in calls} == {slow[0]}


def test_costs_on_two_devices_stand_beside_each_other(tmp_path: Path, calls: list[tuple[Cell, str]]) -> None:
    table = load_table("efficiency")
    for device in ("cpu", "cuda", "cpu"):
        path = reproduce.reproduce(table, Options(["r8"]), tmp_path, Workers(), device=device)
    # All seeds of a row on each device, and nothing is run again.
    n_cells = len(table.cells(Options(["r8"])))
    assert [device for _, device in calls] == ["cpu"] * n_cells + ["cuda"] * n_cells
    # An epoch, the whole training, a new document: each on both.
    assert path.read_text().count("| WGCN |") == 6


def test_costs_are_not_taken_from_another_table(tmp_path: Path, calls: list[tuple[Cell, str]]) -> None:
    table = load_table("efficiency")
    reproduce.reproduce(table, Options(["r8"]), tmp_path, Workers(), device="cpu")
    (tmp_path / "efficiency.json").rename(tmp_path / "accuracy.json")
    reproduce.reproduce(table, Options(["r8"]), tmp_path, Workers(), device="cpu")
    assert len(calls) == 2 * len(table.cells(Options(["r8"])))


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


def test_only_the_data_of_cells_without_a_run_is_needed(
    tmp_path: Path, calls: list[tuple[Cell, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(reproduce, "load_dataset", asked.append)
    table = load_table("ablation")
    texts = "texts of three other sets in the graph"
    for rows, wanted in ((["default"], ["r8"]), ([texts], ["r8", "20ng", "mr", "ohsumed"]), (["default", texts], [])):
        asked.clear()
        reproduce.reproduce(table, Options(["r8"], ["inductive"], rows), tmp_path, Workers())
        assert asked == wanted


def test_texts_of_other_sets_and_the_source_of_groups_are_needed_too(
    tmp_path: Path, calls: list[tuple[Cell, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(reproduce, "load_dataset", asked.append)
    reproduce.reproduce(load_table("abstain"), Options(["r8"], seeds=1), tmp_path, Workers())
    assert asked == ["r8", "20ng", "mr", "ohsumed", "r52"]
    asked.clear()
    reproduce.reproduce(load_table("seeds"), Options(["20ng-coarse"], seeds=1), tmp_path, Workers())
    assert asked == ["20ng"]


def test_without_data_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WGCN_DATA", raising=False)
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(runner, "run_cell", None)
    for name in TABLES:
        with pytest.raises(InputError, match="wgcn-paper data prepare"):
            reproduce.reproduce(load_table(name), Options(), tmp_path / "out", Workers())
    assert not (tmp_path / "out").exists()


def test_statistics_are_measured(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (reproduce, statistics):
        monkeypatch.setattr(module, "stop_words", frozenset)
    table = load_table("datasets")
    path = reproduce.reproduce(table, Options(["r8"]), tmp_path / "out", Workers())
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# The data sets"
    [line] = [line for line in lines if line.startswith("| R8 |")]
    assert line.startswith("| R8 | 90 (7,674) | 60 (5,485) | 30 (2,189) | ")
    assert "| 3 (8) |" in line
    assert "Citeseer" not in path.read_text()


def test_the_table_of_unseen_words_is_made_from_beginning_to_end(data: Path, tmp_path: Path) -> None:
    # With the code of today; the row with word vectors needs an encoder, which takes seconds to load.
    table = replace(load_table("unseen"), versions={})
    rows = [row.name for row in table.rows if not row.planned]
    path = reproduce.reproduce(table, Options(["r8"], rows=rows, seeds=1), tmp_path / "out", Workers())
    text = path.read_text(encoding="utf-8")
    assert text.count("### Protocol: unseen:") == 1
    for name in rows:
        assert text.count(f"| {name} | ") == (1 if name == rows[0] else 2)


# A process that is killed

# Run the command line in a process that kills itself before it saves the third run.
KILLED = """
import os, signal
from wgcn_paper.cli import main
from wgcn_paper.experiments import results

write, calls = results.write_if_changed, []

def counted(path, text):
    calls.append(path)
    if len(calls) == 4:  # the first is the file without runs
        os.kill(os.getpid(), signal.SIGKILL)
    write(path, text)

if __name__ == "__main__":
    results.write_if_changed = counted
    main()
"""


def run_killed(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "small.toml").write_text(SETTINGS)
    (tmp_path / "killed.py").write_text(KILLED)
    command = [sys.executable, str(tmp_path / "killed.py"), "reproduce", "accuracy", "-o", str(folder), "--jobs", "2"]
    ended = subprocess.run([*command, "--settings", str(tmp_path / "small.toml")], capture_output=True, timeout=120)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()


def saved(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the runs that are saved."""
    document = json.loads((folder / "accuracy.json").read_bytes())
    return {run["key"]: {**run, "settings": document["settings"][run["settings"]]} for run in document["runs"]}


def outcome(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the runs without what depends on the time or on the process."""
    timed = ("fit_seconds", "predict_seconds", "predict_one_ms", "memory", "environment", "date")
    return {key: {name: run[name] for name in run if name not in timed} for key, run in saved(folder).items()}


def test_a_killed_run_leaves_no_process_and_continues_where_it_was(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    run_killed(tmp_path, folder)
    ends = time.monotonic() + 60
    while (left := of_this_run(tmp_path)) and time.monotonic() < ends:
        time.sleep(0.02)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
    done = saved(folder)
    assert len(done) == 2
    assert not (folder / "accuracy.md").exists()
    for each in (folder, tmp_path / "whole"):
        reproduce.reproduce(load_table("accuracy", tmp_path / "small.toml"), Options(), each, Workers())
    final = saved(folder)
    assert len(final) == N_CELLS
    assert outcome(folder) == outcome(tmp_path / "whole")
    # What was finished was not run again: even the times are the same.
    for key, run in done.items():
        assert {**final[key], "environment": 0} == {**run, "environment": 0}


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
    own.write_text(SETTINGS)
    folder = tmp_path / "out"
    reproduce.reproduce(load_table("accuracy", own), Options(), folder, Workers(), device="cpu")
    before = saved(folder)
    table = load_table("accuracy", own)
    changed = replace(table, rows=[replace(table.rows[0], settings={"C": 0.5}), table.rows[1]])
    reproduce.reproduce(changed, Options(), folder, Workers(), device="cpu")
    after = saved(folder)
    assert len(before) == len(after) == N_CELLS
    assert {run["variant"] for key, run in after.items() if key in before} == {"LinearSVC, words"}
    assert {run["settings"]["C"] for key, run in after.items() if key not in before} == {0.5}
