"""What every data set is once loaded: documents, labels, a fixed split and, where there is one, a citation graph."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wgcn.base.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled documents with a fixed split into training and test documents.

    Examples
    --------
    >>> import numpy as np
    >>> pets = Dataset("pets", ("a cat", "a dog"), None, np.array(["cat", "dog"]), np.array([0]), np.array([1]))
    >>> len(pets), pets.classes.tolist()
    (2, ['cat', 'dog'])
    """

    name: str
    texts: tuple[str, ...] | None  # one text per document; None for a data set of features
    features: csr_array | None  # (documents, words), for a data set of features
    labels: npt.NDArray[Any]  # (documents,); one label per document. Among integers, -1 marks an unlabelled document.
    # Indices of the training and of the test documents. They share no document and may leave some out.
    train: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]
    # (documents, documents): A_dd of the paper: entry [i, j] is 1 if document i cites document j
    document_graph: csr_array | None = None
    names: tuple[str, ...] | None = None  # an identifier for each document
    # Indices of documents to choose settings on, where the data set fixes them. They are in neither of the others.
    validation: npt.NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if self.texts is None and self.features is None:
            raise InputError(f"The data set '{self.name}' has neither texts nor features; give at least one.")
        if self.labels.ndim != 1:
            raise InputError(f"The labels of '{self.name}' have {self.labels.ndim} dimensions; give one label each.")
        self._check_lengths()
        parts = {"train": self.train, "test": self.test}
        if self.validation is not None:
            parts["validation"] = self.validation
        for part, indices in parts.items():
            self._check_indices(part, indices)
        for (part, indices), (other, others) in combinations(parts.items(), 2):
            shared = np.intersect1d(indices, others)
            if shared.size:
                raise InputError(
                    f"{shared.size} documents of '{self.name}' are in both {part} and {other} (the first is "
                    f"{shared[0]}); a document may be in one of them only."
                )

    def _check_lengths(self) -> None:
        counts = {
            "texts": None if self.texts is None else len(self.texts),
            "names": None if self.names is None else len(self.names),
            "rows of features": None if self.features is None else self.features.shape[0],
            "rows of document_graph": None if self.document_graph is None else self.document_graph.shape[0],
            "columns of document_graph": None if self.document_graph is None else self.document_graph.shape[1],
        }
        for what, count in counts.items():
            if count is not None and count != len(self):
                raise InputError(f"The data set '{self.name}' has {len(self)} labels but {count} {what}.")

    def _check_indices(self, part: str, indices: npt.NDArray[np.int64]) -> None:
        if indices.ndim != 1 or indices.dtype != np.int64:
            raise InputError(
                f"'{part}' of '{self.name}' is {indices.ndim}-dimensional {indices.dtype}; give a flat int64 array."
            )
        if indices.size and (indices.min() < 0 or indices.max() >= len(self)):
            raise InputError(
                f"'{part}' of '{self.name}' goes from {indices.min()} to {indices.max()}, "
                f"outside the document indices 0 to {len(self) - 1}."
            )
        if np.unique(indices).size != indices.size:
            raise InputError(f"'{part}' of '{self.name}' has a document more than once.")

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The classes, sorted; without the integer -1."""
        classes = np.unique(self.labels)
        return classes[classes != -1] if np.issubdtype(classes.dtype, np.integer) else classes

    def __len__(self) -> int:
        return len(self.labels)
