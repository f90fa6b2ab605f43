"""The bar of a training shows its epochs on a terminal, and nothing in a pipe."""

import pytest
from rich.console import Console

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


def test_epochs_are_not_shown_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    show()
    assert capsys.readouterr() == ("", "")


def test_epochs_are_shown_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_err", Console(stderr=True, force_terminal=True, width=200, highlight=False))
    show()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "network 1, epoch 2 of at most 30: loss 0.5000, validation accuracy 100.00%" in shown.err
    assert "refit 1, epoch 1 of at most 30: loss 0.2500" in shown.err
