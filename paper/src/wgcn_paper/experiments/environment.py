"""What a run depends on besides its cell: commit, package versions, machine and threads."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from contextlib import suppress
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from wgcn import __version__
from wgcn.base.threads import available_cores

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch")
ROOT = Path(__file__).parents[4]  # of a checkout
_CODE = ("src", "paper/src")
# Set before numpy is loaded, they bound the threads of compiled loops and of linear algebra.
_THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


def environment(root: Path = ROOT) -> dict[str, str]:
    """Return commit, versions, machine and threads, and nothing that identifies the machine.

    "commit" is that of the checkout, followed by "+changes" where its code has uncommitted ones; the environment
    variable WGCN_COMMIT names it for a copy without a repository. "off_lock" names the packages whose version is not
    that of the lock file. Either is left out where it cannot be known.
    """
    # The GPU and torch's threads are known only once torch has been loaded, so this is not cached.
    found = {"wgcn": __version__, "python": platform.python_version(), "machine": _machine(), **_versions()}
    found["threads"] = str(_threads())
    commit, differing = _commit(root), off_lock(found, root)
    if commit:
        found["commit"] = commit
    if differing is not None:
        found["off_lock"] = differing
    return found


def off_lock(versions: dict[str, str], root: Path = ROOT) -> str | None:
    """Return the packages whose version is not that of the lock file, with their versions; None without the file."""
    locked = _locked(root)
    if not locked:
        return None
    # "2.13.0+cpu" is a build of 2.13.0.
    names = [name for name in _PACKAGES if name in versions and versions[name].partition("+")[0] != locked.get(name)]
    return ", ".join(f"{name} {versions[name]}" for name in names)


@lru_cache(maxsize=1)
def _locked(root: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in ("requirements.lock", "requirements-torch.lock"):
        with suppress(OSError):
            lines = (root / name).read_text(encoding="utf-8").splitlines()
            found |= dict(line.rstrip(" \\").split("==", 1) for line in lines if re.match(r"[\w.-]+==", line))
    return found


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


@lru_cache(maxsize=1)
def _commit(root: Path) -> str:
    given = os.environ.get("WGCN_COMMIT", "")
    if given or not (root / ".git").exists():
        return given
    with suppress(OSError, subprocess.CalledProcessError):
        head = _git(root, "rev-parse", "--short=12", "HEAD").strip()
        return f"{head}+changes" if _git(root, "status", "--porcelain", "--", *_CODE) else head
    return ""


def _git(root: Path, *arguments: str) -> str:
    run = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return run.stdout


def _threads() -> int:
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.get_num_threads())
    given = [os.environ[name] for name in _THREADS if os.environ.get(name, "").isdecimal()]
    return min([available_cores(), *map(int, given)])


def _machine() -> str:
    """Return processor and GPU."""
    name = platform.machine()
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    parts = [f"{available_cores()}\u00d7 {name}"]
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        parts.append(f"1\u00d7 {torch.cuda.get_device_name()}")
    return ", ".join(parts)
