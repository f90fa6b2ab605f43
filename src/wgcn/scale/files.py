"""A text classifier from files that do not fit into memory, on this machine or on a Dask cluster."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wgcn.errors import InputError
from wgcn.estimators.matrix import WGCNClassifier
from wgcn.estimators.preparation import Preparation, Prepared
from wgcn.estimators.text import WGCNTextClassifier
from wgcn.inference.model import TextModel
from wgcn.inference.terms import load_compiled
from wgcn.labelling.labels import Labels, class_options
from wgcn.labelling.splits import Rows
from wgcn.labelling.trust import Trust, held_out_trust
from wgcn.labelling.tuning import LEADS, MIN_LABELS, evenly
from wgcn.linear.training import LinearTask
from wgcn.progress import shown, stage
from wgcn.scale.documents import ShardedDocuments, store_documents
from wgcn.scale.fitting import Place
from wgcn.scale.graph import word_graph
from wgcn.scale.labels import read_piece_labels
from wgcn.scale.memory import Limits, memory_bytes
from wgcn.scale.shards import Shard, find_shards
from wgcn.scale.store import open_work, remove_work
from wgcn.scale.tokens import Piece, tokenise
from wgcn.scale.training import ShardedTrainer
from wgcn.scale.vocabulary import choose_vocabulary
from wgcn.scale.workers import connect
from wgcn.text.weighting import TermWeighting

__all__ = ["fit_files"]

_TRUST_TEXTS = 50_000  # labelled texts beside the held-out ones that these are compared with


def fit_files(
    paths: Iterable[str | Path],
    *,
    unlabeled: Iterable[str | Path] = (),
    label_column: str | int = "label",
    label_separator: str | None = None,
    reading: Mapping[str, Any] | None = None,
    memory: str = "4GB",
    scheduler: str | None = None,
    n_workers: int | None = None,
    work: str | Path | None = None,
    restart: bool = False,
    verbose: bool = False,
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
    label_column, label_separator, reading
        How the files are read: see `wgcn.labelling.labelled.read_labelled`.
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
    **parameters
        Those of `wgcn.WGCNTextClassifier`.
    """
    estimator = WGCNTextClassifier(**parameters)
    estimator.check_parameters()
    if not isinstance(estimator.tokenizer, str):
        raise InputError("Out of core, the tokenizer must be one of those that have a name.")
    reads = {"separator": label_separator, "reading": reading}
    shards = find_shards(paths, label_column=label_column, **reads)  # type: ignore[arg-type]
    more = list(unlabeled)
    others = find_shards(more, reading) if more else []
    given = {name: repr(value) for name, value in estimator.get_params(deep=False).items() if name != "n_jobs"}
    settings = {**given, "label_column": label_column, "labelled_files": len(shards), "reading": repr(reads)}
    folder = Path(tempfile.mkdtemp(prefix="wgcn-")) if work is None else Path(work)
    inputs = [shard.identity() for shard in (*shards, *others)]
    with (
        shown(verbose),
        connect(scheduler, n_workers) as workers,
        open_work(folder, settings, inputs, restart=restart) as opened,
    ):
        place = Place(opened, workers, memory_bytes(memory), estimator.n_jobs)
        model = _Fit(estimator, place, len(shards)).run([*shards, *others])
    remove_work(opened)
    return model


@dataclass(frozen=True, eq=False)
class ShardedPrepared(Prepared):
    """What is prepared without labels, with the rows of documents on disk."""

    documents: ShardedDocuments

    @property
    def document_terms(self) -> ShardedDocuments:  # type: ignore[override]
        """X_dv, (texts, words)."""
        return replace(self.documents, lead=self.weighting.lead)


class _Fit:
    """The steps of a fit to files."""

    def __init__(self, estimator: WGCNTextClassifier, place: Place, n_labelled_shards: int) -> None:
        self.estimator, self.place, self._n_labelled_shards = estimator, place, n_labelled_shards
        self.preparation, self.limits = Preparation.of(estimator), Limits.of(place.memory, place.workers.n_workers)

    def run(self, shards: Sequence[Shard]) -> TextModel:
        """Return the model."""
        started, (work, workers) = time.perf_counter(), (self.place.work, self.place.workers)
        with stage("Tokenising") as tokenising:
            found = tokenise(shards, work, workers, str(self.preparation.tokenizer), self.limits.characters)
            pieces = [piece for group in found for piece in group]
            tokenising.detail = f"{sum(piece.n_documents for piece in pieces):,} texts"
        labels = read_piece_labels(pieces, work, self._n_labelled_shards)
        self.estimator.check_parameters(labels)
        prepared = self.prepare(pieces, labels)
        load_compiled()
        classifier = self.train(prepared, labels)
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

    def prepare(self, pieces: Sequence[Piece], labels: Labels) -> ShardedPrepared:
        """Do what needs no labels."""
        work, workers = self.place.work, self.place.workers
        preparation, n_documents = self.preparation, sum(piece.n_documents for piece in pieces)
        with stage("Choosing words") as choosing:
            rules = preparation.vocabulary_rules()
            words, coding = choose_vocabulary(
                pieces,
                work,
                workers,
                ngram_range=preparation.ngram_range,
                rules=rules,
                merged=self.limits.merged,
            )
            if (often := preparation.often_enough(words)) is not None:
                words, coding = words.part(np.flatnonzero(often)), coding.part(often)
            choosing.detail = f"{len(words):,} words and n-grams"
        with stage("Weighting terms"):
            how = {"sublinear": preparation.sublinear, "norm": preparation.norm}
            weighting = TermWeighting.from_counts(words.document_counts, n_documents, **how)  # type: ignore[arg-type]
            leads = LEADS if self.estimator.tune and labels.labelled.sum() >= MIN_LABELS else ()
            stop_words = frozenset(preparation.stop_words or ())
            documents = store_documents(pieces, work, workers, coding, weighting, leads=leads, stop_words=stop_words)
            if not preparation.are_long(sum(part.n_long for part in documents.parts), n_documents):
                leads = ()
        with stage("Counting windows") as counting:
            nodes = preparation.nodes(words)
            graph = word_graph(pieces, self.place, coding.part(nodes), words, nodes, preparation, self.limits)
            counting.detail = f"{graph.adjacency.nnz:,} weights of the word graph"
        leading = dict.fromkeys(leads, np.empty(0, np.uint8))
        fields: tuple[Any, ...] = 0, 0.0, None, None, None, leading, n_documents
        return ShardedPrepared(preparation, words, weighting, graph, *fields, documents)

    def train(self, prepared: ShardedPrepared, labels: Labels) -> WGCNClassifier:
        """Return a classifier fitted to the documents."""
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
        task = LinearTask(*documents, graph.adjacency, None, prior, None, subwords, divided)
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
