"""How sure an accuracy is: its interval, and why there may be none."""

from __future__ import annotations

from math import sqrt
from typing import Any

from wgcn.errors import InputError

__all__ = ["accuracy_interval", "format_accuracy", "held_out_accuracy"]

_Z = 1.959963984540054  # the normal distribution has 95 % between -z and z


def accuracy_interval(n_right: float, n: int) -> tuple[float, float]:
    """Return the 95 % interval of an accuracy: Wilson's score interval for `n_right` of `n` documents.

    It lies within 0 and 1 and has a width even where all or none are right. `n_right` need not be whole, where it is
    the mean of several draws.

    Examples
    --------
    >>> low, high = accuracy_interval(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4902, 0.9433)
    """
    if not 0 <= n_right <= n or n < 1:
        raise InputError(f"n_right must be between 0 and n, and n at least 1, got {n_right} and {n}.")
    share = n_right / n
    centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    # At the ends the interval reaches 0 or 1 exactly, which the formula misses by rounding.
    return (0.0 if n_right == 0 else max(centre - half, 0.0)), (1.0 if n_right == n else min(centre + half, 1.0))


def format_accuracy(accuracy: float, n: int, what: str = "texts") -> str:
    """Return an accuracy on `n` documents with its interval, for people to read.

    Examples
    --------
    >>> format_accuracy(0.934, 1204)
    '93.40% (95% interval 91.9 to 94.7, 1,204 texts)'
    """
    low, high = accuracy_interval(accuracy * n if accuracy < 1 else n, n)
    return f"{accuracy:.2%} (95% interval {100 * low:.1f} to {100 * high:.1f}, {n:,} {what})"


def held_out_accuracy(report: dict[str, Any], network: bool = False) -> str:
    """Return the accuracy in the report of a fit, or the reason why it has none.

    The linear model holds out a tenth of many labelled documents, and cross-validates with few, which needs a class
    with two of them that are no copies of each other.
    """
    if report.get("held_out_accuracy") is not None:
        return format_accuracy(report["held_out_accuracy"], report["n_held_out"], "documents")
    if report.get("n_labelled", 0) == 0:
        return "not measured: there are no labels"
    if network:
        return "not measured: too few labels to hold some out for early stopping"
    return "not measured: no class has two labelled documents that are no copies of each other"
