"""The docs corpus of the library as a data set."""

from wgcn.text import docs_corpus as source
from wgcn_paper.datasets.dataset import Dataset

__all__ = ["docs_corpus"]


def docs_corpus(*, cache: bool = True) -> Dataset:
    """Return `wgcn.text.docs_corpus` as a data set."""
    docs = source.docs_corpus(cache=cache)
    return Dataset(
        name="docs",
        texts=docs.texts,
        features=None,
        labels=docs.labels,
        train=docs.train,
        test=docs.test,
        document_graph=docs.document_graph,
        names=docs.names,
    )
