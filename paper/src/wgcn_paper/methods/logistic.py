"""tf-idf and multinomial logistic regression.

P(c | x) = softmax(W x + b)_c, with W and b that minimise |W|^2 / 2 - C sum_i log P(y_i | x_i); x as in `linear_svc`.

D. R. Cox: The Regression Analysis of Binary Sequences. Journal of the Royal Statistical Society B 20(2), 1958.
"""

from __future__ import annotations

from typing import ClassVar

from sklearn.linear_model import LogisticRegression

from wgcn_paper.methods.linear_svc import LinearBaseline

__all__ = ["LogisticMethod"]


class LogisticMethod(LinearBaseline):
    """Sublinear tf-idf and LogisticRegression; C is chosen by cross-validation unless it is given."""

    name = "logistic"
    defaults: ClassVar = {"C": 0.0, "ngrams": 1, "sublinear": True}
    choices = (1.0, 10.0, 100.0, 1000.0)

    def _classifier(self, c: float) -> LogisticRegression:
        # With the default tolerance the solver ends so early that it matters more than C. In cross-validation, each
        # fit is warm-started from the next smaller C, which halves the time.
        return LogisticRegression(C=c, tol=1e-5, max_iter=2000, warm_start=True)
