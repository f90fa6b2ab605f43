"""Compare a method of your own with one of the package's, under the same protocol.

Run it with:  python examples/add_a_method.py
The method is the nearest centroid of tf-idf rows. docs/add-a-method.md says what each part is for.
"""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import TfidfVectorizer

from wgcn_paper.datasets import load_dataset
from wgcn_paper.methods import Baseline, Fit, make_baseline, register_method
from wgcn_paper.protocol import Protocol, Query, Task


@register_method
class NearestCentroid(Baseline):
    """A document gets the class whose mean document is most like it (cosine)."""

    name = "nearest-centroid"
    seeded = False
    defaults: ClassVar = {"sublinear": True}

    def fit(self, task: Task) -> Fit:
        """Average the rows of each class."""
        self._vectorizer = TfidfVectorizer(sublinear_tf=self.settings["sublinear"])
        rows = self._vectorizer.fit_transform(task.texts)
        labels = task.labels  # None where fitting is not told
        self._classes = sorted({label for label in labels if label is not None})
        means = [np.asarray(rows[np.flatnonzero(labels == name)].mean(axis=0)).ravel() for name in self._classes]
        self._centroids = np.array([mean / np.linalg.norm(mean) for mean in means])
        return Fit()

    def predict(self, query: Query) -> npt.NDArray[Any]:
        """Return the class of the nearest centroid."""
        likeness = self._vectorizer.transform(query.texts) @ self._centroids.T
        guesses: npt.NDArray[Any] = np.array(self._classes)[likeness.argmax(axis=1)]
        return guesses


def main() -> None:
    docs = load_dataset("docs")
    for protocol in (Protocol("inductive"), Protocol("few-label", per_class=5)):
        for name in ("nearest-centroid", "linear-svc"):
            method = make_baseline(name, seed=0)
            method.fit(protocol.task(docs, seed=0))
            guesses = method.predict(protocol.query(docs))
            accuracy = np.mean(guesses == docs.labels[docs.test])
            print(f"{protocol!s:12}  {name:16}  {accuracy:.1%}")


if __name__ == "__main__":
    main()
