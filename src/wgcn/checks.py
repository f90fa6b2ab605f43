"""Checks of parameters."""

from collections.abc import Iterable
from numbers import Integral, Real

from wgcn.errors import InputError

__all__ = ["check_numbers"]


def check_numbers(settings: object, *, real: Iterable[str] = (), whole: Iterable[str] = ()) -> None:
    """Raise an InputError unless attributes of these names are numbers; None is left alone."""
    for names, kind, called in ((real, Real, "number"), (whole, Integral, "whole number")):
        for name in names:
            value = getattr(settings, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
                raise InputError(f"{name} must be a {called}, got {value!r}.")
