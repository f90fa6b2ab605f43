"""wgcn suggest and wgcn curve, as a user runs them."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]

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
