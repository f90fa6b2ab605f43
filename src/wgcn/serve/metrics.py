"""Counts of what a server does, in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.types import Scope

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds

Sample = tuple[str, Mapping[str, str], float]  # a suffix of the name, labels, and the value


class Metrics:
    """Requests by endpoint and status, their times, and the texts that were answered."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.texts: Counter[str] = Counter()  # by model
        self._counts: dict[str, list[int]] = {}  # of each bucket, by endpoint
        self._seconds: Counter[str] = Counter()

    def observe(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request: `observe` of a `Guard`."""
        endpoint = getattr(scope.get("endpoint"), "__name__", "none")
        self.requests[endpoint, status] += 1
        if endpoint not in self._counts:
            self._counts[endpoint] = [0] * (len(BUCKETS) + 1)
        self._counts[endpoint][bisect_left(BUCKETS, seconds)] += 1
        self._seconds[endpoint] += seconds  # type: ignore[assignment]

    def lines(self) -> Iterable[str]:
        """Return the lines of what was counted here."""
        pairs = sorted(self.requests.items())
        yield from family(
            "wgcn_requests_total",
            "counter",
            "Requests by endpoint and HTTP status.",
            [("", {"endpoint": name, "status": str(status)}, n) for (name, status), n in pairs],
        )
        failed = sum(n for (_, status), n in pairs if status >= 500 and status != 503)
        yield from family(
            "wgcn_errors_total", "counter", "Requests that failed through no fault of the caller.", failed
        )
        yield from family(
            "wgcn_texts_total",
            "counter",
            "Texts that were answered.",
            [("", {"model": model}, n) for model, n in sorted(self.texts.items())],
        )
        yield from family("wgcn_request_seconds", "histogram", "Time from the headers to the answer.", self._times())

    def _times(self) -> Iterable[Sample]:
        for endpoint, counts in sorted(self._counts.items()):
            below = 0
            for limit, n in zip([*map(str, BUCKETS), "+Inf"], counts, strict=True):
                below += n
                yield "_bucket", {"endpoint": endpoint, "le": limit}, below
            yield "_sum", {"endpoint": endpoint}, round(self._seconds[endpoint], 6)
            yield "_count", {"endpoint": endpoint}, below


def family(name: str, kind: str, text: str, samples: float | Iterable[Sample]) -> Iterable[str]:
    """Return the lines of a metric: one value, or samples with labels."""
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for suffix, labels, value in [("", {}, samples)] if isinstance(samples, int | float) else samples:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"{name}{suffix}{{{inside}}} {value}" if inside else f"{name}{suffix} {value}"


def _escaped(value: Any) -> str:
    return str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
