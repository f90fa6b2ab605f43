"""Classify documents through a graph of words.

An implementation of "Word Grounded Graph Convolutional Network" (Lu, Xie, Wang and Nie). What is named here is loaded
when it is first used, so that importing the package is quick and needs no more than is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wgcn.base.errors import InputError as InputError
    from wgcn.base.errors import InterruptWarning as InterruptWarning
    from wgcn.base.errors import MissingDependencyError as MissingDependencyError
    from wgcn.base.errors import NoWordError as NoWordError
    from wgcn.base.errors import StoreError as StoreError
    from wgcn.base.errors import WGCNError as WGCNError
    from wgcn.base.errors import WGCNWarning as WGCNWarning
    from wgcn.estimators.embedder import WGCNEmbedder as WGCNEmbedder
    from wgcn.estimators.matrix import WGCNClassifier as WGCNClassifier
    from wgcn.estimators.network import WGCNNetworkClassifier as WGCNNetworkClassifier
    from wgcn.estimators.session import Session as Session
    from wgcn.estimators.text import WGCNTextClassifier as WGCNTextClassifier
    from wgcn.graph import EdgeRules as EdgeRules
    from wgcn.graph import WindowCounts as WindowCounts
    from wgcn.graph import WordGraph as WordGraph
    from wgcn.labels.splits import LabelledKFold as LabelledKFold
    from wgcn.model.embedding import EmbeddingModel as EmbeddingModel
    from wgcn.model.text_model import TextModel as TextModel
    from wgcn.text.corpus import Corpus as Corpus
    from wgcn.text.vocabulary import Vocabulary as Vocabulary
    from wgcn.text.vocabulary import VocabularyRules as VocabularyRules

__version__ = "0.2.0"

_ERRORS = (
    "WGCNError",
    "InputError",
    "NoWordError",
    "StoreError",
    "MissingDependencyError",
    "WGCNWarning",
    "InterruptWarning",
)
_HOMES = {
    **dict.fromkeys(_ERRORS, "wgcn.base.errors"),
    "Corpus": "wgcn.text.corpus",
    "EdgeRules": "wgcn.graph",
    "EmbeddingModel": "wgcn.model.embedding",
    "LabelledKFold": "wgcn.labels.splits",
    "Session": "wgcn.estimators.session",
    "TextModel": "wgcn.model.text_model",
    "WGCNClassifier": "wgcn.estimators.matrix",
    "WGCNEmbedder": "wgcn.estimators.embedder",
    "WGCNNetworkClassifier": "wgcn.estimators.network",
    "WGCNTextClassifier": "wgcn.estimators.text",
    "Vocabulary": "wgcn.text.vocabulary",
    "VocabularyRules": "wgcn.text.vocabulary",
    "WindowCounts": "wgcn.graph",
    "WordGraph": "wgcn.graph",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'wgcn' has no attribute {name!r}")
    from wgcn.base.errors import needs

    with needs(f"wgcn.{name}"):
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
