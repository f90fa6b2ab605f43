"""A text classifier from files that do not fit into memory, on this machine or on a Dask cluster."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.errors import InputError
from wgcn.base.progress import shown, stage
from wgcn.estimators.matrix import WGCNClassifier
from wgcn.estimators.preparation import Preparation, Prepared
from wgcn.estimators.text import WGCNTextClassifier
from wgcn.labels.reading import Labels, class_options
from wgcn.labels.splits import Rows, evenly
from wgcn.linear.training import LinearTask
from wgcn.linear.tuning import LEADS, MIN_LABELS
from wgcn.model.text_model import TextModel
from wgcn.scale.build import Resources, Site, tokenised
from wgcn.scale.documents import ShardedDocuments, store_documents
from wgcn.scale.fitting import Workplace
from wgcn.scale.graph import Progress, build_graph
from wgcn.scale.labels import read_piece_labels
from wgcn.scale.memory import memory_bytes
from wgcn.scale.shards import Shard, find_shards
from wgcn.scale.tokens import Piece
from wgcn.scale.training import ShardedTrainer
from wgcn.scale.vocabulary import choose_vocabulary
from wgcn.scoring.terms import load_compiled
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
        with resources.opened([*shards, *others], settings, Path(folder, "model")) as site:
            place = Workplace(site.work, site.workers, memory_bytes(memory), estimator.n_jobs)
            return _Fit(estimator, place, site, len(shards)).run([*shards, *others], progress)


@dataclass(frozen=True, eq=False)
class ShardedPrepared(Prepared):
    """What is prepared without labels, with the rows of documents on disk."""

    documents: ShardedDocuments

    @property
    def document_terms(self) -> ShardedDocuments:
        """X_dv, (texts, words)."""
        return replace(self.documents, lead=self.weighting.lead)


class _Fit:
    """The steps of a fit to files."""

    def __init__(self, estimator: WGCNTextClassifier, place: Workplace, site: Site, n_labelled_shards: int) -> None:
        self.estimator, self.place, self.site = estimator, place, site
        self.preparation, self._n_labelled_shards = Preparation.of(estimator), n_labelled_shards

    def run(self, shards: Sequence[Shard], progress: Progress = None) -> TextModel:
        """Return the model."""
        started = time.perf_counter()
        pieces = tokenised(shards, self.site, str(self.preparation.tokenizer), progress)
        labels = read_piece_labels(pieces, self.site.work, self._n_labelled_shards)
        self.estimator.check_parameters(labels)
        prepared = self.prepare(pieces, labels, progress)
        load_compiled()
        digests = np.concatenate([np.empty(0, np.int64), *(piece.digests(self.site.work) for piece in pieces)])
        classifier = self.train(prepared, labels, digests)
        if classifier.tuned_ is not None:
            lead = int(classifier.tuned_.settings["lead"])
            prepared = replace(prepared, weighting=replace(prepared.weighting, lead=lead))
        settings = self.estimator.get_params(deep=False)
        del settings["tune"], settings["n_jobs"]
        settings.update({} if classifier.tuned_ is None else classifier.tuned_.settings)
        model = prepared.text_model(classifier, settings, time.perf_counter() - started)
        if (held_out := classifier.trained_.held_out) is not None:
            with stage("Judging held-out texts"):
                model = replace(model, trust=_trust(model, prepared.document_terms, labels, *held_out))
        return model

    def prepare(self, pieces: Sequence[Piece], labels: Labels, progress: Progress = None) -> ShardedPrepared:
        """Do what needs no labels."""
        work, workers, limits, _ = self.site
        preparation, n_documents = self.preparation, sum(piece.n_documents for piece in pieces)
        with stage("Choosing words") as choosing:
            rules = preparation.vocabulary_rules()
            words, coding = choose_vocabulary(
                pieces,
                work,
                workers,
                ngram_range=preparation.ngram_range,
                rules=rules,
                merged=limits.merged,
            )
            if (often := preparation.often_enough(words)) is not None:
                words, coding = words.part(np.flatnonzero(often)), coding.part(often)
            choosing.detail = f"{len(words):,} words and n-grams"
        with stage("Weighting terms"):
            weighting = TermWeighting(
                smooth_idf(words.document_counts, n_documents), sublinear=preparation.sublinear, norm=preparation.norm
            )
            leads = LEADS if self.estimator.tune and labels.labelled.sum() >= MIN_LABELS else ()
            stop_words = frozenset(preparation.stop_words or ())
            documents = store_documents(pieces, work, workers, coding, weighting, leads=leads, stop_words=stop_words)
            if not preparation.are_long(sum(part.n_long for part in documents.parts), n_documents):
                leads = ()
        nodes = preparation.nodes(words)
        places = np.flatnonzero(nodes)
        how = {**preparation.graph_settings(), "limits": limits, "progress": progress}
        graph = build_graph(pieces, work, workers, words.part(places), coding.part(nodes), **how).among(words, places)
        nothing = np.empty(0, np.int64)
        return ShardedPrepared(
            preparation,
            words,
            weighting,
            graph,
            n_background=0,
            seconds=0.0,  # the time of all is counted elsewhere
            tokens=Tokens(nothing.astype(np.int32), np.zeros(1, np.int64), []),  # none is in memory
            digests=nothing,
            term_counts=csr_array((0, len(words))),
            leading=dict.fromkeys(leads, np.empty(0, np.uint8)),
            n_in_graph=n_documents,
            documents=documents,
        )

    def train(self, prepared: ShardedPrepared, labels: Labels, digests: npt.NDArray[np.int64]) -> WGCNClassifier:
        """Return a classifier fitted to the documents; `digests` are those of their texts."""
        weight, prior = np.ones(int(labels.labelled.sum())), None
        if self.estimator.class_weight is not None or self.estimator.class_prior is not None:
            options = self.estimator.class_weight, self.estimator.class_prior
            weight, prior = class_options(labels, np.ones(len(labels.labelled)), *options)
        own, others = (np.flatnonzero(each) for each in (labels.labelled, ~labels.labelled))
        by_lead = {lead: replace(prepared.documents, lead=lead) for lead in (0, *prepared.leading)}
        divided = {lead: (documents[own], documents[others]) for lead, documents in by_lead.items()}
        terms, unlabelled = divided.pop(0)
        assert prepared.word_graph is not None
        subwords, graph = prepared.subword_matrix(self.estimator.subwords), prepared.word_graph
        documents = terms, labels.targets, labels.multilabel, weight, unlabelled
        digests = np.concatenate([digests[own], digests[others]])
        task = LinearTask(
            *documents, graph.adjacency, None, prior, None, subwords, divided, digests=digests, are_texts=True
        )
        classifier = self.estimator._classifier()
        classifier.classes_, classifier.n_labelled_, classifier.word_graph_ = labels.classes, len(weight), graph
        return classifier._train(task, make_trainer=partial(ShardedTrainer, place=self.place))


def _trust(model: TextModel, documents: ShardedDocuments, labels: Labels, rows: Rows, scores: Any) -> Trust:
    """Return what held-out texts tell about answers, compared with a sample of the other labelled ones."""
    every = np.arange(len(labels.targets))
    some = np.union1d(rows, evenly(every, _TRUST_TEXTS))
    sample: ShardedDocuments = documents[np.flatnonzero(labels.labelled)[some]]
    own = Labels(labels.classes, np.ones(len(some), bool), labels.targets[some], labels.multilabel)
    lengths = sample.lengths()
    terms = sample.csr, sample.counts(), lambda texts: lengths[texts]
    return held_out_trust(model, *terms, own, np.searchsorted(some, rows), scores)
