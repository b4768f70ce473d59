"""Every example of the task manager's contract, replayed in its own profile and in the default one,
over every transport and on both databases."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from tests.contracts.contract_replay import (
    HANDSHAKE_VERSIONS,
    REQUESTED_VERSIONS,
    VARIANTS,
    Contract,
    Json,
    ServerUnderTest,
    ServerVariant,
    StartServer,
    initialize,
    mask_times,
    without_additions,
)

CONTRACT = Contract("task-manager.md")
PROFILE = "tasks"

INITIALIZE = "Method: initialize"
LIST = "Method: tools/list"
CALL = "Method: tools/call"
TESTS = "Testing Protocol Compliance > Integration Tests > "


@pytest.fixture(params=VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> ServerVariant:
    chosen: ServerVariant = request.param
    return chosen


@pytest.fixture(params=[PROFILE, "all"])
def server(request: pytest.FixtureRequest, serve: StartServer) -> ServerUnderTest:
    """A server with a session opened as in the contract, without a version."""
    return serve(request.param, first_request=CONTRACT[f"{INITIALIZE} > Request"])


@pytest.fixture(params=[PROFILE, "all"])
def shared_server(request: pytest.FixtureRequest, serve_shared: StartServer) -> ServerUnderTest:
    """A shared server for tests that write nothing."""
    return serve_shared(request.param, first_request=CONTRACT[f"{INITIALIZE} > Request"])


def example_text(key: str) -> str:
    text: str = CONTRACT[key]["content"][0]["text"]
    return text


def decode_abridged(text: str) -> Any:
    """Decode the JSON of a text without its ellipses."""
    return json.loads(text.replace(", ...", ""))


#: A task's fields, in the order of the one example that shows them all.
FIELDS = list(json.loads(example_text(f"{CALL} > Examples > Response")))


def assert_like(result: Json, example: Json) -> None:
    """Check that a tool result matches the document, which may leave out fields."""
    assert result.keys() - {"structuredContent"} == {"isError", "content"}
    assert result["isError"] is example.get("isError", False)
    (content,), (documented,) = result["content"], example["content"]
    text, expected = mask_times(content["text"]), mask_times(documented["text"])
    assert content == documented | {"text": content["text"]}
    if "..." not in expected:
        assert text == expected
        return
    actual, given = json.loads(text), decode_abridged(expected)
    assert text == json.dumps(actual, ensure_ascii=False)
    if isinstance(given, dict):
        actual, given = [actual], [given]
    assert len(actual) == len(given)
    for task, part in zip(actual, given, strict=True):
        assert list(task) == FIELDS
        assert task.items() >= part.items()


class TaskReplay(NamedTuple):
    """A response in the document: its request, and the tasks that exist before."""

    request: str
    response: str
    existing: Sequence[Json] = ()


def tasks_listed_in(key: str, **fields: Any) -> list[Json]:
    """Return tasks that get the ids and titles in a response, with others in between."""
    titles = {task["id"]: task["title"] for task in decode_abridged(example_text(key))}
    return [
        {"title": titles[number], **fields} if number in titles else {"title": "Something else"}
        for number in range(1, max(titles) + 1)
    ]


def tasks_counted_in(key: str) -> list[Json]:
    """Return tasks that produce the counts in a response."""
    stats = json.loads(example_text(key))
    projects = [project for project, count in stats["by_project"].items() for _ in range(count)]
    return [
        {"title": "A task", "project": project, "completed": number < stats["completed"]}
        for number, project in enumerate(projects)
    ]


def tool(name: str, response_label: str = "Response Example", existing: Sequence[Json] = ()) -> TaskReplay:
    section = f"Tool Contracts > tool: {name}"
    return TaskReplay(f"{section} > Request Example", f"{section} > {response_label}", existing)


RESEARCH: Json = {"title": "Research MCP spec", "project": "Deep Dive Coding"}
LISTED = "Tool Contracts > tool: task_list > Response Example"
FOUND = "Tool Contracts > tool: task_search > Response Example"
STATS = "Tool Contracts > tool: task_stats > Response Example"

REPLAYS = [
    TaskReplay(f"{CALL} > Examples > Request", f"{CALL} > Examples > Response"),
    TaskReplay(f"{CALL} > Examples > Request (2)", f"{CALL} > Examples > Response (2)"),
    tool(
        "task_list",
        existing=[
            *tasks_listed_in(LISTED, project=RESEARCH["project"]),
            RESEARCH | {"completed": True},
            {"title": "Elsewhere", "project": "Personal"},
        ],
    ),
    tool("task_get", "Response Example (Success)", [RESEARCH]),
    tool("task_get", "Response Example (Not Found)"),
    tool("task_update", existing=[RESEARCH]),
    tool("task_complete", existing=[RESEARCH]),
    tool("task_delete", existing=[RESEARCH]),
    tool("task_search", existing=tasks_listed_in(FOUND)),
    tool("task_stats", existing=tasks_counted_in(STATS)),
]


@CONTRACT.replays(*(replay.request for replay in REPLAYS), *(replay.response for replay in REPLAYS))
@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.response)
def test_the_response_matches_the_contract(server: ServerUnderTest, replay: TaskReplay) -> None:
    for task in replay.existing:
        created = server.data("task_create", title=task["title"], project=task.get("project"))
        if task.get("completed"):
            server.text("task_complete", task_id=created["id"])
    result = server.ask(CONTRACT[replay.request])["result"]
    assert_like(result, CONTRACT[replay.response])


# Bodies of HTTP examples are replayed here in an envelope; test_task_manager_http.py replays them as written.


INITIALIZE_RESPONSES = {"Request": "Response (Success)", "Example > Request": "Example > Response"}


@CONTRACT.replays(
    *(f"{INITIALIZE} > {key}" for key in [*INITIALIZE_RESPONSES, *INITIALIZE_RESPONSES.values()])
)
@pytest.mark.parametrize("request_key", INITIALIZE_RESPONSES)
def test_the_response_to_initialize_matches_the_contract(serve_shared: StartServer, request_key: str) -> None:
    server = serve_shared(PROFILE, first_request=CONTRACT[f"{INITIALIZE} > {request_key}"])
    assert server.first_response["result"] == CONTRACT[f"{INITIALIZE} > {INITIALIZE_RESPONSES[request_key]}"]


@CONTRACT.replays(f"{LIST} > Request", f"{LIST} > Response (Success)")
def test_tools_are_listed_as_in_the_contract(shared_server: ServerUnderTest) -> None:
    listed = shared_server.ask(CONTRACT[f"{LIST} > Request"])["result"]["tools"]
    (documented,) = CONTRACT[f"{LIST} > Response (Success)"]["tools"]
    (create,) = [without_additions(tool) for tool in listed if tool["name"] == "task_create"]
    # An addition to the contract.
    del create["inputSchema"]["properties"]["due_date"]
    assert create == documented


@CONTRACT.replays(f"{LIST} > Example > Request", f"{LIST} > Example > Response")
def test_the_tools_list_example_matches_the_contract(serve_shared: StartServer) -> None:
    listed = serve_shared(PROFILE).ask(CONTRACT[f"{LIST} > Example > Request"])["result"]["tools"]
    documented = CONTRACT[f"{LIST} > Example > Response"]["tools"]
    assert len(listed) == len(documented) + 6
    assert [without_additions(tool) | {"inputSchema": {}} for tool in listed[:2]] == documented


#: Each tool's purpose and the text of its argument list, in the document's order.
TOOLS = {
    name: (purpose, arguments)
    for name, purpose, arguments in re.findall(
        r"^### tool: (\w+)\n\n\*\*Purpose\*\*: (.*?)\n\n\*\*Arguments\*\*:\n(.*?)\n\n",
        CONTRACT.text,
        re.DOTALL | re.MULTILINE,
    )
}


@pytest.mark.parametrize("name", TOOLS)
def test_the_arguments_of_the_tool_match_the_contract(shared_server: ServerUnderTest, name: str) -> None:
    purpose, listing = TOOLS[name]
    listed = shared_server.tools()[name]
    arguments = re.findall(r"^- `(\w+)` \((\w+), (.*?)\)", listing, re.MULTILINE)
    schema = listed["inputSchema"]
    assert schema["type"] == "object"
    types = {argument: member["type"] for argument, member in schema["properties"].items()}
    if name in {"task_create", "task_update"}:
        # An addition to the contract. A null clears the date of an existing task.
        assert types.pop("due_date") == ("string" if name == "task_create" else ["string", "null"])
    assert list(types.items()) == [(argument, kind) for argument, kind, _ in arguments]
    required = [argument for argument, _, need in arguments if need == "**required**"]
    assert schema.get("required", []) == required
    assert listed["description"] == purpose


PLACEHOLDER = {"name": "task_get", "arguments": {"task_id": 1}}


@CONTRACT.replays(
    "Endpoints > MCP Methods Handler > Request Body",
    f"{CALL} > Request",
    f"{CALL} > Response (Success)",
    f"{CALL} > Response (Error)",
    "Error Codes > Application Errors > Error Response Format",
)
def test_every_call_has_the_general_format(server: ServerUnderTest) -> None:
    body = CONTRACT["Endpoints > MCP Methods Handler > Request Body"]
    request = CONTRACT[f"{CALL} > Request"]
    assert request.keys() == body.keys()
    assert request["params"].keys() == PLACEHOLDER.keys()
    request["params"] |= PLACEHOLDER
    refused = server.ask(request)["result"]
    for key in (f"{CALL} > Response (Error)", "Error Codes > Application Errors > Error Response Format"):
        assert_like(refused, with_text(key, "Task 1 not found"))
    task = server.text("task_create", title="A task")
    assert_like(server.ask(request)["result"], with_text(f"{CALL} > Response (Success)", task))


def with_text(key: str, text: str) -> Json:
    """Return an example with its placeholder replaced with this text."""
    example: Json = CONTRACT[key]
    example["content"][0]["text"] = text
    return example


CONTRACT.record(
    "replayed over HTTP, in test_task_manager_http.py",
    "Endpoints > Protocol Discovery > Response Headers",
    "Endpoints > Protocol Discovery > Example",
    "Endpoints > MCP Methods Handler > Request Headers",
    *(key for key in CONTRACT.examples if key.startswith(TESTS)),
)


@pytest.mark.parametrize("requested", REQUESTED_VERSIONS)
def test_a_known_version_is_echoed_and_any_other_gets_that_of_the_contract(
    serve_shared: StartServer, requested: str | None
) -> None:
    documented = CONTRACT[f"{INITIALIZE} > Response (Success)"]
    if requested in HANDSHAKE_VERSIONS:
        documented["protocolVersion"] = requested
    server = serve_shared(PROFILE, first_request=initialize(requested))
    assert server.first_response["result"] == documented


def test_exactly_the_tools_of_the_contract_are_listed_in_its_order(serve_shared: StartServer) -> None:
    server = serve_shared(PROFILE)
    assert list(server.tools()) == list(TOOLS)
    assert "nextCursor" not in server.request("tools/list")
    appendix = re.findall(r"^\d\. `(\w+)` - ", CONTRACT.text, re.MULTILINE)
    assert list(TOOLS) == appendix


def test_an_unknown_tool_is_named_in_the_error(shared_server: ServerUnderTest) -> None:
    error = shared_server.error("tools/call", {"name": "nope", "arguments": {}})
    assert error == {"code": -32602, "message": "Unknown tool: nope"}


@pytest.mark.parametrize(
    "method", ["prompts/list", "prompts/get", "resources/list", "resources/read", "no/such"]
)
def test_methods_that_are_not_in_the_contract_are_not_found(serve_shared: StartServer, method: str) -> None:
    error = serve_shared(PROFILE).error(method, {"name": "x", "uri": "file:///x"})
    assert error["code"] == -32601


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("task_create", {"title": "A task"}), ("task_get", {"task_id": 1}), ("task_stats", {})],
)
def test_structured_content_equals_the_json_of_the_text(
    server: ServerUnderTest, name: str, arguments: Json
) -> None:
    server.text("task_create", title="A task")
    result = server.call(name, **arguments)
    assert result["structuredContent"] == json.loads(result["content"][0]["text"])


def test_json_is_encoded_as_python_does(server: ServerUnderTest) -> None:
    notes = 'Größe 🎒 "/\\ \b\t\n\f\r\x01\x7f\u2028'
    text = server.text("task_create", title="A task", notes=notes)
    assert f'"notes": {json.dumps(notes, ensure_ascii=False)}, "due_date": null' in text


def test_every_example_is_replayed() -> None:
    assert CONTRACT.unreplayed() == []
