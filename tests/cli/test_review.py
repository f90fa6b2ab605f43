import csv
from pathlib import Path

import pytest

from .conftest import Run

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
