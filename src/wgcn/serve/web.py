"""What every server of the package shares: who may call, how much, errors as JSON, logs, and a stop that loses nothing.

An app is a Starlette router inside a `Guard`, and `run` serves it::

    guard = Guard(Router([Route("/health", health)]), hosts=allowed_hosts("127.0.0.1"), token=None)
    server.run(guard, "127.0.0.1", 8000)

An endpoint returns `json_response(...)`, reads its body with `read_json(request, limit)`, and raises `RefusedError`, or
any other WGCNError, for a request that it cannot answer. No traceback leaves the process.
"""

from __future__ import annotations

import asyncio
import codecs
import hmac
import ipaddress
import json
import logging
import re
import secrets
import time
import traceback
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from json.encoder import encode_basestring_ascii as quoted
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wgcn.base.errors import InputError, MissingDependencyError, StoreError, WGCNError

API_POLICY = "default-src 'none'; frame-ancestors 'none'"  # of answers that no browser has to show
BODY_SECONDS = 20.0  # that a client has for sending the body of a request
DRAINED_BYTES = 1 << 26  # of a body that is too large, read and dropped so that the client gets the answer
DRAIN_SECONDS = 2.0
MAX_HEADER_BYTES = 1 << 16  # with the address
PIECE_BYTES = 1 << 16  # of a long answer that are sent at a time
CROWDED = "wgcn.crowded"  # in the state of a request: its connection is one too many


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


# Made once: the functions of json make one for every call.
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_HOST = re.compile(r"\*|\[[0-9A-Fa-f:.]+\]|[^\s/:@\[\]]+")
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOGGER = logging.getLogger("wgcn.serve")
_UNKNOWN_CALLER = "This server asks for a token. Send the header 'Authorization: Bearer TOKEN' once"


class RefusedError(WGCNError):
    """A request that is not answered: the HTTP status, a message for the caller, and headers."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        self.status, self.headers = status, dict(headers or {})
        super().__init__(message)


# Answers


def to_json(content: Any) -> str:
    """Return JSON in ASCII, which holds any text, even half a character."""
    return _ENCODER.encode(content)


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer as JSON."""
    body = to_json(content).encode("ascii")
    return Response(body, status, headers, "application/json") if headers else _Json(body, status)


def encoded_response(parts: Sequence[bytes], sent: Callable[[], None] = lambda: None) -> Response:
    """Return an answer that is JSON already; `sent` is called once the client has it, or has gone."""
    if sum(map(len, parts)) > PIECE_BYTES:
        return _Parts(parts, sent)
    sent()
    return _Json(b"".join(parts), 200)


class _Json(Response):
    """An answer without further headers, made in a third of the time."""

    def __init__(self, body: bytes, status: int) -> None:
        self.body, self.status_code, self.background = body, status, None
        self.raw_headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]


class _Parts(Response):
    """A long answer, sent as fast as the client reads it, so that no second copy of it waits in a buffer."""

    def __init__(self, parts: Sequence[bytes], sent: Callable[[], None]) -> None:
        self.parts, self.sent, self.status_code, self.background = parts, sent, 200, None
        size = sum(map(len, parts))
        self.raw_headers = [(b"content-length", b"%d" % size), (b"content-type", b"application/json")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all of it. Each `send` waits until the client has read most of what was sent before."""
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            for part in self.parts:
                for begin in range(0, len(part), PIECE_BYTES):
                    body = part[begin : begin + PIECE_BYTES]
                    await send({"type": "http.response.body", "body": body, "more_body": True})
                    await asyncio.sleep(0)  # the transport says in the next turn that it is full
            await send({"type": "http.response.body", "body": b""})
        finally:
            self.sent()


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None, **more: Any) -> Response:
    """Return an error as JSON: {"error": {"status": ..., "message": ...}}."""
    return json_response({"error": {"status": status, "message": message, **more}}, status, headers)


def _answer_to(error: Exception, scope: Scope) -> Response:
    """Return the answer to a request that raised an error. What nobody expected is told in the log alone."""
    if isinstance(error, RefusedError):
        return error_response(error.status, str(error), error.headers)
    if isinstance(error, HTTPException):  # of Starlette: no such path, or another method
        path, method = f"{scope['path']!r:.200}", scope["method"]
        if error.status_code == 404:
            return error_response(404, f"There is nothing at {path}. Check the address.")
        if error.status_code == 405:
            return error_response(405, f"{path} does not answer to {method!r:.20}.", error.headers)
        return error_response(error.status_code, error.detail, error.headers)
    if isinstance(error, MissingDependencyError):
        return error_response(501, str(error))
    if isinstance(error, StoreError):  # nothing that the caller could change
        log("error", logging.ERROR, path=scope["path"], message=str(error))
        return error_response(500, str(error))
    if isinstance(error, WGCNError):
        return error_response(400, str(error))
    number = secrets.token_hex(6)
    log("error", logging.ERROR, id=number, path=scope["path"], traceback="".join(traceback.format_exception(error)))
    return error_response(500, f"Something went wrong here. The log has the details under {number}.", id=number)


class Endpoint:
    """An endpoint as an ASGI app: a function that takes a request. What it raises is left to the `Guard`."""

    def __init__(self, function: Callable[[Request], Awaitable[Response]]) -> None:
        self.function, self.__name__ = function, function.__name__

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await (await self.function(Request(scope, receive, send)))(scope, receive, send)


# Bodies


async def read_body(request: Request, limit: int, seconds: float = BODY_SECONDS) -> bytes:
    """Return the body of a request, refused as soon as it is longer than `limit` bytes or takes longer than `seconds`.

    A body that is a little too long is read to its end and dropped: otherwise the answer would be lost with the
    connection. For the first part there is no timer here, because most bodies are there already: `wgcn.serve.server`
    closes connections that send none.
    """
    length = announced_length(request.scope) or 0
    parts, size = list[bytes](), 0
    if length <= limit:
        body, more = await _part(request)
        if not more and len(body) <= limit:
            return body
        try:
            async with asyncio.timeout(seconds):
                parts, size = [body], len(body)
                while more and size <= limit:
                    body, more = await _part(request)
                    size += len(body)
                    parts.append(body)
        except TimeoutError:
            message = f"The body did not arrive within {seconds:g} seconds. Send it faster."
            raise RefusedError(408, message, {"Connection": "close"}) from None
        if size <= limit:
            return b"".join(parts)
    parts.clear()
    if max(length, size) <= DRAINED_BYTES:
        await _drain(request)
    message = f"The body is longer than {limit:,} bytes, which is the limit. Send less at a time."
    raise RefusedError(413, message, {"Connection": "close"})


async def _part(request: Request) -> tuple[bytes, bool]:
    """Return a part of a body, and whether there is more."""
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), message.get("more_body", False)


def announced_length(scope: Scope) -> int | None:
    """Return the length of a body, if the client says it."""
    announced = dict(scope["headers"]).get(b"content-length", b"")
    return int(announced) if announced.isdigit() else None


async def _drain(request: Request) -> None:
    """Read and drop what is left of a body, up to a limit."""
    size, more = 0, True
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while more and size <= DRAINED_BYTES:
                body, more = await _part(request)
                size += len(body)
    except TimeoutError:
        return


async def read_json(request: Request, limit: int, seconds: float = BODY_SECONDS) -> dict[str, Any]:
    """Return the JSON object that is the body of a request; anything else is refused."""
    body = await read_body(request, limit, seconds)
    try:
        return parse_json(body)
    except RefusedError:
        if (encoding := request.headers.get("content-encoding", "identity").lower()) == "identity":
            raise
        message = f"Bodies with the Content-Encoding {encoding!r:.40} are not read. Send it as it is."
        raise RefusedError(415, message) from None


def parse_json(body: bytes) -> dict[str, Any]:
    """Return a JSON object; anything else is refused."""
    try:
        content = _DECODER.decode(body.removeprefix(codecs.BOM_UTF8).decode())
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else f"{error!s:.200}"
        raise RefusedError(400, f"The body is not valid JSON: {reason}.") from None
    if not isinstance(content, dict):
        raise RefusedError(400, f"The body must be a JSON object, got {type(content).__name__}: {body[:80]!r}.")
    return content


# Who may call


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def allowed_hosts(host: str, more: Iterable[str] = ()) -> frozenset[str]:
    """Return the names under which a server may be called; a page of another site that is led here has another one.

    `more` are names of the machine; "*" allows all of them.
    """
    more = tuple(more)
    for name in more:
        if not _HOST.fullmatch(name):
            raise InputError(
                f"--allow-host takes a name alone, such as my-machine.example, got {name!r:.200}. Leave out https://, "
                "the port and the path; write an IPv6 address as [::1]."
            )
    own = {"localhost", "127.0.0.1", "[::1]"} if is_loopback(host) or host in ("0.0.0.0", "::") else set()  # noqa: S104
    own.add(f"[{host}]" if ":" in host else host)
    return frozenset(name.lower() for name in (*own, *more))


def _host_name(host: str) -> str:
    """Return a Host header without its port, in lower case."""
    return host.lower() if host.endswith("]") else host.lower().rpartition(":")[0] or host.lower()


class Guard:
    """An ASGI app around another one: checks every request, adds headers, turns errors into JSON, writes a log.

    Parameters
    ----------
    app : the app, usually a Starlette router
    hosts : names under which the server may be called (`allowed_hosts`)
    token : what callers must know, or None
    open_paths : paths that need no token
    policy : the Content-Security-Policy of all answers that have none
    cookie : for pages, the name of a cookie. ?token=TOKEN sets it, and leads to the address without the token; then the
        browser sends it with every request.
    observe : called after each request with its scope, its status and its seconds
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Collection[str],
        token: str | None = None,
        open_paths: Collection[str] = (),
        policy: str = API_POLICY,
        cookie: str | None = None,
        observe: Callable[[Scope, int, float], None] | None = None,
    ) -> None:
        self.app, self.hosts, self.cookie = app, frozenset(hosts), cookie
        self.open_paths, self.observe = frozenset(open_paths), observe
        self._log = _RequestLog()
        self._token = None if token is None else token.encode(errors="surrogateescape")
        self._headers = [
            (b"content-security-policy", policy.encode("ascii")),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        begin, status = time.perf_counter(), 0
        scope["app"] = self  # so that Starlette raises its errors, which are answered here

        async def send_checked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(message["headers"])
            await send(message)

        try:
            response = self._checked(scope)
            await (response or self.app)(scope, receive, send_checked)
        except ClientDisconnect:
            status = 499  # as nginx has it; nobody is there to read an answer
        except asyncio.CancelledError:  # the time to finish is over, or somebody presses Ctrl-C again
            if status:  # the client has not read the answer in time: the connection is closed
                return
            headers = {"Retry-After": "1", "Connection": "close"}
            response = error_response(503, "The server stops before the answer is ready. Try again later.", headers)
            await response(scope, receive, send_checked)
        except Exception as error:
            if status:  # the answer has begun: it is cut off
                _answer_to(error, scope)
                if isinstance(error, WGCNError):
                    return
                raise
            await _answer_to(error, scope)(scope, receive, send_checked)
        finally:
            seconds = time.perf_counter() - begin
            if self.observe is not None:
                self.observe(scope, status, seconds)
            self._log.add(scope, status, seconds)

    def _add_headers(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Add the headers of every answer, except those that it has already."""
        there = {name for name, _ in headers}
        headers.extend(pair for pair in self._headers if pair[0] not in there)

    def _checked(self, scope: Scope) -> Response | None:
        """Raise an error for a request that must not be answered; return an answer if it is only to set a cookie."""
        if scope.get("state", {}).get(CROWDED):
            message = "There are too many connections. Try again in a second."
            raise RefusedError(503, message, {"Retry-After": "1", "Connection": "close"})
        size = len(scope["path"]) + len(scope["query_string"])
        for name, value in scope["headers"]:
            size += len(name) + len(value) + 4
        if size > MAX_HEADER_BYTES:
            message = f"The headers and the address have more than {MAX_HEADER_BYTES:,} bytes. Send less in them."
            raise RefusedError(400, message, {"Connection": "close"})
        found = dict(scope["headers"])
        if b"transfer-encoding" in found and b"content-length" in found:
            # A proxy may take another part of what follows for the body than this server does.
            message = "The request has both Content-Length and Transfer-Encoding. Send one of them."
            raise RefusedError(400, message, {"Connection": "close"})
        host = found.get(b"host", b"").decode("latin-1")
        if "*" not in self.hosts and _host_name(host) not in self.hosts:
            raise RefusedError(403, f"This server does not answer as {host!r:.200}. Allow the name with --allow-host.")
        origin = found.get(b"origin")
        if origin is not None and scope["method"] not in _SAFE_METHODS:
            address = origin.decode("latin-1").lower()
            if address.partition("://")[2] != host.lower():
                raise RefusedError(403, f"Requests from pages of {address!r:.200} are not answered.")
        if self._token is None or scope["path"] in self.open_paths:
            return None
        given = b",".join(value for name, value in scope["headers"] if name == b"authorization")
        kind, _, given = given.partition(b" ")
        if kind.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._token):
            return None
        if self.cookie is not None:
            return self._page_checked(scope, found.get(b"cookie", b""))
        raise RefusedError(401, f"{_UNKNOWN_CALLER}.", {"WWW-Authenticate": "Bearer"})

    def _page_checked(self, scope: Scope, cookies: bytes) -> Response | None:
        """Look for the token in the address, or in the cookie that an earlier request has set."""
        assert self._token is not None
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = dict(pairs).get("token")
        if given is not None and hmac.compare_digest(given.encode(errors="replace"), self._token):
            rest = urlencode([pair for pair in pairs if pair[0] != "token"])
            # A path of two slashes would lead to another machine.
            location = "/" + quote(scope["path"].lstrip("/\\")) + (f"?{rest}" if rest else "")
            cookie = f"{self.cookie}={self._token.decode()}; Path=/; HttpOnly; SameSite=Strict"
            # Not a redirect: after a link on a page of another site, such as a terminal in the browser, the browser
            # would follow it without the cookie.
            return Response("", 200, {"Set-Cookie": cookie, "Refresh": f"0; url={location}"}, "text/html")
        for part in cookies.split(b";"):
            name, _, value = part.strip().partition(b"=")
            if name.decode("latin-1") == self.cookie and hmac.compare_digest(value, self._token):
                return None
        raise RefusedError(
            401, f"{_UNKNOWN_CALLER}, or open the address that the program printed.", {"WWW-Authenticate": "Bearer"}
        )


# Logs


class JsonLines(logging.Formatter):
    """One JSON object per line, with the fields that `log` has given."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        if lines := getattr(record, "lines", None):
            return str(lines)
        line = {"time": round(record.created, 3), "level": record.levelname.lower(), "event": record.getMessage()}
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, separators=(",", ":"), default=str)


class _RequestLog:
    """A line for each request; those of one turn of the event loop are written together, which takes less time."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, scope: Scope, status: int, seconds: float) -> None:
        if not _LOGGER.isEnabledFor(logging.INFO):
            return
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._write)
        method, path = quoted(scope["method"]), quoted(scope["path"])
        client = quoted(scope["client"][0]) if scope.get("client") else "null"
        self._lines.append(
            f'{{"time":{time.time():.3f},"level":"info","event":"request","method":{method},"path":{path},'
            f'"status":{status},"milliseconds":{1000 * seconds:.2f},"client":{client}}}'
        )

    def _write(self) -> None:
        lines, self._lines = "\n".join(self._lines), []
        _LOGGER.info("requests", extra={"lines": lines})


def log(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Write a line to the log: no text of a request and no token belongs there."""
    if _LOGGER.isEnabledFor(level):
        _LOGGER.log(level, event, extra={"fields": fields})
