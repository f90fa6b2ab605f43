from collections.abc import Callable
from pathlib import Path

import pytest

from wgcn import TextModel

Run = Callable[..., tuple[int, str, str]]
SPORT, POLITICS = "game team player score win", "vote party law minister tax"


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Write texts without labels, of two topics."""
    sport, politics = SPORT.split(), POLITICS.split()
    rows = [" ".join(words[(i + j) % 5] for j in (0, 1, 3)) for i in range(30) for words in (sport, politics)]
    path = tmp_path / "texts.csv"
    path.write_text("text\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_seeds_shows_given_and_added_words(run: Run, texts: Path) -> None:
    status, out, err = run("seeds", texts, "--seed", "sport=game,team", "--seed", "politics=vote,-tax")
    assert status == 0
    lines = out.splitlines()
    assert lines[:2] == ["politics", "  given  vote (18)"]
    assert "tax" not in lines[2]
    assert lines[4] == "  given  game (18), team (18)"
    assert {word.split()[0] for word in lines[5].removeprefix("  added  ").split(", ")} == {"player", "score", "win"}
    assert "Warning" not in err


def test_fit_needs_no_label_column_with_seeds(run: Run, texts: Path, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("sport: game\npolitics: vote, party\n", encoding="utf-8")
    status, out, _ = run("fit", texts, "--seeds", seeds, "--seed", "sport=team", "--model", tmp_path / "model")
    assert status == 0
    assert "not measured: there are no labels" in out
    model = TextModel.load(tmp_path / "model")
    assert model.report["seeds"] == {"sport": ["team", "game"], "politics": ["vote", "party"]}
    assert model.predict([SPORT, POLITICS]).tolist() == ["sport", "politics"]


def test_a_seed_in_no_text_is_one_message(run: Run, texts: Path, tmp_path: Path) -> None:
    status, _, err = run("fit", texts, "--seed", "sport=gaem", "--seed", "politics=vote", "--model", tmp_path / "model")
    assert status == 2
    assert "'gaem' of class 'sport' is in no text. Near it are 'game'." in err
    assert not (tmp_path / "model").exists()


def test_without_seeds_the_label_column_is_needed(run: Run, texts: Path, tmp_path: Path) -> None:
    assert run("fit", texts, "--model", tmp_path / "model")[0] == 2
    assert run("seeds", texts)[0] == 2
