"""The cells of `benchmarks.serve`: texts, a model without a server, and a client that sends and counts."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import sets
from benchmarks.measure import Cell

BATCH = 100


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
    from wgcn.inference.terms import load_compiled

    loaded, all_texts = TextModel.load(model), json.loads(Path(texts).read_text())
    load_compiled()
    loaded.predict(all_texts)
    begin, cpu, n = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - begin < seconds:
        for place in range(0, len(all_texts), BATCH):
            loaded.predict(all_texts[place : place + BATCH])
        n += len(all_texts)
    return {"rate": n / (time.perf_counter() - begin), "cpu": (time.process_time() - cpu) / n}


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
