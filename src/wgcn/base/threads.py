"""How many threads to use, loops that are compiled for them, and the device that torch computes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any

from wgcn.base.errors import InputError, needs

if TYPE_CHECKING:
    import torch


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` stands for, as in joblib: -1 or None is all cores, -2 all but one."""
    if n_jobs is None:
        return available_cores()
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise InputError(
            f"n_jobs must be a number of threads, -1 or None for all cores, or -2 for all but one, got {n_jobs!r}."
        )
    return int(n_jobs) if n_jobs > 0 else max(available_cores() + 1 + int(n_jobs), 1)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call, without the interpreter lock, and keep the result where numba can."""
    from numba import njit

    try:
        return njit(function, cache=True, nogil=True)
    except RuntimeError:  # what numba raises if it finds no folder to write to
        return njit(function, nogil=True)


def find_device(name: str) -> torch.device:
    """Return the device of a name: "cpu", "cuda", or "auto" for CUDA where there is one."""
    with needs("The network"):
        import torch
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"Unknown device {name!r}. Use 'auto', 'cpu' or 'cuda'.") from error
    if device.type not in ("cpu", "cuda") or (device.type == "cuda" and not torch.cuda.is_available()):
        raise InputError(f"The device {name!r} is not there. Use 'auto', or 'cpu'.")
    return device
