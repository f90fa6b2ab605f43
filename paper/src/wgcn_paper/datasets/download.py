"""Download files over HTTP with pooch: retried, checked against pinned digests, and put in place only when whole."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from wgcn.base.errors import InputError

Report = Callable[[str, int, int | None], None]  # name of the file, bytes received, bytes in total or None

RETRIES = 2  # after the first attempt
TIMEOUT = 30.0  # seconds without a byte


def download(base: str, digests: Mapping[str, str | None], folder: Path, report: Report | None = None) -> None:
    """Download files under the URL `base` into a folder, each under its own name.

    `digests` has for each name the SHA-256 that the file must have, or None if it is not pinned. Of a file that cannot
    be downloaded or is another, nothing is left in the folder.
    """
    import pooch
    from requests import RequestException

    pooch.get_logger().setLevel(logging.WARNING)  # the command line shows progress itself
    files = pooch.create(folder, f"{base}/", registry=dict(digests), retry_if_failed=RETRIES)
    for name in digests:
        progress = None if report is None else _Progress(name.rpartition("/")[2], report)
        try:
            files.fetch(name, downloader=pooch.HTTPDownloader(progressbar=progress or False, timeout=TIMEOUT))
        except RequestException as error:
            reason = _reason(error)
        except ValueError:
            reason = f"its SHA-256 is not {digests[name]}, so it is damaged or has changed at its source"
        else:
            continue
        raise InputError(
            f"{base}/{name} cannot be downloaded: {reason}. Check the network connection and try again, or use a copy "
            "on this machine: --from PATH"
        )


def _reason(error: OSError) -> str:
    """Return in a few words why a request failed."""
    from requests import exceptions

    if isinstance(error, exceptions.HTTPError) and error.response is not None:
        return f"the server answers {error.response.status_code} {error.response.reason}"
    if isinstance(error, exceptions.Timeout):
        return f"the server does not answer within {TIMEOUT:.0f} seconds"
    if isinstance(error, exceptions.ConnectionError):
        return "there is no connection to the server"
    if isinstance(error, exceptions.ChunkedEncodingError):
        return "the connection ended before all of the file arrived"
    return f"{error}".partition("\n")[0][:200] or type(error).__name__


class _Progress:
    """A progress bar as pooch calls it: `update` adds bytes, and at the end `reset` and `update` set the total."""

    def __init__(self, name: str, report: Report) -> None:
        self.name, self.report = name, report
        self.done, self.total = 0, 0

    def update(self, n: int) -> None:
        # pooch adds whole chunks, also for the last one.
        self.done = min(self.done + n, self.total) if self.total else self.done + n
        self.report(self.name, self.done, self.total or None)

    def reset(self) -> None:
        if self.total:
            self.done = 0

    def close(self) -> None:
        pass
