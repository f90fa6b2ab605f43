"""How accurate predictions are, and how sure that is: figures, intervals and a table for people to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from wgcn.base.arrays import Ints
from wgcn.base.errors import InputError

Labelled = tuple[str, list[str]]  # a text and its labels

_Z = 1.959963984540054  # the normal distribution has 95 % between -z and z


def accuracy_interval(n_right: float, n: int) -> tuple[float, float]:
    """Return the 95 % interval of an accuracy: Wilson's score interval for `n_right` of `n` documents.

    It lies within 0 and 1 and has a width even where all or none are right. `n_right` need not be whole, where it is
    the mean of several draws.

    Examples
    --------
    >>> low, high = accuracy_interval(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4902, 0.9433)
    """
    if not 0 <= n_right <= n or n < 1:
        raise InputError(f"n_right must be between 0 and n, and n at least 1, got {n_right} and {n}.")
    share = n_right / n
    centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    # At the ends the interval reaches 0 or 1 exactly, which the formula misses by rounding.
    return (0.0 if n_right == 0 else max(centre - half, 0.0)), (1.0 if n_right == n else min(centre + half, 1.0))


def format_accuracy(accuracy: float, n: int, what: str = "texts") -> str:
    """Return an accuracy on `n` documents with its interval, for people to read.

    Examples
    --------
    >>> format_accuracy(0.934, 1204)
    '93.40% (95% interval 91.9 to 94.7, 1,204 texts)'
    """
    low, high = accuracy_interval(accuracy * n if accuracy < 1 else n, n)
    return f"{accuracy:.2%} (95% interval {100 * low:.1f} to {100 * high:.1f}, {n:,} {what})"


def held_out_accuracy(report: dict[str, Any], network: bool = False) -> str:
    """Return the accuracy in the report of a fit, or the reason why it has none.

    The linear model holds out a tenth of many labelled documents, and cross-validates with few, which needs a class
    with two of them that are no copies of each other.
    """
    if report.get("held_out_accuracy") is not None:
        return format_accuracy(report["held_out_accuracy"], report["n_held_out"], "documents")
    if report.get("n_labelled", 0) == 0:
        return "not measured: there are no labels"
    if network:
        return "not measured: too few labels to hold some out for early stopping"
    return "not measured: no class has two labelled documents that are no copies of each other"


class Measured(NamedTuple):
    """How a model does on labelled texts."""

    texts: list[str]
    names: list[str]  # of the classes
    truth: Ints  # (texts,), or a 0/1 matrix of shape (texts, classes) if a text may have several
    guess: Ints  # likewise
    n_left_out: int  # labelled texts whose label the model does not know
    figures: dict[str, str]  # for people to read, like the table
    table: str


def measure(model: Any, found: Iterable[tuple[str, str | list[str] | None]], skip_unknown: bool) -> Measured:
    """Compare the labels of texts with those that a TextModel gives; see `known_only` for `skip_unknown`."""
    found, several, names = list(found), model.scorer.multilabel, [str(name) for name in model.classes.tolist()]
    rows = known_only(found, names, skip_unknown, several)
    n_left_out = sum(label is not None for _, label in found) - len(rows)
    texts, truth = [text for text, _ in rows], label_targets(rows, names, several)
    guess = model.predict(texts)
    if not several:
        places = {name: place for place, name in enumerate(model.classes.tolist())}
        guess = np.array([places[name] for name in guess.tolist()], np.int64)
    return Measured(texts, names, truth, guess, n_left_out, *evaluation(truth, guess, names))


def known_only(
    found: Iterable[tuple[str, str | list[str] | None]],
    names: Sequence[str],
    skip_unknown: bool,
    multilabel: bool = False,
) -> list[Labelled]:
    """Return the labelled texts, without those that have a label which is not among the names of the classes.

    Unless `skip_unknown`, such a label is an error.
    """
    rows = [(text, label if isinstance(label, list) else [label]) for text, label in found if label is not None]
    known = set(names)
    unknown = Counter(label for _, labels in rows for label in labels if label not in known)
    if unknown and not skip_unknown:
        listed = ", ".join(f"{label!r} ({count:,})" for label, count in unknown.most_common(5))
        raise InputError(
            f"{len(unknown)} labels were not in training: {listed}. Fit a model with texts of these classes, or leave "
            "such texts out with --skip-unknown."
            + (" If these are several labels each, give --label-separator." if multilabel else "")
        )
    kept = [row for row in rows if not unknown.keys() & row[1]]
    if not kept:
        raise InputError("No text with a known label is left to measure.")
    return kept


def label_targets(rows: Sequence[Labelled], names: Sequence[str], multilabel: bool) -> Ints:
    """Return a 0/1 matrix of shape (texts, classes), or the class of each text if it has one."""
    places = {name: place for place, name in enumerate(names)}
    if not multilabel:
        if any(len(set(labels)) != 1 for _, labels in rows):
            raise InputError(
                "The model gives one label per text, but the file has texts with several or an empty list."
            )
        return np.array([places[labels[0]] for _, labels in rows], np.int64)
    targets = np.zeros((len(rows), len(names)), np.int64)
    for row, (_, labels) in enumerate(rows):
        targets[row, [places[label] for label in labels]] = 1
    return targets


def evaluation(truth: Ints, guess: Ints, names: Sequence[str]) -> tuple[dict[str, str], str]:
    """Return accuracy with its interval and macro F1, and a table of the classes.

    Both arrays have the shape (texts,) or, for several labels per text, (texts, classes). As in scikit-learn, means and
    table are of the classes that a text has or is given; the others have no F1.
    """
    from sklearn.metrics import accuracy_score, classification_report, f1_score

    n, several = len(truth), truth.ndim == 2
    met = np.flatnonzero((truth | guess).any(axis=0)) if several else np.union1d(truth, guess)
    macro = f1_score(truth, guess, average="macro", zero_division=0, labels=met) if len(met) else 0.0
    figures = {
        "texts": f"{n:,}",
        "accuracy": format_accuracy(float(accuracy_score(truth, guess)), n),
        "macro F1": f"{macro:.2%}",
    }
    if len(met) < len(names):
        figures["absent"] = f"{len(names) - len(met):,} of {len(names):,} classes, which no text has or is given"
    if not len(met):
        return figures, "No text has a label or is given one."
    shown = [names[place] for place in met.tolist()]
    table = classification_report(truth, guess, labels=met, target_names=shown, digits=3, zero_division=0)
    return figures, str(table)
