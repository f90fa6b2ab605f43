"""Peak memory of a process."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_memory() -> int | None:
    """Return the peak memory of this process so far, in bytes; None where the system does not report it (Windows).

    On Linux, it is the peak since the last "5" was written to /proc/self/clear_refs.
    """
    with suppress(OSError, StopIteration):
        lines = _STATUS.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
