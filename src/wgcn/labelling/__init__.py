"""Labels, and the labelling loop: seed words, explanations, what to label next, wrong labels, answers to trust.

The functions here work on arrays, sparse matrices and callbacks and know neither models nor estimators, whose methods
call them. What is named here is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wgcn.labelling.folds import LabelledKFold as LabelledKFold
    from wgcn.labelling.review import Doubt as Doubt

_HOMES = {"Doubt": "wgcn.labelling.review", "LabelledKFold": "wgcn.labelling.folds"}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'wgcn.labelling' has no attribute {name!r}")
    from wgcn.errors import needs

    with needs(f"wgcn.labelling.{name}"):
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
