"""wgcn-paper check as a user runs it."""

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one page and one quote, whose figure is stale."""
    folder = tmp_path / "paper/results/quotes"
    folder.mkdir(parents=True)
    (folder / "readme.toml").write_text(
        'page = "README.md"\n[[quote]]\ntext = "It has {:.1f} %."\nfigures = [{ number = 71.04 }]\n'
    )
    (tmp_path / "README.md").write_text("It has 70.0 %.\n")
    return tmp_path


def test_check_lists_what_differs_and_fix_writes_it(run: Run, checkout: Path) -> None:
    code, out, err = run("check", checkout)
    assert code == 1
    assert out == "README.md:1: in the runs 70.0 is 71.0\n    page: It has 70.0 %.\n"
    assert "checked 1 figures on 1 pages: 1 findings" in err
    code, out, err = run("check", checkout, "--fix")
    assert (code, out) == (0, "checked 1 figures on 1 pages: all as the runs say\n")
    assert "Rewritten: README.md" in err
    assert (checkout / "README.md").read_text() == "It has 71.0 %.\n"
    assert run("check", checkout) == (0, "checked 1 figures on 1 pages: all as the runs say\n", "")


def test_check_needs_a_checkout(run: Run, tmp_path: Path) -> None:
    code, out, err = run("check", tmp_path)
    assert (code, out) == (2, "")
    assert "Give the folder of a checkout" in err
