"""Long work that may be interrupted: what is finished is kept at once, and is not done again."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def resume(
    items: Sequence[T],
    key: Callable[[T], Hashable],
    finished: Container[Hashable],
    do: Callable[[list[T]], Iterable[tuple[T, Any]]],
    keep: Callable[[T, Any], None],
    show: Callable[[int, int, T | None, Any], None] | None = None,
) -> None:
    """Do what is not finished.

    Parameters
    ----------
    finished : container
        The keys of what has been done. Of items with the same key the last is done, for all of them.
    do : callable
        Yields items with their outcomes as they finish; None where it was too late to begin.
    keep : callable
        Saves an outcome before the next is asked for.
    show : callable, optional
        Called at the beginning and after each item, with the number of finished items and of all, item and outcome.
    """
    todo = list({key(item): item for item in items if key(item) not in finished}.values())
    done = len(items) - len(todo)
    if show is not None:
        show(done, len(items), None, None)
    for item, outcome in do(todo):
        if outcome is not None:
            keep(item, outcome)
        done += 1
        if show is not None:
            show(done, len(items), item, outcome)
