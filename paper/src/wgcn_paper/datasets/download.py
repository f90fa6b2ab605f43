"""Fetch a file over HTTP: streamed, resumed where a connection was cut, checked, and put in place only when whole."""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wgcn import __version__
from wgcn.cache import file_digest
from wgcn.errors import InputError

__all__ = ["Progress", "fetch"]

Progress = Callable[[int, int | None], None]

MAX_BYTES = 2**28
ATTEMPTS = 4  # the first and three more
PAUSE = 1.0  # seconds before the second attempt; longer before each further one
TIMEOUT = 30.0  # seconds without a byte
_CHUNK = 2**16
_STRONG_ETAG = re.compile(r'"[\x21\x23-\x7e]{1,200}"')
_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,18})-\d{1,18}|\*)/(\d{1,18}|\*)")


def fetch(
    url: str,
    path: Path,
    sha256: str | None = None,
    progress: Progress | None = None,
    *,
    max_bytes: int = MAX_BYTES,
) -> None:
    """Fetch a file, whole or not at all.

    The bytes go to ``<path>.part``, which takes the place of `path` when all of them are there and right. A
    connection that is cut is taken up where it ended, three times; if that does not help, ``<path>.part`` stays, and
    the next call goes on from it. Where neither `sha256` nor an ETag of the server (kept in ``<path>.part.etag``)
    would tell the end of one version from the beginning of another, the file is fetched from the start instead.

    Parameters
    ----------
    url : str
        An address with http or https. It may lead to another one, but not from https to http.
    path : Path
        Where the file is to be. Its folder is made if need be.
    sha256 : str, optional
        What the file must have.
    progress : callable, optional
        Called with the number of bytes that are here and with their total, or None if the server does not say.
    max_bytes : int
        The most bytes that are taken.

    Raises
    ------
    InputError
        If the file cannot be fetched, is too large, or does not have the SHA-256.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise InputError(f"{url} is not an address with http or https.")
    part, etag = path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.etag")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _fetch_part(url, part, etag, sha256 is not None, progress or _ignore, max_bytes)
        if sha256 is not None and (found := file_digest(part)) != sha256:
            _remove(part, etag)
            raise InputError(
                f"{url} gave a file with the SHA-256 {found}; expected {sha256}. It was thrown away. Try again; if "
                "that does not help, the file has changed at its source."
            )
        part.replace(path)
        etag.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error


class _Cut(Exception):  # noqa: N818 it never leaves this module
    """The connection ended too early, or the server is out of order for now."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request: Any, file: Any, code: int, message: str, headers: Any, url: str) -> Any:
        allowed = ("https",) if request.type == "https" else ("http", "https")
        if urlsplit(url).scheme not in allowed:
            file.close()
            raise InputError(f"{request.full_url} leads to {url:.200}, which is not an address with {allowed[-1]}.")
        return super().redirect_request(request, file, code, message, headers, url)


def _ignore(done: int, total: int | None) -> None:
    pass


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _fetch_part(url: str, part: Path, etag: Path, pinned: bool, progress: Progress, max_bytes: int) -> None:
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE * attempt)
        if not pinned and not _recall(etag):
            part.unlink(missing_ok=True)
        try:
            _request(url, part, etag, progress, max_bytes)
        except _Cut as error:
            cause = error
        else:
            return
    if not pinned and not _recall(etag):
        part.unlink(missing_ok=True)
    held = part.stat().st_size if part.is_file() else 0
    resume = f" {held:,} bytes are here; the next attempt goes on from there." if held else ""
    raise InputError(
        f"{url} cannot be fetched: {cause} ({ATTEMPTS} attempts). Check the connection and try again.{resume}"
    )


def _request(url: str, part: Path, etag: Path, progress: Progress, max_bytes: int) -> None:
    """Fetch what is missing of a file, or all of it if the server gives no parts."""
    held = part.stat().st_size if part.is_file() else 0
    headers = {"User-Agent": f"wgcn/{__version__}", "Accept-Encoding": "identity"}
    if held:
        headers["Range"] = f"bytes={held}-"
        if known := _recall(etag):
            headers["If-Range"] = known
    try:
        response = _open(url, headers)
    except urllib.error.HTTPError as error:
        with error:
            _explain(url, error, part, etag, held)
        return
    with response:
        extent = _extent(response, held)
        if extent is None:
            _remove(part, etag)
            raise _Cut("the server gave another part of the file than was asked for")
        start, total = extent
        _check_size(url, total, max_bytes, part, etag)
        if not start:
            _remember(etag, response.headers.get("ETag"))
        with part.open("r+b" if start else "wb") as file:
            file.seek(start)
            done = start
            progress(done, total)
            while chunk := _read(response):
                done += len(chunk)
                _check_size(url, done, max_bytes, part, etag)
                file.write(chunk)
                progress(done, total)
    if total is not None and done < total:
        raise _Cut(f"the connection ended after {done:,} of {total:,} bytes")


def _open(url: str, headers: dict[str, str]) -> Any:
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 its scheme was checked
    try:
        return opener.open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise _Cut(f"{getattr(error, 'reason', None) or error or type(error).__name__}") from error


def _read(response: Any) -> bytes:
    try:
        return bytes(response.read(_CHUNK))
    except (OSError, http.client.HTTPException) as error:
        raise _Cut(f"the connection was cut ({error or type(error).__name__})") from error


def _extent(response: Any, held: int) -> tuple[int, int | None] | None:
    """Return where the bytes of an answer begin in the file and how many the file has, or None if they do not fit."""
    length = response.headers.get("Content-Length", "")
    total = int(length) if re.fullmatch(r"\d{1,18}", length) else None
    if response.status != 206:
        return 0, total
    found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if not held or not found or found[1] is None or int(found[1]) != held:
        return None
    return held, None if found[2] == "*" else int(found[2])


def _check_size(url: str, size: int | None, max_bytes: int, part: Path, etag: Path) -> None:
    if size is not None and size > max_bytes:
        _remove(part, etag)
        raise InputError(f"{url} has {size:,} bytes or more; at most {max_bytes:,} are taken.")


def _remember(etag: Path, given: str | None) -> None:
    """Keep what names the version of a file. A weak ETag does not promise the same bytes."""
    if given and _STRONG_ETAG.fullmatch(given):
        etag.write_text(given, encoding="ascii")
    else:
        etag.unlink(missing_ok=True)


def _recall(etag: Path) -> str | None:
    known = etag.read_bytes()[:300].decode("ascii", "replace") if etag.is_file() else ""
    return known if _STRONG_ETAG.fullmatch(known) else None


def _explain(url: str, error: urllib.error.HTTPError, part: Path, etag: Path, held: int) -> None:
    """Say what a refusal of the server means. Return if the part is the whole file already."""
    if error.code == 416 and held:
        found = _CONTENT_RANGE.fullmatch(error.headers.get("Content-Range", ""))
        if found and found[2] == str(held):
            return
        _remove(part, etag)
        raise _Cut("the part that is here does not fit the file") from error
    reason = f"the server answers {error.code} {error.reason}"
    if error.code >= 500 or error.code in (408, 429):
        raise _Cut(reason) from error
    raise InputError(f"{url} cannot be fetched: {reason}.") from error
