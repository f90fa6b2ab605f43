"""Data sets: one source per file, all as a :class:`Dataset`."""

from wgcn_paper.datasets.dataset import Dataset
from wgcn_paper.datasets.docs import docs_corpus
from wgcn_paper.datasets.layout import load_dataset, stop_words
from wgcn_paper.datasets.registry import DATASETS, CitationSet, TextSet, dataset_names

__all__ = [
    "DATASETS",
    "CitationSet",
    "Dataset",
    "TextSet",
    "dataset_names",
    "docs_corpus",
    "load_dataset",
    "stop_words",
]
