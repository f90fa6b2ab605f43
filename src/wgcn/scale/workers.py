"""Who does work out of core, and with how much memory: threads of this process, or the workers of a Dask cluster.

Work is a function of an item and of arguments that all items share. It must give the same result when it is repeated,
because a cluster does that when it loses a worker: what it writes, it writes to files that take their place whole.
Nothing is scheduled or sent here: Dask does both. Its protocol runs code, so a scheduler must be trusted, and workers
on other machines need the same wgcn and the same file system, at the same paths.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from wgcn.base.errors import InputError, needs
from wgcn.base.threads import n_threads
from wgcn.scale.store import Json, WorkFolder

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture

Result = TypeVar("Result")
Progress = Callable[[int, int], object] | None  # called with the numbers of tasks that are done, and of all

_REPLACED = 120  # seconds for a new worker, if all are gone
_ATTEMPTS = 5  # for work whose shared arguments were lost with a worker

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_SIZE = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z]*)\s*")
_MOST = 1 << 60  # so that sizes fit 64 bits

_LEAST = 250 * 10**6  # of each worker, beyond that
_BASE = 500 * 10**6  # interpreter, libraries and compiled code
# Measured on text with Zipf's law and 20NG, in bytes at the peak of a task.
_PER_CHARACTER = 6.0  # of tokenising: text, places of tokens, their keys, their ids
_PER_TOKEN = 90.0  # of counting windows: places of tokens, and up to three pairs per token, twice
_PER_BYTE = 12.0  # of merging: a run of two bytes per pair becomes columns and counts
_MOST_CHARACTERS, _MOST_TOKENS = 1 << 26, 1 << 24  # larger ones bring nothing, and cost more when repeated
_PER_TAUGHT = 20_000  # of a document in the sample of the teacher: its place in a space of 300 columns, its neighbours


class Workers(ABC):
    """Those who do the work."""

    n_workers: int  # tasks that run at a time

    @abstractmethod
    def map(self, function: Callable[..., Result], items: Iterable[object], *shared: object) -> Iterator[Result]:
        """Yield function(item, *shared) of each item, in the order of the items. Few are under way at a time."""

    def total(self, function: Callable[..., Result], items: Iterable[object], *shared: object) -> Result:
        """Return the sum of function(item, *shared) over the items: of arrays, numbers, or tuples of them.

        Neighbours are added in pairs, then pairs of pairs, and so on: the order depends on the number of items alone,
        so the sum has the same bits with any number of workers. There is at least one item.
        """
        return _tree(self.map(function, items, *shared), add)


def add(left: Any, right: Any) -> Any:
    """Add two results of work: arrays, numbers, or tuples of them."""
    if isinstance(left, tuple):
        return tuple(a + b for a, b in zip(left, right, strict=True))
    return left + right


class LocalWorkers(Workers):
    """Threads of this process, counted as joblib counts jobs."""

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_workers = n_threads(n_jobs)

    def map(self, function: Callable[..., Result], items: Iterable[object], *shared: object) -> Iterator[Result]:
        """Yield function(item, *shared) of each item, in order."""
        waiting: deque[Future[Result]] = deque()
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


class DaskWorkers(Workers):
    """The workers of the cluster that a client of Dask is connected to.

    Arguments that items share are sent to every worker once per call. Where a worker is lost, Dask repeats its work
    elsewhere; where the shared arguments were lost with it, they are sent again. If there is no worker any more, one
    has so many seconds to come: `replaced`.
    """

    def __init__(self, client: Client, replaced: float = _REPLACED) -> None:
        self.client, self._replaced = client, replaced
        self.n_workers = max(sum(client.nthreads().values()), 1)

    def map(self, function: Callable[..., Result], items: Iterable[object], *shared: object) -> Iterator[Result]:
        """Yield function(item, *shared) of each item, in order."""
        waiting: deque[tuple[object, DaskFuture]] = deque()
        with self._connected():
            sent = self._send(shared)

            def take() -> Result:
                nonlocal sent
                item, future = waiting.popleft()
                for _ in range(_ATTEMPTS):
                    try:
                        return future.result()  # type: ignore[no-any-return]
                    except CancelledError:
                        sent = self._send(shared)
                        future = self._submit(_call, function, item, sent)
                return future.result()  # type: ignore[no-any-return]

            for item in items:
                waiting.append((item, self._submit(_call, function, item, sent)))
                if len(waiting) > 2 * self.n_workers:
                    yield take()
            while waiting:
                yield take()

    def total(self, function: Callable[..., Result], items: Iterable[object], *shared: object) -> Result:
        """Return the sum over the items, added by the workers in a fixed order."""
        items = list(items)
        with self._connected():
            for _ in range(_ATTEMPTS - 1):
                try:
                    return self._total(function, items, shared)
                except CancelledError:
                    pass
            return self._total(function, items, shared)

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

    def _total(self, function: Callable[..., Result], items: list[object], shared: tuple[object, ...]) -> Result:
        from distributed import wait

        sent = self._send(shared)
        running: deque[DaskFuture] = deque()

        def results() -> Iterator[DaskFuture]:
            for item in items:
                if len(running) >= 2 * self.n_workers:
                    oldest = running.popleft()
                    wait(oldest)
                    if oldest.status in ("error", "cancelled"):
                        oldest.result()
                running.append(self._submit(_call, function, item, sent))
                yield running[-1]

        # Sums come before further results, so that few results are in memory at a time.
        total = _tree(results(), lambda left, right: self._submit(add, left, right, priority=1))
        return total.result()  # type: ignore[no-any-return]

    def _send(self, shared: tuple[object, ...]) -> DaskFuture:
        try:
            return self.client.scatter([shared], broadcast=True, hash=False, timeout=self._replaced)[0]
        except TimeoutError as error:
            raise InputError(
                "The Dask cluster has lost all its workers. Start some and repeat the command: it goes on where it was."
            ) from error

    def _submit(self, function: Callable[..., object], *arguments: object, priority: int = 0) -> DaskFuture:
        return self.client.submit(function, *arguments, pure=False, priority=priority)


def _call(function: Callable[..., Result], item: object, shared: tuple[object, ...]) -> Result:
    return function(item, *shared)


def _tree(results: Iterable[Result], combine: Callable[[Result, Result], Result]) -> Result:
    """Combine results in pairs, pairs of pairs and so on, as they come; an odd one joins at the first place it can."""
    subtotals: list[tuple[int, Result]] = []  # with the number of results in each: falling powers of two
    for result in results:
        size = 1
        while subtotals and subtotals[-1][0] == size:
            before, left = subtotals.pop()
            size, result = size + before, combine(left, result)
        subtotals.append((size, result))
    total = subtotals.pop()[1]
    while subtotals:
        total = combine(subtotals.pop()[1], total)
    return total


@contextmanager
def connect(scheduler: str | None, n_workers: int | None = None, *, timeout: str = "30s") -> Iterator[Workers]:
    """Give workers while they are needed: threads of this process, a cluster on this machine, or another one.

    Parameters
    ----------
    scheduler : str, optional
        By default there are threads. "local" is a Dask cluster of processes on this machine. Anything else is the
        address of a Dask scheduler, such as tcp://10.0.0.1:8786.
    n_workers : int, optional
        Threads or processes on this machine, by default one per core. A cluster at an address has its own.
    timeout : str
        How long to look for a scheduler.
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
        client = Client(scheduler, timeout=timeout)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"There is no Dask scheduler at {scheduler!r} ({error}). Start one with 'dask scheduler', or leave the "
            "address out to use the cores of this machine."
        ) from error
    with client:
        if not client.nthreads():
            raise InputError(f"The Dask scheduler at {scheduler} has no workers. Start some: dask worker {scheduler}")
        yield DaskWorkers(client)


def memory_bytes(given: str) -> int:
    """Return the number of bytes that "4GB", "512 MiB" or "1.5gb" stands for.

    Examples
    --------
    >>> memory_bytes("4GB"), memory_bytes("512 MiB")
    (4000000000, 536870912)
    """
    found = _SIZE.fullmatch(given)
    if found is None or found[2].upper() not in _UNITS:
        raise InputError(f"The memory {given!r} is no size. Give a number with a unit, such as 4GB or 512MiB.")
    size = int(float(found[1]) * _UNITS[found[2].upper()])
    if size > _MOST:
        raise InputError(f"The memory {given!r} is more than any machine has. Give what this one has, such as 4GB.")
    return size


@dataclass(frozen=True)
class Limits:
    """How much is held at a time. Up to `graph` no limit changes a result; the others are those of fits."""

    characters: int = _MOST_CHARACTERS  # of text that are tokenised into one piece
    tokens: int = _MOST_TOKENS  # whose windows are counted into one run
    merged: int = 1 << 26  # bytes of runs that are merged at a time
    fan_in: int = 64  # runs that are merged at a time
    chosen: int = 1 << 29  # bytes to find the strongest edges with
    graph: int = 1 << 40  # bytes for the graph that is made in the end
    # Partitions of X: enough for the workers of a machine; each costs a table with a row per word for every sum.
    partitions: int = 16
    partition_tokens: tuple[int, int] = (1 << 17, 1 << 23)  # least and most of a partition
    tables: int = 2 * 10**9  # bytes of the tables with a row per word, for the classes that are fitted at a time
    taught: int = 200_000  # documents that the teacher learns from
    # Labelled documents, and their terms, of a fit that held-out ones judge. Of more, a sample is fitted in memory,
    # which says as much, and from which the fit to all documents starts.
    judged: int = 250_000
    judged_terms: int = 25_000_000

    @classmethod
    def of(cls, memory: int, n_workers: int, n_processes: int = 0) -> Limits:
        """Split a limit of memory, in bytes, among workers that are threads, or processes of their own."""
        left = memory - _BASE * (1 + n_processes)
        least = _BASE * (1 + n_processes) + _LEAST * n_workers
        if memory < least:
            raise InputError(
                f"{memory / 1e6:,.0f} MB of memory are too few: {n_workers} workers need {least / 1e6:,.0f} MB. Give "
                "more, with --memory, or fewer workers, with --workers."
            )
        each = left / n_workers
        return cls(
            characters=int(min(each / _PER_CHARACTER, _MOST_CHARACTERS)),
            tokens=int(min(each / _PER_TOKEN, _MOST_TOKENS)),
            merged=int(each / _PER_BYTE),
            chosen=int(left / 2),
            graph=left,
            tables=memory // 2,
            taught=memory // _PER_TAUGHT,
        )


@dataclass(frozen=True, eq=False)
class Site:
    """Where work out of core is done, and by whom."""

    work: WorkFolder
    workers: Workers
    limits: Limits = field(default_factory=Limits)
    inputs: Sequence[Json] = ()  # identities of the shards
    progress: Progress = None

    def watched(self, function: Callable[..., Result], items: Sequence[object], *shared: object) -> list[Result]:
        """Return function(item, *shared) of each item, and say meanwhile how many there are."""
        results = list[Result]()
        for result in self.workers.map(function, items, *shared):
            results.append(result)
            if self.progress is not None:
                self.progress(len(results), len(items))
        return results
