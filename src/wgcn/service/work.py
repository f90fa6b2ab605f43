"""Work for a model: how many requests are taken, and where they are worked on.

Single texts that arrive together are answered together, because a model takes little longer for thirty texts than for
one. Few characters are worked on at once, and many in a pool of threads, so that small requests do not wait for large
ones: compiled code does not hold the interpreter lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from wgcn.service.answers import Limits, PredictOptions, predict
from wgcn.service.models import Served
from wgcn.service.web import RefusedError

__all__ = ["Gate", "Work"]

INLINE_CHARACTERS = 1 << 15  # that are worked on without another thread: about a millisecond

Answers = list[dict[str, Any]]
Pair = tuple[str, asyncio.Future[Any]]  # a text, and where its answer is put


class Gate:
    """Lets a number of requests in, and a number of bytes; others are sent away at once."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.n_requests, self.n_bytes, self.n_refused = limits, 0, 0, 0

    def enter(self, length: int | None) -> int:
        """Let a request in; `length` is that of its body, if the client says it. Return what `leave` takes."""
        size = self.limits.body if length is None else min(length, self.limits.body)
        if self.n_requests >= self.limits.requests or self.n_bytes + size > self.limits.bytes_waiting:
            self.n_refused += 1
            message = f"There are {self.n_requests:,} requests already. Try again in a second."
            raise RefusedError(503, message, {"Retry-After": "1"})
        self.n_requests += 1
        self.n_bytes += size
        return size

    def leave(self, size: int) -> None:
        """Count a request that has ended."""
        self.n_requests -= 1
        self.n_bytes -= size


class Work:
    """Answers texts with a model, single ones together with others that came at the same time."""

    def __init__(self, n_threads: int) -> None:
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="wgcn-work")
        self._waiting: dict[tuple[Served, PredictOptions], list[Pair]] = {}
        self._n_waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, function: Callable[..., Answers], *given: Any) -> Answers:
        """Call a function in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *given)

    async def predict(self, served: Served, texts: list[str], options: PredictOptions) -> Answers:
        """Return the answers to texts."""
        if len(texts) == 1:
            return [await self._join(served, texts[0], options)]
        if sum(map(len, texts)) <= INLINE_CHARACTERS:
            return predict(served, texts, options)
        return await self.run(predict, served, texts, options)

    def _join(self, served: Served, text: str, options: PredictOptions) -> asyncio.Future[Any]:
        """Add a text to those that are answered as soon as no other comes."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            self._n_waiting = 0
            loop.call_soon(self._wait, 0, 0)
        self._n_waiting += 1
        answer: asyncio.Future[Any] = loop.create_future()
        self._waiting.setdefault((served, options), []).append((text, answer))
        return answer

    def _wait(self, n_before: int, n_quiet: int) -> None:
        """Let the event loop turn until two turns bring no text: a request is received in one and read in the next."""
        n_quiet = n_quiet + 1 if self._n_waiting == n_before else 0
        if n_quiet < 2:
            asyncio.get_running_loop().call_soon(self._wait, self._n_waiting, n_quiet)
        else:
            self._answer_waiting()

    def _answer_waiting(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for (served, options), pairs in waiting.items():
            small = [pair for pair in pairs if len(pair[0]) <= INLINE_CHARACTERS]
            if small and sum(len(text) for text, _ in small) <= INLINE_CHARACTERS:
                _answer(served, options, small)
            elif small:
                self._begin(served, options, small)
            for pair in pairs:
                if len(pair[0]) > INLINE_CHARACTERS:
                    self._begin(served, options, [pair])

    def _begin(self, served: Served, options: PredictOptions, pairs: list[Pair]) -> None:
        task = asyncio.get_running_loop().create_task(self._answer_in_pool(served, options, pairs))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer_in_pool(self, served: Served, options: PredictOptions, pairs: list[Pair]) -> None:
        try:
            found = await self.run(predict, served, [text for text, _ in pairs], options)
        except Exception as error:
            _fail(pairs, error)
            return
        _give(pairs, found)

    def close(self) -> None:
        """Wait for the threads."""
        self._pool.shutdown()


def _answer(served: Served, options: PredictOptions, pairs: list[Pair]) -> None:
    try:
        found = predict(served, [text for text, _ in pairs], options)
    except Exception as error:
        _fail(pairs, error)
    else:
        _give(pairs, found)


def _give(pairs: list[Pair], found: Answers) -> None:
    for (_, answer), each in zip(pairs, found, strict=True):
        if not answer.done():  # whoever asked may be gone
            answer.set_result(each)


def _fail(pairs: list[Pair], error: Exception) -> None:
    for _, answer in pairs:
        if not answer.done():
            answer.set_exception(error)
