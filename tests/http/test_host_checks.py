"""Checks of `Host`, `Origin` and `Content-Type` on the endpoint and on every route."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.plain_http_client import BOTH, JSON, Pairs, PlainHttpClient, request
from tests.http.spawned_server import SpawnedServer

PING = request("ping", id="p")

#: Host headers, and whether they are allowed.
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

#: Origin headers, and whether they are allowed.
ORIGINS: list[tuple[list[str | bytes], bool]] = [
    ([], True),
    (["http://127.0.0.1"], True),
    (["http://localhost:5173"], True),
    (["HTTP://LOCALHOST"], True),
    (["https://localhost"], False),
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

#: Content types, and whether they are accepted. A web page may send some of them without a CORS preflight.
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


def header_pairs(name: str, values: list[str | bytes]) -> Pairs:
    return [(name, value) for value in values]


#: The status of a request whose header is not allowed, by header.
REFUSED = {"Host": 421, "Origin": 403, "Content-Type": 415}
CASES = [
    *(("Host", values, is_allowed) for values, is_allowed in HOSTS),
    *(("Origin", values, is_allowed) for values, is_allowed in ORIGINS),
    *(("Content-Type", values, is_allowed) for values, is_allowed in TYPES),
]


@pytest.mark.parametrize(("name", "values", "is_allowed"), CASES, ids=str)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS"])
def test_only_allowed_headers_are_accepted(
    client: PlainHttpClient, method: str, name: str, values: list[str | bytes], is_allowed: bool
) -> None:
    # Without a Host header the client would add its own.
    given = header_pairs(name, values) if values or name != "Host" else [("Host", "")]
    headers = (BOTH, *([] if name == "Content-Type" else [JSON]), *given)
    status = client.send(method, headers, b'{"jsonrpc":"2.0","id":1,"method":"ping"}').status
    # Other methods have no body.
    is_checked = method == "POST" or name != "Content-Type"
    expected = 200 if method == "POST" else 405
    assert status == (expected if is_allowed or not is_checked else REFUSED[name])


def test_all_combinations_of_host_origin_and_type(client: PlainHttpClient) -> None:
    wrong = []
    for hosts, host_allowed in HOSTS[::4]:
        for origins, origin_allowed in ORIGINS:
            for types, is_json in TYPES[::3]:
                headers = [
                    *header_pairs("Host", hosts),
                    *header_pairs("Origin", origins),
                    *header_pairs("Content-Type", types),
                ]
                if not hosts:
                    headers.append(("Host", ""))
                reply = client.post(PING, headers)
                expected = (
                    421 if not host_allowed else 403 if not origin_allowed else 415 if not is_json else 200
                )
                if reply.status != expected or "Access-Control-Allow-Origin" in reply.headers:
                    wrong.append((headers, reply.status, expected))
                reply.close()
    assert wrong == []


def test_an_origin_has_the_scheme_of_the_server(client: PlainHttpClient) -> None:
    """Behind a proxy with TLS the scheme is https."""
    for scheme, proto, status in (
        ("http", "http", 200),
        ("https", "http", 403),
        ("http", "https", 403),
        ("https", "https", 200),
    ):
        headers = (JSON, BOTH, ("Origin", f"{scheme}://localhost"), ("X-Forwarded-Proto", proto))
        reply = client.post(PING, headers)
        assert reply.status == status
        reply.close()


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpawnedServer]:
    with SpawnedServer.product(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.mark.parametrize("path", ["/", "/mcp", "/healthz", "/readyz", "/metrics", "/nothing", "//", "/%6dcp"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "OPTIONS"])
def test_every_route_of_the_product_checks_host_and_origin(
    product: SpawnedServer, path: str, method: str
) -> None:
    with PlainHttpClient(product.port) as client:
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        assert client.send(method, (JSON, ("Host", "evil.example")), body, path).status == 421
        assert client.send(method, (JSON, ("Origin", "https://evil.example")), body, path).status == 403
        assert client.send(method, (JSON, ("Origin", "null")), body, path).status == 403


def test_the_product_accepts_its_own_names(product: SpawnedServer, tmp_path: Path) -> None:
    with PlainHttpClient(product.port) as client:
        assert client.send("GET", path="/healthz").status == 200
        assert client.post(PING, (JSON, ("Origin", f"http://localhost:{product.port}"))).status == 200
        # A CORS simple request must not be accepted.
        assert client.send("POST", (("Content-Type", "text/plain"),), b"{}", "/").status in (400, 415)
