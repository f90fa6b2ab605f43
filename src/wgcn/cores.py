"""How many threads to use."""

import os
from numbers import Integral

from wgcn.errors import InputError

__all__ = ["available_cores", "n_threads"]


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for an `n_jobs` as scikit-learn has it.

    None is one thread per core; -1 too, -2 leaves one core free, and so on.

    Examples
    --------
    >>> n_threads(3), n_threads(None) == n_threads(-1) == available_cores()
    (3, True)
    """
    if n_jobs is None:
        return available_cores()
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise InputError(f"n_jobs must be a whole number other than 0 (-1 for all cores), or None, got {n_jobs!r}.")
    return int(n_jobs) if n_jobs > 0 else max(available_cores() + 1 + int(n_jobs), 1)
