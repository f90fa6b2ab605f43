"""Checks of parameters."""

import math
import re
from collections.abc import Iterable
from numbers import Integral, Real

from wgcn.errors import InputError

__all__ = ["CONTROLS", "LARGEST", "MOST", "check_least", "check_numbers", "check_share"]

LARGEST = 1e9  # learnt value, so that no sum of them overflows in single precision
MOST = 1e6  # weight of a part of a model: with larger ones, nothing can be learnt in that precision
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")  # what terminals obey, and halves of characters


def check_numbers(settings: object, *, real: Iterable[str] = (), whole: Iterable[str] = ()) -> None:
    """Raise an InputError unless attributes of these names are numbers; None is left alone."""
    for names, kind, called in ((real, Real, "number"), (whole, Integral, "whole number")):
        for name in names:
            value = getattr(settings, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
                raise InputError(f"{name} must be a {called}, got {value!r}.")
            if isinstance(value, Integral) and abs(int(value)) >= 2**63:
                raise InputError(f"{name} must be below 2^63, got {value!r:.40}.")


def check_least(settings: object, least: int, *names: str, most: float = 2**63 - 1) -> None:
    """Raise an InputError unless attributes of these names are at least `least` and at most `most`."""
    for name in names:
        value = getattr(settings, name)
        if value is None or not least <= value < math.inf:
            raise InputError(f"{name} must be at least {least}, got {value!r:.40}.")
        if value > most:
            limit = f"at most {most:g}" if most < 2**62 else "below 2**63"
            raise InputError(f"{name} must be {limit}, got {value!r:.40}.")


def check_share(settings: object, *names: str) -> None:
    """Raise an InputError unless attributes of these names are at least 0 and below 1."""
    for name in names:
        if not 0 <= getattr(settings, name) < 1:
            raise InputError(f"{name} must be at least 0 and below 1, got {getattr(settings, name)}.")
