"""Training of the linear model: choose settings, fit, label the unlabelled documents, fit again, calibrate.

1. With `tuning`, settings are chosen by cross-validation (`wgcn.labelling.tuning`).
2. The linear model (`wgcn.linear.model`) is fitted to the labelled documents, on top of the scores of a teacher
   (`wgcn.linear.teacher`), which has learnt from the unlabelled ones.
3. Self-training: it labels the unlabelled documents and is fitted again to all, without the teacher. N-grams that no
   labelled document has are learnt only here; words have the graph and the teacher before.
4. Calibration: scores are multiplied by the factor that makes their softmax the most likely on held-out documents. With
   many labels, a tenth of them is held out of a first round of steps 2 and 3, which is fitted loosely and is the warm
   start of the final one. With few, a tenth would say little, and the teacher alone is cross-validated instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array, vstack

from wgcn.checks import check_least, check_share
from wgcn.inference.scorer import Scorer
from wgcn.inference.terms import Floats
from wgcn.labelling.additions import Added, are_few
from wgcn.labelling.seed_words import SeedRows
from wgcn.labelling.splits import Rows, cross_validation_parts, held_out_mask
from wgcn.labelling.tuning import Settings, Tuned, Tuning, tune
from wgcn.linear.model import LinearFit, LinearSettings, fit_linear, graph_scale
from wgcn.linear.operator import row_slice
from wgcn.linear.teacher import Taught, Teacher
from wgcn.progress import stage

__all__ = ["Earlier", "HeldOut", "LinearTask", "LinearTrained", "LinearTraining", "calibrate", "train_linear"]

_SHARPNESS = 2.0  # factor of the scores where nothing can be held out
# Fewer labelled documents than this are all needed for fitting, and too few to calibrate by.
_MIN_TO_HOLD_OUT = 100
# With fewer than this and a teacher, cross-validating the teacher is quicker and more certain.
_MIN_BESIDE_TEACHER = 500
# Tolerance of a fit that begins where an earlier one ended. On 20NG with 10 % new documents, scores of held-out ones
# are 0.005 from the minimum (root mean square; 0.09 at most); from zero with 1e-3, they are 0.003 (0.10).
_WARM, _WARM_FEW = 2e-2, 5e-2  # the second if few of many documents are new: scores are 0.008 from the minimum
_LOOSE = 1e-2  # tolerance of the fit that is calibrated by: closer, it finds the same factor up to 5 %
# Standard deviation of the prior of the log of the calibration factor. Without it, a few documents that are all right
# would make the model certain of everything. Chosen on training documents.
_PRIOR_LOG_DEVIATION = 0.7


@dataclass(frozen=True)
class LinearTraining:
    """How the linear model is trained."""

    settings: LinearSettings
    teacher: float = 2.0  # weight of the teacher's scores, times the share of unlabelled documents
    self_training: float = 0.3  # weight of an unlabelled document in the second fit, beside a labelled one; 0 for none
    validation_fraction: float = 0.1  # share of the labelled documents held out for calibration
    tuning: Tuning | None = None  # None: the settings are used as they are
    random_state: Any = 0
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        check_least(self, 0, "teacher", "self_training")
        check_share(self, "validation_fraction")


@dataclass(frozen=True, eq=False)
class LinearTask:
    """The documents to train on. Unlabelled ones are not used where a document may have several classes."""

    terms: csr_array  # (labelled documents, words)
    targets: Floats  # (labelled documents, classes), 1 where a document has a class, else 0
    multilabel: bool  # whether a document may have several classes
    weight: npt.NDArray[np.float64]  # (labelled documents,)
    unlabelled: csr_array  # (unlabelled documents, words)
    adjacency: csr_array  # A_vv, (words, words)
    word_vectors: Floats | None = None  # (words, values), for the teacher
    # Shares of the classes among the unlabelled documents and those to be predicted, if not those among the labels.
    class_prior: npt.NDArray[np.float64] | None = None  # (classes,)
    seeds: SeedRows | None = None  # words that stand for classes; there may be no labelled document then

    @property
    def codes(self) -> Rows:
        """The class of each document; all 0 where there may be several."""
        return np.zeros(len(self.targets), np.int64) if self.multilabel else self.targets.argmax(axis=1)


class HeldOut(NamedTuple):
    """Scores of labelled documents by a model, or with few labels a teacher, that was fitted without them."""

    rows: Rows  # which of the labelled documents; with few labels, some come several times
    scores: Floats  # (rows, classes), of the size of the final model's scores


class LinearTrained(NamedTuple):
    """The result of training."""

    scorer: Scorer
    history: list[dict[str, float]]  # objective after each iteration of the last fit
    tuned: Tuned | None
    held_out_accuracy: float | None
    n_held_out: int
    held_out: HeldOut | None
    # Of the fits to the labelled documents and, with self-training, to all documents, the labelled ones first.
    duals: list[Floats]
    teacher: Teacher | None
    own_rows: Floats  # of the last fit, as those of `LinearFit` with a column per class
    factor: float
    scale: tuple[float, int]  # of the word graph, and the number of labelled documents that gave it


Earlier = tuple[LinearTrained, Added]  # an earlier training, and how the task differs from it


class Calibration(NamedTuple):
    """The calibration factor of scores, and the accuracy on the held-out documents that gave it, if any."""

    sharpness: float = _SHARPNESS
    accuracy: float | None = None
    n_documents: int = 0
    held_out: HeldOut | None = None


def train_linear(task: LinearTask, training: LinearTraining, earlier: Earlier | None = None) -> LinearTrained:
    """Train the linear model; the result is the same, up to the tolerance, if it begins with an earlier one."""
    used = task.weight > 0
    if not used.all():  # no fold may have only documents of weight 0
        task = replace(task, terms=task.terms[used], targets=task.targets[used], weight=task.weight[used])
        earlier = None  # whose documents may be others
    trainer, tuned = _Trainer(task, training, earlier), None
    task = trainer.task
    if training.tuning is not None and earlier is not None and earlier[0].tuned is not None:
        tuned = earlier[0].tuned
        trainer.use(tuned.settings)
    elif training.tuning is not None:
        with stage("Choosing settings"):
            tuned = trainer.tune(training.tuning)
    calibrates, few = training.validation_fraction > 0, len(task.targets) < _MIN_BESIDE_TEACHER
    start, known = ([], None) if earlier is None else trainer.starts(*earlier)
    if calibrates and few and trainer.teacher is not None and trainer.teacher_weight > 0:
        scorer, fits = trainer.train(trainer.rows, start)
        with stage("Calibrating by the teacher"):
            calibration = trainer.calibrate_by_teacher(scorer)
    elif calibrates and known is not None:
        scorer, fits = trainer.train(trainer.rows, start)
        calibration = calibrate(scorer, known.scores, task.targets[known.rows])._replace(held_out=known)
    else:
        with stage("Calibrating") as calibrating:
            calibration, loose = trainer.calibrate_by_holding_out()
            calibrating.detail = f"{calibration.n_documents:,} documents held out"
        scorer, fits = trainer.train(trainer.rows, start or loose)
    if trainer.teacher and trainer.teacher.seeded and calibration.held_out is None:  # no label: what seeds alone say
        guesses = trainer.teacher.seeded.guesses()
        sharpness = calibrate(scorer, scorer.scores_of(trainer.everything), guesses).sharpness
        calibration = calibration._replace(sharpness=sharpness)
    scorer = replace(scorer, sharpness=calibration.sharpness)
    if task.class_prior is not None:
        scorer = scorer.with_prior(task.class_prior)
    _, accuracy, n_held_out, held_out = calibration
    if held_out is not None:
        held_out = held_out._replace(rows=np.flatnonzero(used)[held_out.rows])
    last, duals = fits[-1], [fit.dual for fit in fits]
    own = trainer.both_sides(last.own_rows), last.factor, trainer.scale
    return LinearTrained(scorer, last.history, tuned, accuracy, n_held_out, held_out, duals, trainer.teacher, *own)


class _Trainer:
    """The steps of a training, with the settings in use, which `tune` changes. `rows` are labelled documents."""

    def __init__(self, task: LinearTask, training: LinearTraining, earlier: Earlier | None = None) -> None:
        self.task, self.training, self.rows = task, training, np.arange(len(task.targets))
        self.settings, self.teacher_weight = training.settings, training.teacher
        self.binary = task.targets.shape[1] == 2 and not task.multilabel  # then one column is fitted
        n_labelled, n_unlabelled = len(task.targets), 0 if task.multilabel else task.unlabelled.shape[0]
        self.unlabelled_share = n_unlabelled / max(n_unlabelled + n_labelled, 1)
        self.everything, n = task.terms, n_labelled + n_unlabelled
        if n_unlabelled:  # in memory once: what there was before is not needed any more
            self.everything = csr_array(vstack([task.terms, task.unlabelled]))
            own, others = row_slice(self.everything, 0, n_labelled), row_slice(self.everything, n_labelled, n)
            self.task = task = replace(task, terms=own, unlabelled=others)
        if earlier is not None:
            few = earlier[1].same_graph and are_few(n_labelled - earlier[0].scale[1], n_labelled)
            self.settings = replace(self.settings, tol=max(self.settings.tol, _WARM_FEW if few else _WARM))
        if earlier is not None and few:
            self.scale = earlier[0].scale
        else:
            sample = (task.terms, task.weight) if n_labelled else (task.unlabelled, np.ones(n_unlabelled))
            self.scale = graph_scale(sample[0], task.adjacency, sample[1], training.n_jobs), n_labelled
        self.unlabelled = task.unlabelled[:n_unlabelled] if task.multilabel else task.unlabelled
        self.teacher: Teacher | None = None
        helps = n_unlabelled and task.adjacency.nnz and (training.teacher > 0 or training.tuning is not None)
        if helps or task.seeds is not None:
            if earlier is not None and (known := earlier[0].teacher) is not None and len(known.rows) == n:
                self.teacher = known.reordered(earlier[1].documents)
            else:
                with stage("Finding similar documents", f"{n:,} documents"):
                    graph, vectors = task.adjacency, task.word_vectors
                    self.teacher = Teacher(self.everything, graph, vectors, training.n_jobs, task.seeds)
        self._taught: dict[bytes, Taught] = {}  # by rows: in tuning, the same ones come again and again

    def starts(self, earlier: LinearTrained, added: Added) -> tuple[list[Floats], HeldOut | None]:
        """Return warm starts of the fits, and what was held out of earlier ones, if enough and not by a teacher."""
        n, before = len(self.rows), earlier.held_out
        by_teacher = earlier.teacher is not None and len(earlier.duals[0]) < _MIN_BESIDE_TEACHER
        known = None if before is None or by_teacher else added.held_out(*before, n, self.training.validation_fraction)
        return added.starts(earlier.duals, n, self.binary), None if known is None else HeldOut(*known)

    def tune(self, tuning: Tuning) -> Tuned:
        """Choose settings, and use them from now on. A trial has no second fit, which would cost the most."""
        defaults = {"C": self.settings.C, "naive_bayes": self.settings.naive_bayes}
        if self.task.adjacency.nnz:
            defaults["alpha"] = self.settings.alpha
        if self.teacher is not None:
            defaults["teacher"] = self.teacher_weight
        default = {name: float(value) for name, value in defaults.items()}
        parts = cross_validation_parts(self.task.codes, self.task.targets, self.training.random_state)
        tuned = tune(self._are_right, parts, self.task.weight, default, tuning)
        self.use(tuned.settings)
        self._taught.clear()
        return tuned

    def _are_right(self, part: Rows, values: Settings) -> npt.NDArray[np.bool_]:
        """Fit with some settings without some documents, and return for which of these the model is right."""
        self.use(values)
        rest = np.setdiff1d(self.rows, part)
        known, weight = self.task.targets[rest], self.task.weight[rest]
        scorer = self._scorer(self._fit(self.task.terms[rest], known, weight, self._teach(rest)), known, weight)
        return scorer.are_right(scorer.scores_of(self.task.terms[part]), self.task.targets[part])

    def use(self, values: Settings) -> None:
        """Take settings from now on."""
        values = dict(values)
        self.teacher_weight = values.pop("teacher", self.teacher_weight)
        self.settings = replace(self.settings, **values)  # type: ignore[arg-type]

    def train(self, rows: Rows, start: Sequence[Floats] = ()) -> tuple[Scorer, list[LinearFit]]:
        """Fit to labelled documents, and then to the unlabelled ones too; `start` has a warm start for each fit."""
        starts, prior = iter(start), self.task.class_prior
        known, weight = self.task.targets[rows], self.task.weight[rows]
        whole = len(rows) == len(self.rows)
        terms = self.task.terms if whole else self.task.terms[rows]
        taught = self._teach(rows)
        if self.task.seeds is not None and taught is not None and not known.any(axis=0).all():
            # Without a label of each class there is only what the seeds have taught. It stands for a fit of dual 0.
            n_columns, n_edged = len(taught.bias), np.count_nonzero(np.diff(self.task.adjacency.indptr))
            zeros = (np.zeros((n, n_columns), np.float32) for n in (len(rows), n_edged))
            fits = [LinearFit(next(zeros), *taught, [{"loss": 0.0}], next(zeros), 0.0)]
            scorer = self._scorer(fits[0], np.ones((1, known.shape[1])), np.ones(1))
        else:
            fits = [self._fit(terms, known, weight, taught, next(starts, None))]
            scorer = self._scorer(fits[0], known, weight)
        if self.training.self_training == 0 or not self.unlabelled.shape[0]:
            return scorer, fits
        labelling = scorer if prior is None else scorer.with_prior(prior)
        codes = labelling.scores_of(self.unlabelled).argmax(axis=1)
        targets = np.vstack([known, np.eye(known.shape[1], dtype=known.dtype)[codes]])
        # An unlabelled document weighs as much as the labelled ones of its class do on average, times self_training.
        counts = known.sum(axis=0)
        class_weight = np.where(counts > 0, (weight @ known) / np.maximum(counts, 1), 1.0)  # 1 where only seeds are
        weights = np.concatenate([weight, self.training.self_training * class_weight[codes]])
        terms = self.everything if whole else csr_array(vstack([terms, self.unlabelled]))
        fits.append(self._fit(terms, targets, weights, None, next(starts, None)))
        # Scores can be shifted to a prior only from the shares that the fit has seen.
        shares = (known, weight) if prior is None and self.task.seeds is None else (targets, weights)
        return self._scorer(fits[1], *shares), fits

    def calibrate_by_holding_out(self) -> tuple[Calibration, list[Floats]]:
        """Train without a part of the labelled documents; return warm starts of the final fits too.

        Leave-one-out scores from the dual would need no such fit, but the naive Bayes scales know the document that is
        left out: they put the accuracy 5 to 8 points too high on MR and Ohsumed.
        """
        task, fraction = self.task, self.training.validation_fraction
        if len(task.targets) < _MIN_TO_HOLD_OUT:
            fraction = 0
        held_out = held_out_mask(task.codes, fraction, self.training.random_state)
        if not held_out.any():
            return Calibration(), []
        rows, settings = np.flatnonzero(~held_out), self.settings
        self.settings = replace(settings, tol=max(settings.tol, _LOOSE))
        scorer, fits = self.train(rows)
        self.settings = settings
        scores, left_out = scorer.scores_of(task.terms[held_out]), np.flatnonzero(held_out)
        calibration = calibrate(scorer, scores, task.targets[held_out])
        # The dual of documents that are left out is 0.
        start = [np.insert(fit.dual, left_out - np.arange(len(left_out)), 0, axis=0) for fit in fits]
        return calibration._replace(held_out=HeldOut(left_out, scores)), start

    def calibrate_by_teacher(self, scorer: Scorer) -> Calibration:
        """Cross-validate the teacher alone, whose scores are brought to the scorer's size on unlabelled documents."""
        assert self.teacher is not None
        targets, scores = self.task.targets, []
        parts = cross_validation_parts(self.task.codes, targets, self.training.random_state)
        if not parts:
            return Calibration()
        for part in parts:
            rest = np.setdiff1d(self.rows, part)
            scores.append(self.teacher.teach(targets[rest], rest).scores(self.task.terms[part]))
        places, left_out = np.concatenate(parts), np.vstack(scores)
        found = calibrate(scorer, left_out, targets[places], len(np.unique(places)))
        both = scorer.scores_of(self.unlabelled), self.teacher.teach(targets, self.rows).scores(self.unlabelled)
        own, taught = (float(np.std(each - each.mean(axis=1, keepdims=True))) for each in both)
        ratio = taught / own if own > 0 and taught > 0 else 1.0
        held_out = HeldOut(places, np.asarray(left_out / ratio, left_out.dtype))
        return found._replace(sharpness=found.sharpness * ratio, held_out=held_out)

    def _teach(self, rows: Rows) -> Taught | None:
        """Return the weighted scores of the teacher, with as many columns as are fitted."""
        if self.teacher is None or self.teacher_weight == 0:
            return None
        taught, kept = self._taught.get(key := rows.tobytes()), self.training.tuning is not None
        if taught is None:
            taught = self.teacher.teach(self.task.targets[rows], rows, self.task.class_prior)
            if kept:
                self._taught[key] = taught
        weight = np.float32(self.teacher_weight * self.unlabelled_share)
        words, bias = (np.multiply(weight, part, out=None if kept else part) for part in taught)
        return Taught(words[:, 1:], bias[1:]) if self.binary else Taught(words, bias)

    def _fit(
        self, terms: csr_array, targets: Floats, weight: Floats, taught: Taught | None, start: Floats | None = None
    ) -> LinearFit:
        n, n_unlabelled = terms.shape[0], max(terms.shape[0] - len(self.rows), 0)
        with stage("Self-training" if n_unlabelled else "Fitting", f"{n:,} documents"):
            return fit_linear(
                terms,
                targets[:, 1:] if self.binary else targets,
                self.task.adjacency,
                self.settings,
                sample_weight=weight,
                scale=self.scale[0],
                taught=taught,
                start=start,
                n_jobs=self.training.n_jobs,
            )

    def _scorer(self, fitted: LinearFit, targets: Floats, weight: Floats) -> Scorer:
        table, bias = self.both_sides(fitted.word_embeddings), self.both_sides(fitted.bias)
        prior = np.average(targets, axis=0, weights=weight)
        return Scorer(table, None, bias, prior.astype(self.task.terms.dtype), _SHARPNESS, self.task.multilabel)

    def both_sides(self, fitted: Floats) -> Floats:
        """Return what was fitted with a column per class: for two classes, one column serves both."""
        return np.concatenate([-fitted, fitted], axis=-1) if self.binary else fitted


def calibrate(scorer: Scorer, scores: Floats, targets: Floats, n_documents: int | None = None) -> Calibration:
    """Find the factor of scores that makes held-out documents, and the factor itself, as likely as possible.

    The factor of `scorer` is the centre of the prior. `scores` and `targets` are of shape (documents, classes).
    `n_documents` is the number of different documents, if some occur several times.
    """
    n_documents = len(scores) if n_documents is None else n_documents
    centre = float(np.log(scorer.sharpness))

    def loss(log_sharpness: float) -> float:
        trial = replace(scorer, sharpness=float(np.exp(log_sharpness)))
        likely = np.clip(trial.probabilities(scores), 1e-12, 1 - 1e-12)
        each = -np.log(np.where(targets > 0, likely, 1 - likely if scorer.multilabel else 1.0)).sum(axis=1)
        return float(np.mean(each) + ((log_sharpness - centre) / _PRIOR_LOG_DEVIATION) ** 2 / (2 * n_documents))

    best = float(np.exp(minimize_scalar(loss, bounds=(-4.0, 4.0), method="bounded").x))
    return Calibration(best, float(np.mean(scorer.are_right(scores, targets))), n_documents)
