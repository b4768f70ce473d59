"""A request that is cancelled while it waits for PostgreSQL changes nothing for the requests after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from copy import copy
from functools import partial
from itertools import count

import pytest

from tests.postgres_servers import PostgresServer
from tests.storage.cancelled_requests import Request, fill, probe, reads, writes
from tests.storage.cancelling_clients import SECONDS, TRANSPORTS, CancellingClient, CancellingHttpClient, ask
from tests.storage.postgres.faulty_proxy import FaultyProxy, run_proxy

#: More responses than any request waits for.
MOST_RESPONSES = 40
#: How often the response that is held may be one to the server's upkeep instead of one to the request.
MOST_ATTEMPTS = 5


@pytest.fixture
async def proxy(server: PostgresServer) -> AsyncIterator[FaultyProxy]:
    async with run_proxy(server.port) as proxy:
        yield proxy


@pytest.fixture(params=TRANSPORTS)
async def client(
    request: pytest.FixtureRequest, proxy: FaultyProxy, server: PostgresServer, schema: str
) -> AsyncIterator[CancellingClient]:
    url = server.url(schema=schema).replace(f":{server.port}/", f":{proxy.port}/")
    async with TRANSPORTS[request.param]("--db", url) as client:
        yield client


async def cancel_while_waiting(
    client: CancellingClient, proxy: FaultyProxy, number: int, request: Request, prompt_id: str
) -> bool:
    """Cancel a request while it waits for this response. Returns False if there is no such response."""
    for _ in range(MOST_ATTEMPTS):
        proxy.hold(number)
        sent = client.send(request[0], **request[1])
        held = asyncio.create_task(proxy.holding.wait())
        await asyncio.wait((held, sent.response), timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if sent.response.done():
            held.cancel()
            proxy.release()
            assert "result" in sent.response.result(), (request, sent.response.result())
            return False
        assert proxy.holding.is_set(), request
        is_cancelled = await client.cancel(sent)
        # Others need not wait until the response arrives.
        await probe(client, prompt_id)
        proxy.release()
        if is_cancelled:
            return True
    raise AssertionError(f"a cancelled request is answered: {request}")


@pytest.mark.parametrize("kind", ["reads", "writes"])
async def test_a_request_cancelled_at_any_await_changes_nothing_for_the_next(
    client: CancellingClient, proxy: FaultyProxy, kind: str
) -> None:
    prompt_id = await fill(client)
    expected = await probe(client, prompt_id)
    requests = (
        writes(count(1)) if kind == "writes" else [partial(copy, request) for request in reads(prompt_id)]
    )
    cancelled = 0
    for new_request in requests:
        for number in range(1, MOST_RESPONSES):
            if not await cancel_while_waiting(client, proxy, number, new_request(), prompt_id):
                break
            cancelled += 1
            assert await probe(client, prompt_id) == expected, new_request()
            method, params = new_request()
            await ask(client, method, **params)
        else:
            raise AssertionError(f"more responses than expected: {new_request()}")
    assert cancelled >= len(requests)
    if isinstance(client, CancellingHttpClient):
        assert (await client.get("/readyz"))[0] == 200
