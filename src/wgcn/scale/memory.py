"""A limit of memory, and the sizes of what is held at a time that follow from it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wgcn.base.errors import InputError

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_SIZE = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z]*)\s*")

_MOST = 1 << 60  # so that sizes fit 64 bits
_LEAST = 250 * 10**6  # of each worker, beyond that
_BASE = 500 * 10**6  # interpreter, libraries and compiled code
# Measured on text with Zipf's law and 20NG, in bytes at the peak of a task.
_PER_CHARACTER = 6.0  # of tokenising: text, places of tokens, their keys, their ids
_PER_TOKEN = 90.0  # of counting windows: places of tokens, and up to three pairs per token, twice
_PER_BYTE = 12.0  # of merging: a run of two bytes per pair becomes columns and counts
_MOST_CHARACTERS, _MOST_TOKENS = 1 << 26, 1 << 24  # larger ones bring nothing, and cost more when repeated


def memory_bytes(given: str) -> int:
    """Return the number of bytes that "4GB", "512 MiB" or "1.5gb" stands for.

    Examples
    --------
    >>> memory_bytes("4GB"), memory_bytes("512 MiB")
    (4000000000, 536870912)
    """
    found = _SIZE.fullmatch(given)
    if found is None or found[2].upper() not in _UNITS:
        raise InputError(f"The memory {given!r} is no size. Give a number with a unit, such as 4GB or 512MiB.")
    size = int(float(found[1]) * _UNITS[found[2].upper()])
    if size > _MOST:
        raise InputError(f"The memory {given!r} is more than any machine has. Give what this one has, such as 4GB.")
    return size


@dataclass(frozen=True)
class Limits:
    """How much is held at a time. None of it changes a result.

    Parameters
    ----------
    characters : int
        Of text that are tokenised into one piece.
    tokens : int
        Whose windows are counted into one run.
    merged : int
        Bytes of runs that are merged at a time.
    fan_in : int
        Runs that are merged at a time.
    chosen : int
        Bytes to find the strongest edges with.
    graph : int
        Bytes for the graph that is made in the end.
    """

    characters: int = _MOST_CHARACTERS
    tokens: int = _MOST_TOKENS
    merged: int = 1 << 26
    fan_in: int = 64
    chosen: int = 1 << 29
    graph: int = 1 << 40

    @classmethod
    def of(cls, memory: int, n_workers: int, n_processes: int = 0) -> Limits:
        """Split a limit of memory, in bytes, among workers that are threads, or processes of their own."""
        left = memory - _BASE * (1 + n_processes)
        least = _BASE * (1 + n_processes) + _LEAST * n_workers
        if memory < least:
            raise InputError(
                f"{memory / 1e6:,.0f} MB of memory are too few: {n_workers} workers need {least / 1e6:,.0f} MB. Give "
                "more, with --memory, or fewer workers, with --workers."
            )
        each = left / n_workers
        return cls(
            characters=int(min(each / _PER_CHARACTER, _MOST_CHARACTERS)),
            tokens=int(min(each / _PER_TOKEN, _MOST_TOKENS)),
            merged=int(each / _PER_BYTE),
            chosen=int(left / 2),
            graph=left,
        )
