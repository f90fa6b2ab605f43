"""Work for a model: how many requests are taken, and where they are worked on.

Single short texts that arrive together are answered together, because a model takes little longer for thirty texts than
for one. What costs little is worked on at once. All else is cut into batches, by characters times classes, and worked
on and written as JSON in a pool of threads, one batch after the other, so that small requests do not wait for large
ones, and large ones take turns. A request keeps its slot, which counts the bytes of its answer, until the answer is
sent.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException

from wgcn.base.errors import InputError
from wgcn.serve.answers import Answering, Expected, batches_of, explain, predict
from wgcn.serve.models import Served
from wgcn.serve.schema import Limits, Options, PredictOptions
from wgcn.serve.web import PIECE_BYTES

SHORT_CHARACTERS = 1 << 12  # of a text that is answered together with others
SMALL_SHARE = 100  # a request of one part in so many of the largest size is small
MOST_BODIES, MOST_ANSWERS = 8, 4  # of the largest size, that are worked on or wait
TOGETHER = 32  # texts; more would hardly take less time per text
INLINE_COST = 1 << 21  # of what is answered without another thread: about two milliseconds


class Gate:
    """Lets a number of requests in, and a number of bytes of them and of answers; others are sent away at once.

    Small ones do not wait for bytes: else eight clients that announce large bodies could keep out all others.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits, self.n_requests, self.n_bytes, self.n_answer_bytes = limits, 0, 0, 0

    def enter(self, length: int | None) -> Slot:
        """Let a request in; `length` is that of its body, if the client says it."""
        size = self.limits.body if length is None else min(length, self.limits.body)
        too_large = size > self.limits.body // SMALL_SHARE and self.n_bytes + size > MOST_BODIES * self.limits.body
        if self.n_requests >= self.limits.requests or too_large:
            raise _too_many(f"There are {self.n_requests:,} requests already.")
        self.n_requests += 1
        self.n_bytes += size
        return Slot(self, size)


def _too_many(reason: str) -> HTTPException:
    return HTTPException(503, f"{reason} Try again in a second.", {"Retry-After": "1"})


class Slot:
    """The place of a request that was let in, and of its answer."""

    def __init__(self, gate: Gate, size: int) -> None:
        self.gate, self.size, self.answer_size, self.is_left = gate, size, 0, False

    def expect(self, size: int) -> None:
        """Take room for an answer of at most so many bytes; without it, the request is refused."""
        limits, size = self.gate.limits, min(size, self.gate.limits.answer)
        if size > limits.answer // SMALL_SHARE and self.gate.n_answer_bytes + size > MOST_ANSWERS * limits.answer:
            raise _too_many("There are too many large answers already.")
        self.resize(size)

    def resize(self, size: int) -> None:
        """Keep the room that an answer takes now."""
        if not self.is_left:
            self.gate.n_answer_bytes += size - self.answer_size
            self.answer_size = size

    def leave(self) -> None:
        """Make room for another request, once the answer is sent. A second time does nothing."""
        if not self.is_left:
            self.resize(0)
            self.gate.n_requests -= 1
            self.gate.n_bytes -= self.size
            self.is_left = True


class _Waiting(NamedTuple):
    """A text that waits for its answer."""

    text: str
    slot: Slot
    answer: asyncio.Future[str]


class Work:
    """Answers texts with a model, short single ones together with others that came at the same time."""

    def __init__(self, n_threads: int) -> None:
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="wgcn-work")
        self._waiting: dict[tuple[Served, PredictOptions], list[_Waiting]] = {}
        self._n_waiting = self._cost = 0
        self._next_look: asyncio.Handle | None = None

    async def answer(self, served: Served, texts: list[str], options: Options, slot: Slot) -> list[bytes]:
        """Return the labels of texts, or explanations: parts of the rows of a JSON list."""
        expected = Expected.of(served, texts, options, slot.gate.limits)
        slot.expect(expected.size)
        if not isinstance(options, PredictOptions):
            return await self._in_batches(explain, served, texts, expected.costs, options, slot)
        if (cost := sum(expected.costs)) > INLINE_COST or sum(map(len, texts)) > SHORT_CHARACTERS:
            return await self._in_batches(predict, served, texts, expected.costs, options, slot)
        if len(texts) == 1:
            return [(await self._join(served, texts[0], options, slot, cost)).encode("ascii")]
        return [_rows(predict, served, texts, options)]

    async def _in_batches(
        self, function: Answering, served: Served, texts: list[str], costs: list[int], options: Any, slot: Slot
    ) -> list[bytes]:
        """Answer texts in threads, one batch after the other; other requests have their turn between them."""
        loop, found, size = asyncio.get_running_loop(), list[bytes](), 0
        for batch in batches_of(texts, costs):
            found += [b","] * bool(found)
            found.append(await loop.run_in_executor(self._pool, _rows, function, served, batch, options))
            size += len(found[-1])
            if size > (limit := slot.gate.limits.answer):
                message = f"The answer has more than {limit:,} bytes, which is the limit."
                raise InputError(f"{message} Send fewer texts at a time.")
        slot.resize(size)
        return found

    def _join(self, served: Served, text: str, options: PredictOptions, slot: Slot, cost: int) -> asyncio.Future[str]:
        """Add a text to those that are answered as soon as no other comes, or enough have come."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            self._next_look = loop.call_soon(self._look, 0, 0)
        waiting = _Waiting(text, slot, loop.create_future())
        self._waiting.setdefault((served, options), []).append(waiting)
        self._n_waiting += 1
        self._cost += cost
        if self._n_waiting >= TOGETHER or self._cost >= INLINE_COST:
            self._answer_all()
        return waiting.answer

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
        groups, self._waiting = self._waiting, {}
        self._n_waiting = self._cost = 0
        for (served, options), waiting in groups.items():
            found: list[Any]
            try:
                found = predict(served, [each.text for each in waiting], options)
            except Exception as error:
                found = [error] * len(waiting)
            for each, answer in zip(waiting, found, strict=True):
                if each.slot.answer_size <= PIECE_BYTES:
                    each.slot.leave()
                if each.answer.done():  # it was cancelled
                    continue
                if isinstance(answer, Exception):
                    each.answer.set_exception(answer)
                else:
                    each.answer.set_result(answer)

    def close(self) -> None:
        """Wait for the batches that threads work on; nobody waits for others."""
        self._pool.shutdown(cancel_futures=True)


def _rows(function: Answering, served: Served, texts: list[str], options: Any) -> bytes:
    """Answer texts, and write that as JSON: rows with commas between them."""
    return ",".join(function(served, texts, options)).encode("ascii")
