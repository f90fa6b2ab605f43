"""The cells of `benchmarks.serve`: texts, a model without a server, and a client that sends and counts."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import sets
from benchmarks.measure import Cell

BATCH = 100
N_CLASSES = 3000
STOP_SECONDS = 0.3  # after which a server is stopped while it makes large answers


def prepare(folder: str, model: str | None) -> Cell:
    """Write the bodies of requests to files, and fit a model if none is given."""
    name = "r8" if sets.available() else sets.DOCS
    train, labels, test = sets.split(name)
    if model is None:
        from wgcn import WGCNTextClassifier

        model = str(Path(folder, "model"))
        WGCNTextClassifier().fit(train, labels).save(model)
    paths = {key: str(Path(folder, f"{key}.json")) for key in ("single", "batch", "texts")}
    batches = [test[place : place + BATCH] for place in range(0, 10 * BATCH, BATCH)]
    Path(paths["single"]).write_text(json.dumps([json.dumps({"text": text}) for text in test[:1000]]))
    Path(paths["batch"]).write_text(json.dumps([json.dumps({"texts": texts}) for texts in batches]))
    Path(paths["texts"]).write_text(json.dumps(test[: 10 * BATCH]))
    return {"model": model, "single": [paths["single"]], "batch": [paths["batch"]], "texts": paths["texts"]}


def in_process(model: str, texts: str, seconds: float) -> Cell:
    """Label batches with the compiled code that the server uses too."""
    from wgcn import TextModel
    from wgcn.scoring.terms import load_compiled

    loaded, all_texts = TextModel.load(model), json.loads(Path(texts).read_text())
    load_compiled()
    loaded.predict(all_texts)
    begin, cpu, n = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - begin < seconds:
        for place in range(0, len(all_texts), BATCH):
            loaded.predict(all_texts[place : place + BATCH])
        n += len(all_texts)
    return {"rate": n / (time.perf_counter() - begin), "cpu": (time.process_time() - cpu) / n}


def many_classes(folder: str) -> Cell:
    """Save a model with very many classes, whose weights are made up."""
    import numpy as np

    from wgcn import TextModel, WGCNTextClassifier
    from wgcn.scoring.scorer import Scorer

    path, random = str(Path(folder, "many")), np.random.default_rng(0)
    WGCNTextClassifier(n_jobs=1, subwords=0).fit(["red wine", "fast car"], ["a", "b"]).save(path)
    model = TextModel.load(path)
    table = random.normal(size=(len(model.vocabulary), N_CLASSES)).astype(np.float32)
    scorer = Scorer(table, None, np.zeros(N_CLASSES, np.float32), np.full(N_CLASSES, 1 / N_CLASSES, np.float32))
    classes = np.array([f"class {number}" for number in range(N_CLASSES)])
    replace(model, scorer=scorer, classes=classes, split=None, spelling=None, trust=None, report={}).save(path)
    return {"model": path}


def large(port: int, n: int, n_texts: int, stopped: int | None) -> Cell:
    """Ask for large answers, and all the while for `/health`; stop the process `stopped` meanwhile, if one is given."""
    body = json.dumps({"texts": ["a"] * n_texts, "probabilities": True}).encode()
    times, begin, signalled = list[float](), time.time(), 0.0
    with ThreadPoolExecutor(n) as pool:
        asked = [pool.submit(ask, port, "POST", "/v1/predict", body) for _ in range(n)]
        while not all(each.done() for each in asked) or not times:
            if stopped is not None and not signalled and time.time() - begin > STOP_SECONDS:
                signalled = time.time()
                os.kill(stopped, signal.SIGTERM)
            before = time.perf_counter()
            if not signalled and ask(port, "GET", "/health") == "200":
                times.append(time.perf_counter() - before)
            time.sleep(0.02)
        statuses = Counter(each.result() for each in asked)
    if stopped is not None and not signalled:
        signalled = time.time()
        os.kill(stopped, signal.SIGTERM)
    times.sort()
    figures = {"median_ms": 1000 * times[len(times) // 2], "health_ms": 1000 * times[-1]}
    return {"statuses": dict(statuses), "signal": signalled, **figures}


def ask(port: int, method: str, path: str, body: bytes | None = None) -> str:
    """Return the status of an answer that was read whole, or what went wrong."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=200)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        answer.read()
        return str(answer.status)
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()


def load(port: int, path: str, bodies: list[str], seconds: float, connections: int) -> Cell:
    """Send requests over kept connections for some seconds, the next one as soon as an answer is there."""
    texts = [body.encode() for file in bodies for body in json.loads(Path(file).read_text())]
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: "
    requests = [f"{head}{len(text)}\r\n\r\n".encode() + text for text in texts]
    return asyncio.run(Load(port, requests).run(seconds, connections))


class Load:
    """Connections and what came of their requests."""

    def __init__(self, port: int, requests: list[bytes]) -> None:
        self.port, self.requests = port, requests
        self.sent = self.lost = self.open = 0
        self.statuses: Counter[str] = Counter()
        self.times: list[float] = []
        self.end = 0.0

    async def run(self, seconds: float, connections: int) -> Cell:
        """Send for some seconds, then wait for the last answers."""
        begin = time.perf_counter()
        self.end = begin + seconds
        await asyncio.gather(*(self.connect() for _ in range(connections)))
        while self.open and time.perf_counter() < self.end + 30:
            await asyncio.sleep(0.02)
        self.lost += self.open  # without an answer after half a minute
        times = sorted(self.times)
        return {
            "seconds": seconds,
            "sent": self.sent,
            "answered": self.statuses["200"],
            "statuses": dict(self.statuses),
            "lost": self.lost,
            "median_ms": 1000 * times[len(times) // 2],
            "p99_ms": 1000 * times[int(len(times) * 0.99)],
        }

    async def connect(self) -> None:
        """Open a connection, which sends by itself."""
        await asyncio.get_running_loop().create_connection(lambda: Connection(self), "127.0.0.1", self.port)


class Connection(asyncio.Protocol):
    """One connection: a request, its answer, the next request."""

    def __init__(self, load: Load) -> None:
        self.load, self.buffer, self.is_waiting = load, b"", False

    def connection_made(self, transport: Any) -> None:
        """Send the first request."""
        self.transport = transport
        self.send()

    def send(self) -> None:
        """Send a request, or close if the time is over."""
        if time.perf_counter() >= self.load.end:
            self.transport.close()
            return
        self.is_waiting, self.began = True, time.perf_counter()
        self.load.open += 1
        self.transport.write(self.load.requests[self.load.sent % len(self.load.requests)])
        self.load.sent += 1

    def data_received(self, data: bytes) -> None:
        """Count an answer once it is whole."""
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        head = head.lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        self.buffer = b""
        self.load.statuses[head[9:12].decode()] += 1
        self.load.times.append(time.perf_counter() - self.began)
        self.load.open -= 1
        self.is_waiting = False
        if b"connection: close" in head:
            self.transport.close()
            if time.perf_counter() < self.load.end:
                self.again = asyncio.ensure_future(self.load.connect())
        else:
            self.send()

    def connection_lost(self, error: Exception | None) -> None:
        """Count a request without an answer."""
        if self.is_waiting:
            self.load.lost += 1
            self.load.open -= 1
            if time.perf_counter() < self.load.end:
                self.again = asyncio.ensure_future(self.load.connect())
