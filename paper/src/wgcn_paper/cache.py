"""The user's cache folder, and small JSON files in it with a checksum: a damaged file is noticed and made again."""

import gzip
import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from wgcn.base.errors import InputError
from wgcn.base.files import write_file


def cache_folder() -> Path:
    """Return the folder for cached data: ``WGCN_CACHE`` if set, else ``wgcn`` in the user's; it need not exist."""
    own = os.environ.get("WGCN_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "wgcn"


def read_cached(file_name: str) -> Any:
    """Return what :func:`write_cached` stored under a name, or None if it is missing or damaged."""
    try:
        stored = json.loads(gzip.decompress((cache_folder() / file_name).read_bytes()))
        payload = stored["payload"]
        return payload if hashlib.sha256(_encode(payload)).hexdigest() == stored["sha256"] else None
    except Exception:  # There is no end of ways to damage a file, and one answer to all of them.
        return None


def write_cached(file_name: str, payload: Any) -> None:
    """Store JSON data under a name, whole or not at all; do nothing if the cache folder cannot be written."""
    checksum = hashlib.sha256(_encode(payload)).hexdigest()
    data = gzip.compress(_encode({"payload": payload, "sha256": checksum}), mtime=0)
    with suppress(InputError, RuntimeError):  # RuntimeError: the user has no home folder.
        write_file(cache_folder() / file_name, lambda file: file.write(data))


def _encode(payload: Any) -> bytes:
    return json.dumps(payload, sort_keys=True, separators=(",", ":")).encode()
