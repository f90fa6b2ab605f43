"""Callbacks of a training: the protocol, and a progress bar."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from wgcn.errors import needs
from wgcn.network.settings import EpochRecord

if TYPE_CHECKING:
    from wgcn.network.module import WGCN

__all__ = ["Callback", "ProgressBar"]


class Callback(Protocol):
    """Receives every epoch. It may raise KeyboardInterrupt to end the training."""

    def on_epoch(self, record: EpochRecord, model: WGCN) -> None:
        """Handle the end of an epoch; the model must not be changed."""


class ProgressBar:
    """A callback that shows the epochs on a terminal, and nothing in a pipe. It is a context manager.

    The time left is that to `max_epochs`: with early stopping, the most that it can take.
    """

    def __init__(self, max_epochs: int) -> None:
        with needs("A progress bar"):
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("at most"), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task("Training", total=max_epochs)
        self._stage = (0, False)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._progress.stop()

    def on_epoch(self, record: EpochRecord, model: WGCN) -> None:
        """Show the loss and the accuracy of an epoch."""
        if self._stage != (record.network, record.refit):
            self._stage = (record.network, record.refit)
            self._progress.reset(self._task)
        what = "Refit" if record.refit else "Network"
        text = f"{what} {record.network + 1}, epoch {record.epoch}: loss {record.loss:.4f}"
        if record.validation_accuracy is not None:
            text += f", validation accuracy {record.validation_accuracy:.2%}"
        self._progress.update(self._task, completed=record.epoch, description=text)
