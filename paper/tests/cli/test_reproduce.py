"""The command that makes the tables, as a user runs it."""

import hashlib
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from wgcn import plots as pictures
from wgcn_paper import methods
from wgcn_paper.datasets import Dataset, layout
from wgcn_paper.experiments import cells, reproduce, results, runner
from wgcn_paper.experiments.pages import TABLES, Page
from wgcn_paper.experiments.table import Options, Table

Run = Callable[..., tuple[int, str, str]]

ROOT = Path(__file__).parents[3]

SETTINGS = """
title = "Small"
datasets = ["r8", "mr"]
protocols = ["corpus", "inductive"]
[[row]]
name = "SVC"
published = "CNN"
method = "linear-svc"
[[row]]
name = "SVC, pairs"
method = "linear-svc"
[row.settings]
ngrams = 2
"""


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without data, and a folder to work in."""
    (tmp_path / "none").mkdir()
    monkeypatch.setenv("WGCN_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    cells._dataset.cache_clear()


@pytest.fixture
def small(nothing: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two small sets, and a settings file for them."""
    texts = ("a cat purrs", "the dog barks", "my cat", "his dog") * 5
    labels = np.array(["cat", "dog"] * 10)
    for name in ("r8", "mr"):
        (tmp_path / "none/text" / name).mkdir(parents=True)
        dataset = Dataset(name, texts, None, labels, np.arange(16), np.arange(16, 20))
        layout.write_text_set(tmp_path / "none/text" / name, dataset)
    path = tmp_path / "small.toml"
    path.write_text(SETTINGS)
    return path


def done(folder: Path, table: str = "citations") -> list[tuple[str, str, str]]:
    runs = json.loads((folder / f"{table}.json").read_text())["runs"]
    return [(run["dataset"], run["protocol"], run["variant"]) for run in runs]


def error(answer: tuple[int, str, str]) -> str:
    code, out, err = answer
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert "Traceback" not in err
    return err


def test_help_names_every_table_and_option(run: Run) -> None:
    code, out, _ = run("reproduce", "--help")
    assert code == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
    options = ("datasets", "protocol", "rows", "models", "seeds", "jobs", "search", "settings", "word-vectors")
    for word in (*TABLES, "all", *(f"--{option}" for option in options)):
        assert word in plain


@pytest.mark.parametrize("name", ["datasets", "accuracy", "ablation", "all"])
def test_without_data_and_results_it_says_how_to_get_data(run: Run, nothing: None, tmp_path: Path, name: str) -> None:
    err = error(run("reproduce", name))
    assert "is not on this machine" in err
    assert "wgcn-paper data prepare" in err
    assert "WGCN_DATA" in err
    assert not (tmp_path / "results").exists()


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["datasets", "update", "elements", "readme"])
def test_committed_results_are_shown_without_data_and_without_writing(
    run: Run, nothing: None, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv("WGCN_DATA")
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(runner, "run_cell", None)
    for module in (results, pictures):
        monkeypatch.setattr(module, "write_file", lambda path, write: pytest.fail(f"{path} was written"))
    page = Page.of(name, Path("paper/results"))
    before, shown = files(ROOT / "paper/results"), page.shown()
    code, out, err = run("reproduce", name, "--device", "cpu")
    assert (code, out.rstrip()) == (0, shown.rstrip())
    assert files(ROOT / "paper/results") == before
    assert f"Report: {page.path}" in err


def test_a_retired_row_is_shown_but_not_run(run: Run, small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert run("reproduce", "citations", "--settings", small, "-o", folder, "--rows", "SVC")[0] == 0
    small.write_text(SETTINGS.replace('name = "SVC"', 'name = "SVC"\nretired = true'))
    # Its runs are there: they are shown, with a note if it was selected by name.
    code, out, err = run("reproduce", "citations", "--settings", small, "-o", folder, "--rows", "SVC")
    assert (code, "| SVC | 100.00" in out) == (0, True)
    assert "Retired rows are not run (SVC): the library has no such hyper-parameter since 0.2.0" in err
    # Without runs, it is left out with a note, and an error if it was selected by name.
    code, out, err = run("reproduce", "citations", "--settings", small, "-o", tmp_path / "new", "--datasets", "mr")
    assert code == 0
    assert "Retired rows are not run (SVC)" in err
    assert {row for _, _, row in done(tmp_path / "new")} == {"SVC, pairs"}
    err = error(run("reproduce", "citations", "--settings", small, "-o", tmp_path / "new", "--rows", "SVC"))
    assert "The row 'SVC' cannot be run. It is retired" in err


def test_a_table_narrowed_to_some_models_needs_no_packages_of_others(
    run: Run, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "wgcn_paper.methods.fasttext", raising=False)
    monkeypatch.setitem(sys.modules, "fasttext", None)
    small.write_text(f'{SETTINGS}[[row]]\nname = "fastText"\nmethod = "fasttext"\n')
    command = ["reproduce", "citations", "--settings", small, "-o", tmp_path / "out", "--datasets", "mr"]
    assert run(*command, "--models", "linear-svc")[0] == 0
    before = done(tmp_path / "out")
    assert "The method fasttext needs the package 'fasttext-wheel'" in error(run(*command))
    assert done(tmp_path / "out") == before


PACKAGES = """
title = "Small"
datasets = ["r8", "mr"]
protocols = ["corpus"]
seeds = 1
[[row]]
name = "fastText"
method = "fasttext"
[[row]]
name = "Graph-CNN"
method = "graph-cnn"
settings = { stop_words = false }
[[row]]
name = "Text-GCN"
method = "text-gcn"
[row.settings]
hidden = 4
max_epochs = 2
min_count = 1
stop_words = false
[[row]]
name = "SVC"
method = "linear-svc"
"""


def committed(cell: cells.Cell, device: str) -> cells.Run:
    """Stand in for a run: of a quick method, under the name of the cell."""
    quick = cells.make_cell(cell.dataset, cell.protocol, "linear-svc", {})
    return replace(cells.run_cell(quick, device), cell=cell)


@pytest.mark.parametrize(
    ("package", "module", "row", "install"),
    [
        (
            "fasttext",
            "fasttext",
            "fastText",
            "'fasttext-wheel'. From a checkout of wgcn: pip install './paper[fasttext]'",
        ),
        (
            "torch_geometric",
            "graph_cnn",
            "Graph-CNN",
            "'torch-geometric'. From a checkout of wgcn: pip install ./paper\n",
        ),
    ],
)
def test_only_methods_that_are_run_need_their_packages_and_the_report_shows_all(
    run: Run,
    small: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    module: str,
    row: str,
    install: str,
) -> None:
    small.write_text(PACKAGES)
    command = ["reproduce", "accuracy", "--settings", small, "-o", tmp_path / "out", "--device", "cpu"]
    with monkeypatch.context() as patch:
        patch.setattr(runner, "run_cell", committed)
        assert run(*command, "--datasets", "r8")[0] == 0
    # The package goes away, and its method is imported anew.
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    for name in (module, "geometric"):
        monkeypatch.delitem(sys.modules, f"wgcn_paper.methods.{name}", raising=False)
        monkeypatch.delattr(methods, name, raising=False)
    code, out, _ = run(*command, "--models", "text-gcn")
    assert code == 0
    assert {name for dataset, _, name in done(tmp_path / "out", "accuracy") if dataset == "mr"} == {"Text-GCN"}
    for name in ("fastText", "Graph-CNN", "Text-GCN", "SVC"):
        assert f"| {name} | 100.00" in out
    # What has all its runs is shown without the package; what has not names the method that needs it.
    assert run(*command, "--datasets", "r8")[:2] == (0, out)
    before = done(tmp_path / "out", "accuracy")
    err = error(run(*command, "--rows", row))
    assert f"needs the package {install}" in err
    assert done(tmp_path / "out", "accuracy") == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure"], "There is no table 'figure'. There are: datasets, accuracy"),
        (["accuracy", "--datasets", "r9"], "There is no data set 'r9' in this table. There are: 20ng"),
        (["accuracy", "--rows", "BERT"], "There is no row 'BERT' in this table. There are: WGCN"),
        (
            ["accuracy", "--protocol", "open"],
            "There is no protocol 'open' in this table. There are: corpus, inductive",
        ),
        (["accuracy", "--models", "text-gcn,bert"], "There is no method 'bert'. There are: wgcn, wgcn-linear"),
        (["all", "--models", "bert"], "There is no method 'bert'. There are: wgcn, wgcn-linear"),
        (["accuracy", "--models", "wgcn, sgc"], "There is no model 'sgc' in this table. There are: wgcn, wgcn-linear"),
        (
            ["accuracy", "--models", "text-gcn", "--protocol", "inductive"],
            "Text-GCN cannot run under the protocol inductive here. Documents are nodes of the graph",
        ),
        (
            ["accuracy", "--rows", "Fast-GCN", "--protocol", "corpus,inductive"],
            "Fast-GCN cannot run under the protocol inductive here. On texts, documents are nodes of the graph",
        ),
        (["accuracy", "--settings", "nowhere.toml"], "nowhere.toml is no settings file for 'accuracy'"),
        (["all", "--settings", "small.toml"], "are for one table"),
        (["all", "--search"], "are for one table"),
    ],
)
def test_errors_are_one_message(run: Run, nothing: None, arguments: list[str], message: str) -> None:
    assert message in error(run("reproduce", *arguments))


def test_a_table_is_written_and_shown(run: Run, small: Path, tmp_path: Path) -> None:
    code, out, err = run("reproduce", "accuracy", "--settings", small, "-o", tmp_path / "out")
    assert code == 0
    assert out.rstrip() == (tmp_path / "out/accuracy.md").read_text().rstrip()
    assert "| published: CNN | 95.71 ± 0.52 | 77.75 ± 0.07 |" in out
    assert "| SVC | 100.00 (+4.29) | 100.00 (+22.25) |" in out
    assert "| SVC, pairs | 100.00 | 100.00 |" in out
    assert (tmp_path / "out/accuracy.png").exists()
    assert f"Report: {tmp_path / 'out/accuracy.md'}" in err
    assert len(done(tmp_path / "out", "accuracy")) == 8
    # Nothing is left to be done, and the page stays the same.
    assert run("reproduce", "accuracy", "--settings", small, "-o", tmp_path / "out")[:2] == (0, out)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--datasets", "mr"], [("mr", p, v) for p in ("corpus", "inductive") for v in ("SVC", "SVC, pairs")]),
        (["--protocol", "inductive", "--rows", "SVC, pairs"], [(d, "inductive", "SVC, pairs") for d in ("mr", "r8")]),
        (
            ["--datasets", " r8, ", "--rows", "SVC;SVC, pairs", "--protocol", "corpus", "--seeds", "1"],
            [("r8", "corpus", v) for v in ("SVC", "SVC, pairs")],
        ),
    ],
)
def test_a_table_can_be_narrowed(
    run: Run, small: Path, tmp_path: Path, arguments: list[str], expected: list[tuple[str, str, str]]
) -> None:
    assert run("reproduce", "citations", "--settings", small, "-o", tmp_path / "out", *arguments)[0] == 0
    assert done(tmp_path / "out") == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--models", "logistic"], {"logistic"}),
        (["--models", " linear-svc, "], {"SVC", "SVC, pairs"}),
        (["--models", "logistic,linear-svc", "--rows", "SVC"], {"SVC"}),
        (["--models", "all"], {"SVC", "SVC, pairs", "logistic"}),
        (["--models", "all", "--protocol", "inductive"], {"SVC", "SVC, pairs"}),
    ],
)
def test_models_are_all_rows_of_a_method(
    run: Run, small: Path, tmp_path: Path, arguments: list[str], expected: set[str]
) -> None:
    small.write_text(f'{SETTINGS}[[row]]\nname = "logistic"\nmethod = "logistic"\nprotocols = ["corpus"]\n')
    code, out, _ = run("reproduce", "citations", "--settings", small, "-o", tmp_path / "out", *arguments)
    assert code == 0
    assert {row for _, _, row in done(tmp_path / "out")} == expected
    assert ("| SVC |" in out) == ("SVC" in expected)


def test_a_model_is_left_out_of_tables_that_have_no_row_of_it(
    run: Run, nothing: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, list[str]] = {}

    def record(table: Table, options: Options, folder: Path, *_: object, **__: object) -> Path:
        asked[table.name] = sorted({cell.method for cell in table.cells(options)})
        folder.mkdir(exist_ok=True)
        (folder / f"{table.name}.md").touch()
        return folder / f"{table.name}.md"

    monkeypatch.setattr(reproduce, "reproduce", record)
    assert run("reproduce", "all", "--models", "fast-gcn,sgc", "-o", tmp_path / "out")[0] == 0
    assert list(asked) == list(TABLES)
    assert {name: methods for name, methods in asked.items() if methods} == {
        "accuracy": ["fast-gcn"],
        "efficiency": ["fast-gcn"],
        "citations": ["fast-gcn", "sgc"],
    }


VECTORS = """
title = "Small"
datasets = ["r8", "mr"]
protocols = ["inductive"]
[[row]]
name = "CNN"
method = "cnn"
[row.settings]
max_epochs = 1
feature_maps = 2
[row.set.mr]
word_vectors = ""
[[row]]
name = "SVC"
method = "linear-svc"
"""


def test_word_vectors_of_a_file_take_the_place_of_distilled_ones(
    run: Run, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WGCN_WORD_VECTORS", "")  # so that it is as before after the test
    small.write_text(VECTORS)
    file = tmp_path / "my.vec"
    file.write_text("cat 1 0 0\ndog 0 1 0\n")
    code, _, _ = run("reproduce", "accuracy", "--settings", small, "--word-vectors", file, "-o", tmp_path / "out")
    assert code == 0
    text = (tmp_path / "out/accuracy.json").read_text()
    document = json.loads(text)
    used = {
        (each["dataset"], each["variant"]): document["settings"][each["settings"]].get("word_vectors")
        for each in document["runs"]
    }
    source = f"my.vec:{hashlib.sha256(file.read_bytes()).hexdigest()[:16]}"
    assert used == {("r8", "CNN"): source, ("mr", "CNN"): "", ("r8", "SVC"): None, ("mr", "SVC"): None}
    assert str(tmp_path) not in text


def test_a_file_that_holds_no_word_vectors_is_one_message(run: Run, small: Path, tmp_path: Path) -> None:
    err = error(run("reproduce", "accuracy", "--settings", small, "--word-vectors", small))
    assert "small.toml, line 2 has a value that is not a number" in err
    err = error(run("reproduce", "accuracy", "--settings", small, "--word-vectors", tmp_path / "nowhere.vec"))
    assert "nowhere.vec cannot be read" in err
    assert not (tmp_path / "results").exists()


def test_a_damaged_result_file_is_one_message(run: Run, small: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/accuracy.json").write_text("{")
    err = error(run("reproduce", "accuracy", "--settings", small, "-o", tmp_path / "out"))
    assert "accuracy.json is damaged or not a result file" in err
    assert (tmp_path / "out/accuracy.json").read_text() == "{"
