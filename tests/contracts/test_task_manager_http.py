"""The HTTP interface of the task contract: `HEAD /` and `POST /`, as documented there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPResponse
from socket import create_connection
from typing import Any

import msgspec
import pytest

from tests.contracts.contract_replay import (
    HANDSHAKE_VERSIONS,
    Contract,
    Json,
    ServerVariant,
    SharedServers,
    WorkspaceLocation,
    database,
    without_additions,
)
from tests.contracts.http_server_process import JSON, HttpServerProcess, ReceivedResponse
from tests.contracts.library_fixtures import ENVELOPE
from tests.contracts.test_task_manager_contract import (
    CALL,
    INITIALIZE,
    INITIALIZE_RESPONSES,
    LIST,
    PLACEHOLDER,
    PROFILE,
    REPLAYS,
    TESTS,
    TOOLS,
    TaskReplay,
    assert_like,
)

CONTRACT = Contract("task-manager.md")

#: The server name of each profile, and its version for clients that request none.
PROFILES = {
    "all": ("dittybag", HANDSHAKE_VERSIONS[-1]),
    "mcpkg": ("mcpkg", HANDSHAKE_VERSIONS[0]),
    "twig": ("twig", HANDSHAKE_VERSIONS[0]),
    "tasks": ("Task Manager MCP", "2025-06-18"),
    "prompt-store": ("prompt-store", HANDSHAKE_VERSIONS[-1]),
}


@pytest.fixture(params=[ServerVariant("http"), ServerVariant("http", "postgres")], ids=str)
def variant(request: pytest.FixtureRequest) -> ServerVariant:
    chosen: ServerVariant = request.param
    return chosen


@pytest.fixture
def host(
    request: pytest.FixtureRequest, variant: ServerVariant, location: WorkspaceLocation
) -> Iterator[HttpServerProcess]:
    """A server of the contract's profile for a test that writes."""
    options = ("--profile", PROFILE, *database(location))
    if variant.backend == "postgres":
        yield request.getfixturevalue("postgres_workspace").hosts.get_or_start(*options, env={})
    else:
        with HttpServerProcess(*options) as started:
            yield started


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], HttpServerProcess]]:
    """Shared servers of all profiles for tests that write nothing."""
    directory = tmp_path_factory.mktemp("shared")
    with closing(SharedServers()) as hosts:
        yield lambda profile: hosts.get_or_start("--profile", profile, *database(directory), env={})


def without_envelope(host: HttpServerProcess, request: Json) -> Any:
    """Send a request without an envelope, as in the contract, and return the result."""
    response = host.post(request)
    assert response.status == 200, response
    return response.json()


def with_envelope(host: HttpServerProcess, request: Json) -> Any:
    """Send a request in an envelope and return the result in the response."""
    response = host.post({"jsonrpc": "2.0", "id": "seven", **request})
    assert response.status == 200, response
    envelope = response.json()
    assert envelope == {"jsonrpc": "2.0", "id": "seven", "result": envelope["result"]}
    return envelope["result"]


Ask = Callable[[HttpServerProcess, Json], Any]


@pytest.fixture(params=[without_envelope, with_envelope])
def ask(request: pytest.FixtureRequest) -> Ask:
    variant: Ask = request.param
    return variant


def call(host: HttpServerProcess, tool: str, **arguments: Any) -> Any:
    """Call a tool and return its JSON."""
    params = {"name": tool, "arguments": arguments}
    result = without_envelope(host, {"method": "tools/call", "params": params})
    assert result["isError"] is False, result
    return json.loads(result["content"][0]["text"])


def send_documented(host: HttpServerProcess, text: str) -> ReceivedResponse:
    """Send an HTTP message from the document, with the headers that it leaves out; return the response."""
    head, _, body = text.partition("\n\n")
    if "\nHost: " not in head:
        head += "\nHost: localhost"
    if body:
        head += f"\nContent-Length: {len(body.encode())}"
    with create_connection(host.address, timeout=10) as connection:
        connection.sendall(f"{head}\n\n".replace("\n", "\r\n").encode() + body.encode())
        response = HTTPResponse(connection, method=head.partition(" ")[0])
        response.begin()
        with response:
            return ReceivedResponse(response.status, response.headers, response.read())


def assert_head(response: ReceivedResponse, text: str) -> None:
    """Check that a response has the status and headers in the document."""
    line, *headers = text.partition("\n\n")[0].splitlines()
    assert line == f"HTTP/1.1 {response.status} OK"
    for header in headers:
        name, _, value = header.partition(": ")
        assert response.headers[name] == value


DISCOVERY = "Endpoints > Protocol Discovery > "


@CONTRACT.replays(f"{DISCOVERY}Response Headers", f"{DISCOVERY}Example")
def test_the_advertised_version_matches_the_contract(
    shared_server: Callable[[str], HttpServerProcess],
) -> None:
    request, _, documented = CONTRACT.examples[f"{DISCOVERY}Example"].partition("\n\n")
    response = send_documented(shared_server(PROFILE), request)
    assert_head(response, documented)
    assert_head(response, f"HTTP/1.1 200 OK\n{CONTRACT.examples[f'{DISCOVERY}Response Headers']}")
    assert response.body == b""


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_advertises_a_version(
    shared_server: Callable[[str], HttpServerProcess], profile: str
) -> None:
    response = shared_server(profile).ask("HEAD", "/")
    assert (response.status, response.body) == (200, b"")
    advertised = "2025-06-18" if profile == PROFILE else HANDSHAKE_VERSIONS[-1]
    assert response.headers["MCP-Protocol-Version"] == advertised


def test_an_error_without_an_envelope_keeps_its_data(
    shared_server: Callable[[str], HttpServerProcess],
) -> None:
    """The same `data` as in an envelope."""
    for profile, status in (("twig", 404), (PROFILE, 404), ("all", 400)):
        host = shared_server(profile)
        request: Json = {"method": "prompts/get", "params": {"name": "missing:prompt"}}
        bare = host.post(request)
        enveloped = host.post({"jsonrpc": "2.0", "id": 1, **request}).json()
        assert (bare.status, bare.json()) == (status, {"error": enveloped["error"]})
        assert ("data" in enveloped["error"]) == (profile == "twig")


HANDLER = "Endpoints > MCP Methods Handler > "
EXAMPLES = {f"{INITIALIZE} > Example": "protocolVersion", f"{LIST} > Example": "tools"}


@CONTRACT.replays(
    f"{HANDLER}Request Headers", *(f"{key} > {part}" for key in EXAMPLES for part in ("Request", "Response"))
)
@pytest.mark.parametrize("key", EXAMPLES)
def test_the_http_response_matches_the_contract(
    shared_server: Callable[[str], HttpServerProcess], key: str
) -> None:
    request = CONTRACT.examples[f"{key} > Request"]
    assert CONTRACT.examples[f"{HANDLER}Request Headers"] in request
    response = send_documented(shared_server(PROFILE), request)
    assert_head(response, CONTRACT.examples[f"{key} > Response"])
    assert EXAMPLES[key] in response.json()


@CONTRACT.replays(f"{INITIALIZE} > Request", f"{INITIALIZE} > Response (Success)")
@pytest.mark.parametrize("key", INITIALIZE_RESPONSES)
def test_the_response_to_initialize_matches_the_contract(
    shared_server: Callable[[str], HttpServerProcess], ask: Ask, key: str
) -> None:
    response = ask(shared_server(PROFILE), CONTRACT[f"{INITIALIZE} > {key}"])
    assert response == CONTRACT[f"{INITIALIZE} > {INITIALIZE_RESPONSES[key]}"]


@CONTRACT.replays(f"{LIST} > Request", f"{LIST} > Response (Success)")
def test_tools_are_listed_as_in_the_contract(
    shared_server: Callable[[str], HttpServerProcess], ask: Ask
) -> None:
    listed = ask(shared_server(PROFILE), CONTRACT[f"{LIST} > Request"])["tools"]
    assert [tool["name"] for tool in listed] == list(TOOLS)
    create = without_additions(listed[0])
    # An addition to the contract.
    del create["inputSchema"]["properties"]["due_date"]
    assert [create] == CONTRACT[f"{LIST} > Response (Success)"]["tools"]
    documented = CONTRACT[f"{LIST} > Example > Response"]["tools"]
    assert [without_additions(tool) | {"inputSchema": {}} for tool in listed[:2]] == documented


@CONTRACT.replays(*(replay.request for replay in REPLAYS), *(replay.response for replay in REPLAYS))
@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.response)
def test_the_response_matches_the_contract(host: HttpServerProcess, ask: Ask, replay: TaskReplay) -> None:
    for task in replay.existing:
        created = call(host, "task_create", title=task["title"], project=task.get("project"))
        if task.get("completed"):
            call(host, "task_complete", task_id=created["id"])
    assert_like(ask(host, CONTRACT[replay.request]), CONTRACT[replay.response])


ERROR_SHAPES = (f"{CALL} > Response (Error)", "Error Codes > Application Errors > Error Response Format")


@CONTRACT.replays(
    f"{HANDLER}Request Body", f"{CALL} > Request", f"{CALL} > Response (Success)", *ERROR_SHAPES
)
def test_every_call_has_the_general_format(host: HttpServerProcess, ask: Ask) -> None:
    request = CONTRACT[f"{CALL} > Request"]
    assert request.keys() == CONTRACT[f"{HANDLER}Request Body"].keys()
    request["params"] |= PLACEHOLDER
    for key in ERROR_SHAPES:
        documented = CONTRACT[key]
        documented["content"][0]["text"] = "Task 1 not found"
        assert_like(ask(host, request), documented)
    call(host, "task_create", title="A task")
    documented = CONTRACT[f"{CALL} > Response (Success)"]
    documented["content"][0]["text"] = ask(host, request)["content"][0]["text"]
    assert_like(ask(host, request), documented)


class DocumentTestClient:
    """The client that the tests in the document use."""

    def __init__(self, host: HttpServerProcess) -> None:
        self._host = host

    def head(self, path: str) -> ReceivedResponse:
        return self._host.ask("HEAD", path)

    def post(self, path: str, json: Json) -> ReceivedResponse:
        return self._host.ask("POST", path, msgspec.json.encode(json), {"Content-Type": JSON})


@pytest.fixture
def client(host: HttpServerProcess) -> DocumentTestClient:
    return DocumentTestClient(host)


CONTRACT_TESTS = [key for key in CONTRACT.examples if key.startswith(TESTS)]


@CONTRACT.replays(*CONTRACT_TESTS)
@pytest.mark.parametrize("key", CONTRACT_TESTS)
def test_the_test_in_the_contract_passes(client: DocumentTestClient, key: str) -> None:
    names: Json = {"client": client, "json": json}
    exec(CONTRACT.examples[key], names)
    (test,) = [value for name, value in names.items() if name.startswith("test_")]
    test()


def test_the_contract_contains_five_tests() -> None:
    documented_tests = re.findall(r"^def (test_\w+)\(\):$", CONTRACT.text, re.MULTILINE)
    assert len(documented_tests) == len(CONTRACT_TESTS) == 5


# Errors


INVALID_REQUESTS: dict[bytes, tuple[int, int]] = {
    b"": (400, -32700),
    b"{": (400, -32700),
    b"\xff": (400, -32700),
    b"{}": (400, -32600),
    b"7": (400, -32600),
    b"null": (400, -32600),
    b'{"method":null}': (400, -32600),
    b'{"method":"ping","method":"ping"}': (400, -32600),
    b'{"params":{"name":"task_list"}}': (400, -32600),
    b'{"method":"no/such"}': (404, -32601),
    b'{"method":"prompts/list"}': (404, -32601),
    b'{"method":"tools/call"}': (400, -32602),
    b'{"method":"tools/call","params":[]}': (400, -32602),
    b'{"method":"tools/call","params":{"name":7}}': (400, -32602),
    b'{"method":"tools/call","params":{"name":"nope"}}': (400, -32602),
    b'{"method":"tools/list","params":{"cursor":"no such"}}': (400, -32602),
}


@pytest.mark.parametrize("body", INVALID_REQUESTS)
def test_an_invalid_request_without_an_envelope_gets_a_response_without_one(
    shared_server: Callable[[str], HttpServerProcess], body: bytes
) -> None:
    response = shared_server(PROFILE).post(body)
    (error,) = response.json().values()
    assert response.json() == {"error": {"code": error["code"], "message": error["message"]}}
    assert (response.status, error["code"]) == INVALID_REQUESTS[body]
    assert error["message"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"jsonrpc":"2.0","id":1', 400, -32700),
        (b'{"jsonrpc":"2.0","id":1}', 400, -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"no/such"}', 200, -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', 200, -32602),
    ],
)
def test_an_invalid_request_in_an_envelope_gets_a_response_in_one(
    shared_server: Callable[[str], HttpServerProcess], body: bytes, status: int, code: int
) -> None:
    response = shared_server(PROFILE).post(body)
    envelope = response.json()
    assert (response.status, envelope["error"]["code"]) == (status, code)
    assert envelope == {"jsonrpc": "2.0", "id": envelope["id"], "error": envelope["error"]}
    assert envelope["id"] == (None if code == -32700 else 1)


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("task_get", {"task_id": 7}, "Task 7 not found"),
        ("task_create", {"title": ""}, "Validation error: Title must be between 1 and 500 characters"),
    ],
)
def test_tool_errors_are_not_http_errors(
    shared_server: Callable[[str], HttpServerProcess], ask: Ask, tool: str, arguments: Json, message: str
) -> None:
    params = {"name": tool, "arguments": arguments}
    result = ask(shared_server(PROFILE), {"method": "tools/call", "params": params})
    assert result == {"isError": True, "content": [{"type": "text", "text": message}]}


def test_a_notification_in_an_envelope_has_no_response_body(
    shared_server: Callable[[str], HttpServerProcess],
) -> None:
    response = shared_server(PROFILE).post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (response.status, response.body) == (202, b"")


def test_subscribing_without_an_envelope_is_refused_with_an_error(
    shared_server: Callable[[str], HttpServerProcess],
) -> None:
    params = {"notifications": {"toolsListChanged": True}, "_meta": ENVELOPE}
    response = shared_server("all").post({"method": "subscriptions/listen", "params": params})
    assert response.status in (400, 404)
    assert response.json().keys() == {"error"}


# The other profiles


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_returns_its_server_name_and_version(
    shared_server: Callable[[str], HttpServerProcess], ask: Ask, profile: str
) -> None:
    result = ask(shared_server(profile), CONTRACT[f"{INITIALIZE} > Request"])
    assert (result["serverInfo"]["name"], result["protocolVersion"]) == PROFILES[profile]


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_sends_the_same_response_at_both_paths(
    shared_server: Callable[[str], HttpServerProcess], profile: str
) -> None:
    host = shared_server(profile)
    for method in ("ping", "tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        request = {"jsonrpc": "2.0", "id": 1, "method": method}
        there, here = (host.post(request, path, version=PROFILES[profile][1]) for path in ("/mcp", "/"))
        assert (here.status, here.body) == (there.status, there.body)
        assert here.status == 200
        without = host.post({"method": method})
        if "result" in here.json():
            assert (without.status, without.json()) == (200, here.json()["result"])
        else:
            assert (without.status, without.json()) == (404, {"error": here.json()["error"]})


def test_text_written_without_an_envelope_is_stored_unchanged(location: WorkspaceLocation) -> None:
    with HttpServerProcess(*database(location)) as host:
        prompt = call(host, "add_prompt", title="Größe 🎒", content='"\\\n\u2028', tags=["a"])
        assert call(host, "get_prompt", id=prompt["id"])["content"] == '"\\\n\u2028'
        (listed,) = without_envelope(host, {"method": "prompts/list"})["prompts"]
        given = without_envelope(host, {"method": "prompts/get", "params": {"name": listed["name"]}})
        assert given["messages"][0]["content"]["text"] == '"\\\n\u2028'


def test_every_example_is_replayed() -> None:
    assert CONTRACT.unreplayed() == []
