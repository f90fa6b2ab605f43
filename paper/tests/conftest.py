"""What the tests of the experiments share: the docs corpus as a data set."""

import pytest

from wgcn_paper.datasets import Dataset, docs_corpus


@pytest.fixture(scope="session")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """The docs corpus, with a cache that is thrown away."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WGCN_CACHE", str(tmp_path_factory.mktemp("cache")))
        return docs_corpus()
