"""Models to serve, servers and labelling pages in processes of their own, and small texts to label."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from wgcn import WGCNTextClassifier

FOODS = ("cheese", "bread", "fruit", "honey", "figs")
PARTS = ("tires", "brakes", "gears", "lights", "seats")
_SHORT = [
    f"{kind} wine with {a} and {b}" for kind in ("red", "white", "old", "sweet") for a in FOODS for b in FOODS
] + [f"{kind} car with {a} and {b}" for kind in ("fast", "slow", "blue", "new") for a in PARTS for b in PARTS]
# Further words, since near-copies would be held out together.
TEXTS = [
    " ".join([text, *(f"thing{k}" for k in random.Random(i).sample(range(40), 5))]) for i, text in enumerate(_SHORT)
]
LABELS = ["drink"] * 100 + ["drive"] * 100


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, "topics"; tests that change it take a copy."""
    path = tmp_path_factory.mktemp("served") / "topics"
    WGCNTextClassifier(n_jobs=1).fit(TEXTS, LABELS).save(path)
    return path


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model that gives several labels per text, "moods"."""
    path = tmp_path_factory.mktemp("served") / "moods"
    labels = [("red", "drink") if "red" in text else (label,) for text, label in zip(TEXTS, LABELS, strict=True)]
    WGCNTextClassifier(n_jobs=1).fit(TEXTS, labels).save(path)
    return path


# As in an install without numba, which takes a second to load.
_WITHOUT_NUMBA = "import sys; sys.modules['numba'] = None; from wgcn.cli import main; main()"


class Server:
    """`wgcn serve` as a process, on a free port."""

    def __init__(self, *arguments: object, **environment: str) -> None:
        command = [sys.executable, "-c", _WITHOUT_NUMBA, "serve", *map(str, arguments), "--port", "0"]
        kept = {name: value for name, value in os.environ.items() if name != "WGCN_TOKEN"}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=kept | environment)
        self.lines: list[str] = []
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.search(r"at (http://\S+:(\d+))\. ", line):
                self.url, self.port = found[1], int(found[2])
                break
        else:
            raise AssertionError(f"The server did not start: {self.lines}")
        self._reader = threading.Thread(target=self.lines.extend, args=[self.process.stderr], daemon=True)
        self._reader.start()

    def client(self, **given: object) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, trust_env=False, **given)  # type: ignore[arg-type]

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = self.process.wait(60)
        self._reader.join(60)
        return code

    def log(self) -> list[dict[str, object]]:
        """What the log says, once the server has stopped."""
        return [json.loads(line) for line in self.lines if line.startswith("{")]


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    """Start servers, which end with the test."""
    servers: list[Server] = []

    def begin(*arguments: object, **environment: str) -> Server:
        servers.append(Server(*arguments, **environment))
        return servers[-1]

    yield begin
    for server in servers:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait(60)
        server._reader.join(60)
        assert server.process.stderr is not None
        server.process.stderr.close()


class Page:
    """`wgcn label` in a process, and a client that knows its token."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "wgcn", "label", *arguments, "--no-browser"]
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, bufsize=1)
        self.said, self.url = "", ""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said += line
            if found := re.search(r"http://\S+token=\S+", line):
                self.url = found[0]
                break
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self.url:
            self.process.wait(60)
            self._reader.join(10)
            return
        self.address, _, token = self.url.partition("/?token=")
        self.client = httpx.Client(
            base_url=self.address, headers={"Authorization": f"Bearer {token}"}, timeout=60, trust_env=False
        )

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.said += self.process.stderr.read()

    def decide(self, kind: str, **given: object) -> httpx.Response:
        return self.client.post("/api/decide", json={"who": "me", "kind": kind, **given})

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        code = self.process.wait(60)
        self._reader.join(10)
        return code

    def close(self) -> None:
        if self.url:
            self.client.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        self._reader.join(10)
        if self.process.stderr is not None:
            self.process.stderr.close()


def write_texts(path: Path, texts: list[str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text"])
        table.writerows([text] for text in texts)
    return path


@pytest.fixture
def open_page(tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Return a function that starts a page in an empty folder, of texts or, without, of the project made before."""
    pages: list[Page] = []

    def start(texts: list[str] | None = None, *options: str) -> Page:
        given = [] if texts is None else [str(write_texts(tmp_path / "texts.csv", texts))]
        pages.append(Page(tmp_path, *given, "--project", "work", *options))
        return pages[-1]

    yield start
    for page in pages:
        page.close()


@pytest.fixture(scope="session", autouse=True)
def no_proxy() -> Iterator[None]:
    """Browsers and clients reach this machine directly."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
            patch.delenv(name)
        yield
