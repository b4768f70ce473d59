"""Rate limits of tokens, which each server process counts on its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from dittybag.config import settings
from dittybag.domain.rate_limits import RateLimit
from tests.accounts.accounts_world import World, auth_headers
from tests.accounts.test_metrics_and_logs import read_metrics
from tests.contracts.http_server_process import BOTH, JSON, HttpServerProcess, ReceivedResponse, send_request

PING = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "ping"})


def new_token(world: World) -> str:
    return world.run(world.workspace.accounts.create_token("alice", "write", actor="tests")).text


def ping(host: HttpServerProcess, token: str) -> ReceivedResponse:
    return host.ask("POST", "/mcp", PING, {"Content-Type": JSON, "Accept": BOTH, **auth_headers(token)})


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


def test_requests_beyond_the_limit_are_refused_and_counted(world: World) -> None:
    host = world.host("all", "--rate-limit", "2/h", "--rate-limit-burst", "6")
    token = new_token(world)
    responses = [ping(host, token) for _ in range(10)]
    assert [response.status for response in responses] == [200] * 6 + [429] * 4
    refused = responses[-1]
    assert refused.json()["error"]["message"] == (
        "Too many requests: the limit is 2 per hour, with bursts of 6"
    )
    seconds = int(refused.headers["retry-after"])
    assert 1700 <= seconds <= 3600
    assert refused.headers["ratelimit-policy"] == '"token";q=2;w=3600'
    assert refused.headers["ratelimit"] == f'"token";r=0;t={seconds}'
    assert ping(host, new_token(world)).status == 200
    assert read_metrics(world, host)["dittybag_rate_limited_total"] >= 4


def test_without_a_limit_no_request_is_refused(world: World) -> None:
    host, token = world.host("all", "--rate-limit", "off"), new_token(world)
    headers = {"Content-Type": JSON, "Accept": BOTH, **auth_headers(token)}
    connection = host.connect()
    statuses = {send_request(connection, "POST", "/mcp", PING, headers).status for _ in range(300)}
    connection.close()
    assert statuses == {200}


def test_a_burst_of_concurrent_requests_is_admitted(world: World) -> None:
    host = world.host("all", "--rate-limit", "1/m", "--rate-limit-burst", "24")
    token = new_token(world)
    with ThreadPoolExecutor(12) as pool:
        statuses = list(pool.map(lambda _: ping(host, token).status, range(30)))
    assert statuses.count(200) == 24
