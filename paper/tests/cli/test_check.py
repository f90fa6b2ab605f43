"""wgcn-paper check as a user runs it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from wgcn_paper.experiments import pages

Run = Callable[..., tuple[int, str, str]]

ROOT = Path(__file__).parents[3]
PAGE = "docs/results/update.md"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one table."""
    monkeypatch.setattr(pages, "TABLES", {"update": pages.TABLES["update"]})
    for name in ("paper/results/update.json", PAGE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_check_names_the_pages_that_differ_and_fix_writes_them(run: Run, checkout: Path) -> None:
    page = checkout / PAGE
    right = page.read_text()
    assert run("check", checkout) == (0, "all 1 tables are what the committed runs say\n", "")
    row = next(line for line in right.splitlines() if line.startswith("| test documents"))
    page.write_text(right.replace(row, row.replace("99.60", "98.60")))
    code, out, err = run("check", checkout)
    assert (code, out) == (1, "")
    assert f"Not what the committed runs say: {page}" in err
    code, _, err = run("check", checkout, "--fix")
    assert (code, err) == (0, f"Rewritten: {page}\n")
    assert page.read_text() == right


def test_a_page_without_a_place_for_its_table_is_an_error(run: Run, checkout: Path) -> None:
    page = checkout / PAGE
    page.write_text(page.read_text().replace("<!-- end -->", ""))
    code, out, err = run("check", checkout)
    assert (code, out) == (2, "")
    assert "has no place for its table: the lines <!-- update --> and <!-- end -->" in err


def test_damaged_runs_are_an_error(run: Run, checkout: Path) -> None:
    (checkout / "paper/results/update.json").write_text("{")
    code, _, err = run("check", checkout)
    assert (code, "is damaged or not a result file" in err) == (2, True)


def test_check_needs_a_checkout(run: Run, tmp_path: Path) -> None:
    code, out, err = run("check", tmp_path)
    assert (code, out) == (2, "")
    assert "Give the folder of a checkout" in err
