"""Downloads from a site on this machine: what comes, what is resumed, what is refused, and what is left behind."""

import hashlib
from pathlib import Path

import pytest

from wgcn.errors import InputError
from wgcn_paper.datasets.download import ATTEMPTS, fetch

DATA = bytes(range(256)) * 1000
DIGEST = hashlib.sha256(DATA).hexdigest()
SIZE = len(DATA)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "file.bin"


def left(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir()) if target.parent.exists() else []


def begin(target: Path, data: bytes, etag: str | None = None) -> None:
    """Leave what an earlier download would have left."""
    target.parent.mkdir()
    target.with_name("file.bin.part").write_bytes(data)
    if etag:
        target.with_name("file.bin.part.etag").write_text(etag)


def test_good_download_is_in_place_and_nothing_else(site, target):
    site.files["/f"] = DATA
    seen = []
    fetch(f"{site.url}/f", target, DIGEST, lambda done, total: seen.append((done, total)))
    assert target.read_bytes() == DATA
    assert left(target) == ["file.bin"]
    assert seen[0] == (0, SIZE)
    assert seen[-1] == (SIZE, SIZE)
    assert seen == sorted(seen)


def test_it_needs_no_digest_and_no_length(site, target):
    site.files["/f"], site.length = DATA, False
    fetch(f"{site.url}/f", target)
    assert target.read_bytes() == DATA
    assert left(target) == ["file.bin"]


def test_a_part_is_resumed(site, target):
    site.files["/f"] = DATA
    begin(target, DATA[:100_000])
    seen = []
    fetch(f"{site.url}/f", target, DIGEST, lambda done, total: seen.append((done, total)))
    assert site.requests == [("/f", "bytes=100000-", None)]
    assert seen[0] == (100_000, SIZE)
    assert target.read_bytes() == DATA
    assert left(target) == ["file.bin"]


def test_server_without_parts_gives_all_of_it_again(site, target):
    site.files["/f"], site.ranges = DATA, False
    begin(target, b"x" * 100_000)
    fetch(f"{site.url}/f", target, DIGEST)
    assert target.read_bytes() == DATA
    assert left(target) == ["file.bin"]


def test_an_etag_is_kept_and_asked_for(site, target):
    site.files["/f"], site.etag, site.cut_always = DATA, '"v1"', 10
    with pytest.raises(InputError):
        fetch(f"{site.url}/f", target)
    assert left(target) == ["file.bin.part", "file.bin.part.etag"]
    site.cut_always = None
    fetch(f"{site.url}/f", target)
    assert site.requests[-1] == ("/f", f"bytes={10 * ATTEMPTS}-", '"v1"')
    assert target.read_bytes() == DATA
    assert left(target) == ["file.bin"]


def test_another_version_is_fetched_from_the_start(site, target):
    site.files["/f"], site.etag = DATA, '"v2"'
    begin(target, b"old" * 1000, '"v1"')
    fetch(f"{site.url}/f", target)
    assert site.requests == [("/f", "bytes=3000-", '"v1"')]
    assert target.read_bytes() == DATA


@pytest.mark.parametrize("etag", [None, 'W/"weak"', '"two\nlines"', "\xff"])
def test_without_digest_or_strong_etag_nothing_is_resumed(site, target, etag):
    site.files["/f"] = DATA
    begin(target, b"old" * 1000, etag)
    fetch(f"{site.url}/f", target)
    assert site.requests == [("/f", None, None)]
    assert target.read_bytes() == DATA
    assert left(target) == ["file.bin"]


def test_wrong_digest_leaves_nothing(site, target):
    site.files["/f"], site.etag = DATA + b"!", '"v1"'
    with pytest.raises(InputError, match=f"expected {DIGEST}. It was thrown away"):
        fetch(f"{site.url}/f", target, DIGEST)
    assert left(target) == []


def test_wrong_digest_does_not_touch_what_was_there(site, target):
    site.files["/f"] = b"other"
    target.parent.mkdir()
    target.write_bytes(DATA)
    with pytest.raises(InputError):
        fetch(f"{site.url}/f", target, DIGEST)
    assert target.read_bytes() == DATA
    assert left(target) == ["file.bin"]


def test_part_of_another_file_is_found_out(site, target):
    site.files["/f"] = DATA
    begin(target, b"x" * 100)
    with pytest.raises(InputError, match="SHA-256"):
        fetch(f"{site.url}/f", target, DIGEST)
    assert left(target) == []
    fetch(f"{site.url}/f", target, DIGEST)
    assert target.read_bytes() == DATA


def test_one_cut_is_resumed_in_the_same_call(site, target):
    site.files["/f"], site.cuts = DATA, [70_000]
    fetch(f"{site.url}/f", target, DIGEST)
    assert site.requests == [("/f", None, None), ("/f", "bytes=70000-", None)]
    assert target.read_bytes() == DATA
    assert left(target) == ["file.bin"]


def test_cut_every_time_leaves_a_part_and_the_next_call_goes_on(site, target):
    site.files["/f"], site.cut_always = DATA, 1000
    with pytest.raises(InputError, match=rf"{ATTEMPTS} attempts.*{1000 * ATTEMPTS:,} bytes are here"):
        fetch(f"{site.url}/f", target, DIGEST)
    assert len(site.requests) == ATTEMPTS
    assert left(target) == ["file.bin.part"]
    site.cut_always = None
    fetch(f"{site.url}/f", target, DIGEST)
    assert site.requests[-1] == ("/f", f"bytes={1000 * ATTEMPTS}-", None)
    assert target.read_bytes() == DATA
    assert left(target) == ["file.bin"]


def test_part_that_could_not_be_resumed_is_not_kept(site, target):
    site.files["/f"], site.cut_always = DATA, 1000
    with pytest.raises(InputError, match=r"try again\.$"):
        fetch(f"{site.url}/f", target)
    assert left(target) == []


def test_connection_that_is_cut_before_the_first_byte(site, target):
    site.files["/f"], site.cut_always = DATA, 0
    with pytest.raises(InputError, match="cannot be fetched"):
        fetch(f"{site.url}/f", target, DIGEST)
    assert not target.exists()


def test_part_that_is_whole_already_is_taken(site, target):
    site.files["/f"] = DATA
    begin(target, DATA)
    fetch(f"{site.url}/f", target, DIGEST)
    assert len(site.requests) == 1
    assert target.read_bytes() == DATA
    assert left(target) == ["file.bin"]


def test_part_that_is_too_long_is_thrown_away(site, target):
    site.files["/f"] = DATA
    begin(target, DATA + b"!")
    fetch(f"{site.url}/f", target, DIGEST)
    assert target.read_bytes() == DATA


def test_wrong_part_from_the_server_is_not_used(site, target):
    site.files["/f"], site.shift = DATA, 5
    begin(target, DATA[:100])
    fetch(f"{site.url}/f", target, DIGEST)
    assert [asked for _, asked, _ in site.requests] == ["bytes=100-", None]
    assert target.read_bytes() == DATA


@pytest.mark.parametrize("length", [True, False])
def test_too_large_a_file_is_refused(site, target, length):
    site.files["/f"], site.length = DATA, length
    with pytest.raises(InputError, match="at most 200,000 are taken"):
        fetch(f"{site.url}/f", target, max_bytes=200_000)
    assert left(target) == []


def test_missing_file_is_asked_for_once(site, target):
    with pytest.raises(InputError, match="404 Not Found"):
        fetch(f"{site.url}/f", target)
    assert len(site.requests) == 1
    assert left(target) == []


def test_server_that_is_out_of_order_is_asked_again(site, target):
    site.files["/f"], site.statuses = DATA, [503, 429]
    fetch(f"{site.url}/f", target, DIGEST)
    assert target.read_bytes() == DATA


def test_server_that_stays_out_of_order_is_given_up(site, target):
    site.statuses = [500] * ATTEMPTS
    with pytest.raises(InputError, match="500 Internal Server Error"):
        fetch(f"{site.url}/f", target, DIGEST)
    assert left(target) == []


def test_no_server_at_all(site, target):
    site_url = "http://127.0.0.1:1"
    with pytest.raises(InputError, match="Check the connection"):
        fetch(f"{site_url}/f", target, DIGEST)
    assert left(target) == []


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/f", "data:,x", "/etc/hostname", ""])
def test_only_http(target, url):
    with pytest.raises(InputError, match="not an address with http"):
        fetch(url, target)
    assert left(target) == []


def test_redirects_are_followed(site, target):
    site.files["/f"], site.redirects["/g"] = DATA, "/f"
    begin(target, DATA[:10])
    fetch(f"{site.url}/g", target, DIGEST)
    assert site.requests == [("/g", "bytes=10-", None), ("/f", "bytes=10-", None)]
    assert target.read_bytes() == DATA


@pytest.mark.parametrize("elsewhere", ["file:///etc/hostname", "ftp://127.0.0.1/f", "data:,x", "/f"])
def test_redirects_elsewhere_and_in_circles_are_not_followed(site, target, elsewhere):
    site.redirects["/f"] = elsewhere
    with pytest.raises(InputError):
        fetch(f"{site.url}/f", target)
    assert left(target) == []


def test_a_secure_address_leads_to_no_other_kind(monkeypatch):
    import io
    import urllib.request

    from wgcn_paper.datasets.download import _Redirects

    request = urllib.request.Request("https://a.example/f")
    with pytest.raises(InputError, match="which is not an address with https"):
        _Redirects().redirect_request(request, io.BytesIO(), 302, "", {}, "http://a.example/f")


def test_folder_that_cannot_be_written(site, tmp_path):
    site.files["/f"] = DATA
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be written"):
        fetch(f"{site.url}/f", tmp_path / "file" / "file.bin", DIGEST)
