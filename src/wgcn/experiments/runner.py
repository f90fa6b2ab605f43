"""Running many cells: what is done already is left out, what is done is saved at once."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from wgcn.experiments.cells import Cell, Run, run_cell
from wgcn.experiments.results import ResultFile

__all__ = ["Workers", "run_cells", "workers"]

Progress = Callable[[int, int, str], Any]


class Workers:
    """Where work is done: in this process, or in `jobs` others, each of which keeps what it has prepared.

    With `fresh`, every piece of work has a process of its own.
    """

    def __init__(self, jobs: int = 1, fresh: bool = False) -> None:
        self._pools: list[ProcessPoolExecutor] = []
        if jobs > 1 or fresh:
            # A process that has used torch or numba must not be forked.
            spawn = multiprocessing.get_context("spawn")
            tasks = 1 if fresh else None
            self._pools = [ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=tasks) for _ in range(jobs)]

    def each(
        self, function: Callable[..., Any], items: Sequence[Any], *arguments: Any, group: Callable[[Any], Hashable]
    ) -> Iterator[tuple[Any, Any]]:
        """Call a function for each item; give item and outcome as they come.

        Items of a group go to the same process as far as they can, so that what is prepared for one serves the others.
        """
        if not self._pools:
            for item in items:
                yield item, function(item, *arguments)
            return
        queues: dict[Hashable, deque[Any]] = {}
        for item in items:
            queues.setdefault(group(item), deque()).append(item)
        unclaimed = list(queues)
        running: dict[Future[Any], tuple[int, Hashable, Any]] = {}

        def give(worker: int, last: Hashable) -> None:
            claimed = last
            if not queues.get(last):
                left = [name for name in queues if queues[name]]
                if not left:
                    return
                claimed = unclaimed.pop(0) if unclaimed else max(left, key=lambda name: len(queues[name]))
            item = queues[claimed].popleft()
            running[self._pools[worker].submit(function, item, *arguments)] = worker, claimed, item

        for worker in range(len(self._pools)):
            give(worker, None)
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                worker, last, item = running.pop(future)
                outcome = future.result()
                give(worker, last)
                yield item, outcome

    def close(self) -> None:
        """Let the processes end, without waiting for work that has not begun."""
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
        for pool in self._pools:
            pool.shutdown()


@contextmanager
def workers(jobs: int, *, fresh: bool = False) -> Iterator[Workers]:
    """Give workers, and close them in the end."""
    made = Workers(jobs, fresh)
    try:
        yield made
    finally:
        made.close()


def run_cells(
    cells: Sequence[Cell],
    results: ResultFile,
    pool: Workers,
    device: str = "auto",
    progress: Progress | None = None,
) -> list[Run]:
    """Run the cells that have not been run, and return the runs of all.

    Parameters
    ----------
    cells : sequence of Cell
    results : ResultFile
        Where runs are looked for, and saved as they end.
    pool : Workers
    device : str
    progress : callable, optional
        Called with the number of cells that are done, that of all, and a word on the last one.
    """
    found = {cell.key: run for cell in cells if (run := results.find(cell)) is not None}
    results.add(found.values())
    todo = list({cell.key: cell for cell in cells if cell.key not in found}.values())
    done = len(cells) - len(todo)
    if progress:
        progress(done, len(cells), "")
    for cell, run in pool.each(run_cell, todo, device, group=lambda cell: cell.place[:-1]):
        results.add([run])
        done += 1
        if progress:
            progress(done, len(cells), f"{cell.dataset} {cell.method} {cell.variant}".strip())
    return results.runs(cells)
