"""Measure `wgcn serve` against an empty Starlette endpoint: ``python -m benchmarks.serve``, ``--overload 60``.

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
import time
from pathlib import Path
from statistics import median

from benchmarks.measure import Cell, Target, machine, machine_lines, run_cell, table, whole
from benchmarks.serve_cells import BATCH, in_process, load, prepare

ROUNDS, SECONDS = 7, 1.5
CONNECTIONS, BATCH_CONNECTIONS = 32, 4
QUEUE, OVERLOAD = 64, 10  # requests at a time, and how many times as many are sent
SINGLE_SHARE, BATCH_SHARE = 0.6, 0.5
GROWTH_MB = 200  # of the server's memory under overload


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve", description=__doc__)
    parser.add_argument("--model", metavar="DIR", help="folder of a model (default: fitted to r8 or the docs corpus)")
    parser.add_argument("--overload", type=float, default=0, metavar="SECONDS", help="also overload it for so long")
    options = parser.parse_args()
    print("\n".join(machine_lines(machine())), flush=True)
    with tempfile.TemporaryDirectory() as folder:
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
    """Print the shares of an empty endpoint and of a process without a server; return what went wrong."""
    single = {"seconds": SECONDS, "connections": CONNECTIONS, "bodies": data["single"]}
    batch = {"seconds": SECONDS, "connections": BATCH_CONNECTIONS, "bodies": data["batch"]}
    rates: dict[str, list[float]] = {"empty": [], "single": [], "batch": [], "in process": []}
    cpu: dict[str, list[float]] = {"empty": [], "single": []}
    wrong = []
    for place in range(ROUNDS):
        for name, process, path, given in (
            ("empty", empty, "/", single),
            ("single", serve, "/v1/predict", single),
            ("batch", serve, "/v1/predict", batch),
        ):
            before = process.cpu_seconds()
            cell = run_cell(f"{name}, {place + 1} of {ROUNDS}", load, port=process.port, path=path, **given)
            rates[name].append(cell["answered"] / cell["seconds"] * (BATCH if name == "batch" else 1))
            if name in cpu:
                cpu[name].append((process.cpu_seconds() - before) / max(cell["answered"], 1))
            wrong += [f"{name}: {cell['statuses']}, {cell['lost']} lost"] * (cell["answered"] < cell["sent"])
        cell = run_cell(
            f"in process, {place + 1} of {ROUNDS}",
            in_process,
            model=data["model"],
            texts=data["texts"],
            seconds=SECONDS,
        )
        rates["in process"].append(cell["rate"])
    middle = {name: median(values) for name, values in rates.items()}
    rows = [
        ("empty endpoint", whole(middle["empty"]), "1.00"),
        ("one text per request", whole(middle["single"]), f"{middle['single'] / middle['empty']:.2f}"),
        ("TextModel.predict, texts", whole(middle["in process"]), "1.00"),
        (f"{BATCH} texts per request, texts", whole(middle["batch"]), f"{middle['batch'] / middle['in process']:.2f}"),
    ]
    print("\n" + table(("", "per second", "share"), rows))
    shares = (
        median(s / e for s, e in zip(rates["single"], rates["empty"], strict=True)),
        median(b / p for b, p in zip(rates["batch"], rates["in process"], strict=True)),
    )
    work = median(cpu["empty"]) / median(cpu["single"])
    print(f"\nMedian of {ROUNDS} rounds: shares of each round {shares[0]:.2f} and {shares[1]:.2f}.")
    print(f"CPU time of an empty request is {work:.2f} of that of one text.\n")
    for wish, share, least in (("single", shares[0], SINGLE_SHARE), ("batch", shares[1], BATCH_SHARE)):
        print(Target(f"{wish}: at least {least:.0%}", f"{share:.0%}", share >= least))
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

    def stop(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait(60)
        self._log.close()


def served(model: str) -> Process:
    return Process("-m", "wgcn", "serve", model, "--port", "0", "--queue", str(QUEUE))


if __name__ == "__main__":
    sys.exit(main())
