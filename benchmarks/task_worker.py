"""A worker of `bench_tasks`: it takes ready tasks and does nothing for as long as each takes.

`python -m benchmarks.task_worker LOCATION NAME`. It begins when it reads a line, prints the number of every
task with the times at which it began and finished it, and ends after some time without a ready task.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Final

from dittybag.assembly.store_factory import open_store
from dittybag.services.caller import Caller
from dittybag.services.task_queue import ClaimRequest
from dittybag.services.workspace import Workspace

#: In seconds: longer than any task takes.
IDLE: Final = 3


async def main(location: str, name: str) -> None:
    workspace = Workspace(await open_store(location))
    caller = Caller(1, name, interface="mcp")
    # The first read opens the file.
    await workspace.task_queue.is_any_ready(caller, ClaimRequest())
    print("ready", flush=True)
    sys.stdin.readline()
    while claimed := await workspace.task_waiting.claim_next(caller, ClaimRequest(), IDLE):
        start = time.time()
        await asyncio.sleep(float(claimed.task.notes or 0))
        # Before others can see that it is done.
        end = time.time()
        await workspace.task_queue.finish(caller, claimed.task.id, fence=claimed.claim.fence)
        print(claimed.task.id, start, end, flush=True)
    await workspace.store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
