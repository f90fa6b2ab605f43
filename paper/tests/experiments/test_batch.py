"""Many tables at once from a plain python, on a small set."""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgcn_paper.datasets import Dataset, layout
from wgcn_paper.experiments import batch, pages, runner
from wgcn_paper.experiments.batch import LOOP, main, selected_cells
from wgcn_paper.experiments.cells import Run
from wgcn_paper.experiments.table import load_table
from wgcn_paper.measures.measure import load_data


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small set in the place of r8, and a cache of no one."""
    labels = np.array(["earn", "grain", "trade"] * 40)
    rng = np.random.default_rng(0)
    texts = tuple(" ".join(f"{label}{i} word{i * k}" for k, i in enumerate(rng.integers(0, 9, 5))) for label in labels)
    (tmp_path / "data/text/r8").mkdir(parents=True)
    layout.write_text_set(
        tmp_path / "data/text/r8", Dataset("r8", texts, None, labels, np.arange(90), np.arange(90, 120))
    )
    monkeypatch.setenv("WGCN_DATA", "")
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    # With the code of today, which tables of earlier runs do not show.
    monkeypatch.setattr("wgcn_paper.experiments.table.load_table", lambda name: replace(load_table(name), versions={}))
    for name in batch._THREADS:
        monkeypatch.setenv(name, "1")
    load_data.cache_clear()
    return tmp_path / "data"


def chosen(datasets: list[str], seeds: int, quick: bool = False) -> argparse.Namespace:
    """The options of a command line."""
    words = ["--out", "nowhere", "--datasets", ",".join(datasets), "--seeds", str(seeds)]
    return batch._options([*words, "--quick"] if quick else words)


def saved(folder: Path, name: str) -> list[dict[str, Any]]:
    document = json.loads((folder / f"{name}.json").read_bytes())
    return [{**run, "settings": document["settings"][run["settings"]]} for run in document["runs"]]


def test_cells_are_those_of_the_tables_and_quick_ones_are_others() -> None:
    for name in LOOP:
        whole, quick = (selected_cells(name, chosen(["r8", "mr"], 2, quick)) for quick in (False, True))
        assert {cell.key for cell in whole} <= {cell.key for cell in load_table(name).cells()}
        assert not {cell.key for cell in whole} & {cell.key for cell in quick}
        assert {cell.seed for cell in whole} == {0, 1}


def test_what_can_be_run_is_run_saved_and_not_run_again(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "find_spec", lambda name: None)
    command = ["--names", "suggest,review", "--out", str(tmp_path / "out"), "--data", str(data), "--seeds", "1"]
    monkeypatch.setattr("wgcn_paper.measures.suggest._wgcn", _nothing)
    assert main([*command, "--datasets", "r8,mr"]) == 1
    out = capsys.readouterr().out
    assert "Left out: small-text on r8, for want of small_text." in out
    assert "Left out: review on r8, for want of cleanlab." in out
    assert "Left out: suggest on mr, for want of the data set mr." in out
    assert out.count("FAILED: RuntimeError: not here") == 2
    assert "suggest: 2 of 10 cells" in out
    assert "Report: " in out
    runs = saved(tmp_path / "out", "suggest")
    assert [run["variant"] for run in runs] == ["LinearSVC, random", "LinearSVC, smallest margin"]
    assert not (tmp_path / "out/review.json").exists()
    before = (tmp_path / "out/suggest.json").read_bytes()
    assert main([*command, "--datasets", "r8"]) == 1
    assert capsys.readouterr().out.count("LinearSVC") == 0
    assert (tmp_path / "out/suggest.json").read_bytes() == before


def _nothing(*_: object) -> None:
    raise RuntimeError("not here")


def test_no_cell_is_begun_after_the_time(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--names", "suggest", "--out", str(tmp_path / "out"), "--data", str(data), "--datasets", "r8"]
    assert main([*command, "--minutes", "-1"]) == 0
    assert "suggest: 0 of 50 cells" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_costs_are_always_measured_in_new_processes(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    @contextmanager
    def record(jobs: int, *, fresh: bool = False) -> Iterator[runner.Workers]:
        asked.append((jobs, fresh))
        yield runner.Workers()

    monkeypatch.setattr(runner, "workers", record)
    monkeypatch.setattr(batch, "_possible", lambda cells: [])
    for words in (["accuracy"], ["efficiency"], ["accuracy,efficiency"], ["accuracy", "--fresh"]):
        assert main(["--out", str(tmp_path / "out"), "--jobs", "4", "--device", "cpu", "--names", *words]) == 0
    assert asked == [(4, False), (4, True), (4, True), (4, True)]


def test_cells_that_share_preparations_are_in_one_process() -> None:
    def groups(name: str) -> list[object]:
        cells = selected_cells(name, chosen(["r8"], 3))
        return [batch._group((name, cell)) for cell in cells if cell.variant == cells[0].variant]

    assert len(groups("accuracy")) > len(set(groups("accuracy"))) == 2  # one per protocol
    assert len(groups("explanations")) > len(set(groups("explanations"))) == 1
    assert len(groups("suggest")) == len(set(groups("suggest"))) == 3


def test_runs_are_saved_where_the_report_cannot_be_drawn(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'matplotlib'")

    monkeypatch.setattr(pages, "write_report", missing)
    words = ["--names", "accuracy", "--rows", "LinearSVC", "--datasets", "r8", "--protocols", "inductive"]
    assert main([*words, "--out", str(tmp_path / "out"), "--data", str(data)]) == 0
    assert "No report: No module named 'matplotlib'" in capsys.readouterr().out
    assert len(saved(tmp_path / "out", "accuracy")) == 1


def test_quick_runs_do_not_open_the_test_file(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (data / "text/r8/test.tsv.gz").write_bytes(b"no texts")
    monkeypatch.setattr(
        batch, "_possible", lambda cells: [cell for cell in cells if cell.variant == "LinearSVC, random"]
    )
    command = ["--names", "suggest", "--out", str(tmp_path / "out"), "--data", str(data), "--datasets", "r8", "--quick"]
    assert main([*command, "--seeds", "1"]) == 0
    [run] = saved(tmp_path / "out", "suggest")
    assert (run["n_test"], run["settings"]["held_out"]) == (18, True)


def test_costs_need_the_name_of_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--names", "efficiency", "--out", "nowhere"])
    assert "costs are of one device" in capsys.readouterr().err


def test_an_unknown_table_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--names", "sugest", "--out", "nowhere"])
    assert "there is no table sugest" in capsys.readouterr().err


def test_the_command_needs_no_package_of_the_command_line() -> None:
    import subprocess

    code = (
        "import sys; sys.modules['typer'] = sys.modules['rich'] = None\n"
        "from wgcn_paper.experiments.batch import _options, main, selected_cells\n"
        "import wgcn_paper.experiments.cells, wgcn_paper.experiments.reproduce\n"
        "print(len(selected_cells('suggest', _options(['--out', 'x']))))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.stdout.strip() == "250", ended.stderr


def test_metrics_are_saved_with_a_run_and_left_out_where_there_are_none() -> None:
    [cell, *_] = selected_cells("suggest", chosen(["r8"], 1))
    told = (cell, 0.9, 10, None, None, None, 1.0, None, 100.0, None, None, "cpu", "2026-01-01", {"machine": "m"})
    run = Run(*told, metrics={"10": 0.5, "examples": [{"label": "a"}]})
    assert Run.from_json(json.loads(json.dumps(run.as_json()))) == run
    assert "metrics" not in Run(*told).as_json()


def test_any_table_can_be_run_and_taken_over_by_another_folder(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    words = ["--names", "accuracy", "--models", "linear-svc", "--datasets", "r8", "--protocols", "inductive"]
    assert main([*words, "--rows", "LinearSVC", "--out", str(there), "--data", str(data)]) == 0
    assert "accuracy: 1 of 1 cells" in capsys.readouterr().out
    assert main(["--names", "accuracy,orders", "--merge", str(there), "--out", str(here)]) == 0
    assert saved(here, "accuracy") == saved(there, "accuracy")
    [run] = saved(here, "accuracy")
    assert run["right"]


def test_a_search_begins_nothing_after_the_time(data: Path, tmp_path: Path) -> None:
    words = [
        "--search",
        "--names",
        "accuracy",
        "--rows",
        "Eq. 8, linearised WGCN",
        "--datasets",
        "r8",
        "--minutes",
        "-1",
    ]
    assert main([*words, "--out", str(tmp_path / "out"), "--data", str(data)]) == 0
    assert not (tmp_path / "out").exists()
