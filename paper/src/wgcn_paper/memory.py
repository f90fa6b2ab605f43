"""Peak memory of a process."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path


def peak_memory(status: Path = Path("/proc/self/status")) -> int | None:
    """Return the peak memory of this process so far, in bytes; None where the system does not report it (Windows).

    On Linux, it is the peak since the last "5" was written to /proc/self/clear_refs.
    """
    with suppress(OSError, StopIteration):
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
