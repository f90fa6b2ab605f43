"""Labels as the models need them: which documents have one, and a 0/1 matrix of classes."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number, Real
from typing import Any, NamedTuple

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
    "check_class_weight",
    "check_total_weight",
    "checked_weights",
    "class_weighted",
    "labelled_accuracy",
    "read_class_prior",
    "read_labels",
]

_LISTS = (list, tuple, set, frozenset, np.ndarray)
Mask = npt.NDArray[np.bool_]


class Labels(NamedTuple):
    """Labels of documents, read."""

    classes: npt.NDArray[Any]  # (classes,)
    labelled: Mask  # (documents,), which documents have a label
    targets: npt.NDArray[np.float32]  # (labelled documents, classes), 1 where a document has a class
    multilabel: bool  # whether a document may have several classes


def read_labels(y: Any) -> Labels:
    """Read labels in any of scikit-learn's forms, from lists, tuples, numpy arrays or pandas objects.

    A missing value (None, NaN, NaT, pandas.NA) marks an unlabelled document, and so does the number -1, among strings
    too. Where, apart from missing values, -1 and 1 are the only labels, both are classes. The strings "-1" and "nan"
    are classes. Strings and numbers cannot be mixed. Floats stay floats, as in scikit-learn, but whole numbers beside a
    missing value become integers: pandas turns integers beside a missing value into floats.

    Parameters
    ----------
    y : sequence
        One label per document. Or several per document: a 0/1 matrix of shape (documents, classes), where a row of -1
        or of missing values is an unlabelled document; or one list of labels per document, with a missing value or -1,
        alone or in a list, for an unlabelled one. An empty list is a document that is known to have no class.
    """
    values = _as_array(y)
    multilabel = True
    if values.ndim == 2 and values.shape[1] > 1:
        labelled, targets = _read_matrix(values)
        classes = np.arange(targets.shape[1])
    elif _has_lists(values := column_or_1d(values, warn=True)):
        labelled, lists = _read_lists(values)
        classes = np.unique(_of_one_kind([label for labels in lists for label in labels]))
        targets = _indicators(lists, classes)
    else:
        multilabel = False
        labelled, known = _read_single(values)
        if len(known):
            with few_labels():
                check_classification_targets(known)
        classes, codes = np.unique(known, return_inverse=True)
        targets = np.eye(len(classes), dtype=np.float32)[codes]
    if not labelled.any():
        raise InputError("No document has a label: at least two classes are needed.")
    if len(classes) < 2:
        found = f"only one class, {classes.tolist()[0]!r}," if len(classes) else "no class"
        raise InputError(f"There is {found} among the labels: at least two classes are needed.")
    return Labels(classes, labelled, targets, multilabel)


def labelled_accuracy(
    y: Any, predicted: npt.NDArray[Any], classes: npt.NDArray[Any], sample_weight: npt.ArrayLike | None = None
) -> float:
    """Return the share of the labelled documents that are predicted right: with several labels, all of them.

    `predicted` has the shape (documents,), or (documents, classes) if a document may have several of the model's
    `classes`. -1 is a label only if it is one of the classes.
    """
    values = _as_array(y)
    check_consistent_length(values, predicted)
    weight = checked_weights(sample_weight, len(values))
    truth: Any
    if predicted.ndim == 1:
        labelled, truth = _read_single(column_or_1d(values, warn=True), classes)
    elif values.ndim == 2:
        labelled, truth = _read_matrix(values)
        if truth.shape[1] != len(classes):
            raise InputError(f"y has {truth.shape[1]:,} columns, but the model has {len(classes):,} classes.")
    else:
        labelled, lists = _read_lists(values, classes)
        unknown = [label for labels in lists for label in labels if label not in classes.tolist()]
        if unknown:
            raise InputError(f"The model has no class {unknown[0]!r:.80}. Its classes are {classes.tolist()!r:.200}.")
        truth = _indicators(lists, classes)
    if not labelled.any():
        raise InputError("No document has a label: there is nothing to measure by. Give some labelled documents.")
    check_total_weight(weight[labelled])
    with few_labels():
        return float(accuracy_score(truth, predicted[labelled], sample_weight=weight[labelled]))


def checked_weights(sample_weight: npt.ArrayLike | None, n_documents: int) -> npt.NDArray[np.float64]:
    """Return one weight per document, 1 by default, or raise an InputError."""
    try:
        weight = np.asarray(1.0 if sample_weight is None else sample_weight, np.float64)
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
    """Raise an InputError if no document counts."""
    if not weight.any():
        raise InputError(
            "All labelled documents have the weight zero: at least one must have a weight above 0. See sample_weight "
            "and class_weight."
        )


def read_class_prior(given: Any, labels: Labels) -> npt.NDArray[np.float64] | None:
    """Return the share of each class from a dict in proportion to it or "uniform"; None is that among the labels."""
    if given is None:
        return None
    if labels.multilabel:
        raise InputError("class_prior is for documents of one class each: with several, the shares have no sum.")
    classes = labels.classes.tolist()
    if given == "uniform":
        given = dict.fromkeys(classes, 1)
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


def check_class_weight(class_weight: Any) -> None:
    """Raise an InputError unless this is None, "balanced" or a dict of numbers."""
    if isinstance(class_weight, Mapping):
        for name, value in class_weight.items():
            if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
                raise InputError(
                    f"The weights in class_weight must be numbers of at least 0, got {value!r} for {name!r}."
                )
    elif class_weight not in (None, "balanced"):
        raise InputError(f"class_weight must be None, 'balanced' or a dict, got {class_weight!r}.")


def class_weighted(
    weight: npt.NDArray[np.float64], class_weight: dict[Any, float] | str | None, labels: Labels
) -> npt.NDArray[np.float64]:
    """Return the weights of labelled documents times those of their classes."""
    if class_weight is None:
        return weight
    if labels.multilabel:
        raise InputError("class_weight is for documents of one class each; use sample_weight instead.")
    own = labels.classes[labels.targets.argmax(axis=1)]
    try:
        return np.asarray(weight * compute_sample_weight(class_weight, own), np.float64)
    except (ValueError, TypeError) as error:
        raise InputError(f"class_weight cannot be used: {error}") from error


# The forms that labels come in


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
    return _as_matrix(values) if values.dtype == object and values.ndim == 1 else values


def _plain(value: Any) -> Any:
    """Return what an array without dimensions holds, and anything else as it is."""
    return value.item() if getattr(value, "ndim", 1) == 0 and not isinstance(value, np.generic) else value


def _as_matrix(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the rows of a 0/1 matrix as such: unlike lists of labels they are equally long and hold nothing else."""
    rows = {i: list(value) for i, value in enumerate(values) if isinstance(value, list | tuple | np.ndarray)}
    lengths = {len(row) for row in rows.values()}
    if len(lengths) != 1 or max(lengths) < 2 or not all(i in rows or _marks_none(v) for i, v in enumerate(values)):
        return values
    matrix = np.full((len(values), *lengths), np.nan)
    for i, row in rows.items():
        if not all(_marks_none(label) or (_is_number(label) and label in (0, 1)) for label in row):
            return values
        matrix[i] = [np.nan if _is_missing(label) else label for label in row]
    return matrix


def _has_lists(values: npt.NDArray[Any]) -> bool:
    return values.dtype == object and any(isinstance(value, _LISTS) for value in values)


def _read_single(values: npt.NDArray[Any], classes: npt.NDArray[Any] | None = None) -> tuple[Mask, npt.NDArray[Any]]:
    """Return which documents have a label, and these labels. `classes` are those of a model, if there is one."""
    labelled = ~_missing(values)
    known = values[labelled]
    if known.dtype == object:
        if any(isinstance(label, str) for label in known):
            labelled, known = _keep(labelled, known, np.array([not _marks_none(label) for label in known], bool))
        known = _of_one_kind(known.tolist())
    if known.dtype.kind == "f" and not labelled.all():
        whole = (known == np.rint(known)) & (np.abs(known.astype(np.float64)) < 2**53)
        known = known.astype(np.int64) if whole.all() else known
    if known.dtype.kind in "if" and not _minus_one_is_a_class(known.tolist(), classes):
        labelled, known = _keep(labelled, known, known != -1)
    return labelled, known


def _keep(labelled: Mask, known: npt.NDArray[Any], kept: Mask) -> tuple[Mask, npt.NDArray[Any]]:
    labelled[labelled] = kept
    return labelled, known[kept]


def _minus_one_is_a_class(labels: list[Any], classes: npt.NDArray[Any] | None) -> bool:
    if classes is not None:
        return -1 in classes.tolist()
    return all(map(_is_number, labels)) and set(labels) == {-1, 1}


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


def _read_lists(values: npt.NDArray[Any], classes: npt.NDArray[Any] | None = None) -> tuple[Mask, list[list[Any]]]:
    """Return which documents have labels, and a list of labels for each of these."""
    if not all(isinstance(value, _LISTS) or _marks_none(value) for value in values):
        raise InputError("Some documents have a list of labels and some a single label: give a list for each.")
    lists = [list(value) if isinstance(value, _LISTS) else [value] for value in values]
    flat = [label for labels in lists for label in labels if not _is_missing(label)]
    marks = _is_missing if _minus_one_is_a_class(flat, classes) else _marks_none
    labelled = np.array([isinstance(value, _LISTS) for value in values], bool)
    for i in np.flatnonzero(labelled):
        marked = [marks(label) for label in lists[i]]
        labelled[i] = not any(marked)
        if any(marked) and not all(marked):
            raise InputError(
                f"Document {i} (counted from 0) has a label and a missing value, {lists[i]!r:.80}. Take the missing "
                "value out, or give None for an unlabelled document."
            )
    return labelled, [lists[i] for i in np.flatnonzero(labelled)]


def _indicators(lists: list[list[Any]], classes: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return one 0/1 row per list of labels, one column per class."""
    column = {name: i for i, name in enumerate(classes.tolist())}
    rows = np.zeros((len(lists), len(classes)), np.float32)
    for i, labels in enumerate(lists):
        rows[i, [column[label] for label in labels]] = 1
    return rows


def _read_matrix(values: npt.NDArray[Any]) -> tuple[Mask, npt.NDArray[np.float32]]:
    """Return which documents have labels, and the rows of these."""
    absent = _missing(values)
    numbers = values.dtype.kind in "biuf" or (values.dtype == object and all(map(_is_number, values[~absent])))
    rows = np.where(absent, -1, values).astype(np.float64) if numbers else np.empty(0)
    if not numbers or not np.isin(rows, [-1, 0, 1]).all():
        raise InputError(
            "A label matrix holds 0 and 1, one column per class, and rows of -1 or of missing values for unlabelled "
            "documents."
        )
    labelled = ~np.all(rows == -1, axis=1)
    if np.any(rows[labelled] == -1):
        raise InputError(
            "A label matrix has -1 or a missing value in all columns of an unlabelled document or in none."
        )
    return labelled, rows[labelled].astype(np.float32)


def _missing(values: npt.NDArray[Any]) -> Mask:
    if values.dtype == object:
        return np.array([_is_missing(value) for value in values.ravel()], bool).reshape(values.shape)
    return np.asarray(values != values, bool)


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas.NA; pandas itself is not needed to find out."""
    different = value != value
    absent = value is None or type(value).__name__ == "NAType"
    return absent or (isinstance(different, bool | np.bool_) and bool(different))


def _is_number(value: Any) -> bool:
    return isinstance(value, Number | np.bool_)


def _marks_none(value: Any) -> bool:
    """Whether a value stands for no label among strings or in place of a list: a missing value, or -1."""
    return _is_missing(value) or (_is_number(value) and bool(value == -1))
