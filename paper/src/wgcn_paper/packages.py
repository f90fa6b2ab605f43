"""The error for a package that an experiment needs and that is not installed, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from wgcn.base.errors import WGCNError

# Where a module comes with a package of another name.
_PACKAGES = {"sklearn": "scikit-learn", "fasttext": "fasttext-wheel"}
# Packages of an extra: what the labelling loop is compared with, fastText, and static embeddings.
_EXTRAS = {"cleanlab": "[loop]", "small-text": "[loop]", "fasttext-wheel": "[fasttext]", "wordllama": "[static]"}


class MissingPackageError(WGCNError, ImportError):
    """A package that an experiment needs is not installed; `purpose` is what needs it, as the subject of a sentence."""

    def __init__(self, module: str, purpose: str) -> None:
        name = module.partition(".")[0]
        package = _PACKAGES.get(name, name.replace("_", "-"))
        # Shells read brackets as a pattern unless they are quoted.
        source = f"'./paper{_EXTRAS[package]}'" if package in _EXTRAS else "./paper"
        super().__init__(
            f"{purpose} needs the package '{package}'. From a checkout of wgcn: pip install {source}", name=module
        )


@contextmanager
def packages_for(purpose: str) -> Iterator[None]:
    """Import packages inside this: a missing one is a MissingPackageError."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingPackageError(error.name or "of an import", purpose) from error
