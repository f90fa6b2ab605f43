"""The documentation shows what the result files say, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

from wgcn_paper.experiments.copies import check_copies
from wgcn_paper.experiments.quotes import Outcome, check_quotes, pages
from wgcn_paper.experiments.reproduce import TABLES, all_cells
from wgcn_paper.experiments.results import ResultFile
from wgcn_paper.experiments.table import load_table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "paper" / "results"
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "paper/README.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
]


def read(path: Path) -> str:
    """The text of a file."""
    return path.read_text(encoding="utf-8")


def cells(line: str) -> list[str]:
    """The cells of a line of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows(text: str) -> list[str]:
    """The lines of tables."""
    return [line for line in text.splitlines() if line.startswith("|")]


def test_reports_are_what_the_runs_say_and_pages_show_them() -> None:
    outcome = Outcome()
    check_copies(ROOT, outcome)
    assert [str(finding) for finding in outcome.findings] == []


def test_every_page_of_results_is_a_table_and_in_the_list() -> None:
    folder = ROOT / "docs" / "results"
    pages = {path.stem for path in folder.glob("*.md")} - {"README"}
    assert pages == set(TABLES)
    assert pages <= set(re.findall(r"\]\(([a-z-]+)\.md\)", read(folder / "README.md")))


@pytest.mark.parametrize("name", [name for name in TABLES if name not in ("datasets", "elements")])
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


def is_bold(value: str) -> bool:
    return value.startswith("**")


def figure(value: str) -> float:
    """The number in a cell of a table; of a target and what was reached, the latter."""
    return float(value.strip("*").split(": ")[-1])


def test_the_best_figures_of_the_readme_are_bold() -> None:
    """Of each column of the table of seeds, and of each group of rows of the table with labels."""
    lines = [cells(line) for line in rows(read(ROOT / "README.md"))]
    groups: list[list[list[str]]] = []
    for line in lines:
        numbers = [value for value in line if re.fullmatch(r"(\*\*)?\d+\.\d(\*\*)?", value)]
        if not numbers or line[0].endswith("%") or line[0] == "all":
            groups.append([])
        if numbers:
            groups[-1].append(numbers)
    groups = [group for group in groups if group]
    assert [len(group) for group in groups] == [4, 8, 7, 5]
    for group in groups:
        for column in zip(*group, strict=True):
            best = max(map(figure, column))
            assert [is_bold(value) for value in column] == [figure(value) == best for value in column]


def test_missed_targets_on_the_page_of_the_summary_are_bold() -> None:
    page = read(ROOT / "docs" / "results" / "summary.md").split("<!-- summary -->")[0]
    values = [value for line in rows(page)[2:] for value in cells(line)[1:]]
    assert len(values) == 25
    for value in values:
        target = float(value.strip("*").split(": ")[0])
        assert is_bold(value) == (figure(value) < target), value


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return check_quotes(ROOT)


@pytest.mark.parametrize("page", pages(ROOT))
def test_figures_in_the_prose_of_a_page_are_those_of_the_runs(page: str, outcome: Outcome) -> None:
    """`wgcn-paper check` says the same; `wgcn-paper check --fix` writes the figures of the runs."""
    assert [str(finding) for finding in outcome.findings if finding.page == page] == []


def test_quotes_are_of_pages_that_there_are(outcome: Outcome) -> None:
    assert {finding.page for finding in outcome.findings} <= set(pages(ROOT))
