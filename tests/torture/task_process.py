"""Child processes that work on tasks: `python -m tests.torture.task_process ROLE LOCATION NAME`.

Each prints a line of JSON for everything that was acknowledged. It can be killed at any moment.
"""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from dittybag.assembly.store_factory import open_store
from dittybag.domain.errors import ClaimLost, DittybagError
from dittybag.services.caller import Caller
from dittybag.services.task_queue import ClaimRequest
from dittybag.services.workspace import Workspace
from tests.forked_processes import ForkedProcess

#: In seconds, the shortest.
LEASE: Final = 1
REQUEST: Final = ClaimRequest(lease_seconds=LEASE)


def agent(name: str) -> Caller:
    return Caller(1, name, interface="mcp")


class TaskProcess:
    """A child process, as its parent sees it."""

    def __init__(self, role: str, location: str, name: str) -> None:
        self.name = name
        pipe = subprocess.PIPE
        module = "tests.torture.task_process"
        self._process = ForkedProcess(module, role, location, name, stdin=pipe, stdout=pipe, bufsize=0)
        assert self._process.stdout is not None
        self.output = self._process.stdout.fileno()
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def send(self, value: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(value) + b"\n")

    def read(self, seconds: float = 30.0) -> Any:
        """Read the next line. Fails after `seconds`."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._unread:
            left = max(deadline - time.monotonic(), 0)
            assert select.select([self.output], [], [], left)[0], f"no line within {seconds} s"
            chunk = os.read(self.output, 1 << 16)
            assert chunk, f"the process ended with status {self._process.wait()}"
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return msgspec.json.decode(line)

    def read_available(self) -> list[Any]:
        """Read the lines that are there."""
        lines = []
        while b"\n" in self._unread or select.select([self.output], [], [], 0)[0]:
            lines.append(self.read())
        return lines

    def kill(self) -> list[Any]:
        """Kill the process. Returns the lines that it had printed."""
        self._process.kill()
        while chunk := os.read(self.output, 1 << 16):
            self._unread += chunk
        self._process.communicate()
        *lines, _ = self._unread.split(b"\n")
        return [msgspec.json.decode(line) for line in lines]


def _print(value: Any) -> None:
    os.write(1, msgspec.json.encode(value) + b"\n")


async def _read_line() -> bytes:
    return await asyncio.to_thread(sys.stdin.buffer.readline)


async def race(workspace: Workspace, name: str) -> None:
    """For every line, let claimers race for a task: the best one, or the one with the given number."""
    _print("ready")
    while line := await _read_line():
        count, number = msgspec.json.decode(line)
        claims: list[Awaitable[Any]] = [
            workspace.task_queue.claim_next(agent(f"{name}-{each}"), REQUEST)
            if number is None
            else workspace.task_queue.claim(agent(f"{name}-{each}"), number, REQUEST)
            for each in range(count)
        ]
        found = await asyncio.gather(*claims, return_exceptions=True)
        for error in found:
            if isinstance(error, BaseException) and not isinstance(error, DittybagError):
                raise error
        won = [item for item in found if item is not None and not isinstance(item, BaseException)]
        _print([(item.task.id, item.claim.fence, item.claim.holder) for item in won])


async def hold(workspace: Workspace, name: str) -> None:
    """Claim a task and write to it again and again."""
    caller = agent(name)
    claimed = await workspace.task_waiting.claim_next(caller, REQUEST, 60)
    assert claimed is not None
    task, fence = claimed.task.id, claimed.claim.fence
    _print([task, fence, -1])
    number = 0
    # It lapses if the processor is busy for longer than the lease.
    with suppress(ClaimLost):
        while True:
            await workspace.tasks.update(caller, task, fence=fence, notes=f"{name} {number}")
            _print([task, fence, number])
            number += 1
    await asyncio.Event().wait()


async def wait(workspace: Workspace, name: str) -> None:
    """Wait for tasks, and finish each."""
    caller = agent(name)
    _print("ready")
    while True:
        claimed = await workspace.task_waiting.claim_next(caller, REQUEST, 60)
        if claimed is not None:
            at = time.time()
            # It lapses if the processor is busy for longer than the lease.
            try:
                await workspace.task_queue.finish(caller, claimed.task.id, fence=claimed.claim.fence)
            except ClaimLost:
                continue
            _print([claimed.task.id, at])


async def write(workspace: Workspace, name: str) -> None:
    """Create pairs of tasks and finish the first of each, on which the second waits."""
    caller = Caller(1, name)
    _print("ready")
    while True:
        first = await workspace.tasks.create(caller, title=f"{name} first", status="review")
        second = await workspace.tasks.create(caller, title=f"{name} second", blocked_by=(first.id,))
        await workspace.tasks.complete(caller, first.id)
        _print([second.id, time.time()])
        await _read_line()


ROLES: Final[dict[str, Callable[[Workspace, str], Awaitable[None]]]] = {
    "race": race,
    "hold": hold,
    "wait": wait,
    "write": write,
}


async def main(role: str, location: str, name: str) -> None:
    await ROLES[role](Workspace(await open_store(location)), name)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
