"""Seed words, texts to label next, learning curves and doubtful labels on the command line."""

import csv
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


_TEXTS = {
    "drink": ["red wine glass", "white wine grape", "cold beer glass", "red grape wine", "beer bottle cold"],
    "drive": ["fast car road", "slow car brake", "car engine road", "fast engine wheel", "wheel brake car"],
}


def write(path: Path, n_labelled: int, column: str = "label") -> Path:
    """Write ten texts, the two topics in turn, of which the first have a label."""
    pairs = [
        (text, topic) for both in zip(*_TEXTS.values(), strict=True) for text, topic in zip(both, _TEXTS, strict=True)
    ]
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", column])
        table.writerows([text, topic if i < n_labelled else ""] for i, (text, topic) in enumerate(pairs))
    return path


def test_without_labels_rows_are_suggested_that_differ(run: Run, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(text for texts in _TEXTS.values() for text in texts))
    status, out, err = run("suggest", tmp_path / "texts.txt", "-n", 2)
    head, *lines = out.splitlines()
    assert status == 0, err
    assert head.split() == ["row", "text"]
    rows = [int(line.split()[0]) for line in lines]
    assert sorted(row <= 5 for row in rows) == [False, True]  # one of each topic, counted from 1
    assert lines[0].split(maxsplit=1)[1] == [text for texts in _TEXTS.values() for text in texts][rows[0] - 1]
    assert "Each stands for many other texts" in err


def test_with_labels_guesses_come_along_and_fill_a_table(run: Run, tmp_path: Path) -> None:
    texts = write(tmp_path / "texts.csv", 4)
    status, out, err = run("suggest", texts, "-n", 3)
    assert status == 0, err
    assert out.splitlines()[0].split() == ["row", "guess", "text"]
    assert "Each stands for many texts of which the model is uncertain" in err
    assert run("suggest", texts, "-n", 3, "--output", tmp_path / "next.csv")[:2] == (0, "")
    table = list(csv.DictReader((tmp_path / "next.csv").read_text().splitlines()))
    assert [row["row"] for row in table] == [line.split()[0] for line in out.splitlines()[1:]]
    assert all(int(row["row"]) > 4 and row["label"] == "" for row in table)
    assert all(row["guess"] in _TEXTS and 0.5 <= float(row["confidence"]) <= 1 for row in table)


def test_labels_of_one_class_are_not_suggested_again(run: Run, tmp_path: Path) -> None:
    status, out, _ = run("suggest", write(tmp_path / "texts.csv", 1), "-n", 20)
    assert status == 0
    assert sorted(int(line.split()[0]) for line in out.splitlines()[1:]) == list(range(2, 11))


def test_a_column_that_is_asked_for_must_be_there(run: Run, tmp_path: Path) -> None:
    texts = write(tmp_path / "texts.csv", 0, "topic")
    assert run("suggest", texts, "-n", 1)[0] == 0
    status, _, err = run("suggest", texts, "--label-column", "topics")
    assert status == 2
    assert "Did you mean 'topic'?" in err
    assert "Every text" in run("suggest", write(tmp_path / "all.csv", 10))[2]


def test_a_curve_is_printed_and_drawn(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    status, out, err = run("curve", write(tmp_path / "texts.csv", 8), "--output", tmp_path / "curve.png")
    assert status == 0, err
    assert out.splitlines()[0].split() == ["labels", "accuracy", "95%", "interval", "held-out", "texts"]
    assert (tmp_path / "curve.png").stat().st_size > 1000
    assert run("curve", write(tmp_path / "few.csv", 2))[0] == 2


ROWS = [
    ("wine", "red wine and cheese"),
    ("wine", "white wine with fish"),
    ("wine", "a glass of wine"),
    ("car", "a fast car on the road"),
    ("car", "the car has an engine"),
    ("car", "slow car, long road"),
    ("car", "red wine, white wine, a glass of wine"),
    ("", "a road"),
    ("car", "an engine for the car"),
    ("wine", "wine"),
]


@pytest.fixture
def train(tmp_path: Path) -> Path:
    path = tmp_path / "train.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("topic", "body"), *ROWS])
    return path


COLUMNS = ("--text-column", "body", "--label-column", "topic")


def test_the_most_doubtful_label_is_on_top(run: Run, train: Path) -> None:
    status, out, err = run("review", train, *COLUMNS, "-n", 2)
    assert status == 0, err
    header, first, _ = out.splitlines()
    assert header.split() == ["row", "label", "suggestion", "doubt", "text"]
    assert first.split()[:3] == ["7", "car", "wine"]
    assert first.endswith(ROWS[6][1])


def test_all_labels_are_written_to_a_file(run: Run, train: Path, tmp_path: Path) -> None:
    status, out, err = run("review", train, *COLUMNS, "-n", 0, "--output", tmp_path / "doubts.csv")
    assert (status, out) == (0, ""), err
    assert "The 9 most doubtful labels" in err
    with (tmp_path / "doubts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {int(row["row"]) for row in rows} == {1, 2, 3, 4, 5, 6, 7, 9, 10}
    assert all((row["label"], row["text"]) == ROWS[int(row["row"]) - 1] for row in rows)
    wrong = [float(row["doubt"]) for row in rows]
    assert wrong == sorted(wrong, reverse=True)


def test_evaluate_warns_of_test_texts_that_were_trained_on(run: Run, train: Path, tmp_path: Path) -> None:
    model, test = tmp_path / "model", tmp_path / "test.csv"
    assert run("fit", train, *COLUMNS, "--model", model)[0] == 0
    test.write_text("topic,body\nwine,Red wine and cheese\ncar,an old car\n")
    status, _, err = run("evaluate", model, test, *COLUMNS, "--train", train)
    assert status == 0
    assert "1 of 2 test texts are among the training texts" in err
    assert "among the training texts" not in run("evaluate", model, test, *COLUMNS)[2]
