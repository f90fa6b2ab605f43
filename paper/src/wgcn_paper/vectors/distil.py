"""Word vectors E, for X_v of eq. 5, distilled from a sentence encoder by ridge regression.

    E = argmin |X E - D|^2 + p |E|^2       D: the encoder's vectors of the documents, centred, one row per document

For a new document, X E approximates the vector that the encoder would give, without the encoder.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.base.products import multiply
from wgcn.base.threads import available_cores

Floats = npt.NDArray[Any]

_PENALTY = 1.0  # p, for rows of X of length 1
_STEPS = 60
_TOLERANCE = 1e-3  # of the residual, relative to D


def distil(terms: csr_array, vectors: Floats) -> Floats:
    """Return E (words, values): word vectors whose sums approximate the vectors (documents, values) of the documents.

    The dual problem (X X^T + p I) Y = D, E = X^T Y, is solved by conjugate gradients, all columns at once. The rows of
    the terms X (documents, words) have length 1.
    """
    terms = csr_array(terms, dtype=np.float32)
    transposed = csr_array(terms.T)
    target = np.ascontiguousarray(vectors - vectors.mean(axis=0), np.float32)
    solution, residual = np.zeros_like(target), target.copy()
    direction, squares = residual.copy(), np.sum(np.square(residual), axis=0)
    tolerance = _TOLERANCE**2 * squares
    with ThreadPoolExecutor(available_cores()) as pool:
        for _ in range(_STEPS):
            if np.all(squares <= tolerance):
                break
            image = multiply(terms, multiply(transposed, direction, pool), pool) + np.float32(_PENALTY) * direction
            along = np.sum(direction * image, axis=0)
            step = np.divide(squares, along, out=np.zeros_like(squares), where=along > 0)
            solution += step * direction
            residual -= step * image
            before, squares = squares, np.sum(np.square(residual), axis=0)
            direction = residual + np.divide(squares, before, out=np.zeros_like(squares), where=before > 0) * direction
        return multiply(transposed, solution, pool)
