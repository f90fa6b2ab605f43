"""Labels as the models need them: which documents have one, and a 0/1 matrix of classes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from wgcn.errors import InputError

__all__ = ["Labels", "few_labels", "read_class_prior", "read_labels"]


@dataclass(frozen=True)
class Labels:
    """Labels of documents, read.

    Parameters
    ----------
    classes : array of shape (classes,)
    labelled : bool array of shape (documents,)
        Which documents have a label.
    targets : float32 array of shape (labelled documents, classes)
        1 where a document has a class.
    multilabel : bool
        Whether a document may have several classes.
    """

    classes: npt.NDArray[Any]
    labelled: npt.NDArray[np.bool_]
    targets: npt.NDArray[np.float32]
    multilabel: bool


def read_labels(y: Any) -> Labels:
    """Read labels in any of scikit-learn's forms.

    Parameters
    ----------
    y : sequence
        One label a document; -1 (for numbers) or None (for strings) marks a document without. Where -1 and 1 are the
        only labels, both are classes. Or several a document: a 0/1 matrix of shape (documents, classes), a row of -1
        being a document without labels, or a list of labels a document, None for a document without.
    """
    if _is_list_of_lists(y):
        return _from_lists(y)
    y = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
    if y.ndim == 2 and y.shape[1] > 1:
        return _from_matrix(y)
    y = column_or_1d(y, warn=True)
    labelled = _labelled(y)
    known = y[labelled]
    if y.dtype == object and len(known):
        known = np.array(known.tolist())
    if known.dtype.kind == "f" and np.isnan(known).any():
        raise InputError("y has NaN. Mark documents without a label by -1, or by None among strings.")
    if not len(known):
        raise InputError("No document has a label: at least two classes are needed.")
    with few_labels():
        check_classification_targets(known)
    classes, codes = np.unique(known, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"All labels are of one class, {classes.tolist()[0]!r}: at least two classes are needed.")
    return Labels(classes, labelled, np.eye(len(classes), dtype=np.float32)[codes], False)


def read_class_prior(given: Any, labels: Labels) -> npt.NDArray[np.float64] | None:
    """Return the share of each class, or None if it is that among the labels.

    Parameters
    ----------
    given : dict, "uniform" or None
        A positive number for each class, in proportion to its share.
    labels : Labels
    """
    if given is None:
        return None
    if labels.multilabel:
        raise InputError("class_prior is for documents of one class each: with several, the shares have no sum.")
    classes = labels.classes.tolist()
    if given == "uniform":
        return np.full(len(classes), 1 / len(classes))
    if not isinstance(given, Mapping):
        raise InputError(f"class_prior must be None, 'uniform', or a dict with a share for each class, got {given!r}.")
    if set(given) != set(classes):
        strange = ", ".join(map(repr, [c for c in given if c not in classes] or [c for c in classes if c not in given]))
        raise InputError(f"class_prior must have a share for each class and for nothing else; see {strange}.")
    try:
        shares = np.array([given[name] for name in classes], np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("The shares in class_prior must be numbers.") from error
    if not (np.isfinite(shares).all() and (shares > 0).all()):
        raise InputError("The shares in class_prior must be above 0. Leave out the labels of a class that never comes.")
    return np.asarray(shares / shares.sum())


@contextmanager
def few_labels() -> Iterator[None]:
    """Keep scikit-learn from warning, where there are few labels of each class, that they may be numbers to predict."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%", UserWarning)
        yield


def _labelled(y: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    if y.dtype == object:
        return np.array([not (label is None or (isinstance(label, int) and label == -1)) for label in y], bool)
    if y.dtype.kind in "if" and not np.array_equal(np.unique(y), [-1, 1]):
        return np.asarray(y != -1)
    return np.ones(len(y), bool)


def _is_list_of_lists(y: Any) -> bool:
    """Tell lists of labels from the rows of a 0/1 matrix: those are equally long and hold nothing else."""
    if not isinstance(y, list | tuple) or not any(isinstance(labels, list | tuple | set | frozenset) for labels in y):
        return False
    rows = [labels for labels in y if isinstance(labels, list | tuple)]
    lengths = {len(row) for row in rows}
    as_matrix = len(rows) == len(y) and len(lengths) == 1 and max(lengths) > 1
    return not (as_matrix and all(label in (-1, 0, 1) for row in rows for label in row))


def _from_lists(y: Any) -> Labels:
    labelled = np.array([labels is not None for labels in y], bool)
    known = [labels for labels in y if labels is not None]
    if not all(isinstance(labels, list | tuple | set | frozenset) for labels in known):
        raise InputError("Some documents have a list of labels and some a single label: give a list for each.")
    binarizer = MultiLabelBinarizer()
    targets = binarizer.fit_transform(known).astype(np.float32)
    return _checked(Labels(np.array(binarizer.classes_.tolist()), labelled, targets, True))


def _from_matrix(y: npt.NDArray[Any]) -> Labels:
    if y.dtype.kind not in "biuf" or not np.isin(y, [-1, 0, 1]).all():
        raise InputError(
            "A label matrix holds 0 and 1, one column a class, and rows of -1 for documents without labels."
        )
    labelled = ~np.all(y == -1, axis=1)
    if np.any(y[labelled] == -1):
        raise InputError("A label matrix has -1 in all columns of a document without labels, or in none.")
    return _checked(Labels(np.arange(y.shape[1]), labelled, y[labelled].astype(np.float32), True))


def _checked(labels: Labels) -> Labels:
    if not labels.labelled.any():
        raise InputError("No document has a label: at least two classes are needed.")
    if len(labels.classes) < 2:
        raise InputError("There is only one class among the labels: at least two classes are needed.")
    return labels
