"""Reports are what the runs say, and pages show them."""

import shutil
from pathlib import Path

import pytest

from wgcn_paper.experiments import copies
from wgcn_paper.experiments.copies import check_copies
from wgcn_paper.experiments.quotes import Outcome

ROOT = Path(__file__).parents[3]
FILES = ("paper/results/update.json", "paper/results/update.md", "docs/results/update.md")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one table."""
    monkeypatch.setattr(copies, "TABLES", {"update": "update"})
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def checked(root: Path, *, fix: bool = False) -> Outcome:
    outcome = Outcome()
    check_copies(root, outcome, fix=fix)
    return outcome


def test_what_the_runs_say_is_found_right(checkout: Path) -> None:
    outcome = checked(checkout)
    assert outcome.findings == []
    assert outcome.n_figures > 50


@pytest.mark.parametrize("name", FILES[1:])
def test_a_changed_figure_is_found_and_written_back(checkout: Path, name: str) -> None:
    right = (checkout / name).read_text()
    row = next(line for line in right.splitlines() if line.startswith("| test documents"))
    (checkout / name).write_text(right.replace(row, row.replace("99.60", "98.60")))
    [finding] = checked(checkout).findings
    assert (finding.page, "is not what the runs say" in finding.message) == (name, True)
    assert "page: | test documents" in finding.message
    checked(checkout, fix=True)
    assert (checkout / name).read_text() == right
    assert checked(checkout).findings == []


def test_a_page_without_a_place_for_its_table_is_found(checkout: Path) -> None:
    page = checkout / "docs/results/update.md"
    page.write_text(page.read_text().replace("<!-- end -->", ""))
    [finding] = checked(checkout).findings
    assert finding.message == "has no part update"


def test_a_report_that_cannot_be_made_is_one_finding(checkout: Path) -> None:
    (checkout / "paper/results/update.json").write_text("{")
    [finding] = checked(checkout).findings
    assert "cannot be made" in finding.message
