"""From weighted terms to scores, decisions and probabilities, with numpy alone: a document is a row times a table.

After training the word embeddings are fixed, so the graph is folded into them: H_dm = X_dv H_vm (eq. 5), then the head
of eq. 7. Neither graph nor torch is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from wgcn.inference.terms import Floats, add_up

__all__ = ["Scorer"]


@dataclass(frozen=True, eq=False)
class Scorer:
    """What training leaves: from weighted terms to scores and probabilities.

    Parameters
    ----------
    word_embeddings : float32 array of shape (words, hidden)
        H_vm of eq. 5. For a linear model, hidden is the number of classes.
    class_weights : float32 array of shape (hidden, classes), optional
        W_1 of eq. 7, applied after a ReLU; None for a linear model, whose document embeddings are its scores.
    bias : float32 array of shape (classes,)
    prior : float32 array of shape (classes,)
        Share of each class in the training documents: the answer for a document with no known word.
    sharpness : float
        What scores are multiplied by before they become probabilities, found on held-out documents.
    multilabel : bool
        Whether a document may have several classes: then each has a probability of its own.
    """

    word_embeddings: Floats
    class_weights: Floats | None
    bias: Floats
    prior: Floats
    sharpness: float = 1.0
    multilabel: bool = False

    def embed(self, weights: Floats, words: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> Floats:
        """Return H_dm = X_dv H_vm; see `add_up`."""
        return add_up(self.word_embeddings, weights, words, offsets)

    def scores(self, weights: Floats, words: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> Floats:
        """Return scores of shape (documents, classes); a document with no term gets the logarithm of the prior."""
        scores = self.embed(weights, words, offsets)
        if self.class_weights is not None:
            # One row at a time, because a matrix product may round a row differently in another company.
            scores = (
                np.stack([np.maximum(row, 0) @ self.class_weights for row in scores]) if len(scores) else scores[:, :0]
            )
            scores = scores.reshape(len(offsets) - 1, len(self.bias))
        scores = scores + self.bias
        scores[np.diff(offsets) == 0] = self._prior_scores
        return scores

    @cached_property
    def _prior_scores(self) -> Floats:
        """The scores whose probabilities are the prior."""
        prior = np.clip(self.prior.astype(np.float64), 1e-12, 1 - 1e-12)
        logits = np.log(prior) - np.log1p(-prior) if self.multilabel else np.log(prior)
        return (logits / self.sharpness).astype(self.bias.dtype)

    def scores_of(self, rows: Any) -> Floats:
        """Return scores of the rows of a sparse matrix of documents by words."""
        return self.scores(rows.data, rows.indices, rows.indptr)

    def decide(self, scores: Floats) -> npt.NDArray[np.int64]:
        """Return the class of each document, by its number; if multilabel, a 0/1 matrix of documents by classes.

        This is the one decision rule: the highest score, or every score above 0.
        """
        return (scores > 0).astype(np.int64) if self.multilabel else np.asarray(scores.argmax(axis=1), np.int64)

    def labels(self, scores: Floats, classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the label of each document; if multilabel, the 0/1 matrix of `decide`."""
        decided = self.decide(scores)
        return decided if self.multilabel else classes[decided]

    def margins(self, scores: Floats) -> Floats:
        """Return scores as scikit-learn has them: for two classes one column, above 0 for the second class."""
        return (scores[:, 1] - scores[:, 0]) / 2 if scores.shape[1] == 2 and not self.multilabel else scores

    def are_right(self, scores: Floats, targets: Floats) -> npt.NDArray[np.bool_]:
        """Return for which documents the decision is right, if multilabel wholly right.

        Parameters
        ----------
        scores, targets : arrays of shape (documents, classes)
        """
        if self.multilabel:
            return np.asarray((self.decide(scores) == targets).all(axis=1))
        return np.asarray(self.decide(scores) == targets.argmax(axis=1))

    def with_prior(self, prior: Floats) -> Scorer:
        """Return the scorer for documents among which the classes have other shares than in training."""
        shift = (np.log(prior) - np.log(np.clip(self.prior.astype(np.float64), 1e-12, None))) / self.sharpness
        dtype = self.bias.dtype
        return replace(self, bias=(self.bias + shift).astype(dtype), prior=np.asarray(prior).astype(dtype))

    def probabilities(self, scores: Floats) -> npt.NDArray[np.float64]:
        """Return probabilities of shape (documents, classes): eq. 7's softmax, or a sigmoid a class if multilabel."""
        logits = scores.astype(np.float64) * self.sharpness
        if self.multilabel:
            return np.where(logits >= 0, 1 / (1 + np.exp(-np.abs(logits))), 1 - 1 / (1 + np.exp(-np.abs(logits))))
        logits -= logits.max(axis=1, keepdims=True)
        exponentials = np.exp(logits)
        return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))
