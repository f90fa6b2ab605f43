"""Which labels look wrong: each text is judged without its own label.

Two opinions on every text are joined, neither of which knows the text's label:

- the model's. It was fitted to the label, so the part of a score that comes from the text itself is taken out. For a
  text whose score s has not reached its target y (1 or -1), leaving it out of a linear model with a squared loss gives

      y - (y - s) (1 + q z^T z)        z: the text as the model sees it, its words times their naive Bayes scales

  q is how much of its own score a text decides. One number for texts inside a class and one for those outside make it
  agree on average with texts that the fit had really held out. These have their score from then.
- naive Bayes, one class against the rest, where a text is taken out of the counts exactly. It does not learn a wrong
  label by heart as the model does, and is the better of the two at finding one.

Both are calibrated to the labels and added, and the shares of the classes are made those of the labels. Then it is done
once more, with naive Bayes counting a text less the more its label is in doubt.

Shapes: terms (texts, words), scores and probabilities (texts, classes), codes (texts,), the class of each text.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from textwrap import shorten
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from scipy.special import softmax

from wgcn.base.errors import InputError
from wgcn.io.tables import LABEL_SEPARATOR

Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]

# Chosen on training texts of five sets with a tenth of the labels changed.
SMOOTHING = 3.0  # texts that are added to the count of every word
# Of naive Bayes beside the model: where no text was held out, and where all were, as with few labels.
_SHARE, _SHARE_BESIDE_HELD_OUT = 0.8, 0.4
_ROUNDS = 2
_OWN_PART = 1.0  # q where no text was held out
_SAMPLE = 2000  # texts by which opinions are calibrated
_SHARE_STEPS = 5


@dataclass(frozen=True)
class Doubt:
    """A label, and how wrong it looks."""

    index: int  # of the text in X
    label: Any  # the given label; a list of labels in a multi-label problem
    suggestion: Any  # the most likely one, which is the given label if that is
    # 1 minus the probability of the given label, judged without it. It ranks: of the labels above 0.5, many are right.
    score: float


class Seen(NamedTuple):
    """What a fitted model says about its labelled texts."""

    terms: csr_array  # (texts, words), rows of about length 1
    targets: Floats  # (texts, classes), 1 where a text has a class
    scores: Floats  # (texts, classes), of the model that was fitted to all of them
    held_out: tuple[Codes, Floats] | None  # some texts, possibly repeated, and scores without their labels


def doubts(seen: Seen, classes: npt.NDArray[Any], places: Codes, multilabel: bool, n: int | None = None) -> list[Doubt]:
    """Return the `n` most doubtful labels, or all, the most doubtful first.

    `places` are the indices of the texts in X. Where a text may have several labels, its score is that of the class
    that looks most wrong, and the suggestion turns all classes around that are more likely wrong than right, at least
    this one.
    """
    if n is not None and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0):
        raise InputError(f"n must be a whole number of at least 0, or None for all, got {n!r}.")
    given = seen.targets > 0
    if not given.size:  # seeds alone
        return []
    if multilabel:
        wrong = np.column_stack(list(_wrong_by_class(seen)))
        score, worst = wrong.max(axis=1), wrong.argmax(axis=1)
        turned = wrong > 0.5
        turned[np.arange(len(worst)), worst] = True
        suggested = given ^ turned
    else:
        likely = out_of_sample_probabilities(seen, given.argmax(axis=1))
        score = 1 - likely[given]
        suggested = np.eye(likely.shape[1], dtype=bool)[likely.argmax(axis=1)]
    order = np.argsort(-score, kind="stable")[:n]

    def named(rows: npt.NDArray[np.bool_], text: int) -> Any:
        names = classes[rows[text]].tolist()
        return names if multilabel else names[0]

    return [Doubt(int(places[i]), named(given, i), named(suggested, i), float(score[i])) for i in order]


def report(
    found: Sequence[Doubt], texts: Sequence[str], width: int = 80, separator: str = LABEL_SEPARATOR
) -> Iterator[str]:
    """Yield a table of doubts with the beginnings of their texts; rows are counted from 1."""
    rows = [_shown(doubt, separator) for doubt in found]
    header = ("row", "label", "suggestion", "doubt")
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for cells, text in zip((header, *rows), ("text", *(texts[doubt.index] for doubt in found)), strict=True):
        start = shorten(text, width, placeholder=" …") if len(text.split()) > 1 else text.strip()[:width]
        yield "  ".join([*(cell.ljust(size) for cell, size in zip(cells, widths, strict=True)), start]).rstrip()


def write_report(
    file: IO[bytes], found: Sequence[Doubt], texts: Sequence[str], separator: str = LABEL_SEPARATOR
) -> None:
    """Write doubts as csv, with the whole texts; rows are counted from 1."""
    wrapper = TextIOWrapper(file, "utf-8", newline="", write_through=True)
    writer = csv.writer(wrapper, lineterminator="\n")
    writer.writerow(["row", "label", "suggestion", "doubt", "text"])
    writer.writerows([*_shown(doubt, separator, "{:.4f}"), texts[doubt.index]] for doubt in found)
    wrapper.detach()


def _shown(doubt: Doubt, separator: str, form: str = "{:.0%}") -> tuple[str, str, str, str]:
    both = doubt.label, doubt.suggestion
    label, suggestion = (separator.join(map(str, each)) if isinstance(each, list) else str(each) for each in both)
    return str(doubt.index + 1), label, suggestion, form.format(doubt.score)


def _wrong_by_class(seen: Seen) -> Iterator[npt.NDArray[np.float64]]:
    """Yield for each class how likely it is wrong that a text has it, or has it not."""
    for column in range(seen.targets.shape[1]):
        codes = (seen.targets[:, column] > 0).astype(np.int64)
        if codes.min() == codes.max():  # all texts have it, or none: nothing says otherwise
            yield np.zeros(len(codes))
            continue
        held_out = None if seen.held_out is None else (seen.held_out[0], _two_sided(seen.held_out[1][:, column]))
        targets = np.eye(2, dtype=np.float32)[codes]
        binary = Seen(seen.terms, targets, _two_sided(seen.scores[:, column]), held_out)
        yield 1 - out_of_sample_probabilities(binary, codes)[np.arange(len(codes)), codes]


def _two_sided(scores: Floats) -> Floats:
    return np.column_stack([-scores, scores])


def out_of_sample_probabilities(seen: Seen, codes: Codes) -> npt.NDArray[np.float64]:
    """Return the probabilities of the classes, judged without the labels of the texts themselves."""
    rows, weight = np.arange(len(codes)), np.ones(len(codes), np.float32)
    model, n_held_out = None, 0 if seen.held_out is None else len(np.unique(seen.held_out[0]))
    share = _SHARE + (_SHARE_BESIDE_HELD_OUT - _SHARE) * n_held_out / len(codes)
    for _ in range(_ROUNDS):
        words, table = leave_one_out_scores(seen.terms, codes, seen.targets.shape[1], weight)
        if model is None:
            model = _calibrated(_without_own_part(seen, table), codes)
        likely = _with_shares((1 - share) * model + share * _calibrated(words, codes), codes)
        given = likely[rows, codes]
        weight = np.minimum(given / max(float(np.median(given)), 1e-12), 1).astype(np.float32)
    return likely


def leave_one_out_scores(terms: csr_array, codes: Codes, n_classes: int, weight: Floats) -> tuple[Floats, Floats]:
    """Return scores of naive Bayes with each text left out, and the table of words by classes.

        table = log (inside + a) - log (outside + b) + log (all outside) - log (all inside)

    Inside and outside: how many texts of a class and of the others, by weight, have a word. a + b is `SMOOTHING`,
    divided in proportion to all inside and all outside. Leaving a text out changes the count inside its class and
    outside the others; for these it is put as if they never had the word, which makes it one number per word.
    """
    texts = np.repeat(np.arange(len(codes)), np.diff(terms.indptr))
    own, words, values = codes[texts], terms.indices, terms.data
    less, cells = weight[texts], words.astype(np.int64) * n_classes + own
    inside = np.bincount(cells, less, terms.shape[1] * n_classes).astype(np.float32).reshape(-1, n_classes)
    totals, n_inside = inside.sum(axis=1), np.maximum(inside.sum(axis=0, dtype=np.float64), 1e-12)
    share = n_inside / n_inside.sum()
    a, b = (SMOOTHING * share).astype(np.float32), (SMOOTHING * (1 - share)).astype(np.float32)
    offset = (np.log1p(-np.minimum(share, 1 - 1e-12)) - np.log(share)).astype(np.float32)
    table = inside + a
    table /= totals[:, None] - inside + b
    np.log(table, out=table)
    table += offset

    count = inside.ravel()[cells]
    left = np.log((np.maximum(count - less, 0) + a[own]) / (totals[words] - count + b[own])) + offset[own]
    sums = np.bincount(texts, values * left, len(codes)).astype(np.float32)
    if n_classes == 2:  # the contrast of one class is that of the other turned around
        scores = np.column_stack([-sums, -sums])
    else:
        rarer = np.log((totals[words] + SMOOTHING) / (np.maximum(totals[words] - less, 0) + SMOOTHING))
        scores = np.asarray(terms @ table)
        scores += np.bincount(texts, values * rarer, len(codes)).astype(np.float32)[:, None]
    scores[np.arange(len(codes)), codes] = sums
    return scores, table


def _without_own_part(seen: Seen, table: Floats) -> Floats:
    """Return the model's scores as they would be without each text; `table` is that of naive Bayes."""
    contrast = np.abs(table)
    scale = np.square(0.5 + 0.5 / max(float(np.sqrt(np.mean(np.square(contrast)))), 1e-12) * contrast)
    squares = csr_array((np.square(seen.terms.data), seen.terms.indices, seen.terms.indptr), seen.terms.shape)
    size = np.asarray(squares @ scale.astype(np.float32))  # z^T z
    signs = 2 * seen.targets - 1
    slack = np.maximum(1 - signs * seen.scores, 0)
    part = np.full(signs.shape, _OWN_PART, np.float32)
    if seen.held_out is not None:
        rows, scores = seen.held_out
        for inside in (True, False):
            here = seen.targets[rows] == inside
            really = np.maximum(1 - signs[rows] * scores, 0)[here].sum(dtype=np.float64)
            fitted, own = slack[rows][here].sum(dtype=np.float64), (slack * size)[rows][here].sum(dtype=np.float64)
            part[seen.targets == inside] = max(really - fitted, 0) / own if own > 0 else _OWN_PART
    left_out = np.where(slack > 0, signs - signs * slack * (1 + part * size), seen.scores).astype(np.float32)
    if seen.held_out is not None:  # where a text was held out several times, the mean
        texts, place, times = np.unique(seen.held_out[0], return_inverse=True, return_counts=True)
        left_out[texts] = 0
        np.add.at(left_out, texts[place], seen.held_out[1] / times[place][:, None])
    return left_out


def _calibrated(scores: Floats, codes: Codes) -> Floats:
    """Return scores times the factor that makes the labels most likely."""
    rows = np.unique(np.linspace(0, len(codes) - 1, _SAMPLE).astype(int))
    sample, own = scores[rows].astype(np.float64), codes[rows]

    def loss(log_factor: float) -> float:
        likely = softmax(np.exp(log_factor) * sample, axis=1)
        return float(-np.mean(np.log(np.maximum(likely[np.arange(len(own)), own], 1e-12))))

    best = minimize_scalar(loss, bounds=(-4.0, 4.0), method="bounded", options={"xatol": 0.02}).x
    return scores * np.float32(np.exp(best))


def _with_shares(scores: Floats, codes: Codes) -> npt.NDArray[np.float64]:
    """Return probabilities whose means are the shares of the classes among the labels."""
    shift = np.zeros(scores.shape[1])
    shares = np.maximum(np.bincount(codes, minlength=scores.shape[1]) / len(codes), 1e-12)
    for _ in range(_SHARE_STEPS):
        shift += np.log(shares / np.maximum(softmax(scores + shift, axis=1).mean(axis=0), 1e-12))
    return np.asarray(softmax(scores + shift, axis=1))
