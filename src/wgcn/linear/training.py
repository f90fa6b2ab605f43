"""How the linear model is trained: choose settings, fit, label the documents without a label, fit again.

1. If asked, settings are chosen by documents that are held out in turn (`wgcn.linear.tuning`).
2. The linear model (`wgcn.linear.model`) is fitted to the documents with a label, beside what a teacher says
   (`wgcn.linear.teacher`), which knows those without.
3. Self-training: it labels the documents without a label, all of them, and is fitted again to all, without the teacher.
   N-grams that no labelled document has are learnt only here; words have the graph and the teacher before.

To learn how far the scores can be trusted, 2 and 3 are done without some of the documents with a label first. If they
are few, a tenth of them would say little: then the teacher alone learns without parts of them in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array, vstack
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from wgcn.errors import InputError
from wgcn.estimators.labels import Labels
from wgcn.inference.model import Scorer
from wgcn.linear.model import LinearFit, LinearSettings, fit_linear, graph_scale
from wgcn.linear.teacher import Taught, Teacher, evenly
from wgcn.linear.tuning import Settings, Tuned, deal_out, tune
from wgcn.network.callbacks import TrialCallback

__all__ = ["LinearTrained", "LinearTraining", "Tuning", "train_linear"]

Floats = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

# Fewer labelled documents than this are all needed for fitting, and too few to learn much from if held out.
_MIN_FOR_HOLDING_OUT = 100
# With fewer than this, and a teacher, it is quicker and more certain to ask the teacher about each of them.
_MIN_BESIDE_A_TEACHER = 500
# How far the logarithm of what scores are multiplied by is from the usual, before any document is looked at. Without
# this, a few documents that are all right would make the model certain of everything. Chosen on training documents.
_DOUBT = 0.7


@dataclass(frozen=True)
class Tuning:
    """How long settings are chosen: see `wgcn.linear.tuning`."""

    seconds: float
    trials: int
    callbacks: Sequence[TrialCallback] = ()


@dataclass(frozen=True)
class LinearTraining:
    """How the linear model is trained.

    Parameters
    ----------
    settings : LinearSettings
    teacher : float
        Weight of what the teacher says, times the share of the documents without a label.
    self_training : float
        Weight of a document without a label in the second fit, beside one with; 0 for no second fit.
    validation_fraction : float
        Share of the documents with a label that are left out at first.
    tuning : Tuning, optional
    random_state : int, RandomState or None
    n_jobs : int, optional
    class_prior : array of shape (classes,), optional
        Shares of the classes among the documents without a label and those to come, if they are not those among the
        labels.
    """

    settings: LinearSettings
    teacher: float
    self_training: float
    validation_fraction: float
    tuning: Tuning | None = None
    random_state: Any = 0
    n_jobs: int | None = None
    class_prior: npt.NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        for name in ("teacher", "self_training"):
            if not 0 <= getattr(self, name) < np.inf:
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)}.")
        if not 0 <= self.validation_fraction < 1:
            raise InputError(f"validation_fraction must be at least 0 and below 1, got {self.validation_fraction}.")


class LinearTrained(NamedTuple):
    """What training leaves."""

    scorer: Scorer
    history: list[dict[str, float]]  # objective after each iteration of the last fit
    alpha: float | Floats
    tuned: Tuned | None
    held_out_accuracy: float | None
    n_held_out: int


def train_linear(
    terms: csr_array,
    labels: Labels,
    weight: npt.NDArray[np.float64],
    others: csr_array,
    adjacency: csr_array,
    training: LinearTraining,
    word_vectors: Floats | None = None,
) -> LinearTrained:
    """Train the linear model.

    Parameters
    ----------
    terms : csr_array of shape (documents, words)
        Documents with a label.
    labels : Labels
    weight : array of shape (documents,)
        Not negative. A document of weight 0 is left out.
    others : csr_array of shape (more documents, words)
        Documents without one. Where a document may have several classes, they are not used.
    adjacency : csr_array of shape (words, words)
        A_vv.
    training : LinearTraining
    word_vectors : array of shape (words, values), optional
    """
    used = weight > 0
    if not used.all():  # a part of the documents must not have the weight 0 in all
        terms, weight, labels = terms[used], weight[used], replace(labels, targets=labels.targets[used])
    trainer = _Trainer(terms, labels, weight, others, adjacency, training, word_vectors)
    tuned = trainer.tune(training.tuning) if training.tuning is not None else None
    accuracy, sharpness, start = None, None, None
    held_out = np.zeros(len(labels.targets), bool) if trainer.asks_its_teacher else _held_out(labels, training)
    n_held_out = int(held_out.sum())
    if n_held_out:
        first, start = trainer.train(np.flatnonzero(~held_out))
        rows = terms[held_out]
        scores = first.scores(rows.data, rows.indices, rows.indptr)
        accuracy = _accuracy(scores, labels.targets[held_out], labels.multilabel)
        sharpness = _sharpness(first, scores, labels.targets[held_out], n_held_out)
    scorer, fits = trainer.train(np.arange(len(labels.targets)), start)
    if trainer.asks_its_teacher:
        sharpness, accuracy, n_held_out = trainer.ask_the_teacher(scorer)
    if sharpness is not None:
        scorer = replace(scorer, sharpness=sharpness)
    if training.class_prior is not None:
        scorer = scorer.with_prior(training.class_prior)
    return LinearTrained(scorer, fits[-1].history, fits[-1].alpha, tuned, accuracy, n_held_out)


class _Trainer:
    """The documents, and the settings that are in use."""

    def __init__(
        self,
        terms: csr_array,
        labels: Labels,
        weight: npt.NDArray[np.float64],
        others: csr_array,
        adjacency: csr_array,
        training: LinearTraining,
        word_vectors: Floats | None,
    ) -> None:
        self.terms, self.labels, self.weight, self.adjacency = terms, labels, weight, adjacency
        self.training, self.settings, self.strength = training, training.settings, training.teacher
        self.binary = len(labels.classes) == 2 and not labels.multilabel
        self.scale = graph_scale(terms, adjacency, self.settings.order, weight)
        n_labelled, n_others = len(labels.targets), 0 if labels.multilabel else others.shape[0]
        self.share = n_others / max(n_others + n_labelled, 1)
        self.others = others[evenly(n_others, n_labelled)]
        self.teacher: Teacher | None = None
        if n_others and adjacency.nnz and (training.teacher > 0 or training.tuning is not None):
            everything = csr_array(vstack([terms, self.others]))
            self.teacher = Teacher(everything, n_labelled, adjacency, word_vectors)
        self.known: dict[bytes, Taught] = {}  # while settings are tried, the same documents teach again and again

    def tune(self, tuning: Tuning) -> Tuned:
        """Choose settings, and use them from now on. A trial has no second fit, which would cost the most."""
        defaults = {"C": self.settings.C, "naive_bayes": self.settings.naive_bayes}
        if self.adjacency.nnz and self.settings.order:
            defaults["alpha"] = self.settings.alpha
        if self.teacher is not None:
            defaults["teacher"] = self.strength

        def attempt(rows: Rows, values: Settings) -> Scorer:
            self._use(values)
            return self._scorer(self._first_fit(rows, None, keep=True), rows)

        tuned = tune(
            attempt,
            self.terms,
            self.labels,
            self.weight,
            {name: float(value) for name, value in defaults.items()},
            seconds=tuning.seconds,
            trials=tuning.trials,
            random_state=self.training.random_state,
            callbacks=tuning.callbacks,
        )
        self._use(tuned.settings)
        self.known.clear()
        return tuned

    def _use(self, values: Settings) -> None:
        values = dict(values)
        self.strength = values.pop("teacher", self.strength)
        self.settings = replace(self.settings, **values)  # type: ignore[arg-type]

    def train(self, rows: Rows, start: Sequence[LinearFit] | None = None) -> tuple[Scorer, list[LinearFit]]:
        """Fit to some of the documents with a label, and then to those without too; each fit may have its start."""
        begin = iter(start or ())
        fits = [self._first_fit(rows, next(begin, None))]
        scorer = self._scorer(fits[0], rows)
        if self.training.self_training > 0 and self.others.shape[0]:
            second, shares = self._second_fit(rows, scorer, next(begin, None))
            fits.append(second)
            scorer = self._scorer(second, rows)
            if self.training.class_prior is not None:
                scorer = replace(scorer, prior=shares)
        return scorer, fits

    @property
    def asks_its_teacher(self) -> bool:
        """Whether there are few labels, a teacher, and a wish to know how good the model is."""
        few = len(self.labels.targets) < _MIN_BESIDE_A_TEACHER
        return few and self.training.validation_fraction > 0 and self.teacher is not None and self.strength > 0

    def ask_the_teacher(self, scorer: Scorer) -> tuple[float | None, float | None, int]:
        """Return a sharpness for the scorer, and how often the teacher is right, by documents it has no labels of.

        Its scores are of another size than those of the scorer: what both say of the documents without a label tells.
        """
        assert self.teacher is not None
        targets = self.labels.targets
        parts = deal_out(self.labels, check_random_state(self.training.random_state))
        if not parts:
            return None, None, 0
        scores = []
        for part in parts:
            rest = np.setdiff1d(np.arange(len(targets)), part)
            scores.append(_said(self.teacher.teach(targets[rest], rest), self.terms[part]))
        places, said = np.concatenate(parts), np.vstack(scores)
        n_documents = len(np.unique(places))
        sharpness = _sharpness(scorer, said, targets[places], n_documents)
        others = self.others
        own = _size(scorer.scores(others.data, others.indices, others.indptr))
        taught = _size(_said(self.teacher.teach(targets, np.arange(len(targets))), others))
        if own > 0 and taught > 0:
            sharpness *= taught / own
        return sharpness, _accuracy(said, targets[places], multilabel=False), n_documents

    def _first_fit(self, rows: Rows, start: LinearFit | None, *, keep: bool = False) -> LinearFit:
        taught = self._teach(rows, keep)
        return self._fit(self.terms[rows], self.labels.targets[rows], self.weight[rows], taught, start)

    def _second_fit(self, rows: Rows, scorer: Scorer, start: LinearFit | None) -> tuple[LinearFit, Floats]:
        """Return the fit, and the shares of the classes in it."""
        others, known, weight = self.others, self.labels.targets[rows], self.weight[rows]
        if self.training.class_prior is not None:
            scorer = scorer.with_prior(self.training.class_prior)
        codes = scorer.scores(others.data, others.indices, others.indptr).argmax(axis=1)
        targets = np.vstack([known, np.eye(known.shape[1], dtype=known.dtype)[codes]])
        # A document weighs as much as those with a label of its class do, on average.
        each = (weight @ known) / np.maximum(known.sum(axis=0), 1)
        weight = np.concatenate([weight, self.training.self_training * each[codes]])
        shares = np.average(targets, axis=0, weights=weight).astype(self.terms.dtype)
        return self._fit(csr_array(vstack([self.terms[rows], others])), targets, weight, None, start), shares

    def _teach(self, rows: Rows, keep: bool) -> Taught | None:
        if self.teacher is None or self.strength == 0:
            return None
        taught = self.known.get(rows.tobytes()) or self.teacher.teach(
            self.labels.targets[rows], rows, self.training.class_prior
        )
        if keep:
            self.known[rows.tobytes()] = taught
        words, bias = (np.float32(self.strength * self.share) * part for part in taught)
        return Taught(words[:, 1:], bias[1:]) if self.binary else Taught(words, bias)

    def _fit(
        self, terms: csr_array, targets: Floats, weight: Floats, taught: Taught | None, start: LinearFit | None
    ) -> LinearFit:
        return fit_linear(
            terms,
            targets[:, 1:] if self.binary else targets,
            self.adjacency,
            self.settings,
            multilabel=self.labels.multilabel,
            sample_weight=weight,
            scale=self.scale,
            taught=taught,
            start=start,
            n_jobs=self.training.n_jobs,
        )

    def _scorer(self, fitted: LinearFit, rows: Rows) -> Scorer:
        table, bias = fitted.word_embeddings, fitted.bias
        if self.binary:
            table, bias = np.hstack([-table, table]), np.concatenate([-bias, bias])
        prior = np.average(self.labels.targets[rows], axis=0, weights=self.weight[rows]).astype(self.terms.dtype)
        return Scorer(table, None, bias, prior, 1.0 if self.settings.loss == "softmax" else 2.0, self.labels.multilabel)


def _held_out(labels: Labels, training: LinearTraining) -> npt.NDArray[np.bool_]:
    held_out = np.zeros(len(labels.targets), bool)
    if training.validation_fraction > 0 and len(held_out) >= _MIN_FOR_HOLDING_OUT:
        codes = np.zeros(len(held_out), np.int64) if labels.multilabel else labels.targets.argmax(axis=1)
        counts, seed = np.bincount(codes), check_random_state(training.random_state)
        # Of each class one document stays in training.
        size = min(round(training.validation_fraction * len(held_out)), int(np.maximum(counts - 1, 0).sum()))
        if size < max(int(np.sum(counts > 1)), 1):  # too few for one of each class that has several
            order = seed.permutation(len(held_out))
            spare = np.delete(order, np.unique(codes[order], return_index=True)[1])
            held_out[spare[:size]] = True
        else:  # in proportion to the classes
            common = np.flatnonzero(counts[codes] > 1)
            stratify = None if labels.multilabel else codes[common]
            held_out[train_test_split(common, test_size=size, stratify=stratify, random_state=seed)[1]] = True
    return held_out


def _accuracy(scores: Floats, targets: Floats, multilabel: bool) -> float:
    if multilabel:
        return float(np.mean(np.all((scores > 0) == targets, axis=1)))
    return float(np.mean(scores.argmax(axis=1) == targets.argmax(axis=1)))


def _said(taught: Taught, terms: csr_array) -> Floats:
    return np.asarray(terms @ taught.word_scores + taught.bias)


def _size(scores: Floats) -> float:
    """Return how far the scores of a document are apart, as the root of a mean square."""
    return float(np.std(scores - scores.mean(axis=1, keepdims=True)))


def _sharpness(scorer: Scorer, scores: Floats, targets: Floats, n_documents: int) -> float:
    """Find what to multiply scores by so that held-out documents, and the factor itself, are as likely as possible."""
    usual = float(np.log(scorer.sharpness))

    def surprise(log_sharpness: float) -> float:
        trial = replace(scorer, sharpness=float(np.exp(log_sharpness)))
        likely = np.clip(trial.probabilities(scores), 1e-12, 1 - 1e-12)
        each = -np.log(np.where(targets > 0, likely, 1 - likely if scorer.multilabel else 1.0)).sum(axis=1)
        return float(np.mean(each) + ((log_sharpness - usual) / _DOUBT) ** 2 / (2 * n_documents))

    return float(np.exp(minimize_scalar(surprise, bounds=(-4.0, 4.0), method="bounded").x))
