"""Builds out of core: what they may use, where they work, and how they begin, go on and end."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from wgcn.base.errors import InputError
from wgcn.base.progress import stage
from wgcn.graph.association import EdgeRules, Weight
from wgcn.graph.word_graph import WordGraph
from wgcn.io.read import read_texts
from wgcn.scale.graph import Progress, build_graph, check_weight, watched
from wgcn.scale.memory import Limits, memory_bytes
from wgcn.scale.shards import Shard, check_unchanged, find_shards
from wgcn.scale.store import WorkFolder, end_work, is_ended, open_work, remove_work
from wgcn.scale.tokens import Piece, tokenise
from wgcn.scale.vocabulary import choose_vocabulary
from wgcn.scale.workers import DaskWorkers, Workers, connect
from wgcn.text.corpus import Corpus
from wgcn.text.vocabulary import VocabularyRules


class Site(NamedTuple):
    """Where a build is at work, and with whom."""

    work: WorkFolder
    workers: Workers
    limits: Limits
    inputs: Sequence[Mapping[str, Any]]  # identities of the shards


@dataclass(frozen=True)
class Resources:
    """What a build out of core may use.

    Parameters
    ----------
    memory : str
        Of all processes on this machine, such as "4GB"; with a scheduler elsewhere, of each worker there.
    scheduler, n_workers : optional
        As for `wgcn.scale.workers.connect`.
    work : Path, optional
        The folder for files in between, by default one beside the result.
    restart : bool
        Whether to begin anew where an earlier build was interrupted.
    keep : bool
        Whether the work folder stays after the build.
    """

    memory: str
    scheduler: str | None = None
    n_workers: int | None = None
    work: Path | None = None
    restart: bool = False
    keep: bool = False

    @classmethod
    def of(cls, memory: str | None, workers: int | None, **given: Any) -> Resources | None:
        """Return the resources that options name; None if there is no limit of memory, and so nothing out of core."""
        if memory is None:
            if workers or any(given.values()):
                raise InputError(
                    "--scheduler, --workers, --work and --restart are for work out of core: give --memory."
                )
            return None
        memory_bytes(memory)
        return cls(memory, n_workers=workers, **given)

    def work_folder(self, result: Path) -> Path:
        """Return the folder for files in between, for a result."""
        work = self.work or Path(f"{result if result.name else result.absolute()}.work")  # "." has no name
        places = tuple(Path(os.path.realpath(each)) for each in (work, result))  # which raises nothing
        if any(one.is_relative_to(other) for one, other in (places, places[::-1])):
            raise InputError(
                f"{work} is for files in between, and {result} for the result: neither can hold the other."
            )
        return work

    @contextmanager
    def opened(self, shards: Sequence[Shard], settings: Mapping[str, Any], result: Path) -> Iterator[Site]:
        """Begin a build, or go on with it; when all went well, the work folder is removed."""
        memory, path, inputs = memory_bytes(self.memory), self.work_folder(result), [each.identity() for each in shards]
        with open_work(path, settings, inputs, restart=self.restart) as work:
            with connect(self.scheduler, self.n_workers) as workers:
                elsewhere = self.scheduler not in (None, "local")
                n_processes = workers.n_workers if isinstance(workers, DaskWorkers) else 0
                limits = Limits.of(memory, *((1, 0) if elsewhere else (workers.n_workers, n_processes)))
                yield Site(work, workers, limits, inputs)
            if not self.keep:
                remove_work(work)


def tokenised(shards: Sequence[Shard], site: Site, tokenizer: str, progress: Progress = None) -> list[Piece]:
    """Tokenise all shards, and return their pieces. Nothing else reads them, so here they must not have changed."""
    with stage("Tokenising") as step:
        found = tokenise(shards, site.work, site.workers, tokenizer, site.limits.characters)
        pieces = [piece for own in watched(found, len(shards), progress) for piece in own]
        check_unchanged(shards, site.inputs)
        n_documents, n_tokens = (sum(getattr(each, what) for each in pieces) for what in ("n_documents", "n_tokens"))
        step.detail = f"{len(shards):,} shards, {n_documents:,} documents, {n_tokens:,} tokens"
    return pieces


def graph_from_files(
    files: Sequence[Path],
    output: Path,
    resources: Resources | None = None,
    *,
    reading: Mapping[str, Any] | None = None,
    tokenizer: str = "words",
    rules: VocabularyRules | None = None,
    window: int = 20,
    weight: Weight = "npmi",
    edges: EdgeRules | None = None,
    normalized: bool = True,
    progress: Progress = None,
) -> WordGraph:
    """Build the word graph of texts in files, save it to a folder, and return it.

    Without `resources` the texts are in memory; with them the graph is the same, to the last bit.
    """
    rules, edges = rules or VocabularyRules(), edges or EdgeRules()
    how: dict[str, Any] = {"window": window, "weight": weight, "normalized": normalized}
    if resources is None:
        corpus = _corpus_in_memory(files, reading, tokenizer, rules)
        with stage("Counting pairs"):
            graph = WordGraph.from_corpus(corpus, rules=edges, **how)
        graph.save(output)
        return graph
    check_weight(weight)
    shards = find_shards(files, reading)
    settings = {
        "result": "graph",
        "reading": dict(reading or {}),
        "tokenizer": tokenizer,
        "words": asdict(rules) | {"stop_words": sorted(rules.stop_words)},
        "edges": asdict(edges),
        **how,
    }
    with resources.opened(shards, settings, output) as site:
        if is_ended(site.work, output):
            return WordGraph.load(output)
        pieces = tokenised(shards, site, tokenizer, progress)
        with stage("Choosing words") as step:
            vocabulary, coding = choose_vocabulary(pieces, site.work, site.workers, rules=rules)
            step.detail = f"{len(vocabulary):,} of {coding.n_words:,}"
        graph = build_graph(
            pieces, site.work, site.workers, vocabulary, coding, rules=edges, limits=site.limits, progress=progress,
            **how,
        )  # fmt: skip
        with stage("Saving the graph"):
            end_work(site.work, graph.save(output))
    return graph


def _corpus_in_memory(
    files: Sequence[Path], reading: Mapping[str, Any] | None, tokenizer: str, rules: VocabularyRules
) -> Corpus:
    texts = chain.from_iterable([read_texts(path, **(reading or {})) for path in files])  # all are opened first
    with stage("Reading text") as step:
        corpus = Corpus.from_texts(texts, tokenizer=tokenizer, rules=rules)
        step.detail = f"{len(corpus):,} documents, {corpus.n_tokens:,} tokens, {len(corpus.vocabulary):,} words"
    return corpus
