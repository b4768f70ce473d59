"""`dittybag serve --http`: addresses, tokens, health, metrics, logs and notifications."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dittybag as product
from dittybag.config import settings
from dittybag.http.metrics import Metrics
from tests.cli.cli_runner import dittybag
from tests.contracts.contract_replay import Json, ServerUnderTest, database, initialize
from tests.contracts.http_server_process import (
    EventStreamReader,
    HttpServerProcess,
    McpHttpClient,
    open_event_stream,
    routing_headers,
    send_request,
)
from tests.contracts.library_fixtures import ENVELOPE, ERAS, STATELESS

#: How long a client waits for a notification.
NOTIFICATION_TIMEOUT_SECONDS = 5.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HttpServerProcess]:
    with HttpServerProcess(*database(tmp_path)) as started:
        yield started


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServerProcess]:
    """A server for tests that do not change data."""
    with HttpServerProcess(*database(tmp_path_factory.mktemp("unwritten"))) as started:
        yield started


def open_client(server: HttpServerProcess, stack: ExitStack) -> McpHttpClient:
    """Open a session and return its client."""
    client = stack.enter_context(closing(McpHttpClient(server)))
    frame = {"jsonrpc": "2.0", "id": "initialize", **initialize(ERAS[0])}
    assert "result" in client.exchange(msgspec.json.encode(frame))
    client.notify(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    return client


def request(method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}


def wait_until(condition: Callable[[], bool]) -> None:
    """Poll until the condition holds or time runs out."""
    deadline = time.monotonic() + NOTIFICATION_TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline


def tool_call(tool: str, **arguments: Any) -> Json:
    return request("tools/call", {"name": tool, "arguments": arguments})


# Addresses


@pytest.mark.parametrize(
    ("options", "variables", "shown"),
    [
        (("--http", "127.0.0.1:0"), {}, "127.0.0.1"),
        (("--http=127.0.0.1:0",), {}, "127.0.0.1"),
        (("--http", "0"), {}, "127.0.0.1"),
        (("--http", ":0"), {}, "127.0.0.1"),
        (("--http", "127.0.0.2:0"), {}, "127.0.0.2"),
        (("--http", "localhost:0"), {}, "localhost"),
        (("--http", "[::1]:0"), {}, "[::1]"),
        ((), {"DITTYBAG_HTTP": "127.0.0.1:0"}, "127.0.0.1"),
        (("--http", "127.0.0.2:0"), {"DITTYBAG_HTTP": "127.0.0.1:0"}, "127.0.0.2"),
    ],
)
def test_it_listens_on_loopback_and_prints_its_url(
    tmp_path: Path, options: tuple[str, ...], variables: dict[str, str], shown: str
) -> None:
    if shown == "[::1]" and not _has_ipv6():
        pytest.skip("this machine has no IPv6")
    with HttpServerProcess("serve", *options, *database(tmp_path), plain=True, env=variables) as server:
        line = server.stderr.wait_for("Dittybag is listening on")
        address = f"http://{shown}:{server.address[1]}/mcp"
        assert line == f"Dittybag is listening on {address} (press Ctrl-C to stop)"
        assert server.get("/healthz").status == 200


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def start_error(home: Path, address: str, status: int = 2) -> str:
    """Start a server on an invalid address; return its error message."""
    result = dittybag(home, "serve", f"--http={address}", status=status)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert not (home / "default.db").exists(), "a database was created"
    error, _, hint = result.stderr.partition("\n")
    assert hint.startswith("hint: ")
    return error


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("0.0.0.0:0", "0.0.0.0"),
        ("[::]:0", "::"),
        ("::1:0", "::1:0"),
        ("[::ffff:0.0.0.0]:0", "::ffff:0.0.0.0"),
        ("192.168.0.7:8765", "192.168.0.7"),
        ("[fe80::1]:0", "fe80::1"),
        ("example.org:0", "example.org"),
        ("127.0.0.1.example.org:0", "127.0.0.1.example.org"),
        ("127.1:0", "127.1"),
        ("2130706433:0", "2130706433"),
        ("127.0.0.1,0.0.0.0:0", "127.0.0.1,0.0.0.0"),
    ],
)
def test_listening_beyond_loopback_is_refused(tmp_path: Path, address: str, named: str) -> None:
    assert start_error(tmp_path, address) == (
        f"error: without authentication, anyone who can reach {named} could read and change everything: use "
        "--auth tokens and create tokens with dittybag token create, or listen on 127.0.0.1"
    )


def test_the_variable_cannot_listen_beyond_loopback_either(tmp_path: Path) -> None:
    result = dittybag(tmp_path, "serve", status=2, variables={"DITTYBAG_HTTP": "0.0.0.0:0"})
    assert result.stderr.startswith("error: without authentication, anyone who can reach 0.0.0.0 could")


# With tokens


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        (("--auth", "tokens"), {}),
        (("--auth=tokens",), {}),
        ((), {"DITTYBAG_AUTH": "tokens"}),
        (("--auth", "tokens"), {"DITTYBAG_AUTH": "off"}),
    ],
)
def test_with_tokens_it_listens_on_all_interfaces(
    tmp_path: Path, options: tuple[str, ...], variables: dict[str, str]
) -> None:
    arguments = ("serve", "--http", "0.0.0.0:0", *options, *database(tmp_path))
    with HttpServerProcess(*arguments, plain=True, env=variables) as server:
        server.address = ("127.0.0.1", server.address[1])
        assert server.get("/healthz").status == 200
        assert server.post(request("ping"), "/mcp").status == 401
        # An unknown host name is rejected.
        assert server.ask("GET", "/healthz", headers={"Host": "dittybag.example.org"}).status == 421


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        (("--allow-host", "dittybag.example.org", "--allow-host=[fd00::1]"), {}),
        ((), {"DITTYBAG_ALLOWED_HOSTS": "dittybag.example.org, [fd00::1]"}),
    ],
)
def test_additional_host_names_are_accepted(
    tmp_path: Path, options: tuple[str, ...], variables: dict[str, str]
) -> None:
    with HttpServerProcess(*options, *database(tmp_path), env=variables) as server:
        for name in (
            "dittybag.example.org",
            "DITTYBAG.example.org:443",
            "[fd00::1]",
            "[FD00::1]:80",
            "localhost",
        ):
            assert server.ask("GET", "/healthz", headers={"Host": name}).status == 200, name
        for name in ("example.org", "evil.dittybag.example.org", "dittybag.example.org.evil", "[fd00::2]"):
            assert server.ask("GET", "/healthz", headers={"Host": name}).status == 421, name
        headers = {"Origin": "http://dittybag.example.org"}
        assert server.ask("GET", "/healthz", headers=headers).status == 200
        headers = {"Origin": "https://dittybag.example.org"}
        assert server.ask("GET", "/healthz", headers=headers).status == 403
        headers["X-Forwarded-Proto"] = "https"
        assert server.ask("GET", "/healthz", headers=headers).status == 200
        headers = {"Origin": "https://example.org"}
        assert server.ask("GET", "/healthz", headers=headers).status == 403


def test_a_read_replica_needs_a_url_and_postgresql(tmp_path: Path) -> None:
    for url, problem in (
        ("u:secret@h/d", "--read-replica must be a URL such as postgresql://user:password@host/database"),
        ("postgresql://u:secret@h/d", "--read-replica needs a PostgreSQL database"),
    ):
        result = dittybag(tmp_path, "serve", "--read-replica", url, status=2)
        assert problem in result.stderr
        assert "secret" not in result.stderr


def test_the_auth_variable_does_not_affect_standard_input(tmp_path: Path) -> None:
    frame = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, **initialize(ERAS[0])}).decode()
    result = dittybag(tmp_path, "serve", stdin=frame + "\n", variables={"DITTYBAG_AUTH": "tokens"})
    assert "serverInfo" in result.stdout


def test_every_response_has_a_request_id_without_authentication(
    shared_server: HttpServerProcess,
) -> None:
    found = [
        shared_server.get("/healthz"),
        shared_server.post(request("ping"), "/mcp"),
        shared_server.get("/nothing"),
    ]
    with ExitStack() as stack:
        connection = stack.enter_context(closing(shared_server.connect()))
        frame = msgspec.json.encode(request("ping"))
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        found += [send_request(connection, "POST", "/mcp", frame, headers) for _ in range(5)]
        named = send_request(connection, "POST", "/mcp", frame, {**headers, "X-Request-Id": "mine.1"})
    assert len({response.headers["x-request-id"] for response in found}) == len(found)
    assert named.headers["x-request-id"] == "mine.1"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("", ("127.0.0.1", 8765)),
        ("9000", ("127.0.0.1", 9000)),
        (":9000", ("127.0.0.1", 9000)),
        ("localhost", ("localhost", 8765)),
        ("::1", ("::1", 8765)),
        ("[::1]", ("::1", 8765)),
        ("[::1]:9000", ("::1", 9000)),
    ],
)
def test_missing_parts_of_an_address_have_defaults(address: str, expected: tuple[str, int]) -> None:
    assert settings({}, http=address).http == expected
    assert settings({"DITTYBAG_HTTP": "[::1]:1"}, http=address).http == expected


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:x", "127.0.0.1:-1", "127.0.0.1:65536", ":70000", "localhost:80.", "[::1]:x", "127.0.0.1:²"],
)
def test_an_invalid_port_is_rejected(tmp_path: Path, address: str) -> None:
    example = "--http must be an address such as 127.0.0.1:8765"
    assert start_error(tmp_path, address) == f"error: {example}, not '{address}'"


def test_an_invalid_address_is_rejected(tmp_path: Path) -> None:
    assert start_error(tmp_path, "127.999.0.1:0").startswith("error: cannot listen on 127.999.0.1:0: ")


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert start_error(tmp_path, address).startswith(
            f"error: cannot listen on {address}: address already in use"
        )


# Shutdown


@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_with_status_0_and_no_further_output(
    server: HttpServerProcess, stop_signal: signal.Signals
) -> None:
    with ExitStack() as stack:
        client = open_client(server, stack)
        stack.enter_context(open_event_stream(server, "GET", None, client.headers()))
        status, out, err = server.end(stop_signal)
    assert out == ""
    banner = r"Dittybag is listening on \S+ \(press Ctrl-C to stop\)\nWeb UI: \S+ \(works once\)\n"
    assert re.fullmatch(banner, err)
    assert status == 0


# Endpoints


def test_healthz_reports_the_version(shared_server: HttpServerProcess) -> None:
    response = shared_server.get("/healthz")
    assert response.status == 200
    assert response.json() == {"status": "ok", "version": product.__version__}


def test_a_browser_without_a_session_is_redirected_to_sign_in(shared_server: HttpServerProcess) -> None:
    response = shared_server.get("/")
    assert (response.status, response.headers["location"], response.body) == (303, "/sign-in", b"")
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert response.headers["x-content-type-options"] == "nosniff"


PATHS = ("/", "/healthz", "/readyz", "/metrics")


@pytest.mark.parametrize("path", PATHS[1:])
def test_a_head_response_has_no_body(shared_server: HttpServerProcess, path: str) -> None:
    response = shared_server.ask("HEAD", path)
    assert (response.status, response.body) == (200, b"")
    assert int(response.headers["content-length"]) > 0


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods_are_not_allowed(shared_server: HttpServerProcess, method: str, path: str) -> None:
    assert shared_server.ask(method, path).status == 405


@pytest.mark.parametrize("path", ["/nothing", "/mcp/", "/metrics/x", "//", "/healthz%00"])
def test_an_unknown_path_points_to_the_mcp_endpoint(shared_server: HttpServerProcess, path: str) -> None:
    response = shared_server.get(path)
    assert response.status == 404
    assert "/mcp" in response.json()["error"]


# Health


def test_readyz_reports_that_it_is_ready(shared_server: HttpServerProcess) -> None:
    response = shared_server.get("/readyz")
    assert (response.status, response.json()) == (200, {"status": "ready"})


def corrupt(directory: Path) -> None:
    """Overwrite the database and its log files; changing permissions would not stop root."""
    for file in directory.iterdir():
        with file.open("r+b") as opened:
            opened.write(b"Not a database. " * (max(file.stat().st_size, 16) // 16))


def remove(directory: Path) -> None:
    for file in directory.iterdir():
        file.unlink()


def replace(directory: Path) -> None:
    """Replace the database, as copying a backup over it does."""
    dittybag(directory / "other", "project", "create", "other", "--db", str(directory / "other.db"))
    (directory / "other.db").replace(directory / "dittybag.db")


@pytest.mark.parametrize("damage", [corrupt, remove, replace])
def test_it_is_not_ready_when_its_database_is_damaged_or_replaced(
    server: HttpServerProcess, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    assert server.post(tool_call("task_create", title="A task")).status == 200
    assert server.get("/readyz").status == 200
    damage(tmp_path)
    response = server.get("/readyz")
    assert response.status == 503
    assert response.json()["status"] == "not ready"
    assert response.json()["problem"]
    assert server.get("/healthz").status == 200


def test_metrics_are_served_when_the_database_cannot_be_read(
    server: HttpServerProcess, tmp_path: Path
) -> None:
    assert server.post(request("ping")).status == 200
    corrupt(tmp_path)
    response = server.get("/metrics")
    assert response.status == 200
    assert parse_samples(response.body.decode())[PING] == 1


# Metrics


Sample = tuple[str, tuple[tuple[str, str], ...]]

PING: Sample = ("dittybag_requests_total", (("method", "ping"), ("outcome", "ok")))
OTHER: Sample = ("dittybag_requests_total", (("method", "other"), ("outcome", "error")))
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"'
VALUE = r"[+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|Inf)|NaN"


def parse_samples(text: str) -> dict[Sample, float]:
    """Parse the Prometheus text format 0.0.4 and return its samples; every line must be valid."""
    assert text.endswith("\n")
    found: dict[Sample, float] = {}
    kinds: dict[str, str] = {}
    described = family = ""
    for line in text.splitlines():
        if about := re.fullmatch(rf"# HELP ({NAME}) .+", line):
            described = about[1]
            assert described not in kinds, f"{described} is described twice"
        elif kind := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge|histogram|summary|untyped)", line):
            assert kind[1] == described, f"{kind[1]} has a type without a description"
            family, kinds[kind[1]] = kind[1], kind[2]
        else:
            sample = re.fullmatch(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (?P<value>{VALUE})", line)
            assert sample is not None, line
            name, labels = sample[1], tuple(sorted(re.findall(LABEL, sample[2] or "")))
            suffixes = ("_bucket", "_sum", "_count") if kinds[family] == "histogram" else ("",)
            assert name in {family + suffix for suffix in suffixes}, f"{name} does not belong to {family}"
            assert len(dict(labels)) == len(labels)
            assert (name, labels) not in found, f"{line} occurs twice"
            found[name, labels] = float(sample["value"])
    for name, known in kinds.items():
        assert known != "counter" or name.endswith("_total")
        if known == "histogram":
            _check_histogram(name, found)
    return found


def _check_histogram(name: str, found: dict[Sample, float]) -> None:
    """Check that buckets are cumulative and that each histogram has a sum and a count."""
    series: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    for (sample, labels), value in found.items():
        if sample == f"{name}_bucket":
            rest = tuple(label for label in labels if label[0] != "le")
            series.setdefault(rest, []).append((float(dict(labels)["le"]), value))
    assert series.keys() == {labels for sample, labels in found if sample == f"{name}_count"}
    assert series.keys() == {labels for sample, labels in found if sample == f"{name}_sum"}
    for rest, buckets in series.items():
        assert buckets == sorted(buckets)
        assert [count for _, count in buckets] == sorted(count for _, count in buckets)
        assert buckets[-1] == (float("inf"), found[f"{name}_count", rest])


def scrape_metrics(server: HttpServerProcess) -> dict[Sample, float]:
    response = server.get("/metrics")
    assert response.status == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4"
    return parse_samples(response.body.decode())


def test_requests_are_counted_by_method_and_outcome(server: HttpServerProcess) -> None:
    assert not any(name.startswith("dittybag_request") for name, _ in scrape_metrics(server))
    for _ in range(3):
        server.post(request("ping"))
        server.post({"method": "ping"})
        server.post(request("ping"), "/mcp")
    server.post(request("prompts/get", {"name": "nope"}))
    first = scrape_metrics(server)
    assert first[PING] == 9
    assert first["dittybag_request_seconds_count", (("method", "ping"),)] == 9
    assert first["dittybag_requests_total", (("method", "prompts/get"), ("outcome", "error"))] == 1
    server.post(request("ping"))
    assert scrape_metrics(server)[PING] == 10


def test_made_up_names_do_not_become_labels(server: HttpServerProcess) -> None:
    server.post(request("ping"))
    for number in range(50):
        server.post(request(f"made/up{number}"))
        server.post({"method": f'made"up\n{number}'})
        server.post(tool_call(f"made_up{number}"))
        server.post(request("prompts/get", {"name": f"made_up{number}"}))
        server.get(f"/made/up{number}")
    counted = scrape_metrics(server)
    assert counted[OTHER] == 100
    labels = {
        value
        for sample, labels in counted
        for name, value in labels
        if name != "le" and sample != "dittybag_info"
    }
    known = {"ping", "other", "tools/call", "prompts/get", "ok", "error"}
    assert labels == known | {"prompts", "resources", "tasks", "projects"}


def test_stored_entities_are_counted(server: HttpServerProcess) -> None:
    def stored() -> dict[str, float]:
        return {
            dict(labels)["kind"]: value
            for (name, labels), value in scrape_metrics(server).items()
            if name == STORED
        }

    assert stored() == {"prompts": 0, "resources": 0, "tasks": 0, "projects": 1}
    server.post(tool_call("create_prompt", name="one", content="Words"))
    server.post(tool_call("create_resource", name="one", uri="file:///one", content="Words"))
    server.post(tool_call("task_create", title="A task"))
    server.post(tool_call("task_create", title="Another", project="Personal"))
    assert stored() == {"prompts": 1, "resources": 1, "tasks": 2, "projects": 1}


STORED = "dittybag_stored"
STREAMS: Sample = ("dittybag_open_streams", ())
SESSIONS: Sample = ("dittybag_open_sessions", ())


def test_sessions_and_streams_are_counted_while_they_are_open(server: HttpServerProcess) -> None:
    with ExitStack() as stack:
        client = open_client(server, stack)
        assert (scrape_metrics(server)[SESSIONS], scrape_metrics(server)[STREAMS]) == (1, 0)
        with open_event_stream(server, "GET", None, client.headers()):
            assert scrape_metrics(server)[STREAMS] == 1
        wait_until(lambda: scrape_metrics(server)[STREAMS] == 0)
        client.end_session()
        assert scrape_metrics(server)[SESSIONS] == 0


def test_large_numbers_keep_all_digits() -> None:
    values = {'kind="tasks"': 1_234_567, "": 7_654_321}
    text = Metrics().text({STORED: ("Stored entities by kind.", values)})
    assert list(parse_samples(text).values())[-2:] == [1_234_567, 7_654_321]


# Logs


@pytest.mark.parametrize(
    ("options", "variables"), [(("--access-log",), {}), ((), {"DITTYBAG_ACCESS_LOG": "1"})]
)
def test_every_request_is_logged_as_a_line_of_json(
    tmp_path: Path, options: tuple[str, ...], variables: dict[str, str]
) -> None:
    with HttpServerProcess(*database(tmp_path), *options, env=variables) as server:
        server.get("/healthz")
        server.post(request("ping"))
        server.post(b"{", "/mcp")
        server.ask("HEAD", "/")
        server.get('/a%0A{"status":7}?token=secret')
        server.ask("GET", "/metrics", headers={"Host": "evil.example"})
        with ExitStack() as stack:
            open_client(server, stack)
        err = server.end()[2]
    lines = [line for line in err.splitlines() if line.startswith("{")]
    entries = [msgspec.json.decode(line) for line in lines]
    for entry in entries:
        assert list(entry) == ["request_id", "client", "user", "method", "path", "status", "ms"]
        assert (entry["client"], entry["user"]) == ("127.0.0.1", "")
        assert 0 <= entry["ms"] < 10_000
    assert len({entry["request_id"] for entry in entries}) == len(entries)
    assert [(entry["method"], entry["path"], entry["status"]) for entry in entries] == [
        ("GET", "/healthz", 200),
        ("POST", "/", 200),
        ("POST", "/mcp", 400),
        ("HEAD", "/", 200),
        ("GET", '/a\n{"status":7}', 404),
        ("GET", "/metrics", 421),
        ("POST", "/mcp", 200),
        ("POST", "/mcp", 202),
    ]
    assert "secret" not in err


def test_requests_are_not_logged_by_default(server: HttpServerProcess) -> None:
    server.get("/healthz")
    server.post(b"{", "/mcp")
    assert '"path"' not in server.end()[2]


# Notifications


NextNotification = Callable[[], tuple[str, Json]]


@contextmanager
def subscribed_client(server: HttpServerProcess, version: str, *uris: str) -> Iterator[NextNotification]:
    """Subscribe a client to all lists and to resources; yield a function for the next notification."""
    with ExitStack() as stack:
        if version != STATELESS:
            client = open_client(server, stack)
            for uri in uris:
                subscribe = msgspec.json.encode(request("resources/subscribe", {"uri": uri}))
                assert client.exchange(subscribe)["result"] == {}
            stream = stack.enter_context(open_event_stream(server, "GET", None, client.headers()))
            yield lambda: _next_notification(stream, {})
            return
        wanted = {"promptsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": uris}
        body = request("subscriptions/listen", {"notifications": wanted, "_meta": ENVELOPE})
        frame = msgspec.json.encode(body)
        headers = {"Content-Type": "application/json", **routing_headers(frame)}
        stream = stack.enter_context(open_event_stream(server, "POST", frame, headers))
        assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": 1}}
        yield lambda: _next_notification(stream, meta)


def _next_notification(stream: EventStreamReader, meta: Json) -> tuple[str, Json]:
    message = stream.message(NOTIFICATION_TIMEOUT_SECONDS)
    assert message.keys() <= {"jsonrpc", "method", "params"}, message
    params = message.get("params", {})
    assert params.items() >= meta.items()
    return message["method"], {key: value for key, value in params.items() if key not in meta}


PROMPTS: tuple[str, Json] = ("notifications/prompts/list_changed", {})
RESOURCES: tuple[str, Json] = ("notifications/resources/list_changed", {})


@pytest.fixture(params=ERAS)
def version(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


def test_every_client_is_notified_of_changes_by_any_process(
    server: HttpServerProcess, tmp_path: Path, version: str
) -> None:
    with (
        ServerUnderTest(tmp_path) as writer,
        subscribed_client(server, version, "file:///notes.md") as first,
        subscribed_client(server, version) as second,
    ):
        writer.text("create_prompt", name="theirs", content="Words")
        assert [first(), second()] == [PROMPTS, PROMPTS]
        server.post(tool_call("create_prompt", name="ours", content="Words"))
        assert [first(), second()] == [PROMPTS, PROMPTS]
        writer.text("create_resource", name="notes", uri="file:///notes.md", content="one")
        updated = ("notifications/resources/updated", {"uri": "file:///notes.md"})
        assert sorted([first(), first()]) == sorted([RESOURCES, updated])
        assert second() == RESOURCES
        # The same length as before, so that the list does not change.
        server.post(tool_call("update_resource", name="notes", content="two"))
        assert first() == updated
        writer.text("delete_prompt", name="theirs")
        # Only the subscribed client is notified about the resource.
        assert [first(), second()] == [PROMPTS, PROMPTS]


def test_a_low_limit_of_open_files_does_not_limit_the_connections(tmp_path: Path) -> None:
    """macOS starts programs with a limit of 256 open files, which they may raise."""
    command = ["sh", "-c", 'ulimit -Sn 64; exec "$@"', "sh", sys.executable, "-m", "dittybag", "serve"]
    environment = os.environ | {"DITTYBAG_HOME": str(tmp_path)}
    with (
        subprocess.Popen(
            [*command, "--http", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True, env=environment
        ) as process,
        ExitStack() as stack,
    ):
        stack.callback(process.terminate)
        assert process.stderr is not None
        port = int(process.stderr.readline().partition("127.0.0.1:")[2].partition("/")[0])
        connections = []
        for _ in range(150):
            connection = stack.enter_context(closing(HTTPConnection("127.0.0.1", port, timeout=10)))
            connection.request("GET", "/healthz")
            connections.append(connection)
        assert {connection.getresponse().status for connection in connections} == {200}
