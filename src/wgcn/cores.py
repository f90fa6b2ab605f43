"""How many threads to use."""

import os
from numbers import Integral

from wgcn.errors import InputError

__all__ = ["available_cores", "n_threads"]


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` stands for, at least 1.

    As in joblib, a negative number counts back from the number of cores: -1 is all of them, -2 all but one. None is
    all of them too.
    """
    if n_jobs is None:
        return available_cores()
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise InputError(
            f"n_jobs must be a number of threads, -1 or None for all cores, or -2 for all but one, got {n_jobs!r}."
        )
    return int(n_jobs) if n_jobs > 0 else max(available_cores() + 1 + int(n_jobs), 1)
