"""`wgcn serve`: models for other programs, over HTTP."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import warnings
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from wgcn import __version__
from wgcn.base.errors import InputError, WGCNWarning
from wgcn.base.threads import available_cores
from wgcn.scoring.terms import load_compiled
from wgcn.serve.models import Models, named_folders
from wgcn.serve.schema import (
    OPEN_PATHS,
    PAGE_POLICY,
    ExplainOptions,
    Health,
    Limits,
    Options,
    PredictOptions,
    describe,
    docs_page,
    read_request,
)
from wgcn.serve.server import log, run
from wgcn.serve.web import (
    Guard,
    allowed_hosts,
    announced_length,
    encoded_response,
    is_loopback,
    json_response,
    read_json,
)
from wgcn.serve.work import Gate, Work

CHECK_SECONDS = 1.0  # between looks at the folders
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Metrics(Collector):
    """What a server counts, and what it reads off when it is asked (`collect`), in a registry of its own."""

    def __init__(self, models: Models, gate: Gate) -> None:
        self.registry, self._models, self._gate = CollectorRegistry(), models, gate
        requests = "wgcn_requests", "Requests by endpoint and HTTP status.", ("endpoint", "status")
        self._requests = Counter(*requests, registry=self.registry)
        errors = "wgcn_errors", "Requests that failed through no fault of the caller."
        self._errors = Counter(*errors, registry=self.registry)
        refused = "wgcn_refused", "Requests refused because there were too many, or the server stops."
        self._refused = Counter(*refused, registry=self.registry)
        self.texts = Counter("wgcn_texts", "Texts that were answered.", ("model",), registry=self.registry)
        seconds = "wgcn_request_seconds", "Time from the headers to the answer.", ("endpoint",)
        self._seconds = Histogram(*seconds, buckets=BUCKETS, registry=self.registry)
        self.registry.register(self)

    def observe(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request: `observe` of a `Guard`."""
        endpoint = getattr(scope.get("endpoint"), "__name__", "none")
        self._requests.labels(endpoint, status).inc()
        self._seconds.labels(endpoint).observe(seconds)
        if status >= 500:
            (self._refused if status == 503 else self._errors).inc()

    def collect(self) -> Iterable[Metric]:
        """Return what is the case now."""
        gate = self._gate
        yield GaugeMetricFamily("wgcn_requests_in_flight", "Requests that are worked on or wait.", gate.n_requests)
        yield GaugeMetricFamily("wgcn_bytes_in_flight", "Bytes of these requests.", gate.n_bytes)
        yield GaugeMetricFamily("wgcn_answer_bytes_in_flight", "Bytes of answers, made or sent.", gate.n_answer_bytes)
        yield GaugeMetricFamily("wgcn_queue_limit", "Requests in flight at most.", gate.limits.requests)
        loads = CounterMetricFamily("wgcn_model_loads", "Loads of model folders.", labels=("model", "outcome"))
        for name, place in sorted(self._models.places.items()):
            loads.add_metric([name, "loaded"], place.n_loads)
            loads.add_metric([name, "failed"], place.n_failures)
        yield loads


class Service:
    """The endpoints. A request is first let in by the gate, then read, then worked on."""

    def __init__(self, models: Models, limits: Limits, n_threads: int, *, has_token: bool) -> None:
        self.models, self.limits, self.gate, self.work = models, limits, Gate(limits), Work(n_threads)
        self.metrics = Metrics(models, self.gate)
        self._description = describe(limits, has_token=has_token)

    def routes(self) -> list[Route]:
        """Return the addresses, the busiest first."""
        return [
            Route("/v1/models/{name}/predict", self.predict, methods=["POST"]),
            Route("/v1/predict", self.predict, methods=["POST"]),
            Route("/v1/models/{name}/explain", self.explain, methods=["POST"]),
            Route("/v1/explain", self.explain, methods=["POST"]),
            Route("/v1/models", self.list_models),
            Route("/v1/models/{name}", self.show_model),
            Route("/health", self.health),
            Route("/metrics", self.show_metrics),
            Route("/openapi.json", self.openapi),
            Route("/docs", self.docs),
        ]

    async def predict(self, request: Request) -> Response:
        """Label one text or several."""
        return await self._answer(request, PredictOptions, b"predictions")

    async def explain(self, request: Request) -> Response:
        """Explain the label of one text or of several."""
        return await self._answer(request, ExplainOptions, b"explanations")

    async def _answer(self, request: Request, options: type[Options], several: bytes) -> Response:
        slot = self.gate.enter(announced_length(request))
        try:
            served = self.models.get(request.path_params.get("name"))
            content = await read_json(request, self.limits.body)
            texts, single, asked = read_request(content, options, self.limits)
            rows = await self.work.answer(served, texts, asked, slot)
        except BaseException:
            slot.leave()
            raise
        self.metrics.texts.labels(served.name).inc(len(texts))
        if single:
            return encoded_response([served.version, rows[0][1:]], slot.leave)
        return encoded_response([served.version, b'"%s":[' % several, *rows, b"]}"], slot.leave)

    async def list_models(self, request: Request) -> Response:
        """List the models, each with its classes, its size and how it was fitted."""
        cards = b",".join([place.served.card_json for place in self.models.places.values()])
        return encoded_response([b'{"models":[', cards, b"]}"])

    async def show_model(self, request: Request) -> Response:
        """Describe a model: its classes, its size and how it was fitted."""
        return encoded_response([self.models.get(request.path_params["name"]).card_json])

    async def health(self, request: Request) -> Response:
        """Say whether requests are answered, and with which versions."""
        models = self.models.health()
        status: Any = "degraded" if any("error" in each for each in models.values()) else "ok"
        found: Health = {"status": status, "live": True, "ready": True, "version": __version__, "models": models}
        return json_response(found)

    async def show_metrics(self, request: Request) -> Response:
        """Show the metrics, for Prometheus."""
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(self.metrics.registry), headers={"Content-Type": kind})

    async def openapi(self, request: Request) -> Response:
        """Describe all of this."""
        return json_response(self._description)

    async def docs(self, request: Request) -> Response:
        """Show the description as a page."""
        return HTMLResponse(docs_page(self._description), headers={"Content-Security-Policy": PAGE_POLICY})

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
    service = Service(models, limits or Limits(), n_threads or available_cores(), has_token=token is not None)
    checks: dict[str, Any] = {"hosts": hosts, "token": token, "open_paths": OPEN_PATHS}
    return Guard(service.routes(), **checks, observe=service.metrics.observe, lifespan=service.lifespan)


def serve(
    folders: Sequence[str],
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    token: str | None = None,
    allow_hosts: Sequence[str] = (),
    ready: Callable[[str], None] = lambda _: None,
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
    models = Models(named_folders(folders))
    if find_spec("numba") is not None:
        load_compiled()
        for place in models.places.values():
            place.served.model.predict(["a"])  # compiled code has tables of its own
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
