"""The documentation shows what the result files say, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

from wgcn_paper.experiments.pages import TABLES, is_current
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


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_what_the_committed_runs_say(name: str) -> None:
    """`wgcn-paper check` says the same; `wgcn-paper check --fix` writes the tables of the runs."""
    assert is_current(name, RESULTS)


def test_every_page_of_results_is_a_table_and_in_the_list() -> None:
    folder = ROOT / "docs" / "results"
    pages = {path.stem for path in folder.glob("*.md")} - {"README"}
    assert pages == set(TABLES) - {"readme"}
    assert pages <= set(re.findall(r"\]\(([a-z-]+)\.md\)", read(folder / "README.md")))


@pytest.mark.parametrize("name", [name for name in TABLES if load_table(name).rows])
def test_reports_hold_only_runs_with_the_settings_of_today(name: str) -> None:
    table = load_table(name)
    results = ResultFile(RESULTS, name, reuse=False)
    current = {cell.key for cell in table.all_cells()}
    stale = [place for place, run in results.places.items() if run.cell.key not in current]
    assert stale == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", read(page))
    dead = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert dead == []
