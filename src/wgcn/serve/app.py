"""`wgcn serve`: models for other programs, over HTTP."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from wgcn import __version__
from wgcn.base.errors import InputError, WGCNWarning
from wgcn.base.threads import available_cores
from wgcn.scoring.terms import load_compiled
from wgcn.serve.answers import ExplainOptions, Limits, PredictOptions, read_texts
from wgcn.serve.metrics import Metrics, family
from wgcn.serve.models import Models, named_folders
from wgcn.serve.openapi import describe
from wgcn.serve.server import run
from wgcn.serve.web import (
    Endpoint,
    Guard,
    allowed_hosts,
    announced_length,
    encoded_response,
    is_loopback,
    json_response,
    log,
    read_json,
)
from wgcn.serve.work import Gate, Work

CHECK_SECONDS = 1.0  # between looks at the folders
OPEN_PATHS = ("/health",)  # without the token, for whoever watches over the process


class Service:
    """The endpoints. A request is first let in by the gate, then read, then worked on."""

    def __init__(self, models: Models, limits: Limits, n_threads: int, *, has_token: bool) -> None:
        self.models, self.limits, self.gate, self.metrics = models, limits, Gate(limits), Metrics()
        self.work = Work(n_threads)
        self._description = describe(limits, has_token=has_token)

    def routes(self) -> list[Route]:
        """Return the addresses, the busiest first."""
        paths: dict[str, tuple[Callable[[Request], Awaitable[Response]], str]] = {
            "/v1/models/{name}/predict": (self.predict, "POST"),
            "/v1/predict": (self.predict, "POST"),
            "/v1/models/{name}/explain": (self.explain, "POST"),
            "/v1/explain": (self.explain, "POST"),
            "/v1/models": (self.list_models, "GET"),
            "/v1/models/{name}": (self.show_model, "GET"),
            "/health": (self.health, "GET"),
            "/metrics": (self.show_metrics, "GET"),
            "/openapi.json": (self.openapi, "GET"),
        }
        return [Route(path, Endpoint(function), methods=[method]) for path, (function, method) in paths.items()]

    async def predict(self, request: Request) -> Response:
        """Label one text or several."""
        return await self._answer(request, PredictOptions(), self.work.predict, "predictions")

    async def explain(self, request: Request) -> Response:
        """Explain the label of one text or of several."""
        return await self._answer(request, ExplainOptions(), self.work.explain, "explanations")

    async def _answer(
        self, request: Request, options: Any, function: Callable[..., Awaitable[list[bytes]]], several: str
    ) -> Response:
        slot = self.gate.enter(announced_length(request.scope))
        try:
            served = self.models.get(request.path_params.get("name"))
            content = await read_json(request, self.limits.body)
            texts, single, options = read_texts(content, options, self.limits)
            rows = await function(served, texts, options, slot)
        except BaseException:
            slot.leave()
            raise
        self.metrics.texts[served.name] += len(texts)
        if single:
            return encoded_response([served.version, rows[0][1:]], slot.leave)
        return encoded_response([served.version, b'"%s":[' % several.encode("ascii"), *rows, b"]}"], slot.leave)

    async def list_models(self, request: Request) -> Response:
        """List the models, each with its classes, its size and how it was fitted."""
        cards = b",".join([place.served.card_json for place in self.models.places.values()])
        return encoded_response([b'{"models":[', cards, b"]}"])

    async def show_model(self, request: Request) -> Response:
        """Describe a model: its classes, its size and how it was fitted."""
        return encoded_response([self.models.get(request.path_params["name"]).card_json])

    async def health(self, request: Request) -> Response:
        """Say whether requests are answered, and with which versions."""
        found = self.models.health()
        status = "degraded" if any("error" in each for each in found.values()) else "ok"
        return json_response({"status": status, "live": True, "ready": True, "version": __version__, "models": found})

    async def show_metrics(self, request: Request) -> Response:
        """Show the metrics, for Prometheus."""
        gate, places = self.gate, sorted(self.models.places.items())
        loads = [("", {"model": name, "outcome": "loaded"}, place.n_loads) for name, place in places]
        loads += [("", {"model": name, "outcome": "failed"}, place.n_failures) for name, place in places]
        lines = [
            *self.metrics.lines(),
            *family("wgcn_requests_in_flight", "gauge", "Requests that are worked on or wait.", gate.n_requests),
            *family("wgcn_bytes_in_flight", "gauge", "Bytes of these requests.", gate.n_bytes),
            *family("wgcn_answer_bytes_in_flight", "gauge", "Bytes of answers, made or sent.", gate.n_answer_bytes),
            *family("wgcn_queue_limit", "gauge", "Requests in flight at most.", self.limits.requests),
            *family("wgcn_refused_total", "counter", "Requests refused because there were too many.", gate.n_refused),
            *family("wgcn_model_loads_total", "counter", "Loads of model folders.", loads),
        ]
        return Response("\n".join([*lines, ""]), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, request: Request) -> Response:
        """Describe all of this."""
        return json_response(self._description)

    @asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:
        """Look after changed folders while the server runs."""
        force = asyncio.Event()
        with suppress(ValueError, RuntimeError, NotImplementedError, AttributeError):  # not in this thread or system
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, force.set)
        watch = asyncio.create_task(self._watch(force))
        try:
            yield
        finally:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch
            self.work.close()

    async def _watch(self, force: asyncio.Event) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(force.wait(), CHECK_SECONDS)
            forced = force.is_set()
            force.clear()
            try:
                await asyncio.to_thread(self.models.reload, force=forced)
            except Exception as error:  # the next look may succeed
                log("error", logging.ERROR, reason=repr(error))


def create_app(
    models: Models,
    *,
    hosts: Collection[str],
    token: str | None = None,
    limits: Limits | None = None,
    n_threads: int | None = None,
) -> Guard:
    """Return the app that answers with these models."""
    limits = limits or Limits()
    service = Service(models, limits, n_threads or available_cores(), has_token=token is not None)
    router = Router(service.routes(), redirect_slashes=False, lifespan=service.lifespan)
    return Guard(
        router,
        hosts=hosts,
        token=token,
        open_paths=OPEN_PATHS,
        observe=service.metrics.observe,
    )


def serve(
    folders: Sequence[str],
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    token: str | None = None,
    allow_hosts: Sequence[str] = (),
    ready: Callable[[str], None] | None = None,
    **limits: int,
) -> None:
    """Serve model folders, DIR or NAME=DIR, until SIGTERM or Ctrl-C; `ready` gets the address.

    `token` is by default that of the environment, WGCN_TOKEN. The limits are those of `Limits`.
    """
    token = os.environ.get("WGCN_TOKEN") if token is None else token
    token = None if token is None else token.strip()  # a token out of a file ends with a line
    if token == "":  # out of a file that is missing, say
        raise InputError("The token is empty, so anyone could call. Give --token or WGCN_TOKEN a value, or neither.")
    if not host:  # which sockets take for all addresses
        raise InputError("--host is empty. Give an address, such as 127.0.0.1, or 0.0.0.0 for all.")
    if token is None and not is_loopback(host):
        message = f"Anyone who reaches {host} may call this server. Set WGCN_TOKEN, or leave out --host."
        warnings.warn(message, WGCNWarning, stacklevel=2)
    models = Models.load(named_folders(folders))
    if find_spec("numba") is not None:
        load_compiled()
        models.warm()
    app = create_app(models, hosts=allowed_hosts(host, allow_hosts), token=token, limits=Limits(**limits))
    with _few_collections():
        run(app, host, port, ready=ready)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Collect garbage less often, and not in what is loaded already, which stays: a tenth more requests per second."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
