"""Training of the linear model on documents on disk: the steps of `wgcn.linear.training`.

What is judged by samples there is judged by the same samples here, read into memory: settings, calibration, scales. The
teacher learns from a sample that fits, all documents if they do. The fits themselves, and the labels that self-training
gives to unlabelled documents, go through all partitions.

A fit is the problem of `fit_linear`, and its solver takes the same steps (`wgcn.scale.solver`). In memory are a few
tables with a row per word and a column per class, and what the workers hold of a partition each. Classes whose tables
would be too large are fitted in blocks, one after another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from wgcn.base.arrays import Floats, column_blocks
from wgcn.base.files import writing
from wgcn.base.progress import stage
from wgcn.base.threads import n_threads
from wgcn.labels.splits import Rows, copy_groups, evenly
from wgcn.labels.targets import Targets
from wgcn.linear.calibration import certainty, decisions, score_batches
from wgcn.linear.model import Blocks, FittedColumns, LinearFit, LinearSettings, Scales, used_blocks
from wgcn.linear.naive_bayes import NaiveBayesScales
from wgcn.linear.operator import GraphBlock, Memory, SubwordBlock
from wgcn.linear.solver import descend
from wgcn.linear.task import Earlier, LinearTask, LinearTraining
from wgcn.linear.training import Trainer
from wgcn.scale.documents import Selection, ShardedDocuments
from wgcn.scale.solver import FitPartition, ShardedProblem, ShardedState, SumsOperator, class_counts
from wgcn.scale.store import Outputs, WorkFolder, key_of
from wgcn.scale.workers import Site
from wgcn.scoring.scorer import Scorer
from wgcn.semi.teacher import Taught, Teacher

_NEGLIGIBLE = 1e-3  # in fits to more documents than are judged: a step that lowers the objective by less is the last
_TABLES = 16  # with a row per word and a column per class, in memory at a time
_ARRAYS = "dual", "word_embeddings", "bias", "own_rows", "subword_rows"  # of a fit


class SampleTeacher(Teacher):
    """A teacher that knows some of the documents, of the labelled ones those of `labelled`."""

    def __init__(self, terms: csr_array, adjacency: csr_array, n_jobs: int | None, labelled: Rows) -> None:
        super().__init__(terms, adjacency, n_jobs=n_jobs)
        self._labelled = labelled

    def teach(self, known: Targets | Floats, labelled: Rows, class_prior: Floats | None = None) -> Taught:
        """Learn from those of the labelled documents that are in the sample."""
        sampled = np.isin(labelled, self._labelled)
        return super().teach(known[sampled], np.searchsorted(self._labelled, labelled[sampled]), class_prior)

    def reordered(self, rows: Rows) -> Teacher:
        """Return it as it is: nothing is fitted to these documents again."""
        return self


class ShardedTrainer(Trainer):
    """The steps of a training. The documents of the task are `ShardedDocuments`, and a dual is X^T dual."""

    def __init__(
        self, task: LinearTask, training: LinearTraining, earlier: Earlier | None = None, *, site: Site
    ) -> None:
        self._site = site
        super().__init__(task, training, earlier)

    def take(self, terms: ShardedDocuments, unlabelled: ShardedDocuments) -> None:
        """Train on these documents from now on."""
        self.everything, self.unlabelled = self.joined(terms, unlabelled), unlabelled
        self.task = replace(self.task, terms=terms, unlabelled=unlabelled)

    def joined(self, terms: ShardedDocuments, unlabelled: ShardedDocuments) -> ShardedDocuments:
        """Return documents with others after them."""
        return terms.joined(unlabelled)

    def make_teacher(self) -> Teacher:
        """Return the teacher of a sample: labelled documents first, at most half of it if there are others."""
        most, n, n_unlabelled = self._site.limits.taught, len(self.rows), self.unlabelled.shape[0]
        labelled = evenly(self.rows, max(most // 2, most - n_unlabelled))
        others = n + evenly(np.arange(n_unlabelled), most - len(labelled))
        sample: ShardedDocuments = self.everything[np.concatenate([labelled, others])]
        return SampleTeacher(sample.csr, self.task.adjacency, self.training.n_jobs, labelled)

    def guess(self, scorer: Scorer) -> tuple[Rows, Floats]:
        """Return the classes of the unlabelled documents, and how certain they are, partition by partition."""
        documents: ShardedDocuments = self.unlabelled
        codes, distances = np.empty(documents.shape[0], np.int64), np.empty(documents.shape[0])
        selections, given = documents.selections(), (documents.work, documents.lead, documents.n_words, scorer)
        for selection, found in zip(selections, self._site.workers.map(_decide, selections, *given), strict=True):
            codes[selection.numbers], distances[selection.numbers] = found
        return codes, certainty(codes, distances)

    @cached_property
    def groups(self) -> Rows:
        """A number for each labelled document: copies have the same, near-copies too if all can be in memory."""
        if len(self.rows) <= self._most_judged():
            return copy_groups(self.task.terms.csr)
        assert self.task.digests is not None
        return self.equal_documents(self.task.digests)

    def in_given_order(self, dual: Floats, back: Rows, n_labelled: int) -> Floats:
        """Return X^T dual, whose rows are words, as it is."""
        return dual

    def judged_by(self, rows: Rows) -> Rows:
        """Return at most as many of the documents as are judged."""
        return evenly(rows, self._most_judged())

    def _most_judged(self) -> int:
        terms, limits = self.task.terms, self._site.limits
        return min(limits.judged, max(int(limits.judged_terms * terms.shape[0] / max(terms.nnz, 1)), 1))

    def start_of(self, known: tuple[Rows, Floats], rows: Rows) -> Floats:
        """Return X^T dual of a fit to some documents."""
        return np.asarray(self.task.terms[known[0]].csr.T @ known[1])

    def grown(self, dual: Floats, left_out: Rows) -> Floats:
        """Return the dual as it is: documents that were left out have none."""
        return dual

    def fit(
        self,
        terms: Any,
        targets: Targets,
        weight: Floats,
        taught: Taught | None,
        start: Floats | None = None,
        *,
        trial: tuple[csr_array | None, int, float] | None = None,
    ) -> LinearFit:
        """Fit once, with the settings in use: in memory for a trial or a sample, which have few documents."""
        if trial is not None:
            return super().fit(terms, targets, weight, taught, start, trial=trial)
        most = self._most_judged()
        if terms.shape[0] <= most < len(self.rows):
            sample = terms.csr
            found = super().fit(sample, targets, weight, taught)
            return replace(found, dual=np.asarray(sample.T @ found.dual))
        with stage("Fitting", f"{terms.shape[0]:,} documents"):
            return fit_sharded(
                terms,
                targets.without_first() if self.binary else targets,
                self.task.blocks,
                self.settings,
                self._site,
                n_jobs=self.training.n_jobs,
                sample_weight=weight,
                scales=self.scale[0],
                taught=taught,
                start=start,
                negligible=_NEGLIGIBLE if terms.shape[0] > most else 0.0,
            )


def _decide(selection: Selection, work: WorkFolder, lead: int, n_words: int, scorer: Scorer) -> tuple[Rows, Floats]:
    return decisions(score_batches(scorer, selection.read(work, selection.partition.values(lead), n_words)))


def fit_sharded(
    documents: ShardedDocuments,
    targets: Targets,
    blocks: Blocks,
    settings: LinearSettings,
    site: Site,
    *,
    sample_weight: Floats,
    scales: Scales,
    taught: Taught | None = None,
    start: Floats | None = None,
    negligible: float = 0.0,
    n_jobs: int | None = None,
) -> LinearFit:
    """Fit the linear model. The parameters are those of `fit_linear`, but `dual` and `start` are X^T dual.

    Where documents are very many, `negligible` is the share of the objective below which a step is the last.

    What a finished fit found is kept in the work folder, where the same fit finds it again.
    """
    name = _name(documents, targets, settings, sample_weight, taught)
    if (found := _read(name, site.work)) is not None:
        return found
    graph, subwords = used_blocks(blocks, settings, documents.dtype)
    factor = float(settings.alpha * scales.graph) if graph is not None else 0.0
    n_rows = documents.n_words + (0 if subwords is None else subwords.shape[1])
    columns = column_blocks(targets.n_classes, _TABLES * n_rows * documents.dtype.itemsize, site.limits.tables)
    with site.work.scratch(name) as scratch, ThreadPoolExecutor(n_threads(n_jobs)) as pool:
        cost = (2 * settings.C * sample_weight).astype(documents.dtype)
        parts, memory = list(_fit_partitions(documents, targets, cost, scratch)), Memory(documents.dtype)
        graph_block = GraphBlock(graph, factor, pool, memory)
        subword_block = SubwordBlock(subwords, settings.subwords * scales.subwords, pool, memory)
        operator = SumsOperator((graph_block, subword_block), memory)

        def count(some: slice | None) -> Floats:
            which = None if some is None else np.arange(some.start, some.stop)
            counts = site.workers.total(class_counts, parts, which)
            counts /= counts.dtype.type(2 * settings.C)
            return counts

        naive_bayes = NaiveBayesScales(count, settings.naive_bayes, pool, subwords, columns)
        fitted = FittedColumns(settings, documents.n_words, targets.n_classes, documents.dtype)
        for block in columns:
            operator.scale(*naive_bayes(block))
            own = None if taught is None else Taught(taught.word_scores[:, block], taught.bias[block])
            given = None if own is None else own[:2]
            problem = ShardedProblem(operator.product, parts, site.workers, scratch, block, documents.dtype, given)
            begin = start[:, block] if start is not None and start.shape[1] else None
            solution = descend(
                ShardedState(problem, begin), tol=settings.tol, max_iter=settings.max_iter, negligible=negligible
            )
            fitted.add(block, solution, operator.tables(solution.dual), own)
    result = fitted.result(factor)
    _write(name, site.work, result)
    return result


def _fit_partitions(
    documents: ShardedDocuments, targets: Targets, cost: Floats, scratch: Path
) -> Iterator[FitPartition]:
    """Write the labels and costs of the documents of each partition; those that are not given cost nothing."""
    matrix = targets.matrix
    for number, selection in enumerate(documents.selections()):
        folder, n = scratch / str(number), selection.partition.n_documents
        with writing(folder):
            folder.mkdir()
        labels = csr_array(matrix[selection.numbers])
        indptr, costs = np.zeros(n + 1, np.int64), np.zeros(n, cost.dtype)
        indptr[selection.rows + 1] = np.diff(labels.indptr)
        costs[selection.rows] = cost[selection.numbers]
        part = FitPartition(selection.partition, documents.work, str(folder), documents.n_words, documents.lead)
        shape = n, targets.n_classes
        part.write_labels(csr_array((labels.data, labels.indices, np.cumsum(indptr)), shape=shape), costs)
        yield part


def _name(
    documents: ShardedDocuments, targets: Targets, settings: LinearSettings, weight: Floats, taught: Taught | None
) -> str:
    digest = hashlib.sha256(repr((documents.partitions, documents.lead, targets.shape)).encode())
    held = targets.held if isinstance(targets.held, np.ndarray) else targets.held.indices
    for array in (documents.rows, held, weight, *(() if taught is None else taught[:2])):
        digest.update(np.ascontiguousarray(array).data)
    return f"fit-{key_of(asdict(settings), digest.hexdigest())}"


def _write(name: str, work: WorkFolder, fit: LinearFit) -> None:
    outputs = Outputs(work, name)
    arrays = {each: getattr(fit, each) for each in _ARRAYS if getattr(fit, each) is not None}
    for each, array in arrays.items():
        outputs.save(each, array)
    shapes = {each: [str(array.dtype), *array.shape] for each, array in arrays.items()}
    outputs.finish(shapes=shapes, history=fit.history, factor=fit.factor)


def _read(name: str, work: WorkFolder) -> LinearFit | None:
    if (done := work.result(name)) is None:
        return None
    arrays = {
        each: work.read(f"{name}.{each}", dtype).reshape(shape) for each, (dtype, *shape) in done["shapes"].items()
    }
    return LinearFit(**arrays, history=done["history"], factor=done["factor"])
