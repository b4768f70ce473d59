"""More concurrent requests than a server has database connections: they are queued."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.fleet.fleet_clients import STATELESS, FleetClient
from tests.fleet.server_fleet import Fleet

CLIENTS = 30
EACH = 4


def test_concurrent_requests_wait_for_a_database_connection(fleet: Fleet, tokens: list[str]) -> None:
    (server, *_) = fleet.servers

    def search(number: int) -> Counter[Any]:
        client = FleetClient(tokens[number % len(tokens)], STATELESS)
        params = {"name": "search", "arguments": {"query": "queued"}}
        return Counter(client.request(server, "tools/call", params).status for _ in range(EACH))

    with ThreadPoolExecutor(CLIENTS) as pool:
        statuses = sum(pool.map(search, range(CLIENTS)), Counter[Any]())
    assert statuses == {200: CLIENTS * EACH}
