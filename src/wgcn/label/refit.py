"""The model of a labelling page in a process of its own, so that fitting never holds up the page.

The page starts ``python -m wgcn.label.refit PROJECT`` and they speak in lines of JSON: requests with a number come in
and answers with this number go out, and events tell of fits. The process reads texts and decisions from the project
itself. After a request "refit" it fits to the newest state there is, and once more if there is a newer one by then. It
ends when its input does, so it does not outlive the page, however that ends.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from wgcn.base.errors import InputError, WGCNError
from wgcn.label.decisions import State
from wgcn.label.project import Project

_LONGEST_LINE = 1 << 28  # of guesses for ten million texts
_RESTARTS = 3
_MOST_QUICK = 5  # fits after which a thorough one is due, even if newer labels wait
_PATIENCE = 0.5  # seconds without a new label before a thorough fit, and at least as many as the last one took
_NICE = 5  # the page comes first
_STOPPED = "The model has stopped. Labels are kept; start 'wgcn label' again."


# In the process


class _Worker:
    """Answers requests in the thread that reads them; fits and exports have threads of their own."""

    def __init__(self, path: Path, out: BinaryIO) -> None:
        self._path, self._out = path, out
        self._project: Project  # once it is open
        self._changed, self._writing = threading.Event(), threading.Lock()
        self._engine: Any = None
        self._not_ready = "The texts are still being prepared."

    def send(self, **message: Any) -> None:
        line = json.dumps(message, default=array_as_json).encode("ascii") + b"\n"
        with self._writing:
            self._out.write(line)
            self._out.flush()

    def run(self, lines: BinaryIO) -> None:
        threading.Thread(target=self._fit_on_change, daemon=True).start()
        for line in lines:
            request = json.loads(line)
            if request["do"] == "refit":
                self._changed.set()
            elif request["do"] == "export":
                threading.Thread(target=self._answer, args=(request,), daemon=True).start()
            else:
                self._answer(request)

    def _fit_on_change(self) -> None:
        try:
            from wgcn.label.engine import Engine

            self._project = Project(self._path)
            texts = list(self._project.all_texts())
            self._engine = Engine(texts, self._project.facts["source"].get("tokenizer", "words"))
            self.send(event="prepared", suggested=self._engine.suggested)
        except Exception as error:
            self._not_ready = _told(error)
            self.send(event="failed", message=self._not_ready)
            return
        last, n_quick, patience = None, 0, _PATIENCE
        while True:
            self._changed.wait()
            self._changed.clear()
            try:
                state = self._project.refresh()
                if (wanted := _fitted_to(state)) == last:
                    self.send(event="current", seq=state.seq)
                    continue
                self.send(event="fitting", seq=state.seq)
                self.send(event="fitted", **self._engine.fit(state, quick=True))
                n_quick += 1
                # A thorough fit is for when somebody pauses: a label that comes during it has to wait for its end.
                if n_quick < _MOST_QUICK and self._changed.wait(patience):
                    continue
                measured = self._engine.fit(state)
                self.send(event="measured", **measured)
                last, n_quick, patience = wanted, 0, max(_PATIENCE, measured.get("thorough_seconds", 0.0))
            except Exception as error:
                self.send(event="failed", message=_told(error))

    def _answer(self, request: dict[str, Any]) -> None:
        try:
            if self._engine is None:
                raise InputError(self._not_ready)
            given = request["given"]
            if request["do"] == "export":
                answer = self._engine.export(self._project.refresh(), Path(given["folder"]))
            else:  # "explain", "neighbourhood" or "check_seeds"
                answer = getattr(self._engine, request["do"])(**given)
            self.send(id=request["id"], answer=answer)
        except Exception as error:
            self.send(id=request["id"], error=_told(error))


def _fitted_to(state: State) -> Any:
    """Return what of a state a fit depends on: classes without labels too, since they have probability."""
    return state.labels, {number: each.name for number, each in state.live.items()}, state.seeds


def array_as_json(value: Any) -> Any:
    """Return an array as JSON can hold it: its type and its bytes."""
    array = np.ascontiguousarray(value)
    return {"type": array.dtype.str, "bytes": base64.b64encode(array.tobytes()).decode("ascii")}


def array_of(sent: dict[str, str]) -> Any:
    """Return the array that a process has sent."""
    return np.frombuffer(base64.b64decode(sent["bytes"]), np.dtype(sent["type"]))


def _told(error: Exception) -> str:
    if isinstance(error, WGCNError):
        return str(error)
    traceback.print_exception(error)  # to standard error, which is that of the page
    return f"Something went wrong while fitting ({type(error).__name__}). The terminal has the details."


def main() -> None:
    """Serve one page."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints does not come between the lines
    with contextlib.suppress(OSError, AttributeError):
        os.nice(_NICE)
    warnings.simplefilter("ignore")
    _Worker(Path(sys.argv[1]), out).run(sys.stdin.buffer)
    os._exit(0)  # a fit under way is of no use to anybody


# In the page


class ModelProcess:
    """The process, as the page sees it. `on_event` is called for each event, in the thread of the page."""

    def __init__(self, path: Path, on_event: Callable[[dict[str, Any]], None]) -> None:
        self._path, self._on_event = path, on_event
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._number, self._left, self._stopping = 0, _RESTARTS, False

    async def start(self) -> None:
        """Start the process, and again if it dies."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "wgcn.label.refit", str(self._path)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LONGEST_LINE,
            start_new_session=True,  # Ctrl-C is for the page, which then stops this
        )
        self._reader = asyncio.create_task(self._read(self._process))
        self.refit()

    async def stop(self) -> None:
        """End the process."""
        self._stopping = True
        if self._process is not None and self._process.returncode is None:
            self._process.kill()  # it has nothing of its own to lose
            await self._process.wait()
        if self._reader is not None:
            await self._reader

    def refit(self) -> None:
        """Have the model fitted to the newest state; returns at once."""
        self._send({"do": "refit"})

    async def ask(self, do: str, **given: Any) -> Any:
        """Return the answer to a request; what the process cannot answer is an InputError."""
        self._number += 1
        number, answer = self._number, asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            if not self._send({"do": do, "id": number, "given": given}):
                raise InputError(_STOPPED)
            return await answer
        finally:
            self._waiting.pop(number, None)

    def _send(self, request: dict[str, Any]) -> bool:
        process = self._process
        if process is None or process.returncode is not None or process.stdin is None or process.stdin.is_closing():
            return False
        process.stdin.write(json.dumps(request).encode("ascii") + b"\n")
        return True

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            message = json.loads(line)
            if "event" in message:
                self._on_event(message)
            elif (waiting := self._waiting.get(message["id"])) is not None and not waiting.done():
                if "error" in message:
                    waiting.set_exception(InputError(message["error"]))
                else:
                    waiting.set_result(message["answer"])
        await process.wait()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(InputError(_STOPPED))
        if self._stopping:
            return
        self._left -= 1
        self._on_event({"event": "stopped", "message": _STOPPED if self._left < 0 else "The model is started again."})
        if self._left >= 0:
            await self.start()


if __name__ == "__main__":
    main()
