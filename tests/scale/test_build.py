"""Whole builds from files: by threads, by a Dask cluster, interrupted, and as the command runs them."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import scale

from wgcn import Corpus, EdgeRules, VocabularyRules, WordGraph
from wgcn.base.errors import InputError
from wgcn.cli import main
from wgcn.scale import build as module
from wgcn.scale.build import Resources, build_graph, graph_from_files
from wgcn.scale.corpus import choose_vocabulary, find_shards, tokenise_shard, tokenised
from wgcn.scale.counting import count_chunk
from wgcn.scale.store import open_work
from wgcn.scale.workers import Limits, Site, Workers, connect

Run = Callable[..., tuple[int, str, str]]
RULES = VocabularyRules(min_count=2)
EDGES = EdgeRules(top_k=10, min_count=2)
SMALL = Limits(characters=20_000, tokens=3_000, merged=20_000, fan_in=3)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scale, "N_TYPES", 2_000)
        patch.setattr(scale, "TOPIC_TYPES", 100)
        return scale.write_shards(tmp_path_factory.mktemp("corpus"), 20_000, 5_000)


@pytest.fixture(scope="module")
def digest(files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Digest of the graph that is built in memory."""
    corpus = Corpus.from_texts([line for file in files for line in file.read_text().splitlines()], rules=RULES)
    return WordGraph.from_corpus(corpus, rules=EDGES).save(tmp_path_factory.mktemp("expected") / "graph")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Workers]:
    pytest.importorskip("distributed", reason="needs Dask: pip install '.[scale]'")
    with connect("local", 2) as workers:
        yield workers


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process, and return its exit status and what it printed."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["wgcn", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        return (code if isinstance(code, int) else 0, *capsys.readouterr())

    return call


def digest_of(folder: Path) -> str:
    return WordGraph.load(folder).save(folder)


@pytest.mark.parametrize("n_workers", [1, 3])
def test_a_build_is_that_in_memory_and_leaves_only_its_result(
    files: list[Path], digest: str, n_workers: int, tmp_path: Path
) -> None:
    graph_from_files(files, tmp_path / "g", Resources("4GB", n_workers=n_workers), rules=RULES, edges=EDGES)
    assert digest_of(tmp_path / "g") == digest
    assert [path.name for path in tmp_path.iterdir()] == ["g"]


def test_one_large_file_is_cut_into_pieces(
    files: list[Path], digest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Limits, "of", lambda *_: SMALL)
    whole = tmp_path / "whole.txt"
    whole.write_bytes(b"".join(file.read_bytes() for file in files))
    resources = Resources("4GB", work=tmp_path / "elsewhere", keep=True)
    graph_from_files([whole], tmp_path / "g", resources, rules=RULES, edges=EDGES)
    assert digest_of(tmp_path / "g") == digest
    assert len(list((tmp_path / "elsewhere" / "files").glob("tokens-*.ids"))) > 5


def build(files: list[Path], work_folder: Path, workers: Workers) -> WordGraph:
    shards = find_shards(files)
    inputs = [shard.identity() for shard in shards]
    with open_work(work_folder, {}, inputs) as work:
        site = Site(work, workers, SMALL, inputs)
        pieces = tokenised(shards, site)
        vocabulary, coding = choose_vocabulary(pieces, site, rules=RULES)
        return build_graph(pieces, site, vocabulary, coding, rules=EDGES)


def deadly(chunk: Any, work: Any, *arguments: Any) -> Any:
    """Count a chunk, but kill the process that is the first to have counted so many."""
    run = count_chunk(chunk, work, *arguments)
    if len(list((work.path / "done").glob("run-*"))) >= 3 and not (work.path / "files" / "killed").exists():
        (work.path / "files" / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return run


def test_a_cluster_builds_the_same_graph(files: list[Path], digest: str, cluster: Workers, tmp_path: Path) -> None:
    assert build(files, tmp_path / "w", cluster).save(tmp_path / "g") == digest


def test_a_worker_that_is_killed_while_it_counts_costs_time_only(
    files: list[Path], digest: str, cluster: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wgcn.scale.counting.count_chunk", deadly)
    assert build(files, tmp_path / "w", cluster).save(tmp_path / "g") == digest
    assert (tmp_path / "w" / "files" / "killed").exists()


def test_kills_at_random_moments_leave_the_same_result(tmp_path: Path) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    # In a process of its own, since one with threads should not fork.
    command = [sys.executable, "-m", "benchmarks.scale", "kills", "--number", "5", "--folder", str(tmp_path)]
    done = subprocess.run(command, cwd=Path(scale.__file__).parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\n([5-9]|1\d) kills of \d+ builds of 6 shards", done.stdout)
    assert not list(tmp_path.iterdir())


def test_the_command_builds_the_same_graph_out_of_core(
    run: Run, files: list[Path], digest: str, tmp_path: Path
) -> None:
    how = ["--top-k", 10, "--min-pairs", 2]
    code, out, err = run("graph", "build", *files, *how, "-o", tmp_path / "g", "--memory", "2GB", "--workers", 2)
    assert code == 0
    assert digest_of(tmp_path / "g") == digest
    assert "edges" in out
    for stage in ("Tokenising: 4 shards", "Counting windows", "Merging and pruning", "Choosing the strongest edges"):
        assert stage in err
    assert [path.name for path in tmp_path.iterdir()] == ["g"]


def test_ctrl_c_says_how_to_go_on_and_the_same_command_does(
    run: Run, files: list[Path], digest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    command = ["graph", "build", *files, "--top-k", 10, "--min-pairs", 2, "-o", tmp_path / "g", "--memory", "2GB"]
    with monkeypatch.context() as patch:
        patch.setattr(module, "build_graph", press)
        code, out, err = run(*command)
    assert (code, out) == (130, "")
    assert f"The same command goes on from {tmp_path / 'g.work'}." in err
    assert not (tmp_path / "g").exists()
    code, _, err = run(*command[:-2], "--memory", "2GB", "--window", 5)
    assert code == 2
    assert "other settings (window)" in err
    with monkeypatch.context() as patch:
        patch.setattr("wgcn.scale.corpus.Tokens.from_texts", press)  # nothing is tokenised again
        assert run(*command)[0] == 0
    assert digest_of(tmp_path / "g") == digest
    assert not (tmp_path / "g.work").exists()


@pytest.mark.parametrize(
    "change", [lambda path: path.write_bytes(path.read_bytes() + b"more\n"), os.utime, Path.unlink]
)
def test_a_shard_that_changes_while_it_is_read_is_an_error(
    files: list[Path], tmp_path: Path, change: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = [tmp_path / file.name for file in files]
    for file, copy in zip(files, copies, strict=True):
        copy.write_bytes(file.read_bytes())

    def tokenise_and_change(numbered: Any, *given: Any) -> Any:
        pieces = tokenise_shard(numbered, *given)
        if numbered[1].path == copies[1]:
            change(copies[1])
        return pieces

    monkeypatch.setattr("wgcn.scale.corpus.tokenise_shard", tokenise_and_change)
    with pytest.raises(InputError, match=rf"{copies[1]} changed while it was read|no file {copies[1]}"):
        graph_from_files(copies, tmp_path / "g", Resources("4GB"), rules=RULES, edges=EDGES)
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", 2], "give --memory"),
        (["--restart"], "give --memory"),
        (["--memory", "much"], "is no size"),
        (["--memory", "100MB"], "too few"),
        (["--memory", "0"], "too few"),
        (["--memory", "999999999999999TB"], "more than any machine"),
        (["--memory", "2GB", "--weight", "cosine"], "not made out of core"),
    ],
)
def test_options_that_do_not_fit_are_an_error(
    run: Run, files: list[Path], options: list[object], message: str, tmp_path: Path
) -> None:
    code, out, err = run("graph", "build", *files, "-o", tmp_path / "g", *options)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(("work", "output"), [("g", "g"), ("g/between", "g"), ("w", "w/files")])
def test_work_and_result_have_folders_of_their_own(
    run: Run, files: list[Path], work: str, output: str, tmp_path: Path
) -> None:
    given = "--memory", "2GB", "--work", tmp_path / work, "--output", tmp_path / output
    code, out, err = run("graph", "build", *files, *given)
    assert (code, out) == (2, "")
    assert "neither can hold the other" in err
    assert not {tmp_path / "g", tmp_path / "w"} & {*tmp_path.iterdir()}


def test_a_file_that_is_given_twice_is_an_error(run: Run, files: list[Path], tmp_path: Path) -> None:
    link = tmp_path / "link.txt"
    link.symlink_to(files[0])
    for again in (files[0], link):
        code, _, err = run("graph", "build", *files, again, "--memory", "2GB", "-o", tmp_path / "g")
        assert code == 2
        assert f"{again} is given twice" in " ".join(err.split())


def test_pipes_and_links_to_themselves_are_one_error(run: Run, files: list[Path], tmp_path: Path) -> None:
    pipe, loop = tmp_path / "pipe.txt", tmp_path / "loop"
    os.mkfifo(pipe)  # which nobody writes to
    loop.symlink_to(loop)
    for options, message in (((pipe,), "read twice"), (("--work", loop), "cannot be written")):
        code, _, err = run("graph", "build", *files, *options, "--memory", "2GB", "-o", tmp_path / "g")
        assert code == 2
        assert message in err


def test_a_corpus_for_measurements_depends_on_its_seed_alone(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "N_TYPES", 2_000)
    monkeypatch.setattr(scale, "TOPIC_TYPES", 100)
    assert scale.shard_bytes(1, 5_000) == files[1].read_bytes() != files[0].read_bytes()
    lengths = np.array([len(line.split()) for line in files[0].read_text().splitlines()])
    assert (lengths >= scale.LENGTHS[0]).all()
    assert (lengths <= scale.LENGTHS[1]).all()


def test_counting_is_measured_at_a_small_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "run_cell", lambda label, function, **given: function(**given))
    monkeypatch.setattr(scale, "N_TYPES", 2_000)
    monkeypatch.setattr(scale, "TOPIC_TYPES", 100)
    section = scale.measure_counting((10_000, 30_000), str(tmp_path), "4GB")
    assert [cell["size"] for cell in section.cells] == [10_000, 30_000]
    assert section.cells[1]["tokens"] > section.cells[0]["tokens"]
    assert all(cell["peak_mb"] > 0 and cell["disk_mb"] > 0 for cell in section.cells)
    assert len(section.targets) == 2
    assert not list(tmp_path.iterdir())


def test_resources_need_memory() -> None:
    assert Resources.of(None, None, scheduler=None, work=None, restart=False) is None
    with pytest.raises(InputError, match="give --memory"):
        Resources.of(None, None, scheduler="local", work=None, restart=False)
