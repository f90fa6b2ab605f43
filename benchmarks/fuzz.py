"""Damage saved models, graphs, counts, embedders, checkpoints, results and projects: ``python -m benchmarks.fuzz``.

Whatever a file holds, it is loaded and can be used, or it is refused with an error of the package: no other exception,
no probability that is not a number, nothing that takes longer than five seconds, and no load that takes more memory
than four times the files and a constant (`benchmarks.large` has large folders). The mutations are those of
`benchmarks.mutations`; each is decided by the seed, the specimen and a number, so it can be repeated alone. The digests
of more than half of them are right.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import multiprocessing
import os
import resource
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks.mutations import Mutant, Specimen, mutate
from wgcn.base.errors import WGCNError

SECONDS = 5.0  # that anything may take
CONSTANT = 64 << 20  # bytes of memory beside four times the files
_SPARE = 4 << 30  # bytes of address space beyond which a process is stopped
_SHOWN = 10  # failures
_CHUNK = 500  # mutations that a process is given at a time
TEXTS = ["red wine and white wine", "a fast red car", "merlot", "", "nothing known here", "new york city wine " * 60]

WINE = "red wine|white wine|dry merlot|a glass of wine|old red merlot|sweet white wine|wine of new york"
PROJECT = "project.sqlite"
CARS = "fast car|slow red car|turbo engine|a fast engine|new car of york|old car wheels|turbo wheels"


class Hang(BaseException):
    """Something takes too long; not an Exception, so that nothing but the harness catches it."""


class WrongError(Exception):
    """Something was loaded that gives wrong answers."""


@dataclass
class Tally:
    """What came of the mutations of a specimen."""

    number: int = 0
    signed: int = 0
    loaded: int = 0
    refused: int = 0
    foreign: int = 0
    slowest: float = 0.0  # seconds
    most_memory: float = 0.0  # MiB of a load beyond four times its files
    failures: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Add those of another process."""
        for name in ("number", "signed", "loaded", "refused", "foreign"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.slowest, self.most_memory = max(self.slowest, other.slowest), max(self.most_memory, other.most_memory)
        self.failures += other.failures
        self.kinds.update(other.kinds)


# ------------------------------------------------------------------------------------------ what is damaged


def specimens(folder: Path) -> dict[str, Specimen]:
    """Fit one small thing of each kind, save it and return its files."""
    from wgcn import Corpus, WGCNEmbedder, WGCNTextClassifier, WordGraph
    from wgcn.graph.counts import WindowCounts

    wine, cars = WINE.split("|"), CARS.split("|")
    texts = [
        f"{text} {word}"
        for text in wine + cars
        for word in ("one", "two", "three", "four", "five", "six", "seven", "eight")
    ]
    labels = ["drink" if any(text.startswith(each) for each in wine) else "drive" for text in texts]
    several = [[label, "old"] if "old" in text else [label] for text, label in zip(texts, labels, strict=True)]
    fitted: dict[str, Any] = {
        "model": WGCNTextClassifier(stop_words=["of"], n_jobs=1).fit(texts, labels).model_,
        "model-several": WGCNTextClassifier(ngram_range=(1, 3), n_jobs=1).fit(texts, several).model_,
        "model-few": WGCNTextClassifier(subwords=0, n_jobs=1)
        .fit(texts[::9], [int(label == "drive") for label in labels[::9]])
        .model_,
        "embedder": WGCNEmbedder(n_components=4, n_jobs=1).fit(texts).model_,
    }
    fitted["model-extended"] = fitted["model"].extend(["merlot barolo wine", "barolo wine glass"])
    corpus = Corpus.from_texts(texts)
    fitted["counts"] = WindowCounts.from_corpus(corpus, 3, n_jobs=1)
    fitted["graph"] = WordGraph.from_corpus(corpus, window=3, n_jobs=1)
    if find_spec("torch") is not None:
        fitted["model-network"] = _network_model(texts, labels)
    found = {}
    for name, thing in fitted.items():
        thing.save(folder / name)
        found[name] = Specimen(name.partition("-")[0], content(folder / name))
    for name, session in _sessions(texts, labels).items():
        session.save(folder / name, session=True)
        found[name] = Specimen("session", content(folder / name))
    if find_spec("torch") is not None:
        found["checkpoint"] = Specimen("checkpoint", {"checkpoint": checkpoint(folder / "state")})
    if find_spec("wgcn_paper") is not None:
        found["results"] = Specimen("results", {"accuracy.json": _results(folder / "results")})
    if find_spec("filelock") is not None:
        found["project"] = Specimen("project", {PROJECT: _project(folder / PROJECT)})
    return found


def _sessions(texts: list[str], labels: list[str]) -> dict[str, Any]:
    """Return estimators that can go on: of few labels and a teacher, of seeds, and of a class per text or several."""
    from wgcn import WGCNTextClassifier

    few, seeds = texts[::4], {"drink": ["wine"], "drive": ["car", "-old"]}
    some = [label if i % 3 else None for i, label in enumerate(labels[::4])]
    several = [label and ([label, "old"] if "old" in text else [label]) for text, label in zip(few, some, strict=True)]
    weighted = WGCNTextClassifier(class_weight={"drink": 2.0, "drive": 1}, stop_words=["of"], n_jobs=1)
    return {
        "session": weighted.fit(few, some, background=["a wine of no year"]),
        "session-seeds": WGCNTextClassifier(n_jobs=1).fit(few, seeds=seeds),
        "session-several": WGCNTextClassifier(n_jobs=1).fit(few, several),
    }


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _network_model(texts: list[str], labels: list[str]) -> Any:
    from wgcn.estimators.network import WGCNNetworkClassifier
    from wgcn.estimators.preparation import Preparation

    prepared = Preparation(n_jobs=1).prepare(texts)
    network = WGCNNetworkClassifier(hidden=4, max_epochs=5, device="cpu")
    network.fit(prepared.document_terms, labels, word_graph=prepared.word_graph)
    return prepared.text_model(network, {"model": "network"})


def training(n_words: int = 4, hidden: int = 2) -> Any:
    """Return a training of a small network that has not begun."""
    from scipy.sparse import csr_array

    from wgcn.network.settings import NetworkSettings, TrainingSettings
    from wgcn.network.training import Training

    settings = TrainingSettings(max_epochs=4, n_models=2, patience=9, device="cpu")
    each = np.ones(n_words, np.float32), np.arange(n_words)
    graph = csr_array((*each, np.arange(n_words + 1)), shape=(n_words, n_words))
    documents = csr_array((*each, np.linspace(0, n_words, 21).astype(np.int64)), shape=(20, n_words))
    if n_words == 4:
        documents = csr_array(np.tile(np.eye(4, dtype=np.float32), (5, 1)))
    return Training(graph, documents, np.arange(20) % 2, network=NetworkSettings(hidden=hidden), settings=settings)


class _Stop:
    def on_epoch(self, record: Any, model: object) -> None:
        if (record.epoch, record.network) == (2, 1):
            raise KeyboardInterrupt


def checkpoint(path: Path, **sizes: int) -> bytes:
    """Return the file of a training that was interrupted."""
    training(**sizes).train([_Stop()], path)
    return path.read_bytes()


def _results(folder: Path) -> bytes:
    from wgcn_paper.experiments.cells import Cell, Run
    from wgcn_paper.experiments.results import ResultFile

    def run(seed: int) -> Run:
        cell = Cell("r8", "corpus", ("linear-svc", "a method")[seed % 2], {"C": 2.0, "names": ["a"]}, seed, "row")
        figures = 0.5, 10, None, 3, 1.5, 2.0, 0.1, 100.0, None, "abc", "cpu", "2026-01-01", {"machine": "m"}
        return Run(cell, *figures, metrics={"n": [1, 2]}, right="qkA=")

    ResultFile(folder, "accuracy").add(map(run, range(4)))
    return (folder / "accuracy.json").read_bytes()


def _project(path: Path) -> bytes:
    """Return a labelling project in small pages, so that most bytes of it count."""
    from wgcn.label.decisions import Decision
    from wgcn.label.project import Project, create_project
    from wgcn.label.project_file import Estimate

    texts = [f"{text} number {n}" for n, text in enumerate([*WINE.split("|"), *CARS.split("|")])]
    labels = ["wine", "car", *[None] * 10, "wine", "car"]
    rows = [(text, label, [f"cell {text}"]) for text, label in zip(texts, labels, strict=True)]
    columns = {"names": ["note", "text", "label"], "text": 1, "label": 2}
    create_project(path, rows, {"name": "x.csv", "digest": "0", "tokenizer": "words"}, columns)
    with Project(path) as project:
        decisions = [("add", None, None, "old"), ("label", 3, 3, ""), ("skip", 4, None, ""), ("label", 5, 1, "")]
        decisions += [
            ("seeds", None, 1, '["turbo"]'),
            ("keep", 5, 1, ""),
            ("merge", None, 3, "2"),
            ("undo", None, None, ""),
        ]
        for decision in decisions:
            project.decide("me", Decision(*decision))
        project.keep_estimate(Estimate(5, 4, 3.0, 4))
    with closing(sqlite3.connect(path)) as database:
        database.executescript("PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM")
    return path.read_bytes()


# ------------------------------------------------------------------------------------------ how it is used


def _require(right: Any, what: str) -> None:
    if not np.all(right):
        raise WrongError(f"{what} wrong")


def _load_model(folder: Path) -> Any:
    from wgcn import TextModel

    return TextModel.load(folder)


def _use_model(model: Any, out: Path, random: Random) -> None:
    from wgcn.model.card import model_card

    likely = model.predict_proba(TEXTS)
    _require(np.isfinite(likely) & (likely >= 0) & (likely <= 1), "probabilities are")
    _require(model.scorer.multilabel or np.abs(likely.sum(axis=1) - 1) < 1e-6, "sums of probabilities are")
    model.predict(TEXTS)
    for why in model.explain(TEXTS[:3]):
        _require(np.isfinite(why.contributions), "contributions are")
    model.top_words(model.classes[0])
    model_card(model).encode()
    with suppress(WGCNError):
        _require(np.isfinite(model.out_of_scope(TEXTS)), "shares out of scope are")
        model.predict(TEXTS, abstain=0.6)
        model.predict_set(TEXTS, coverage=0.9)
    if random.random() < 0.1:
        larger = model.extend(["merlot chianti wine", "chianti wine"])
        _require(np.isfinite(larger.predict_proba(TEXTS)), "probabilities of a larger model are")
        larger.save(out)
    elif random.random() < 0.5:
        model.save(out)


def _load_session(folder: Path) -> Any:
    from wgcn import WGCNTextClassifier

    return WGCNTextClassifier.load(folder)


def _use_session(estimator: Any, out: Path, random: Random) -> None:
    if random.random() < 0.3:
        estimator.save(out, session=True)
    what = random.randrange(4)
    if what == 0:
        estimator.suggest(2)
    elif what == 1:
        _require([np.isfinite(doubt.score) for doubt in estimator.review(3)], "doubts are")
    else:
        given = [["drive"], ["drink"]] if estimator.model_.scorer.multilabel else ["drive", "drink"]
        texts = ["dry merlot one", "turbo wheels two"] if what == 2 else ["a new car", "sweet merlot"]
        estimator.update(texts, given)
    likely = estimator.predict_proba(TEXTS)
    _require(np.isfinite(likely) & (likely >= 0) & (likely <= 1), "probabilities are")


def _load_embedder(folder: Path) -> Any:
    from wgcn import EmbeddingModel

    return EmbeddingModel.load(folder)


def _use_embedder(model: Any, out: Path, random: Random) -> None:
    _require(np.isfinite(model.transform(TEXTS)), "rows are")
    if random.random() < 0.5:
        model.save(out)


def _load_graph(folder: Path) -> Any:
    from wgcn import WordGraph

    return WordGraph.load(folder)


def _use_graph(graph: Any, out: Path, random: Random) -> None:
    _require(np.isfinite(graph.info().density), "the density is")
    repr(graph)
    for word in (graph.vocabulary[0], graph.vocabulary[len(graph.vocabulary) - 1]):
        _require([np.isfinite(near.weight) for near in graph.neighbours(word)], "weights are")
    if random.random() < 0.5:
        graph.save(out)


def _load_counts(folder: Path) -> Any:
    from wgcn.graph.counts import WindowCounts

    return WindowCounts.load(folder)


def _use_counts(counts: Any, out: Path, random: Random) -> None:
    from wgcn import WordGraph

    _require(counts.merge(counts).n_windows == 2 * counts.n_windows, "merged counts are")
    counts.pair(counts.vocabulary[0], counts.vocabulary[len(counts.vocabulary) - 1])
    if random.random() < 0.2:
        graph = WordGraph.from_counts(counts, n_jobs=1)
        _require(np.isfinite(graph.adjacency.data), "weights of a graph are")
        graph.save(out)
    elif random.random() < 0.5:
        counts.save(out)


def _load_checkpoint(folder: Path, begun: Any = None) -> Any:
    from wgcn.network.checkpoint import Checkpoint

    begun = begun or training()
    Checkpoint(folder / "checkpoint", begun.fingerprint()).restore(begun)
    return begun


def _use_checkpoint(begun: Any, out: Path, random: Random) -> None:
    del out
    if begun.records and random.random() < 0.5:
        trained = begun.train()
        _require(
            [np.isfinite(part).all() for part in (trained.word_table, trained.class_weights, trained.bias)],
            "weights are",
        )


def _load_results(folder: Path) -> Any:
    from wgcn_paper.experiments.results import ResultFile

    return ResultFile(folder, "accuracy")


def _use_results(results: Any, out: Path, random: Random) -> None:
    from wgcn_paper.experiments.cells import rights
    from wgcn_paper.experiments.results import ResultFile

    del random
    runs = list(results.places.values())
    results.runs(run.cell for run in runs)
    for run in runs:
        rights(run)
    out.mkdir(exist_ok=True)
    (out / "accuracy.json").unlink(missing_ok=True)
    ResultFile(out, "accuracy").add(runs)


def _load_project(folder: Path) -> Any:
    from wgcn.label.project import Project

    for left in folder.glob(f"{PROJECT}-*"):  # of the last mutant
        left.unlink()
    return Project(folder / PROJECT)


def _use_project(project: Any, out: Path, random: Random) -> None:
    from wgcn.label.decisions import Decision
    from wgcn.label.page import LabelPage, write_labels
    from wgcn.label.project_file import Estimate
    from wgcn.serve.web import json_response

    with project:
        page = LabelPage(project, with_model=False)
        json_response(page.summary())
        for given in ({"query": "wine"}, {"show": "labelled"}, {"show": "skipped"}, {"limit": "3", "label": "1"}):
            json_response(page._listed(given))
        json_response(page._of_text(project.n_texts - 1))
        _require(len(list(project.all_texts())) == project.n_texts, "texts are")
        with suppress(WGCNError):
            label = project.decide("me", Decision("add", value=f"new {random.random()}")).decision.label
            project.decide("me", Decision("label", random.randrange(project.n_texts), label))
            project.decide("me", Decision("merge", label=label, value="1"))
        with suppress(WGCNError):
            project.decide("me", Decision("undo"))
        project.keep_estimate(Estimate(project.state.seq, 1, 0.5, 1))
        project.estimates()
        state = project.state
        _require(project.refresh() == state, "the state of the log is")
        out.mkdir(parents=True, exist_ok=True)
        write_labels(project, out / "labels.csv")
        with type(project)(project.path) as again:
            _require(again.state == state, "the state on the disk is")


LOADS: dict[str, Callable[[Path], Any]] = {
    "model": _load_model,
    "session": _load_session,
    "embedder": _load_embedder,
    "graph": _load_graph,
    "counts": _load_counts,
    "checkpoint": _load_checkpoint,
    "results": _load_results,
    "project": _load_project,
}
USES: dict[str, Callable[[Any, Path, Random], None]] = {
    "model": _use_model,
    "session": _use_session,
    "embedder": _use_embedder,
    "graph": _use_graph,
    "counts": _use_counts,
    "checkpoint": _use_checkpoint,
    "results": _use_results,
    "project": _use_project,
}


# ------------------------------------------------------------------------------------------ the work


_ends = 0.0  # when this process ends if nothing can be raised


def _watch(seconds: float) -> None:
    """Have the process end after at least so long; each change of the time takes a new thread, so it has slack."""
    global _ends
    if time.monotonic() + seconds > _ends:
        faulthandler.dump_traceback_later(2 * seconds, exit=True)
        _ends = time.monotonic() + 2 * seconds


def _unwatch() -> None:
    global _ends
    faulthandler.cancel_dump_traceback_later()
    _ends = 0.0


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise a Hang if something takes longer, and end the process if nothing can be raised."""

    def ring(*_: object) -> None:
        raise Hang(f"more than {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    _watch(6 * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def memory(name: str) -> int:
    """Return a number of bytes out of the status of the process; 0 where the system has none."""
    with suppress(OSError), Path("/proc/self/status").open("rb") as file:
        for line in file:
            if line.startswith(name.encode()):
                return int(line.split()[1]) << 10
    return 0


def reset_peak() -> None:
    with suppress(OSError), Path("/proc/self/clear_refs").open("wb") as file:
        file.write(b"5")


class Bench:
    """A folder in which mutants of specimens are put and used, one after the other."""

    def __init__(self, folder: Path, all_specimens: dict[str, Specimen], seed: int, seconds: float = SECONDS) -> None:
        self.folder, self.specimens, self.seed, self.seconds = folder, all_specimens, seed, seconds
        for name, specimen in all_specimens.items():
            (folder / name).mkdir(parents=True)
            for file, content in specimen.files.items():
                (folder / name / file).write_bytes(content)
        self.out = folder / "out"

    def run(self, name: str, numbers: range) -> Tally:
        """Damage and use a specimen once per number."""
        tally, specimen = Tally(), self.specimens[name]
        others = [other for other_name, other in self.specimens.items() if other_name != name]
        for number in numbers:
            random = Random(f"{self.seed} {name} {number}")
            mutant = mutate(specimen, others, random)
            self._put(name, mutant)
            started = time.perf_counter()
            try:
                self._use(name, specimen.use, random, tally)
            except WGCNError:
                tally.refused += 1
            except (Exception, Hang) as error:  # all that must not happen
                tally.foreign += 1
                tally.kinds[f"{type(error).__name__}: {str(error)[:100]}"] += 1
                trace = traceback.format_exc(limit=-3)
                again = f"python -m benchmarks.fuzz --seed {self.seed} --repeat {name}:{number}"
                tally.failures = [*tally.failures, f"{again}\n{mutant.what}, signed: {mutant.is_signed}\n{trace}"][
                    :_SHOWN
                ]
            tally.slowest = max(tally.slowest, time.perf_counter() - started)
            tally.number += 1
            tally.signed += mutant.is_signed
            self._put_back(name, mutant)
        _unwatch()
        return tally

    def _use(self, name: str, use: str, random: Random, tally: Tally) -> None:
        folder = self.folder / name
        size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
        reset_peak()
        before = memory("VmRSS")
        with limited(self.seconds):
            try:
                thing = LOADS[use](folder)
            finally:
                extra = memory("VmHWM") - before - 4 * size
                tally.most_memory = max(tally.most_memory, round(extra / 2**20, 1))
            if extra > CONSTANT:
                raise WrongError(f"{extra >> 20} MiB more than four times the files")
            tally.loaded += 1
            try:
                USES[use](thing, self.out / use, random)
            except WGCNError as error:
                tally.loaded -= 1
                if "could not be read back" in str(error):
                    raise WrongError(f"loaded, but not to be saved: {error}") from error
                raise

    def _put(self, name: str, mutant: Mutant) -> None:
        for file, content in mutant.files.items():
            (self.folder / name / file).write_bytes(content)
        for file, kind in mutant.odd.items():
            path = self.folder / name / file
            path.unlink()
            if kind == "pipe":
                os.mkfifo(path)
            elif kind == "folder":
                path.mkdir()
            elif kind != "none":
                path.symlink_to(path.name if kind == "link to itself" else "/dev/zero")

    def _put_back(self, name: str, mutant: Mutant) -> None:
        for file, kind in mutant.odd.items():
            path = self.folder / name / file
            if kind == "folder":
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
        for file, content in self.specimens[name].files.items():
            if file in mutant.files or file in mutant.odd or file == PROJECT:  # the use of a project changes it
                (self.folder / name / file).write_bytes(content)


_bench: Bench  # of this process


def _start(folder: str, all_specimens: dict[str, Specimen], seed: int, seconds: float) -> None:
    """Prepare a process: its folder, one thread, and an end to its memory."""
    global _bench
    quiet()
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    _bench = Bench(Path(folder, str(os.getpid())), all_specimens, seed, seconds)
    for name in all_specimens:  # what is imported and compiled on the way is not the memory of a load
        for number in range(3):
            use = all_specimens[name].use
            USES[use](LOADS[use](_bench.folder / name), _bench.out / use, Random(number))
    size = memory("VmSize")
    if size:
        resource.setrlimit(resource.RLIMIT_AS, (size + _SPARE, resource.getrlimit(resource.RLIMIT_AS)[1]))


def memory_folder() -> str | None:
    """Return a folder whose files are in memory, if there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def quiet() -> None:
    """Use one thread, and leave out warnings."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def _chunk(job: tuple[str, int, int]) -> tuple[str, Tally]:
    name, first, last = job
    return name, _bench.run(name, range(first, last))


def fuzz(number: int, jobs: int, seed: int, seconds: float, only: list[str] | None = None) -> dict[str, Tally]:
    """Use `number` mutants, as many of each specimen, in `jobs` processes (with 1, in this one)."""
    with tempfile.TemporaryDirectory(prefix="wgcn-fuzz-", dir=memory_folder()) as folder:
        all_specimens = specimens(Path(folder, "made"))
        names = [name for name in all_specimens if only is None or name in only]
        each = -(-number // len(names))
        chunks = [(name, first, min(first + _CHUNK, each)) for first in range(0, each, _CHUNK) for name in names]
        tallies, started = {name: Tally() for name in names}, time.perf_counter()
        given = folder, all_specimens, seed, seconds
        if jobs == 1:
            _start(*given)
            done: Iterator[tuple[str, Tally]] = map(_chunk, chunks)
            _collect(done, tallies, started, each * len(names))
        else:
            spawn = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(jobs, spawn, _start, given) as pool:
                futures = [pool.submit(_chunk, chunk) for chunk in chunks]
                done = (future.result() for future in as_completed(futures))
                _collect(done, tallies, started, each * len(names))
    return tallies


def _collect(done: Iterator[tuple[str, Tally]], tallies: dict[str, Tally], started: float, number: int) -> None:
    shown = started
    for name, tally in done:
        tallies[name].add(tally)
        if time.perf_counter() - shown > 30:
            shown, n = time.perf_counter(), sum(each.number for each in tallies.values())
            rate = n / (shown - started)
            foreign = sum(each.foreign for each in tallies.values())
            print(f"{n:,} of {number:,}, {rate:,.0f} per second, {foreign} failures", file=sys.stderr, flush=True)


def table(tallies: dict[str, Tally]) -> str:
    """Return what came of it, for people to read."""
    heads = "specimen", "mutants", "signed", "loaded", "refused", "failures", "slowest (s)", "memory over 4x (MiB)"
    rows = [
        (name, t.number, t.signed, t.loaded, t.refused, t.foreign, f"{t.slowest:.2f}", f"{t.most_memory:.1f}")
        for name, t in tallies.items()
    ]
    totals = [sum(int(row[i]) for row in rows) for i in range(1, 6)]
    worst = max(float(row[6]) for row in rows), max(float(row[7]) for row in rows)
    rows.append(("all", *totals, *map(str, worst)))  # type: ignore[arg-type]
    shown = [heads, *(tuple(f"{cell:,}" if isinstance(cell, int) else cell for cell in row) for row in rows)]
    return aligned(shown)


def aligned(shown: list[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = [" | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in shown]
    return "\n".join(f"| {line} |" for line in (lines[0], "-|-".join("-" * width for width in widths), *lines[1:]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description="Damage saved files and use them.")
    parser.add_argument(
        "--number",
        type=int,
        default=20_000,
        help="mutations in all (default: %(default)s)",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="decides the mutations (default: %(default)s)")
    parser.add_argument(
        "--only", metavar="NAMES", type=lambda names: names.split(","), help="comma-separated specimens"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="that one may take (default: %(default)s)")
    parser.add_argument("--repeat", metavar="NAME:I", help="one mutation again, with the traceback of what it raises")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the figures to FILE as JSON")
    options = parser.parse_args()
    quiet()
    if options.repeat:
        return _repeat(options.seed, *options.repeat.rsplit(":", 1))
    started = time.perf_counter()
    tallies = fuzz(options.number, options.jobs, options.seed, options.seconds, options.only)
    seconds = time.perf_counter() - started
    print(table(tallies))
    n = sum(tally.number for tally in tallies.values())
    print(f"\n{n:,} mutations in {seconds:,.0f} s with {options.jobs} processes, seed {options.seed}")
    for tally in tallies.values():
        for kind, times in tally.kinds.most_common(20):
            print(f"{times:6} x {kind}")
        for failure in tally.failures[:_SHOWN]:
            print(f"\n{failure}", file=sys.stderr)
    if options.output:
        from benchmarks.measure import machine
        from wgcn.base.files import write_file

        figures = {name: vars(tally) for name, tally in tallies.items()}
        given = {"number": n, "jobs": options.jobs, "seed": options.seed, "seconds": round(seconds, 1)}
        document = {"machine": machine(), **given, "specimens": figures}
        if options.only and options.output.exists():  # beside the run of all of them
            before = json.loads(options.output.read_bytes())
            document = before | {"only": {**before.get("only", {}), ",".join(options.only): document}}
        text = json.dumps(document, indent=1)
        write_file(options.output, lambda file: file.write(text.encode()))
    return 1 if any(tally.foreign for tally in tallies.values()) else 0


def _repeat(seed: int, name: str, number: str) -> int:
    """Use one mutant, left in a folder that is printed."""
    folder = Path(tempfile.mkdtemp(prefix="wgcn-fuzz-"))
    all_specimens = specimens(folder / "made")
    bench = Bench(folder / "bench", all_specimens, seed)
    random = Random(f"{seed} {name} {number}")
    others = [other for other_name, other in all_specimens.items() if other_name != name]
    mutant = mutate(all_specimens[name], others, random)
    bench._put(name, mutant)
    print(f"{mutant.what}, signed: {mutant.is_signed}; in {folder / 'bench' / name}")
    try:
        bench._use(name, all_specimens[name].use, random, Tally())
        print("loaded and used")
    except WGCNError as error:
        print(f"refused: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
