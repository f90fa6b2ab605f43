"""Who does the work: threads of this process, or the workers of a Dask cluster.

Work is a function of an item and of arguments that all items share. It must give the same result when it is repeated,
because a cluster does that when it loses a worker: what it writes, it writes to files that take their place whole.
Nothing is scheduled or sent here: Dask does both. Its protocol runs code, so a scheduler must be trusted, and workers
on other machines need the same wgcn and the same file system, at the same paths.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

from wgcn.base.errors import InputError, needs
from wgcn.base.threads import n_threads

Work = Callable[..., Any]  # function(item, *shared)

_TIMEOUT = "30s"  # to find a scheduler
_REPLACED = 120  # seconds for a new worker, if all are gone
_ATTEMPTS = 5  # for work whose shared arguments were lost with a worker


class Workers(Protocol):
    """Those who do the work."""

    n_workers: int  # tasks that run at a time

    def map(self, function: Work, items: Iterable[Any], *shared: Any) -> Iterator[Any]:
        """Yield function(item, *shared) of each item, in the order of the items. Few are under way at a time."""

    def total(self, function: Work, items: Iterable[Any], *shared: Any) -> Any:
        """Return the sum of function(item, *shared) over the items: of arrays, numbers, or tuples of them.

        Neighbours are added in pairs, then pairs of pairs, and so on: the order depends on the number of items alone,
        so the sum has the same bits with any number of workers. Without items it is None.
        """


def add(left: Any, right: Any) -> Any:
    """Add two results of work: arrays, numbers, or tuples of them."""
    if isinstance(left, tuple):
        return tuple(a + b for a, b in zip(left, right, strict=True))
    return left + right


class LocalWorkers:
    """Threads of this process, counted as joblib counts jobs."""

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_workers = n_threads(n_jobs)

    def map(self, function: Work, items: Iterable[Any], *shared: Any) -> Iterator[Any]:
        """Yield function(item, *shared) of each item, in order."""
        waiting: deque[Future[Any]] = deque()
        with ThreadPoolExecutor(self.n_workers) as pool:
            try:
                for item in items:
                    waiting.append(pool.submit(function, item, *shared))
                    if len(waiting) > self.n_workers:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def total(self, function: Work, items: Iterable[Any], *shared: Any) -> Any:
        """Return the sum over the items, in a fixed order."""
        return _tree(self.map(function, items, *shared), add)


class DaskWorkers:
    """The workers of the cluster that a client of Dask is connected to.

    Arguments that items share are sent to every worker once per call. Where a worker is lost, Dask repeats its work
    elsewhere; where the shared arguments were lost with it, they are sent again.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.n_workers = max(sum(client.nthreads().values()), 1)

    def map(self, function: Work, items: Iterable[Any], *shared: Any) -> Iterator[Any]:
        """Yield function(item, *shared) of each item, in order."""
        with self._connected():
            yield from self._map(function, items, shared)

    def _map(self, function: Work, items: Iterable[Any], shared: tuple[Any, ...]) -> Iterator[Any]:
        sent = self._send(shared)
        waiting: deque[tuple[Any, Any]] = deque()

        def take() -> Any:
            nonlocal sent
            item, future = waiting.popleft()
            for _ in range(_ATTEMPTS):
                try:
                    return future.result()
                except CancelledError:
                    sent = self._send(shared)
                    future = self._submit(_call, function, item, sent)
            return future.result()

        for item in items:
            waiting.append((item, self._submit(_call, function, item, sent)))
            if len(waiting) > 2 * self.n_workers:
                yield take()
        while waiting:
            yield take()

    def total(self, function: Work, items: Iterable[Any], *shared: Any) -> Any:
        """Return the sum over the items, added by the workers in a fixed order."""
        items = list(items)
        with self._connected():
            for attempt in range(_ATTEMPTS):
                try:
                    return self._total(function, items, shared)
                except CancelledError:
                    if attempt == _ATTEMPTS - 1:
                        raise
        return None

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Say so if the scheduler is lost."""
        try:
            yield
        except (OSError, RuntimeError, CancelledError) as error:
            if self.client.status == "running":
                raise
            raise InputError(
                f"The Dask scheduler was lost ({error}). Start it and its workers again, and repeat the command: it "
                "goes on where it was."
            ) from error

    def _total(self, function: Work, items: list[Any], shared: tuple[Any, ...]) -> Any:
        sent = self._send(shared)
        running: deque[Any] = deque()

        def parts() -> Iterator[Any]:
            for item in items:
                if len(running) >= 2 * self.n_workers:
                    self._wait(running.popleft())
                running.append(self._submit(_call, function, item, sent))
                yield running[-1]

        # Sums come before further parts, so that few parts are in memory at a time.
        total = _tree(parts(), lambda left, right: self._submit(add, left, right, priority=1))
        return None if total is None else total.result()

    def _send(self, shared: tuple[Any, ...]) -> Any:
        try:
            return self.client.scatter([shared], broadcast=True, hash=False, timeout=_REPLACED)[0]
        except TimeoutError as error:
            raise InputError(
                "The Dask cluster has lost all its workers. Start some and repeat the command: it goes on where it was."
            ) from error

    def _submit(self, function: Work, *arguments: Any, priority: int = 0) -> Any:
        return self.client.submit(function, *arguments, pure=False, priority=priority)

    def _wait(self, future: Any) -> None:
        from distributed import wait

        wait(future)
        if future.status in ("error", "cancelled"):
            future.result()


def _call(function: Work, item: Any, shared: tuple[Any, ...]) -> Any:
    return function(item, *shared)


def _tree(parts: Iterable[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Combine parts in pairs, pairs of pairs and so on, as they come; an odd one joins at the first place it can."""
    subtotals: list[tuple[int, Any]] = []  # with the number of parts in each: falling powers of two
    for part in parts:
        size = 1
        while subtotals and subtotals[-1][0] == size:
            before, left = subtotals.pop()
            size, part = size + before, combine(left, part)
        subtotals.append((size, part))
    total = subtotals.pop()[1] if subtotals else None
    while subtotals:
        total = combine(subtotals.pop()[1], total)
    return total


@contextmanager
def connect(scheduler: str | None, n_workers: int | None = None) -> Iterator[Workers]:
    """Give workers while they are needed: threads of this process, a cluster on this machine, or another one.

    Parameters
    ----------
    scheduler : str, optional
        By default there are threads. "local" is a Dask cluster of processes on this machine. Anything else is the
        address of a Dask scheduler, such as tcp://10.0.0.1:8786.
    n_workers : int, optional
        Threads or processes on this machine, by default one per core. A cluster at an address has its own.
    """
    if scheduler is None:
        yield LocalWorkers(n_workers)
        return
    with needs("Work on a Dask cluster", "scale"):
        from distributed import Client, LocalCluster
    if scheduler == "local":
        how = {"processes": True, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}  # any port that is free
        with LocalCluster(n_workers=n_threads(n_workers), **how) as cluster, Client(cluster) as client:
            yield DaskWorkers(client)
        return
    try:
        client = Client(scheduler, timeout=_TIMEOUT)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"There is no Dask scheduler at {scheduler!r} ({error}). Start one with 'dask scheduler', or leave the "
            "address out to use the cores of this machine."
        ) from error
    with client:
        if not client.nthreads():
            raise InputError(f"The Dask scheduler at {scheduler} has no workers. Start some: dask worker {scheduler}")
        yield DaskWorkers(client)
