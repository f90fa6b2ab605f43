"""Labelled documents to learn from: one source a file, all as a :class:`Dataset`."""

from wgcn.datasets.dataset import Dataset, cache_folder
from wgcn.datasets.docs import docs_corpus

__all__ = ["Dataset", "cache_folder", "docs_corpus"]
