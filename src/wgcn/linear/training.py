"""Training of the linear model: choose settings, fit, label the unlabelled documents, fit again, calibrate.

1. Where there are enough labels, settings are chosen on held-out documents (`wgcn.linear.tuning`).
2. The linear model (`wgcn.linear.model`) is fitted to the labelled documents, on top of the scores of a teacher
   (`wgcn.semi.teacher`), which has learnt from the unlabelled ones.
3. Self-training: it labels the unlabelled documents and is fitted again to all, without the teacher. A document
   counts by how certain its label is. N-grams that no labelled document has are learnt only here; words have the graph
   and the teacher before.
4. Calibration: scores are multiplied by the factor that makes their softmax the most likely on held-out documents. With
   many labels, a part of them is held out of a first round of steps 2 and 3, which is fitted loosely and is the warm
   start of the final one. With few, a part would say little: the teacher alone is cross-validated instead, or all of
   it where there is none, and probabilities are no higher than the number of labels supports
   (`wgcn.linear.calibration.expected_accuracy`).

Given shares of the classes enter once: in the labels of unlabelled documents, or, if there are none, in a shift of the
scores. All that is drawn (folds, samples) is drawn from documents in the order of their digests
(`wgcn.labels.splits`), and copies of a document are held out with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack
from sklearn.utils import check_random_state

from wgcn.base.arrays import Floats, check_table
from wgcn.base.progress import stage
from wgcn.graph.association import strongest_edges
from wgcn.labels.splits import Rows, copy_groups, cross_validation_parts, evenly, folds, held_out_mask
from wgcn.labels.targets import Targets
from wgcn.linear.calibration import (
    SHARPNESS,
    Calibration,
    HeldOut,
    believable,
    calibrate,
    expected_accuracy,
    guesses,
    most_held_out,
    score_batches,
)
from wgcn.linear.model import Blocks, LinearFit, block_scales, fit_linear
from wgcn.linear.operator import row_slice
from wgcn.linear.task import Added, Earlier, LinearTask, LinearTrained, LinearTraining, are_few
from wgcn.linear.tuning import Candidate, ManyTrials, Trials, Tuned, dual_of, refine, rounds, tune
from wgcn.scoring.scorer import Scorer
from wgcn.semi.teacher import Taught, Teacher

_TUNING_FOLDS = 5
_BELIEVED_BY = 2000  # unlabelled documents on which probabilities are compared with what is expected
_SHARE_STEPS = 50  # until shares of decisions are those that are given
_MOST_EDGES = 100  # per word, where all documents are labelled
# Tolerance of a fit that begins where an earlier one ended. On 20NG with 10 % new documents, scores of held-out ones
# are 0.005 from the minimum (root mean square; 0.09 at most); from zero with 1e-3, they are 0.003 (0.10).
_WARM, _WARM_FEW = 2e-2, 5e-2  # the second if few of many documents are new: scores are 0.008 from the minimum
_LOOSE = 1e-2  # tolerance of the fit that is calibrated by: closer, it finds the same factor up to 5 %


class MakeTrainer(Protocol):
    """What makes a `Trainer`."""

    def __call__(self, task: LinearTask, training: LinearTraining, earlier: Earlier | None) -> Trainer:
        """Return a trainer."""


def train_linear(
    task: LinearTask,
    training: LinearTraining,
    earlier: Earlier | None = None,
    make_trainer: MakeTrainer | None = None,
) -> LinearTrained:
    """Train the linear model; the result is the same, up to the tolerance, if it begins with an earlier one.

    `make_trainer` makes another `Trainer`, for documents that are not in memory.
    """
    n_subwords = 0 if task.subwords is None else task.subwords.shape[1]
    check_table(task.terms.shape[1], n_subwords, task.targets.n_classes, task.terms.dtype.itemsize)
    if not (used := task.weight > 0).all():  # no fold may have only documents of weight 0
        task = task.selected(np.flatnonzero(used), np.arange(task.unlabelled.shape[0]))
        earlier = None  # whose documents may be others
    task = task.in_order()
    places, n = task.given_places, len(task.targets)
    if earlier is not None and task.places is not None:
        earlier = Earlier(earlier.trained, earlier.added.ordered(places, n))
    trainer = (make_trainer or Trainer)(task, training, earlier)
    task, n_different = trainer.task, len(np.unique(trainer.groups))  # a copy tells nothing that it does not
    scorer, fits, calibration, tuned, measured = _calibrated(trainer, n_different, earlier)
    scorer = replace(scorer, sharpness=calibration.sharpness)
    if n_different < training.limits.beside_teacher and not task.multilabel:
        scorer = replace(scorer, sharpness=trainer.believable(scorer, calibration))
    if task.class_prior is not None:
        scorer = scorer.with_prior(task.class_prior)
    (accuracy, n_held_out), held_out = calibration.claimed, calibration.held_out
    back = np.argsort(places)  # the place here of each document in the order that was given
    if held_out is not None:
        held_out = held_out._replace(rows=places[held_out.rows])
    last = fits[-1]
    return LinearTrained(
        scorer=scorer,
        history=last.history,
        tuned=tuned,
        held_out_accuracy=accuracy,
        n_held_out=n_held_out,
        held_out=held_out,
        duals=[trainer.in_given_order(fit.dual, back, n) for fit in fits],
        teacher=None if trainer.teacher is None else trainer.teacher.reordered(back),
        own_rows=trainer.both_sides(last.own_rows),
        factor=last.factor,
        subword_rows=None if last.subword_rows is None else trainer.both_sides(last.subword_rows),
        scale=trainer.scale,
        adjacency=task.adjacency,
        n_copies=n - n_different,
        measured=measured,
    )


class Calibrated(NamedTuple):
    """A training, and how it was calibrated."""

    scorer: Scorer
    fits: list[LinearFit]
    calibration: Calibration
    tuned: Tuned | None
    measured: str


def _calibrated(trainer: Trainer, n_different: int, earlier: Earlier | None) -> Calibrated:
    """Choose settings where there are enough labels, train, and find the calibration."""
    training, task, limits = trainer.training, trainer.task, trainer.training.limits
    calibrates, few = training.validation_fraction > 0, n_different < limits.beside_teacher
    start, known = ([], None) if earlier is None else trainer.starts(*earlier)
    if (tuned := None if earlier is None else earlier.trained.tuned) is not None:
        trainer.use(tuned.settings)
    if calibrates and few and trainer.teacher is not None and training.teacher > 0:
        scorer, fits = trainer.train(trainer.rows, start)
        with stage("Calibrating by the teacher"):
            return Calibrated(scorer, fits, trainer.calibrate_by_teacher(scorer), tuned, "teacher")
    if calibrates and earlier is not None and known is not None:
        scorer, fits = trainer.train(trainer.rows, start)
        calibration = calibrate(scorer, known.scores, task.targets[known.rows])._replace(held_out=known)
        return Calibrated(scorer, fits, calibration, tuned, earlier.trained.measured)
    if calibrates and n_different < limits.hold_out:
        scorer, fits = trainer.train(trainer.rows, start)
        with stage("Calibrating by cross-validation"):
            return Calibrated(scorer, fits, trainer.calibrate_by_folds(scorer), tuned, "folds")
    if earlier is None and training.tunes(n_different):
        with stage("Choosing settings") as choosing:
            tuned = trainer.tune()
            choosing.detail = "" if tuned is None else f"{tuned.n_fits} fits"
    with stage("Calibrating") as calibrating:
        calibration, loose = trainer.calibrate_by_holding_out()
        calibrating.detail = f"{calibration.n_documents:,} documents held out"
    scorer, fits = trainer.train(trainer.rows, start or loose)
    return Calibrated(scorer, fits, calibration, tuned, "held out")


class Trainer:
    """The steps of a training, with the settings in use, which `tune` changes. `rows` are labelled documents."""

    def __init__(self, task: LinearTask, training: LinearTraining, earlier: Earlier | None = None) -> None:
        self.task, self.training, self.rows = task, training, np.arange(len(task.targets))
        self.settings = training.settings
        self.binary = task.targets.shape[1] == 2 and not task.multilabel  # then one column is fitted
        n_labelled, n_unlabelled = len(task.targets), 0 if task.multilabel else task.unlabelled.shape[0]
        self.unlabelled_share = n_unlabelled / max(n_unlabelled + n_labelled, 1)
        n = n_labelled + n_unlabelled
        if n == n_labelled:  # a teacher needs the weak edges too; beside many labels they make no difference
            self.task = task = replace(task, adjacency=strongest_edges(task.adjacency, _MOST_EDGES))
        self.take(task.terms, task.unlabelled[:n_unlabelled] if task.multilabel else task.unlabelled)
        task = self.task
        if earlier is not None:
            few = earlier.added.same_graph and are_few(n_labelled - earlier.trained.scale[1], n_labelled)
            self.settings = replace(self.settings, tol=max(self.settings.tol, _WARM_FEW if few else _WARM))
        if earlier is not None and few:
            self.scale = earlier.trained.scale
        else:
            sample = (task.terms, task.weight) if n_labelled else (task.unlabelled, np.ones(n_unlabelled))
            self.scale = block_scales(sample[0], task.blocks, sample[1], training.n_jobs), n_labelled
        self.teacher: Teacher | None = None
        helps = n_unlabelled and task.adjacency.nnz and training.teacher > 0
        if helps or task.seeds is not None:
            if task.teacher is not None:
                self.teacher = task.teacher
            elif earlier is not None and (known := earlier.trained.teacher) is not None and len(known.rows) == n:
                self.teacher = known.reordered(earlier.added.documents)
            else:
                with stage("Finding similar documents", f"{n:,} documents"):
                    self.teacher = self.make_teacher()
        # Where settings were chosen, documents to hold out, and a fit without them: its documents and their dual.
        self._judged: tuple[Rows, tuple[Rows, Floats]] | None = None

    def starts(self, earlier: LinearTrained, added: Added) -> tuple[list[Floats], HeldOut | None]:
        """Return warm starts of the fits, and what was held out of earlier ones, if enough and not by a teacher."""
        n, before = len(self.rows), earlier.held_out
        by_teacher = (
            earlier.teacher is not None
            and len(earlier.duals[0]) - earlier.n_copies < self.training.limits.beside_teacher
        )
        known = None if before is None or by_teacher else added.held_out(*before, n, self.training.validation_fraction)
        return added.starts(earlier.duals, n, self.binary), None if known is None else HeldOut(*known)

    def tune(self) -> Tuned | None:
        """Choose settings, and use them from now on; None if there is nothing to choose by."""
        targets = self.task.targets
        if not self.task.multilabel and np.mean(targets.sums() < 2) >= 0.5:
            return None
        fifths = folds(self.task.codes, _TUNING_FOLDS, check_random_state(self.training.random_state), self.groups)
        if len(fifths) < _TUNING_FOLDS:
            return None
        # The second has half of the rest: two fits judge much.
        most = most_held_out(targets.n_classes)
        parts = [self.some(part, most) for part in (fifths[0], np.sort(np.concatenate(fifths[1:3])))]
        default = {"C": float(self.settings.C), "naive_bayes": float(self.settings.naive_bayes), "lead": 0}
        judge: Trials = Trials(self, parts, default)
        short = self.task.terms.nnz < self.training.limits.short * len(targets)
        tuned = tune(judge, parts, self.task.weight, default, rounds(self.task.leads, short))
        if len(targets) >= self.training.limits.many:
            judge = many = ManyTrials(self, parts, default)
            tuned = refine(many, parts[0], self.task.weight, default, tuned)
        self.use(tuned.settings)
        if (lead := int(tuned.settings["lead"])) in self.task.leads:
            own, others = self.task.leads[lead]
            self.take(own, others[: self.unlabelled.shape[0]])
        self._judged = parts[0], judge.first
        return tuned

    def use(self, values: Candidate) -> None:
        """Take settings from now on; the lead is not one of the model."""
        own = {name: value for name, value in values.items() if name != "lead"}
        self.settings = replace(self.settings, **own)  # type: ignore[arg-type]

    def take(self, terms: csr_array, unlabelled: csr_array) -> None:
        """Train on these rows of the documents from now on."""
        self.everything, n = terms, terms.shape[0]
        if unlabelled.shape[0]:  # in memory once: what there was before is not needed any more
            self.everything = whole = self.joined(terms, unlabelled)
            terms, unlabelled = row_slice(whole, 0, n), row_slice(whole, n, whole.shape[0])
        self.task, self.unlabelled = replace(self.task, terms=terms, unlabelled=unlabelled), unlabelled

    def train(self, rows: Rows, start: Sequence[Floats] = ()) -> tuple[Scorer, list[LinearFit]]:
        """Fit to labelled documents, and then to the unlabelled ones too; `start` has a warm start for each fit."""
        starts, prior = iter(start), self.task.class_prior
        known, weight = self.task.targets[rows], self.task.weight[rows]
        whole = len(rows) == len(self.rows)
        terms = self.task.terms if whole else self.task.terms[rows]
        taught = self.teach(rows)
        seeds = self.task.seeds
        seeds_alone = seeds is not None and taught is not None and not known.sums()[seeds.classes].all()
        if seeds_alone and taught is not None:
            # While classes with seeds lack labels, there is only what seeds have taught. It stands for a fit of dual 0.
            n_columns, n_edged = len(taught.bias), np.count_nonzero(np.diff(self.task.adjacency.indptr))
            zeros = (np.zeros((n, n_columns), np.float32) for n in (len(rows), n_edged))
            fits = [LinearFit(next(zeros), *taught[:2], [{"loss": 0.0}], next(zeros), 0.0)]
            scorer = self.scorer(fits[0], np.ones(known.n_classes))
        else:
            fits = [self.fit(terms, known, weight, taught, next(starts, None))]
            scorer = self.scorer(fits[0], self.shares(known, weight))
        if self.training.self_training == 0 or not self.unlabelled.shape[0]:
            return scorer, fits
        codes, certainty = self.guess(scorer if prior is None or seeds_alone else self.with_shares(scorer, prior))
        if seeds_alone and taught is not None and taught.decided is not None:
            decided = taught.decided[len(self.rows) :]
            codes = np.where(decided >= 0, decided, codes)
        targets = Targets.stacked([known, Targets.single(codes, known.n_classes)])
        # An unlabelled document weighs as much as the labelled ones of its class do on average, times self_training.
        counts = known.sums()
        class_weight = np.where(counts > 0, known.sums(weight) / np.maximum(counts, 1), 1.0)  # 1 where only seeds are
        weights = np.concatenate([weight, self.training.self_training * class_weight[codes] * certainty])
        if seeds_alone:  # there is next to nothing that they could outweigh
            weights /= self.training.self_training
        terms = self.everything if whole else self.joined(terms, self.unlabelled)
        fits.append(self.fit(terms, targets, weights, None, next(starts, None)))
        if prior is None:
            prior = self.shares(*((known, weight) if self.task.seeds is None else (targets, weights)))
        return self.scorer(fits[1], prior), fits  # given shares are in the labels that were fitted: no shift any more

    def shares(self, targets: Targets, weight: Floats) -> Floats:
        """Return the shares of the classes; where one has no document, as if each had one more (Laplace)."""
        sums = targets.sums(weight)
        if sums.all() or self.task.multilabel:
            return targets.shares(weight)
        return np.asarray((sums + 1) / (sums + 1).sum())

    def with_shares(self, scorer: Scorer, shares: Floats) -> Scorer:
        """Return a scorer whose mean probabilities of unlabelled documents are half-way to these shares, in logarithms.

        Not all of the way: where few labels make a class uncertain, many documents of other classes would be taken.
        """
        some = evenly(np.arange(self.unlabelled.shape[0]), most_held_out(len(shares)))
        scores, shift = scorer.scores_of(self.unlabelled[some]), np.zeros(len(shares))
        for _ in range(_SHARE_STEPS):
            found = scorer.probabilities(scores + shift / scorer.sharpness).mean(axis=0)
            shift += np.log(shares) - np.log(np.maximum(found, 1e-12))
        return replace(scorer, bias=(scorer.bias + shift / 2 / scorer.sharpness).astype(scorer.bias.dtype))

    @cached_property
    def groups(self) -> Rows:
        """A number for each labelled document, (documents,): copies of each other have the same."""
        task = self.task
        if task.digests is None:
            return self.rows
        return copy_groups(task.terms) if task.are_texts else self.equal_documents(task.digests)

    def equal_documents(self, digests: npt.NDArray[np.int64]) -> Rows:
        """Return a number for each labelled document: those of one digest have the same."""
        return np.asarray(np.unique(digests[: len(self.rows)], return_inverse=True)[1])

    def different(self, rows: Rows) -> Rows:
        """Return some documents without copies of the same classes."""
        pairs = self.groups[rows] * self.task.targets.n_classes + self.task.codes[rows]
        return np.asarray(rows[np.sort(np.unique(pairs, return_index=True)[1])])

    def some(self, rows: Rows, most: int) -> Rows:
        """Return about so many of some documents, with all copies of each."""
        groups = self.groups[rows]
        different = np.unique(groups)
        kept = evenly(different, max(most * len(different) // max(len(rows), 1), 1))
        return np.asarray(rows[np.isin(groups, kept)])

    def in_given_order(self, dual: Floats, back: Rows, n_labelled: int) -> Floats:
        """Return the rows of a dual, of the labelled documents or of all, in the order that was given."""
        return dual[back] if len(dual) == len(back) else dual[back[:n_labelled]]

    def calibrate_by_holding_out(self) -> tuple[Calibration, list[Floats]]:
        """Train without a part of the labelled documents; return warm starts of the final fits too.

        Leave-one-out scores from the dual would need no such fit, but the naive Bayes scales know the document that is
        left out: they put the accuracy 5 to 8 points too high on MR and Ohsumed.
        """
        task, fraction = self.task, self.training.validation_fraction
        most = most_held_out(task.targets.n_classes)
        fraction = 0 if len(task.targets) < self.training.limits.hold_out else min(fraction, most / len(task.targets))
        if self._judged is None or fraction == 0:
            held_out, start = held_out_mask(task.codes, fraction, self.training.random_state, self.groups), None
        else:
            held_out, start = np.isin(self.rows, self._judged[0]), self._judged[1]
        if not held_out.any():
            return Calibration(), []
        rows, settings = self.judged_by(np.flatnonzero(~held_out)), self.settings
        self.settings = replace(settings, tol=max(settings.tol, _LOOSE))
        scorer, fits = self.train(rows, [] if start is None else [self.start_of(start, rows)])
        self.settings = settings
        left_out = np.flatnonzero(held_out)
        judged = self.different(left_out)
        scores = scorer.scores_of(task.terms[judged])
        calibration = calibrate(scorer, scores, task.targets[judged])
        starts = [self.grown(fit.dual, left_out) for fit in fits]
        return calibration._replace(held_out=HeldOut(judged, scores)), starts

    def calibrate_by_teacher(self, scorer: Scorer) -> Calibration:
        """Cross-validate the teacher alone, whose scores are brought to the scorer's size on unlabelled documents."""
        assert self.teacher is not None
        targets, scores = self.task.targets, []
        parts = cross_validation_parts(self.task.codes, targets, self.training.random_state, self.groups)
        if not parts:
            return Calibration()
        for part in parts:
            rest = np.setdiff1d(self.rows, part)
            scores.append(self.teacher.teach(targets[rest], rest).scores(self.task.terms[self.different(part)]))
        found, places, left_out = self.judged(scorer, parts, scores)
        some = self.unlabelled[evenly(np.arange(self.unlabelled.shape[0]), most_held_out(targets.n_classes))]
        both = scorer.scores_of(some), self.teacher.teach(targets, self.rows).scores(some)
        own, taught = (float(np.std(each - each.mean(axis=1, keepdims=True))) for each in both)
        ratio = taught / own if own > 0 and taught > 0 else 1.0
        held_out = HeldOut(places, np.asarray(left_out / ratio, left_out.dtype))
        return found._replace(sharpness=found.sharpness * ratio, held_out=held_out)

    def calibrate_by_folds(self, scorer: Scorer) -> Calibration:
        """Cross-validate the whole training, where labelled documents are few and there is no teacher."""
        targets = self.task.targets
        parts = cross_validation_parts(self.task.codes, targets, self.training.random_state, self.groups)
        if not parts:
            return Calibration()
        scores = [
            self.train(np.setdiff1d(self.rows, part))[0].scores_of(self.task.terms[self.different(part)])
            for part in parts
        ]
        found, places, left_out = self.judged(scorer, parts, scores)
        return found._replace(held_out=HeldOut(places, left_out))

    def judged(
        self, scorer: Scorer, parts: Sequence[Rows], scores: Sequence[Floats]
    ) -> tuple[Calibration, Rows, Floats]:
        """Calibrate by the scores of held-out parts without copies; return also their documents, and all scores."""
        places, left_out = np.concatenate([self.different(part) for part in parts]), np.vstack(scores)
        n = len(np.unique(places))
        found = calibrate(scorer, left_out, self.task.targets[places], n)
        return found._replace(n_alone=len(self.different(self.rows)) - n), places, left_out

    def believable(self, scorer: Scorer, calibration: Calibration) -> float:
        """Return the calibration factor, lowered where it claims more than so few labels support."""
        targets, accuracy = self.task.targets, calibration.accuracy
        if self.teacher is not None and self.teacher.seeded is not None and accuracy is None:
            expected = self.teacher.seeded.trust.expected()
        else:
            expected = expected_accuracy(accuracy, calibration.n_documents, targets[self.different(self.rows)].sums())
        judged = None if calibration.held_out is None else calibration.held_out.scores
        n_unlabelled = self.unlabelled.shape[0]
        if n_unlabelled:
            scores = scorer.scores_of(self.unlabelled[evenly(np.arange(n_unlabelled), _BELIEVED_BY)])
        else:
            scores = scorer.scores_of(self.task.terms) if judged is None else judged
        return believable(scorer, scores, expected, judged)

    def joined(self, terms: csr_array, unlabelled: csr_array) -> csr_array:
        """Return documents with others after them."""
        return csr_array(vstack([terms, unlabelled]))

    def make_teacher(self) -> Teacher:
        """Return the teacher of all documents."""
        task = self.task
        return Teacher(self.everything, task.adjacency, task.word_vectors, self.training.n_jobs, task.seeds)

    def guess(self, scorer: Scorer) -> tuple[Rows, Floats]:
        """Return the classes of the unlabelled documents, and how certain they are."""
        return guesses(score_batches(scorer, self.unlabelled))

    def judged_by(self, rows: Rows) -> Rows:
        """Return those of the documents which are not held out that a fit to be judged by the others has."""
        return rows

    def start_of(self, known: tuple[Rows, Floats], rows: Rows) -> Floats:
        """Return the warm start of a fit to some documents, from the documents of another fit and their dual."""
        return dual_of(known, rows)

    def grown(self, dual: Floats, left_out: Rows) -> Floats:
        """Return the dual of all documents, 0 for those that were left out."""
        return np.insert(dual, left_out - np.arange(len(left_out)), 0, axis=0)

    def teach(self, rows: Rows) -> Taught | None:
        """Return the weighted scores of the teacher, with as many columns as are fitted."""
        if self.teacher is None or self.training.teacher == 0:
            return None
        taught = self.teacher.teach(self.task.targets[rows], rows, self.task.class_prior)
        weight = np.float32(self.training.teacher * self.unlabelled_share)
        words, bias = (np.multiply(weight, part, out=part) for part in taught[:2])
        return Taught(words[:, 1:], bias[1:], taught.decided) if self.binary else taught

    def fit(
        self,
        terms: csr_array,
        targets: Targets,
        weight: Floats,
        taught: Taught | None,
        start: Floats | None = None,
        *,
        trial: tuple[csr_array | None, int, float] | None = None,
    ) -> LinearFit:
        """Fit once, with the settings in use; a trial has its subwords, the number of all words, and a tolerance."""
        n, n_unlabelled = terms.shape[0], max(terms.shape[0] - len(self.rows), 0)
        subwords, n_words, tol = trial or (self.task.subwords, None, 0.0)
        with stage("Self-training" if n_unlabelled else "Fitting", f"{n:,} documents"):
            return fit_linear(
                terms,
                targets.without_first() if self.binary else targets,
                Blocks(None if trial else self.task.adjacency, subwords),
                replace(self.settings, tol=max(self.settings.tol, tol)),
                sample_weight=weight,
                scales=self.scale[0],
                taught=taught,
                start=start,
                n_words=n_words,
                n_jobs=self.training.n_jobs,
            )

    def scorer(self, fitted: LinearFit, prior: Floats) -> Scorer:
        """Return what a fit to classes of these shares predicts with, not yet calibrated."""
        table, bias = self.both_sides(fitted.word_embeddings), self.both_sides(fitted.bias)
        return Scorer(table, None, bias, prior.astype(self.task.terms.dtype), SHARPNESS, self.task.multilabel)

    def both_sides(self, fitted: Floats) -> Floats:
        """Return what was fitted with a column per class: for two classes, one column serves both."""
        return np.concatenate([-fitted, fitted], axis=-1) if self.binary else fitted
