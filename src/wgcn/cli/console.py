"""What the commands print with: results to standard output, all else to standard error."""

import sys
from typing import TYPE_CHECKING, NoReturn

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TimeElapsedColumn, TimeRemainingColumn
from rich.status import Status

if TYPE_CHECKING:
    from wgcn.network.settings import EpochRecord

__all__ = ["EpochBar", "fail", "out", "say", "show", "steps", "warn", "working"]

out = Console(highlight=False, soft_wrap=True)
_err = Console(stderr=True, highlight=False, soft_wrap=True)


def say(message: str) -> None:
    """Print a message beside the results."""
    _err.print(escape(message))


def warn(message: str) -> None:
    """Show a warning."""
    _err.print(f"[yellow]Warning:[/] {escape(message)}")


def fail(message: str) -> NoReturn:
    """Show an error and end the program."""
    _err.print(f"[red]Error:[/] {escape(message)}")
    sys.exit(2)


def show(rows: dict[str, str]) -> None:
    """Print results, one per line."""
    width = max(8, *map(len, rows))
    for name, value in rows.items():
        print(f"{name:<{width}}  {value}")


def working(what: str) -> Status:
    """Show on a terminal that work goes on, and nothing in a pipe."""
    return _err.status(f"{what} ...")


def steps() -> Progress:
    """Show progress bars on a terminal, and nothing in a pipe; they vanish when the work is done."""
    columns = ("{task.description}", BarColumn(), "{task.fields[note]}", TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=_err, transient=True, disable=not _err.is_terminal)


class EpochBar:
    """A callback of the network's training that shows its epochs in a bar."""

    def __init__(self, bars: Progress, max_epochs: int) -> None:
        self._bars, self._max_epochs = bars, max_epochs
        self._task = bars.add_task("Training", total=max_epochs, note="")

    def on_epoch(self, record: "EpochRecord", model: object) -> None:
        """Show the loss and the accuracy of an epoch."""
        if record.epoch == 1:
            self._bars.reset(self._task)
        what = "refit" if record.refit else "network"
        place = f"{what} {record.network + 1}, epoch {record.epoch} of at most {self._max_epochs}"
        note = f"{place}: loss {record.loss:.4f}"
        if record.validation_accuracy is not None:
            note += f", validation accuracy {record.validation_accuracy:.2%}"
        self._bars.update(self._task, completed=record.epoch, note=note)
