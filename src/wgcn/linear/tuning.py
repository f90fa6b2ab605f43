"""Choice of the linear model's settings on labelled documents that are held out, in about the time of a fit.

The default is compared with other settings in a race. All are judged on the same held-out documents, first on a part of
them, in rounds: a round varies what was best before it, and its best goes on if it is half a standard error ahead. What
is best in the end is compared with the default on the next part too. It replaces the default if it is two standard
errors ahead on all parts: the luckiest of several candidates is rarely the best.

A document counts by how clearly a model is right, from 0 to 1: the tanh of its margin, moved and halved. Shares of
right documents differ by about the same, but their standard error is two to three times as large.

What is varied: where texts are long, how many terms at the beginning of a text count more (`LEADS`); then C, and where
texts are short also a plain model without naive Bayes scales, which may be better with many classes.

Trials of the race are fitted to few documents. What is best for 3,000 need not be for a million: many noisy short texts
want a smaller C, down to a hundredth, and the naive Bayes scales that few could do without. So where documents are many
(`Thresholds.many`), the default and what the race chose are compared again by fits to many of them, and C is lowered as
long as that helps (`refine`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from wgcn.base.arrays import Floats
from wgcn.base.products import multiply
from wgcn.labels.splits import Rows, evenly
from wgcn.labels.targets import Targets
from wgcn.linear.calibration import score_batches
from wgcn.linear.model import LinearFit

if TYPE_CHECKING:
    from wgcn.linear.training import Trainer

Candidate = dict[str, float]
# Fits a model with some settings without the documents of a part, and returns `margins_of` these.
Judge = Callable[[int, Candidate], Floats]
# Given the best settings so far, returns others, and how much they have to gain at least.
Round = Callable[[Candidate], tuple[list[Candidate], float]]

# Terms at the beginning of a text that may count more: a title and the sentence after it, or the first paragraphs.
LEADS = 50, 200
_GO_ON, _REPLACE_DEFAULT = 0.5, 2.0  # standard errors ahead of what was best, and of the default
_LEAST_GAIN = 1e-3  # by another C: less is not worth a fit that may take longer
_C_FACTORS = 0.25, 2.0  # a fit with more than twice the C takes longer and gains no more
_PLAIN_FACTOR = 4.0  # without naive Bayes scales, which make the rows of documents longer
_MANY_DOCUMENTS, _MANY_TERMS = 250_000, 25_000_000  # to which trials are fitted where documents are many
_LOWER, _MOST_TRIED = 0.25, 6  # factor of C, and how many settings are compared then
_MANY_TOL = 1e-2  # tolerance of these fits
_STEEPNESS = 2.0  # from wrong to right


class Tuned(NamedTuple):
    """What was chosen, and why. Accuracies are weighted shares of the documents that were held out in turn."""

    settings: Candidate
    accuracy: float
    default_accuracy: float
    n_held_out: int  # documents on which the chosen settings, or the best of the others, were compared
    n_fits: int  # beside that of the default on the first part, which calibration needs anyway


def rounds(leads: Iterable[int], short: bool) -> list[Round]:
    """Return what is varied one after the other: the lead, if there are several, and C."""
    return [partial(_other_leads, leads=leads), partial(_other_penalties, short=short)]


def _other_leads(best: Candidate, leads: Iterable[int]) -> tuple[list[Candidate], float]:
    return [{**best, "lead": lead} for lead in leads], 0.0


def _other_penalties(best: Candidate, short: bool) -> tuple[list[Candidate], float]:
    others = [{**best, "C": best["C"] * factor} for factor in _C_FACTORS]
    if short and best["naive_bayes"] > 0:
        others.append({**best, "naive_bayes": 0.0, "C": best["C"] * _PLAIN_FACTOR})
    return others, _LEAST_GAIN


def tune(judge: Judge, parts: Sequence[Rows], weight: Floats, default: Candidate, rounds: Sequence[Round]) -> Tuned:
    """Choose between the default and what rounds propose.

    `parts` are documents to hold out in turn, and `weight`, of shape (documents,), is what each document counts.
    """
    best, n_fits, before = default, 0, [judge(0, default)]
    margins = before

    def is_ahead(ones: list[Floats], others: list[Floats], n_errors: float, least: float = 0.0) -> bool:
        rows = np.concatenate(list(parts[: len(ones)]))
        gain, error = _gain(weight[rows], np.concatenate(ones), np.concatenate(others))
        return gain > max(n_errors * error, least)

    for propose in rounds:
        others, least = propose(best)
        trials = [(settings, [judge(0, settings)]) for settings in others]
        n_fits += len(trials)
        winner = max(trials, key=lambda trial: _gain(weight[parts[0]], trial[1][0], before[0])[0], default=None)
        if winner is not None and is_ahead(winner[1], margins, _GO_ON, least):
            best, margins = winner
    for part in range(1, len(parts) if best is not default else 1):
        if not is_ahead(margins, before, _GO_ON):
            break
        before, margins = [*before, judge(part, default)], [*margins, judge(part, best)]
        n_fits += 2
    if len(margins) < len(parts) or not is_ahead(margins, before, _REPLACE_DEFAULT):
        best = default
    weights = weight[np.concatenate(list(parts[: len(margins)]))]
    accuracy, default_accuracy = (
        float(np.average(np.concatenate(each) > 0, weights=weights)) for each in (margins, before)
    )
    chosen = accuracy if best is not default else default_accuracy
    return Tuned(best, chosen, default_accuracy, len(weights), n_fits)


def refine(judge: ManyTrials, part: Rows, weight: Floats, default: Candidate, tuned: Tuned) -> Tuned:
    """Choose again between the default and what was chosen, and lower C as long as that is better.

    `part` are the documents that are held out, and `judge` fits to many others.
    """
    tried, best, before = [default], default, judge(0, default)
    judge.accept()
    margins, following = before, _lower(default) if tuned.settings == default else tuned.settings
    while following not in tried and len(tried) < _MOST_TRIED:
        tried.append(following)
        found = judge(0, following)
        gain, error = _gain(weight[part], found, margins)
        if gain > _GO_ON * error:
            best, margins = following, found
            judge.accept()
        following = _lower(best)
    accuracy, default_accuracy = (float(np.average(each > 0, weights=weight[part])) for each in (margins, before))
    return Tuned(best, accuracy, default_accuracy, len(part), tuned.n_fits + len(tried))


def _lower(settings: Candidate) -> Candidate:
    return {**settings, "C": settings["C"] * _LOWER}


def margins_of(batches: Iterable[tuple[slice, Floats]], targets: Targets, multilabel: bool) -> Floats:
    """Return how far documents are from a wrong decision, of shape (documents,): below 0 where it is wrong.

    `batches` are rows and their scores, and `targets` are of shape (documents, classes). It is the distance of the
    right score from the best wrong one, or with several labels the least distance of a score from 0, by the median of
    its size.
    """
    found = []
    for rows, scores in batches:
        inside = targets[rows].toarray() > 0
        if multilabel:
            found.append(np.where(inside, scores, -scores).min(axis=1))
        else:
            right, wrong = (np.max(scores, axis=1, where=side, initial=-np.inf) for side in (inside, ~inside))
            found.append(right - wrong)
    margins = np.concatenate(found)
    middle = float(np.median(np.abs(margins))) if len(margins) else 0.0
    return np.asarray(margins / max(middle, 1e-12), np.float64)


def _gain(weight: Floats, ones: Floats, others: Floats) -> tuple[float, float]:
    """Return how much more is right, and the standard error of this if both are equally good."""
    difference = 0.5 * (np.tanh(_STEEPNESS * ones) - np.tanh(_STEEPNESS * others))
    whole = max(float(weight.sum()), 1e-12)
    return float(weight @ difference) / whole, float(np.linalg.norm(weight * difference)) / whole


class Trials:
    """Fits with some settings without some documents, and returns their margins.

    Trials are quick, because settings are only compared by them: without the word graph, which costs most and changes
    least, and without self-training; to a loose tolerance, from where the default's fit ended; and to some documents
    where there are many, with the columns that these have.
    """

    def __init__(self, trainer: Trainer, parts: Sequence[Rows], default: Candidate) -> None:
        self._trainer, self._default, self._parts = trainer, default, parts
        self.most, self.tol = trainer.training.limits.trial, trainer.training.limits.trial_tol
        self._prepared: dict[int, _TrialPart] = {}
        # The dual of the default's last fit, and of that without the first part, with the documents that it had.
        self._last: tuple[Rows, Floats] | None = None
        self._first: tuple[Rows, Floats] | None = None

    @property
    def first(self) -> tuple[Rows, Floats]:
        """The documents of the default's fit without the first part, and their dual."""
        assert self._first is not None
        return self._first

    def __call__(self, place: int, settings: Candidate) -> Floats:
        """Return the margins of the documents of a part."""
        trainer, task = self._trainer, self._trainer.task
        if place not in self._prepared:
            self._prepared[place] = _TrialPart(trainer, self._parts[place], self.most)
        part = self._prepared[place]
        trainer.use(settings)
        known, weight = task.targets[part.known], task.weight[part.known]
        terms = task.leads[int(settings["lead"])][0] if settings["lead"] else task.terms
        own, start = part.documents(terms, part.known), None if self._last is None else dual_of(self._last, part.known)
        fitted = trainer.fit(own, known, weight, part.taught, start, trial=(part.subwords, terms.shape[1], self.tol))
        self._keep(place, settings, (part.known, fitted.dual))
        scorer = trainer.scorer(part.with_other_words(fitted), known.shares(weight))
        scores = score_batches(scorer, part.documents(terms, part.held_out))
        return margins_of(scores, task.targets[part.held_out], task.multilabel)

    def _keep(self, place: int, settings: Candidate, fitted: tuple[Rows, Floats]) -> None:
        """Keep the default's dual, from which other fits start."""
        if settings is self._default:
            self._last = fitted
            self._first = fitted if place == 0 else self._first


class ManyTrials(Trials):
    """Trials with many documents, closer to the minimum: a loose fit passes for one with a smaller C."""

    def __init__(self, trainer: Trainer, parts: Sequence[Rows], default: Candidate) -> None:
        super().__init__(trainer, parts, default)
        terms = trainer.task.terms
        fitting = max(_MANY_TERMS * terms.shape[0] // max(terms.nnz, 1), self.most)
        self.most, self.tol = min(_MANY_DOCUMENTS, fitting), _MANY_TOL

    def accept(self) -> None:
        """Take the last fit for the best so far: other fits start from it."""
        self._last = self._first = self._latest

    def _keep(self, place: int, settings: Candidate, fitted: tuple[Rows, Floats]) -> None:
        self._latest = fitted


class _TrialPart:
    """A part that is held out, and the documents that trials are fitted to, with the columns that matter.

    These are the columns that the latter have, and after them other words that have subwords, which fits learn about.
    On 20NG they are 289,000 of 441,000.
    """

    def __init__(self, trainer: Trainer, held_out: Rows, most: int) -> None:
        task = trainer.task
        self.held_out, self.known = held_out, evenly(np.setdiff1d(trainer.rows, held_out), most)
        met, first = np.unique(task.terms[self.known].indices, return_index=True)
        columns = met[np.argsort(first)]  # so that those of one document are near each other in memory
        self._n_met, self.subwords, self._others = len(columns), None, None
        if task.subwords is not None:
            others = np.setdiff1d(np.flatnonzero(np.diff(task.subwords.indptr)), met, assume_unique=True)
            self.subwords, self._others = task.subwords[columns], task.subwords[others]
            columns = np.concatenate([columns, others])
        self._places = np.full(task.terms.shape[1], -1, np.int32)
        self._places[columns] = np.arange(len(columns))
        self.taught, self._other_scores = trainer.teach(self.known), None
        if self.taught is not None:
            scores = self.taught.word_scores[columns]
            self._other_scores = scores[self._n_met :]
            self.taught = self.taught._replace(word_scores=scores[: self._n_met])

    def documents(self, terms: csr_array, rows: Rows) -> csr_array:
        """Return rows of X with these columns; those that trials are fitted to have none of the other words."""
        picked = terms[rows]
        columns = self._places[picked.indices]
        kept = columns >= 0
        offsets = np.append(0, np.cumsum(kept))[picked.indptr].astype(picked.indptr.dtype)
        n_columns = self._n_met if rows is self.known else int(self._places.max(initial=-1)) + 1
        return csr_array((picked.data[kept], columns[kept], offsets), shape=(len(rows), n_columns))

    def with_other_words(self, fitted: LinearFit) -> LinearFit:
        """Return a fit with rows for the other words: what their subwords and the teacher say."""
        if self._others is None or fitted.subword_rows is None:
            n_others = int(self._places.max(initial=-1)) + 1 - self._n_met
            rows = np.zeros((n_others, fitted.word_embeddings.shape[1]), fitted.word_embeddings.dtype)
        else:
            rows = multiply(self._others.astype(fitted.subword_rows.dtype, copy=False), fitted.subword_rows)
        if self._other_scores is not None:
            rows = rows + self._other_scores
        return replace(fitted, word_embeddings=np.concatenate([fitted.word_embeddings, rows]))


def dual_of(known: tuple[Rows, Floats], rows: Rows) -> Floats:
    """Return the dual of rows from that of known ones, 0 for others; both are ascending."""
    start = np.zeros((len(rows), known[1].shape[1]), known[1].dtype)
    start[np.isin(rows, known[0])] = known[1][np.isin(known[0], rows)]
    return start
