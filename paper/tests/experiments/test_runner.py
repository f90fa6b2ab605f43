import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from wgcn.base.errors import InputError
from wgcn_paper.datasets import Dataset, layout
from wgcn_paper.experiments import cells, runner
from wgcn_paper.experiments.cells import Cell, Run, make_cell
from wgcn_paper.experiments.results import ResultFile
from wgcn_paper.experiments.runner import Workers, run_cells, workers


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small set in the place of r8."""
    tmp_path = tmp_path_factory.mktemp("data")
    texts = ("a cat purrs", "the dog barks", "my cat", "his dog", "cat and dog") * 6
    labels = np.array(["cat", "dog", "cat", "dog", "cat"] * 6)
    dataset = Dataset("r8", texts, None, labels, np.arange(20), np.arange(20, 30))
    folder = tmp_path / "data" / "text" / "r8"
    folder.mkdir(parents=True)
    layout.write_text_set(folder, dataset)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WGCN_DATA", str(tmp_path / "data"))
        yield tmp_path / "data"


@pytest.fixture(scope="module")
def two(data: Path) -> Iterator[Workers]:
    """Two processes, which take seconds to start."""
    with workers(2) as pool:
        yield pool


@pytest.fixture(autouse=True)
def forget() -> None:
    cells._dataset.cache_clear()


def svc(seed: int = 0, variant: str = "row", **settings: object) -> Cell:
    return make_cell("r8", "few-label:5", "linear-svc", dict(settings), seed, variant)


def fake(cell: Cell, device: str = "auto") -> Run:
    made = cell.settings["C"] / 10 + cell.seed / 100
    return Run(cell, made, 10, None, None, None, 1.0, 0.1, 100.0, None, cell.key, device, "2026-01-01", {})


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """The cells that are run; nothing is fitted."""
    called: list[Cell] = []

    def run(cell: Cell, device: str) -> Run:
        called.append(cell)
        return fake(cell, device)

    monkeypatch.setattr(runner, "run_cell", run)
    return called


# What is run


def test_what_is_done_is_not_run_again(tmp_path: Path, calls: list[Cell]) -> None:
    wanted = [svc(seed) for seed in range(4)]
    first = run_cells(wanted[:2], ResultFile(tmp_path, "accuracy"), Workers(), "cpu")
    assert [run.cell for run in first] == wanted[:2]
    assert {run.device for run in first} == {"cpu"}
    run_cells(wanted, ResultFile(tmp_path, "accuracy"), Workers())
    assert calls == wanted
    assert run_cells(wanted, ResultFile(tmp_path, "accuracy"), Workers()) == [*first, *(fake(c) for c in wanted[2:])]
    assert calls == wanted


def test_a_changed_setting_runs_what_it_changes(tmp_path: Path, calls: list[Cell]) -> None:
    run_cells([svc(0), svc(1), svc(0, "b")], ResultFile(tmp_path, "accuracy"), Workers())
    calls.clear()
    now = [svc(0, C=3.0), svc(1), svc(0, "b")]
    runs = run_cells(now, ResultFile(tmp_path, "accuracy"), Workers())
    assert calls == [now[0]]
    assert [run.cell for run in runs] == now
    assert len(json.loads((tmp_path / "accuracy.json").read_bytes())["runs"]) == 3


def test_a_run_of_another_table_is_not_run_again(tmp_path: Path, calls: list[Cell]) -> None:
    run_cells([svc(0)], ResultFile(tmp_path, "orders"), Workers())
    calls.clear()
    [run] = run_cells([svc(0, "other name")], ResultFile(tmp_path, "accuracy"), Workers())
    assert calls == []
    assert run.cell.variant == "other name"
    # It is in the own file now, whatever becomes of the other.
    (tmp_path / "orders.json").unlink()
    assert ResultFile(tmp_path, "accuracy").find(svc(0, "other name")) == run


def test_one_cell_under_two_names_is_run_once_and_found_under_both(tmp_path: Path, calls: list[Cell]) -> None:
    wanted = [svc(0, "hidden 250"), svc(0, "window 20"), svc(1, "hidden 250")]
    told: list[tuple[int, int, str]] = []
    runs = run_cells(wanted, ResultFile(tmp_path, "sensitivity"), Workers(), progress=lambda *now: told.append(now))
    assert len(calls) == 2
    assert [run.cell for run in runs] == wanted
    assert [now[:2] for now in told] == [(1, 3), (2, 3), (3, 3)]
    assert ResultFile(tmp_path, "sensitivity").runs(wanted) == runs
    run_cells([*wanted, svc(1, "window 20")], ResultFile(tmp_path, "sensitivity"), Workers())
    assert len(calls) == 2


def test_every_run_is_saved_before_the_next_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[int] = []

    def run(cell: Cell, device: str) -> Run:
        saved.append(len(json.loads((tmp_path / "accuracy.json").read_bytes())["runs"]))
        if cell.seed == 3:
            raise InputError("no more")
        return fake(cell, device)

    monkeypatch.setattr(runner, "run_cell", run)
    with pytest.raises(InputError, match="no more"):
        run_cells([svc(seed) for seed in range(5)], ResultFile(tmp_path, "accuracy"), Workers())
    assert saved == [0, 1, 2, 3]
    assert len(ResultFile(tmp_path, "accuracy").runs(svc(seed) for seed in range(5))) == 3


def test_nothing_to_run(tmp_path: Path, calls: list[Cell]) -> None:
    assert run_cells([], ResultFile(tmp_path, "accuracy"), Workers()) == []
    assert calls == []


# Where it is run


def told(run: Run) -> Run:
    """Leave out what differs from one time to the next."""
    return replace(run, fit_seconds=0.0, predict_seconds=0.0, predict_one_ms=0.0, memory=0.0, environment={})


def test_two_processes_give_the_runs_of_one(two: Workers, tmp_path: Path) -> None:
    wanted = [svc(seed, variant, C=c) for variant, c in (("a", 1.0), ("b", 0.01), ("c", 9.0)) for seed in range(3)]
    alone = run_cells(wanted, ResultFile(tmp_path / "one", "accuracy"), Workers(), "cpu")
    both = run_cells(wanted, ResultFile(tmp_path / "two", "accuracy"), two, "cpu")
    assert [told(run) for run in both] == [told(run) for run in alone]
    assert len({run.model for run in alone}) > 6
    assert [path.name for path in (tmp_path / "two").iterdir()] == ["accuracy.json"]


# Work that can be sent to any process: what a test file defines cannot be imported there.
def where(name: str, i: int) -> str:
    return f"({name!r}, {i}, __import__('os').getpid())"


def test_groups_stay_in_their_process_until_one_has_nothing_left(two: Workers) -> None:
    items = [where(name, i) for name in "abc" for i in range(4)]
    done = list(two.each(eval, items, group=lambda item: item[:4]))
    assert sorted(item for item, _ in done) == items
    assert [where(*outcome[:2]) for _, outcome in done] == [item for item, _ in done]
    processes = {process for _, (_, _, process) in done}
    assert len(processes) == 2
    assert os.getpid() not in processes
    # Two groups begin in one process each; the third is shared out at most.
    by_group = [{process for _, (name, _, process) in done if name == group} for group in "abc"]
    assert sum(len(found) > 1 for found in by_group) <= 1


def test_one_process_is_this_one() -> None:
    with workers(1) as pool:
        [(_, outcome)] = pool.each(eval, [where("a", 0)], group=len)
    assert outcome == ("a", 0, os.getpid())


def test_an_error_in_another_process_ends_the_work(two: Workers, tmp_path: Path) -> None:
    bad = replace(svc(1), dataset="r52")
    with pytest.raises(InputError, match="wgcn-paper data prepare r52"):
        run_cells([svc(0), bad], ResultFile(tmp_path / "out", "accuracy"), two, "cpu")


def test_fresh_work_has_a_process_each() -> None:
    with workers(1, fresh=True) as pool:
        outcomes = [outcome for _, outcome in pool.each(eval, [where("a", 0), where("a", 1)], group=len)]
    assert [outcome[:2] for outcome in outcomes] == [("a", 0), ("a", 1)]
    assert len({os.getpid(), *(process for _, _, process in outcomes)}) == 3
