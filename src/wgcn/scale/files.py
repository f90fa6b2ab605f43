"""A text classifier from files that do not fit into memory, on this machine or on a Dask cluster."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from wgcn.base.arrays import Floats
from wgcn.base.errors import InputError
from wgcn.base.progress import shown, stage
from wgcn.estimators.matrix import WGCNClassifier
from wgcn.estimators.preparation import Preparation, Prepared
from wgcn.estimators.session import Session
from wgcn.estimators.text import WGCNTextClassifier
from wgcn.graph import WordGraph
from wgcn.labels.reading import Labels, class_options
from wgcn.labels.splits import Rows, evenly
from wgcn.linear.task import LinearTask, LinearTraining
from wgcn.linear.training import MakeTrainer
from wgcn.linear.tuning import LEADS
from wgcn.model.text_model import TextModel
from wgcn.scale.build import Resources, build_graph
from wgcn.scale.corpus import Piece, Shard, choose_vocabulary, find_shards, read_piece_labels, tokenised
from wgcn.scale.documents import ShardedDocuments, store_documents
from wgcn.scale.training import ShardedTrainer
from wgcn.scale.workers import Progress, Site
from wgcn.scoring.terms import load_compiled
from wgcn.semi.seed_words import SeedRows
from wgcn.text.corpus import Tokens
from wgcn.text.weighting import TermWeighting, smooth_idf
from wgcn.trust.abstention import Trust, held_out_trust

_TRUST_TEXTS = 50_000  # labelled texts beside the held-out ones that these are compared with


def fit_files(
    paths: Iterable[str | Path],
    *,
    unlabeled: Iterable[str | Path] = (),
    label_column: str | int = "label",
    label_separator: str | None = None,
    missing: str | Collection[str] | None = None,
    reading: Mapping[str, Any] | None = None,
    memory: str = "4GB",
    scheduler: str | None = None,
    n_workers: int | None = None,
    work: str | Path | None = None,
    restart: bool = False,
    verbose: bool = False,
    progress: Progress = None,
    **parameters: Any,
) -> TextModel:
    """Fit a text classifier to files, of which only parts are in memory at a time.

    The model is that of `wgcn.WGCNTextClassifier`, up to the tolerance of the solver.

    Parameters
    ----------
    paths : iterable of paths
        Files with texts and labels; a text with an empty label is unlabelled.
    unlabeled : iterable of paths, optional
        Files with more unlabelled texts.
    label_column, label_separator, missing, reading
        How the files are read: see `wgcn.io.read.read_labelled`.
    memory : str, default="4GB"
        Limit of the memory of this process and of the workers on this machine.
    scheduler : str, optional
        Address of a Dask scheduler, whose workers see the same files at the same paths; "local" for a cluster of
        processes on this machine. By default threads of this process do the work.
    n_workers : int, optional
        Threads or processes on this machine; by default one per core.
    work : path, optional
        Folder for what is in between; with it, a fit that was interrupted goes on where it was. By default a temporary
        folder. It is removed after the fit.
    restart : bool, default=False
        Whether to forget what an interrupted fit has left in `work`.
    verbose : bool, default=False
        Whether to print the stages of the work with the seconds that each took.
    progress : callable, optional
        Called with the numbers of tasks of a stage that are done, and of all.
    **parameters
        Those of `wgcn.WGCNTextClassifier`.
    """
    estimator = WGCNTextClassifier(**parameters)
    estimator.check_parameters()
    if not isinstance(estimator.tokenizer, str):
        raise InputError("Out of core, the tokenizer must be one of those that have a name.")
    shards = find_shards(paths, reading, label_column=label_column, separator=label_separator, missing=missing)
    more = list(unlabeled)
    others = find_shards(more, reading) if more else []
    given = {**estimator.get_params(deep=False), "stop_words": sorted(estimator.stop_words or ()), "n_jobs": None}
    absent = missing if isinstance(missing, str) else sorted(missing or ())
    read_as: dict[str, Any] = {"label_column": label_column, "separator": label_separator, "missing": absent}
    read_as["reading"] = dict(reading or {})
    settings = {"result": "model", "labelled": len(shards), **read_as, **{name: repr(given[name]) for name in given}}
    with shown(verbose), tempfile.TemporaryDirectory(prefix="wgcn-") as folder:
        resources = Resources(memory, scheduler, n_workers, Path(work or Path(folder, "work")), restart)
        with resources.opened([*shards, *others], settings, Path(folder, "model"), progress) as site:
            session = _session(estimator, [*shards, *others], len(shards), site)
            return session.model(estimator.get_params(deep=False))


@dataclass(eq=False)
class ShardedPrepared(Prepared):
    """What is prepared without labels, with the rows of documents on disk."""

    documents: ShardedDocuments = field(kw_only=True)

    @property
    def document_terms(self) -> ShardedDocuments:
        """X_dv, (texts, words)."""
        return replace(self.documents, lead=self.weighting.lead)


@dataclass(frozen=True, eq=False)
class ShardedSession(Session):
    """A session of texts on disk."""

    prepared: ShardedPrepared
    site: Site = field(kw_only=True)

    @property
    def make_trainer(self) -> MakeTrainer:
        """What trains on documents on disk."""
        return partial(ShardedTrainer, site=self.site)

    def task(
        self, graph: WordGraph | None, seeds: SeedRows | None, vectors: Floats | None, *, chooses_lead: bool
    ) -> LinearTask:
        """Return what to train on."""
        assert graph is not None
        labels, prepared, classifier = self.labels, self.prepared, self.classifier
        weight, prior = np.ones(int(labels.labelled.sum())), None
        if classifier.class_weight is not None or classifier.class_prior is not None:  # which needs a name per text
            weight, prior = class_options(labels, self.weight, classifier.class_weight, classifier.class_prior)
        own, others = (np.flatnonzero(each) for each in (labels.labelled, ~labels.labelled))
        by_lead = {lead: replace(prepared.documents, lead=lead) for lead in (0, *prepared.leading)}
        divided = {lead: (documents[own], documents[others]) for lead, documents in by_lead.items()}
        terms, unlabelled = divided.pop(0)
        classifier.take_labels(labels, graph)
        return LinearTask(
            terms=terms,
            targets=labels.targets,
            multilabel=labels.multilabel,
            weight=weight,
            unlabelled=unlabelled,
            adjacency=graph.adjacency,
            class_prior=prior,
            subwords=prepared.subword_matrix(classifier.subwords),
            leads=divided,
            digests=np.concatenate([prepared.digests[own], prepared.digests[others]]),
            are_texts=True,
        )

    def trust(self, model: TextModel, rows: Rows, scores: Floats) -> Trust | None:
        """Return what held-out texts say about answers, compared with a sample of the other labelled ones."""
        labels = self.labels
        some = np.union1d(rows, evenly(np.arange(len(labels.targets)), _TRUST_TEXTS))
        with stage("Judging held-out texts"):
            sample: ShardedDocuments = self.prepared.document_terms[np.flatnonzero(labels.labelled)[some]]
            own = Labels(labels.classes, np.ones(len(some), bool), labels.targets[some], labels.multilabel)
            lengths = sample.lengths()
            terms = sample.csr, sample.counts(), lambda texts: lengths[texts]
            return held_out_trust(model, *terms, own, np.searchsorted(some, rows), scores)


def _session(estimator: WGCNTextClassifier, shards: Sequence[Shard], n_labelled_shards: int, site: Site) -> Session:
    """Return a session of texts on disk, trained."""
    started, preparation = time.perf_counter(), Preparation.of(estimator)
    pieces = tokenised(shards, site, str(preparation.tokenizer))
    labels = read_piece_labels(pieces, site.work, n_labelled_shards)
    estimator.check_parameters(labels)
    leads = LEADS if LinearTraining.of(estimator).tunes(int(labels.labelled.sum())) else ()
    prepared = _prepared(preparation, pieces, leads, site)
    load_compiled()
    prepared.seconds = time.perf_counter() - started
    return ShardedSession(prepared, WGCNClassifier.of(estimator), site=site).train(labels)


def _prepared(preparation: Preparation, pieces: Sequence[Piece], leads: Sequence[int], site: Site) -> ShardedPrepared:
    """Do for texts on disk what `Preparation.prepare` does for texts in memory."""
    n_documents = sum(piece.n_documents for piece in pieces)
    with stage("Choosing words") as choosing:
        rules = preparation.vocabulary_rules()
        words, coding = choose_vocabulary(pieces, site, ngram_range=preparation.ngram_range, rules=rules)
        if (often := preparation.often_enough(words)) is not None:
            words, coding = words.part(np.flatnonzero(often)), coding.part(often)
        choosing.detail = f"{len(words):,} words and n-grams"
    with stage("Weighting terms"):
        weighting = TermWeighting(
            smooth_idf(words.document_counts, n_documents), sublinear=preparation.sublinear, norm=preparation.norm
        )
        stop_words = frozenset(preparation.stop_words or ())
        documents = store_documents(pieces, site, coding, weighting, leads=leads, stop_words=stop_words)
        if not preparation.are_long(sum(part.n_long for part in documents.partitions), n_documents):
            leads = ()
    nodes = preparation.nodes(words)
    places = np.flatnonzero(nodes)
    settings = preparation.graph_settings()
    graph = build_graph(pieces, site, words.part(places), coding.part(nodes), **settings).among(words, places)
    nothing = np.empty(0, np.int64)
    return ShardedPrepared(
        preparation=preparation,
        vocabulary=words,
        weighting=weighting,
        word_graph=graph,
        n_background=0,
        seconds=0.0,
        tokens=Tokens(nothing.astype(np.int32), np.zeros(1, np.int64), []),  # none is in memory
        digests=np.concatenate([nothing, *(piece.digests(site.work) for piece in pieces)]),
        term_counts=csr_array((0, len(words))),
        leading=dict.fromkeys(leads, np.empty(0, np.uint8)),
        n_in_graph=n_documents,
        documents=documents,
    )
