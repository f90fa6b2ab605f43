"""The data commands as a user runs them."""

import gzip
import threading
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from wgcn.cli import console
from wgcn_paper.cli import data
from wgcn_paper.datasets import DATASETS, download, layout, registry, sources

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, and no other data folder."""
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("WGCN_DATA", raising=False)
    monkeypatch.delenv("WGCN_MIRROR", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with two small sets, which are the only ones, and a list of stop words."""
    folder = tmp_path / "copy"
    (folder / "data/corpus").mkdir(parents=True)
    for source in ("R8", "mr"):
        (folder / f"data/{source}.txt").write_text("0\ttrain\tcat\n1\ttest\tdog\n")
        (folder / f"data/corpus/{source}.txt").write_text("It purrs.\nIt barks.\n")
    (folder / "stopwords_english.txt").write_text("it\n")
    digest = layout.text_digest(["cat", "dog"], ["It purrs.", "It barks."])
    known = {
        name: registry.TextSet(name, source, 1, 1, 2, 3, 2.0, digest) for name, source in (("r8", "R8"), ("mr", "mr"))
    }
    monkeypatch.setattr(registry, "DATASETS", known)
    monkeypatch.setattr(layout, "STOP_WORDS_DIGEST", layout.words_digest(["it"]))
    return folder


def rows(out: str) -> dict[str, list[str]]:
    return {line.split("\t")[0]: line.split("\t")[1:] for line in out.splitlines()}


def test_list_of_an_empty_machine_says_how_to_get_data(run: Run, cache: Path) -> None:
    code, out, err = run("data", "list")
    assert code == 0
    found = rows(out)
    assert list(found) == [*DATASETS, "docs", "stopwords"]
    assert found["r8"] == ["text", "7674", "8", "5485/2189", "not here"]
    assert found["citeseer"] == ["citation", "3327", "6", "120/500/1000", "not here"]
    assert found["docs"][-1] == "made from the installed packages"
    assert len(err.splitlines()) == 1
    assert "wgcn-paper data prepare NAME" in err
    assert "WGCN_DATA" in err
    assert not cache.exists()


def test_prepare_and_list(run: Run, cache: Path, copy: Path) -> None:
    assert run("data", "prepare", "r8", "--from", copy) == (0, "", "'r8' is ready.\n")
    assert run("data", "prepare", "all", "--from", copy) == (
        0,
        "",
        "'r8' was there already.\n'mr' is ready.\n'stopwords' is ready.\n",
    )
    code, out, err = run("data", "list")
    assert (code, err) == (0, "")
    assert rows(out)["r8"][-1] == str(cache / "data/text/r8")
    assert rows(out)["stopwords"][-1] == str(cache / "data/stopwords_english.txt")
    assert gzip.decompress((cache / "data/text/r8/test.tsv.gz").read_bytes()) == b"dog\tIt barks.\n"


def test_list_finds_the_own_folder_first(run: Run, cache: Path, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("data", "prepare", "r8", "--from", copy)
    (cache / "data").rename(copy.parent / "mine")
    monkeypatch.setenv("WGCN_DATA", str(copy.parent / "mine"))
    assert rows(run("data", "list")[1])["r8"][-1] == str(copy.parent / "mine/text/r8")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize("terminal", [False, True])
def test_prepare_downloads(
    run: Run, cache: Path, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    site = tmp_path / "site" / sources.TEXT_GCN
    site.parent.mkdir(parents=True)
    copy.rename(site)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(console, "_err", lambda: Console(stderr=True, force_terminal=terminal, soft_wrap=True))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "site"))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("WGCN_MIRROR", f"http://127.0.0.1:{server.server_address[1]}")
        code, out, err = run("data", "prepare", "r8")
        server.shutdown()
        thread.join()
    assert (code, out) == (0, "")
    assert "is ready." in err
    assert sorted(path.name for path in cache.rglob("*")) == ["data", "r8", "test.tsv.gz", "text", "train.tsv.gz"]


def test_no_network_is_one_message_that_says_what_to_do(run: Run, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WGCN_MIRROR", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(download, "RETRIES", 0)
    for name in ("r8", "cora", "stopwords", "all"):
        code, out, err = run("data", "prepare", name)
        assert (code, out) == (2, "")
        assert len(err.splitlines()) == 1
        assert "Check the network connection" in err
        assert "--from PATH" in err
    assert [path for path in cache.rglob("*") if not path.is_dir()] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["r9"], "There is no data set 'r9'. The sets are 20ng, r8"),
        (["docs"], "nothing to prepare"),
        (["r8", "--from", "nowhere"], "There is no folder or archive nowhere"),
        (["r8", "--from", __file__], "cannot be read as a .zip or .tar.gz archive"),
        (["cora", "--from", str(Path(__file__).parent)], "does not have 'cora'"),
    ],
)
def test_errors_are_one_message(run: Run, cache: Path, arguments: list[str], message: str) -> None:
    code, out, err = run("data", "prepare", *arguments)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert message in err


def test_prepare_needs_a_name(run: Run, cache: Path) -> None:
    assert run("data", "prepare")[0] == 2


def test_help_says_what_the_commands_do(run: Run) -> None:
    code, out, _ = run("data", "--help")
    assert code == 0
    assert "list" in out
    assert "prepare" in out


def test_on_a_terminal_there_is_a_table(run: Run, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "out", Console(force_terminal=True, color_system=None, width=120))
    code, out, _ = run("data", "list")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["name", "kind", "documents", "classes", "split", "where"]
    assert lines[1].split()[:4] == ["20ng", "text", "18846", "20"]


def test_github_is_where_the_sets_come_from() -> None:
    assert sources.GITHUB == "https://raw.githubusercontent.com"
