"""The paper element by element, on made-up runs; and that no element of the paper is forgotten."""

import json
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from wgcn.base.errors import InputError
from wgcn_paper.experiments import published, reproduce
from wgcn_paper.experiments.cells import Cell, Run
from wgcn_paper.experiments.elements import KINDS, Element, Line, Result, Runs, load_elements, report, row_of
from wgcn_paper.experiments.pages import TABLES
from wgcn_paper.experiments.report import NOTHING
from wgcn_paper.experiments.reproduce import selected
from wgcn_paper.experiments.results import ResultFile
from wgcn_paper.experiments.runner import Workers
from wgcn_paper.experiments.table import Options, load_table

ROOT = Path(__file__).parents[3]
ELEMENTS = load_elements()
TEXT_SETS, CITATION_SETS = ["20ng", "mr", "ohsumed", "r52", "r8"], ["citeseer", "pubmed"]


def results_of(*elements: Element) -> list[dict[str, Any]]:
    """What the settings file says of the results of elements."""
    return [{**element.common, **own} for element in elements for own in element.results]


RESULTS = results_of(*ELEMENTS)


def in_group(name: str) -> list[dict[str, Any]]:
    return results_of(*(element for element in ELEMENTS if element.group == name))


def names(part: Any, key: str = "row") -> list[str]:
    """The rows or sets that a part names."""
    found = part.get(key, [])
    return [found] if isinstance(found, str) else found


def made(cell: Cell, accuracy: float, ms: float = 2.0, memory: float = 100.0) -> Run:
    told = (cell, accuracy / 100, 1000, None, 3, ms, 2.0, 0.1, 100.0, memory, "abc", "cuda", "2026-01-01", {})
    return Run(*told)


# What is in the settings file


KNOWN = {*KINDS, "beaten", "equal", "whole"}


def test_names_are_unique_within_a_group() -> None:
    found = [(element.group, element.name) for element in ELEMENTS]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda element: element.name)
def test_files_exist_and_commands_can_be_given(element: Element) -> None:
    assert element.files
    assert [file for file in element.files if not (ROOT / file).is_file()] == []
    made_by = set()
    assert element.commands
    for command in element.commands:
        program, verb, table, *options = shlex.split(command)
        assert (program, verb) == ("wgcn-paper", "reproduce")
        assert table in TABLES
        made_by.add(table)
        given = dict(zip(options[::2], options[1::2], strict=True))
        assert set(given) <= {"--rows", "--device"}
        rows = given.get("--rows", "").split("; ") if "--rows" in given else []
        assert set(rows) <= {row.name for row in load_table(table).rows}
    # Each table that a figure comes from is made by one of the commands.
    assert {part["table"] for part in results_of(element)} == made_by


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda element: element.name)
def test_a_command_makes_the_rows_that_its_element_shows(element: Element) -> None:
    for command in element.commands:
        _, _, table, *options = shlex.split(command)
        if "--rows" in options:
            made_rows = options[options.index("--rows") + 1].split("; ")
            own = [part for part in results_of(element) if part["table"] == table]
            wanted = {row for part in own for key in ("row", "minus") for row in names(part, key)}
            assert {row.partition(";")[0] for row in wanted} == set(made_rows)


def test_parts_have_known_keys_and_kinds() -> None:
    source = {"kind", "table", "row", "set", "protocol", "metric", "minus", "over", "setting", "take", "by", "claimed"}
    shown = {"label", "none", "absent", "above", "below", "digits", "as_quotient"}
    for part in RESULTS:
        assert set(part) <= source | shown
    assert {part.get("kind", "row") for part in RESULTS} == KNOWN


def test_every_equation_of_the_paper_has_a_line() -> None:
    found = [element.name for element in ELEMENTS if element.group == "Equations"]
    assert [int(re.match(r"Eq\. (\d+),", name)[1]) for name in found] == list(range(1, 12))  # type: ignore[index]


@pytest.mark.parametrize("table", ["accuracy", "citations"])
def test_every_row_beside_a_published_one_is_a_method(table: str) -> None:
    methods = [part for e in ELEMENTS if e.group.startswith("Methods") for part in results_of(e)]
    shown = {row for part in methods if part["table"] == table for row in names(part)}
    assert shown == {row.name for row in load_table(table).rows if row.published}


@pytest.mark.parametrize(
    ("table", "figures"),
    [("accuracy", published.ACCURACY), ("citations", published.CITATIONS), ("efficiency", published.EFFICIENCY)],
)
def test_every_published_figure_is_in_a_table_of_the_paper(table: str, figures: dict[str, dict[str, Any]]) -> None:
    tables = [part for part in in_group("Tables") if part["table"] == table]
    assert {row_of(table, row).published for part in tables for row in names(part)} == set(figures)
    assert not any("set" in part for part in tables)  # all that the table has
    assert {name for sets in figures.values() for name in sets} <= set(load_table(table).datasets)


@pytest.mark.parametrize(
    ("table", "figures"), [("orders", published.ORDERS), ("citation-orders", published.CITATION_ORDERS)]
)
def test_every_published_order_is_in_a_table_of_the_paper(table: str, figures: dict[str, Any]) -> None:
    tables = [part for part in in_group("Tables") if part["table"] == table]
    for row in load_table(table).rows:
        assert {name for part in tables if part["row"] == row.name for name in names(part, "set")} == set(figures)


def test_every_data_set_of_the_paper_has_its_sizes() -> None:
    own = [part["set"] for part in in_group("Data sets")]
    assert own == [*TEXT_SETS, *CITATION_SETS]
    tables = [
        part["set"] for e in ELEMENTS if e.group == "Tables" for part in results_of(e) if part["table"] == "datasets"
    ]
    assert tables == [TEXT_SETS, CITATION_SETS]


def test_every_table_of_the_paper_has_a_line() -> None:
    found = [{part["table"] for part in results_of(e)} for e in ELEMENTS if e.group == "Tables"]
    wanted = ["datasets", "accuracy", "orders", "efficiency", "datasets", "citations", "citation-orders"]
    assert found == [{name} for name in wanted]


# Kinds of parts


@pytest.fixture
def runs_of() -> Runs:
    """Made-up runs of five tables, of two or three seeds that differ by 0.02 points."""
    paper = "WGCN, the paper's"

    def runs(rows: dict[str, dict[str, float]], seeds: Iterable[int] = (0, 1)) -> list[Run]:
        return [
            made(Cell(dataset, "corpus", "wgcn", {}, seed, row), value + 0.02 * seed)
            for row, sets in rows.items()
            for dataset, value in sets.items()
            for seed in seeds
        ]

    windows = {
        f"{paper}; window {window}": {"20ng": 80 + i, "mr": 70 - abs(i - 3)}
        for i, window in enumerate((5, 10, 15, 20, 25, 30, 40, 50))
    }
    costs = [
        made(Cell(dataset, "corpus", "wgcn", {}, seed, f"{row}; cuda"), 50, ms * 10**seed, 100.0)
        for row, times in (("Text-GCN", (6.0, 9.0)), (paper, (3.0, 3.0)))
        for dataset, ms in zip(("mr", "r8"), times, strict=True)
        for seed in (-1, 0, 1)
    ]
    known = {
        "accuracy": runs({"WGCN": {"mr": 78, "r8": 97}, "CNN": {"mr": 77, "r8": 98}, "LSTM": {"mr": 73, "r8": 96.98}}),
        "orders": runs({f"{paper}; order {k}": {"r52": 90 + k, "r8": 95.09 - k} for k in range(4)}),
        "sensitivity": runs(windows),
        "efficiency": costs,
    }
    return known.__getitem__


def line(runs_of: Runs, folder: Path = Path(), **says: Any) -> Line:
    [found] = Result({"table": "accuracy", "row": "WGCN", "set": ["mr", "r8"], **says}, runs_of, folder).lines()
    return found


def test_a_row_stands_beside_the_row_of_the_paper(runs_of: Runs) -> None:
    found = line(runs_of)
    assert found.label == "WGCN, MR / R8"
    assert found.measured == pytest.approx([78.01, 97.01])
    assert found.published == [77.94, 97.90]
    assert line(runs_of, label="our {row}").label == "our WGCN, MR / R8"
    assert line(runs_of, row="CNN", claimed=5).published == [5, 5]
    assert line(runs_of, metric="gpu_memory").published == [None, None]


def test_a_varied_row_stands_beside_the_orders_of_the_paper(runs_of: Runs) -> None:
    found = line(runs_of, kind="varied", table="orders", row="WGCN, the paper's", setting="order", set="r52")
    assert found.label == "R52, order 0 / 1 / 2 / 3"
    assert found.measured == pytest.approx([90.01, 91.01, 92.01, 93.01])
    assert found.published == list(published.ORDERS["r52"])


def test_a_lead_is_over_the_best_or_the_mean_of_other_rows(runs_of: Runs) -> None:
    best = line(runs_of, kind="ahead", minus=["CNN", "LSTM"])
    assert best.measured == pytest.approx([1, -1])
    assert best.published == pytest.approx([77.94 - 77.75, 97.90 - 96.31])
    by_mean = line(runs_of, kind="ahead", minus=["CNN", "LSTM"], by="mean")
    assert by_mean.measured == pytest.approx([3, -0.49])
    assert by_mean.published == pytest.approx([77.94 - (77.75 + 77.68) / 2, 97.90 - (95.71 + 96.31) / 2])
    assert line(runs_of, kind="ahead", minus="CNN", take="mean").measured == pytest.approx([0])


def test_a_row_that_leaves_out_a_set_takes_none_from_the_others(runs_of: Runs) -> None:
    keys = {"table": "orders", "row": ["WGCN, published code, searched", "WGCN, the paper's"]}
    assert Result({**keys, "row": keys["row"][0]}, runs_of, Path()).sets == ["r52", "r8"]
    assert Result(keys, runs_of, Path()).sets == ["20ng", "mr", "ohsumed", "r52", "r8"]
    assert Result({**keys, "minus": keys["row"][0]}, runs_of, Path()).sets == ["r52", "r8"]


def test_a_lead_needs_a_t_test_to_count(runs_of: Runs) -> None:
    # On R8, CNN is ahead and LSTM is behind by no more than the seeds differ.
    found = line(runs_of, kind="beaten", minus=["CNN", "LSTM"])
    assert (found.measured, found.published) == ([2, 0], [2, 2])


def test_values_of_a_setting(runs_of: Runs) -> None:
    keys = {"table": "sensitivity", "row": "WGCN, the paper's", "setting": "window", "set": ["20ng", "mr"]}
    assert line(runs_of, **keys, kind="best", claimed=20) == Line("WGCN, the paper's, 20NG / MR", [50, 20], [20, 20])
    assert line(runs_of, **keys, kind="spread").measured == pytest.approx([7, 4])
    assert line(runs_of, **keys, kind="rises", claimed=7) == Line("WGCN, the paper's, 20NG / MR", [7, 3], [7, 7])


def test_costs_are_medians_and_multiples_are_means_over_the_sets(runs_of: Runs) -> None:
    keys = {"table": "efficiency", "row": "Text-GCN", "metric": "ms_per_epoch"}
    assert line(runs_of, **keys) == Line("Text-GCN, MR / R8", [6, 9], [1060, 1869])
    found = line(runs_of, **keys, kind="times", over="WGCN, the paper's")
    assert found.measured == [2.5]
    assert found.published == pytest.approx([(1060 / 458 + 1869 / 812) / 2])


def test_a_whole_table_is_a_mean_and_the_farthest_figure(runs_of: Runs) -> None:
    keys = {"table": "accuracy", "row": ["WGCN", "CNN", "LSTM"], "kind": "whole", "set": ["mr", "r8"]}
    average, farthest = Result(keys, runs_of, Path()).lines()
    assert average.label == "mean of 6 figures"
    assert average.measured == pytest.approx([(78 + 97 + 77 + 98 + 73 + 96.98) / 6 + 0.01])
    assert farthest.label == "farthest: LSTM on MR"
    assert (farthest.measured, farthest.published) == (pytest.approx([73.01]), [77.68])


def test_sizes_are_those_of_the_table_of_data_sets(runs_of: Runs, tmp_path: Path) -> None:
    sizes = {"documents": 7674, "train": 5485, "test": 2000, "words": 7688, "classes": 8, "mean length": 65.7}
    (tmp_path / "datasets.json").write_text(json.dumps({"r8": sizes}))
    says = {"table": "datasets", "set": "r8", "label": "sizes"}
    found = line(runs_of, tmp_path, **says, kind="sizes")
    assert found == Line("sizes", list(sizes.values()), [7674, 5485, 2189, 7688, 8, 65.72])
    assert line(runs_of, tmp_path, **says, kind="equal") == Line("sizes", [4], [6])
    ratio = line(runs_of, tmp_path, **says, kind="quotients", row="documents", over="words")
    assert ratio.measured == [7674 / 7688]
    with pytest.raises(InputError, match=r"no sizes of MR: table datasets"):
        line(runs_of, tmp_path, **{**says, "set": "mr"}, kind="sizes")


def test_an_unknown_row_is_an_error() -> None:
    with pytest.raises(InputError, match="no row 'BERT' in the table accuracy"):
        row_of("accuracy", "BERT")


# The report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up runs of two seeds of all cells that the elements need."""
    folder = tmp_path_factory.mktemp("results")
    for name in {part["table"] for part in RESULTS} - {"datasets"}:
        cells = selected(load_table(name), Options(seeds=2), "cuda")
        ResultFile(folder, name).add(made(cell, 70 + i % 11 + cell.seed) for i, cell in enumerate(cells))
    (folder / "datasets.json").write_bytes((ROOT / "paper" / "results" / "datasets.json").read_bytes())
    return folder


@pytest.fixture(scope="module")
def text(folder: Path) -> str:
    return report(load_table("elements"), [], folder)


def test_every_element_has_a_line_without_gaps(text: str) -> None:
    lines = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    lines = [cells for cells in lines if cells[0].strip() != "element"]
    assert len(lines) == len(ELEMENTS)
    for element, cells in zip(ELEMENTS, lines, strict=True):
        assert cells[0].strip().startswith(element.name)
        assert len(cells) == 6
        assert all(cell.strip() for cell in cells)
        # No dash without its reason.
        assert all(rest.startswith(" (") for cell in cells for rest in cell.split(NOTHING)[1:])
    assert re.findall(r"^## (.*)$", text, re.M) == list(dict.fromkeys(element.group for element in ELEMENTS))


def test_a_half_is_rounded_up(text: str) -> None:
    [wgcn] = [line for line in text.splitlines() if line.startswith("| WGCN. ") and "accuracy" in line]
    assert "| 88.9 / 77.9 / 69.6 / 94.9 / 97.9 |" in wgcn  # 88.85


def test_the_report_is_written_without_data(
    folder: Path, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WGCN_DATA", raising=False)
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    path = reproduce.reproduce(load_table("elements"), Options(), folder, Workers())
    assert path == folder / "elements.md"
    written = path.read_bytes()
    assert written.startswith(b"# The paper, element by element\n\nOne line per element of the paper.")
    assert reproduce.reproduce(load_table("elements"), Options(), folder, Workers()).read_bytes() == written
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert [line for line in written.decode().splitlines() if line.startswith("|")] == tables


def test_elements_without_a_result_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        reproduce.reproduce(load_table("elements"), Options(), tmp_path, Workers())
    said = str(caught.value)
    assert said.startswith(f"{len(ELEMENTS)} elements of the paper have no result.")
    assert "wgcn-paper data prepare" in said
    assert "There is no run on 20ng: table accuracy, row Eq. 8, linearised WGCN, protocol corpus" in said
    assert all(element.name in said for element in ELEMENTS)
    assert not (tmp_path / "elements.md").exists()
