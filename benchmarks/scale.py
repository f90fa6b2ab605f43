"""Text that does not fit into memory: ``python -m benchmarks.scale PART``.

counting    the word graph of 10^7 and of 10^9 tokens, out of core
dask        the same with one and with two processes of a Dask cluster
fitting     a classifier of 10^6 and of 10^7 short documents, out of core
kills       kill -9 at random moments of a build, which then goes on
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks import scale_fitting
from benchmarks.measure import Cell, Section, Target, in_seconds, machine, machine_lines, run_cell, whole

SIZES = (10**7, 10**9)  # tokens
LIMIT_GROWTH = 1.5  # times the time per token, from the first size to the last
LIMIT_GIGABYTES = 6.0
MEMORY = "4GB"
WORKERS = 2
RULES = {"min_count": 5, "min_pairs": 5, "top_k": 100}  # of the graph: what is kept has to fit memory

# The corpus: Zipf's law with topics, in words of six letters, so that texts are made as arrays of bytes. 6.4 million
# tokens have 2.8 pairs per token in windows of 20; 20NG, with 5.9 million, has 3.0.
SEED = 0
N_TYPES = 300_000
EXPONENT = 1.2
N_TOPICS = 50
TOPIC_TYPES = 1_000
TOPIC_SHARE = 0.4  # of the tokens, from the words of the topic of the document
REPEATED_SHARE = 0.4  # of the tokens, that say an earlier word of the document again
LENGTHS = (20, 500)  # tokens of a document, log-uniform
SHARD_TOKENS = 5_000_000
LETTERS = 6


def words_of(random_words: Any) -> Any:
    """Return words, each of six letters and a blank, as an array of seven bytes each."""
    import numpy as np

    numbers = random_words.choice(26**LETTERS, N_TYPES, replace=False)
    letters = np.full((N_TYPES, LETTERS + 1), ord(" "), np.uint8)
    for place in range(LETTERS):
        letters[:, place] = ord("a") + numbers // 26**place % 26
    return letters.view(f"V{LETTERS + 1}").ravel()


def shard_bytes(number: int, n_tokens: int) -> bytes:
    """Return a shard of about so many tokens, one document per line; it depends on its number alone."""
    import numpy as np

    common = np.random.default_rng(SEED)  # words and topics are those of all shards
    words = words_of(common)
    topics = np.array([common.choice(np.arange(100, N_TYPES), TOPIC_TYPES, replace=False) for _ in range(N_TOPICS)])
    own = np.random.default_rng([SEED, number])

    def ranks(n_types: int, n: int) -> Any:
        """Draw numbers from 0 on by Zipf's law: those of a continuous power law, rounded down."""
        tail = 1 - EXPONENT
        return ((1 - own.random(n) * (1 - (n_types + 1.0) ** tail)) ** (1 / tail)).astype(np.int64) - 1

    low, high = LENGTHS
    mean = (high - low) / np.log(high / low)
    lengths = (low * ((high + 1) / low) ** own.random(max(int(n_tokens / mean), 1))).astype(np.int64)
    n, ends = int(lengths.sum()), np.cumsum(lengths)
    ids, of_topic = ranks(N_TYPES, n), own.random(n) < TOPIC_SHARE
    topic_of = np.repeat(own.integers(N_TOPICS, size=len(lengths)), lengths)[of_topic]
    ids[of_topic] = topics[topic_of, ranks(TOPIC_TYPES, len(topic_of))]
    places = np.arange(n) - np.repeat(ends - lengths, lengths)  # in the document
    repeated = np.flatnonzero((own.random(n) < REPEATED_SHARE) & (places > 0))
    back = (own.random(len(repeated)) * places[repeated]).astype(np.int64) + 1
    ids[repeated] = ids[repeated - back]
    text = words[ids].view(np.uint8).reshape(n, LETTERS + 1)
    text[ends - 1, LETTERS] = ord("\n")
    made: bytes = text.tobytes()
    return made


def write_shards(folder: Path, n_tokens: int, shard_tokens: int = SHARD_TOKENS) -> list[Path]:
    """Write a corpus of about so many tokens."""
    files = []
    for number in range(max(round(n_tokens / shard_tokens), 1)):
        files.append(folder / f"{number:04}.txt")
        files[-1].write_bytes(shard_bytes(number, min(shard_tokens, n_tokens)))
    return files


@contextmanager
def peak_of_processes(seconds: float = 0.2) -> Iterator[Callable[[], float]]:
    """Watch this process and those it started; what is given returns their highest memory together, in megabytes."""
    peak, ended = [0], threading.Event()

    def highest() -> float:
        peak[0] = max(peak[0], sum(map(resident_bytes, processes(os.getpid()))))
        return peak[0] / 1e6

    def watch() -> None:
        while not ended.wait(seconds):
            highest()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    yield highest
    ended.set()
    thread.join()


def processes(first: int) -> list[int]:
    """Return a process and all that it started, by their ids."""
    found = [first]
    for process in found:  # which grows
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            with suppress(OSError):  # it has ended
                found += map(int, children.read_text().split())
    return found


def resident_bytes(process: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def build(files: list[Path], output: Path, memory: str, workers: int, scheduler: str | None = None) -> tuple[Any, int]:
    """Build the graph of files; return it, and how many bytes were in the work folder."""
    from wgcn import EdgeRules, VocabularyRules
    from wgcn.scale.build import Resources, graph_from_files
    from wgcn.scale.store import WorkFolder

    work = output.with_name("work")
    resources = Resources(memory, scheduler, workers, work, keep=True)
    words, edges = VocabularyRules(min_count=RULES["min_count"]), EdgeRules(0.0, RULES["min_pairs"], RULES["top_k"])
    graph = graph_from_files(files, output, resources, rules=words, edges=edges)
    disk = WorkFolder(work).size()
    shutil.rmtree(work)
    return graph, disk


def count_corpus(
    size: int, folder: str, memory: str = MEMORY, workers: int = WORKERS, scheduler: str | None = None
) -> Cell:
    """Make a corpus, and build its graph out of core; everything is removed afterwards."""
    from wgcn.base.progress import Stage, reporting

    with tempfile.TemporaryDirectory(dir=folder, prefix="wgcn-scale-") as place:
        corpus = Path(place, "corpus")
        corpus.mkdir()
        begin = time.perf_counter()
        files = write_shards(corpus, size)
        made = time.perf_counter() - begin
        warm_up(Path(place))
        stages: dict[str, float] = {}
        cpu_stages: dict[str, float] = {}

        def report(stage: Stage) -> None:
            used = cpu_stages.get(stage.name, 0.0)
            if stage.seconds is None:
                cpu_stages[stage.name] = used - time.process_time()
            else:
                cpu_stages[stage.name] = used + time.process_time()
                stages[stage.name] = stages.get(stage.name, 0.0) + stage.seconds
                print(f"{stage} (CPU {cpu_stages[stage.name]:.1f} s)", file=sys.stderr, flush=True)

        with peak_of_processes() as peak, reporting(report):
            begin, cpu = time.perf_counter(), time.process_time()
            graph, disk = build(files, Path(place, "graph"), memory, workers, scheduler)
            seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
            peak_mb = peak()
        text = sum(file.stat().st_size for file in files)
        info = graph.info()
        return {
            "size": size,
            "tokens": text // (LETTERS + 1),
            "seconds": seconds,
            "cpu_seconds": cpu,  # of this process: without those of a cluster
            "stages": stages,
            "cpu_stages": cpu_stages,
            "made_seconds": made,
            "peak_mb": peak_mb,
            "disk_mb": disk / 1e6,
            "text_mb": text / 1e6,
            "words": info.nodes,
            "edges": info.edges,
            "workers": workers,
            "scheduler": scheduler or "threads",
            "digest": graph.save(Path(place, "graph")),
        }


def warm_up(folder: Path) -> None:
    """Compile and load all that is needed."""
    place = folder / "warm"
    place.mkdir()
    build(write_shards(place, 20_000), place / "graph", "4GB", 1)


def measure_counting(sizes: tuple[int, ...], folder: str, memory: str) -> Section:
    cells = [
        run_cell(f"counting: {size:,} tokens", count_corpus, size=size, folder=folder, memory=memory) for size in sizes
    ]
    header = ("tokens", "text MB", "words", "edges", "seconds", "µs/token", "CPU µs/token", "peak MB", "disk MB")
    rows = [
        (
            whole(cell["tokens"]),
            whole(cell["text_mb"]),
            whole(cell["words"]),
            whole(cell["edges"]),
            in_seconds(cell["seconds"]),
            *(f"{1e6 * cell[what] / cell['tokens']:.3f}" for what in ("seconds", "cpu_seconds")),
            whole(cell["peak_mb"]),
            whole(cell["disk_mb"]),
        )
        for cell in cells
    ]
    names = list(cells[-1]["stages"])
    remarks = [
        f"The word graph of text in shards of {SHARD_TOKENS:,} tokens, window 20, with --memory {memory} on {WORKERS} "
        f"threads: {RULES}. Peak MB is the memory of all processes, and disk MB the work folder at its end.",
        *(
            f"{whole(cell['tokens'])} tokens: "
            + ", ".join(
                f"{name.lower()} {in_seconds(cell['stages'][name])} s ({in_seconds(cell['cpu_stages'][name])} s CPU)"
                for name in names
                if name in cell["stages"]
            )
            for cell in cells
        ),
    ]
    few, many = ([cell[what] / cell["tokens"] for what in ("seconds", "cpu_seconds")] for cell in (cells[0], cells[-1]))
    growth, cpu_growth = (after / before for before, after in zip(few, many, strict=True))
    peak = cells[-1]["peak_mb"] / 1e3
    targets = [
        Target(
            f"time per token at most {LIMIT_GROWTH:g} times that of {sizes[0]:,} tokens",
            f"{growth:.2f} times ({cpu_growth:.2f} times the CPU time, if other work made this machine slow)",
            growth <= LIMIT_GROWTH,
        ),
        Target(f"at most {LIMIT_GIGABYTES:g} GB", f"{peak:.2f} GB", peak <= LIMIT_GIGABYTES),
    ]
    return Section("Counting out of core", header, rows, cells, targets, remarks)


def measure_dask(sizes: tuple[int, ...], folder: str, memory: str) -> Section:
    how = {"size": sizes[0], "folder": folder, "memory": memory}
    cells = [run_cell("dask: threads", count_corpus, **how)]
    for n in (1, 2):
        cells.append(run_cell(f"dask: {n} workers", count_corpus, **how, workers=n, scheduler="local"))
    header = ("workers", "kind", "tokens", "seconds", "peak MB", "digest")
    rows = [
        (
            str(cell["workers"]),
            cell["scheduler"],
            whole(cell["tokens"]),
            in_seconds(cell["seconds"]),
            whole(cell["peak_mb"]),
            cell["digest"][:12],
        )
        for cell in cells
    ]
    speed_up = cells[1]["seconds"] / cells[2]["seconds"]
    errors = [] if len({cell["digest"] for cell in cells}) == 1 else ["the graphs are not the same"]
    remarks = [f"Two workers take {1 / speed_up:.2f} of the time of one (a speed-up of {speed_up:.2f})."]
    return Section("Counting on Dask", header, rows, cells, [], remarks, errors)


def measure_kills(number: int, folder: str, seed: int = SEED) -> Section:
    """Kill a small build at random moments until it has been killed so often; each goes on until it is done."""
    from wgcn import Corpus, EdgeRules, VocabularyRules, WordGraph
    from wgcn.io.read import read_texts

    chance, errors, n_kills, n_builds, worst = random.Random(seed), list[str](), 0, 0, 0
    with tempfile.TemporaryDirectory(dir=folder, prefix="wgcn-kills-") as name:
        place = Path(name)
        (place / "corpus").mkdir()
        files = write_shards(place / "corpus", 60_000, 10_000)
        words, edges = VocabularyRules(min_count=RULES["min_count"]), EdgeRules(0.0, RULES["min_pairs"], RULES["top_k"])
        corpus = Corpus.from_texts((text for file in files for text in read_texts(file)), rules=words)
        expected = WordGraph.from_corpus(corpus, rules=edges).save(place / "expected")
        begin = time.perf_counter()
        attempt(files, place / "first", None)
        duration = time.perf_counter() - begin
        while n_kills < number:
            n_builds += 1
            here, killed = place / f"{n_builds}", 0
            while not attempt(files, here, chance.uniform(0, duration)) and not is_done(here):
                killed += 1
            n_kills += killed
            digest = json.loads((here / "graph" / "config.json").read_bytes())["digest"]
            if digest != expected:
                errors.append(f"build {n_builds} gave {digest}, not {expected}")
            started = (here / "log").read_text().split()
            repeated = len(started) - len(set(started))
            worst = max(worst, repeated - killed * WORKERS)
            if repeated > killed * WORKERS:
                errors.append(f"build {n_builds}: {repeated} tasks were repeated after {killed} kills")
            shutil.rmtree(here)
    remarks = [
        f"{n_kills} kills of {n_builds} builds of {len(files)} shards, at random moments of the {duration:.2f} s that "
        f"one takes. Each went on until it was done. {len(errors)} gave another graph than in memory, or repeated more "
        f"than {WORKERS} tasks per kill, one per worker.",
    ]
    return Section("Kills", (), (), [{"kills": n_kills, "builds": n_builds}], [], remarks, errors)


def attempt(files: list[Path], here: Path, seconds: float | None) -> bool:
    """Build in a process of its own, which is killed after some seconds; return whether it was done before."""
    child = os.fork()
    if child == 0:
        try:
            logged_build(files, here)
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    begin = time.perf_counter()
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if seconds is not None and time.perf_counter() - begin >= seconds:
            os.kill(child, signal.SIGKILL)  # it may have ended, but it is still there
            break
        time.sleep(0.001)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit("A build failed; its own message stands above.")
    return os.WIFEXITED(status)


def is_done(here: Path) -> bool:
    """Whether a build had ended when it was killed: the graph is saved, and there is nothing to go on from."""
    return (here / "graph" / "config.json").exists() and not [*here.glob("graph.work/done/*.json")]


def logged_build(files: list[Path], here: Path) -> None:
    """Build, and write down each task that begins."""
    from wgcn import EdgeRules, VocabularyRules
    from wgcn.scale import corpus, store
    from wgcn.scale.build import Resources, graph_from_files
    from wgcn.scale.store import Outputs
    from wgcn.scale.workers import Limits

    here.mkdir(exist_ok=True)

    class Logged(Outputs):
        def __init__(self, work: Any, task: str) -> None:
            super().__init__(work, task)
            if task != "places":  # these are no task, but written by each build
                with (here / "log").open("a") as log:
                    log.write(f"{task}\n")

    for module in (corpus, store):
        module.Outputs = Logged  # type: ignore[attr-defined]
    Limits.of = classmethod(lambda cls, *_: cls(characters=30_000, tokens=4_000, merged=20_000, fan_in=4))  # type: ignore
    words, edges = VocabularyRules(min_count=RULES["min_count"]), EdgeRules(0.0, RULES["min_pairs"], RULES["top_k"])
    graph_from_files(files, here / "graph", Resources(MEMORY, None, WORKERS), rules=words, edges=edges)


PARTS: dict[str, Callable[[argparse.Namespace], Section]] = {
    "counting": lambda options: measure_counting(options.sizes or SIZES, options.folder, options.memory),
    "dask": lambda options: measure_dask(options.sizes or SIZES, options.folder, options.memory),
    "fitting": lambda options: scale_fitting.measure_fitting(
        options.sizes or scale_fitting.SIZES, options.folder, options.memory
    ),
    "kills": lambda options: measure_kills(options.number, options.folder),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="Measure work out of core.")
    parser.add_argument("part", choices=PARTS, help="what to measure")
    parser.add_argument(
        "--sizes", type=token_numbers, metavar="N,...", help="tokens (default: 1e7,1e9), or documents (1e6,1e7)"
    )
    parser.add_argument(
        "--memory", default=MEMORY, metavar="SIZE", help="the limit that is given (default: %(default)s)"
    )
    parser.add_argument("--folder", default=tempfile.gettempdir(), metavar="DIR", help="for texts and files in between")
    parser.add_argument("--number", type=int, default=200, metavar="N", help="of kills (default: %(default)s)")
    options = parser.parse_args()
    print("\n".join(["# Out of core", "", *machine_lines(machine())]), flush=True)
    section = PARTS[options.part](options)
    print(f"\n{section}", flush=True)
    return 1 if section.errors else 0


def token_numbers(value: str) -> tuple[int, ...]:
    return tuple(int(float(number)) for number in value.split(","))


if __name__ == "__main__":
    from benchmarks import scale  # whose functions know in which module they are: cells run in processes of their own

    sys.exit(scale.main())
