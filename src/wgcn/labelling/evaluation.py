"""How well predictions agree with labels: a classifier's score, figures, and a table for people to read."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score, classification_report, f1_score

from wgcn.errors import InputError
from wgcn.labelling.interval import format_accuracy
from wgcn.labelling.labels import labelled_accuracy

__all__ = ["Labelled", "LabelledClassifier", "evaluation", "known_only", "label_targets"]

Labelled = tuple[str, list[str]]  # a text and its labels


class LabelledClassifier(ClassifierMixin):  # type: ignore[misc]
    """A classifier of scikit-learn's that takes unlabelled documents, and several labels per document."""

    classes_: npt.NDArray[Any]

    @abstractmethod
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return one label per document, or a 0/1 matrix of shape (n_documents, n_classes)."""

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the accuracy on the labelled documents; with several labels, the share that is wholly right.

        Unlabelled documents do not count. For cross-validation, `wgcn.labelling.LabelledKFold` as `cv` leaves them in
        training, where they help, and stratifies the others.

        Labels are as for `fit`, and `sample_weight` has the shape (n_documents,).
        """
        return labelled_accuracy(y, self.predict(X), self.classes_, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


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
