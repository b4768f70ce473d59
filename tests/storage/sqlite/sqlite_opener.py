"""A child process that opens the files named on standard input and prints the outcomes."""

from __future__ import annotations

import asyncio
import sys

from dittybag.domain.errors import StorageError
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.domain.tasks import Task
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.storage.sqlite.scripted_process import reply

#: After a path: leave the file open.
KEEP_OPEN = " --keep"


async def attempt(path: str, *, keep_open: bool = False) -> dict[str, str]:
    """Open, read and write a file. Returns the outcome of each step."""
    outcomes: dict[str, str] = {}

    async def read(transaction: Transaction) -> None:
        assert await transaction.projects.by_name(DEFAULT_PROJECT) is not None

    async def add(transaction: Transaction) -> None:
        now = transaction.now
        task = Task(id=0, user="u", title="t", created_at=now, updated_at=now)
        await transaction.write("create", None, task)

    step = "open"
    try:
        store = SqliteStore(path)
        try:
            outcomes[step] = "ok"
            step = "read"
            await store.read(read)
            outcomes[step] = "ok"
            step = "write"
            await store.write(add, actor="child")
            outcomes[step] = "ok"
        finally:
            if not keep_open:
                await store.close()
    except StorageError as error:
        outcomes[step] = type(error).__name__
    return outcomes


if __name__ == "__main__":
    reply("ready")
    for line in sys.stdin:
        path = line.rstrip("\n")
        reply(asyncio.run(attempt(path.removesuffix(KEEP_OPEN), keep_open=path.endswith(KEEP_OPEN))))
