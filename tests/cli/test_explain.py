"""wgcn explain and wgcn words, as a user runs them."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from wgcn import TextModel, WGCNTextClassifier

Run = Callable[..., tuple[int, str, str]]

TEXTS = ["red wine", "white wine", "red and white wine", "fast car", "slow car", "a fast red car"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model"
    WGCNTextClassifier(n_jobs=1).fit(TEXTS, ["drink"] * 3 + ["drive"] * 3).save(path)
    return path


def test_every_text_is_explained(run: Run, folder: Path) -> None:
    code, out, err = run("explain", folder, "A glass of red wine", "zzz \x1b[31m")
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert out.startswith("A glass of red wine\n\npredicted  drink\n")
    assert "\n\nzzz \\x1b[31m\n\n" in out
    assert out.count("explained  ") == 2


def test_colours_are_for_terminals_that_want_them(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[38;5;16;48;5;75mwine\x1b[0m" in run("explain", folder, "red wine")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run("explain", folder, "red wine")[1]


def test_another_class_is_explained_or_refused(run: Run, folder: Path) -> None:
    assert "explained  drive (" in run("explain", folder, "red wine", "--label", "drive")[1]
    for command in (["explain", folder, "red wine"], ["words", folder]):
        code, out, err = run(*command, "--label", "fly")
        assert (code, out) == (2, "")
        assert err == "Error: There is no class 'fly'. The classes are 'drink', 'drive'.\n"


def test_a_page_is_written_whole_or_not_at_all(run: Run, folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    code, out, err = run("explain", folder, "red <wine>", "--html", page)
    assert (code, out, err) == (0, "", f"The explanations are in {page}.\n")
    assert "&lt;" in page.read_text(encoding="utf-8")
    assert run("explain", folder, "x", "--html", tmp_path / "other.html", "--label", "fly")[0] == 2
    assert run("explain", folder, "x", "--html", tmp_path)[0] == 2
    assert [file.name for file in tmp_path.iterdir()] == ["why.html"]


def test_words_of_all_classes_or_of_one(run: Run, folder: Path) -> None:
    model = TextModel.load(folder)
    code, out, err = run("words", folder, "--top", 2)
    assert (code, err) == (0, "")
    assert [line.split(None, 1) for line in out.splitlines()] == [
        [name, ", ".join(word for word, _ in model.top_words(name, 2))] for name in ("drink", "drive")
    ]
    assert run("words", folder, "--label", "drive")[1].split()[:2] == ["drive", "car"]
    assert run("words", folder, "--top", 0)[0] == 2


@pytest.mark.parametrize("arguments", [["explain", "nowhere", "x"], ["words", "nowhere"]])
def test_the_commands_load_nothing_heavy(arguments: list[str]) -> None:
    begin = f"import sys; sys.argv[1:] = {arguments!r}; from wgcn.cli import main"
    script = f"{begin}\ntry: main()\nfinally: print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (2, "Error: There is no model folder nowhere. Check the path.\n")
    assert not set(result.stdout.split()) & {"rich", "scipy", "sklearn", "numba", "wgcn.cli.fit", "wgcn.io.read"}
