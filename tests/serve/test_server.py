"""Servers as processes: starts and stops, clients that are slow or many, and models that change."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from wgcn import TextModel
from wgcn.base.errors import InputError
from wgcn.serve.app import create_app
from wgcn.serve.models import Models
from wgcn.serve.server import bind, run
from wgcn.serve.web import allowed_hosts

Start = Callable[..., Any]

SMALL_APP = """
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from wgcn.serve.server import run
from wgcn.serve.web import Guard, json_response, read_json

async def echo(request: Request) -> Response:
    return json_response(await read_json(request, limit=10**6, seconds=0.5))

guard = Guard([Route("/", echo, methods=["POST"])], hosts={"127.0.0.1"})
run(guard, "127.0.0.1", 0, ready=lambda url: print(url, flush=True), max_connections=2)
"""


def begin_request(port: int, text: str = "red wine") -> tuple[socket.socket, bytes]:
    """Send a request up to the middle of its body; return the connection and the rest."""
    body = json.dumps({"text": text}).encode()
    connection = socket.create_connection(("127.0.0.1", port), 60)
    head = f"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body[:5])
    return connection, body[5:]


def answer(connection: socket.socket) -> tuple[int, bytes]:
    """Read an answer; status 0 if the connection is closed without one."""
    with connection:
        data = b""
        while b"\r\n\r\n" not in data or len(data.partition(b"\r\n\r\n")[2]) < int(
            data.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
        ):
            try:
                part = connection.recv(65536)
            except ConnectionResetError:
                return 0, b""
            if not part:
                return 0, data
            data += part
        return int(data[9:12]), data.partition(b"\r\n\r\n")[2]


def in_flight(client: httpx.Client) -> int:
    lines = client.get("/metrics").text.splitlines()
    return next(int(float(line.rpartition(" ")[2])) for line in lines if line.startswith("wgcn_requests_in_flight "))


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("It did not happen within a minute.")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_finishes_what_was_accepted(start: Start, fitted: Path, number: int) -> None:
    server = start(fitted)
    with server.client() as client:
        connection, rest = begin_request(server.port)
        wait_until(lambda: in_flight(client) == 1)
    server.process.send_signal(number)

    def is_closed() -> bool:
        try:
            socket.create_connection(("127.0.0.1", server.port), 60).close()
        except OSError:
            return True
        return False

    wait_until(is_closed)  # nobody else is let in
    assert server.process.poll() is None
    connection.sendall(rest)
    status, body = answer(connection)
    assert (status, json.loads(body)["label"]) == (200, "drink")
    assert server.process.wait(60) == 0
    server.stop()
    assert [line["event"] for line in server.log()][-1] == "stop"
    assert {line["event"] for line in server.log()} == {"start", "request", "stop"}


def test_too_many_requests_are_sent_away_at_once_and_the_others_answered(start: Start, fitted: Path) -> None:
    server = start(fitted, "--queue", 3)
    with server.client() as client:
        held = [begin_request(server.port) for _ in range(3)]
        wait_until(lambda: in_flight(client) == 3)
        for _ in range(30):
            response = client.post("/v1/predict", json={"text": "x" * 100_000})
            assert (response.status_code, response.headers["retry-after"]) == (503, "1")
            assert "3 requests already" in response.json()["error"]["message"]
        for connection, rest in held:
            connection.sendall(rest)
        assert [answer(connection)[0] for connection, _ in held] == [200] * 3
        assert client.post("/v1/predict", json={"text": "wine"}).status_code == 200
        assert "wgcn_refused_total 30.0\n" in client.get("/metrics").text


def test_who_may_not_call_is_not_answered(start: Start, fitted: Path) -> None:
    server = start(f"named={fitted}", WGCN_TOKEN="a-secret-token")
    bearer = {"Authorization": "Bearer a-secret-token"}
    with server.client() as client:
        assert client.post("/v1/predict", json={"text": "wine"}).status_code == 401
        assert client.get("/v1/models?token=a-secret-token").status_code == 401
        assert client.get("/v1/models/named", headers=bearer).status_code == 200
        assert client.get("/health", headers={"Host": "evil.example"}).status_code == 403
        cross = {"Origin": "https://evil.example", **bearer}
        assert client.post("/v1/predict", json={"text": "wine"}, headers=cross).status_code == 403
        large = client.post("/v1/predict", content=b"x" * 9_000_000, headers=bearer)
        assert large.status_code == 413
        chunks = client.post("/v1/predict", content=iter([b"x" * 1_000_000] * 9), headers=bearer)
        assert chunks.status_code == 413
        assert client.post("/v1/predict", json={"text": "wine"}, headers=bearer).json()["label"] == "drink"
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        connection.sendall(b"nonsense\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert server.stop() == 0
    assert not any("a-secret-token" in line for line in server.lines)
    assert not any("raceback" in line for line in server.lines)


def test_clients_that_are_slow_or_many_are_sent_away() -> None:
    process = subprocess.Popen([sys.executable, "-c", SMALL_APP], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline().rpartition(b":")[2])
        for body in (b"", b"{"):
            connection = socket.create_connection(("127.0.0.1", port), 60)
            head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 9\r\n\r\n"
            connection.sendall(head.encode() + body)
            assert answer(connection)[0] == 408
        with contextlib.ExitStack() as stack:
            url, clients = f"http://127.0.0.1:{port}/", [httpx.Client(trust_env=False, timeout=60) for _ in range(3)]
            first, second, third = [stack.enter_context(client).post(url, json={"a": 1}) for client in clients]
            assert first.json() == second.json() == {"a": 1}
            assert third.status_code == 503
    finally:
        process.terminate()
        assert process.wait(60) == 0
        process.stdout.close()


def test_what_is_no_http_is_refused(start: Start, fitted: Path) -> None:
    server = start(fitted)
    requests = b"\x16\x03\x01", b"GET /health HTTP/1.1", b"GET / HTTP/1.1\r\nContent-Length: -1"
    many = b"GET /health HTTP/1.1\r\n" + b"X: abc\r\n" * 1_000_000
    for request in (*requests, b"GET /health HTTP/1.1\r\nX: " + b"a" * 300_000, many):
        connection = socket.create_connection(("127.0.0.1", server.port), 60)
        with connection, contextlib.suppress(ConnectionError):  # it closes while the client is still sending
            connection.sendall(request + b"\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
    with server.client() as client:
        assert client.get("/health").status_code == 200


def test_headers_within_the_limit_are_read(start: Start, fitted: Path) -> None:
    server = start(fitted)
    with server.client() as client:
        assert client.get("/health", headers={"X": "a" * 65_000}).status_code == 200


def test_a_model_that_changes_loses_no_request(start: Start, fitted: Path, other: Path, tmp_path: Path) -> None:
    path = tmp_path / "topics"
    shutil.copytree(fitted, path)
    server = start(path)
    versions = [TextModel.load(other), TextModel.load(fitted)]
    seen: list[tuple[int, str]] = []
    done = threading.Event()

    def ask() -> None:
        with server.client() as client:
            while not done.is_set():
                response = client.post("/v1/predict", json={"text": "red wine with figs"})
                seen.append((response.status_code, response.json().get("digest", response.text)))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for place in range(3):
            digest = versions[place % 2].save(path)
            wait_until(lambda digest=digest: seen and seen[-1][1] == digest)  # type: ignore[misc]
    finally:
        done.set()
        for thread in threads:
            thread.join(60)
    assert {status for status, _ in seen} == {200}
    assert len({digest for _, digest in seen}) == 2
    with server.client() as client:
        loads = client.get("/metrics").text.partition('outcome="loaded"} ')[2].split("\n")[0]
        (path / "model.safetensors").write_bytes(b"damaged")
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: client.get("/health").json()["status"] == "degraded")
        assert (
            client.post("/v1/predict", json={"text": "wine"}).json()["digest"] == digest
        )  # the last one that was whole
        versions[1].save(path)
        wait_until(lambda: client.get("/health").json()["status"] == "ok")
        assert float(client.get("/metrics").text.partition('outcome="loaded"} ')[2].split("\n")[0]) > float(loads)
    assert server.stop() == 0
    assert {"model loaded", "model not loaded"} <= {line["event"] for line in server.log()}


def test_a_server_that_cannot_start_says_why(fitted: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for arguments, message in (
            ([fitted, "--port", port], f"No server can listen on 127.0.0.1, port {port}: "),
            ([fitted, "--host", ""], "--host is empty. Give an address"),
            ([fitted, "--allow-host", "a.example:80"], "--allow-host takes a name alone"),
            ([tmp_path / "nothing"], "There is no model folder"),
            ([fitted, fitted], "Two models are named 'topics'"),
        ):
            script = "import sys; sys.modules['numba'] = None; from wgcn.cli import main; main()"
            command = [sys.executable, "-c", script, "serve", *map(str, arguments)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr.startswith(f"Error: {message}")


def test_a_host_that_is_no_text_is_an_error() -> None:
    with pytest.raises(InputError, match="No server can listen on"):
        bind("\udcff", 0)


def test_a_server_returns_after_a_signal(fitted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = create_app(Models({"topics": fitted}), hosts=allowed_hosts("127.0.0.1"), n_threads=1)
    statuses: list[int] = []

    def ask(url: str) -> None:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(httpx.Client(base_url=url, trust_env=False, timeout=60)) for _ in range(2)]
            for client in clients:
                response = client.post("/v1/predict", json={"texts": ["red wine", "x" * 10_000]})
                statuses.append(response.status_code)
            os.kill(os.getpid(), signal.SIGHUP)
            wait_until(lambda: 'outcome="loaded"} 2' in clients[0].get("/metrics").text)
        os.kill(os.getpid(), signal.SIGTERM)

    threads: list[threading.Thread] = []

    def ready(url: str) -> None:
        threads.append(threading.Thread(target=ask, args=[url]))
        threads[0].start()

    before = signal.getsignal(signal.SIGTERM)
    run(app, "127.0.0.1", 0, ready=ready, max_connections=1)
    threads[0].join(60)
    assert statuses == [200, 503]
    assert signal.getsignal(signal.SIGTERM) is before
    events = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert (events[0], events[-1]) == ("start", "stop")
    assert "model loaded" in events
