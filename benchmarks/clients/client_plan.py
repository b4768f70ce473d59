"""What the Python client programs share: the requests on standard input, the responses, and the load."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

Call = Callable[[list[Any]], Awaitable[str]]


def requests() -> Iterator[dict[str, Any]]:
    """Yield the requests of the benchmark, one line each."""
    for line in sys.stdin:
        yield json.loads(line)


def reply(response: dict[str, Any]) -> None:
    print(json.dumps(response), flush=True)


class Stopwatch:
    """The seconds and the CPU seconds of a load."""

    def __init__(self) -> None:
        self.started, self._cpu = time.perf_counter(), time.process_time()

    def result(self, latencies: list[float]) -> dict[str, Any]:
        """Return what the benchmark expects of a load."""
        seconds, cpu = time.perf_counter() - self.started, time.process_time() - self._cpu
        latencies.sort()
        median, p99 = (latencies[int(share * (len(latencies) - 1))] for share in (0.5, 0.99))
        return {
            "calls": len(latencies),
            "seconds": seconds,
            "client_cpu": cpu,
            "median": median,
            "p99": p99,
        }


class Calls:
    """The calls of a plan, in turn: arguments, expected text, and a note that gives a call its length."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._next = itertools.cycle(plan["calls"]).__next__

    async def run(self, load: dict[str, Any], call: Call) -> dict[str, Any]:
        """Make as many calls at a time as the load says, and check the text of each result."""
        latencies: list[float] = []
        now, watch = time.perf_counter, Stopwatch()
        end, most = watch.started + load["seconds"], load.get("most", sys.maxsize)

        async def work() -> None:
            nonlocal most
            while (sent := now()) < end and most:
                most -= 1
                planned = self._next()
                text = await call(planned)
                latencies.append(now() - sent)
                assert planned[1] in text, (planned, text[:500])

        await asyncio.gather(*(work() for _ in range(load["at_a_time"])))
        return watch.result(latencies)
