"""Self-training of a linear support vector machine on unlabelled documents.

D. Yarowsky: Unsupervised Word Sense Disambiguation Rivaling Supervised Methods. ACL 1995.
A. Blum, T. Mitchell: Combining Labeled and Unlabeled Data with Co-Training. COLT 1998.

The machine of `linear_svc` is fitted to the labelled documents. In each of T rounds it then labels the documents that
are still unlabelled, those of which it is surest join the labelled ones, and it is fitted again. How sure it is of a
document is its margin s_1 - s_2, the difference of its two largest decision values. A round takes m p_c of the
documents that are predicted to be of class c, where p_c is the share of c among the labelled documents and T m is the
number of unlabelled documents. The classes so keep their shares, as in co-training.

This is not scikit-learn's SelfTrainingClassifier. That needs probabilities, and a machine has none without calibration,
which needs held-out documents of every class; with 1 % of the labels many classes have a single document. It also takes
the surest documents of all classes together: most of them were then of the most frequent class, which drew in the
others, and accuracy fell below that of the first fit on MR, Ohsumed and R8. Rule, rounds and weight (1) were chosen
among 22 variants by the accuracy on unlabelled training documents, on the first one or two draws of 1 % of the labels.
That is more than a user with so few labels can do; test documents were not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from wgcn_paper.methods.baseline import Fit, array_digest, in_fixed_order
from wgcn_paper.methods.linear_svc import LinearSVCMethod

if TYPE_CHECKING:
    from wgcn_paper.protocol import Task


class SelfTrainingSVCMethod(LinearSVCMethod):
    """LinearSVC that labels unlabelled documents for itself, in rounds.

    C = 0 and ngrams = 0 choose C and the n-grams on the labelled documents, before the first round. Without unlabelled
    documents it is `LinearSVCMethod`.
    """

    name = "self-training-svc"
    defaults: ClassVar = {**LinearSVCMethod.defaults, "C": 0.0, "rounds": 10}

    def fit(self, task: Task) -> Fit:
        """Fit on the labelled documents, then on those and more and more of the others."""
        # Of equally sure documents the first is taken, so the order must not matter.
        task, _ = in_fixed_order(task)
        assert task.texts is not None
        first = super().fit(task)
        rows = self._vectorizer.transform(task.texts)
        known = np.array([label is not None for label in task.labels])
        free = np.flatnonzero(~known)
        known[task.validation] = False  # validation documents only choose settings
        places = np.flatnonzero(known)
        labels = np.array(task.labels[places].tolist())
        shares = np.unique(labels, return_counts=True)[1] / len(labels)
        quota = len(free) / self.settings["rounds"] * shares
        for _ in range(self.settings["rounds"]):
            if not len(free):
                break
            chosen, codes = surest(self._model.decision_function(rows[free]), quota)
            places = np.concatenate([places, free[chosen]])
            labels = np.concatenate([labels, self._model.classes_[codes]])
            free = np.delete(free, chosen)
            self._model = self._classifier(self.chosen[1]).fit(rows[places], labels)
        digest = array_digest([first.digest or ""], self._model.coef_, self._model.intercept_)
        return first._replace(digest=digest)


def surest(
    scores: npt.NDArray[np.float64], quota: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the documents of which the scores are surest, and the class of each.

    Scores are decision values (documents, classes), or (documents,) for two classes. `quota` (classes,) is how many to
    take at most of those that are predicted to be of a class, rounded up.
    """
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    codes = scores.argmax(1)
    best = np.partition(scores, -2, axis=1)[:, -2:]
    order = np.argsort(best[:, 0] - best[:, 1], kind="stable")  # the largest margin first
    taken = [order[codes[order] == c][: int(np.ceil(n))] for c, n in enumerate(quota)]
    chosen = np.concatenate(taken)
    return chosen, codes[chosen]
