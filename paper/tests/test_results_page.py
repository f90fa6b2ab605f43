"""The documentation shows what the result files say, and its links lead somewhere."""

import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from wgcn_paper.experiments.reproduce import TABLES, all_cells
from wgcn_paper.experiments.results import ResultFile
from wgcn_paper.experiments.table import load_table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "paper" / "results"
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "paper/README.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
]
SETS = ("20ng", "mr", "ohsumed", "r52", "r8")

# Rows of the README's table, and what they are called in the results.
README_ROWS = {
    "wgcn": "WGCN, linear",
    "wgcn with word vectors": "WGCN, linear, with word vectors",
    "the paper's network": "WGCN, the paper's",
    "tf-idf + LinearSVC": "LinearSVC",
    "tf-idf + LinearSVC, C by cross-validation": "LinearSVC, C by cross-validation",
    "fastText": "fastText",
    "MiniLM + logistic regression": "MiniLM + logistic regression",
}
README_PROTOCOLS = {"1 %": "few-label:1%", "5 %": "few-label:5%", "all": "inductive"}


def read(path: Path) -> str:
    """The text of a file."""
    return path.read_text(encoding="utf-8")


def cells(line: str) -> list[str]:
    """The cells of a line of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows(text: str) -> list[str]:
    """The lines of tables."""
    return [line for line in text.splitlines() if line.startswith("|")]


def means(*names: str) -> dict[tuple[str, str, str], float]:
    """Mean accuracy in percent by protocol, row and data set."""
    found = defaultdict(list)
    for name in names:
        own = defaultdict(list)
        for run in json.loads(read(RESULTS / f"{name}.json"))["runs"]:
            own[run["protocol"], run["variant"], run["dataset"]].append(100 * run["accuracy"])
        found.update(own)
    return {key: sum(values) / len(values) for key, values in found.items()}


@pytest.mark.parametrize("name", TABLES)
def test_tables_on_a_page_are_those_of_the_report(name: str) -> None:
    page = read(ROOT / "docs" / "results" / f"{name}.md")
    section = re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert section, f"docs/results/{name}.md has no part {name}"
    wanted = rows(read(RESULTS / f"{name}.md"))
    assert wanted
    assert rows(section[1]) == wanted


def test_every_page_of_results_is_a_table_and_in_the_list() -> None:
    folder = ROOT / "docs" / "results"
    pages = {path.stem for path in folder.glob("*.md")} - {"README"}
    assert pages == set(TABLES)
    assert pages <= set(re.findall(r"\]\(([a-z-]+)\.md\)", read(folder / "README.md")))


@pytest.mark.parametrize("name", [name for name in TABLES if name != "datasets"])
def test_reports_hold_only_runs_with_the_settings_of_today(name: str) -> None:
    table = load_table(name)
    results = ResultFile(RESULTS, name, reuse=False)
    current = {cell.key for cell in all_cells(table)}
    stale = [place for place, run in results._runs.items() if run.cell.key not in current]
    assert stale == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", read(page))
    dead = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert dead == []


def readme_table(which: str) -> list[list[str]]:
    """The lines of a table of the README below its head: that of seeds, or that with labels."""
    lines = [cells(line) for line in rows(read(ROOT / "README.md"))]
    heads = [place - 1 for place, line in enumerate(lines) if set(line[0]) == {"-"}]
    return lines[heads[0] + 2 : heads[1]] if which == "seeds" else lines[heads[1] + 2 :]


def test_the_seeds_of_the_readme_are_those_of_the_results() -> None:
    sets = ("20ng", "20ng-coarse", "r8")
    runs = json.loads(read(RESULTS / "seeds.json"))["runs"]

    def figures(variant: str, labels: int = 0) -> list[float]:
        found = []
        for dataset in sets:
            own = [run for run in runs if (run["dataset"], run["variant"]) == (dataset, variant)]
            values = [run["metrics"][str(labels)] if labels else run["accuracy"] for run in own]
            found.append(100 * sum(values) / len(values))
        return found

    seeds, counting, few, many = readme_table("seeds")
    wanted = [figures("WGCN, seed words"), figures("counting seed words")]
    wanted += [figures("LinearSVC", 10), figures("LinearSVC", 100)]
    for (_, *shown), known in zip((seeds, counting, few, many), wanted, strict=True):
        assert [value.strip("*") for value in shown] == [f"{value:.1f}" for value in known]
    lost = np.subtract(wanted[0], figures("WGCN, one seed word of four wrong"))
    assert f"wgcn loses {lost[0]:.1f}, {lost[1]:.1f} and {lost[2]:.1f}\npoints" in read(ROOT / "README.md")


def test_the_table_of_the_readme_is_that_of_the_results() -> None:
    known = means("accuracy", "summary")
    table = readme_table("with labels")
    assert len(table) == 17
    groups: dict[str, list[list[str]]] = defaultdict(list)
    group = ""
    for share, name, *values in table:
        group = share or group
        figures = [known[README_PROTOCOLS[group], README_ROWS[name], dataset] for dataset in SETS]
        assert [value.strip("*") for value in values] == [f"{figure:.1f}" for figure in figures], (group, name)
        groups[group].append(values)
    assert list(groups) == list(README_PROTOCOLS)
    for values in groups.values():
        for column in zip(*values, strict=True):
            best = max(float(value.strip("*")) for value in column)
            assert [value.startswith("**") for value in column] == [float(value.strip("*")) == best for value in column]


def test_means_of_removed_levers_are_those_of_the_ablation() -> None:
    parts = read(RESULTS / "ablation.md").split("### Protocol: ")[1:]
    wanted: dict[str, list[str]] = defaultdict(list)
    for part in parts:
        for name, *values in map(cells, rows(part)):
            if values[0][:1] in {"+", "-"} and not values[0].startswith("--"):
                mean = sum(float(value.split()[0]) for value in values) / len(values)
                wanted[name.removesuffix(" †")].append(f"{mean:+.2f}")
    shown = [cells(line) for line in rows(read(ROOT / "docs" / "what-did-not-help.md"))]
    shown = [line for line in shown if line[1][:1] in {"+", "-"} and not line[1].startswith("--")]
    assert len(shown) == 15
    for name, *values in shown:
        assert [value.replace("-0.00", "+0.00") for value in wanted[name]] == values, name


def test_targets_on_the_page_of_the_summary_have_the_measured_figures() -> None:
    known = means("summary")
    page = read(ROOT / "docs" / "results" / "summary.md").split("<!-- summary -->")[0]
    protocols = ("inductive", "inductive", "corpus", "few-label:1%", "few-label:5%", "few-label:1%")
    lines = [cells(line)[1:] for line in rows(page)[2:]]
    for i, (protocol, values) in enumerate(zip(protocols, lines, strict=True)):
        row = "WGCN, linear, with word vectors" if i == 5 else "WGCN, linear"
        for dataset, value in zip(SETS, values, strict=True):
            target, reached = value.strip("*").split(": ")
            assert reached == f"{known[protocol, row, dataset]:.2f}"
            assert value.startswith("**") == (float(reached) < float(target))
