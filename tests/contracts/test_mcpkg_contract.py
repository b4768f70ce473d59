"""Every example of the mcpkg contract, replayed in its own profile and in the default one,
over every transport and on both databases."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec
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
    without_additions,
)

CONTRACT = Contract("mcpkg-api.md")
PROFILE = "mcpkg"
PROJECT = "auth-module"

INITIALIZE = "Server Information > initialize Request"
PROMPTS_LIST = "Prompts API > prompts/list Request"
PROMPTS_GET = "Prompts API > prompts/get Request"
RESOURCES_LIST = "Resources API > resources/list Request"
RESOURCES_READ = "Resources API > resources/read Request"
TOOLS_LIST = "Tools API > tools/list Request"
CALL = "Tools API > tools/call Request - "


@pytest.fixture(params=VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> ServerVariant:
    chosen: ServerVariant = request.param
    return chosen


@pytest.fixture(scope="module")
def project() -> str:
    return PROJECT


@pytest.fixture(params=[PROFILE, "all"])
def server(request: pytest.FixtureRequest, serve: StartServer) -> ServerUnderTest:
    """A server on the contract's project, with a session opened as the contract shows."""
    return serve(request.param, "--project", PROJECT, first_request=CONTRACT[f"{INITIALIZE} > Request"])


def identifier(display_name: str) -> str:
    return display_name.lower().replace(" ", "-")


def listed_prompts() -> list[Json]:
    prompts = CONTRACT[f"{PROMPTS_LIST} > Response"]["result"]["prompts"]
    return [_tool_call("create_prompt", content="Words", **prompt) for prompt in prompts]


def listed_resources() -> list[Json]:
    resources = CONTRACT[f"{RESOURCES_LIST} > Response"]["result"]["resources"]
    return [
        _tool_call(
            "create_resource",
            name=identifier(resource["name"]),
            uri=resource["uri"],
            content="Words",
            mime_type=resource["mimeType"],
            description=resource["description"],
        )
        for resource in resources
    ]


def read_prompt() -> Json:
    result = CONTRACT[f"{PROMPTS_GET} > Response"]["result"]
    name = CONTRACT[f"{PROMPTS_GET} > Request"]["params"]["name"]
    content = result["messages"][0]["content"]["text"]
    return _tool_call("create_prompt", name=name, content=content, description=result["description"])


def read_resource(example: str) -> Json:
    (contents,) = CONTRACT[f"{RESOURCES_READ} > {example}"]["result"]["contents"]
    content = contents["text"] if "text" in contents else whole(contents["blob"])
    return _tool_call(
        "create_resource", name="read", uri=contents["uri"], content=content, mime_type=contents["mimeType"]
    )


def whole(blob: str) -> str:
    """The document abbreviates its base64; what is left of it happens to be complete groups."""
    return blob.removesuffix("...")


def _tool_call(tool: str, **arguments: Any) -> Json:
    return {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def example(section: str) -> Json:
    request: Json = CONTRACT[f"{CALL}{section} > Request"]
    return request


class Replay(NamedTuple):
    """An answer of the document: what goes before, and where its request differs from the one shown."""

    section: str
    answer: str = "Success Response"
    given: tuple[Json, ...] = ()
    #: Words of the request, and what stands in their place here.
    but: tuple[str, str] | None = None

    @property
    def request(self) -> str:
        return f"{self.section} > Request"

    @property
    def response(self) -> str:
        return f"{self.section} > {self.answer}"


REPLAYS = [
    Replay(PROMPTS_LIST, "Response", tuple(listed_prompts())),
    Replay(PROMPTS_GET, "Response", (read_prompt(),)),
    Replay(PROMPTS_GET, "Error Response (prompt not found)"),
    Replay(RESOURCES_LIST, "Response", tuple(listed_resources())),
    Replay(RESOURCES_READ, "Response (text content)", (read_resource("Response (text content)"),)),
    Replay(
        RESOURCES_READ,
        "Response (binary content)",
        (read_resource("Response (binary content)"),),
        but=("file:///docs/api.md", "file:///image.png"),
    ),
    Replay(RESOURCES_READ, "Error Response (resource not found)"),
    Replay(f"{CALL}Create Prompt"),
    Replay(f"{CALL}Create Prompt", "Error Response (duplicate prompt)", (example("Create Prompt"),)),
    Replay(f"{CALL}Create Prompt", "Error Response (invalid name)", but=("test-prompt", "test prompt")),
    Replay(f"{CALL}Update Prompt", given=(example("Create Prompt"),)),
    Replay(f"{CALL}Update Prompt", "Error Response (prompt not found)"),
    Replay(f"{CALL}Delete Prompt", given=(example("Create Prompt"),)),
    Replay(f"{CALL}Create Resource"),
    Replay(f"{CALL}Update Resource", given=(example("Create Resource"),)),
    Replay(f"{CALL}Delete Resource", given=(example("Create Resource"),)),
]


def expected(key: str, profile: str) -> Any:
    """The document's answer, with what the settled points say otherwise."""
    answer = CONTRACT[key]
    if key == f"{PROMPTS_LIST} > Response":
        # Settled: a listed prompt always says its arguments.
        for prompt in answer["result"]["prompts"]:
            prompt["arguments"] = []
    elif key == f"{RESOURCES_LIST} > Response":
        # Settled: `name` is the identifier, and display names are a matter of `title`, which this revision
        # does not have. The size is an addition.
        for resource in answer["result"]["resources"]:
            resource |= {"name": identifier(resource["name"]), "size": len("Words")}
    elif key == f"{RESOURCES_READ} > Response (binary content)":
        (contents,) = answer["result"]["contents"]
        contents["blob"] = whole(contents["blob"])
    elif key == f"{RESOURCES_READ} > Error Response (resource not found)" and profile == "all":
        # Settled: the default profile has the protocol's own code for it, and its data.
        answer["error"] |= {"code": -32002, "data": {"uri": "file:///docs/api.md"}}
    return answer


@CONTRACT.replays(*(replay.request for replay in REPLAYS), *(replay.response for replay in REPLAYS))
@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.response)
def test_the_request_is_answered_as_in_the_contract(server: ServerUnderTest, replay: Replay) -> None:
    for call in replay.given:
        assert server.ask(call)["result"]["isError"] is False
    request = CONTRACT.examples[replay.request]
    if replay.but:
        assert replay.but[0] in request
        request = request.replace(*replay.but)
    assert server.ask(msgspec.json.decode(request)) == expected(replay.response, server.profile)


@CONTRACT.replays(f"{INITIALIZE} > Request", f"{INITIALIZE} > Response")
def test_initialize_is_answered_as_in_the_contract(server: ServerUnderTest) -> None:
    response = CONTRACT[f"{INITIALIZE} > Response"]
    if server.profile == PROFILE:
        assert server.first_response == response
    else:
        result = server.first_response["result"]
        assert result["protocolVersion"] == response["result"]["protocolVersion"]
        assert result["capabilities"].keys() >= response["result"]["capabilities"].keys()
        assert result["serverInfo"]["name"] == "dittybag"


@CONTRACT.replays(f"{TOOLS_LIST} > Request", f"{TOOLS_LIST} > Response")
def test_tools_are_listed_as_in_the_contract(server: ServerUnderTest) -> None:
    answer = server.ask(CONTRACT[f"{TOOLS_LIST} > Request"])
    response = CONTRACT[f"{TOOLS_LIST} > Response"]
    answer["result"]["tools"] = [without_additions(tool) for tool in answer["result"]["tools"]]
    if server.profile == PROFILE:
        assert answer == response
        return
    listed = {tool["name"]: tool for tool in answer["result"]["tools"]}
    for tool in response["result"]["tools"]:
        mine, theirs = listed[tool["name"]]["inputSchema"], tool["inputSchema"]
        if tool["name"] in {"update_prompt", "delete_prompt"}:
            # The store contract has these, too: either address will do, so none is required.
            assert mine["properties"].keys() >= theirs["properties"].keys()
        else:
            # The default profile adds `arguments` to prompts and `title` to resources.
            for addition in ("arguments", "title"):
                mine["properties"].pop(addition, None)
            mine.pop("$defs", None)
            assert mine == theirs


@CONTRACT.replays("Transport > Example Session")
def test_the_example_session_runs_as_in_the_contract(server: ServerUnderTest) -> None:
    session = CONTRACT.examples["Transport > Example Session"]
    assert msgspec.json.encode(server.first_response).startswith(b'{"jsonrpc":"2.0","id":1,"result":{')
    lines = re.findall(r"^([→←]) (.*)$", session, re.MULTILINE)
    assert [arrow for arrow, _ in lines] == ["→", "←", "→", "←"]
    request, response = (msgspec.json.decode(line.replace("...", "")) for _, line in lines[2:])
    assert server.ask(request) == response


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"{", -32700),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"no/such"}', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///none"}}', -32602),
    ],
)
def test_error_codes_are_used_for_what_the_contract_says(
    serve_shared: StartServer, frame: bytes, code: int
) -> None:
    assert f"| {code} |" in CONTRACT.text
    assert serve_shared(PROFILE).raw(frame)["error"]["code"] == code


@pytest.mark.parametrize("requested", REQUESTED_VERSIONS)
def test_a_known_version_is_echoed_and_any_other_gets_the_contracts(
    serve_shared: StartServer, requested: str | None
) -> None:
    shown = CONTRACT[f"{INITIALIZE} > Response"]["result"]
    if requested in HANDSHAKE_VERSIONS:
        shown["protocolVersion"] = requested
    server = serve_shared(PROFILE, first_request=initialize(requested))
    assert server.first_response["result"] == shown


def test_optional_fields_without_a_value_are_left_out(server: ServerUnderTest) -> None:
    server.text("create_prompt", name="bare", content="Words")
    server.text("create_resource", name="bare", uri="file:///bare", content="Words")
    assert server.request("prompts/list") == {"prompts": [{"name": "bare", "arguments": []}]}
    assert server.request("prompts/get", {"name": "bare"}) == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Words"}}]
    }
    (resource,) = server.request("resources/list")["resources"]
    # The MIME type has a default in the contract, so it has a value.
    assert resource.items() >= {"uri": "file:///bare", "name": "bare", "mimeType": "text/plain"}.items()
    assert "description" not in resource


@pytest.mark.parametrize("profile", [PROFILE, "all"])
def test_an_unknown_tool_is_named_in_the_error(serve_shared: StartServer, profile: str) -> None:
    error = serve_shared(profile).error("tools/call", {"name": "nope", "arguments": {}})
    assert error == {"code": -32602, "message": "Unknown tool: nope"}


def test_tools_of_other_contracts_are_unknown(serve_shared: StartServer) -> None:
    server = serve_shared(PROFILE)
    assert list(server.tools()) == [
        tool["name"] for tool in CONTRACT[f"{TOOLS_LIST} > Response"]["result"]["tools"]
    ]
    error = server.error("tools/call", {"name": "add_prompt", "arguments": {}})
    assert error == {"code": -32602, "message": "Unknown tool: add_prompt"}


def test_no_example_is_left_unreplayed() -> None:
    assert CONTRACT.unreplayed() == []
