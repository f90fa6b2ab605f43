"""How well predictions agree with labels: figures and a table for people to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import accuracy_score, classification_report, f1_score

from wgcn.errors import InputError
from wgcn.labelling.interval import format_accuracy

__all__ = ["Labelled", "evaluation", "known_only", "label_targets"]

Labelled = tuple[str, list[str]]  # a text and its labels


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


def label_targets(rows: Sequence[Labelled], names: Sequence[str], multilabel: bool) -> npt.NDArray[np.int64]:
    """Return a 0/1 matrix of shape (texts, classes), or the class of each text if it has one."""
    places = {name: place for place, name in enumerate(names)}
    targets = np.zeros((len(rows), len(names)), np.int64)
    for row, (_, labels) in enumerate(rows):
        targets[row, [places[label] for label in labels]] = 1
    if not multilabel and (targets.sum(axis=1) != 1).any():
        raise InputError("The model gives one label per text, but the file has texts with several or an empty list.")
    return targets if multilabel else targets.argmax(axis=1)


def evaluation(truth: npt.NDArray[Any], guess: npt.NDArray[Any], names: Sequence[str]) -> tuple[dict[str, str], str]:
    """Return accuracy with its interval and macro F1, and a table of the classes.

    Both arrays have the shape (texts,) or, for several labels per text, (texts, classes).
    """
    every, n = range(len(names)), len(truth)
    macro = f1_score(truth, guess, average="macro", zero_division=0, labels=every)
    figures = {
        "texts": f"{n:,}",
        "accuracy": format_accuracy(float(accuracy_score(truth, guess)), n),
        "macro F1": f"{macro:.2%}",
    }
    table = classification_report(truth, guess, labels=every, target_names=names, digits=3, zero_division=0)
    return figures, str(table)
