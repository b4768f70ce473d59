"""A child process that creates tasks without a pause, after it has read a line."""

from __future__ import annotations

import asyncio
import sys

from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.storage.sqlite.scripted_process import reply


async def create_tasks(path: str, actor: str, count: int) -> None:
    workspace = Workspace(SqliteStore(path))
    caller = Caller((await workspace.projects.find("default")).id, actor)
    # Opens the connection that writes.
    await workspace.tasks.create(caller, title="first")
    reply("ready")
    sys.stdin.readline()
    for number in range(count):
        await workspace.tasks.create(caller, title=f"t{number}")
    await workspace.store.close()
    reply("done")


if __name__ == "__main__":
    asyncio.run(create_tasks(sys.argv[1], sys.argv[2], int(sys.argv[3])))
