"""The exceptions and the warnings of the package.

Everything that goes wrong because of what was given raises a :class:`WGCNError`, whose message says what was given,
what was expected and what to do. Each also is the standard exception that a caller would look for.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "InputError",
    "InterruptWarning",
    "MissingDependencyError",
    "NoWordError",
    "StoreError",
    "WGCNError",
    "WGCNWarning",
    "interrupts_raised",
]


class WGCNError(Exception):
    """Base class of every exception that the package raises on purpose."""


class InputError(WGCNError, ValueError):
    """A text, file, column or parameter cannot be used as it was given."""


class NoWordError(InputError):
    """There is no word in any of the texts."""


class StoreError(WGCNError, ValueError):
    """A saved folder is missing, damaged, of another kind or from a newer version."""


class MissingDependencyError(WGCNError, ImportError):
    """An optional dependency is needed for what was asked."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package '{package}'. Install it with: pip install 'wgcn[{extra}]'")


class WGCNWarning(UserWarning):
    """Something in the input was repaired or left out; the message says what and how much."""


class InterruptWarning(WGCNWarning):
    """Ctrl-C ended a training early; what it had learnt is kept."""


@contextmanager
def interrupts_raised() -> Iterator[None]:
    """Within it, Ctrl-C in a training is a KeyboardInterrupt after all, once a checkpoint is saved: nothing is kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterruptWarning)
        try:
            yield
        except InterruptWarning as warning:
            raise KeyboardInterrupt from warning
