"""Opens stores: for each line with the name of a file, whether that worked, or which error it gave."""

from __future__ import annotations

import asyncio
import sys

from dittybag.domain.errors import StorageError
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.domain.tasks import Task
from dittybag.storage.sqlite.store import SqliteStore
from tests.storage.sqlite.children import reply


async def attempt(path: str) -> dict[str, str]:
    """What comes of opening a file, reading from it and writing to it."""
    outcomes: dict[str, str] = {}

    async def look(transaction: Transaction) -> None:
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
            await store.read(look)
            outcomes[step] = "ok"
            step = "write"
            await store.write(add, actor="child")
            outcomes[step] = "ok"
        finally:
            await store.close()
    except StorageError as error:
        outcomes[step] = type(error).__name__
    return outcomes


if __name__ == "__main__":
    reply("ready")
    for line in sys.stdin:
        reply(asyncio.run(attempt(line.rstrip("\n"))))
