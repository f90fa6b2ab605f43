"""Classify documents through a graph of words.

An implementation of "Word Grounded Graph Convolutional Network" (Lu, Xie, Wang and Nie). What is named here is loaded
when it is first used, so that importing the package is quick and needs no more than is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wgcn.estimators.embedder import WGCNEmbedder
    from wgcn.estimators.matrix import WGCNClassifier
    from wgcn.estimators.network import WGCNNetworkClassifier
    from wgcn.estimators.text import WGCNTextClassifier
    from wgcn.graph import EdgeRules, WindowCounts, WordGraph
    from wgcn.inference.embedding import EmbeddingModel
    from wgcn.inference.model import TextModel
    from wgcn.text.corpus import Corpus
    from wgcn.text.vocabulary import Vocabulary, VocabularyRules

__version__ = "0.2.0"

_HOMES = {
    "Corpus": "wgcn.text.corpus",
    "EdgeRules": "wgcn.graph",
    "EmbeddingModel": "wgcn.inference.embedding",
    "TextModel": "wgcn.inference.model",
    "WGCNClassifier": "wgcn.estimators.matrix",
    "WGCNEmbedder": "wgcn.estimators.embedder",
    "WGCNNetworkClassifier": "wgcn.estimators.network",
    "WGCNTextClassifier": "wgcn.estimators.text",
    "Vocabulary": "wgcn.text.vocabulary",
    "VocabularyRules": "wgcn.text.vocabulary",
    "WindowCounts": "wgcn.graph",
    "WordGraph": "wgcn.graph",
}

__all__ = [
    "Corpus",
    "EdgeRules",
    "EmbeddingModel",
    "TextModel",
    "Vocabulary",
    "VocabularyRules",
    "WGCNClassifier",
    "WGCNEmbedder",
    "WGCNNetworkClassifier",
    "WGCNTextClassifier",
    "WindowCounts",
    "WordGraph",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'wgcn' has no attribute {name!r}")
    from wgcn.errors import needs

    with needs(f"wgcn.{name}"):
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
