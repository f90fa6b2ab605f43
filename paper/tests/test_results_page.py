"""The page of results shows what the result files say."""

import re
from pathlib import Path

import pytest

from wgcn_paper.experiments.reproduce import TABLES, all_cells
from wgcn_paper.experiments.results import ResultFile
from wgcn_paper.experiments.table import load_table

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


def section(name: str) -> str:
    """The part of the page between the marks of a table."""
    match = re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", PAGE, re.DOTALL)
    assert match, f"docs/results.md has no part {name}"
    return match[1]


@pytest.mark.parametrize("name", TABLES)
def test_tables_on_the_page_are_those_of_the_reports(name: str) -> None:
    report = (ROOT / "paper" / "results" / f"{name}.md").read_text(encoding="utf-8")
    wanted = [line for line in report.splitlines() if line.startswith("|")]
    assert wanted
    assert [line for line in section(name).splitlines() if line.startswith("|")] == wanted


@pytest.mark.parametrize("name", [name for name in TABLES if name != "datasets"])
def test_reports_hold_only_runs_with_the_settings_of_today(name: str) -> None:
    table = load_table(name)
    results = ResultFile(ROOT / "paper" / "results", name, reuse=False)
    current = {cell.key for cell in all_cells(table)}
    stale = [place for place, run in results._runs.items() if run.cell.key not in current]
    assert stale == []


@pytest.mark.parametrize("link", re.findall(r"\]\((\.\./[^)]+)\)", PAGE))
def test_links_of_the_page_lead_somewhere(link: str) -> None:
    assert (ROOT / "docs" / link).exists()
