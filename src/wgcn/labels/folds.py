"""Cross-validation where only some of the texts have labels: `LabelledKFold`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import BaseCrossValidator, KFold, StratifiedKFold
from sklearn.utils.validation import check_consistent_length

from wgcn.base.errors import InputError
from wgcn.labels.reading import SEVERAL, normalised, read_lists, read_matrix, read_single

Rows = npt.NDArray[np.int64]


class LabelledKFold(BaseCrossValidator):  # type: ignore[misc]
    """Folds of the labelled texts; the unlabelled texts are in every training part and in no test part.

    So an estimator learns from all unlabelled texts, and any scorer of scikit-learn sees labelled texts only. The
    folds are stratified by class, unless a text may have several labels. A text is unlabelled where its label is None,
    NaN, pd.NA, -1 or blank, as for `fit` of the classifiers; it may also be a row of -1 in a label matrix.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=True
        Whether to shuffle the labelled texts first, since files are often sorted.
    random_state : int, RandomState or None, default=0
        Seed of the shuffling.

    Examples
    --------
    >>> splitter = LabelledKFold(2, shuffle=False)
    >>> for train, test in splitter.split(["a", "b", "c", "d", "e"], ["x", "y", None, "x", "y"]):
    ...     print(train, test)
    [2 3 4] [0 1]
    [0 1 2] [3 4]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: Any = 0) -> None:
        self.n_splits, self.shuffle, self.random_state = n_splits, shuffle, random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Yield the rows to train on and the rows to test on, both rising, for each fold.

        `y` has one label, or one list of labels, per text of `X`, or is a matrix of 0 and 1. `groups` is not used.
        """
        if y is None:
            raise InputError("LabelledKFold needs y, the labels: they say which texts can be tested on.")
        labelled, codes = _read(y)
        if X is not None:
            check_consistent_length(X, labelled)
        rows = np.flatnonzero(labelled)
        for _, test in self._folds(rows, codes):
            tested = np.sort(rows[test])
            yield np.setdiff1d(np.arange(len(labelled)), tested), tested

    def _folds(self, rows: Rows, codes: Rows | None) -> Iterator[tuple[Rows, Rows]]:
        """Return the folds of the labelled texts, which have classes `codes`, or None if they may have several."""
        largest = len(rows) if codes is None else int(np.bincount(codes, minlength=1).max())
        if largest < self.n_splits:
            raise InputError(
                f"n_splits={self.n_splits} folds need at least one class of {self.n_splits} labelled texts; the most "
                f"frequent one has {largest}. Give a smaller n_splits, or more labels."
            )
        kind = KFold if codes is None else StratifiedKFold
        random_state = self.random_state if self.shuffle else None
        splitter = kind(self.n_splits, shuffle=self.shuffle, random_state=random_state)
        with warnings.catch_warnings():  # a class may have fewer texts than there are folds
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            return iter(list(splitter.split(rows, codes)))

    def __repr__(self) -> str:
        return f"LabelledKFold({self.n_splits}, shuffle={self.shuffle}, random_state={self.random_state!r})"


def _read(y: Any) -> tuple[npt.NDArray[np.bool_], Rows | None]:
    """Return which texts have a label, and the class of each of these; None if a text may have several."""
    values = normalised(y)
    if isinstance(values, np.ndarray):
        return read_matrix(values)[0], None
    if any(isinstance(value, SEVERAL) for value in values):
        return read_lists(values)[0], None
    labelled, known = read_single(values)
    return labelled, np.unique(known, return_inverse=True)[1]
