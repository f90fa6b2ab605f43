"""A labelling page in a process of its own, and small texts to label."""

import csv
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest


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
