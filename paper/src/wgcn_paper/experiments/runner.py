"""Run many cells: finished ones are skipped, and each new run is saved at once."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from wgcn_paper.experiments.cells import Cell, Run, renamed, run_cell
from wgcn_paper.experiments.results import ResultFile
from wgcn_paper.resume import resume

Progress = Callable[[int, int, str], Any]


class Workers:
    """Runs work in this process, or in `jobs` others, each of which keeps its preparations.

    With `fresh`, every item gets a new process, one after the other.
    """

    def __init__(self, jobs: int = 1, fresh: bool = False) -> None:
        self._fresh = fresh
        self._pools = [_process() for _ in range(jobs if jobs > 1 and not fresh else 0)]

    def each(
        self, function: Callable[..., Any], items: Sequence[Any], *arguments: Any, group: Callable[[Any], Hashable]
    ) -> Iterator[tuple[Any, Any]]:
        """Call a function for each item; yield item and outcome as they finish.

        Items of a group go to the same process if possible, so that they share preparations.
        """
        if not self._pools:
            for item in items:
                if self._fresh:
                    with _process() as process:
                        yield item, process.submit(function, item, *arguments).result()
                else:
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
        """End the processes; work that has not started is cancelled."""
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
        for pool in self._pools:
            pool.shutdown()


def _process() -> ProcessPoolExecutor:
    # A process that has used torch or numba must not be forked.
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=spawn, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """End this process when its parent is killed; otherwise it would wait for work forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def workers(jobs: int, *, fresh: bool = False) -> Iterator[Workers]:
    """Provide workers, and close them at the end."""
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
    """Run the cells without a run, save each as it finishes, and return the runs of all cells.

    `progress` is called with the number of finished cells, the number of all cells, and the name of the last one.
    """
    # A cell may be in a table under several names: it is run once and saved under each of them.
    names: dict[str, list[Cell]] = {}
    for cell in cells:
        names.setdefault(cell.key, []).append(cell)
    found = {cell.key: run for cell in cells if (run := results.find(cell)) is not None}

    def do(todo: list[Cell]) -> Iterator[tuple[Cell, Run]]:
        return pool.each(run_cell, todo, device, group=lambda cell: cell.place[:-1])

    def keep(cell: Cell, run: Run) -> None:
        results.add(renamed(run, name) for name in names[cell.key])

    def show(done: int, total: int, cell: Cell | None, _: Run | None) -> None:
        if progress:
            progress(done, total, "" if cell is None else f"{cell.dataset} {cell.method} {cell.variant}".strip())

    results.add(renamed(run, cell) for key, run in found.items() for cell in names[key])
    resume(cells, lambda cell: cell.key, found, do, keep, show)
    return results.runs(cells)
