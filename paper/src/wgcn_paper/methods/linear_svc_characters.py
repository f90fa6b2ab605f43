"""A linear support vector machine on tf-idf of words and of character n-grams.

A document is the row of `linear_svc`, followed by a second one of the same kind, whose terms are the sequences of 2 to
5 characters within a word and the spaces around it. Each row has length 1, so that neither outweighs the other.
Character n-grams tie forms of a word, compounds and misspellings to each other, which single words do not. Sequences
in a single document are left out: they are half of all, and have no weight outside of that document.

W. B. Cavnar, J. M. Trenkle: N-Gram-Based Text Categorization. SDAIR 1994.
H. Lodhi, C. Saunders, J. Shawe-Taylor, N. Cristianini, C. Watkins: Text Classification using String Kernels. Journal of
Machine Learning Research 2, 2002.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer

from wgcn_paper.methods.linear_svc import LinearSVCMethod
from wgcn_paper.methods.preparation import Kept

if TYPE_CHECKING:
    from wgcn_paper.protocol import Task


# The draws of the labelled documents share their texts, and cutting 20NG into characters takes a minute.
_kept: Kept[tuple[TfidfVectorizer, csr_matrix]] = Kept(1)


class JoinedVectorizer(NamedTuple):
    """Two fitted vectorisers whose rows are put side by side."""

    words: TfidfVectorizer
    characters: TfidfVectorizer

    def transform(self, texts: Sequence[str]) -> csr_matrix:
        """Return one row per text."""
        return _joined(*(part.transform(texts) for part in self))

    def get_feature_names_out(self) -> npt.NDArray[Any]:
        """Return the terms, in the order of the columns."""
        return np.concatenate([part.get_feature_names_out() for part in self])

    @property
    def idf_(self) -> npt.NDArray[np.float32]:
        """Inverse document frequency of each term."""
        return np.concatenate([part.idf_ for part in self])


class LinearSVCCharactersMethod(LinearSVCMethod):
    """LinearSVC on words and characters.

    C = 0 and ngrams = 0 choose C and the n-grams of words, as in `LinearBaseline`. `shortest` and `longest` are those
    of the sequences of characters, and `min_documents` is in how many documents one must be.
    """

    name = "linear-svc-characters"
    defaults: ClassVar = {**LinearSVCMethod.defaults, "C": 0.0, "shortest": 2, "longest": 5, "min_documents": 2}

    def _vectorize(self, task: Task, longest: int) -> tuple[JoinedVectorizer, csr_matrix]:
        own = ("shortest", "longest", "min_documents", "sublinear")
        characters, rows = _kept.find([task.digest, self._pick(own)], lambda: self._characters(task))
        words, word_rows = super()._vectorize(task, longest)
        return JoinedVectorizer(words, characters), _joined(word_rows, rows)

    def _characters(self, task: Task) -> tuple[TfidfVectorizer, csr_matrix]:
        assert task.texts is not None
        vectorizer = TfidfVectorizer(
            analyzer="char_wb",
            ngram_range=(self.settings["shortest"], self.settings["longest"]),
            min_df=self.settings["min_documents"],
            sublinear_tf=self.settings["sublinear"],
            dtype=np.float32,
        )
        rows = vectorizer.fit_transform(task.texts)
        return vectorizer, rows


def _joined(words: csr_matrix, characters: csr_matrix) -> csr_matrix:
    return csr_matrix(hstack([words, characters], format="csr"))
