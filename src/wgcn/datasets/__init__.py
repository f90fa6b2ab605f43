"""Labelled documents to learn from: one source a file, all as a :class:`Dataset`."""

from wgcn.datasets.dataset import Dataset, cache_folder
from wgcn.datasets.docs import docs_corpus
from wgcn.datasets.layout import load_dataset, stop_words
from wgcn.datasets.registry import DATASETS, CitationSet, TextSet, dataset_names

__all__ = [
    "DATASETS",
    "CitationSet",
    "Dataset",
    "TextSet",
    "cache_folder",
    "dataset_names",
    "docs_corpus",
    "load_dataset",
    "stop_words",
]
