"""X_v of eq. 5 from outside: vectors of words, given, or distilled from a sentence encoder.

    E = argmin |X E - D|^2 + p |E|^2       D: what the encoder makes of the documents, centred, one row each

So a word is what it adds to the vectors of the documents that it is in, and a new document X E comes near to what the
encoder would have said, without the encoder.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from wgcn.cores import available_cores
from wgcn.linear.kernels import multiply

__all__ = ["distil"]

Floats = npt.NDArray[Any]

_PENALTY = 1.0  # p, where documents are 1 long
_STEPS = 60
_ENOUGH = 1e-3  # of the length of D, what may be left


def distil(terms: csr_array, vectors: Floats) -> Floats:
    """Return E, of shape (words, values): vectors of words that add up to those of documents.

    The dual problem (X X^T + p I) Y = D, E = X^T Y, is solved by conjugate gradients, all columns at once.

    Parameters
    ----------
    terms : csr_array of shape (documents, words)
        Rows of length 1.
    vectors : array of shape (documents, values)
    """
    terms = csr_array(terms, dtype=np.float32)
    transposed = csr_array(terms.T)
    target = np.ascontiguousarray(vectors - vectors.mean(axis=0), np.float32)
    solution, rest = np.zeros_like(target), target.copy()
    direction, squares = rest.copy(), np.sum(np.square(rest), axis=0)
    enough = _ENOUGH**2 * squares
    with ThreadPoolExecutor(available_cores()) as pool:
        for _ in range(_STEPS):
            if np.all(squares <= enough):
                break
            image = multiply(terms, multiply(transposed, direction, pool), pool) + np.float32(_PENALTY) * direction
            along = np.sum(direction * image, axis=0)
            step = np.divide(squares, along, out=np.zeros_like(squares), where=along > 0)
            solution += step * direction
            rest -= step * image
            before, squares = squares, np.sum(np.square(rest), axis=0)
            direction = rest + np.divide(squares, before, out=np.zeros_like(squares), where=before > 0) * direction
        return multiply(transposed, solution, pool)
