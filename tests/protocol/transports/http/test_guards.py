"""Who may be spoken to: the matrix of Host, Origin and Content-Type, on the endpoint and on every route."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.protocol.transports.http.client import BOTH, JSON, Client, Pairs, request
from tests.protocol.transports.http.runner import Running

PING = request("ping", id="p")

#: Host headers, and whether the server is known under that name.
HOSTS: list[tuple[list[str | bytes], bool]] = [
    (["127.0.0.1"], True),
    (["127.0.0.1:80"], True),
    (["localhost"], True),
    (["LocalHost:1"], True),
    (["[::1]"], True),
    (["[::1]:8765"], True),
    ([" localhost "], True),
    (["evil.example"], False),
    (["evil.example:80"], False),
    (["localhost.evil.example"], False),
    (["evil.example:localhost"], False),
    (["localhost@evil.example"], False),
    (["evil.example@localhost"], False),
    (["localhost."], False),
    (["localhost:"], False),
    (["localhost:80:80"], False),
    (["127.0.0.1.nip.example"], False),
    (["0.0.0.0"], False),
    (["127.1"], False),
    (["2130706433"], False),
    (["::1"], False),
    (["[::1"], False),
    (["localhost, evil.example"], False),
    (["localhost/"], False),
    (["http://localhost"], False),
    ([""], False),
    ([b"loc\xe4lhost"], False),
    ([], False),
    (["localhost", "evil.example"], False),
    (["evil.example", "localhost"], False),
]

#: Origin headers, and whether a page there may call.
ORIGINS: list[tuple[list[str | bytes], bool]] = [
    ([], True),
    (["http://127.0.0.1"], True),
    (["http://localhost:5173"], True),
    (["https://LOCALHOST"], True),
    (["http://[::1]:80"], True),
    (["https://pages.example.org"], True),
    (["https://evil.example"], False),
    (["http://pages.example.org"], False),
    (["https://pages.example.org:444"], False),
    (["https://pages.example.org.evil.example"], False),
    (["http://localhost.evil.example"], False),
    (["http://evil.example@localhost"], False),
    (["http://localhost@evil.example"], False),
    (["http://localhost/"], False),
    (["http://localhost#evil.example"], False),
    (["file://localhost"], False),
    (["chrome-extension://localhost"], False),
    (["localhost"], False),
    (["null"], False),
    ([""], False),
    ([b"http://localh\xf6st"], False),
    (["http://localhost", "https://evil.example"], False),
    (["https://evil.example", "http://localhost"], False),
]

#: Content types, and whether a body of that type is read. A page may send some without asking anybody.
TYPES: list[tuple[list[str | bytes], bool]] = [
    (["application/json"], True),
    (["application/json; charset=utf-8"], True),
    (["Application/JSON ;x=y"], True),
    ([], False),
    ([""], False),
    (["text/plain"], False),
    (["text/plain; application/json"], False),
    (["text/plain, application/json"], False),
    (["application/x-www-form-urlencoded"], False),
    (["multipart/form-data; boundary=application/json"], False),
    (["application/json-rpc"], False),
    (["application/jsonx"], False),
    (["application"], False),
]


def named(name: str, values: list[str | bytes]) -> Pairs:
    return [(name, value) for value in values]


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(("hosts", "known"), HOSTS, ids=str)
def test_only_requests_to_our_own_names_are_taken(
    client: Client, hosts: list[str | bytes], known: bool, method: str
) -> None:
    # Without a Host header the client would add one.
    headers = (JSON, BOTH, *(named("Host", hosts) if hosts else [("Host", "")]))
    status = client.send(method, headers, b'{"jsonrpc":"2.0","id":1,"method":"ping"}').status
    expected = {"POST": 200, "GET": 405, "DELETE": 405, "OPTIONS": 405}[method]
    assert status == (expected if known else 421)


def test_the_whole_table_of_host_origin_and_type(client: Client) -> None:
    wrong = []
    for hosts, known in HOSTS[::4]:
        for origins, may in ORIGINS:
            for types, is_json in TYPES[::3]:
                headers = [*named("Host", hosts), *named("Origin", origins), *named("Content-Type", types)]
                if not hosts:
                    headers.append(("Host", ""))
                reply = client.post(PING, headers)
                expected = 421 if not known else 403 if not may else 415 if not is_json else 200
                if reply.status != expected or "Access-Control-Allow-Origin" in reply.headers:
                    wrong.append((headers, reply.status, expected))
                reply.close()
    assert wrong == []


@pytest.mark.parametrize(("origins", "may"), ORIGINS, ids=str)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS"])
def test_only_pages_of_our_own_may_call(
    client: Client, origins: list[str | bytes], may: bool, method: str
) -> None:
    headers = (JSON, BOTH, *named("Origin", origins))
    status = client.send(method, headers, b'{"jsonrpc":"2.0","id":1,"method":"ping"}').status
    assert status == ({"POST": 200}.get(method, 405) if may else 403)


@pytest.mark.parametrize(("types", "is_json"), TYPES, ids=str)
def test_only_bodies_of_json_are_read(client: Client, types: list[str | bytes], is_json: bool) -> None:
    reply = client.post(PING, named("Content-Type", types))
    assert reply.status == (200 if is_json else 415)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running.product(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.mark.parametrize("path", ["/", "/mcp", "/healthz", "/readyz", "/metrics", "/nothing", "//", "/%6dcp"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "OPTIONS"])
def test_every_route_of_the_product_is_guarded(product: Running, path: str, method: str) -> None:
    with Client(product.port) as client:
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        assert client.send(method, (JSON, ("Host", "evil.example")), body, path).status == 421
        assert client.send(method, (JSON, ("Origin", "https://evil.example")), body, path).status == 403
        assert client.send(method, (JSON, ("Origin", "null")), body, path).status == 403


def test_the_product_answers_its_own_names(product: Running, tmp_path: Path) -> None:
    with Client(product.port) as client:
        assert client.send("GET", path="/healthz").status == 200
        assert client.post(PING, (JSON, ("Origin", f"http://localhost:{product.port}"))).status == 200
        # Not an endpoint that is reached by a simple request of a page.
        assert client.send("POST", (("Content-Type", "text/plain"),), b"{}", "/").status in (400, 415)
