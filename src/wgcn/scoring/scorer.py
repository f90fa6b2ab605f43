"""From weighted terms to sums of table rows, to scores, decisions and probabilities, with numpy alone.

After training the word embeddings are fixed and contain the graph: H_dm = X_dv H_vm (eq. 5), then the head of eq. 7.
Neither the graph nor torch is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wgcn.base.arrays import Floats, Ints, row_batches, row_blocks
from wgcn.text.tokenize import term_code

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from wgcn.labels.targets import Targets


@dataclass(frozen=True, eq=False)
class Scorer:
    """The learnt weights of a model: from weighted terms to scores and probabilities.

    In a linear model `class_weights` is None, hidden is the number of classes, and document embeddings are scores. The
    prior, the shares of the classes in training, is the result for a document with no known word. Scores are multiplied
    by `sharpness`, calibrated on held-out documents, before they become probabilities. If `multilabel`, a document may
    have several classes, each with its own probability.
    """

    word_embeddings: Floats  # (words, hidden), H_vm of eq. 5
    class_weights: Floats | None  # (hidden, classes), W_1 of eq. 7, applied after a ReLU
    bias: Floats  # (classes,)
    prior: Floats  # (classes,)
    sharpness: float = 1.0
    multilabel: bool = False

    def embed(self, weights: Floats, words: Ints, offsets: Ints, new_rows: Floats | None = None) -> Floats:
        """Return H_dm = X_dv H_vm; see `add_up`."""
        return add_up(self.word_embeddings, weights, words, offsets, new_rows)

    def scores(self, weights: Floats, words: Ints, offsets: Ints, new_rows: Floats | None = None) -> Floats:
        """Return scores of shape (documents, classes); a document with no term gets the logarithm of the prior."""
        scores = self.embed(weights, words, offsets, new_rows)
        if self.class_weights is not None:
            # One row at a time, because a matrix product may round a row differently beside other rows.
            rows = [np.maximum(row, 0) @ self.class_weights for row in scores]
            scores = np.array(rows, scores.dtype).reshape(len(offsets) - 1, len(self.bias))
        scores = scores + self.bias
        scores[np.diff(offsets) == 0] = self._prior_scores
        return scores

    @cached_property
    def _prior_scores(self) -> Floats:
        """The scores whose probabilities are the prior."""
        prior = np.clip(self.prior.astype(np.float64), 1e-12, 1 - 1e-12)
        logits = np.log(prior) - np.log1p(-prior) if self.multilabel else np.log(prior)
        return (logits / self.sharpness).astype(self.bias.dtype)

    def scores_of(self, rows: csr_array) -> Floats:
        """Return scores of the rows of a sparse matrix of documents by words."""
        return self.scores(rows.data, rows.indices, rows.indptr)

    def decide(self, scores: Floats) -> npt.NDArray[np.int64]:
        """Return the index of the class with the highest score; if multilabel, a 0/1 matrix of scores above 0."""
        return (scores > 0).astype(np.int64) if self.multilabel else np.asarray(scores.argmax(axis=1), np.int64)

    def decisions(self, weights: Floats, words: Ints, offsets: Ints, new_rows: Floats | None = None) -> Ints:
        """Return what `decide` says of documents, without the scores of all at once."""
        found = []
        for rows in row_batches(len(offsets) - 1, len(self.bias)):
            own = offsets[rows.start : rows.stop + 1]
            terms = slice(int(own[0]), int(own[-1]))
            found.append(self.decide(self.scores(weights[terms], words[terms], own - own[0], new_rows)))
        return np.concatenate(found)

    def named(self, decided: npt.NDArray[np.int64], classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the labels of decisions; if multilabel, the 0/1 matrix that they are."""
        return decided if self.multilabel else classes[decided]

    def margins(self, scores: Floats) -> Floats:
        """Return scores as scikit-learn has them: for two classes one column, above 0 for the second class."""
        return (scores[:, 1] - scores[:, 0]) / 2 if scores.shape[1] == 2 and not self.multilabel else scores

    def are_right(self, scores: Floats, targets: Targets) -> npt.NDArray[np.bool_]:
        """Return for which documents the decision is right, if multilabel for all classes."""
        decided = self.decide(scores)
        return np.asarray((decided == targets.toarray()).all(axis=1) if self.multilabel else decided == targets.codes)

    def with_prior(self, prior: Floats) -> Scorer:
        """Return the scorer for documents whose classes have other shares than in training."""
        shift = (np.log(prior) - np.log(np.clip(self.prior.astype(np.float64), 1e-12, None))) / self.sharpness
        dtype = self.bias.dtype
        return replace(self, bias=(self.bias + shift).astype(dtype), prior=np.asarray(prior).astype(dtype))

    def probabilities(self, scores: Floats) -> npt.NDArray[np.float64]:
        """Return probabilities of shape (documents, classes): the softmax of eq. 7, or sigmoids if multilabel."""
        logits = scores.astype(np.float64) * self.sharpness
        if self.multilabel:
            positive = 1 / (1 + np.exp(-np.abs(logits)))
            return np.where(logits >= 0, positive, 1 - positive)
        logits -= logits.max(axis=1, keepdims=True)
        exponentials = np.exp(logits)
        return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


# Values of gathered rows that are processed at a time: small enough for the caches.
_BLOCK_VALUES = 1 << 20


def add_up(table: Floats, weights: Floats, words: Ints, offsets: Ints, new_rows: Floats | None = None) -> Floats:
    """Return X_dv H_vm: for each document the sum of the rows of its words, times their weights (see `Terms`).

    `new_rows` are the rows of words whose ids come after those of the table.
    """
    if new_rows is None:
        new_rows = table[:0]
    n_documents, hidden = len(offsets) - 1, table.shape[1]
    embedded = np.zeros((n_documents, hidden), table.dtype)
    if weights.dtype == embedded.dtype and term_code.is_compiled:
        from wgcn.text.kernels import add_rows

        add_rows(table, new_rows, words, weights, offsets.astype(np.int64, copy=False), embedded)
        return embedded
    for first, last in row_blocks(offsets, max(_BLOCK_VALUES // max(hidden, 1), 1)):
        begin, end = int(offsets[first]), int(offsets[last])
        if begin == end:
            continue
        # In double precision the product of two single ones is exact, so the compiled code, which may fuse it with the
        # addition, gives the same bits.
        ids, n_known = words[begin:end], len(table)
        rows = np.take(table, ids, axis=0, mode="clip")
        rows[ids >= n_known] = new_rows[ids[ids >= n_known] - n_known]
        terms = rows * weights[begin:end, None].astype(np.float64)
        embedded[first:last] = _sums_in_order(terms, offsets[first : last + 1] - begin)
    return embedded


def _sums_in_order(rows: Floats, offsets: Ints) -> Floats:
    """Return sums of groups of rows, added one row after the other, as compiled code does; `reduceat` adds in pairs."""
    starts, lengths = offsets[:-1], np.diff(offsets)
    sums, longest = np.zeros((len(starts), rows.shape[1])), int(lengths.max())
    if len(starts) <= 4 * longest:
        if rows.shape[1] == 1:  # numpy adds in pairs only where it adds neighbours in memory
            rows = np.hstack([rows, rows])
        for total, begin, end in zip(sums, starts, offsets[1:], strict=True):
            total += rows[begin:end].sum(axis=0)[: len(total)]
    else:
        for place in range(longest):
            groups = np.flatnonzero(lengths > place)
            sums[groups] += rows[starts[groups] + place]
    return sums
