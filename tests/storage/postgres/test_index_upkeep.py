"""New entries are merged into the indexes of texts between writes, so that no write has to merge many."""

from __future__ import annotations

import asyncio

import pytest

from dittybag.storage.postgres import index_upkeep
from dittybag.storage.sql.entity_rows import quoted
from tests.postgres_servers import PostgresServer
from tests.storage.postgres.conftest import OpenStore
from tests.storage_contract.store_session import open_session

INDEXES = ("prompts_words", "prompts_trigrams", "prompts_by_tag")


@pytest.mark.parametrize("limits", [(0.01, 1000), (3600.0, 3)], ids=["after a pause", "after many changes"])
async def test_new_entries_are_merged_between_writes(
    shared_postgres_with_trigrams: PostgresServer,
    schema: str,
    open_store: OpenStore,
    monkeypatch: pytest.MonkeyPatch,
    limits: tuple[float, int],
) -> None:
    server = shared_postgres_with_trigrams
    server.sql("CREATE EXTENSION IF NOT EXISTS pgstattuple")

    def waiting() -> int:
        lists = " + ".join(
            f"(SELECT pending_tuples FROM pgstatginindex('{quoted(schema)}.{name}'))" for name in INDEXES
        )
        return int(server.sql(f"SELECT {lists}")[0])

    for name, value in zip(("PAUSE_SECONDS", "MERGED_CHANGES"), limits, strict=True):
        monkeypatch.setattr(index_upkeep, name, value)
    session = await open_session(await open_store(server.url(schema=schema)))
    for name in ("first", "second", "third"):
        await session.prompt(name, f"The {name} text", tags=["tag"])
    async with asyncio.timeout(20):
        # Only the server knows.
        while waiting():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
