"""What the README and the documentation show runs: every Python block, and every `wgcn` command of README and usage."""

import os
import re
import shlex
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from wgcn.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
COMMAND_PAGES = [ROOT / "README.md", ROOT / "docs" / "usage.md"]

WINE = [f"{kind} wine with {food} and {more}" for kind in ("red", "white") for food in ("cheese", "bread", "fruit")
        for more in ("honey", "figs")]  # fmt: skip
CARS = [f"{kind} car with {part} and {more}" for kind in ("fast", "slow") for part in ("tires", "brakes", "gears")
        for more in ("lights", "seats")]  # fmt: skip
# Words of their own, so that no text is a near-copy of another.
TEXTS = [f"{text} {' '.join(f'{word}{i}' for word in ('one', 'two', 'three', 'four'))}"
         for i, text in enumerate(text for pair in zip(WINE, CARS, strict=True) for text in pair)]  # fmt: skip
LABELS = ["drink", "drive"] * len(WINE)
MORE = ["a claret is red wine with cheese", "the claret and the bread", "a sedan is a slow car with seats"] * 2
NEW = ["claret with figs", "a sedan with brakes"]
NEWS = ["the team and its coach won the game", "the minister and her party lost the vote"] * 6
MAILS = ["cheap pills now", "buy cheap pills", "lunch on monday", "notes of the meeting on monday"] * 3


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[str]:
    """The lines on a page that begin with `wgcn`, in fenced or indented blocks."""
    shown = "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    indented = re.findall(r"^ {4}(?:\$ )?(wgcn .*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [line for line in [*shown, *indented] if line.startswith("wgcn ")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with all files that the examples read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MPLBACKEND", "agg")
    for name, texts, labels in (
        ("train.csv", TEXTS, {"topic": LABELS}),
        ("test.csv", TEXTS[:6], {"topic": LABELS[:6]}),
        ("tagged.csv", TEXTS, {"topics": ["drink;red" if "red" in text else "drink" for text in TEXTS]}),
        ("mails.csv", MAILS, {"label": ["spam", "spam", "ham", "ham"] * 3}),
        ("posts.csv", TEXTS, {}),
        ("more.csv", MORE, {}),
        ("new.csv", NEW, {}),
    ):
        rows = [",".join(row) for row in zip(texts, *labels.values(), strict=True)]
        Path(name).write_text("\n".join([",".join(["body", *labels]), *rows]) + "\n", encoding="utf-8")
    words = sorted({word for text in [*TEXTS, *MORE, *NEW] for word in text.split()})
    values = np.random.default_rng(0).normal(size=(len(words), 8)).round(3)
    lines = [" ".join([word, *map(str, row)]) for word, row in zip(words, values.tolist(), strict=True)]
    Path("glove.6B.300d.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def encode(texts: Sequence[str], kind: str) -> NDArray[np.float32]:
    """A stub of the sentence encoder, which takes long."""
    return np.array([[len(text), "wine" in text] for text in texts], np.float32)


def names() -> dict[str, Any]:
    """What the Python blocks take as given."""
    links = csr_array(np.eye(len(NEW), len(TEXTS), dtype=np.float32))
    return {
        "texts": TEXTS,
        "labels": [*LABELS[:-2], None, None],
        "more_texts": MORE,
        "new_texts": NEW,
        "news": NEWS,
        "mails": MAILS,
        "mail_labels": ["spam", "spam", "ham", "ham"] * 3,
        "links": links,
    }


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem)
def test_python_blocks_of_a_page_run_one_after_another(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = "\n".join(blocks(page, "python"))
    if "wgcn_paper" in shown:
        pytest.importorskip("wgcn_paper")
    if "distilled_vectors" in shown:
        monkeypatch.setattr("wgcn_paper.vectors.encoder.encode_cached", encode)
    if "load_dataset" in shown and not os.environ.get("WGCN_DATA"):
        pytest.skip("needs the benchmark data: set WGCN_DATA to its folder")
    exec(compile(shown, str(page), "exec"), names())


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", COMMAND_PAGES, ids=lambda page: page.stem)
def test_commands_of_a_page_run_one_after_another(
    page: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    shown = commands(page)
    assert shown
    for line in shown:
        monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code in (0, None), f"{line}\n{capfd.readouterr().err}"


def test_the_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 100


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("docs/results/*.md"))], ids=lambda page: page.stem)
def test_prose_is_wrapped(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    long = [line for line in text.splitlines() if len(line) > 120 and not line.startswith(("|", "    "))]
    assert long == []


def test_the_layers_on_the_page_of_the_architecture_are_those_of_the_linter() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text[text.index("## Layers of the library") : text.index("## The experiments")]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = [name.strip() for line in reversed(contracts[0]["layers"]) for name in line.split("|")]
    places = [re.search(rf"^\|.*`{name}(/|\.py)`.*\|$", table, re.M) for name in layers if name != "__main__"]
    assert all(places)
    begins = [place.start() for place in places if place]
    assert begins == sorted(begins)
