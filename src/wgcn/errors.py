"""The exceptions and the warning of the package.

Everything that goes wrong because of what was given raises a :class:`WGCNError`, whose message says what was given,
what was expected and what to do. Each also is the standard exception that a caller would look for.
"""

__all__ = ["InputError", "MissingDependencyError", "NoWordError", "StoreError", "WGCNError", "WGCNWarning"]


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
