"""A process that serves an app with uvicorn: its limits, a log of JSON lines, and a stop that exits with 0.

uvicorn has no limits for clients that connect and send nothing, or that send headers bit by bit. A proxy has them:
docs/serve.md has a recipe.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from wgcn.base.errors import InputError

MAX_CONNECTIONS = 2000  # at a time; requests of others are refused
BACKLOG = 2048  # connections that wait in the system
MAX_HEADER_BYTES = 1 << 16  # with the address
IDLE_SECONDS = 10  # after an answer, until the connection is closed
GRACE_SECONDS = 30  # that accepted requests have after a signal to stop
_LOGGER = logging.getLogger("wgcn.serve")
_ENCODER = json.JSONEncoder(separators=(",", ":"), default=str)  # made once: json.dumps makes one for every call


def run(
    app: ASGIApp,
    host: str,
    port: int,
    *,
    ready: Callable[[str], None] = lambda _: None,
    grace_seconds: int = GRACE_SECONDS,
    max_connections: int = MAX_CONNECTIONS,
) -> None:
    """Serve an app until SIGTERM or Ctrl-C, then finish the requests that were accepted and return.

    Port 0 takes a free one. `ready` is called with the address once the server answers.
    """
    bound = bind(host, port)
    config = uvicorn.Config(
        app,
        http="h11",  # also where httptools is installed, which has no limit for headers and takes two Host headers
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        limit_concurrency=max_connections + 1,  # uvicorn refuses when it is reached
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=grace_seconds,
    )
    port, shown = bound.getsockname()[1], f"[{host}]" if ":" in host else host
    with _signals_return(), _json_logs():
        log("start", host=host, port=port)
        asyncio.run(_serve(uvicorn.Server(config), bound, lambda: ready(f"http://{shown}:{port}")))
        log("stop")


async def _serve(server: uvicorn.Server, bound: socket.socket, ready: Callable[[], None]) -> None:
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    while not (server.started or serving.done()):
        await asyncio.sleep(0.01)
    if not serving.done():
        ready()
    await serving


def bind(host: str, port: int) -> socket.socket:
    """Return a socket of an address; one that is taken is an InputError."""
    # With its protocol named, asyncio turns Nagle's algorithm off: uvicorn sends the headers of an answer before its
    # body, which would wait 40 ms for the client to acknowledge them.
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except (OSError, OverflowError, TypeError, ValueError) as error:
        bound.close()
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"No server can listen on {host}, port {port}: {reason}. Choose another one.") from error
    return bound


@contextmanager
def _signals_return() -> Iterator[None]:
    """Let the process go on after a signal to stop: uvicorn stops, then sends itself the signal again."""
    try:
        old = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread, which has the signals
        old = {}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


# Logs


def log(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Write a line to the log: no text of a request and no token belongs there."""
    if _LOGGER.isEnabledFor(level):
        _LOGGER.log(level, event, extra={"fields": fields})


class JsonLines(logging.Formatter):
    """One JSON object per line, with the fields that `log` has given."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line = {"time": round(record.created, 3), "level": record.levelname.lower(), "event": record.getMessage()}
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _ENCODER.encode(line)


@contextmanager
def _json_logs() -> Iterator[None]:
    """Write what the server and uvicorn have to say to standard error, one JSON object per line."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    levels = {"wgcn.serve": logging.INFO, "uvicorn.error": logging.WARNING, "asyncio": logging.ERROR}
    loggers = {logging.getLogger(name): level for name, level in levels.items()}
    before = {logger: (logger.level, logger.propagate) for logger in loggers}
    for logger, level in loggers.items():
        logger.addHandler(handler)
        logger.setLevel(level)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, (level, propagate) in before.items():
            logger.removeHandler(handler)
            logger.level, logger.propagate = level, propagate
