"""Inserts rows into PostgreSQL with asyncpg, one statement for each, which commits itself."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

import asyncpg
from client_plan import Stopwatch, reply, requests


class Inserts:
    """The connections and prepared statements of a plan. They stay open between loads."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._plan = plan
        self._drafts = itertools.cycle(plan["drafts"])
        self._numbers = itertools.count()
        self._connections: list[Any] = []
        self._prepared: list[Any] = []

    async def run(self, load: dict[str, Any]) -> dict[str, Any]:
        while len(self._connections) < load["at_a_time"]:
            self._connections.append(await asyncpg.connect(self._plan["url"]))
            self._prepared.append(await self._connections[-1].prepare(self._plan["statement"]))
        latencies: list[float] = []
        now, watch = time.perf_counter, Stopwatch()
        end = watch.started + load["seconds"]

        async def work(statement: Any) -> None:
            while (sent := now()) < end:
                number, (title, content, tags) = next(self._numbers), next(self._drafts)
                key = f"{self._plan['prefix']} {number}"
                await statement.fetchval(key, f"{key}: {title}", content, tags)
                latencies.append(now() - sent)

        await asyncio.gather(*map(work, self._prepared[: load["at_a_time"]]))
        return watch.result(latencies)


async def main() -> None:
    inserts: Inserts | None = None
    for request in requests():
        if request["do"] == "open":
            inserts = Inserts(request)
            reply({"initialize": 0.0, "tools": 0.0})
        elif request["do"] == "load":
            assert inserts is not None
            reply(await inserts.run(request))
        else:
            reply({})


if __name__ == "__main__":
    asyncio.run(main())
