"""What the tests of the data sets share: a site on this machine, small sets, and pickles as Python 2 wrote them."""

import hashlib
import inspect
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from wgcn_paper.datasets import CitationSet, Dataset, TextSet, download, layout, registry


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, and no other data folder."""
    monkeypatch.setenv("WGCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("WGCN_DATA", raising=False)
    monkeypatch.delenv("WGCN_MIRROR", raising=False)
    return tmp_path / "cache"


# A site


@dataclass
class Site:
    """Files on a web server, and how it misbehaves."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)  # answers to the first requests
    cuts: list[int] = field(default_factory=list)  # bytes before the connection is cut, for the first files
    length: bool = True  # whether the server sends the length of a file
    requests: list[str] = field(default_factory=list)


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append(self.path)
            status = site.statuses.pop(0) if site.statuses else 200 if self.path in site.files else 404
            body = site.files[self.path] if status == 200 else b""
            self.send_response(status)
            if site.length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: site.cuts.pop(0) if body and site.cuts else None])

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site on this machine; a download is tried twice, without a pause."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(download, "RETRIES", 1)
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    site = Site()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(site)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        site.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield site
        server.shutdown()
        thread.join()


# Pickles as Python 2 wrote them


def _name(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _string(data: bytes) -> bytes:
    return b"T" + struct.pack("<i", len(data)) + data


def _integer(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def _tuple(*items: bytes) -> bytes:
    return b"(" + b"".join(items) + b"t"


def _array(values: Any) -> bytes:
    values = np.asarray(values)
    dtype = _name("numpy", "dtype") + _tuple(_string(values.dtype.str[1:].encode()), _integer(0), _integer(1)) + b"R"
    dtype += _tuple(_integer(3), _string(b"<"), b"N", b"N", b"N", _integer(-1), _integer(-1), _integer(0)) + b"b"
    made = _name("numpy.core.multiarray", "_reconstruct")
    made += _tuple(_name("numpy", "ndarray"), _tuple(_integer(0)), _string(b"b")) + b"R"
    shape = _tuple(*map(_integer, values.shape))
    return made + _tuple(_integer(1), shape, dtype, b"\x89", _string(values.tobytes())) + b"b"


def _csr(rows: Any) -> bytes:
    matrix = csr_array(np.asarray(rows, np.float32))
    state = {
        b"_shape": _tuple(*map(_integer, matrix.shape)),
        b"format": _string(b"csr"),
        b"data": _array(matrix.data),
        b"indices": _array(matrix.indices.astype(np.int32)),
        b"indptr": _array(matrix.indptr.astype(np.int32)),
    }
    items = b"".join(_string(key) + value for key, value in state.items())
    return _name("scipy.sparse.csr", "csr_matrix") + b")\x81}(" + items + b"ub"


def _lists(links: dict[int, list[int]]) -> bytes:
    items = b"".join(_integer(i) + b"](" + b"".join(map(_integer, near)) + b"e" for i, near in links.items())
    return _name("collections", "defaultdict") + _tuple(_name("__builtin__", "list")) + b"R(" + items + b"u"


def _whole(code: bytes) -> bytes:
    return b"\x80\x02" + code + b"."


@pytest.fixture
def py2() -> SimpleNamespace:
    """What writes pickles as Python 2 did."""
    return SimpleNamespace(
        name=_name, string=_string, integer=_integer, tuple=_tuple, array=_array, csr=_csr, lists=_lists, whole=_whole
    )


ONE_HOT = np.eye(2, dtype=np.int32)


@pytest.fixture(scope="session")
def planetoid_files() -> dict[str, bytes]:
    """Four known documents, of which one is for training and one for validation, two test documents, one filler."""
    known = [[1, 0, 0], [0, 2, 0], [0, 0, 3], [1, 1, 0]]
    return {
        "x": _whole(_csr(known[:1])),
        "y": _whole(_array(ONE_HOT[[0]])),
        "tx": _whole(_csr([[0, 4, 0], [5, 0, 0]])),
        "ty": _whole(_array(ONE_HOT[[1, 0]])),
        "allx": _whole(_csr(known)),
        "ally": _whole(_array(ONE_HOT[[0, 1, 0, 1]])),
        "graph": _whole(_lists({0: [1, 1, 6], 1: [0], 2: [2], 6: [0]})),
        "test.index": b"6\n4\n",
    }


@pytest.fixture
def citation_set() -> Dataset:
    """What the planetoid files give."""
    features = [[1, 0, 0], [0, 2, 0], [0, 0, 3], [1, 1, 0], [5, 0, 0], [0, 0, 0], [0, 4, 0]]
    graph = np.zeros((7, 7))
    graph[[0, 1, 0, 6, 2], [1, 0, 6, 0, 2]] = 1
    return Dataset(
        "cora",
        None,
        csr_array(np.array(features, np.float32)),
        np.array([0, 1, 0, 1, 0, -1, 1]),
        np.array([0]),
        np.array([4, 6]),
        csr_array(graph.astype(np.float32)),
        None,
        np.array([1]),
    )


# Small sets

LISTING = "a/1\t20news-test\tdog\na/2\ttraining\tcat\na/3\ttrain\tdog"
CORPUS = "It barks.\nIt  purrs,\tcaf\u00e9.\nIt howls."
WORDS = "the\nof\nit\n"


@pytest.fixture
def text_set() -> Dataset:
    """What the list and the texts of the small repository give."""
    texts = ("It  purrs, caf\u00e9.", "It howls.", "It barks.")
    return Dataset("r8", texts, None, np.array(["cat", "dog", "dog"]), np.array([0, 1]), np.array([2]))


@pytest.fixture
def small(
    monkeypatch: pytest.MonkeyPatch,
    cache: Path,
    text_set: Dataset,
    citation_set: Dataset,
    planetoid_files: dict[str, bytes],
) -> SimpleNamespace:
    """A world in which r8, cora and the stop words are small: the files of their repositories, and of our layout."""
    digests = {end: hashlib.sha256(data).hexdigest() for end, data in planetoid_files.items()}
    known = {
        "r8": TextSet("r8", "R8", 2, 1, 2, 5, 2.0, layout.text_digest(text_set.labels, text_set.texts)),
        "cora": CitationSet("cora", 7, 3, 3, 3, 2, 1, 1, 2, layout.citation_digest(citation_set), digests),
    }
    monkeypatch.setattr(registry, "DATASETS", known)
    monkeypatch.setattr(layout, "STOP_WORDS_DIGEST", layout.words_digest(WORDS.split()))
    return SimpleNamespace(
        text_gcn={"data/R8.txt": LISTING.encode(), "data/corpus/R8.txt": CORPUS.encode("latin-1")},
        planetoid={f"data/ind.cora.{end}": data for end, data in planetoid_files.items()},
        words=WORDS,
        data=cache / "data",
    )


@pytest.fixture
def layout_folder(tmp_path: Path, text_set: Dataset, citation_set: Dataset) -> Path:
    """The small sets in our layout."""
    folder = tmp_path / "layout"
    for path in (folder / "text/r8", folder / "citation/cora"):
        path.mkdir(parents=True)
    layout.write_text_set(folder / "text/r8", text_set)
    layout.write_citation_set(folder / "citation/cora", citation_set)
    layout.write_stop_words(folder / "stopwords_english.txt", WORDS.split())
    return folder


_DOCSTRING = """
    Do it.

    Parameters
    ----------
    x : array_like
        The input.

    See Also
    --------
    short
    spaced : With a description, which names other.
    tight: With a description.
    first, second,  third
    :func:`role`, :class:`~scipy.stats.deep`
    `ticks` : More,
        on the next line : still more.
    ~numpy.linalg.tilde

    A sentence that names nothing.

    Notes
    -----
    unseen : Not a citation.
"""


@pytest.fixture
def docstring() -> str:
    """A docstring whose "See Also" section has entries of every form."""
    return inspect.cleandoc(_DOCSTRING)
