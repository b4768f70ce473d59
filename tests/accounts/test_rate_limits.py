"""Rate limits of tokens: of one server, and of servers on one PostgreSQL that count together."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from hashlib import sha256

import asyncpg  # type: ignore[import-untyped]  # it has no types
import msgspec
import pytest

from dittybag.config import settings
from dittybag.domain.rate_limits import RateLimit
from tests.accounts.accounts_world import World, auth_headers
from tests.accounts.test_metrics_and_logs import read_metrics
from tests.contracts.http_server_process import BOTH, JSON, HttpServerProcess, ReceivedResponse, send_request
from tests.repetitions import repetitions

PING = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "ping"})
BURST = 20
RATE = 100
LIMITED = ("--rate-limit", f"{RATE}/s", "--rate-limit-burst", str(BURST))


def new_token(world: World) -> str:
    return world.run(world.workspace.accounts.create_token("alice", "write", actor="tests")).text


def ping_until(host: HttpServerProcess, token: str, end: float) -> list[int]:
    """Send requests one after the other until a time. Returns their statuses."""
    headers = {"Content-Type": JSON, "Accept": BOTH, **auth_headers(token)}
    connection = host.connect()
    statuses = []
    while time.monotonic() < end:
        statuses.append(send_request(connection, "POST", "/mcp", PING, headers).status)
    connection.close()
    return statuses


def ping(host: HttpServerProcess, token: str) -> ReceivedResponse:
    return host.ask("POST", "/mcp", PING, {"Content-Type": JSON, "Accept": BOTH, **auth_headers(token)})


def count_admitted(hosts: list[HttpServerProcess], token: str, seconds: float) -> int:
    """Send as many requests as possible to all servers at once. Returns how many were admitted."""
    end = time.monotonic() + seconds
    with ThreadPoolExecutor(len(hosts)) as pool:
        statuses = [
            status for each in pool.map(lambda host: ping_until(host, token, end), hosts) for status in each
        ]
    assert set(statuses) <= {200, 429}
    return statuses.count(200)


@contextmanager
def servers(world: World, count: int, *options: str) -> Iterator[list[HttpServerProcess]]:
    with ExitStack() as stack:
        arguments = ("--db", world.database, "--auth", "tokens", *options)
        env = {"DITTYBAG_HOME": str(world.folder)}
        yield [stack.enter_context(HttpServerProcess(*arguments, env=env)) for _ in range(count)]


# Options


@pytest.mark.parametrize(
    ("variables", "options", "expected"),
    [
        ({}, {}, RateLimit(50, 1, 200)),
        ({"DITTYBAG_RATE_LIMIT": "3000/m"}, {}, RateLimit(3000, 60, 200)),
        ({"DITTYBAG_RATE_LIMIT": "3000/m"}, {"rate_limit": " 10 / H "}, RateLimit(10, 3600, 20)),
        ({"DITTYBAG_RATE_LIMIT_BURST": "7"}, {}, RateLimit(50, 1, 7)),
        ({"DITTYBAG_RATE_LIMIT_BURST": "7"}, {"rate_limit_burst": "8"}, RateLimit(50, 1, 8)),
        ({"DITTYBAG_RATE_LIMIT": "off"}, {}, None),
        ({"DITTYBAG_RATE_LIMIT": "off"}, {"rate_limit": "1000000/s"}, RateLimit(10**6, 1, 4 * 10**6)),
        # Without tokens there is nothing to count.
        ({"DITTYBAG_RATE_LIMIT": "5/s", "DITTYBAG_AUTH": "off"}, {}, None),
    ],
)
def test_the_limit_comes_from_options_or_variables(
    variables: dict[str, str], options: dict[str, str], expected: RateLimit | None
) -> None:
    common = {"DITTYBAG_AUTH": "tokens", "DITTYBAG_HTTP": "127.0.0.1:0"}
    assert settings({**common, **variables}, **options).rate_limit == expected  # type: ignore[arg-type]


# One server


@pytest.mark.parametrize("name", ["world", "rls_world"])
def test_requests_beyond_the_limit_are_refused_and_counted(request: pytest.FixtureRequest, name: str) -> None:
    world: World = request.getfixturevalue(name)
    host = world.host("all", "--rate-limit", "2/h", "--rate-limit-burst", "6")
    token = new_token(world)
    responses = [ping(host, token) for _ in range(10)]
    # One request of each server may be counted later.
    admitted = [response.status for response in responses].count(200)
    assert 6 <= admitted <= 7
    refused = responses[-1]
    assert refused.json()["error"]["message"] == (
        "Too many requests: the limit is 2 per hour, with bursts of 6"
    )
    seconds = int(refused.headers["retry-after"])
    assert 1700 <= seconds <= 3600
    assert refused.headers["ratelimit-policy"] == '"token";q=2;w=3600'
    assert refused.headers["ratelimit"] == f'"token";r=0;t={seconds}'
    assert ping(host, new_token(world)).status == 200
    assert read_metrics(world, host)["dittybag_rate_limited_total"] >= 10 - admitted


def test_without_a_limit_no_request_is_refused(world: World) -> None:
    host, token = world.host("all", "--rate-limit", "off"), new_token(world)
    headers = {"Content-Type": JSON, "Accept": BOTH, **auth_headers(token)}
    connection = host.connect()
    statuses = {send_request(connection, "POST", "/mcp", PING, headers).status for _ in range(300)}
    connection.close()
    assert statuses == {200}


# Several servers


def test_servers_on_one_database_allow_the_rate_together(rls_world: World) -> None:
    seconds = repetitions(6, 60) / 10
    token = new_token(rls_world)
    with servers(rls_world, 3, *LIMITED) as hosts:
        admitted = count_admitted(hosts, token, seconds)
        assert admitted == pytest.approx(BURST + RATE * seconds, rel=0.2)
        # What a killed server has leased is refilled. The others use the whole rate.
        hosts[0].process.kill()
        admitted = count_admitted(hosts[1:], token, seconds)
        assert admitted == pytest.approx(RATE * seconds, rel=0.2)


def test_a_burst_of_concurrent_requests_is_admitted_on_one_server(rls_world: World) -> None:
    host = rls_world.host("all", "--rate-limit", "1/m", "--rate-limit-burst", "24")
    token = new_token(rls_world)
    with ThreadPoolExecutor(12) as pool:
        statuses = list(pool.map(lambda _: ping(host, token).status, range(30)))
    assert 24 <= statuses.count(200) <= 25


def test_a_server_counts_alone_while_the_database_does_not_answer(rls_world: World) -> None:
    token = new_token(rls_world)
    with servers(rls_world, 1, *LIMITED) as hosts:
        lock = rls_world.run(asyncpg.connect(rls_world.database))
        try:
            rls_world.run(lock.execute("BEGIN; LOCK TABLE request_buckets"))
            admitted = count_admitted(hosts, token, 1.3)
            assert hosts[0].stderr.wait_for("this server counts alone")
            # The first request beyond the lease waits for the database.
            assert BURST <= admitted <= 1.2 * (BURST + 1.3 * RATE)
        finally:
            rls_world.run(lock.close())
        deadline = time.monotonic() + 5
        while not _is_counted(rls_world, token):
            count_admitted(hosts, token, 0.1)
            assert time.monotonic() < deadline, "the server still counts alone"


def _is_counted(world: World, token: str) -> bool:
    """Whether the database has a bucket of this token."""

    async def find() -> bool:
        connection = await asyncpg.connect(world.database)
        try:
            key = sha256(token.encode()).digest()[:16]
            found = await connection.fetchval("SELECT true FROM request_buckets WHERE token = $1", key)
            return found is not None
        finally:
            await connection.close()

    return world.run(find())
