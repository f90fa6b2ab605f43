"""What the tests share: the benchmark data, the docs corpus, and a cache that is not the user's."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from wgcn_paper.datasets.docstrings import DocsCorpus, docs_corpus

# Compiling a kernel takes seconds once, so no example has a deadline; the same examples on every run.
settings.register_profile("wgcn", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("wgcn")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of the benchmark data; a test that asks for it is skipped where there is none."""
    folder = os.environ.get("WGCN_DATA")
    if not folder or not Path(folder, "text").is_dir():
        pytest.skip("needs the benchmark data: set WGCN_DATA to its folder")
    return Path(folder)


@pytest.fixture(scope="session")
def docs(tmp_path_factory: pytest.TempPathFactory) -> DocsCorpus:
    """Return the docs corpus, with a cache that is thrown away."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WGCN_CACHE", str(tmp_path_factory.mktemp("cache")))
        return docs_corpus()


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """For networks so small that several threads make them slower, much slower on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
