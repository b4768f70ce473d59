"""A request that is cancelled while it waits for SQLite changes nothing for the requests after it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import apsw
import msgspec
import pytest

from tests.storage.cancelled_requests import fill, probe, reads, writes
from tests.storage.cancelling_clients import TRANSPORTS, CancellingClient, ask, call


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "workspace.db"


@pytest.fixture(params=TRANSPORTS)
async def client(request: pytest.FixtureRequest, database: Path) -> AsyncIterator[CancellingClient]:
    async with TRANSPORTS[request.param]("--db", str(database)) as client:
        yield client


async def test_a_cancelled_write_that_waits_for_the_lock_is_not_made_and_the_next_one_is(
    client: CancellingClient, database: Path
) -> None:
    prompt_id = await fill(client)
    expected = await probe(client, prompt_id)
    before = await newest_change(client)
    other_process = apsw.Connection(str(database))
    other_process.execute("BEGIN IMMEDIATE")
    for new_request in writes(count(1)):
        method, params = new_request()
        assert await client.cancel(client.send(method, **params))
        assert await probe(client, prompt_id) == expected
    other_process.execute("ROLLBACK")
    other_process.close()
    await call(client, "task_create", title="after all of them")
    assert await probe(client, prompt_id) == expected
    assert await newest_change(client) == before + 1


async def test_a_cancelled_read_changes_nothing_for_the_next(client: CancellingClient) -> None:
    prompt_id = await fill(client)
    expected = await probe(client, prompt_id)
    for method, params in reads(prompt_id):
        # It may be complete already.
        await client.cancel(client.send(method, **params))
        assert await probe(client, prompt_id) == expected
        await ask(client, method, **params)


async def newest_change(client: CancellingClient) -> int:
    """Return the number of the last change."""
    changes = msgspec.json.decode(await call(client, "list_changes", limit=1))["changes"]
    number: int = changes[0]["change"]
    return number
