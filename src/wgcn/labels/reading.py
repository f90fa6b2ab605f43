"""Labels in all the forms they come in, as the models need them: who has one, and which classes these are."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Number, Real
from types import NoneType
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from wgcn.base.arrays import labels_array
from wgcn.base.errors import InputError
from wgcn.labels.targets import Targets, places_in
from wgcn.store.contents import check_classes, check_names

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]  # indices of documents

_SEVERAL = (list, frozenset)  # types of several labels of a document, in what `normalised` returns
_NUMBER = (Number, np.bool_)
_USUAL = (str, int)  # types of a label that need no closer look; others do, and a million labels are many
_NO_MATRIX = (
    "A label matrix holds 0 and 1, one column per class, and -1 or a missing value in all columns of an unlabelled "
    "document or in none."
)


def normalised(y: Any, classes: npt.NDArray[Any] | None = None) -> list[Any] | npt.NDArray[np.float64]:
    """Return a label, or a list or set of labels, per document, None for a missing one; or a matrix, NaN for those.

    -1 is a missing label too, unless it is a class of the model or, without `classes`, all labels are -1 and 1.
    """
    if isinstance(y, str | bytes):
        raise InputError(f"y must have a label for each document, got the text {y!r:.80}.")
    given = y.toarray() if hasattr(y, "toarray") else y if isinstance(y, list | tuple) else np.asanyarray(y)
    if isinstance(given, np.ndarray) and given.ndim != 1:
        if given.ndim != 2 or given.shape[1] == 1:
            given = column_or_1d(given, warn=True)
        elif given.dtype.kind in "biuf":
            return np.asarray(np.ma.filled(given.astype(np.float64), np.nan))
    values = list(map(_plain, given))
    if _is_matrix(values):
        width = max(len(value) for value in values if isinstance(value, list))
        return np.array([value if isinstance(value, list) else [None] * width for value in values], np.float64)
    if isinstance(given, np.ndarray) and given.ndim == 2:
        raise InputError(_NO_MATRIX)
    labels = [label for value in values for label in (value if isinstance(value, _SEVERAL) else [value])]
    others = [label for label in map(_minus_one_as_none, labels) if label is not None]
    is_class = bool(others) and all(label == 1 for label in others) if classes is None else -1 in classes.tolist()
    return values if is_class else list(map(_minus_one_as_none, values))


def _plain(value: Any) -> Any:
    """Return None for a missing value or blank text, lists or frozen sets for several labels, or else a label."""
    if isinstance(value, str):
        return value if value.strip() else None
    if type(value) in _USUAL:
        return value
    if isinstance(value, set | frozenset):
        return frozenset(map(_plain, value))
    if isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1:
        return list(map(_plain, value))
    if getattr(value, "ndim", 1) == 0 and not isinstance(value, np.generic) and value is not np.ma.masked:
        return _plain(value.item())
    different = value != value  # as NaN and NaT are; pandas.NA says neither yes nor no
    absent = value is None or value is np.ma.masked or type(value).__name__ == "NAType"
    return None if absent or (isinstance(different, bool | np.bool_) and different) else value


def _minus_one_as_none(value: Any) -> Any:
    if type(value) in _USUAL:
        return None if value == -1 else value
    if isinstance(value, _SEVERAL):
        return type(value)(map(_minus_one_as_none, value))
    return None if isinstance(value, _NUMBER) and value == -1 else value


def _is_matrix(values: list[Any]) -> bool:
    """Whether lists are the rows of a 0/1 matrix: equally long, unlike lists of labels, and with nothing else."""
    rows = [value for value in values if isinstance(value, list)]
    cells = [cell for row in rows for cell in row]
    return (
        len({len(row) for row in rows}) == 1
        and len(rows[0]) > 1
        and all(isinstance(value, list) or _minus_one_as_none(value) is None for value in values)
        and all(cell is None or (isinstance(cell, _NUMBER) and cell in (-1, 0, 1)) for cell in cells)
    )


def read_matrix(values: npt.NDArray[np.float64]) -> tuple[Mask, npt.NDArray[np.float32]]:
    """Return which documents have labels, and the rows of these."""
    rows = np.where(np.isnan(values), -1, values)
    labelled = ~np.all(rows == -1, axis=1)
    if not np.isin(rows[labelled], [0, 1]).all():
        raise InputError(_NO_MATRIX)
    return labelled, rows[labelled].astype(np.float32)


def read_lists(values: list[Any]) -> tuple[Mask, list[list[Any]]]:
    """Return which documents have labels, and a list of labels for each of these."""
    for i, value in enumerate(values):
        if not isinstance(value, (*_SEVERAL, NoneType)):
            raise InputError("Some documents have a list of labels and some a single label: give a list for each.")
        if value is not None and None in value and set(value) != {None}:
            raise InputError(
                f"Document {i} (counted from 0) has a label and a missing or blank value, {list(value)!r:.80}. Take "
                "that value out, or give None for an unlabelled document."
            )
    labelled = np.array([value is not None and None not in value for value in values], bool)
    return labelled, [list(values[i]) for i in np.flatnonzero(labelled)]


def read_single(values: list[Any]) -> tuple[Mask, npt.NDArray[Any]]:
    """Return which documents have a label, and these labels."""
    labelled = np.array([value is not None for value in values], bool)
    known = of_one_kind([value for value in values if value is not None])
    if known.dtype.kind == "f" and not labelled.all():
        whole = (known == np.rint(known)) & (np.abs(known.astype(np.float64)) < 2**53)
        known = known.astype(np.int64) if whole.all() else known
    return labelled, known


def of_one_kind(labels: list[Any]) -> npt.NDArray[Any]:
    """Return labels as an array of strings or of numbers; of objects where strings of one width would be huge."""
    kind = str if labels and isinstance(labels[0], str) else _NUMBER
    other = [label for label in labels if not isinstance(label, kind)]
    if other:
        raise InputError(
            f"Labels must be all strings or all numbers, got {labels[0]!r:.60} and {other[0]!r:.60}. Convert them to "
            "one kind."
        )
    if kind is str:
        check_names(names := set(labels))
        if any(not name.strip() for name in names):
            raise InputError("A class, of seeds or classes, has a blank name: blank labels mean that there is none.")
    return labels_array(labels)


class Labels(NamedTuple):
    """Labels of documents, read."""

    classes: npt.NDArray[Any]  # (classes,)
    labelled: Mask  # (documents,), which documents have a label
    targets: Targets  # (labelled documents, classes)
    multilabel: bool  # whether a document may have several classes


def read_labels(y: Any, more_classes: Sequence[Any] = ()) -> Labels:
    """Read labels in any of scikit-learn's forms, from lists, tuples, numpy arrays or pandas objects.

    `y` has one label per document. Or several: it is a 0/1 matrix of shape (documents, classes), where a row of -1 or
    of missing values is an unlabelled document; or one list of labels per document, with a missing value or -1, alone
    or in a list, for an unlabelled one. An empty list is a document that is known to have no class. Labels that were
    read before are returned as they are.

    A missing value (None, NaN, NaT, pandas.NA) or a blank string marks an unlabelled document, and so does the number
    -1, among strings too. Where, apart from missing values, -1 and 1 are the only labels, both are classes. The strings
    "-1" and "nan" are classes. Strings and numbers cannot be mixed. Floats stay floats, as in scikit-learn, but whole
    numbers become integers beside an unlabelled document: pandas turns integers beside a missing value into floats.

    `more_classes` are classes that need no label, because seed words stand for them or they have none yet. No document
    needs one then.
    """
    if isinstance(y, Labels):
        return y
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    return _checked(read_some_labels(y, more_classes=more_classes), bool(more_classes))


def read_some_labels(y: Any, classes: npt.NDArray[Any] | None = None, more_classes: Sequence[Any] = ()) -> Labels:
    """Read labels as `read_labels` does, but of any number of classes, beside those of a model if these are given."""
    values = normalised(y, classes)
    multilabel = True
    if isinstance(values, np.ndarray):
        labelled, matrix = read_matrix(values)
        targets = Targets.of(matrix)
        classes = np.arange(targets.n_classes)
    elif any(issubclass(kind, _SEVERAL) for kind in set(map(type, values))):
        labelled, lists = read_lists(values)
        classes = _different([label for labels in lists for label in labels])
        targets = Targets.of(MultiLabelBinarizer(classes=classes, sparse_output=True).fit_transform(lists))
    else:
        multilabel = False
        labelled, known = read_single(values)
        if len(known):
            with few_labels():
                check_classification_targets(known)
        classes = _different([*known.tolist(), *more_classes])
        targets = Targets.single(np.searchsorted(classes, known), len(classes))
    if multilabel and more_classes:
        raise InputError("Seeds and classes are for texts of one class each, but y has several labels for a text.")
    return Labels(classes, labelled, targets, multilabel)


def _different(labels: list[Any]) -> npt.NDArray[Any]:
    """Return the classes that labels name, sorted."""
    classes = np.unique(of_one_kind(labels))
    return labels_array(classes.tolist()) if classes.dtype == object else classes


def _checked(labels: Labels, seeded: bool) -> Labels:
    classes = labels.classes.tolist()
    if not labels.labelled.any() and not seeded:
        raise InputError("No document has a label: at least two classes are needed.")
    if len(classes) < 2:
        found = f"only one class, {classes[0]!r}," if classes else "no class"
        among = "the labels and seeds" if seeded else "the labels"
        raise InputError(f"There is {found} among {among}: at least two classes are needed.")
    if labels.classes.dtype.kind == "U":
        check_classes(classes)
    return labels


def relabelled(
    labels: Labels, more: Labels, given: Rows, documents: Rows, n_documents: int, more_classes: Sequence[Any] = ()
) -> Labels:
    """Return the labels of `n_documents`, of which the first have `labels`, after documents[i] got that of given[i].

    What is unlabelled in `more` changes nothing, and of several labels for a document, the last counts. Classes that no
    document has any more are gone, but for `more_classes`.
    """
    if labels.multilabel != more.multilabel and more.labelled.any():
        raise InputError("The labels must be as those of the last fit: one per text, or a list of labels per text.")
    classes = _different([*labels.classes.tolist(), *more.classes.tolist()])
    both = [each.targets.renumbered(places_in(classes, each.classes), len(classes)) for each in (labels, more)]
    rows = np.full(n_documents, -1)  # of each document among the targets of both
    rows[np.flatnonzero(labels.labelled)] = np.arange(len(labels.targets))
    counts = more.labelled[given]
    rows[documents[counts]] = len(labels.targets) + np.cumsum(more.labelled)[given[counts]] - 1
    labelled, targets = rows >= 0, Targets.stacked(both)[rows[rows >= 0]]
    used = (targets.sums() > 0) | labels.multilabel | np.isin(classes, more_classes)
    targets = targets.renumbered(np.cumsum(used) - 1, int(used.sum()))
    return _checked(Labels(classes[used], labelled, targets, labels.multilabel), len(more_classes) > 0)


def labelled_accuracy(
    y: Any, predicted: npt.NDArray[Any], classes: npt.NDArray[Any], sample_weight: npt.ArrayLike | None = None
) -> float:
    """Return the share of the labelled documents whose prediction is right: with several labels, all of them.

    `predicted` has the shape (documents,) or (documents, classes). -1 is a label only if it is one of the `classes`.
    """
    values = normalised(y, classes)
    check_consistent_length(values, predicted)
    weight = checked_weights(sample_weight, len(values))
    truth: npt.NDArray[Any]
    if isinstance(values, np.ndarray):
        labelled, truth = read_matrix(values)
        if predicted.shape[1:] != truth.shape[1:]:
            raise InputError(f"y has {truth.shape[1]:,} columns, but the predictions have the shape {predicted.shape}.")
    elif predicted.ndim == 1:
        labelled, truth = read_single(values)
    else:
        labelled, lists = read_lists(values)
        unknown = [label for labels in lists for label in labels if label not in classes.tolist()]
        if unknown:
            raise InputError(f"The model has no class {unknown[0]!r:.80}. Its classes are {classes.tolist()!r:.200}.")
        truth = MultiLabelBinarizer(classes=classes).fit_transform(lists)
    if not labelled.any():
        raise InputError("No document has a label: there is nothing to measure by. Give some labelled documents.")
    _check_total(weight[labelled])
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


@contextmanager
def few_labels() -> Iterator[None]:
    """Silence scikit-learn's warning that labels with few documents per class may be numbers to predict."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%", UserWarning)
        yield


def _check_total(weight: npt.NDArray[np.float64]) -> None:
    """Raise an InputError if no document counts."""
    if not weight.any():
        raise InputError(
            "All labelled documents have the weight zero: at least one must have a weight above 0. See sample_weight "
            "and class_weight."
        )


def divided_rows(terms: csr_array, labelled: Mask, unlabeled: csr_array | None) -> tuple[csr_array, csr_array]:
    """Return the rows of the labelled documents, and those of the others with more unlabelled ones after them."""
    if unlabeled is not None and unlabeled.shape[1] != terms.shape[1]:
        raise InputError(f"unlabeled has {unlabeled.shape[1]:,} columns, but X has {terms.shape[1]:,}.")
    own, others = (terms, terms[:0]) if labelled.all() else (terms[labelled], terms[~labelled])
    if unlabeled is not None:
        more = csr_array(unlabeled).astype(terms.dtype, copy=False)
        others = csr_array(vstack([others, more])) if others.shape[0] else more
    return own, others


def check_lengths(n_texts: int, n_labels: int) -> None:
    """Raise an InputError unless there are as many labels as texts."""
    if n_texts != n_labels:
        raise InputError(f"{n_texts:,} texts but {n_labels:,} labels: there must be one label per text.")


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
    if not all(isinstance(share, Real) and 0 < float(share) < np.inf for share in given.values()):
        raise InputError(
            "The shares in class_prior must be numbers above 0. Leave out the labels of a class that never comes."
        )
    shares = np.array([given[name] for name in classes], np.float64)
    return np.asarray(shares / shares.sum())


def read_class_shares(given: Sequence[str] | None) -> dict[str, float] | Literal["uniform"] | None:
    """Return the shares of classes that the options --class-prior give; a label may have a "=" in it."""
    if not given or given == ["uniform"]:
        return "uniform" if given else None
    try:
        shares = {label: float(share) for label, _, share in (part.rpartition("=") for part in given)}
    except ValueError:
        shares = {"": 0.0}
    if "" in shares:
        raise InputError(f"--class-prior is 'uniform' or LABEL=SHARE, such as spam=0.1, got {' '.join(given)!r}.")
    return shares


def check_class_weight(class_weight: Any) -> None:
    """Raise an InputError unless this is None, "balanced" or a dict of numbers."""
    for name, value in class_weight.items() if isinstance(class_weight, Mapping) else ():
        if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
            raise InputError(f"The weights in class_weight must be numbers of at least 0, got {value!r} for {name!r}.")
    if not isinstance(class_weight, Mapping) and class_weight not in (None, "balanced"):
        raise InputError(f"class_weight must be None, 'balanced' or a dict, got {class_weight!r}.")


def class_options(
    labels: Labels, weight: npt.NDArray[np.float64], class_weight: dict[Any, float] | str | None, class_prior: Any
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64] | None]:
    """Return the weights of the labelled documents, those of all times those of their classes, and the class prior."""
    prior, weight = read_class_prior(class_prior, labels), weight[labels.labelled]
    if class_weight is not None and labels.multilabel:
        raise InputError("class_weight is for documents of one class each; use sample_weight instead.")
    if not len(labels.targets):  # seeds alone
        return weight, prior
    try:
        weight = weight * compute_sample_weight(class_weight, labels.classes[labels.targets.codes])
    except (ValueError, TypeError) as error:
        raise InputError(f"class_weight cannot be used: {error}") from error
    _check_total(weight)
    return weight, prior
