"""What all classifiers here have in common: unlabelled documents, several labels per document, and their score."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy.typing as npt
from sklearn.base import ClassifierMixin

from wgcn.labels.reading import labelled_accuracy


class LabelledClassifier(ClassifierMixin):
    """A classifier under scikit-learn's interface, to which unlabelled documents and several labels may be given."""

    classes_: npt.NDArray[Any]

    @abstractmethod
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return one label per document, or a 0/1 matrix of shape (n_documents, n_classes)."""

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the accuracy on the labelled documents; with several labels, the share that is wholly right.

        Unlabelled documents do not count. For cross-validation, `wgcn.LabelledKFold` as `cv` leaves them in
        training, where they help, and stratifies the others.

        Labels are as for `fit`, and `sample_weight` has the shape (n_documents,).
        """
        return labelled_accuracy(y, self.predict(X), self.classes_, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
