"""Documents with citations that tests of several methods share."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from wgcn_paper.datasets import Dataset


@pytest.fixture(scope="module")
def papers() -> Dataset:
    """Two kinds of documents that cite their own kind; some cite themselves."""
    rng = np.random.default_rng(2)
    labels = np.arange(60) % 2
    features = (rng.random((60, 20)) < 0.15 + 0.2 * (np.arange(20) % 2 == labels[:, None])) * rng.integers(
        1, 4, (60, 20)
    )
    links = (rng.random((60, 60)) < 0.1) & (labels[:, None] == labels)
    graph = (links | links.T).astype(np.float32)
    np.fill_diagonal(graph, np.arange(60) < 5)
    return Dataset(
        "papers",
        None,
        csr_array(features.astype(np.float32)),
        labels,
        np.arange(20),
        np.arange(30, 60),
        csr_array(graph),
        None,
        np.arange(20, 30),
    )
