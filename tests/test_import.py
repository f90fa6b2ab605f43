"""What importing the package costs, in modules rather than in seconds."""

import subprocess
import sys

import pytest

import wgcn
from wgcn.base.errors import MissingDependencyError, needs

GRAPH = ("scipy", "sklearn", "numba")


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


def run_without(packages: tuple[str, ...], statement: str) -> subprocess.CompletedProcess[str]:
    script = f"import sys; sys.modules.update(dict.fromkeys({packages!r})); {statement}"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("from wgcn import WGCNTextClassifier", "wgcn.WGCNTextClassifier needs the package 'scipy'"),
        ("from wgcn import WGCNEmbedder", "wgcn.WGCNEmbedder needs the package 'scikit-learn'"),
        ("from wgcn import WordGraph", "A word graph needs the package 'scipy'"),
        ("from wgcn.graph import WordGraph", "A word graph needs the package 'scipy'"),
        ("from wgcn import Corpus", "wgcn.Corpus needs the package 'numba'"),
    ],
)
def test_a_base_install_says_what_is_missing(statement: str, message: str) -> None:
    done = run_without(GRAPH, statement)
    last = done.stderr.splitlines()[-1]
    assert (
        last == f"wgcn.base.errors.MissingDependencyError: {message}. From a checkout of wgcn: pip install '.[graph]'"
    )


def test_a_base_install_predicts() -> None:
    done = run_without((*GRAPH, "typer", "rich", "torch"), "from wgcn import TextModel, EmbeddingModel, Vocabulary")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_base_install_exports() -> None:
    statement = "from wgcn.browser import characters, export; characters.character_arrays()"
    done = run_without((*GRAPH, "typer", "rich", "torch"), statement)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("packages", "arguments", "extras"),
    [
        (("typer", "rich", *GRAPH), ["predict", "m", "--proba"], "cli"),
        (("typer", "rich", *GRAPH), ["export", "m", "--html", "p"], "cli"),
        (("typer", "rich", *GRAPH), ["fit", "t.csv", "--model", "m"], "graph,cli"),
        (("typer", "rich"), ["fit", "t.csv", "--model", "m"], "cli"),
        (GRAPH, ["fit", "t.csv", "--model", "m"], "graph,cli"),
        (GRAPH, ["graph", "info", "g"], "graph,cli"),
        (GRAPH, ["evaluate", "m", "t.csv"], "graph,cli"),
    ],
)
def test_a_command_names_the_extras_that_are_enough(
    packages: tuple[str, ...], arguments: list[str], extras: str
) -> None:
    done = run_without(packages, f"sys.argv[1:] = {arguments!r}; from wgcn.cli import main; main()")
    assert done.returncode == 2
    assert f"From a checkout of wgcn: pip install '.[{extras}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_module_is_an_import_error_with_its_name() -> None:
    with pytest.raises(ImportError) as caught, needs("A test"):
        raise ModuleNotFoundError(name="torch.nn")
    assert isinstance(caught.value, MissingDependencyError)
    assert (caught.value.name, caught.value.extra) == ("torch.nn", "train")


def test_a_missing_module_that_no_extra_brings_is_told_as_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match="strange"), needs("A test"):
        raise ModuleNotFoundError("no strange", name="strange")


def loaded_by(*arguments: str) -> set[str]:
    """The modules that are loaded when a command begins: there is no model."""
    begin = f"import sys; sys.argv[1:] = {list(arguments)!r}; from wgcn.cli import main"
    script = f"{begin}\ntry: main()\nfinally: print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (2, "Error: There is no model folder nowhere. Check the path.\n")
    return set(result.stdout.split())


@pytest.mark.parametrize("texts", [[], ["-"], ["texts.txt"]])
def test_prediction_without_options_needs_no_typer_and_no_rich(texts: list[str]) -> None:
    assert not loaded_by("predict", "nowhere", *texts) & {"typer", "rich", "scipy", "numba", "wgcn.cli.app"}


def test_the_command_line_loads_only_the_command_that_is_asked_for() -> None:
    loaded = loaded_by("predict", "nowhere", "--proba")
    assert {"typer", "wgcn.cli.model"} <= loaded
    assert not loaded & {"rich", "scipy", "wgcn.cli.embed", "wgcn.cli.graph", "wgcn.io.read"}
