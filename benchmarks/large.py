"""Load large folders, whole and damaged, and see how much memory it takes: ``python -m benchmarks.large``.

In folders of some kilobytes the memory of a load is lost in that of the interpreter. These have 20 MB and more, of
every kind, and some are what an attacker would make: very many short words, words of rare characters, settings as large
as they may be, or a header as large as the file. A load may take four times the files and `CONSTANT`, and five seconds.

Memory is that of the process, by its high-water mark in /proc, because tracemalloc does not see what safetensors, torch
and the sparse matrices of scipy take. A mark is of use only where nothing was freed before, which the next load would
use again unseen. So each load has a process of its own, forked from one that has imported all and loaded nothing; it
loads a small folder of the same kind first, since pages of libraries count too, and sets the mark back.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import resource
import struct
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from benchmarks import fuzz
from benchmarks.mutations import Files, Specimen, mutate, sign
from wgcn.base.errors import WGCNError
from wgcn.store.folder import CONFIG, VOCABULARY

__all__ = ["Load", "large_folders", "large_table", "load_large"]

CONSTANT = 48 << 20  # bytes beside four times the files
_HIDDEN = 16  # of the network of the checkpoint


@dataclass(frozen=True)
class Load:
    """What a load came to."""

    name: str
    what: str
    size: int  # bytes of the files
    memory: int = 0  # bytes at the peak, beside those before
    seconds: float = 0.0
    answer: str = "loaded"

    @property
    def factor(self) -> float:
        """Memory beside the constant, per byte of the files."""
        return max(self.memory - CONSTANT, 0) / self.size

    def is_right(self, seconds: float) -> bool:
        """Whether it ended as it may."""
        return self.answer in ("loaded", "refused") and self.factor <= 4 and self.seconds <= seconds


# ------------------------------------------------------------------------------------------ large folders


def large_folders(folder: Path, megabytes: float) -> dict[str, Specimen]:
    """Save one large thing of each kind, of about so many megabytes, and return the files."""
    n = int(megabytes * 1e6)
    made: dict[str, Any] = {
        "model": _model(n // 2200, 500, "words {}"),
        "model-words": _model(n // 31, 1, "{}"),
        "embedder": _embedder(n // 440, 100, "word{}"),
        "embedder-words": _embedder(n // 33, 1, "{}"),
        "embedder-rare": _embedder(n // 35, 1, "\U0001f377{}"),
        "embedder-pairs": _embedder(
            min(n // 30, 2_000_000), 1, "", [chr(0x10000 + i // 2) + "ab"[i % 2] for i in range(2_000_000)]
        ),
        "graph": _graph(n // 1000, 50),
        "graph-words": _graph(n // 50, 0),
        "counts": _counts(n // 600, 40),
        "counts-words": _counts(n // 40, 0),
    }
    found = {}
    for name, thing in made.items():
        thing.save(folder / name)
        found[name] = Specimen(name.partition("-")[0], fuzz.content(folder / name))
    if find_spec("torch") is not None:
        content = fuzz.checkpoint(folder / "state", n_words=_network_words(megabytes), hidden=_HIDDEN)
        found["checkpoint"] = Specimen("checkpoint", {"checkpoint": content})
    return found | _hostile(found, n)


def _network_words(megabytes: float) -> int:
    return int(megabytes * 1e6) // (5 * 4 * _HIDDEN)  # weights, two moments, the best weights, another network


def _words(n: int, form: str) -> list[str]:
    return [form.format(np.base_repr(i, 36).lower()) for i in range(n)]


def _terms(n: int, form: str, words: list[str] | None = None) -> dict[str, Any]:
    from wgcn import Vocabulary
    from wgcn.text.weighting import TermWeighting

    vocabulary, weighting = Vocabulary(words[:n] if words else _words(n, form)), TermWeighting(np.ones(n, np.float32))
    return {"tokenizer": "words", "ngram_range": (1, 2), "vocabulary": vocabulary, "weighting": weighting}


def _random(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def _model(n: int, n_classes: int, form: str) -> Any:
    """Return a model of so many words, with a table, subwords, and parts for explanations."""
    from wgcn import TextModel
    from wgcn.explain.explanation import Split
    from wgcn.scoring.scorer import Scorer
    from wgcn.scoring.spelling import Spelling

    prior = np.full(n_classes, 1 / n_classes, np.float32)
    scorer = Scorer(_random(n, n_classes), None, _random(n_classes), prior, 1.0, False)
    classes = np.array([f"class {i}" for i in range(n_classes)])
    if n_classes == 1:
        return TextModel(**_terms(n, form), scorer=scorer, classes=classes)
    half = n // 10
    spelling = Spelling(np.arange(half, dtype=np.uint32), _random(half, n_classes).astype(np.float16), 1.0)
    places = np.zeros((half, 5), np.int32)
    rows = _random(half, n_classes).astype(np.float16)
    split = Split(np.arange(half, dtype=np.int32), rows, places, places.astype(np.float16))
    return TextModel(**_terms(n, form), scorer=scorer, classes=classes, spelling=spelling, split=split)


def _embedder(n: int, n_columns: int, form: str, words: list[str] | None = None) -> Any:
    from wgcn import EmbeddingModel

    return EmbeddingModel(**_terms(n, form, words), word_embeddings=_random(n, n_columns))


def _edges(n: int, k: int) -> Any:
    """Return a matrix in which every word has the k next ones as neighbours, above the diagonal."""
    from scipy.sparse import csr_array

    columns = np.arange(n)[:, None] + np.arange(1, k + 1)
    kept = columns < n
    indptr = np.concatenate(([0], np.cumsum(kept.sum(axis=1)))).astype(np.int32)
    return csr_array((np.ones(int(kept.sum()), np.float32), columns[kept].astype(np.int32), indptr), shape=(n, n))


def _graph(n: int, k: int) -> Any:
    from scipy.sparse import csr_array

    from wgcn import EdgeRules, Vocabulary, WordGraph

    above = _edges(n, k)
    edges = csr_array(above + above.T)
    return WordGraph.of_edges(Vocabulary(_words(n, "w{}")), edges, False, EdgeRules(), weight="npmi", window=20)


def _counts(n: int, k: int) -> Any:
    from wgcn import Vocabulary
    from wgcn.graph.counts import WindowCounts

    pairs = _edges(n, k).astype(np.int32)
    return WindowCounts(Vocabulary(_words(n, "w{}")), 20, 100, np.full(n, 50, np.int64), pairs)


def _hostile(found: dict[str, Specimen], n: int) -> dict[str, Specimen]:
    """Return folders whose digests are right, and which nobody would save."""
    small = _with_words(found["embedder"], 100)
    table = load(small.files["embedder.safetensors"])
    names = ",".join(f'"{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for i in range(n // 60))
    sizes = f'"a":{{"dtype":"F32","shape":[{"1," * (n // 2)}1],"data_offsets":[0,4]}}'
    notes = f'"__metadata__":{{{",".join(f"{chr(34)}{i}{chr(34)}:{chr(34)}{chr(34)}" for i in range(n // 12))}}}'
    headers = {"tensors": names, "dimensions": sizes, "notes": notes}
    made = {
        f"embedder-{what}": {
            "embedder.safetensors": struct.pack("<Q", len(text) + 2) + f"{{{text}}}".encode() + bytes(4)
        }
        for what, text in headers.items()
    }
    made["embedder-one-word"] = {VOCABULARY: b"x" * n + b"\n", "embedder.safetensors": _cut(table, 1)}
    made["embedder-rare-word"] = {
        VOCABULARY: ("x" * min(n, 8_300_000) + "\U0001f377\n").encode(),
        "embedder.safetensors": _cut(table, 1),
    }
    made["embedder-no-words"] = {VOCABULARY: b"\n" * n}
    made["embedder-doubles"] = {"embedder.safetensors": save({**table, "word_embeddings": np.zeros((n // 8, 1))})}
    made["embedder-unused"] = {"embedder.safetensors": save({**table, "unused": np.zeros(n, np.uint8)})}
    settings = {
        "names": ["é" * 30 + str(i) for i in range(99_000)],
        "text": "漢" * 2_500_000,
        "rare-texts": ["\U0001f377" + "x" * 70 for _ in range(99_000)],
        "objects": [{} for _ in range(130_000)],
    }
    for what, value in settings.items():
        document = json.loads(small.files[CONFIG])
        document["config"]["settings"] = {"given": value}
        made[f"embedder-{what}"] = {CONFIG: json.dumps(document).encode()}
    hostile = {}
    for name, files in made.items():
        changed: Files = {**small.files, **files}
        sign(small.use, changed)
        hostile[name] = Specimen(small.use, changed)
    if "checkpoint" in found:
        hostile["checkpoint-notes"] = Specimen(
            "checkpoint", {"checkpoint": made["embedder-notes"]["embedder.safetensors"]}
        )
    return hostile


def _cut(tensors: dict[str, Any], n: int) -> bytes:
    return save({name: np.ascontiguousarray(tensor[:n]) for name, tensor in tensors.items()})


def _with_words(specimen: Specimen, n: int) -> Specimen:
    """Return an embedder of so many words."""
    words = specimen.files[VOCABULARY].split(b"\n")[:n]
    tensors = _cut(load(specimen.files["embedder.safetensors"]), n)
    files = {**specimen.files, VOCABULARY: b"".join(word + b"\n" for word in words), "embedder.safetensors": tensors}
    return specimen._replace(files=files)


# ------------------------------------------------------------------------------------------ the loads


def load_large(megabytes: float, n_mutants: int, seed: int, seconds: float) -> list[Load]:
    """Load each large folder as it is, and so many times damaged, with digests that are right."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.fuzz", "wgcn", "wgcn.graph.counts", "wgcn.scale.build"])
    done = []
    with tempfile.TemporaryDirectory(prefix="wgcn-large-", dir=fuzz.memory_folder()) as folder:
        for name, specimen in fuzz.specimens(Path(folder, "small")).items():
            _put(Path(folder, "small", name), specimen.files)
        for name, specimen in large_folders(Path(folder, "made"), megabytes).items():
            place = Path(folder, "used")
            for number in range(n_mutants + 1):
                what, files = "whole", specimen.files
                if number:
                    mutant = mutate(specimen, [], Random(f"{seed} {name} {number}"), signed=1.0)
                    what, files = mutant.what, {**files, **mutant.files}
                _put(place, files)
                given = Load(name, what, sum(map(len, files.values())))
                with ProcessPoolExecutor(1, context) as pool:
                    try:
                        ended = pool.submit(
                            _load, given, place, specimen.use, Path(folder, "small"), megabytes, seconds
                        ).result()
                    except BrokenProcessPool:
                        ended = replace(given, answer="the process died")
                done.append(ended)
    return done


def _put(folder: Path, files: Files) -> None:
    folder.mkdir(exist_ok=True)
    for entry in folder.iterdir():
        entry.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _load(given: Load, folder: Path, use: str, small: Path, megabytes: float, seconds: float) -> Load:
    """Load a folder in a process that has done nothing before."""
    fuzz.quiet()
    load_it = partial(fuzz.LOADS[use], folder)
    if use == "checkpoint":
        load_it = partial(load_it, fuzz.training(_network_words(megabytes), _HIDDEN))
    fuzz.LOADS[use](small / use)
    size = fuzz.memory("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (size + (4 << 30), resource.getrlimit(resource.RLIMIT_AS)[1]))
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    fuzz.reset_peak()
    before, answer, started = fuzz.memory("VmRSS"), "loaded", time.perf_counter()
    try:
        with fuzz.limited(seconds):
            load_it()
    except WGCNError:
        answer = "refused"
    except (Exception, fuzz.Hang) as error:
        answer = f"{type(error).__name__}: {error}"[:200]
    return replace(given, answer=answer, memory=fuzz.memory("VmHWM") - before, seconds=time.perf_counter() - started)


def large_table(loads: list[Load]) -> str:
    """Return the largest figures of each folder, for people to read."""
    rows: list[tuple[str, ...]] = [("folder", "MB", "loads", "refused", "largest factor", "slowest (s)")]
    for name in dict.fromkeys(each.name for each in loads):
        own = [each for each in loads if each.name == name]
        n_refused = sum(each.answer == "refused" for each in own)
        factor, slowest = max(each.factor for each in own), max(each.seconds for each in own)
        sizes = f"{own[0].size / 1e6:.0f}", f"{len(own)}", f"{n_refused}"
        rows.append((name, *sizes, f"{factor:.2f}", f"{slowest:.2f}"))
    return fuzz.aligned(rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description="Load large folders.")
    parser.add_argument("--megabytes", type=float, default=40, help="of a folder, about (default: %(default)s)")
    parser.add_argument("--number", type=int, default=20, help="mutations of each folder (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="decides the mutations (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=fuzz.SECONDS, help="of a load (default: %(default)s)")
    options = parser.parse_args()
    loads = load_large(options.megabytes, options.number, options.seed, options.seconds)
    print(large_table(loads))
    print(f"\n{len(loads):,} loads; the factor is memory beyond {CONSTANT >> 20} MiB, per byte of the files")
    wrong = [each for each in loads if not each.is_right(options.seconds)]
    for each in wrong:
        print(each, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
