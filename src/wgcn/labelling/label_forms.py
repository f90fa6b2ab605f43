"""The forms that labels come in: one or several per document, in lists, arrays or pandas objects, some missing."""

from __future__ import annotations

from numbers import Number
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d

from wgcn.errors import InputError
from wgcn.labelling.contents import check_names
from wgcn.labelling.sizes import labels_array

__all__ = ["SEVERAL", "normalised", "of_one_kind", "read_lists", "read_matrix", "read_single"]

Mask = npt.NDArray[np.bool_]

SEVERAL = (list, frozenset)  # types of several labels of a document, in what `normalised` returns
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
    labels = [label for value in values for label in (value if isinstance(value, SEVERAL) else [value])]
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
    if isinstance(value, SEVERAL):
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
        if not isinstance(value, (*SEVERAL, NoneType)):
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
