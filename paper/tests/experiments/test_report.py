"""What the reports say of made-up runs."""

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from wgcn import plots as pictures
from wgcn_paper.experiments import accuracy, results
from wgcn_paper.experiments.batch import LOOP
from wgcn_paper.experiments.cells import Cell, Run
from wgcn_paper.experiments.efficiency import WHOLE
from wgcn_paper.experiments.pages import TABLES, Page, write_report
from wgcn_paper.experiments.report import (
    NOTHING,
    Score,
    group,
    is_off_lock,
    markdown_table,
    metric,
    p_text,
    provenance,
    ratio,
    score,
)
from wgcn_paper.experiments.table import Options, Row, Table, load_table

Metrics = Callable[[Cell, float], dict[str, Any]]

MACHINE = "16× A Processor, 1× A Card"
DIFFERENCES = "Differences in points"  # begins the sentence above a table of comparisons


def made(cell: Cell, accuracy: float = 0.9) -> Run:
    environment = {"machine": MACHINE}
    told = (cell, accuracy, 1000, None, 9, 12.34, 2.0, 0.1, 1234.4, 567.8, "abc", "cuda", "2026-01-02", environment)
    return Run(*told, predict_one_ms=4.567)


def lines(text: str) -> list[list[str]]:
    """Return the cells of all rows of all tables of a report."""
    found = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found]


def rows(text: str) -> dict[str, list[str]]:
    """Return the rows of all tables of a report, by their first cells; of two with the same name the last."""
    return {first: rest for first, *rest in lines(text)}


def reported(table: Table, runs: list[Run], folder: Path) -> str:
    text = Page.of(table.name, folder).report(table, runs, folder)
    assert list(folder.iterdir()) == []
    return text


# Figures


def scored(*values: float) -> Score:
    made_of = [made(Cell("r8", "corpus", "wgcn", {}, seed), value / 100) for seed, value in enumerate(values)]
    found = score(made_of[::-1])
    assert found is not None
    return found


def test_score_is_mean_and_standard_deviation_in_percent() -> None:
    found = scored(90, 92, 97)
    assert found.values == pytest.approx((90, 92, 97))
    assert (found.mean, found.sd) == pytest.approx((93, 3.605551275))
    assert str(found) == "93.00 ± 3.61"
    assert found.beside(94.5) == "93.00 ± 3.61 (-1.50)"
    assert found.beside(None) == "93.00 ± 3.61"
    assert (found.counted(3), found.counted(2), found.counted(10)) == ("", "", " [3]")
    assert str(scored(90)) == "90.00"
    assert scored(90).beside(89.5) == "90.00 (+0.50)"
    assert score([]) is None


def test_figures_of_runs_with_other_packages_are_marked() -> None:
    runs = [made(Cell("r8", "corpus", "wgcn", {}, seed), 0.9 + 0.01 * seed) for seed in (0, 1)]
    runs = [replace(run, metrics={"a": 0.5, "b": 2.0}) for run in runs]
    off = [runs[0], replace(runs[1], environment={"off_lock": "numpy 9.9"})]
    for measure in (score, lambda of: metric(of, "a"), lambda of: ratio(of, ["a"], "b")):
        plain, marked = measure(runs), measure(off)
        assert plain is not None
        assert marked is not None
        assert str(marked) == f"{plain}\u2021"
        assert marked.beside(50) == plain.beside(50).replace(" (", "\u2021 (")
    assert is_off_lock(off)
    # The versions of the lock file, and those that are not known, are not marked.
    assert not is_off_lock([runs[0], replace(runs[1], environment={"off_lock": ""})])


def test_p_values_are_shown_with_three_digits() -> None:
    assert [p_text(p) for p in (0.0009, 0.001, 0.0346, 1)] == ["p < 0.001", "p = 0.001", "p = 0.035", "p = 1.000"]


def test_runs_are_sorted_by_protocol_variant_and_set() -> None:
    cells = [Cell("r8", p, "wgcn", {}, seed, v) for p in ("corpus", "inductive") for v in "ab" for seed in (0, 1)]
    runs = [made(cell) for cell in cells]
    assert group(runs) == {
        ("corpus", "a", "r8"): runs[:2],
        ("corpus", "b", "r8"): runs[2:4],
        ("inductive", "a", "r8"): runs[4:6],
        ("inductive", "b", "r8"): runs[6:],
    }


def test_markdown() -> None:
    assert markdown_table(["", "a"], [["x", "1"], ["y", "2"]]) == "|  | a |\n|---|---|\n| x | 1 |\n| y | 2 |\n"


def sourced(runs: list[Run]) -> str:
    return provenance("wgcn-paper reproduce x", runs)


def seeded(*environments: dict[str, str], device: str = "cpu") -> list[Run]:
    """One run per environment."""
    runs = [made(Cell("r8", "corpus", "wgcn", {}, seed)) for seed in range(len(environments))]
    return [replace(run, environment=each, device=device) for run, each in zip(runs, environments, strict=True)]


def test_provenance_names_command_date_seeds_protocol_machine_code_and_packages() -> None:
    cells = [Cell("r8", protocol, "wgcn", {}, seed) for protocol in ("corpus", "few-label:5%") for seed in (2, 0, 7)]
    known = {"machine": MACHINE, "threads": "2", "commit": "0123456789ab", "off_lock": ""}
    runs = [replace(made(cell), environment=known) for cell in cells]
    assert sourced(runs) == (
        "Made by `wgcn-paper reproduce x`: 6 runs, 2026-01-02, seeds 0 to 7, protocol corpus and few-label. "
        "Machines: 16 cores of A Processor; A Card in 6 runs. Threads: 2. Commits: 0123456. "
        "Packages: those of requirements.lock.\n"
    )
    runs[0] = replace(runs[0], date="2026-02-03", environment={})
    told = sourced(runs)
    assert "2026-01-02 to 2026-02-03" in told
    assert "16 cores of A Processor; unknown; A Card in 5 runs." in told
    assert told.count("; not recorded for 1 run.") == 3
    assert "Nothing has been run yet" in sourced([])


def test_provenance_says_what_is_not_recorded() -> None:
    told = sourced(seeded({}, {}))
    assert "Machines: unknown. Threads: not recorded. Commits: not recorded." in told
    assert told.endswith("Package versions beside requirements.lock: not recorded.\n")


def test_provenance_groups_machines_by_processor() -> None:
    machines = ("16× P, 1× G", "1× P", "4× P, 1× G", "1× Q", "1× Q")
    environments = [{"machine": machine, "threads": n} for machine, n in zip(machines, "84211", strict=True)]
    assert "Machines: 1 to 16 cores of P; 1 core of Q. Threads: 1 to 8." in sourced(seeded(*environments))
    assert "1 core of Q; G in 2 runs." in sourced(seeded(*environments, device="cuda"))


def test_provenance_names_three_commits_with_the_most_runs() -> None:
    commits = ["a" * 12, "b" * 12, *["c" * 12] * 2, "d" * 12 + "+changes", *["e" * 12] * 3]
    told = sourced(seeded(*({"commit": commit} for commit in commits)))
    assert "Commits: eeeeeee, ccccccc, aaaaaaa and 2 more." in told
    assert "Commits: ddddddd+changes." in sourced(seeded({"commit": "d" * 12 + "+changes"}))


def test_provenance_names_the_packages_that_are_not_those_of_the_lock_file() -> None:
    off = ["", "numpy 9.9, torch 8.8", "numpy 9.8", ""]
    told = sourced(seeded(*({"off_lock": each} for each in off)))
    assert told.endswith(
        "\u2021 marks figures with runs whose packages are not those of requirements.lock: 2 runs "
        "(numpy 9.8, numpy 9.9, torch 8.8).\n"
    )
    assert "torch 8.8); not recorded for 1 run." in sourced(seeded({"off_lock": off[1]}, {}))


# Reports

RUN = [name for name in TABLES if load_table(name).rows]


@pytest.mark.parametrize("name", RUN)
def test_report_without_runs(name: str, tmp_path: Path) -> None:
    text = reported(load_table(name), [], tmp_path)
    assert text.startswith(
        f"# {load_table(name).title}\n\nMade by `wgcn-paper reproduce {name}`. Nothing has been run yet."
    )
    assert "|" not in text


@pytest.mark.parametrize("name", RUN)
def test_report_with_one_run(name: str, tmp_path: Path, metrics_of: Metrics) -> None:
    table = load_table(name)
    cell = table.all_cells()[0]
    text = reported(table, [replace(made(cell, 0.81234), metrics=metrics_of(cell, 0.81234))], tmp_path)
    assert "81.23" in text or "12.3 / 568" in text
    assert "1 run, 2026-01-02, seeds 0 to 0" in text


@pytest.mark.parametrize("name", RUN)
def test_report_with_all_runs_has_no_gap(name: str, tmp_path: Path, metrics_of: Metrics) -> None:
    table = load_table(name)
    # Sets that a row leaves out are a gap in that row.
    whole = [each for each in table.datasets if all(row.seeds.get(each) != 0 for row in table.rows)]
    # A row that is planned is shown like any other once its runs are there and its mark is gone.
    table = replace(table, datasets=whole, rows=[replace(row, planned=False) for row in table.rows])
    runs = [made(cell, 0.7 + 0.001 * (i % 7)) for i, cell in enumerate(table.all_cells())]
    runs = [replace(run, metrics=metrics_of(run.cell, run.accuracy)) for run in runs]
    text = reported(table, runs, tmp_path)
    own = [line for line in lines(text) if not line[0].startswith("published")]
    assert len(own) > 1
    for first, *figures in own:
        assert NOTHING not in figures, first
    shown = {line[0].removesuffix(" \u2020") for line in own}
    assert table.vary or name in LOOP or {row.name.removesuffix(WHOLE) for row in table.rows} <= shown
    assert f"{len(runs):,} runs" in text
    assert "16 cores of A Processor; A Card" in " ".join(text.split())  # prose is wrapped


@pytest.mark.parametrize("name", RUN)
def test_every_report_marks_figures_of_other_packages(name: str, tmp_path: Path, metrics_of: Metrics) -> None:
    table = load_table(name)
    cells = [cell for cell in table.all_cells() if cell.seed < 2]
    runs = [replace(made(cell), metrics=metrics_of(cell, 0.7 + 0.01 * cell.seed)) for cell in cells]
    for off_lock in ("", "numpy 9.9"):
        environment = {"machine": MACHINE, "off_lock": off_lock}
        text = reported(table, [replace(run, environment=environment) for run in runs], tmp_path)
        assert ("\u2021" in " ".join(map(" ".join, lines(text)))) == bool(off_lock)
        assert ("(numpy 9.9)" in " ".join(text.split())) == bool(off_lock)


# Accuracy


REFERENCES = ("WGCN", "WGCN, linear", "WGCN, the paper's")


def small_table(*rows: Row, seeds: int = 3) -> Table:
    return Table(
        "accuracy", "A table", ["r8", "mr", "docs"], ["corpus", "inductive"], seeds, rows, references=REFERENCES
    )


PAPERS = Row("WGCN, the paper's", "wgcn", published="WGCN")
OURS = Row("WGCN", "wgcn", published="WGCN")
BOTH = Row("Bi-LSTM", "lstm", published="LSTM")
GRAPH = Row("Text-GCN", "text-gcn", protocols=["corpus"], published="Text-GCN")
LINEAR = Row("WGCN, linear", "wgcn-linear", version=2)
SVC = Row("LinearSVC", "linear-svc")


def test_published_figures_are_shown_where_there_is_something_beside_them(tmp_path: Path) -> None:
    table = small_table(PAPERS, OURS, BOTH, GRAPH, SVC)

    def shown(*names: str) -> list[str]:
        runs = [made(cell) for cell in table.cells() if cell.variant in names and cell.protocol == "corpus"]
        return [first for first, *_ in lines(reported(table, runs, tmp_path).split(DIFFERENCES)[0])]

    assert shown("LinearSVC") == ["", "LinearSVC"]
    assert shown("Bi-LSTM") == ["", "published: LSTM", "Bi-LSTM"]
    assert shown("WGCN", "LinearSVC") == ["", "published: WGCN", "WGCN", "LinearSVC"]
    assert shown() == []


def test_a_published_row_that_there_is_not_is_left_out(tmp_path: Path) -> None:
    table = small_table(Row("Mine", "wgcn", published="Mine in their paper"))
    found = rows(reported(table, [made(cell) for cell in table.cells()], tmp_path))
    assert found["Mine"] == ["90.00 ± 0.00"] * 3
    assert not [name for name in found if "published" in name]


def test_fewer_seeds_than_the_table_has_are_counted(tmp_path: Path) -> None:
    slow = replace(BOTH, seeds={"r8": 2, "mr": 1})
    table = small_table(slow, SVC)
    runs = [made(cell, 0.9 + 0.01 * cell.seed) for cell in table.cells()]
    found = rows(reported(table, runs, tmp_path))
    assert found["Bi-LSTM"] == ["90.50 ± 0.71 (-5.81) [2]", "90.00 (+12.32) [1]", "91.00 ± 1.00"]
    # What has no seeds lacks none.
    assert found["LinearSVC"] == ["90.00", "90.00", "90.00"]
    assert "where a method that has seeds has fewer than 3" in reported(table, runs, tmp_path)


@pytest.mark.parametrize("name", ["accuracy", "citations"])
def test_references_are_rows_of_the_table(name: str) -> None:
    table = load_table(name)
    assert table.references
    assert set(table.references) <= {row.name for row in table.rows}


def test_references_are_compared_with_all_others_and_these_not_among_themselves(tmp_path: Path) -> None:
    table = small_table(PAPERS, OURS, LINEAR, BOTH, GRAPH, SVC)
    by_row = {"WGCN, the paper's": 0.91, "WGCN": 0.90, "Bi-LSTM": 0.9, "Text-GCN": 0.901, "LinearSVC": 0.907}
    runs = [
        made(cell, by_row.get(cell.variant, 0.92) + 0.001 * cell.seed)
        for cell in table.cells()
        if (cell.dataset, cell.variant) != ("docs", "Bi-LSTM")
    ]
    parts = reported(table, runs, tmp_path).split("### Protocol: ")
    corpus, inductive = (lines(part.split(DIFFERENCES)[1])[1:] for part in parts[1:])
    assert [line[0] for line in corpus] == [
        "WGCN − WGCN, the paper's",
        "WGCN − WGCN, linear",
        "WGCN − Bi-LSTM",
        "WGCN − Text-GCN",
        "WGCN − LinearSVC",
        "WGCN, linear − WGCN, the paper's",
        "WGCN, linear − Bi-LSTM",
        "WGCN, linear − Text-GCN",
        "WGCN, linear − LinearSVC",
        "WGCN, the paper's − Bi-LSTM",
        "WGCN, the paper's − Text-GCN",
        "WGCN, the paper's − LinearSVC",
    ]
    assert [line[0] for line in inductive] == [line[0] for line in corpus if "Text-GCN" not in line[0]]
    found = {first: rest for first, *rest in corpus}
    # Two methods without a seed: a difference, and nothing to test it by.
    assert found["WGCN, linear − LinearSVC"] == ["+1.30"] * 3
    assert found["WGCN − Bi-LSTM"] == ["+0.00 [-0.23, +0.23] (p = 1.000)ʷ"] * 2 + [NOTHING]
    interval = stats.ttest_1samp([91, 91.1, 91.2], 90.7).confidence_interval()
    text = f"+0.40 [{interval.low - 90.7:+.2f}, {interval.high - 90.7:+.2f}] (p = "
    assert all(cell.startswith(text) and cell.endswith(")¹") for cell in found["WGCN, the paper's − LinearSVC"])
    n = sum("(p" in cell for _, *cells in corpus for cell in cells)
    assert n == 3 * 11 - 3
    assert f"over the {n} comparisons of this table" in parts[1]
    # Eight cells have a larger p: WGCN beside Bi-LSTM and Text-GCN, and the paper's beside LinearSVC.
    p = (8 + 3) * stats.ttest_1samp([90, 90.1, 90.2], 90.7).pvalue
    assert [cell.split("] ")[1] for cell in found["WGCN − LinearSVC"]] == [f"(p = {p:.3f})¹"] * 3


def test_differences_are_by_document_where_all_runs_tell_them(tmp_path: Path) -> None:
    table = small_table(OURS, LINEAR, SVC)

    def right(cell: Cell) -> list[bool]:
        wrong = {"LinearSVC": 12, "WGCN, linear": 2}.get(cell.variant, 4 + cell.seed)
        return [i >= wrong for i in range(24)]

    def told(cell: Cell) -> Run:
        packed = base64.b64encode(np.packbits(right(cell)).tobytes()).decode()
        return replace(made(cell, sum(right(cell)) / 24), n_test=24, right=packed)

    text = reported(table, [told(cell) for cell in table.cells()], tmp_path)
    found = rows(text)
    # Ten documents are right with one of the two alone; there are nine comparisons, and this is the smallest p.
    assert found["WGCN, linear − LinearSVC"][0].startswith("+41.67 [")
    assert found["WGCN, linear − LinearSVC"][0].endswith(f"(p = {9 * 2 / 2**10:.3f})ᵐ")
    assert all(cell.endswith(")ᵇ") for cell in found["WGCN − LinearSVC"] + found["WGCN − WGCN, linear"])
    assert "ᵐ exact McNemar test by document" in " ".join(text.split())


def test_nothing_is_compared_without_a_reference(tmp_path: Path) -> None:
    table = small_table(PAPERS, OURS, BOTH, SVC)
    runs = [made(cell) for cell in table.cells() if cell.method != "wgcn"]
    assert DIFFERENCES not in reported(table, runs, tmp_path)


def test_accuracy_is_drawn_for_the_rows_that_have_runs(tmp_path: Path) -> None:
    table = small_table(PAPERS, OURS, BOTH, GRAPH, SVC)

    def drawing(protocol: str, *names: str) -> str:
        runs = [made(cell) for cell in table.cells() if cell.variant in names and cell.protocol == protocol]
        accuracy.draw(table, runs, [tmp_path / "accuracy.svg"])
        return (tmp_path / "accuracy.svg").read_text(encoding="utf-8")

    first = drawing("corpus", "Text-GCN", "LinearSVC")
    for word in ("Text-GCN", "LinearSVC", "R8", "MR", "docs", "corpus"):
        assert f">{word}<" in first
    assert ">Bi-LSTM<" not in first
    assert ">inductive<" not in first
    second = drawing("inductive", "Bi-LSTM")
    assert ">Bi-LSTM<" in second
    assert ">Text-GCN<" not in second
    assert ">inductive<" in second


# Other tables


def costs(runs: list[Run], folder: Path) -> list[list[list[str]]]:
    """Return the three tables of the report of costs: an epoch, the whole training, a new document."""
    text = reported(load_table("efficiency"), runs, folder)
    parts = [lines(part) for part in text.split("\n\n") if part.startswith("|")]
    assert [part[0][0] for part in parts] == ["ms / MiB", "seconds", "ms"]
    return parts


def cost_run(cell: Cell) -> Run:
    """Make up a run: a method has a multiple of the costs of the paper's network, and each device has its own."""
    times = 1 + [row.name for row in load_table("efficiency").rows].index(cell.variant.rsplit("; ", 1)[0]) % 4
    run = replace(made(cell), ms_per_epoch=10.0 * times, memory=800.0 * times, gpu_memory=300.0 * times**2)
    if cell.variant.endswith("cpu"):
        return replace(run, gpu_memory=None, ms_per_epoch=1234.5 * times, device="cpu")
    return run


def test_costs_of_an_epoch_are_by_device_and_beside_those_of_the_papers_network(tmp_path: Path) -> None:
    epochs, _, _ = costs([cost_run(cell) for cell in load_table("efficiency").all_cells()], tmp_path)
    assert epochs[0] == ["ms / MiB", "on", "20NG", "MR", "Ohsumed", "R52", "R8"]
    assert epochs[1][:4] == ["published: Fast-GCN", "Tesla K40c", NOTHING, "9,036 / 8,841"]
    assert epochs[3][:4] == ["published: WGCN", "Tesla K40c", "6,435 / 2,556", "458 / 567"]
    assert [line[:3] for line in epochs[4:]] == [
        ["WGCN, the paper's", "16× A Processor", "1,234.5 / 800"],
        ["WGCN", "16× A Processor", "2,469.0 / 1,600 (2.0×, 2.0×)"],
        ["Text-GCN", "16× A Processor", "3,703.5 / 2,400 (3.0×, 3.0×)"],
        ["Fast-GCN", "16× A Processor", "4,938.0 / 3,200 (4.0×, 4.0×)"],
        ["WGCN, the paper's", "1× A Card", "10.0 / 300"],
        ["WGCN", "1× A Card", "20.0 / 1,200 (2.0×, 4.0×)"],
        ["Text-GCN", "1× A Card", "30.0 / 2,700 (3.0×, 9.0×)"],
        ["Fast-GCN", "1× A Card", "40.0 / 4,800 (4.0×, 16.0×)"],
    ]


def test_multiples_need_the_papers_network_on_the_same_device_and_set(tmp_path: Path) -> None:
    runs = [
        cost_run(cell)
        for cell in load_table("efficiency").all_cells()
        if cell.dataset in ("mr", "r8") and (cell.variant, cell.dataset) != ("WGCN, the paper's; cuda", "r8")
        if cell.variant != "WGCN, the paper's; cpu"
    ]
    epochs, _, _ = costs(runs, tmp_path)
    found = {(name, machine): rest for name, machine, *rest in epochs}
    assert found["WGCN", "1× A Card"] == [
        NOTHING,
        "20.0 / 1,200 (2.0×, 4.0×)",
        NOTHING,
        NOTHING,
        "20.0 / 1,200",
    ]
    assert found["WGCN", "16× A Processor"][1] == "2,469.0 / 1,600"
    assert ("WGCN, the paper's", "16× A Processor") not in found


def test_whole_training_and_new_documents_are_those_of_their_own_rows(tmp_path: Path) -> None:
    def told(cell: Cell) -> Run:
        run = cost_run(cell)
        if WHOLE not in cell.variant:
            return replace(run, fit_seconds=1.0, epochs=12, predict_one_ms=99.0)
        alone = None if cell.method == "text-gcn" else 0.456 if cell.variant.endswith("cuda") else 1234.5
        return replace(run, fit_seconds=1234.56, epochs=345, predict_one_ms=alone)

    cells = [cell for cell in load_table("efficiency").all_cells() if cell.dataset != "20ng"]
    _, whole, new = costs([told(cell) for cell in cells], tmp_path)
    names = ["WGCN, the paper's", "WGCN", "Text-GCN", "Fast-GCN"]
    assert [line[:2] for line in whole[1:]] == [[name, m] for m in ("16× A Processor", "1× A Card") for name in names]
    assert [line[:2] for line in new[1:]] == [line[:2] for line in whole[1:]]
    assert {tuple(line[2:]) for line in whole[1:]} == {(NOTHING, *["1,234.6 (345) [1]"] * 4)}
    found = {(name, machine): rest for name, machine, *rest in new}
    assert found["WGCN", "16× A Processor"] == [NOTHING, *["1,234.50"] * 4]
    assert found["WGCN", "1× A Card"] == [NOTHING, *["0.46"] * 4]
    # It cannot take one without training again.
    assert found["Text-GCN", "1× A Card"] == [NOTHING, *["must train again"] * 4]


def test_costs_are_medians_of_the_runs_and_fewer_than_the_table_has_are_counted(tmp_path: Path) -> None:
    table = load_table("efficiency")
    assert table.seeds == 3
    times, memory = (12.0, 90.0, 15.0), (None, 500.0, 300.0)  # a process that others have used knows no GPU memory
    cells = [cell for cell in table.all_cells() if cell.variant.startswith("WGCN; ") and cell.dataset in ("mr", "r8")]
    runs = [
        replace(made(cell), ms_per_epoch=times[cell.seed], memory=100.0 * (1 + cell.seed), gpu_memory=None)
        for cell in cells
        if cell.dataset == "r8" or cell.seed < 2
    ]
    on_gpu = [
        replace(run, gpu_memory=memory[run.cell.seed]) if run.cell.variant.endswith("cuda") else run for run in runs
    ]
    epochs, _, _ = costs(on_gpu, tmp_path)
    found = {tuple(line[:2]): line[2:] for line in epochs}
    assert found["WGCN", "1× A Card"] == [NOTHING, "51.0 / 500 [2]", NOTHING, NOTHING, "15.0 / 400"]
    assert found["WGCN", "16× A Processor"] == [NOTHING, "51.0 / 150 [2]", NOTHING, NOTHING, "15.0 / 200"]


def test_memory_that_no_run_knows_is_a_gap(tmp_path: Path) -> None:
    cells = [cell for cell in load_table("efficiency").all_cells() if cell.variant == "WGCN; cpu"]
    epochs, _, _ = costs([replace(made(cell), memory=None, gpu_memory=None) for cell in cells], tmp_path)
    assert epochs[-1][2:] == [f"12.3 / {NOTHING}"] * 5


def test_whole_trainings_and_new_documents_are_medians_too(tmp_path: Path) -> None:
    [row] = [row for row in load_table("efficiency").rows if row.name == f"WGCN{WHOLE}"]
    cell = Cell("r8", "corpus", row.method, {}, 0, f"{row.name}; cpu")
    runs = [
        replace(made(replace(cell, seed=seed)), fit_seconds=seconds, epochs=epochs, predict_one_ms=one)
        for seed, (seconds, epochs, one) in enumerate([(3.0, 10, 1.0), (1.0, 15, None), (9.0, 11, 4.0)])
    ]
    _, whole, new = costs(runs, tmp_path)
    assert whole[1][-1] == "3.0 (11)"
    assert new[1][-1] == "2.50"


@pytest.mark.parametrize("name", ["accuracy", "sensitivity", "labels"])
def test_figures_are_png_and_svg_and_the_same_every_time(name: str, tmp_path: Path) -> None:
    table = load_table(name)
    table = replace(table, datasets=["r8"], rows=table.rows[:2] if name == "accuracy" else table.rows)
    runs = [made(cell, 0.8 + 0.01 * cell.seed) for cell in table.cells(Options(["r8"], seeds=2))]
    path = write_report(table, runs, tmp_path)
    assert f"]({name}.png)" in path.read_text(encoding="utf-8")
    files = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert sorted(files) == [f"{name}.md", f"{name}.png", f"{name}.svg"]
    assert files[f"{name}.png"].startswith(b"\x89PNG")
    assert b"R8" in files[f"{name}.svg"]
    # A figure that is missing is drawn again, and is the same.
    (tmp_path / f"{name}.svg").unlink()
    write_report(table, runs, tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == files


def test_a_report_that_has_not_changed_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = small_table(OURS)
    runs = [made(cell) for cell in table.cells(Options(seeds=1))]
    write_report(table, runs, tmp_path)
    for module in (results, pictures):
        monkeypatch.setattr(module, "write_file", lambda path, write: pytest.fail(f"{path} was written"))
    assert write_report(table, runs, tmp_path) == tmp_path / "accuracy.md"


def test_labels_are_compared_draw_by_draw_and_corrected_over_the_page(tmp_path: Path) -> None:
    table = replace(load_table("labels"), rows=[LINEAR, SVC], datasets=["mr", "r8"])

    def share(cell: Cell) -> float:
        return 0.7 + 0.05 * cell.seed + (0.01 * (2 + cell.seed % 2) if cell.variant == "WGCN, linear" else 0)

    text = reported(table, [made(cell, share(cell)) for cell in table.cells()], tmp_path)
    found = rows(text.split(DIFFERENCES)[1])
    assert list(found) == [
        "difference, points",
        "MR: WGCN, linear \u2212 LinearSVC",
        "R8: WGCN, linear \u2212 LinearSVC",
    ]
    assert found["difference, points"] == ["1%", "2%", "5%", "10%", "20%", "50%", "100%"]
    p = stats.ttest_rel([2, 3, 2, 3, 2], [0] * 5).pvalue
    assert found["MR: WGCN, linear \u2212 LinearSVC"] == [*[f"+2.40 [+1.72, +3.08] (p = {12 * p:.3f})"] * 6, "+2.00"]
    assert "over the 12 comparisons" in text


# The default and its parts


def test_an_ablation_is_the_difference_draw_by_draw(tmp_path: Path) -> None:
    changed = Row("no graph", "wgcn-linear", {"alpha": 0.0})
    table = Table(
        "ablation",
        "A table",
        ["r8"],
        ["inductive", "few-label:1%"],
        3,
        [Row("default", "wgcn-linear"), changed],
        versions={"wgcn-linear": 2},
    )

    def share(cell: Cell) -> float:
        return 0.8 + 0.05 * cell.seed - (0.01 * (cell.seed + 1) if cell.variant == "no graph" else 0)

    text = reported(table, [made(cell, share(cell)) for cell in table.cells()], tmp_path)
    whole, few = text.split("### Protocol: ")[1:]
    assert rows(whole) == {"": ["R8"], "default": ["80.00"], "no graph": ["-1.00"]}
    # The differences are 1, 2 and 3 points: mean 2, standard deviation 1.
    assert rows(few) == {"": ["R8"], "default": ["85.00 ± 5.00"], "no graph": ["-2.00 [-4.48, +0.48] (p = 0.074)"]}
    assert "\u2020" not in text


def test_retired_rows_of_an_ablation_are_marked(tmp_path: Path) -> None:
    old = Row("order 2", "wgcn-linear", {"order": 2}, retired=True)
    table = Table("ablation", "A table", ["r8"], ["inductive"], 1, [Row("default", "wgcn-linear"), old])
    text = reported(table, [made(cell) for cell in table.cells()], tmp_path)
    assert rows(text)["order 2 \u2020"] == ["+0.00"]
    assert text.endswith("\n\u2020 removed from the library in 0.2.0; runs kept\n")
    assert "\u2020" not in reported(table, [made(cell) for cell in table.cells(Options(rows=["default"]))], tmp_path)


def test_an_ablation_with_other_draws_than_the_default_is_no_figure(tmp_path: Path) -> None:
    table = Table(
        "ablation",
        "A table",
        ["r8"],
        ["few-label:1%"],
        3,
        [Row("default", "wgcn-linear"), Row("C", "wgcn-linear", {"C": 1.0})],
    )
    runs = [made(cell) for cell in table.cells() if cell.seed == 0 or cell.variant == "default"]
    assert rows(reported(table, runs, tmp_path))["C"] == [NOTHING]


# Words that training did not see


NOT_EXTENDED = "WGCN, unseen words dropped"


def test_gains_are_paired_over_the_draws(tmp_path: Path) -> None:
    table = load_table("unseen")
    accuracies = {
        NOT_EXTENDED: (0.80, 0.90, 0.85),
        "WGCN, extended by the pool": (0.82, 0.93, 0.86),
        "LinearSVC": (0.7, 0.8),
    }
    runs = [
        made(Cell("r8", "unseen:5%", "wgcn-linear", {}, seed, name), accuracy)
        for name, values in accuracies.items()
        for seed, accuracy in reversed(list(enumerate(values)))
    ]
    text = reported(table, runs, tmp_path)
    assert "unseen:20%" not in text
    found = [line for line in lines(text) if line[-1] != NOTHING]
    by_name = {(line[0], i): line[-1] for i, line in enumerate(found)}
    p = stats.ttest_rel([0.82, 0.93, 0.86], [0.80, 0.90, 0.85]).pvalue
    assert list(by_name.values()) == [
        "R8",
        "1,000",
        "85.00 ± 5.00",
        "87.00 ± 5.57",
        "75.00 ± 7.07",
        "R8",
        f"+2.00 [-0.48, +4.48] (p = {p:.3f})",
        "-10.00",
    ]


def test_gains_over_nothing_are_no_table(tmp_path: Path) -> None:
    run = made(Cell("r8", "unseen:5%", "wgcn-linear", {}, 3, "WGCN, extended by the pool"))
    text = reported(load_table("unseen"), [run], tmp_path)
    assert rows(text)["WGCN, extended by the pool"] == [*[NOTHING] * 4, "90.00"]
    assert "gain" not in text
    assert "###" not in reported(load_table("unseen"), [], tmp_path)
