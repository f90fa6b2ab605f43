"""Measure `wgcn serve` against an empty Starlette endpoint: ``python -m benchmarks.serve``, ``--overload 60``.

``--answers`` measures large answers alone: how long `/health` takes beside four and twenty requests for the
probabilities of 3,000 classes, the memory, and how long the server takes to end after SIGTERM.

Both are started in the same way, and asked in turn by the same client, which is a process of its own and only counts.
Texts in batches are compared with `TextModel.predict` in a process without a server. All traffic stays on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from benchmarks.measure import Cell, Target, machine, machine_lines, run_cell, table, whole
from benchmarks.serve_cells import BATCH, N_CLASSES, in_process, large, load, many_classes, prepare

ROUNDS, SECONDS = 7, 1.5
CONNECTIONS, BATCH_CONNECTIONS = 32, 4
QUEUE, OVERLOAD = 64, 10  # requests at a time, and how many times as many are sent
SINGLE_SHARE, BATCH_SHARE = 0.6, 0.5
GROWTH_MB = 200  # of the server's memory under overload, and by large answers
LARGE, LARGE_TEXTS = (4, 20), (500, 1000)  # requests at a time for large answers, and their texts
HEALTH_MS, END_SECONDS = 500, 30


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve", description=__doc__)
    parser.add_argument("--model", metavar="DIR", help="folder of a model (default: fitted to r8 or the docs corpus)")
    parser.add_argument("--overload", type=float, default=0, metavar="SECONDS", help="also overload it for so long")
    parser.add_argument("--answers", action="store_true", help="measure large answers, and nothing else")
    options = parser.parse_args()
    print("\n".join(machine_lines(machine())), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if options.answers:
            return answers(run_cell("a model", many_classes, folder=folder)["model"])
        data = run_cell("texts", prepare, folder=folder, model=options.model)
        empty, serve = Process("-m", "benchmarks.serve_empty"), served(data["model"])
        try:
            wrong = compare(empty, serve, data)
        finally:
            empty.stop()
            serve.stop()
        if options.overload:
            serve = served(data["model"])
            try:
                wrong += overload(serve, data, options.overload)
            finally:
                serve.stop()
    for error in wrong:
        print(f"Error: {error}", file=sys.stderr)
    return 1 if wrong else 0


def compare(empty: Process, serve: Process, data: Cell) -> list[str]:
    """Print the shares of an empty endpoint and of a process without a server; return what went wrong.

    Shares are medians over rounds, of texts or requests per second, and per second of CPU time: on a busy machine a
    process with more threads gets more of it.
    """
    ways = {
        "empty": (empty, "/", 1, {"connections": CONNECTIONS, "bodies": data["single"]}),
        "single": (serve, "/v1/predict", 1, {"connections": CONNECTIONS, "bodies": data["single"]}),
        "batch": (serve, "/v1/predict", BATCH, {"connections": BATCH_CONNECTIONS, "bodies": data["batch"]}),
    }
    rates: dict[str, list[float]] = {name: [] for name in (*ways, "plain")}
    costs: dict[str, list[float]] = {name: [] for name in rates}  # seconds of CPU time
    wrong = []
    for place in range(ROUNDS):
        for name, (process, path, size, given) in ways.items():
            before, label = process.cpu_seconds(), f"{name}, {place + 1} of {ROUNDS}"
            cell = run_cell(label, load, port=process.port, path=path, seconds=SECONDS, **given)
            n = max(cell["answered"], 1) * size
            rates[name].append(n / cell["seconds"])
            costs[name].append((process.cpu_seconds() - before) / n)
            wrong += [f"{name}: {cell['statuses']}, {cell['lost']} lost"] * (cell["answered"] < cell["sent"])
        cell = run_cell("a process", in_process, model=data["model"], texts=data["texts"], seconds=SECONDS)
        rates["plain"].append(cell["rate"])
        costs["plain"].append(cell["cpu"])
    rows, targets = [], []
    for name, base, shown, least in (
        ("single", "empty", "one text per request, beside an empty endpoint", SINGLE_SHARE),
        ("batch", "plain", f"{BATCH} texts per request, beside TextModel.predict", BATCH_SHARE),
    ):
        share = median(a / b for a, b in zip(rates[name], rates[base], strict=True))
        by_cpu = median(costs[base]) / median(costs[name])
        rows.append((shown, whole(median(rates[name])), whole(median(rates[base])), f"{share:.2f}", f"{by_cpu:.2f}"))
        targets.append(Target(f"{name}: at least {least:.0%}", f"{share:.0%}, by CPU {by_cpu:.0%}", share >= least))
    print("\n" + table(("", "per second", "beside", "share", "by CPU time"), rows) + "\n")
    print("\n".join(map(str, targets)))
    return wrong


def overload(serve: Process, data: Cell, seconds: float) -> list[str]:
    """Send ten times as many requests as are let in, with batches of texts; return what went wrong."""
    given = {"port": serve.port, "path": "/v1/predict", "bodies": data["batch"]}
    most = run_cell("before overload", load, seconds=5, connections=BATCH_CONNECTIONS, **given)
    before = serve.peak_megabytes()
    cell = run_cell("overload", load, seconds=seconds, connections=QUEUE * OVERLOAD, **given)
    growth, statuses = serve.peak_megabytes() - before, cell["statuses"]
    answered, refused = statuses.get("200", 0), statuses.get("503", 0)
    print(f"\nOverload by {QUEUE * OVERLOAD} connections for {seconds:g} s: {cell['sent']:,} requests sent, ", end="")
    print(f"{answered:,} answered, {refused:,} refused, {cell['lost']:,} lost.")
    print(f"Answered per second: {answered / seconds:.0f}, without overload {most['answered'] / 5:.0f}.")
    print(f"Latency: median {cell['median_ms']:.0f} ms, 99 % {cell['p99_ms']:.0f} ms.")
    print(Target(f"memory grows by at most {GROWTH_MB} MB", f"{growth:.0f} MB on {before:.0f}", growth <= GROWTH_MB))
    wrong = ["the server has ended"] * (serve.process.poll() is not None)
    others = {status: n for status, n in statuses.items() if status not in ("200", "503")}
    return wrong + [f"overload: {others}, {cell['lost']} lost"] * bool(others or cell["lost"])


def answers(model: str) -> int:
    """Ask for large answers, several at a time, and stop the server while it makes them."""
    rows, slowest, most, ended = [], 0.0, 0.0, 0.0
    for n_texts in LARGE_TEXTS:
        for n, stops in ((LARGE[0], False), (LARGE[1], False), (LARGE[1], True)):
            serve, ends = served(model), list[float]()
            watch = threading.Thread(target=lambda serve=serve, ends=ends: ends.append(serve.ended()))
            watch.start()
            before, pid = serve.peak_megabytes(), serve.process.pid if stops else None
            cell = run_cell(f"{n} requests", large, port=serve.port, n=n, n_texts=n_texts, stopped=pid)
            growth = 0.0 if stops else serve.peak_megabytes() - before
            serve.process.terminate()
            watch.join()
            end = ends[0] - cell["signal"] if stops else 0.0
            slowest, most, ended = max(slowest, cell["health_ms"]), max(most, growth), max(ended, end)
            figures = f"{cell['median_ms']:.1f}", f"{cell['health_ms']:.0f}", "" if stops else f"{growth:.0f}"
            statuses = ", ".join(f"{k} of {status}" for status, k in sorted(cell["statuses"].items()))
            rows.append((f"{n} of {n_texts} texts", statuses, *figures, f"{end:.1f}" if stops else ""))
    head = "requests", "answers", "/health, median (ms)", "slowest (ms)", "memory (MB)", "end after SIGTERM (s)"
    print(f"\nProbabilities of {N_CLASSES:,} classes:\n\n{table(head, rows)}\n")
    wishes = (
        Target(f"/health within {HEALTH_MS} ms", f"{slowest:.0f} ms", slowest <= HEALTH_MS),
        Target(f"memory grows by at most {GROWTH_MB} MB", f"{most:.0f} MB", most <= GROWTH_MB),
        Target(f"it ends within {END_SECONDS} s", f"{ended:.1f} s", ended <= END_SECONDS),
    )
    print("\n".join(map(str, wishes)))
    return 0 if all(wish.met for wish in wishes) else 1


# Servers


class Process:
    """A server as a process, which prints its address."""

    def __init__(self, *arguments: str) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen([sys.executable, *arguments], stderr=self._log, text=True)
        for _ in range(600):
            self._log.seek(0)
            if found := re.search(r"at http://127\.0\.0\.1:(\d+)", self._log.read()):
                self.port = int(found[1])
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self._log.seek(0)
        sys.exit(f"The server did not start: {self._log.read()}")

    def cpu_seconds(self) -> float:
        """Return the CPU time that the process has taken so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_megabytes(self) -> float:
        """Return the peak memory of the process so far."""
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found
        return int(found[1]) / 1000

    def ended(self) -> float:
        """Return when the process has ended."""
        self.process.wait(300)
        return time.time()

    def stop(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait(60)
        self._log.close()


def served(model: str) -> Process:
    return Process("-m", "wgcn", "serve", model, "--port", "0", "--queue", str(QUEUE))


if __name__ == "__main__":
    sys.exit(main())
