"""More requests at once than a server has connections to the database: they wait for their turn."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.fleet.callers import STATELESS, Caller
from tests.fleet.fleet import Fleet

CLIENTS = 30
EACH = 4


def test_a_crowd_at_one_server_is_served_one_after_the_other(fleet: Fleet, tokens: list[str]) -> None:
    (member, *_) = fleet.members

    def search(number: int) -> Counter[Any]:
        caller = Caller(tokens[number % len(tokens)], STATELESS)
        call = {"name": "search", "arguments": {"query": "crowd"}}
        return Counter(caller.ask(member, "tools/call", call).status for _ in range(EACH))

    with ThreadPoolExecutor(CLIENTS) as pool:
        seen = sum(pool.map(search, range(CLIENTS)), Counter[Any]())
    assert seen == {200: CLIENTS * EACH}
