"""The HTTP face of the task manager's contract: `HEAD /` and `POST /`, as its document shows them."""

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
    INTRODUCTIONS,
    LIST,
    PLACEHOLDER,
    PROFILE,
    REPLAYS,
    TESTS,
    TOOLS,
    Replay,
    assert_like,
)

CONTRACT = Contract("task-manager.md")

#: What each profile calls itself, and the version that it gets a client to speak that asks for none.
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
    """A server of the contract's profile, for a test that writes."""
    options = ("--profile", PROFILE, *database(location))
    if variant.backend == "postgres":
        yield request.getfixturevalue("postgres_workspace").hosts.get_or_start(*options, env={})
    else:
        with HttpServerProcess(*options) as started:
            yield started


@pytest.fixture(scope="module")
def unwritten(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], HttpServerProcess]]:
    """Servers of the profiles, for tests that write nothing."""
    directory = tmp_path_factory.mktemp("unwritten")
    with closing(SharedServers()) as hosts:
        yield lambda profile: hosts.get_or_start("--profile", profile, *database(directory), env={})


def bare(host: HttpServerProcess, request: Json) -> Any:
    """The result of a request that has no envelope, as the contract writes them."""
    answer = host.post(request)
    assert answer.status == 200, answer
    return answer.json()


def enveloped(host: HttpServerProcess, request: Json) -> Any:
    """The result of the same request in an envelope, out of the envelope that it comes in."""
    answer = host.post({"jsonrpc": "2.0", "id": "seven", **request})
    assert answer.status == 200, answer
    envelope = answer.json()
    assert envelope == {"jsonrpc": "2.0", "id": "seven", "result": envelope["result"]}
    return envelope["result"]


Ask = Callable[[HttpServerProcess, Json], Any]


@pytest.fixture(params=[bare, enveloped])
def ask(request: pytest.FixtureRequest) -> Ask:
    variant: Ask = request.param
    return variant


def call(host: HttpServerProcess, tool: str, **arguments: Any) -> Any:
    """What a tool answers with."""
    params = {"name": tool, "arguments": arguments}
    result = bare(host, {"method": "tools/call", "params": params})
    assert result["isError"] is False, result
    return json.loads(result["content"][0]["text"])


def sent(host: HttpServerProcess, text: str) -> ReceivedResponse:
    """The answer to an HTTP message as the document prints it, with only the headers that it leaves out."""
    head, _, body = text.partition("\n\n")
    if "\nHost: " not in head:
        head += "\nHost: localhost"
    if body:
        head += f"\nContent-Length: {len(body.encode())}"
    with create_connection(host.address, timeout=10) as connection:
        connection.sendall(f"{head}\n\n".replace("\n", "\r\n").encode() + body.encode())
        answer = HTTPResponse(connection, method=head.partition(" ")[0])
        answer.begin()
        with answer:
            return ReceivedResponse(answer.status, answer.headers, answer.read())


def assert_head(answer: ReceivedResponse, text: str) -> None:
    """The head of an answer has everything that the document prints."""
    line, *headers = text.partition("\n\n")[0].splitlines()
    assert line == f"HTTP/1.1 {answer.status} OK"
    for header in headers:
        name, _, value = header.partition(": ")
        assert answer.headers[name] == value


DISCOVERY = "Endpoints > Protocol Discovery > "


@CONTRACT.replays(f"{DISCOVERY}Response Headers", f"{DISCOVERY}Example")
def test_the_version_is_advertised_as_in_the_contract(unwritten: Callable[[str], HttpServerProcess]) -> None:
    request, _, response = CONTRACT.examples[f"{DISCOVERY}Example"].partition("\n\n")
    answer = sent(unwritten(PROFILE), request)
    assert_head(answer, response)
    assert_head(answer, f"HTTP/1.1 200 OK\n{CONTRACT.examples[f'{DISCOVERY}Response Headers']}")
    assert answer.body == b""


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_advertises_a_version(
    unwritten: Callable[[str], HttpServerProcess], profile: str
) -> None:
    answer = unwritten(profile).ask("HEAD", "/")
    assert (answer.status, answer.body) == (200, b"")
    advertised = "2025-06-18" if profile == PROFILE else HANDSHAKE_VERSIONS[-1]
    assert answer.headers["MCP-Protocol-Version"] == advertised


HANDLER = "Endpoints > MCP Methods Handler > "
EXAMPLES = {f"{INITIALIZE} > Example": "protocolVersion", f"{LIST} > Example": "tools"}


@CONTRACT.replays(
    f"{HANDLER}Request Headers", *(f"{key} > {part}" for key in EXAMPLES for part in ("Request", "Response"))
)
@pytest.mark.parametrize("key", EXAMPLES)
def test_http_is_spoken_as_in_the_contract(unwritten: Callable[[str], HttpServerProcess], key: str) -> None:
    request = CONTRACT.examples[f"{key} > Request"]
    assert CONTRACT.examples[f"{HANDLER}Request Headers"] in request
    answer = sent(unwritten(PROFILE), request)
    assert_head(answer, CONTRACT.examples[f"{key} > Response"])
    assert EXAMPLES[key] in answer.json()


@CONTRACT.replays(f"{INITIALIZE} > Request", f"{INITIALIZE} > Response (Success)")
@pytest.mark.parametrize("key", INTRODUCTIONS)
def test_initialize_is_answered_as_in_the_contract(
    unwritten: Callable[[str], HttpServerProcess], ask: Ask, key: str
) -> None:
    answer = ask(unwritten(PROFILE), CONTRACT[f"{INITIALIZE} > {key}"])
    assert answer == CONTRACT[f"{INITIALIZE} > {INTRODUCTIONS[key]}"]


@CONTRACT.replays(f"{LIST} > Request", f"{LIST} > Response (Success)")
def test_tools_are_listed_as_in_the_contract(unwritten: Callable[[str], HttpServerProcess], ask: Ask) -> None:
    listed = ask(unwritten(PROFILE), CONTRACT[f"{LIST} > Request"])["tools"]
    assert [tool["name"] for tool in listed] == list(TOOLS)
    create = without_additions(listed[0])
    # An addition to the contract.
    del create["inputSchema"]["properties"]["due_date"]
    assert [create] == CONTRACT[f"{LIST} > Response (Success)"]["tools"]
    shown = CONTRACT[f"{LIST} > Example > Response"]["tools"]
    assert [without_additions(tool) | {"inputSchema": {}} for tool in listed[:2]] == shown


@CONTRACT.replays(*(replay.request for replay in REPLAYS), *(replay.response for replay in REPLAYS))
@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.response)
def test_the_request_is_answered_as_in_the_contract(
    host: HttpServerProcess, ask: Ask, replay: Replay
) -> None:
    for task in replay.given:
        made = call(host, "task_create", title=task["title"], project=task.get("project"))
        if task.get("completed"):
            call(host, "task_complete", task_id=made["id"])
    assert_like(ask(host, CONTRACT[replay.request]), CONTRACT[replay.response])


ERROR_SHAPES = (f"{CALL} > Response (Error)", "Error Codes > Application Errors > Error Response Format")


@CONTRACT.replays(
    f"{HANDLER}Request Body", f"{CALL} > Request", f"{CALL} > Response (Success)", *ERROR_SHAPES
)
def test_every_call_has_the_general_shapes(host: HttpServerProcess, ask: Ask) -> None:
    request = CONTRACT[f"{CALL} > Request"]
    assert request.keys() == CONTRACT[f"{HANDLER}Request Body"].keys()
    request["params"] |= PLACEHOLDER
    for key in ERROR_SHAPES:
        shown = CONTRACT[key]
        shown["content"][0]["text"] = "Task 1 not found"
        assert_like(ask(host, request), shown)
    call(host, "task_create", title="A task")
    shown = CONTRACT[f"{CALL} > Response (Success)"]
    shown["content"][0]["text"] = ask(host, request)["content"][0]["text"]
    assert_like(ask(host, request), shown)


class Client:
    """The client that the document's own tests speak of."""

    def __init__(self, host: HttpServerProcess) -> None:
        self._host = host

    def head(self, path: str) -> ReceivedResponse:
        return self._host.ask("HEAD", path)

    def post(self, path: str, json: Json) -> ReceivedResponse:
        return self._host.ask("POST", path, msgspec.json.encode(json), {"Content-Type": JSON})


@pytest.fixture
def client(host: HttpServerProcess) -> Client:
    return Client(host)


THEIR_TESTS = [key for key in CONTRACT.examples if key.startswith(TESTS)]


@CONTRACT.replays(*THEIR_TESTS)
@pytest.mark.parametrize("key", THEIR_TESTS)
def test_the_contracts_own_test_passes(client: Client, key: str) -> None:
    names: Json = {"client": client, "json": json}
    exec(CONTRACT.examples[key], names)
    (test,) = [value for name, value in names.items() if name.startswith("test_")]
    test()


def test_the_contract_has_five_tests_of_its_own() -> None:
    printed = re.findall(r"^def (test_\w+)\(\):$", CONTRACT.text, re.MULTILINE)
    assert len(printed) == len(THEIR_TESTS) == 5


# Errors


MISTAKES: dict[bytes, tuple[int, int]] = {
    b"": (400, -32700),
    b"{": (400, -32700),
    b"\xff": (400, -32700),
    b"{}": (400, -32600),
    b'{"method":null}': (400, -32600),
    b'{"method":7}': (400, -32600),
    b'{"method":"ping","method":"ping"}': (400, -32600),
    b'{"params":{"name":"task_list"}}': (400, -32600),
    b'{"method":"no/such"}': (404, -32601),
    b'{"method":"prompts/list"}': (404, -32601),
    b'{"method":"tools/call"}': (400, -32602),
    b'{"method":"tools/call","params":[]}': (400, -32602),
    b'{"method":"tools/call","params":{"name":7}}': (400, -32602),
    b'{"method":"tools/call","params":{"name":"nope"}}': (400, -32602),
    b'{"method":"tools/call","params":{"name":"task_list","arguments":7}}': (400, -32602),
    b'{"method":"tools/list","params":{"cursor":"no such"}}': (400, -32602),
}


@pytest.mark.parametrize("body", MISTAKES)
def test_a_mistake_without_an_envelope_is_answered_without_one(
    unwritten: Callable[[str], HttpServerProcess], body: bytes
) -> None:
    answer = unwritten(PROFILE).post(body)
    (error,) = answer.json().values()
    assert answer.json() == {"error": {"code": error["code"], "message": error["message"]}}
    assert (answer.status, error["code"]) == MISTAKES[body]
    assert error["message"]


@pytest.mark.parametrize("body", [b"7", b"null", b'"tools/list"', b"true"])
def test_a_value_that_is_no_request_is_answered_without_an_envelope(
    unwritten: Callable[[str], HttpServerProcess], body: bytes
) -> None:
    answer = unwritten(PROFILE).post(body)
    assert answer.status == 400
    assert answer.json().keys() == {"error"}
    assert answer.json()["error"]["code"] == -32600


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
def test_a_mistake_in_an_envelope_is_answered_in_one(
    unwritten: Callable[[str], HttpServerProcess], body: bytes, status: int, code: int
) -> None:
    answer = unwritten(PROFILE).post(body)
    envelope = answer.json()
    assert (answer.status, envelope["error"]["code"]) == (status, code)
    assert envelope == {"jsonrpc": "2.0", "id": envelope["id"], "error": envelope["error"]}
    assert envelope["id"] == (None if code == -32700 else 1)


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("task_get", {"task_id": 7}, "Task 7 not found"),
        ("task_create", {"title": ""}, "Validation error: Title must be between 1 and 500 characters"),
        ("task_create", {}, "Validation error: title is required"),
        ("task_get", {"task_id": "x"}, "Validation error: task_id must be an integer, not a string"),
    ],
)
def test_the_mistakes_of_tools_are_no_errors_of_http(
    unwritten: Callable[[str], HttpServerProcess], ask: Ask, tool: str, arguments: Json, words: str
) -> None:
    params = {"name": tool, "arguments": arguments}
    result = ask(unwritten(PROFILE), {"method": "tools/call", "params": params})
    assert result == {"isError": True, "content": [{"type": "text", "text": words}]}


def test_a_notification_in_an_envelope_has_no_answer(unwritten: Callable[[str], HttpServerProcess]) -> None:
    answer = unwritten(PROFILE).post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (answer.status, answer.body) == (202, b"")


def test_to_listen_without_an_envelope_is_refused_in_words(
    unwritten: Callable[[str], HttpServerProcess],
) -> None:
    params = {"notifications": {"toolsListChanged": True}, "_meta": ENVELOPE}
    answer = unwritten("all").post({"method": "subscriptions/listen", "params": params})
    assert answer.status in (400, 404)
    assert answer.json().keys() == {"error"}


# The other profiles


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_introduces_itself(
    unwritten: Callable[[str], HttpServerProcess], ask: Ask, profile: str
) -> None:
    result = ask(unwritten(profile), CONTRACT[f"{INITIALIZE} > Request"])
    assert (result["serverInfo"]["name"], result["protocolVersion"]) == PROFILES[profile]


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_gives_the_same_answer_at_both_addresses(
    unwritten: Callable[[str], HttpServerProcess], profile: str
) -> None:
    host = unwritten(profile)
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


def test_what_is_stored_without_an_envelope_is_stored(location: WorkspaceLocation) -> None:
    with HttpServerProcess(*database(location)) as host:
        prompt = call(host, "add_prompt", title="Größe 🎒", content='"\\\n\u2028', tags=["a"])
        assert call(host, "get_prompt", id=prompt["id"])["content"] == '"\\\n\u2028'
        (listed,) = bare(host, {"method": "prompts/list"})["prompts"]
        given = bare(host, {"method": "prompts/get", "params": {"name": listed["name"]}})
        assert given["messages"][0]["content"]["text"] == '"\\\n\u2028'


def test_no_example_is_left_unreplayed() -> None:
    assert CONTRACT.unreplayed() == []
