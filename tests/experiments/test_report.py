"""What the reports say of made-up runs."""

from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats

from wgcn.experiments.cells import Cell, Run
from wgcn.experiments.report import NOTHING, Score, group, markdown_table, p_value, provenance, score
from wgcn.experiments.reproduce import TABLES, all_cells, write_report
from wgcn.experiments.table import Table, load_table

MACHINE = "16× A Processor, 1× A Card"


def made(cell: Cell, accuracy: float = 0.9) -> Run:
    environment = {"machine": MACHINE}
    return Run(cell, accuracy, 1000, None, 9, 12.34, 2.0, 0.1, 1234.4, 567.8, "abc", "cuda", "2026-01-02", environment)


def rows(text: str) -> dict[str, list[str]]:
    """Return the rows of all tables of a report, by their first cells."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: rest for first, *rest in cells}


def reported(table: Table, runs: list[Run], folder: Path) -> str:
    path = write_report(table, runs, folder)
    assert path == folder / f"{table.name}.md"
    return path.read_text(encoding="utf-8")


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
    assert str(scored(90)) == "90.00"
    assert scored(90).beside(89.5) == "90.00 (+0.50)"
    assert score([]) is None


def test_p_value_is_that_of_students_t_test() -> None:
    ours, theirs, single = scored(90, 92, 97, 94), scored(88, 89, 91), scored(91)
    welch = stats.ttest_ind(ours.values, theirs.values, equal_var=False).pvalue
    assert p_value(ours, theirs) == p_value(theirs, ours) == pytest.approx(welch)
    one_sample = stats.ttest_1samp(ours.values, single.mean).pvalue
    assert p_value(ours, single) == p_value(single, ours) == pytest.approx(one_sample)
    # By hand: t = (93.25 - 91) / (2.986 / 2) with 3 degrees of freedom.
    t = (ours.mean - single.mean) / (ours.sd / 4**0.5)
    assert one_sample == pytest.approx(2 * stats.t.sf(t, 3))


def test_nothing_is_tested_where_nothing_varies() -> None:
    constant, single = scored(90, 90, 90), scored(91)
    assert p_value(single, single) is None
    assert p_value(constant, single) is None
    assert p_value(single, constant) is None
    assert p_value(constant, scored(91, 91)) is None
    assert p_value(constant, scored(90, 92, 97)) is not None


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


def test_provenance_names_command_machine_date_seeds_and_protocol() -> None:
    cells = [Cell("r8", protocol, "wgcn", {}, seed) for protocol in ("corpus", "few-label:5%") for seed in (2, 0, 7)]
    runs = [made(cell) for cell in cells]
    assert provenance("wgcn reproduce x", runs) == (
        "Made by `wgcn reproduce x`: 6 runs, 2026-01-02, seeds 0 to 7, protocol corpus and few-label. "
        f"Machine: {MACHINE}.\n"
    )
    runs[0] = replace(runs[0], date="2026-02-03", environment={})
    told = provenance("wgcn reproduce x", runs)
    assert "2026-01-02 to 2026-02-03" in told
    assert f"Machine: {MACHINE}; unknown." in told
    assert "Nothing has been run yet" in provenance("wgcn reproduce x", [])


# Reports

RUN = [name for name in TABLES if name != "datasets"]


@pytest.mark.parametrize("name", RUN)
def test_report_without_runs(name: str, tmp_path: Path) -> None:
    text = reported(load_table(name), [], tmp_path)
    assert text.startswith(f"# {load_table(name).title}\n\nMade by `wgcn reproduce {name}`. Nothing has been run yet.")
    assert "|" not in text
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.md"]


@pytest.mark.parametrize("name", RUN)
def test_report_with_one_run(name: str, tmp_path: Path) -> None:
    table = load_table(name)
    text = reported(table, [made(all_cells(table)[0], 0.81234)], tmp_path)
    assert "81.23" in text or "12.3 / 568" in text
    assert "1 runs, 2026-01-02, seeds 0 to 0" in text


@pytest.mark.parametrize("name", RUN)
def test_report_with_all_runs_has_no_gap(name: str, tmp_path: Path) -> None:
    table = load_table(name)
    runs = [made(cell, 0.7 + 0.001 * (i % 7)) for i, cell in enumerate(all_cells(table))]
    text = reported(table, runs, tmp_path)
    own = {first: rest for first, rest in rows(text).items() if "published" not in first and "−" not in first}
    restricted = [row.name for row in table.rows if row.protocols is not None]
    assert len(own) > 1
    for first, figures in own.items():
        assert first in restricted or NOTHING not in figures
    assert f"{len(runs):,} runs" in text
    assert MACHINE in text


def test_accuracy_is_beside_the_published_figures(tmp_path: Path) -> None:
    table = load_table("accuracy")
    by_row = {row.name: 0.9 + 0.01 * i for i, row in enumerate(table.rows)}
    runs = [made(cell, by_row[cell.variant] + 0.001 * cell.seed) for cell in table.cells()]
    inductive = [run for run in runs if run.cell.protocol == "inductive"]
    text = reported(table, runs, tmp_path)
    assert text.index("### Protocol: corpus") < text.index("### Protocol: inductive")
    found = rows(text.split("### Protocol: inductive")[0])
    assert found[""] == ["20NG", "MR", "Ohsumed", "R52", "R8"]
    assert found["published: WGCN"] == ["88.85 ± 0.12", "77.94 ± 0.10", "69.62 ± 0.24", "94.86 ± 0.09", "97.90 ± 0.14"]
    assert found["published: Text-GNN"][:2] == [NOTHING, NOTHING]
    first, second = (row.name for row in table.rows[:2])
    assert found[first][0] == "90.45 ± 0.30 (+1.60)"
    assert found[second][4] == "91.45 ± 0.30 (-6.45)"
    expected = stats.ttest_ind(
        [90 + i / 10 for i in range(10)], [91 + i / 10 for i in range(10)], equal_var=False
    ).pvalue
    assert expected < 0.001
    assert found[f"{first} − {second}"] == ["-1.00 (p < 0.001)"] * 5
    assert "published: Text-GCN" not in rows(reported(table, inductive, tmp_path))
    assert "published: WGCN" in rows(reported(table, inductive, tmp_path))


def test_accuracy_on_a_set_that_the_paper_does_not_have(tmp_path: Path) -> None:
    table = replace(load_table("accuracy"), datasets=["r8", "docs"])
    cells = [cell for cell in table.cells() if cell.method == "linear-svc"]
    found = rows(reported(table, [made(cell) for cell in cells], tmp_path))
    assert found["LinearSVC"] == ["90.00 (-7.90)", "90.00"]
    assert found["published: WGCN"] == ["97.90 ± 0.14", NOTHING]


@pytest.mark.parametrize(
    ("name", "symbol", "figures"),
    [
        ("orders", "A_vv", {"^0": ("90.50 ± 0.30 (-4.59)", "95.09"), "^3": ("93.50 ± 0.30 (+3.55)", "89.95")}),
        ("citation-orders", "A_dd", {"^0": ("90.50 ± 0.30 (+12.50)", "78.0"), "^3": ("93.50 ± 0.30 (+15.10)", "78.4")}),
    ],
)
def test_orders_are_beside_the_published_figures(
    tmp_path: Path, name: str, symbol: str, figures: dict[str, tuple[str, str]]
) -> None:
    table = load_table(name)
    [(_, values)] = table.vary
    accuracies = {
        cell.key: 0.9005 + 0.01 * values.index(int(cell.variant[-1])) + 0.001 * cell.seed for cell in table.cells()
    }
    text = reported(table, [made(cell, accuracies[cell.key]) for cell in table.cells()], tmp_path)
    found = rows(text)
    assert found[""][-1] == "published"
    for order, expected in figures.items():
        assert tuple(found[symbol + order][-2:]) == expected
    # Without a run of its own, a published figure is no reason for a table.
    assert "published" not in reported(table, [], tmp_path)


def test_citations_are_beside_the_published_figures(tmp_path: Path) -> None:
    table = load_table("citations")
    text = reported(table, [made(cell, 0.7 + 0.001 * cell.seed) for cell in table.cells()], tmp_path)
    found = rows(text.split("### Protocol: inductive")[0])
    assert found[""] == ["Citeseer", "Pubmed"]
    assert found["published: GCN"] == ["70.3", "79.0"]
    assert found["published: WGCN"] == ["72.2 ± 0.1", "79.6 ± 0.0"]
    for row in table.rows:
        assert found[row.name] == ["70.45 ± 0.30 (-1.75)", "70.45 ± 0.30 (-9.15)"]
    assert "published: GCN" not in rows(text.split("### Protocol: inductive")[1])


def test_costs_are_by_device(tmp_path: Path) -> None:
    table = load_table("efficiency")
    runs = [
        replace(made(cell), gpu_memory=None, ms_per_epoch=1234.5) if cell.variant.endswith("cpu") else made(cell)
        for cell in all_cells(table)
    ]
    text = reported(table, runs, tmp_path)
    lines = [line for line in text.splitlines() if line.startswith("| WGCN ")]
    assert len(lines) == 2
    assert "| 16× A Processor | 1,234.5 / 1,234 |" in lines[0]
    assert "| 1× A Card | 12.3 / 568 |" in lines[1]
    assert rows(text)["published: WGCN"][:3] == ["Tesla K40c", "6,435 / 2,556", "458 / 567"]


@pytest.mark.parametrize("name", ["sensitivity", "labels"])
def test_pictures_are_png_and_svg_and_the_same_every_time(name: str, tmp_path: Path) -> None:
    table = load_table(name)
    runs = [made(cell, 0.8 + 0.01 * cell.seed) for cell in table.cells() if cell.dataset in ("r8", "mr")]
    for folder in (tmp_path / "a", tmp_path / "b"):
        text = reported(table, runs, folder)
        assert f"]({name}.png)" in text
        assert sorted(path.name for path in folder.iterdir()) == [f"{name}.md", f"{name}.png", f"{name}.svg"]
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (folder / f"{name}.svg").read_bytes()
        assert b"R8" in (folder / f"{name}.svg").read_bytes()
    for ending in ("png", "svg"):
        assert (tmp_path / f"a/{name}.{ending}").read_bytes() == (tmp_path / f"b/{name}.{ending}").read_bytes()


def test_sensitivity_has_a_column_a_value(tmp_path: Path) -> None:
    table = load_table("sensitivity")
    hidden, window = (values for _, values in table.vary)
    runs = [
        made(cell, 0.5 + int(cell.variant.rsplit(maxsplit=1)[1]) / 10_000 + 0.001 * cell.seed)
        for cell in table.cells()
        if cell.dataset == "r8"
    ]
    parts = reported(table, runs, tmp_path).split("| window")
    assert rows(parts[0])["hidden size"] == [str(value) for value in hidden]
    assert rows(parts[0])["R8"] == [f"{50.1 + value / 100:.2f} ± 0.10" for value in hidden]
    assert rows(parts[1])["R8"] == [f"{50.1 + value / 100:.2f} ± 0.10" for value in window]
    assert rows(parts[0])["MR"] == [NOTHING] * len(hidden)


def test_labels_have_a_column_a_share(tmp_path: Path) -> None:
    table = load_table("labels")
    runs = [made(cell, 0.9 if "WGCN" in cell.variant else 0.8) for cell in table.cells() if cell.dataset == "r8"]
    found = rows(reported(table, runs, tmp_path))
    assert found["labels"] == ["1%", "2%", "5%", "10%", "20%", "50%", "100%"]
    assert found["WGCN, linear"] == [*["90.00 ± 0.00"] * 6, "90.00"]
    assert found["LinearSVC"][-1] == "80.00"
