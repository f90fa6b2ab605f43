"""What the servers of the package share: who may call, bodies with limits, errors as JSON, a log of requests.

    app = Guard([Route("/health", health)], hosts=allowed_hosts("127.0.0.1"))
    server.run(app, "127.0.0.1", 8000)

An endpoint returns `json_response(...)`, reads its body with `read_json(request, limit)`, and raises HTTPException, or
any WGCNError, for a request that it cannot answer. Starlette's ExceptionMiddleware makes JSON of them; no traceback
leaves the process.

The host name is checked here and not by Starlette's TrustedHostMiddleware, whose answer is plain text that names no
option. Long answers are sent here: a StreamingResponse waits for a slow client as long as it likes.
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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Router
from starlette.types import Lifespan, Message, Receive, Scope, Send

from wgcn.base.errors import InputError, MissingDependencyError, StoreError, WGCNError
from wgcn.serve.server import log

API_POLICY = "default-src 'none'; frame-ancestors 'none'"  # of answers that no browser has to show
BODY_SECONDS = 20.0  # that a client has for sending the body of a request
PIECE_BYTES, PIECE_SECONDS = 1 << 16, 10.0  # of a long answer that are sent at a time; that a client has for reading it
DRAINED_BYTES = 1 << 26  # of a body that is too large: uvicorn drops it, so that the client gets the answer


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


# Made once: the functions of json make one for every call.
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_HOST = re.compile(r"\*|\[[0-9A-Fa-f:.]+\]|[^\s/:@\[\]]+")
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_UNKNOWN_CALLER = "This server asks for a token. Send the header 'Authorization: Bearer TOKEN' once"


# Answers


def to_json(content: Any) -> str:
    """Return JSON in ASCII, which holds any text, even half a character."""
    return _ENCODER.encode(content)


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer as JSON."""
    return Response(to_json(content).encode("ascii"), status, headers, "application/json")


def encoded_response(
    parts: Sequence[bytes], sent: Callable[[], None] = lambda: None, seconds: float = PIECE_SECONDS
) -> Response:
    """Return an answer that is JSON already; `sent` is called once the client has it, or has gone.

    A client that does not read a piece of it within some seconds gets no more.
    """
    if sum(map(len, parts)) > PIECE_BYTES:
        return _LongResponse(parts, sent, seconds)
    sent()
    return Response(b"".join(parts), media_type="application/json")


class _LongResponse(Response):
    """A long answer, sent as fast as the client reads it, so that no second copy of it waits in a buffer."""

    def __init__(self, parts: Sequence[bytes], sent: Callable[[], None], seconds: float) -> None:
        super().__init__(None, headers={"Content-Length": f"{sum(map(len, parts))}"}, media_type="application/json")
        self.parts, self.sent, self.seconds = parts, sent, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all of it. Each `send` waits until the client has read most of what was sent before."""
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            for part in self.parts:
                for begin in range(0, len(part), PIECE_BYTES):
                    body = part[begin : begin + PIECE_BYTES]
                    async with asyncio.timeout(self.seconds):
                        await send({"type": "http.response.body", "body": body, "more_body": True})
                    await asyncio.sleep(0)  # the transport says in the next turn that it is full
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:  # uvicorn closes the connection, since the answer is not complete
            log("client too slow", logging.WARNING, path=scope["path"])
        finally:
            self.sent()


# Errors


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None, **more: Any) -> Response:
    """Return an error as JSON: {"error": {"status": ..., "message": ...}}."""
    return json_response({"error": {"status": status, "message": message, **more}}, status, headers)


async def _refused(request: Any, error: Any) -> Response:
    """Answer an HTTPException; Starlette's own, for a path or a method that is not there, say nothing."""
    path, message = f"{request.scope['path']!r:.200}", error.detail
    if message == "Not Found":
        message = f"There is nothing at {path}. Check the address."
    elif message == "Method Not Allowed":
        message = f"{path} does not answer to {request.method!r:.20}."
    return error_response(error.status_code, message, error.headers)


async def _library_error(request: Any, error: Exception) -> Response:
    if isinstance(error, MissingDependencyError):
        return error_response(501, str(error))
    if isinstance(error, StoreError):  # nothing that the caller could change
        log("error", logging.ERROR, path=request.scope["path"], message=str(error))
        return error_response(500, str(error))
    return error_response(400, str(error))


async def _client_gone(request: Any, error: Exception) -> Response:
    return Response(status_code=499)  # as nginx has it; nobody is there to read it


async def _unexpected(request: Any, error: Exception) -> Response:
    """Answer what nobody expected: the log alone says what it was."""
    number, told = secrets.token_hex(6), "".join(traceback.format_exception(error))
    log("error", logging.ERROR, id=number, path=request.scope["path"], traceback=told)
    return error_response(500, f"Something went wrong here. The log has the details under {number}.", id=number)


_HANDLERS = {
    HTTPException: _refused,
    WGCNError: _library_error,
    ClientDisconnect: _client_gone,
    Exception: _unexpected,
}


# Bodies


def announced_length(request: Request) -> int | None:
    """Return the length of a body, if the client says it."""
    announced = dict(request.scope["headers"]).get(b"content-length", b"")
    return int(announced) if announced.isdigit() else None


async def read_body(request: Request, limit: int, seconds: float = BODY_SECONDS) -> bytes:
    """Return the body of a request, refused if it is longer than `limit` bytes or takes longer than `seconds`."""
    body, announced = bytearray(), announced_length(request) or 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                body += part
                if max(len(body), announced) > limit:
                    headers = {"Connection": "close"} if announced > DRAINED_BYTES else None
                    message = f"The body is longer than {limit:,} bytes, which is the limit. Send less at a time."
                    raise HTTPException(413, message, headers)
    except TimeoutError:
        message = f"The body did not arrive within {seconds:g} seconds. Send it faster."
        raise HTTPException(408, message, {"Connection": "close"}) from None
    return bytes(body)


async def read_json(request: Request, limit: int, seconds: float = BODY_SECONDS) -> dict[str, Any]:
    """Return the JSON object that is the body of a request; anything else is refused."""
    body = await read_body(request, limit, seconds)
    try:
        content = _DECODER.decode(body.removeprefix(codecs.BOM_UTF8).decode())
    except (ValueError, RecursionError) as error:
        if (encoding := request.headers.get("content-encoding", "identity").lower()) != "identity":
            message = f"Bodies with the Content-Encoding {encoding!r:.40} are not read. Send it as it is."
            raise HTTPException(415, message) from None
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else f"{error!s:.200}"
        raise HTTPException(400, f"The body is not valid JSON: {reason}.") from None
    if not isinstance(content, dict):
        raise HTTPException(400, f"The body must be a JSON object, got {type(content).__name__}: {body[:80]!r}.")
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
    """An ASGI app around routes: checks every request, adds headers, turns errors into JSON, writes a log.

    Parameters
    ----------
    routes : what is answered
    hosts : names under which the server may be called (`allowed_hosts`)
    token : what callers must know, or None
    open_paths : paths that need no token
    policy : the Content-Security-Policy of all answers that have none
    cookie : for pages, the name of a cookie. ?token=TOKEN sets it, and leads to the address without the token; then the
        browser sends it with every request.
    observe : called after each request with its scope, its status and its seconds
    lifespan : entered when the server starts, left when it stops
    """

    def __init__(
        self,
        routes: Sequence[BaseRoute],
        *,
        hosts: Collection[str],
        token: str | None = None,
        open_paths: Collection[str] = (),
        policy: str = API_POLICY,
        cookie: str | None = None,
        observe: Callable[[Scope, int, float], None] | None = None,
        lifespan: Lifespan[Any] | None = None,
    ) -> None:
        self.hosts, self.cookie = frozenset(hosts), cookie
        self.open_paths, self.observe = frozenset(open_paths), observe
        self.router = Router(routes, redirect_slashes=False, lifespan=lifespan)
        self._app = ExceptionMiddleware(self._checked, _HANDLERS)
        self._token = None if token is None else token.encode(errors="surrogateescape")
        self._headers = [
            (b"content-security-policy", policy.encode("ascii")),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.router(scope, receive, send)
            return
        begin, status = time.perf_counter(), 0
        scope["app"] = self  # so that the router raises its errors

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                there = {name for name, _ in message["headers"]}
                message["headers"].extend(pair for pair in self._headers if pair[0] not in there)
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except asyncio.CancelledError:  # the time to finish is over, or somebody presses Ctrl-C again
            if not status:
                headers = {"Retry-After": "1", "Connection": "close"}
                response = error_response(503, "The server stops before the answer is ready. Try again later.", headers)
                await response(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - begin
            if self.observe is not None:
                self.observe(scope, status, seconds)
            client, milliseconds = scope["client"][0] if scope.get("client") else None, round(1000 * seconds, 2)
            fields = {"method": scope["method"], "path": scope["path"], "status": status}
            log("request", **fields, milliseconds=milliseconds, client=client)

    async def _checked(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless it must not be answered."""
        found = dict(scope["headers"])
        host = found.get(b"host", b"").decode("latin-1")
        if "*" not in self.hosts and _host_name(host) not in self.hosts:
            raise HTTPException(403, f"This server does not answer as {host!r:.200}. Allow the name with --allow-host.")
        if b"transfer-encoding" in found and b"content-length" in found:
            # A proxy may take another part of what follows for the body than this server does.
            message = "The request has both Content-Length and Transfer-Encoding. Send one of them."
            raise HTTPException(400, message, {"Connection": "close"})
        if b"origin" in found and scope["method"] not in _SAFE_METHODS:
            origin = found[b"origin"].decode("latin-1").lower()
            if origin.partition("://")[2] != host.lower():
                raise HTTPException(403, f"Requests from pages of {origin!r:.200} are not answered.")
        response = None
        if self._token is not None and scope["path"] not in self.open_paths:
            response = self._with_token(Request(scope), self._token)
        await (response or self.router)(scope, receive, send)

    def _with_token(self, request: Request, token: bytes) -> Response | None:
        """Refuse a request without the token; return an answer if it is only to set a cookie."""

        def is_token(given: str) -> bool:
            return hmac.compare_digest(given.encode("latin-1", errors="replace"), token)

        kind, _, given = ",".join(request.headers.getlist("authorization")).partition(" ")
        if kind.lower() == "bearer" and is_token(given.strip()):
            return None
        challenge = {"WWW-Authenticate": "Bearer"}
        if self.cookie is None:
            raise HTTPException(401, f"{_UNKNOWN_CALLER}.", challenge)
        if is_token(request.query_params.get("token", "")):
            # A path of two slashes would lead to another machine.
            location = "/" + quote(request.scope["path"].lstrip("/\\"))
            query = request.url.remove_query_params("token").query
            # Not a redirect: after a link on a page of another site, such as a terminal in the browser, the browser
            # would follow it without the cookie.
            headers = {"Refresh": f"0; url={location}{f'?{query}' if query else ''}"}
            response = Response("", 200, headers, "text/html")
            response.set_cookie(self.cookie, token.decode(), httponly=True, samesite="strict")
            return response
        if is_token(request.cookies.get(self.cookie, "")):
            return None
        raise HTTPException(401, f"{_UNKNOWN_CALLER}, or open the address that the program printed.", challenge)
