"""Types of the arrays of the linear model."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Floats", "Rows"]

Floats = npt.NDArray[Any]  # float32 or float64
Rows = npt.NDArray[np.int64]  # indices of documents
