"""tf-idf and multinomial logistic regression.

P(c | x) = softmax(W x + b)_c, with W and b that minimise |W|^2 / 2 - C sum_i log P(y_i | x_i); x as in `linear_svc`.

D. R. Cox: The Regression Analysis of Binary Sequences. Journal of the Royal Statistical Society B 20(2), 1958.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from wgcn_paper.methods.linear_svc import LinearBaseline


class LogisticMethod(LinearBaseline):
    """Sublinear tf-idf and LogisticRegression; C is chosen by cross-validation unless it is given.

    With ngrams = 0 there are up to a million columns per class, for which the solver of the other settings takes too
    long. The same problem is then solved by Newton's method on fewer columns, see `merge_columns`, and in double
    precision.
    """

    name = "logistic"
    defaults: ClassVar = {"C": 0.0, "ngrams": 1, "sublinear": True}
    choices = (1.0, 10.0, 100.0, 1000.0)

    def _classifier(self, c: float) -> LogisticRegression:
        # With the default tolerance the solver ends so early that it matters more than C. In cross-validation, each
        # fit is warm-started from the next smaller C, which halves the time.
        if self.settings["ngrams"]:
            return LogisticRegression(C=c, tol=1e-5, max_iter=2000, warm_start=True)
        # Newton's method would take the start for the minimum at this tolerance where C is large.
        return _MergedLogistic(C=c, tol=1e-7, max_iter=2000, warm_start=True, solver="newton-cg")


class _MergedLogistic(LogisticRegression):  # type: ignore[misc]
    """Logistic regression that is trained on the columns of `merge_columns` and has weights for all columns."""

    coef_: npt.NDArray[np.float64]

    def fit(self, X: Any, y: npt.NDArray[Any]) -> _MergedLogistic:
        """Fit, from the weights of an earlier fit to the same rows if there is one."""
        X = X.astype(np.float64)
        merge = merge_columns(X)
        if hasattr(self, "coef_"):
            self.coef_ = self.coef_ @ merge
        super().fit(X @ merge, y)
        self.coef_ = self.coef_ @ merge.T
        self.n_features_in_ = X.shape[1]
        return self


def merge_columns(rows: csr_matrix) -> csr_matrix:
    """Return a matrix T (n_columns, at most n_columns) that merges the columns that only one row has; T^T T = I.

    Let S be the columns that row i alone has, and v its values there. Whatever the loss, with a penalty |w|^2 the best
    weights are w_S = u v / |v|, so that one column, with the value |v| in row i and the weight u, stands for all of S.
    Training on `rows` @ T gives the weights T^T w. Of the single words and pairs of words of Ohsumed, a fifth is left.
    The rows have no stored zeros.
    """
    n_rows, n_columns = rows.shape
    counts = np.bincount(rows.indices, minlength=n_columns)
    kept = np.flatnonzero(counts > 1)
    row_of = np.repeat(np.arange(n_rows), np.diff(rows.indptr))
    alone = np.flatnonzero(counts[rows.indices] == 1)  # places of the values that are alone in their column
    owners, group = np.unique(row_of[alone], return_inverse=True)
    length = np.sqrt(np.bincount(group, rows.data[alone] ** 2, len(owners)))
    values = np.concatenate([np.ones(len(kept)), rows.data[alone] / length[group]]).astype(rows.dtype)
    columns = np.concatenate([np.arange(len(kept)), len(kept) + group])
    places = np.concatenate([kept, rows.indices[alone]])
    return csr_matrix((values, (places, columns)), shape=(n_columns, len(kept) + len(owners)))
