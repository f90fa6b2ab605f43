"""What the commands print with: results to standard output, all else to standard error. rich loads only if needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from wgcn.base.progress import Stage, reporting

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from wgcn.network.settings import EpochRecord


def _err() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def say(message: str) -> None:
    """Print a message beside the results."""
    with suppress(OSError):  # nobody can be told
        print(message, file=sys.stderr, flush=True)


def warn(message: str, kind: str = "Warning", colour: int = 33) -> None:
    """Show a warning or an error, on a terminal in colour."""
    coloured = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    say(f"\x1b[{colour}m{kind}:\x1b[0m {message}" if coloured else f"{kind}: {message}")


def show(rows: dict[str, str]) -> None:
    """Print results, one per line."""
    width = max(8, *map(len, rows))
    for name, value in rows.items():
        print(f"{name:<{width}}  {value}")


def steps() -> Progress:
    """Show progress bars on a terminal, and nothing in a pipe; they vanish when the work is done."""
    from rich.progress import BarColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), "{task.fields[note]}", TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=_err(), transient=True, disable=not _err().is_terminal)


@contextmanager
def stages() -> Iterator[Progress]:
    """Show the stages of work: the running one as a bar on a terminal, and a line for each that has ended."""
    with steps() as bars:

        def report(stage: Stage) -> None:
            if stage.seconds is None:
                bars.add_task(stage.name, total=None, note=stage.detail)
            else:
                bars.remove_task(bars.task_ids[-1])
                say(str(stage))

        with reporting(report):
            yield bars


def counter(bars: Progress) -> Callable[[int, int], None]:
    """Return a function that shows how many parts of the running stage are done."""

    def show_done(done: int, total: int) -> None:
        bars.update(bars.task_ids[-1], completed=done, total=total, note=f"{done:,} of {total:,}")

    return show_done


class EpochBar:
    """A callback of the network's training that shows its epochs in a bar."""

    def __init__(self, bars: Progress, max_epochs: int) -> None:
        self._bars, self._max_epochs = bars, max_epochs
        self._task = bars.add_task("Training", total=max_epochs, note="")

    def on_epoch(self, record: EpochRecord, model: object) -> None:
        """Show the loss and the accuracy of an epoch."""
        if record.epoch == 1:
            self._bars.reset(self._task)
        what = "refit" if record.refit else "network"
        place = f"{what} {record.network + 1}, epoch {record.epoch} of at most {self._max_epochs}"
        note = f"{place}: loss {record.loss:.4f}"
        if record.validation_accuracy is not None:
            note += f", validation accuracy {record.validation_accuracy:.2%}"
        self._bars.update(self._task, completed=record.epoch, note=note)
