"""What importing the package costs, in modules rather than in seconds."""

import subprocess
import sys

import pytest

import wgcn


def modules_after(statement: str) -> set[str]:
    script = f"import sys; {statement}; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not modules_after("import wgcn") & {"numpy", "scipy", "sklearn", "numba", "torch", "matplotlib"}


def test_building_a_graph_needs_no_torch_and_no_matplotlib() -> None:
    statement = "import wgcn; wgcn.WordGraph.from_corpus(wgcn.Corpus.from_texts(['a b']))"
    assert not modules_after(statement) & {"torch", "matplotlib", "sklearn", "networkx", "pyarrow"}


@pytest.mark.parametrize("name", wgcn.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(wgcn, name) is not None
    assert name in dir(wgcn)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        wgcn.Nothing  # noqa: B018
