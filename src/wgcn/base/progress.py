"""Named stages of long work. They are timed, and shown, only where a reporter is active, and in the same thread."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Stage:
    """A stage: `detail`, which may be known only at its end, and `seconds`, which is None while it runs."""

    name: str
    detail: str = ""
    seconds: float | None = None

    def __str__(self) -> str:
        took = "...  " if self.seconds is None else f"{self.seconds:.1f} s"
        return f"{took:>7}  {self.name}{': ' * bool(self.detail)}{self.detail}"


Reporter = Callable[[Stage], object] | None  # called when a stage begins, and when it has ended
_active: ContextVar[Reporter] = ContextVar("reporter", default=None)


@contextmanager
def reporting(reporter: Reporter) -> Iterator[None]:
    """Report the stages inside to a function."""
    before = _active.set(reporter)
    try:
        yield
    finally:
        _active.reset(before)


@contextmanager
def stage(name: str, detail: str = "") -> Iterator[Stage]:
    """Report the work inside as one stage. Stages within it are parts of it, and are not reported."""
    report, current, started = _active.get() or (lambda _: None), Stage(name, detail), time.perf_counter()
    report(current)
    with reporting(None):
        yield current
    current.seconds = time.perf_counter() - started
    report(current)


def shown(verbose: bool) -> AbstractContextManager[None]:
    """Print the stages inside to standard output if `verbose`; otherwise leave them to the reporter there is."""
    return reporting(_print if verbose else _active.get())


def _print(stage: Stage) -> None:
    if stage.seconds is not None:
        print(stage, flush=True)
    elif sys.stdout.isatty() or "ipykernel" in sys.modules:
        print(Stage(stage.name), end="\r", flush=True)  # the line above is not shorter, so it covers this one
