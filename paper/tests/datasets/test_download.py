"""Downloads from a site on this machine: what arrives, what is tried again, and what a failure leaves behind."""

import hashlib
from pathlib import Path

import pytest

from wgcn.base.errors import InputError
from wgcn_paper.datasets.download import download

DATA = bytes(range(256)) * 1000
DIGEST = hashlib.sha256(DATA).hexdigest()


def left(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_files_are_downloaded_under_their_names_with_progress(site, tmp_path, capfd):
    site.files |= {"/base/a/f": DATA, "/base/g": b"short"}
    seen = []
    download(f"{site.url}/base", {"a/f": DIGEST, "g": None}, tmp_path / "new", lambda *each: seen.append(each))
    assert (tmp_path / "new/a/f").read_bytes() == DATA
    assert left(tmp_path / "new") == ["a/f", "g"]
    assert {each[2] for each in seen} == {len(DATA), 5}
    assert ("f", len(DATA), len(DATA)) in seen
    assert seen[-1] == ("g", 5, 5)
    assert all(done <= total for _, done, total in seen)
    assert capfd.readouterr() == ("", "")


def test_progress_without_a_length_counts_the_bytes(site, tmp_path):
    site.files["/f"], site.length = DATA, False
    seen = []
    download(site.url, {"f": DIGEST}, tmp_path, lambda *each: seen.append(each))
    assert (tmp_path / "f").read_bytes() == DATA
    assert {each[2] for each in seen} == {None}
    assert seen[-1][1] >= len(DATA)


def test_a_connection_that_is_cut_and_a_server_that_is_busy_are_tried_again(site, tmp_path):
    site.files["/f"], site.cuts = DATA, [1000]
    download(site.url, {"f": DIGEST}, tmp_path)
    site.files["/g"], site.statuses = DATA, [503]
    download(site.url, {"g": None}, tmp_path)
    assert site.requests == ["/f"] * 2 + ["/g"] * 2
    assert left(tmp_path) == ["f", "g"]


@pytest.mark.parametrize(
    ("misbehaviour", "reason"),
    [
        ({}, "the server answers 404 Not Found"),
        ({"statuses": [500, 500]}, "the server answers 500 Internal Server Error"),
        ({"files": {"/f": DATA + b"!"}}, f"its SHA-256 is not {DIGEST}"),
        ({"files": {"/f": DATA}, "cuts": [1000, 1000]}, "the connection ended before"),
    ],
)
def test_a_failed_download_is_one_message_and_leaves_nothing(site, tmp_path, misbehaviour, reason):
    for name, value in misbehaviour.items():
        setattr(site, name, value)
    with pytest.raises(InputError, match=rf"{site.url}/f cannot be downloaded: .*{reason}.*--from PATH"):
        download(site.url, {"f": DIGEST}, tmp_path)
    assert len(site.requests) == 2
    assert left(tmp_path) == []


def test_another_file_with_the_wrong_digest_does_not_replace_the_one_that_is_there(site, tmp_path):
    site.files["/f"] = b"other"
    (tmp_path / "f").write_bytes(DATA)
    download(site.url, {"f": DIGEST}, tmp_path)
    assert site.requests == []
    with pytest.raises(InputError, match="SHA-256"):
        download(site.url, {"f": hashlib.sha256(b"new").hexdigest()}, tmp_path)
    assert (tmp_path / "f").read_bytes() == DATA


@pytest.mark.parametrize("base", ["http://127.0.0.1:1", "file:///etc", "nowhere", ""])
def test_an_address_without_a_server_is_one_message(site, tmp_path, base):
    with pytest.raises(InputError, match=r"cannot be downloaded: .* Check the network connection"):
        download(base, {"hostname": None}, tmp_path)
    assert left(tmp_path) == []
