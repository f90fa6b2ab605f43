"""The table of the searches in a report, from made-up files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wgcn_paper.experiments.pages import Page
from wgcn_paper.experiments.report import NOTHING
from wgcn_paper.experiments.search import search_report
from wgcn_paper.experiments.table import Row, Table

TABLE = Table("orders", "A table", ["r8", "mr"], ["corpus"], 1, [Row("network", "wgcn"), Row("linear", "wgcn-linear")])


def trial(row: str, dataset: str, accuracy: float, seed: int = 0, **settings: Any) -> dict[str, Any]:
    """A training of a search; `window` is a setting that is not searched."""
    return {"row": row, "dataset": dataset, "seed": seed, "accuracy": accuracy, "settings": {**settings, "window": 5}}


def choice(row: str, place: str, means: list[float], seeds: int = 6, **chosen: Any) -> dict[str, Any]:
    finalists = [{"settings": chosen, "mean": mean, "sd": 0.01, "seeds": seeds} for mean in means]
    return {"row": row, "set": place, "chosen": chosen, "finalists": finalists}


def write(folder: Path, chosen: list[dict[str, Any]], evaluations: list[dict[str, Any]]) -> None:
    document = {"format": "wgcn-search-2", "chosen": chosen, "evaluations": evaluations}
    (folder / "orders-search.json").write_text(json.dumps(document), encoding="utf-8")


def lines(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]


def test_rows_are_in_the_order_of_the_table_and_others_are_left_out(tmp_path: Path) -> None:
    places = [("gone", "r8"), ("linear", "r8"), ("network", "mr"), ("network", "r8")]
    write(tmp_path, [choice(row, place, [0.9], C=1.0) for row, place in places], [])
    found = lines(search_report(TABLE, tmp_path))
    assert found[0] == ["row", "set", "trials", "worst to best", "the best three", "chosen"]
    assert [line[:2] for line in found[1:]] == [["network", "MR"], ["network", "R8"], ["linear", "R8"]]


def test_a_trial_is_the_mean_of_its_seeds_and_finalists_have_theirs_in_brackets(tmp_path: Path) -> None:
    trials = [
        trial("network", "r8", 0.8, hidden=4),
        trial("network", "r8", 0.9, hidden=8),
        trial("network", "r8", 0.96, seed=1, hidden=8),
        trial("network", "r8", 0.7, hidden=16),
        trial("network", "mr", 0.1, hidden=32),
        trial("linear", "r8", 0.2, hidden=4),
    ]
    write(tmp_path, [choice("network", "r8", [0.93, 0.8, 0.7, 0.6], hidden=8, rate=0.1)], trials)
    text = search_report(TABLE, tmp_path)
    assert "6 trainings in all." in text
    assert "Every one is in [orders-search.json](orders-search.json)." in text
    [_, line] = lines(text)
    assert line[2:] == ["3", "70.0 to 93.0", "93.00 / 80.00 / 70.00 [6]", "hidden 8, rate 0.1"]


def test_values_that_a_table_varies_have_lines_of_their_own(tmp_path: Path) -> None:
    trials = [trial("network; order 2", "r8", 0.5, hidden=4), trial("network; order 1", "r8", 0.6, hidden=4)]
    write(tmp_path, [choice("network", f"r8; order {order}", [0.9], hidden=4) for order in (1, 2, 3)], trials)
    found = [line[1:4] for line in lines(search_report(TABLE, tmp_path))[1:]]
    assert found == [
        ["R8, order 1", "1", "60.0 to 60.0"],
        ["R8, order 2", "1", "50.0 to 50.0"],
        ["R8, order 3", "0", NOTHING],
    ]


@pytest.mark.parametrize("content", [None, "{", "[]", "{}", '{"chosen": [1], "evaluations": []}', "\xff"])
def test_without_a_file_and_with_a_damaged_one_there_is_nothing(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "orders-search.json").write_text(content, encoding="latin-1")
    assert search_report(TABLE, tmp_path) == ""


def test_a_search_of_no_row_of_the_table_is_nothing(tmp_path: Path) -> None:
    write(tmp_path, [choice("gone", "r8", [0.9], C=1.0)], [trial("gone", "r8", 0.9, C=1.0)])
    assert search_report(TABLE, tmp_path) == ""


def test_a_report_ends_with_its_search(tmp_path: Path) -> None:
    write(tmp_path, [choice("linear", "mr", [0.9], C=1.0)], [trial("linear", "mr", 0.9, C=1.0)])
    text = Page.of("orders", tmp_path).report(replace(TABLE, vary=[("order", [0, 1])]), [], tmp_path)
    assert text.endswith("| linear | MR | 1 | 90.0 to 90.0 | 90.00 [6] | C 1.0 |\n")
