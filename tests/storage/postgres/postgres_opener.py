"""A child process that opens the workspaces named on standard input and prints the outcomes."""

from __future__ import annotations

import asyncio
import sys

import msgspec

from dittybag.domain.errors import StorageError
from dittybag.domain.ports import Transaction
from dittybag.domain.queries import ChangeQuery
from dittybag.storage.postgres.postgres_store import PostgresStore
from tests.storage.postgres.task_workload import create_task


async def attempt(url: str) -> dict[str, object]:
    """Open and write to a workspace. Returns the number of created projects, or the error."""

    async def count(transaction: Transaction) -> int:
        return len(await transaction.changes.page(ChangeQuery(kind="project")))

    try:
        store = await PostgresStore.open(url)
        try:
            await create_task(store, "opened")
            return {"projects": await store.read(count)}
        finally:
            await store.close()
    except StorageError as error:
        return {"error": type(error).__name__, "message": str(error)}


def print_json(value: object) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    print_json("ready")
    for line in sys.stdin:
        print_json(asyncio.run(attempt(line.strip())))
