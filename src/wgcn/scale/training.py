"""Training of the linear model on documents on disk: the steps of `wgcn.linear.training`.

What is judged by samples there is judged by the same samples here, read into memory: settings, calibration, scales. The
teacher learns from a sample that fits, all documents if they do. The fits themselves, and the labels that self-training
gives to unlabelled documents, go through all parts.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from wgcn.base.arrays import Floats, Ints
from wgcn.base.progress import stage
from wgcn.labels.splits import Rows, copy_groups, evenly
from wgcn.labels.targets import Targets
from wgcn.linear.calibration import certainty, decisions, score_batches
from wgcn.linear.model import LinearFit
from wgcn.linear.task import Earlier, LinearTask, LinearTraining
from wgcn.linear.training import Trainer
from wgcn.scale.documents import ShardedDocuments, StoredRows
from wgcn.scale.fitting import Workplace, fit_sharded
from wgcn.scoring.scorer import Scorer
from wgcn.semi.teacher import Taught, Teacher

# Labelled documents, and their terms, of a fit that held-out ones judge. Of more, a sample is fitted in memory, which
# says as much, and from which the fit to all documents starts.
_JUDGED, _JUDGED_TERMS = 250_000, 25_000_000
_NEGLIGIBLE = 1e-3  # in fits to more documents: a step that lowers the objective by a smaller share is the last
_TEACHER_BYTES = 20_000  # per document of the teacher's sample: its place in a space of 300 columns, its neighbours


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
        self, task: LinearTask, training: LinearTraining, earlier: Earlier | None = None, *, place: Workplace
    ) -> None:
        self._place = place
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
        most, n, n_unlabelled = self._place.memory // _TEACHER_BYTES, len(self.rows), self.unlabelled.shape[0]
        labelled = evenly(self.rows, max(most // 2, most - n_unlabelled))
        others = n + evenly(np.arange(n_unlabelled), most - len(labelled))
        sample: ShardedDocuments = self.everything[np.concatenate([labelled, others])]
        return SampleTeacher(sample.csr, self.task.adjacency, self.training.n_jobs, labelled)

    def guess(self, scorer: Scorer) -> tuple[Rows, Floats]:
        """Return the classes of the unlabelled documents, and how certain they are, part by part."""
        documents: ShardedDocuments = self.unlabelled
        codes, distances = np.empty(documents.shape[0], np.int64), np.empty(documents.shape[0])
        owners, items = [], []
        for stored, own, places in documents.by_part():
            owners.append(own)
            items.append((stored, places, documents.lead, documents.n_words))
        for own, found in zip(owners, self._place.workers.map(_decide, items, scorer), strict=True):
            codes[own], distances[own] = found
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
        terms: ShardedDocuments = self.task.terms
        return min(_JUDGED, max(int(_JUDGED_TERMS * terms.shape[0] / max(terms.nnz, 1)), 1))

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
                self._place,
                sample_weight=weight,
                scales=self.scale[0],
                taught=taught,
                start=start,
                negligible=_NEGLIGIBLE if terms.shape[0] > most else 0.0,
            )


def _decide(item: tuple[StoredRows, Ints, int, int], scorer: Scorer) -> tuple[Rows, Floats]:
    stored, places, lead, n_words = item
    values = f"values-{lead if lead in stored.leads else 0}"
    rows = stored.select(places, values, stored.dtype, n_words)
    return decisions(score_batches(scorer, rows))
