"""The exceptions and the warnings of the package, and the checks of parameters that raise them.

Everything that goes wrong because of what was given raises a :class:`WGCNError`, whose message says what was given,
what was expected and what to do. Each also is the standard exception that a caller would look for.
"""

import math
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real

# The extra that brings a module.
_EXTRAS = {
    "scipy": "graph",
    "sklearn": "graph",
    "numba": "graph",
    "torch": "train",
    "typer": "cli",
    "rich": "cli",
    "matplotlib": "plots",
    "networkx": "plots",
    "pyarrow": "parquet",
    "openpyxl": "excel",
    "dask": "scale",
    "distributed": "scale",
    "starlette": "serve",
    "uvicorn": "serve",
    "filelock": "graph",
}


class WGCNError(Exception):
    """Base class of every exception that the package raises on purpose."""


class InputError(WGCNError, ValueError):
    """A text, file, column or parameter cannot be used as it was given."""


class NoWordError(InputError):
    """There is no word in any of the texts."""


class StoreError(WGCNError, ValueError):
    """A saved folder is missing, damaged, of another kind or from a newer version."""


class MissingDependencyError(WGCNError, ImportError):
    """An optional dependency is needed for what was asked: `module` for `purpose`, the subject of a sentence.

    `extra` is the extra that brings all that the purpose needs; by default that of the module.
    """

    def __init__(self, module: str, purpose: str, extra: str | None = None) -> None:
        self.module, self.purpose = module.partition(".")[0], purpose
        self.extra = extra or _EXTRAS[self.module]
        super().__init__(self.advice(), name=module)

    def advice(self, *more: str) -> str:
        """Return the message, with the command that installs the extra and some more."""
        package = "scikit-learn" if self.module == "sklearn" else self.module.replace("_", "-")
        extras = ",".join(dict.fromkeys([self.extra, *more]))
        return f"{self.purpose} needs the package '{package}'. From a checkout of wgcn: pip install '.[{extras}]'"


@contextmanager
def needs(purpose: str, extra: str | None = None) -> Iterator[None]:
    """Import optional dependencies inside this: a missing one is a MissingDependencyError, with these parameters."""
    try:
        yield
    except ModuleNotFoundError as error:
        if extra is None and (error.name or "").partition(".")[0] not in _EXTRAS:
            raise  # no extra brings it: something else is wrong
        raise MissingDependencyError(error.name or "", purpose, extra) from error


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
