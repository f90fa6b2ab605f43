"""Work for a model: how many requests are taken, and where they are worked on.

Single short texts that arrive together are answered together, because a model takes little longer for thirty texts than
for one. Few characters are worked on at once, and many in a pool of threads, so that small requests do not wait for
large ones: compiled code does not hold the interpreter lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from wgcn.service.answers import ExplainOptions, Limits, PredictOptions, explain, predict
from wgcn.service.models import Served
from wgcn.service.web import RefusedError

__all__ = ["Gate", "Slot", "Work"]

INLINE_CHARACTERS = 1 << 15  # that are worked on without another thread: about a millisecond
SHORT_CHARACTERS = 1 << 12  # of a text that is answered together with others
SMALL_SHARE = 100  # a request of one part in so many of the largest size is small
TOGETHER = 32  # texts; more would hardly take less time per text

Answers = list[dict[str, Any]]


class Gate:
    """Lets a number of requests in, and a number of bytes; others are sent away at once."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.n_requests, self.n_bytes, self.n_refused = limits, 0, 0, 0

    def enter(self, length: int | None) -> Slot:
        """Let a request in; `length` is that of its body, if the client says it."""
        size = self.limits.body if length is None else min(length, self.limits.body)
        # Small requests do not wait for bytes: else eight clients that announce large bodies could keep out all others.
        is_large = size > self.limits.body // SMALL_SHARE
        has_bytes = not is_large or self.n_bytes + size <= self.limits.bytes_waiting
        if self.n_requests >= self.limits.requests or not has_bytes:
            self.n_refused += 1
            message = f"There are {self.n_requests:,} requests already. Try again in a second."
            raise RefusedError(503, message, {"Retry-After": "1"})
        self.n_requests += 1
        self.n_bytes += size
        return Slot(self, size)


class Slot:
    """The place of a request that was let in."""

    __slots__ = ("_gate", "size")

    def __init__(self, gate: Gate, size: int) -> None:
        self._gate: Gate | None = gate
        self.size = size

    def leave(self) -> None:
        """Make room for another request, as soon as the answer is known. A second time does nothing."""
        if self._gate is not None:
            self._gate.n_requests -= 1
            self._gate.n_bytes -= self.size
            self._gate = None


class _Asked(NamedTuple):
    """A text that waits for its answer."""

    text: str
    slot: Slot
    answer: asyncio.Future[Any]


class Work:
    """Answers texts with a model, short single ones together with others that came at the same time."""

    def __init__(self, n_threads: int) -> None:
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="wgcn-work")
        self._waiting: dict[tuple[Served, PredictOptions], list[_Asked]] = {}
        self._n_waiting = self._n_characters = 0
        self._next_look: asyncio.Handle | None = None

    async def predict(self, served: Served, texts: list[str], options: PredictOptions, slot: Slot) -> Answers:
        """Return the labels of texts."""
        if len(texts) == 1 and len(texts[0]) <= SHORT_CHARACTERS:
            return [await self._join(served, texts[0], options, slot)]
        if sum(map(len, texts)) <= SHORT_CHARACTERS:
            return predict(served, texts, options)
        return await self._run(predict, served, texts, options)

    async def explain(self, served: Served, texts: list[str], options: ExplainOptions, slot: Slot) -> Answers:
        """Return explanations of texts."""
        return await self._run(explain, served, texts, options)

    async def _run(self, function: Callable[..., Answers], *given: Any) -> Answers:
        """Call a function in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *given)

    def _join(self, served: Served, text: str, options: PredictOptions, slot: Slot) -> asyncio.Future[Any]:
        """Add a text to those that are answered as soon as no other comes, or enough have come."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            self._next_look = loop.call_soon(self._look, 0, 0)
        asked = _Asked(text, slot, loop.create_future())
        self._waiting.setdefault((served, options), []).append(asked)
        self._n_waiting += 1
        self._n_characters += len(text)
        if self._n_waiting >= TOGETHER or self._n_characters >= INLINE_CHARACTERS:
            self._answer_all()
        return asked.answer

    def _look(self, n_before: int, n_quiet: int) -> None:
        """Let the event loop turn until two turns bring no text: a request is received in one and read in the next."""
        n_quiet = n_quiet + 1 if self._n_waiting == n_before else 0
        if n_quiet < 2:
            self._next_look = asyncio.get_running_loop().call_soon(self._look, self._n_waiting, n_quiet)
        else:
            self._answer_all()

    def _answer_all(self) -> None:
        """Answer the texts that wait, and make room for others at once: their requests end in the next turn."""
        if self._next_look is not None:
            self._next_look.cancel()
        waiting, self._waiting = self._waiting, {}
        self._n_waiting = self._n_characters = 0
        for (served, options), asked in waiting.items():
            try:
                found: list[Any] = predict(served, [each.text for each in asked], options)
            except Exception as error:
                found = [error] * len(asked)
            for each, answer in zip(asked, found, strict=True):
                each.slot.leave()
                if each.answer.done():  # it was cancelled
                    continue
                if isinstance(answer, Exception):
                    each.answer.set_exception(answer)
                else:
                    each.answer.set_result(answer)

    def close(self) -> None:
        """Wait for the threads."""
        self._pool.shutdown()
