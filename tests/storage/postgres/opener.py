"""Opens a workspace when it is told to, writes to it, and says what it found."""

from __future__ import annotations

import asyncio
import sys

import msgspec

from dittybag.domain.errors import StorageError
from dittybag.domain.ports import Transaction
from dittybag.storage.postgres.store import PostgresStore
from tests.storage.postgres.deeds import do


async def attempt(url: str) -> dict[str, object]:
    """How many changes there were, or which error it was."""

    async def count(transaction: Transaction) -> int:
        return len(await transaction.changes.since(0, 1000, kind="project"))

    try:
        store = await PostgresStore.open(url)
        try:
            await do(store, "opened")
            return {"projects": await store.read(count)}
        finally:
            await store.close()
    except StorageError as error:
        return {"error": type(error).__name__, "message": str(error)}


def say(value: object) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    say("ready")
    for line in sys.stdin:
        say(asyncio.run(attempt(line.strip())))
