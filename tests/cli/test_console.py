"""The bar of a training shows its epochs on a terminal, and nothing in a pipe; stages are lines in both."""

import sys

import pytest
from rich.console import Console

from wgcn.base.progress import stage
from wgcn.cli import console
from wgcn.network.settings import EpochRecord

EPOCHS = [
    EpochRecord(1, 0.75, 0.5, 0.9, 0.01),
    EpochRecord(2, 0.5, 0.25, 1.0, 0.01),
    EpochRecord(1, 0.25, None, None, 0.01, refit=True),
]


def show() -> None:
    with console.steps() as bars:
        bar = console.EpochBar(bars, 30)
        for record in EPOCHS:
            bar.on_epoch(record, None)
            bars.refresh()


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(stderr=True, force_terminal=True, width=200, highlight=False)
    monkeypatch.setattr(console, "_err", lambda: terminal)


def test_epochs_are_not_shown_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    show()
    assert capsys.readouterr() == ("", "")


def test_epochs_are_shown_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_terminal(monkeypatch)
    show()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "network 1, epoch 2 of at most 30: loss 0.5000, validation accuracy 100.00%" in shown.err
    assert "refit 1, epoch 1 of at most 30: loss 0.2500" in shown.err


def work() -> None:
    with console.stages() as bars:
        with stage("Reading", "3 texts"):
            bars.refresh()
        with stage("Counting") as counting:
            bars.refresh()
            counting.detail = "7 windows"


def test_in_a_pipe_a_stage_is_a_line_once_it_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    work()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert [line.partition(" s  ")[2] for line in shown.err.splitlines()] == ["Reading: 3 texts", "Counting: 7 windows"]


def test_on_a_terminal_the_running_stage_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch)
    work()
    shown = capsys.readouterr()
    assert shown.out == ""
    before, _, after = shown.err.partition("s  Reading: 3 texts")
    assert "Reading" in before
    assert "3 texts" in before
    assert "Counting" in after.partition("s  Counting: 7 windows")[0]


def test_a_stage_that_fails_leaves_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), console.stages(), stage("Dividing"):
        raise ZeroDivisionError
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("terminal", "expected"), [(False, "Error: [no]\n"), (True, "\x1b[31mError:\x1b[0m [no]\n")])
def test_errors_are_coloured_on_a_terminal(
    terminal: bool, expected: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    console.warn("[no]", "Error", 31)
    assert capsys.readouterr().err == expected
