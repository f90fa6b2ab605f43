"""What to label next: texts that stand for many others, above all for those of which the model is not certain.

    gain(S) = sum_j u_j max(0, max_{i in S} cos(i, j) - max_{l labelled} cos(l, j))

A batch S is chosen greedily to maximise this facility location function. u_j is 1 without a model, so that the first
batch is spread over everything there is; later it is the uncertainty of text j. A text beside one that is chosen or
labelled gains nothing, so a batch holds no near duplicates. The function is submodular: the greedy choice reaches at
least 63 % of the best batch (Nemhauser et al., 1978), and most gains need not be computed again (Minoux, 1978).
"""

from __future__ import annotations

import csv
import heapq
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.arrays import Floats
from wgcn.base.errors import InputError
from wgcn.explain.render import harmless
from wgcn.labels.splits import Rows, evenly
from wgcn.scoring.scorer import Scorer

_WHY_FIRST = "Each stands for many other texts, and they differ from each other."
_WHY_NEXT = "Each stands for many texts of which the model is uncertain; they differ from each other and the labelled."

_CANDIDATES = 2000  # texts that a batch is chosen from; where there are more, every so many-th is taken
_POPULATION = 4000  # texts that a batch should stand for, likewise
_LABELLED = 4000  # labelled texts that are looked at, likewise
_BLOCK = 500  # rows whose cosines are computed at a time
_LEAST_WEIGHT = 1e-3  # of a text of which the model is certain
_SHOWN = 100  # characters of a text, in a terminal


class Suggestion(NamedTuple):
    """A text to label, with what the current model makes of it."""

    row: int  # of its file, from 1
    text: str
    guess: str = ""  # nothing without a model
    confidence: float | None = None  # probability of the guess


class _Model(Protocol):
    """A `wgcn.WGCNTextClassifier`."""

    classes_: npt.NDArray[Any]

    def fit(self, X: Iterable[str], y: object, /) -> _Model: ...

    def suggest(self, n: int = 10, texts: Iterable[str] | None = None) -> Rows: ...

    def predict_proba(self, X: Iterable[str], /) -> Floats: ...


def suggest(
    terms: csr_array,
    place: Callable[[csr_array], Floats],
    labelled: npt.NDArray[np.bool_],
    n: int,
    scorer: Scorer | None = None,
) -> Rows:
    """Return the indices of `n` unlabelled texts to label next, the most useful first; fewer if there are fewer.

    terms : (texts, words), rows of which are given to `place`
    place : gives texts their rows in a space, (texts, columns), each of length 1, or 0 for a text without words
    labelled : which texts have a label; texts beyond its end have none
    scorer : that of the current model; None without one
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"n must be a number of texts to label, at least 1, got {n!r}.")
    known = np.flatnonzero(labelled)
    unlabelled = np.setdiff1d(np.arange(terms.shape[0]), known)
    if not len(unlabelled):
        raise InputError("Every text has a label: there is none to suggest. Give more texts, without labels.")
    population = terms[evenly(unlabelled, _POPULATION)]
    weight = np.ones(population.shape[0], np.float32)
    if scorer is not None:
        likely = scorer.probabilities(scorer.scores_of(population))
        weight = (_LEAST_WEIGHT + uncertainty(likely, scorer.multilabel)).astype(np.float32)
    others, covered = place(population), np.zeros(population.shape[0], np.float32)
    known = evenly(known, _LABELLED)
    for begin in range(0, len(known), _BLOCK):
        np.maximum(covered, (place(terms[known[begin : begin + _BLOCK]]) @ others.T).max(axis=0), out=covered)
    candidates = evenly(unlabelled, max(_CANDIDATES, 2 * n))
    similar = np.maximum(place(terms[candidates]) @ others.T, 0)
    return candidates[greedy_cover(similar, weight, covered, min(int(n), len(candidates)))]


def suggestions(model: _Model, texts: Sequence[str], labels: Sequence[object], n: int) -> tuple[list[Suggestion], str]:
    """Return what to label next, with the guesses of a model that is fitted first, and why; None is no label.

    Labels of fewer than two classes are not enough for a fit.
    """
    rows = [row for row, label in enumerate(labels) if label is None]
    names = {name for label in labels if label is not None for name in (label if isinstance(label, list) else [label])}
    if len(names) < 2 and rows:
        chosen = [rows[i] for i in model.suggest(n, [texts[row] for row in rows])]
        return [Suggestion(row + 1, texts[row]) for row in chosen], _WHY_FIRST
    chosen = model.fit(texts, labels).suggest(n).tolist()
    likely = model.predict_proba([texts[row] for row in chosen])
    guesses = [str(model.classes_[best]) for best in likely.argmax(axis=1)]
    found = zip(chosen, guesses, likely.max(axis=1).tolist(), strict=True)
    return [Suggestion(row + 1, texts[row], guess, likely) for row, guess, likely in found], _WHY_NEXT


def uncertainty(probabilities: Floats, multilabel: bool = False) -> Floats:
    """Return how uncertain a model is of each text, from 0 to 1: 1 less the margin of the two most likely classes.

    probabilities : (texts, classes). A multi-label model is as uncertain of a text as of the class nearest to 1/2.
    """
    if multilabel:
        return np.asarray(1 - np.abs(2 * probabilities - 1).min(axis=1, initial=1))
    if probabilities.shape[1] < 2:
        return np.ones(len(probabilities))
    two = np.partition(probabilities, -2, axis=1)[:, -2:]
    return np.asarray(1 - (two[:, 1] - two[:, 0]))


def greedy_cover(similar: Floats, weight: Floats, covered: Floats, n: int) -> Rows:
    """Choose `n` rows of `similar`, (candidates, population), one after another, each with the largest gain.

    The gain of row i is the sum of weight * max(0, similar[i] - covered), and then `covered`, of shape (population,),
    is at least similar[i]. Of equal gains, the first row is taken.
    """
    covered = covered.copy()

    def gain(row: int) -> float:
        return float(np.maximum(similar[row] - covered, 0) @ weight)

    heap = [(-gain(row), row) for row in range(len(similar))]
    heapq.heapify(heap)
    chosen: list[int] = []
    while len(chosen) < n:
        row = heap[0][1]
        heapq.heapreplace(heap, (-gain(row), row))  # gains only fall: one that stays on top is the largest
        if heap[0][1] == row:
            chosen.append(row)
            heapq.heappop(heap)
            np.maximum(covered, similar[row], out=covered)
    return np.array(chosen, np.int64)


def as_lines(suggestions: Iterable[Suggestion]) -> list[str]:
    """Return one line per text for a terminal, in columns: row, guess with its probability, beginning of the text."""
    rows = [("row", "guess", "text")]
    for each in suggestions:
        guess = "" if each.confidence is None else f"{harmless(each.guess) or 'none'} {each.confidence:.0%}"
        text = harmless(" ".join(each.text.split()))
        rows.append((str(each.row), guess, text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"))
    if not any(guess for _, guess, _ in rows[1:]):
        rows = [(row, "", text) for row, _, text in rows]
    first, second = (max(len(line[column]) for line in rows) for column in (0, 1))
    return [f"{row:>{first}}  {guess:<{second}}{'  ' if second else ''}{text}" for row, guess, text in rows]


def as_csv(suggestions: Iterable[Suggestion]) -> bytes:
    """Return a table with an empty column for the labels, to be filled in with a spreadsheet."""
    buffer = io.StringIO(newline="")
    table = csv.writer(buffer, lineterminator="\n")
    table.writerow([*Suggestion._fields, "label"])
    for each in suggestions:
        confidence = "" if each.confidence is None else f"{each.confidence:.3f}"
        table.writerow([each.row, each.text, each.guess, confidence, ""])
    return buffer.getvalue().encode()
