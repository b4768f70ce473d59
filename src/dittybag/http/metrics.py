"""Server metrics in the Prometheus text format."""

from __future__ import annotations

import os
import socket
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Final

from dittybag import __version__
from dittybag.contracts.skill_extension import SKILL_METHODS
from dittybag.protocol.method_handlers import HANDLERS

#: Upper bounds of the histogram buckets, in seconds.
_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Counts and times requests."""

    def __init__(self, backend: str = "") -> None:
        """`backend`: the kind of database, reported in `dittybag_info` with the version and the process."""
        self._info = {
            "version": __version__,
            "server": f"{socket.gethostname()}:{os.getpid()}",
            "backend": backend,
        }
        self._requests: dict[tuple[str, str], int] = {}
        self._histograms: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self._rate_limited = 0

    def observe(self, method: str, outcome: str, seconds: float) -> None:
        """Count a request. Unknown methods count as `other`, to bound the number of series."""
        if method not in HANDLERS and method not in SKILL_METHODS:
            method = "other"
        key = (method, outcome)
        self._requests[key] = self._requests.get(key, 0) + 1
        self._seconds[method] = self._seconds.get(method, 0.0) + seconds
        counts = self._histograms.get(method)
        if counts is None:
            counts = self._histograms[method] = [0] * (len(_BUCKETS) + 1)
        counts[bisect_left(_BUCKETS, seconds)] += 1

    def count_rate_limited(self) -> None:
        """Count a request that was refused because of the rate limit."""
        self._rate_limited += 1

    def text(self, gauges: Mapping[str, tuple[str, Mapping[str, int]]]) -> str:
        """All metrics as text. `gauges`: by name, with a description and a value for each label."""
        info = ",".join(label(name, value) for name, value in self._info.items())
        lines = [
            "# HELP dittybag_info Information about the server process.",
            "# TYPE dittybag_info gauge",
            f"dittybag_info{{{info}}} 1",
            "# HELP dittybag_requests_total Requests by method and outcome.",
            "# TYPE dittybag_requests_total counter",
            *(
                f'dittybag_requests_total{{method="{method}",outcome="{outcome}"}} {count}'
                for (method, outcome), count in sorted(self._requests.items())
            ),
            "# HELP dittybag_rate_limited_total Requests refused because of the rate limit.",
            "# TYPE dittybag_rate_limited_total counter",
            f"dittybag_rate_limited_total {self._rate_limited}",
            "# HELP dittybag_request_seconds Duration of requests in seconds.",
            "# TYPE dittybag_request_seconds histogram",
        ]
        for method, counts in sorted(self._histograms.items()):
            lines += self._histogram(method, counts)
        for name, (description, values) in gauges.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {name} {description}", f"# TYPE {name} {kind}"]
            lines += (
                f"{name}{{{label}}} {value}" if label else f"{name} {value}"
                for label, value in values.items()
            )
        return "\n".join([*lines, ""])

    def _histogram(self, method: str, counts: list[int]) -> Iterable[str]:
        total = 0
        for bound, count in zip((*map(str, _BUCKETS), "+Inf"), counts, strict=True):
            total += count
            yield f'dittybag_request_seconds_bucket{{method="{method}",le="{bound}"}} {total}'
        yield f'dittybag_request_seconds_sum{{method="{method}"}} {self._seconds[method]:.6f}'
        yield f'dittybag_request_seconds_count{{method="{method}"}} {total}'


def label(name: str, value: str) -> str:
    """Return a label with its value escaped."""
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'{name}="{escaped}"'
