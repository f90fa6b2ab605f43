"""`compiled`: numba's compiler, set up as every compiled loop of this library needs it."""

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["compiled"]


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call, without the interpreter lock, and keep the result where numba can."""
    try:
        return njit(function, cache=True, nogil=True)
    except RuntimeError:  # what numba raises if it finds no folder to write to
        return njit(function, nogil=True)
