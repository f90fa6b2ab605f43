"""Checks of parameters."""

from collections.abc import Iterable
from numbers import Integral, Real

from wgcn.errors import InputError

__all__ = ["check_least", "check_numbers", "check_share"]


def check_numbers(settings: object, *, real: Iterable[str] = (), whole: Iterable[str] = ()) -> None:
    """Raise an InputError unless attributes of these names are numbers; None is left alone."""
    for names, kind, called in ((real, Real, "number"), (whole, Integral, "whole number")):
        for name in names:
            value = getattr(settings, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
                raise InputError(f"{name} must be a {called}, got {value!r}.")


def check_least(settings: object, least: int, *names: str) -> None:
    """Raise an InputError unless attributes of these names are at least `least` and below 2**63, as 64 bits hold."""
    for name in names:
        value = getattr(settings, name)
        if value is None or not least <= value < 2**63:
            limit = "below 2**63" if value is not None and value >= 2**63 else f"at least {least}"
            raise InputError(f"{name} must be {limit}, got {value}.")


def check_share(settings: object, *names: str) -> None:
    """Raise an InputError unless attributes of these names are at least 0 and below 1."""
    for name in names:
        if not 0 <= getattr(settings, name) < 1:
            raise InputError(f"{name} must be at least 0 and below 1, got {getattr(settings, name)}.")
