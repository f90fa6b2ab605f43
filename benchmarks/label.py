"""The labelling page, measured from outside: ``python -m benchmarks.label {refit,open,kills} --help``.

refit : seconds from a label to the fit that knows it, as a page sees it that asks four times per second
open  : seconds until the page of 100,000 texts answers, and those of its requests
kills : the process is killed at random moments while two people label; counts the answered labels that are lost
"""

from __future__ import annotations

import argparse
import csv
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks import sets
from benchmarks.measure import machine, machine_lines

_ASKED_EVERY = 0.25  # seconds, as the page does while a fit is under way
_WORDS = 5_000  # of made texts


class Page:
    """`wgcn label` in a process of its own, with a client."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        begin = time.perf_counter()
        command = [sys.executable, "-m", "wgcn", "label", *arguments, "--project", "work", "--no-browser"]
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        found = next((m for line in self.process.stderr if (m := re.search(r"(http\S+)/\?token=(\S+)", line))), None)
        if found is None:
            sys.exit("The page did not start.")
        self.seconds, self.address = time.perf_counter() - begin, f"{found[1]}/?token={found[2]}"
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.given: dict[str, Any] = {
            "base_url": found[1],
            "headers": {"Authorization": f"Bearer {found[2]}"},
            "timeout": 600,
            "trust_env": False,
        }
        self.client = httpx.Client(**self.given)

    def decide(self, kind: str, **given: object) -> Any:
        """Return the answer to a decision."""
        answer = self.client.post("/api/decide", json={"who": "me", "kind": kind, **given})
        answer.raise_for_status()
        return answer.json()

    def wait_for(self, ready: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Ask for the state until it is as wanted."""
        while True:
            state: dict[str, Any] = self.client.get("/api/state").json()
            if state["status"] == "failed":
                sys.exit(state["trouble"])
            if ready(state):
                return state
            time.sleep(_ASKED_EVERY)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the process."""
        self.process.send_signal(number)
        self.process.wait()
        self.client.close()


@contextmanager
def folder_of(texts: Iterator[str] | list[str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        with Path(name, "texts.csv").open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["text"])
            table.writerows([text] for text in texts)
        yield Path(name)


def labelled_texts(name: str) -> tuple[list[str], list[str]]:
    """Return all texts of a set with their labels, those for training first."""
    if name == sets.DOCS:
        from wgcn_paper.datasets.docstrings import docs_corpus

        docs = docs_corpus()
        return list(docs.texts or ()), docs.labels.tolist()
    from wgcn.io.read import read_rows

    rows = [row for file in sets.files(name) for row in read_rows(file, [0, 1], header=False)]
    return [str(text) for _, text in rows], [str(label) for label, _ in rows]


def measure_refit(name: str, n_labels: int, pause: float) -> None:
    texts, labels = labelled_texts(name)
    with folder_of(texts) as folder:
        page = Page(folder, "texts.csv")
        begin = time.perf_counter()
        page.wait_for(lambda state: state["status"] == "ready")
        prepared = page.seconds + time.perf_counter() - begin
        numbers: dict[str, int] = {}
        waits, fits, work, answers = list[float](), list[float](), list[float](), list[float]()
        for _ in range(n_labels):
            text = page.client.get("/api/next?who=me").json()["text"]
            if labels[text] not in numbers:
                numbers[labels[text]] = page.decide("add", value=labels[text])["decided"]["label"]
            begin = time.perf_counter()
            seq = page.decide("label", text=text, label=numbers[labels[text]])["seq"]
            answers.append(time.perf_counter() - begin)
            state = page.wait_for(lambda state, seq=seq: state.get("fitted", {}).get("seq", 0) >= seq)  # type: ignore[misc]
            if "quick_seconds" in state["fitted"]:
                waits.append(time.perf_counter() - begin)
                fits.append(state["fitted"]["quick_seconds"])
                work.append(state["fitted"]["quick_cpu"])
            page.wait_for(lambda state: state["status"] == "ready")  # somebody reads the next text
            time.sleep(pause)
        page.stop()
    found = [f"{name}: {len(texts):,} texts, ready after {prepared:.1f} s, {len(numbers)} classes, {len(fits)} refits"]
    measured = {"label to screen": waits, "fit": fits, "CPU of a fit": work, "answer": answers}
    found += [f"{what} {_spread(each)}" for what, each in measured.items()]
    print("; ".join(found), flush=True)


def measure_open(n_texts: int) -> None:
    words = [f"w{i}" for i in range(_WORDS)]
    choose = random.Random(0)
    made = (" ".join(choose.choices(words, k=choose.randint(20, 180))) for _ in range(n_texts))
    with folder_of(made) as folder:
        page = Page(folder, "texts.csv")
        print(f"{n_texts:,} texts: the page answers after {page.seconds:.1f} s, read from csv", flush=True)
        page.stop()
        page = Page(folder)
        print(f"again: after {page.seconds:.1f} s", flush=True)
        label = page.decide("add", value="a")["decided"]["label"]
        asked: dict[str, Callable[[int], Any]] = {
            "next": lambda i: page.client.get("/api/next?who=me"),
            "label": lambda i: page.decide("label", text=i, label=label),
            "text": lambda i: page.client.get(f"/api/text/{7919 * i % n_texts}"),
            "list": lambda i: page.client.get(f"/api/texts?begin={50 * i}&limit=50"),
            "search": lambda i: page.client.get(f"/api/texts?query=w{i}"),
            "state": lambda i: page.client.get("/api/state"),
        }
        for what, ask in asked.items():
            seconds = []
            for i in range(20):
                begin = time.perf_counter()
                ask(i)
                seconds.append(time.perf_counter() - begin)
            print(f"{what}: {_spread(seconds, 1000, 'ms')}", flush=True)
        page.stop()


def measure_kills(n_kills: int) -> None:
    from wgcn.label.project import Project

    moments, texts = random.Random(0), [f"text {i} about {'wine' if i % 2 else 'cars'}" for i in range(1000)]
    with folder_of(texts) as folder:
        page, answered = Page(folder, "texts.csv"), dict[int, tuple[str, int, int]]()
        for name in "ab":
            page.decide("add", value=name)
        for n in range(1, n_kills + 1):
            people = [threading.Thread(target=_label, args=(page, f"person {i}", answered)) for i in range(2)]
            for person in people:
                person.start()
            time.sleep(moments.uniform(0.02, 1.0))
            page.stop(signal.SIGKILL)
            for person in people:
                person.join()
            with Project(folder / "work.sqlite") as project:
                entries = {each.seq: (each.who, each.decision.text, each.decision.label) for each in project.entries()}
            if list(entries) != list(range(1, len(entries) + 1)):
                sys.exit("The log has gaps.")
            lost = {seq: (given, entries.get(seq)) for seq, given in answered.items() if entries.get(seq) != given}
            if n % 20 == 0 or n == n_kills or lost:
                print(f"{n} kills: {len(answered):,} labels answered, {len(lost)} lost {lost or ''}", flush=True)
            page = Page(folder)
        page.stop()


def _label(page: Page, who: str, answered: dict[int, tuple[str, int, int]]) -> None:
    """Label until the process is gone; keep under which numbers in the log the labels were acknowledged."""
    choose = random.Random(f"{who} {len(answered)}")
    with httpx.Client(**page.given) as client:
        while True:
            text, label = choose.randrange(1000), choose.choice([1, 2])
            given = {"who": who, "kind": "label", "text": text, "label": label}
            try:
                answer = client.post("/api/decide", json=given)
            except httpx.HTTPError:
                return
            if answer.status_code == 200:
                answered[answer.json()["seq"]] = (who, text, label)


def _spread(seconds: list[float], factor: float = 1.0, unit: str = "s") -> str:
    if not seconds:
        return "not measured"
    middle, worst = factor * statistics.median(seconds), factor * max(seconds)
    return f"median {middle:.2f} {unit}, at most {worst:.2f} {unit}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.label", description="Measure the labelling page.")
    parts = parser.add_subparsers(dest="part", required=True)
    refit = parts.add_parser("refit", help="from a label to the fit that knows it")
    refit.add_argument("--sets", nargs="+", default=[sets.DOCS, "r8", "20ng"], metavar="NAME")
    refit.add_argument("--number", type=int, default=40, metavar="N", help="labels per set")
    refit.add_argument("--pause", type=float, default=3.0, metavar="S", help="seconds that somebody reads a text")
    opened = parts.add_parser("open", help="a large project")
    opened.add_argument("--number", type=int, default=100_000, metavar="N", help="texts")
    kills = parts.add_parser("kills", help="labels lost when the process is killed")
    kills.add_argument("--number", type=int, default=200, metavar="N", help="kills")
    options = parser.parse_args()
    print("\n".join(machine_lines(machine())[:3]), flush=True)
    if options.part == "refit":
        for name in options.sets:
            measure_refit(name, options.number, options.pause)
    else:
        {"open": measure_open, "kills": measure_kills}[options.part](options.number)


if __name__ == "__main__":
    main()
