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
    content = contents["text"] if "text" in contents else without_ellipsis(contents["blob"])
    return _tool_call(
        "create_resource", name="read", uri=contents["uri"], content=content, mime_type=contents["mimeType"]
    )


def without_ellipsis(blob: str) -> str:
    """Remove the ellipsis from the document's base64. The rest happens to be valid."""
    return blob.removesuffix("...")


def _tool_call(tool: str, **arguments: Any) -> Json:
    return {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def example(section: str) -> Json:
    request: Json = CONTRACT[f"{CALL}{section} > Request"]
    return request


class McpkgReplay(NamedTuple):
    """A response in the document: the calls before it, and how its request deviates."""

    section: str
    response_key: str = "Success Response"
    setup_calls: tuple[Json, ...] = ()
    #: A part of the request, and its replacement.
    replacement: tuple[str, str] | None = None

    @property
    def request(self) -> str:
        return f"{self.section} > Request"

    @property
    def response(self) -> str:
        return f"{self.section} > {self.response_key}"


REPLAYS = [
    McpkgReplay(PROMPTS_LIST, "Response", tuple(listed_prompts())),
    McpkgReplay(PROMPTS_GET, "Response", (read_prompt(),)),
    McpkgReplay(PROMPTS_GET, "Error Response (prompt not found)"),
    McpkgReplay(RESOURCES_LIST, "Response", tuple(listed_resources())),
    McpkgReplay(RESOURCES_READ, "Response (text content)", (read_resource("Response (text content)"),)),
    McpkgReplay(
        RESOURCES_READ,
        "Response (binary content)",
        (read_resource("Response (binary content)"),),
        replacement=("file:///docs/api.md", "file:///image.png"),
    ),
    McpkgReplay(RESOURCES_READ, "Error Response (resource not found)"),
    McpkgReplay(f"{CALL}Create Prompt"),
    McpkgReplay(f"{CALL}Create Prompt", "Error Response (duplicate prompt)", (example("Create Prompt"),)),
    McpkgReplay(
        f"{CALL}Create Prompt", "Error Response (invalid name)", replacement=("test-prompt", "test prompt")
    ),
    McpkgReplay(f"{CALL}Update Prompt", setup_calls=(example("Create Prompt"),)),
    McpkgReplay(f"{CALL}Update Prompt", "Error Response (prompt not found)"),
    McpkgReplay(f"{CALL}Delete Prompt", setup_calls=(example("Create Prompt"),)),
    McpkgReplay(f"{CALL}Create Resource"),
    McpkgReplay(f"{CALL}Update Resource", setup_calls=(example("Create Resource"),)),
    McpkgReplay(f"{CALL}Delete Resource", setup_calls=(example("Create Resource"),)),
]


def expected(key: str, profile: str) -> Any:
    """Return the response in the document, with the agreed deviations."""
    response = CONTRACT[key]
    if key == f"{PROMPTS_LIST} > Response":
        # Agreed: a listed prompt always has `arguments`.
        for prompt in response["result"]["prompts"]:
            prompt["arguments"] = []
    elif key == f"{RESOURCES_LIST} > Response":
        # Agreed: `name` is the identifier. The display name would be `title`, which this revision does not
        # have. The size is an addition.
        for resource in response["result"]["resources"]:
            resource |= {"name": identifier(resource["name"]), "size": len("Words")}
    elif key == f"{RESOURCES_READ} > Response (binary content)":
        (contents,) = response["result"]["contents"]
        contents["blob"] = without_ellipsis(contents["blob"])
    elif key == f"{RESOURCES_READ} > Error Response (resource not found)" and profile == "all":
        # Agreed: the default profile uses the protocol's own code and data.
        response["error"] |= {"code": -32002, "data": {"uri": "file:///docs/api.md"}}
    return response


@CONTRACT.replays(*(replay.request for replay in REPLAYS), *(replay.response for replay in REPLAYS))
@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.response)
def test_the_response_matches_the_contract(server: ServerUnderTest, replay: McpkgReplay) -> None:
    for call in replay.setup_calls:
        assert server.ask(call)["result"]["isError"] is False
    request = CONTRACT.examples[replay.request]
    if replay.replacement:
        assert replay.replacement[0] in request
        request = request.replace(*replay.replacement)
    assert server.ask(msgspec.json.decode(request)) == expected(replay.response, server.profile)


@CONTRACT.replays(f"{INITIALIZE} > Request", f"{INITIALIZE} > Response")
def test_the_response_to_initialize_matches_the_contract(server: ServerUnderTest) -> None:
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
    listing = server.ask(CONTRACT[f"{TOOLS_LIST} > Request"])
    response = CONTRACT[f"{TOOLS_LIST} > Response"]
    listing["result"]["tools"] = [without_additions(tool) for tool in listing["result"]["tools"]]
    if server.profile == PROFILE:
        assert listing == response
        return
    listed = {tool["name"]: tool for tool in listing["result"]["tools"]}
    for tool in response["result"]["tools"]:
        actual, contract_schema = listed[tool["name"]]["inputSchema"], tool["inputSchema"]
        if tool["name"] in {"update_prompt", "delete_prompt"}:
            # The prompt-store contract has these tools too: either address is accepted, so none is required.
            assert actual["properties"].keys() >= contract_schema["properties"].keys()
        else:
            # The default profile adds `arguments` to prompts and `title` to resources.
            for addition in ("arguments", "title"):
                actual["properties"].pop(addition, None)
            actual.pop("$defs", None)
            assert actual == contract_schema


@CONTRACT.replays("Transport > Example Session")
def test_the_example_session_matches_the_contract(server: ServerUnderTest) -> None:
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
def test_error_codes_have_the_meaning_in_the_contract(
    serve_shared: StartServer, frame: bytes, code: int
) -> None:
    assert f"| {code} |" in CONTRACT.text
    assert serve_shared(PROFILE).raw(frame)["error"]["code"] == code


@pytest.mark.parametrize("requested", REQUESTED_VERSIONS)
def test_a_known_version_is_echoed_and_any_other_gets_that_of_the_contract(
    serve_shared: StartServer, requested: str | None
) -> None:
    expected_result = CONTRACT[f"{INITIALIZE} > Response"]["result"]
    if requested in HANDSHAKE_VERSIONS:
        expected_result["protocolVersion"] = requested
    server = serve_shared(PROFILE, first_request=initialize(requested))
    assert server.first_response["result"] == expected_result


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


def test_templates_are_listed_with_the_resources(serve: StartServer) -> None:
    """Agreed: this contract knows one list only."""
    server = serve(PROFILE, "--project", PROJECT)
    for name, uri in {"a": "db://a", "t": "db://tables/{table}", "z": "db://z"}.items():
        server.text("create_resource", name=name, uri=uri, content="{{ table }}")
    listed = server.request("resources/list")["resources"]
    assert [item["uri"] for item in listed] == ["db://a", "db://tables/{table}", "db://z"]
    (template,) = server.request("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "db://tables/{table}"
    # What is listed can be read.
    (content,) = server.request("resources/read", {"uri": "db://tables/{table}"})["contents"]
    assert content["text"] == "{{ table }}"


def test_every_example_is_replayed() -> None:
    assert CONTRACT.unreplayed() == []
