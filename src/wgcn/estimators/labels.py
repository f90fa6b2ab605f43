"""Labels as the models need them: which documents have one, and a 0/1 matrix of classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Number, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import accuracy_score
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from wgcn.errors import InputError
from wgcn.linear.splits import few_labels

__all__ = [
    "Labels",
    "check_total_weight",
    "checked_weights",
    "class_weighted",
    "labelled_accuracy",
    "read_class_prior",
    "read_labels",
]

_LISTS = (list, tuple, set, frozenset, np.ndarray)
_MATRIX = (
    "A label matrix holds 0 and 1, one column a class, and rows of -1 or of missing values for documents without "
    "labels."
)


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
    """Read labels in any of scikit-learn's forms, from lists, tuples, numpy arrays or pandas objects.

    A missing value (None, NaN, NaT, pandas.NA) marks a document without a label, and so does the number -1, among
    strings too. Where, apart from missing values, -1 and 1 are the only labels, both are classes. The strings "-1" and
    "nan" are classes. Strings and numbers cannot be mixed. Floats stay floats, as in scikit-learn, but whole numbers
    beside a missing value become integers: pandas turns integers beside a missing value into floats.

    Parameters
    ----------
    y : sequence
        One label a document. Or several a document: a 0/1 matrix of shape (documents, classes), a row of -1 or of
        missing values being a document without labels; or a list of labels a document, a missing value or -1, alone
        or in a list, for a document without. An empty list is a document of which it is known that it has no class.
    """
    values = _as_array(y)
    if values.ndim == 2 and values.shape[1] > 1:
        return _from_matrix(values)
    values = column_or_1d(values, warn=True)
    if _has_lists(values):
        return _from_lists(values)
    labelled, known = _single(values)
    if known.dtype.kind in "if" and not np.array_equal(np.unique(known), [-1, 1]):
        labelled, known = _without_minus_one(labelled, known)
    if not len(known):
        raise InputError("No document has a label: at least two classes are needed.")
    with few_labels():
        check_classification_targets(known)
    classes, codes = np.unique(known, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"All labels are of one class, {classes.tolist()[0]!r}: at least two classes are needed.")
    return Labels(classes, labelled, np.eye(len(classes), dtype=np.float32)[codes], False)


def labelled_accuracy(
    y: Any, predicted: npt.NDArray[Any], classes: npt.NDArray[Any], sample_weight: npt.ArrayLike | None = None
) -> float:
    """Return the share of the documents with a label that are predicted right: with several labels, wholly right.

    Parameters
    ----------
    y : sequence
        As for `read_labels`; documents without a label do not count. -1 is a label only if it is one of the classes.
    predicted : array of shape (documents,), or of shape (documents, classes) if a document may have several classes
    classes : array of shape (classes,)
        Those of the model.
    sample_weight : array of shape (documents,), optional
    """
    values = _as_array(y)
    check_consistent_length(values, predicted)
    weight = checked_weights(sample_weight, len(values))
    if predicted.ndim == 2:
        labelled, truth = _indicators(values, classes)
    else:
        labelled, truth = _single(column_or_1d(values, warn=True))
        if truth.dtype.kind in "if" and -1 not in classes.tolist():
            labelled, truth = _without_minus_one(labelled, truth)
    if not labelled.any():
        raise InputError("No document has a label: there is nothing to measure by. Give some documents with labels.")
    check_total_weight(weight[labelled])
    with few_labels():
        return float(accuracy_score(truth, predicted[labelled], sample_weight=weight[labelled]))


def checked_weights(sample_weight: npt.ArrayLike | None, n_documents: int) -> npt.NDArray[np.float64]:
    """Return the weights of documents, 1 each by default, or say what is wrong with them."""
    if sample_weight is None:
        return np.ones(n_documents)
    try:
        weight = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("sample_weight must have a number for each document.") from error
    if weight.ndim == 0:
        weight = np.full(n_documents, weight)
    if weight.shape != (n_documents,):
        raise InputError(f"sample_weight has the shape {weight.shape}, but there are {n_documents:,} documents.")
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(wrong):
        raise InputError(
            f"sample_weight must be finite and not negative, got {weight[wrong[0]]} for document {wrong[0]} (counted "
            "from 0). Give 0 to a document that is not to count."
        )
    return weight


def check_total_weight(weight: npt.NDArray[np.float64]) -> None:
    """Raise an error if no document counts."""
    if not weight.any():
        raise InputError(
            "All documents with a label have the weight zero: at least one must have a weight above 0. See "
            "sample_weight and class_weight."
        )


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


def class_weighted(
    weight: npt.NDArray[np.float64], class_weight: dict[Any, float] | str | None, labels: Labels
) -> npt.NDArray[np.float64]:
    """Return the weights of labelled documents times those of their classes."""
    if class_weight is None:
        return weight
    if labels.multilabel:
        raise InputError("class_weight is for documents of one class each; use sample_weight instead.")
    if isinstance(class_weight, Mapping):
        for name, value in class_weight.items():
            if not (isinstance(value, Real) and 0 <= value < np.inf):
                raise InputError(
                    f"The weights in class_weight must be numbers of at least 0, got {value!r} for {name!r}."
                )
    elif class_weight != "balanced":
        raise InputError(f"class_weight must be None, 'balanced' or a dict, got {class_weight!r}.")
    own = labels.classes[labels.targets.argmax(axis=1)]
    try:
        return np.asarray(weight * compute_sample_weight(class_weight, own), np.float64)
    except (ValueError, TypeError) as error:
        raise InputError(f"class_weight cannot be used: {error}") from error


def _as_array(y: Any) -> npt.NDArray[Any]:
    """Return labels as an array that keeps what they are, strings beside numbers too; lists of labels stay lists."""
    if isinstance(y, str | bytes):
        raise InputError(f"y must have a label for each document, got the text {y!r:.80}.")
    if hasattr(y, "toarray"):
        return np.asarray(y.toarray())
    if isinstance(y, np.ma.MaskedArray):
        y = np.where(np.ma.getmaskarray(y), np.array(None, object), y.data)
    values = np.fromiter(map(_plain, y), object, len(y)) if isinstance(y, list | tuple) else np.asarray(y)
    if values.dtype.kind == "T":  # numpy's strings of any length, which may have a missing value
        values = values.astype(object)
    return _as_matrix(values)


def _plain(value: Any) -> Any:
    """Return what an array without dimensions holds, and anything else as it is."""
    return value.item() if getattr(value, "ndim", 1) == 0 and not isinstance(value, np.generic) else value


def _as_matrix(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the rows of a 0/1 matrix as such: unlike lists of labels they are equally long and hold nothing else."""
    if values.dtype != object or values.ndim != 1:
        return values
    rows = {i: list(value) for i, value in enumerate(values) if isinstance(value, list | tuple | np.ndarray)}
    lengths = {len(row) for row in rows.values()}
    numbers = (label for row in rows.values() for label in row)
    if (
        len(lengths) != 1
        or max(lengths) < 2
        or not all(i in rows or _marks_none(value) for i, value in enumerate(values))
        or not all(_is_missing(label) or (_is_number(label) and label in (-1, 0, 1)) for label in numbers)
    ):
        return values
    matrix = np.full((len(values), *lengths), np.nan)
    for i, row in rows.items():
        matrix[i] = [np.nan if _is_missing(label) else label for label in row]
    return matrix


def _single(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
    """Return which documents have a label, and these labels, of one kind. Among numbers -1 is still there."""
    labelled = ~_missing(values)
    known = values[labelled]
    if known.dtype == object and any(isinstance(label, str) for label in known):
        is_label = np.array([not _marks_none(label) for label in known], bool)
        labelled[labelled], known = is_label, known[is_label]
    if known.dtype == object:
        known = _of_one_kind(known.tolist())
    if known.dtype.kind == "f" and not labelled.all():
        whole = (known == np.rint(known)) & (np.abs(known.astype(np.float64)) < 2**53)
        known = known.astype(np.int64) if whole.all() else known
    return labelled, known


def _without_minus_one(
    labelled: npt.NDArray[np.bool_], known: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
    is_label = known != -1
    labelled[labelled] = is_label
    return labelled, known[is_label]


def _of_one_kind(labels: list[Any]) -> npt.NDArray[Any]:
    """Return labels as an array of strings or of numbers."""
    kinds: dict[str, Any] = {}  # with an example of each
    for label in labels:
        kind = "str" if isinstance(label, str) else "number" if _is_number(label) else type(label).__name__
        kinds.setdefault(kind, label)
    if len(kinds) > 1:
        (first, example), (second, other), *_ = kinds.items()
        raise InputError(
            f"Labels must be all strings or all numbers, got a {first}, {example!r:.60}, and a {second}, "
            f"{other!r:.60}. Convert them to one kind."
        )
    array = np.array(labels)
    if array.dtype == object:
        raise InputError(f"Labels must be strings or numbers, got {labels[0]!r:.80}. Convert them.")
    return array


def _missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    if values.dtype.kind in "fcmM":
        return np.asarray(values != values)
    if values.dtype == object:
        return np.array([_is_missing(value) for value in values.ravel()], bool).reshape(values.shape)
    return np.zeros(values.shape, bool)


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas.NA; pandas itself is not needed to tell."""
    if value is None or type(value).__name__ == "NAType":
        return True
    if isinstance(value, str | bytes | list | tuple | set | frozenset | np.ndarray):
        return False
    different = value != value
    return isinstance(different, bool | np.bool_) and bool(different)


def _is_number(value: Any) -> bool:
    return isinstance(value, Number | np.bool_)


def _marks_none(value: Any) -> bool:
    """Whether a value stands for no label among strings or in place of a list: a missing value, or -1."""
    return _is_missing(value) or (_is_number(value) and bool(value == -1))


def _has_lists(values: npt.NDArray[Any]) -> bool:
    return values.dtype == object and any(isinstance(value, _LISTS) for value in values)


def _lists(values: npt.NDArray[Any], minus_one: bool | None = None) -> list[list[Any] | None]:
    """Return the labels of each document, None for a document without.

    Parameters
    ----------
    values : array of shape (documents,)
    minus_one : bool, optional
        Whether -1 is a label. By default it is if, apart from missing values, -1 and 1 are the only ones.
    """
    if not all(isinstance(value, _LISTS) or _marks_none(value) for value in values):
        raise InputError("Some documents have a list of labels and some a single label: give a list for each.")
    lists = [list(value) if isinstance(value, _LISTS) else None for value in values]
    if minus_one is None:
        flat = [label for labels in lists for label in labels or () if not _is_missing(label)]
        minus_one = all(map(_is_number, flat)) and set(flat) == {-1, 1}
    marks = _is_missing if minus_one else _marks_none
    for i, labels in enumerate(lists):
        marked = [marks(label) for label in labels or ()]
        if any(marked) and not all(marked):
            raise InputError(
                f"Document {i} (counted from 0) has a label and a missing value, {labels!r:.80}. Take the missing "
                "value out, or give None for a document without labels."
            )
        if any(marked):
            lists[i] = None
    return lists


def _from_lists(values: npt.NDArray[Any]) -> Labels:
    lists = _lists(values)
    labelled = np.array([labels is not None for labels in lists], bool)
    known = [labels for labels in lists if labels is not None]
    classes = np.unique(_of_one_kind([label for labels in known for label in labels]))
    place = {name: i for i, name in enumerate(classes.tolist())}
    targets = np.zeros((len(known), len(classes)), np.float32)
    for i, labels in enumerate(known):
        targets[i, [place[label] for label in labels]] = 1
    return _checked(Labels(classes, labelled, targets, True))


def _matrix(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float32]]:
    """Return which documents have labels, and the rows of these."""
    absent = _missing(values)
    if values.dtype == object:
        if not all(map(_is_number, values[~absent])):
            raise InputError(_MATRIX)
        values = np.where(absent, -1, values).astype(np.float64)
    elif absent.any():
        values = np.where(absent, -1, values)
    if values.dtype.kind not in "biuf" or not np.isin(values, [-1, 0, 1]).all():
        raise InputError(_MATRIX)
    labelled = ~np.all(values == -1, axis=1)
    if np.any(values[labelled] == -1):
        raise InputError(
            "A label matrix has -1 or a missing value in all columns of a document without labels, or in none."
        )
    return labelled, values[labelled].astype(np.float32)


def _from_matrix(values: npt.NDArray[Any]) -> Labels:
    labelled, targets = _matrix(values)
    return _checked(Labels(np.arange(targets.shape[1]), labelled, targets, True))


def _indicators(
    values: npt.NDArray[Any], classes: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return which documents have labels, and 0/1 rows of these, one column a class of a model."""
    if values.ndim == 2:
        labelled, targets = _matrix(values)
        if targets.shape[1] != len(classes):
            raise InputError(f"y has {targets.shape[1]:,} columns, but the model has {len(classes):,} classes.")
        return labelled, targets.astype(np.int64)
    place = {name: i for i, name in enumerate(classes.tolist())}
    lists = _lists(values, minus_one=-1 in place)
    unknown = [label for labels in lists for label in labels or () if label not in place]
    if unknown:
        raise InputError(f"The model has no class {unknown[0]!r:.80}. Its classes are {classes.tolist()!r:.200}.")
    rows = np.zeros((len(lists), len(classes)), np.int64)
    for i, labels in enumerate(lists):
        rows[i, [place[label] for label in labels or ()]] = 1
    labelled = np.array([labels is not None for labels in lists], bool)
    return labelled, rows[labelled]


def _checked(labels: Labels) -> Labels:
    if not labels.labelled.any():
        raise InputError("No document has a label: at least two classes are needed.")
    if len(labels.classes) < 2:
        raise InputError("There is only one class among the labels: at least two classes are needed.")
    return labels
