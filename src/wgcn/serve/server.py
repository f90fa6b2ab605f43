"""uvicorn, with what it lacks: limits for clients that are slow or many, JSON logs, and a stop that exits with 0."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import uvicorn

from wgcn.base.errors import InputError
from wgcn.serve.web import CROWDED, DRAIN_SECONDS, MAX_HEADER_BYTES, Guard, JsonLines, error_response, log

SLOW_SECONDS = 10.0  # that a client has for sending the headers of a request, for beginning its body, for reading
MAX_CONNECTIONS = 2000  # at a time; requests of others are refused. The limit of open files may be lower
SPARE_FILES = 128  # for models, and for connections that are about to be closed
CROWD = 16  # connections beyond the limit that are told so; further ones are closed at once
ACCEPTED_AT_ONCE, BACKLOG = 16, 2048  # in one turn of the event loop; that wait in the system
READ_BYTES = 1 << 20  # of an answer that a client must read within SLOW_SECONDS
GRACE_SECONDS = 30  # that accepted requests have after a signal to stop


def run(
    guard: Guard,
    host: str,
    port: int,
    *,
    ready: Callable[[str], None] | None = None,
    slow_seconds: float = SLOW_SECONDS,
    grace_seconds: int = GRACE_SECONDS,
    max_connections: int = MAX_CONNECTIONS,
) -> None:
    """Serve an app until SIGTERM or Ctrl-C, then finish the requests that were accepted and return.

    Port 0 takes a free one. `ready` is called with the address once the server answers, before the first request.
    """
    bound = _bind(host, port)
    config = uvicorn.Config(
        guard,
        http="h11",  # also where httptools is installed, which has no limit for headers and takes two Host headers
        lifespan="on",
        backlog=ACCEPTED_AT_ONCE,
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,  # with the `Guard`, which sees headers that come at once
        timeout_graceful_shutdown=grace_seconds,
    )
    config.load()
    max_connections = min(max_connections, max(_open_files() - SPARE_FILES, _open_files() // 2))
    config.http_protocol_class = _improved(config.http_protocol_class, max_connections)
    server = _Server(config, slow_seconds)
    address, shown = bound.getsockname(), f"[{host}]" if ":" in host else host
    server.on_start = None if ready is None else lambda: ready(f"http://{shown}:{address[1]}")
    with _signals_return(), _json_logs():
        log("start", host=host, port=address[1])
        server.run(sockets=[bound])
        log("stop")


class _Server(uvicorn.Server):
    """Drops connections that bring no whole request in time, or do not read their answer."""

    def __init__(self, config: uvicorn.Config, slow_seconds: float) -> None:
        super().__init__(config)
        self.on_start: Callable[[], None] | None = None
        self._slow_seconds = slow_seconds
        self._idle: WeakKeyDictionary[Any, tuple[float, Any]] = WeakKeyDictionary()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for bound in sockets or ():  # asyncio accepts as many at once as may wait, until no file can be opened
            bound.listen(BACKLOG)
        if self.started and self.on_start is not None:
            self.on_start()

    async def on_tick(self, counter: int) -> bool:
        if counter % 5 == 0:  # twice per second
            self._drop_slow(time.monotonic())
        return await super().on_tick(counter)

    def _drop_slow(self, now: float) -> None:
        for connection in list(self.server_state.connections):
            cycle: Any = getattr(connection, "cycle", None)  # the latest request
            transport: Any = connection.transport
            n_unread = transport.get_write_buffer_size()
            n_read = transport.n_written - n_unread
            n_received = -1  # while nothing of the next request is there
            if cycle is not None and not cycle.response_complete:
                if not cycle.more_body and not n_unread:  # it is worked on
                    self._idle.pop(connection, None)
                    continue
                n_received = len(cycle.body)
            state = cycle, n_received, n_read // READ_BYTES
            since, before = self._idle.setdefault(connection, (now, state))
            if before != state:
                self._idle[connection] = (now, state)
            elif now - since > self._slow_seconds:
                connection.transport.abort()


class _Transport:
    """A transport that sends what is written in one turn of the event loop together.

    uvicorn writes headers and body one after the other. Each would be a packet, and wake the client.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self._parts, self._loop = transport, list[bytes](), asyncio.get_running_loop()
        self.n_written, self.is_finished = 0, False  # bytes, and whether nothing more is read

    def write(self, data: bytes) -> None:
        """Send data soon."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        """Send what is left, then close."""
        self._flush()
        self._transport.close()

    def finish(self) -> None:
        """Send what is left, and close soon: at once, a client that is still sending would lose the answer."""
        self._flush()
        self.is_finished = True
        self._transport.write_eof()
        self._loop.call_later(DRAIN_SECONDS, self._transport.close)

    def _flush(self) -> None:
        if self._parts:
            data, self._parts = b"".join(self._parts), []
            self.n_written += len(data)
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def _improved(protocol: type[asyncio.Protocol], max_connections: int) -> type[asyncio.Protocol]:
    """Return a protocol of uvicorn with such a transport, which marks connections beyond a limit for the `Guard`."""

    class Improved(protocol):  # type: ignore[misc, valid-type]
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(_Transport(transport))
            if len(self.connections) > max_connections:
                own: Any = self
                own.app_state = {**own.app_state, CROWDED: True}
            if len(self.connections) > max_connections + CROWD:
                transport.abort()

        def data_received(self, data: bytes) -> None:
            own: Any = self
            if not own.transport.is_finished:  # what comes after that is dropped
                super().data_received(data)

        def send_400_response(self, message: str) -> None:
            own: Any = self
            message += f" The headers may have {MAX_HEADER_BYTES:,} bytes."
            if own.cycle is None or own.cycle.response_complete or not own.cycle.response_started:
                body = error_response(400, f"This is not valid HTTP: {message}").body
                head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
                own.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head.encode("ascii") + bytes(body))
            own.transport.finish()

    return Improved


def _open_files() -> int:
    """Return how many files and connections a process may have open."""
    try:
        from resource import RLIMIT_NOFILE, getrlimit
    except ImportError:  # Windows
        return 512
    limit = getrlimit(RLIMIT_NOFILE)[0]
    return 1 << 20 if limit < 0 else limit  # below 0 is without limit


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens; an address that is taken is an InputError."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
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
