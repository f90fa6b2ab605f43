import json
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgcn.base.errors import InputError
from wgcn_paper.datasets import Dataset
from wgcn_paper.experiments import cells, search
from wgcn_paper.experiments.cells import Cell
from wgcn_paper.experiments.runner import Workers
from wgcn_paper.experiments.table import Options, Row, Table
from wgcn_paper.methods.wgcn import LinearMethod

TABLE = Table(
    "accuracy",
    "A table",
    ["r8", "mr"],
    ["inductive", "corpus"],
    1,
    [
        Row("network", "wgcn", {"refit": True, "hidden": 4}, search={"hidden": [4, 8], "order": [0, 1]}),
        Row("linear", "wgcn-linear", search={"C": [1e-6, 1.0]}),
        Row("plain", "linear-svc"),
    ],
)
R8 = Options(datasets=["r8"], rows=["linear"])


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """The cells that are judged: by their settings, with a little luck of the seed; nothing is fitted."""
    called: list[Cell] = []

    def judge(cell: Cell, device: str) -> float:
        called.append(cell)
        good = cell.settings.get("C", 0) == 1.0 or cell.settings.get("hidden") == 8
        return 0.6 + 0.2 * good + 0.01 * cell.seed

    monkeypatch.setattr(search, "validate_cell", judge)
    return called


def run(folder: Path, options: Options = R8, trials: int = 6, **more: Any) -> dict[str, list[dict[str, object]]]:
    path = search.search(TABLE, options, folder, Workers(), trials=trials, **more)
    assert path == folder / "accuracy-search.json"
    found: dict[str, list[dict[str, object]]] = json.loads(path.read_text())
    return found


def test_better_settings_are_chosen(tmp_path: Path, judged: list[Cell]) -> None:
    document = run(tmp_path)
    [chosen] = document["chosen"]
    assert (chosen["row"], chosen["set"], chosen["protocol"]) == ("linear", "r8", "inductive")
    assert chosen["chosen"] == {"C": 1.0}
    assert chosen["trials"] == 2
    best, worst = sorted(chosen["finalists"], key=lambda one: -one["mean"])  # type: ignore[attr-defined]
    assert (best["settings"], worst["settings"]) == ({"C": 1.0}, {"C": 1e-6})
    assert (best["mean"], best["seeds"]) == (pytest.approx(0.825), 6)
    assert len(document["evaluations"]) == len(judged) == 12


def test_no_setting_is_judged_twice(tmp_path: Path, judged: list[Cell]) -> None:
    run(tmp_path, trials=12)
    assert len({cell.key for cell in judged}) == len(judged)


def test_a_search_goes_on_where_it_was(tmp_path: Path, judged: list[Cell], monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(datasets=["r8"], rows=["network"])
    whole = run(tmp_path / "whole", options)
    n_judged, judge = len(judged), search.validate_cell
    judged.clear()

    def stops(cell: Cell, device: str) -> float:
        if len(judged) == 7:
            raise KeyboardInterrupt
        return judge(cell, device)

    monkeypatch.setattr(search, "validate_cell", stops)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", options)
    assert len(json.loads((tmp_path / "parts/accuracy-search.json").read_text())["evaluations"]) == 7
    monkeypatch.setattr(search, "validate_cell", judge)
    assert run(tmp_path / "parts", options) == whole
    assert len(judged) == n_judged
    run(tmp_path / "parts", options)
    assert len(judged) == n_judged


def test_what_was_chosen_for_other_sets_stays(tmp_path: Path, judged: list[Cell]) -> None:
    run(tmp_path)
    run(tmp_path, replace(R8, datasets=["mr"]))
    document = run(tmp_path)
    assert sorted(str(one["set"]) for one in document["chosen"]) == ["mr", "r8"]


def test_a_search_never_trains_on_what_it_judges_by(tmp_path: Path, judged: list[Cell]) -> None:
    run(tmp_path, Options(datasets=["mr"], rows=["network"]))
    assert {(cell.dataset, cell.protocol, cell.settings["refit"]) for cell in judged} == {("mr", "inductive", False)}


def test_rows_without_ranges_are_left_alone(tmp_path: Path, judged: list[Cell]) -> None:
    document = run(tmp_path, Options(), trials=2)
    assert {(one["row"], one["set"]) for one in document["chosen"]} == {
        (row, dataset) for row in ("network", "linear") for dataset in ("r8", "mr")
    }
    with pytest.raises(InputError, match="No row of 'accuracy' that was selected has ranges"):
        run(tmp_path, Options(rows=["plain"]))


def test_a_search_can_be_of_some_methods_alone(tmp_path: Path, judged: list[Cell]) -> None:
    run(tmp_path, Options(["r8"], models=["wgcn-linear", "linear-svc"]), trials=2)
    assert {cell.method for cell in judged} == {"wgcn-linear"}
    with pytest.raises(InputError, match="No row of 'accuracy' that was selected has ranges"):
        run(tmp_path, Options(models=["linear-svc"]))


def test_a_damaged_log_is_explained(tmp_path: Path, judged: list[Cell]) -> None:
    (tmp_path / "accuracy-search.json").write_text("{")
    with pytest.raises(InputError, match=r"accuracy-search.json cannot be read.*Move it away"):
        run(tmp_path)
    assert judged == []


def test_test_documents_have_no_part_in_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    labels = np.array(["cat", "dog"] * 80, object)
    texts = tuple(
        f"{label if rng.random() < 0.8 else 'pet'} word{rng.integers(20)} {rng.integers(9)}" for label in labels
    )
    pets = Dataset("r8", texts, None, labels, np.arange(120), np.arange(120, 160))
    labels = labels.copy()
    labels[pets.test] = "poison"
    poisoned = replace(pets, labels=labels)
    asked: list[object] = []
    monkeypatch.setattr(LinearMethod, "predict", lambda method, query: asked.append(query))
    found = []
    for name, dataset in (("plain", pets), ("poisoned", poisoned)):
        monkeypatch.setattr(cells, "_dataset", lambda _, dataset=dataset: dataset)
        found.append(run(tmp_path / name, trials=3, rounds=((1, 1.0, 1), (4, 0.0, 3))))
    assert found[0]["evaluations"] == found[1]["evaluations"]
    assert found[0]["chosen"] == found[1]["chosen"]
    [chosen] = found[0]["chosen"]
    best, worst = sorted(chosen["finalists"], key=lambda one: -one["mean"])  # type: ignore[attr-defined]
    assert best["mean"] > worst["mean"]
    assert chosen["chosen"] == best["settings"]
    assert asked == []


def test_the_best_of_a_round_go_into_the_next(tmp_path: Path, judged: list[Cell]) -> None:
    row = Row("linear", "wgcn-linear", search={"C": [0.1 * i for i in range(1, 11)] + [1e-6]})
    search.search(replace(TABLE, rows=[row]), R8, tmp_path, Workers(), trials=30)
    seeds = Counter(round(cell.settings["C"], 6) for cell in judged)
    assert len(seeds) == 11
    assert sorted(seeds.values()) == [1] * 5 + [3] * 3 + [6] * 3
    assert seeds[1.0] == 6


def test_every_value_that_a_table_varies_has_a_search_of_its_own(tmp_path: Path, judged: list[Cell]) -> None:
    row = replace(TABLE.rows[0], search={"hidden": [4, 8]})
    table = replace(TABLE, rows=[row], vary=[("order", [0, 2])])
    path = search.search(table, Options(["r8"], rows=["network"]), tmp_path, Workers(), trials=9)
    found = json.loads(path.read_text())
    assert [one["set"] for one in found["chosen"]] == ["r8; order 0", "r8; order 2"]
    assert {cell.settings["order"] for cell in judged} == {0, 2}


def test_what_was_chosen_is_written_as_settings(tmp_path: Path, judged: list[Cell]) -> None:
    run(tmp_path)
    [chosen] = tomllib.loads((tmp_path / "accuracy-search.toml").read_text())["chosen"]
    assert chosen == {"row": "linear", "set": "r8", "settings": {"C": 1.0}}


def test_a_loss_that_is_not_finite_is_the_worst(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(cell: Cell, device: str) -> float:
        if cell.settings["C"] == 1.0:
            raise InputError("The loss became nan in epoch 3.")
        return 0.5

    monkeypatch.setattr(search, "validate_cell", judge)
    [chosen] = run(tmp_path)["chosen"]
    assert chosen["chosen"] == {"C": 1e-6}


def test_other_errors_end_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(cell: Cell, device: str) -> float:
        raise InputError("The data set r8 is not on this machine.")

    monkeypatch.setattr(search, "validate_cell", judge)
    with pytest.raises(InputError, match="not on this machine"):
        run(tmp_path)


def test_trials_of_an_earlier_format_are_judged_anew(tmp_path: Path, judged: list[Cell]) -> None:
    before = run(tmp_path)
    path = tmp_path / "accuracy-search.json"
    path.write_text(path.read_text().replace("wgcn-search-2", "wgcn-search-1"))
    judged.clear()
    assert run(tmp_path) == before
    assert len(judged) == 12
