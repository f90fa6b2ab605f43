"""Vectors of a pretrained sentence encoder and logistic regression.

N. Reimers, I. Gurevych: Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks. EMNLP 2019.
W. Wang, F. Wei, L. Dong, H. Bao, N. Yang, M. Zhou: MiniLM: Deep Self-Attention Distillation for Task-Agnostic
Compression of Pre-Trained Transformers. NeurIPS 2020.

With h_t the last layer's vector of word piece t, a text is e = m / |m|, where m is the mean of h_t over its first 256
word pieces. P(c | e) = softmax(W e + b)_c, with W and b that minimise |W|^2 / 2 - C sum_i log P(y_i | e_i). The encoder
(`wgcn_paper.vectors.encoder`) is not trained.

The encoder was trained on much more text than any of the data sets: books, Wikipedia, and more than a billion pairs of
sentences from the web. The other methods learn from the given documents only, so its figures show what such text is
worth, not which method learns better. That text may include test documents, though not their labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from wgcn_paper.methods.baseline import Baseline, Fit, array_digest, in_fixed_order
from wgcn_paper.methods.cross_validation import choose_c, enough_folds
from wgcn_paper.vectors.encoder import encode_cached

if TYPE_CHECKING:
    from wgcn_paper.protocol import Query, Task


_WITHOUT_CHOICE = 10.0


class SentenceEmbeddingMethod(Baseline):
    """MiniLM-L6 and LogisticRegression; C is chosen by cross-validation unless it is given.

    Unlabelled texts are not used, so the protocols corpus and inductive give the same result.
    """

    name = "sentence-embedding"
    seeded = False
    defaults: ClassVar = {"C": 0.0}
    choices: ClassVar[tuple[float, ...]] = (0.1, 1.0, 10.0, 100.0)

    def fit(self, task: Task) -> Fit:
        """Fit on the labelled documents; validation documents only choose C."""
        task, _ = in_fixed_order(task)
        assert task.texts is not None
        labelled = np.flatnonzero([label is not None for label in task.labels])
        vectors = self._vectors([task.texts[i] for i in labelled])
        labels = np.array(task.labels[labelled].tolist())
        set_apart = np.isin(labelled, task.validation)
        c, accuracy = self.settings["C"], None
        if not c:
            parts = [np.flatnonzero(set_apart)] if set_apart.any() else enough_folds(labels)
            c, accuracy = choose_c(_regression, self.choices, vectors, labels, parts, otherwise=_WITHOUT_CHOICE)
        self._model = _regression(c).fit(vectors[~set_apart], labels[~set_apart])
        return Fit(validation_accuracy=accuracy, digest=array_digest(self._model.coef_, self._model.intercept_))

    def predict(self, query: Query) -> npt.NDArray[Any]:
        """Return one label per text."""
        assert query.texts is not None
        if not query.texts:
            return self._model.classes_[:0]  # type: ignore[no-any-return]
        guesses: npt.NDArray[Any] = self._model.predict(self._vectors(query.texts))
        return guesses

    def _vectors(self, texts: tuple[str, ...] | list[str]) -> npt.NDArray[np.float64]:
        # The solver converges sooner in double precision.
        return encode_cached(texts, "documents", self.device).astype(np.float64)


def _regression(c: float) -> LogisticRegression:
    return LogisticRegression(C=c, max_iter=2000)
