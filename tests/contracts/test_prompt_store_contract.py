"""Every example of the prompt store's contract, replayed in its own profile and in the default one,
over every transport and on both databases."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from tests.contracts.contract_replay import (
    HANDSHAKE_VERSIONS,
    REQUESTED_VERSIONS,
    UUID,
    VARIANTS,
    Contract,
    Json,
    ServerUnderTest,
    ServerVariant,
    StartServer,
    compact,
    initialize,
    mask_times,
    without_additions,
)

CONTRACT = Contract("prompt-store.md")
PROFILE = "prompt-store"

#: The prompt of all examples.
REVIEW: Json = CONTRACT["Tool: get_prompt > Success Response"]
EXAMPLE_ID: str = REVIEW["id"]

#: Each tool's description and the key of its schema, in the document's order.
TOOLS = {
    tool: (re.findall(rf"## Tool: {tool}\n.*?\*\*Description\*\*: (.*?)\n", CONTRACT.text, re.DOTALL)[0], key)
    for key in CONTRACT.examples
    for tool in re.findall(r"Tool: (\w+) > (?:JSON|Input) Schema", key)
}


@pytest.fixture(params=VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> ServerVariant:
    chosen: ServerVariant = request.param
    return chosen


@pytest.fixture(params=[PROFILE, "all"])
def server(request: pytest.FixtureRequest, serve: StartServer) -> ServerUnderTest:
    return serve(request.param)


@pytest.fixture(params=[PROFILE, "all"])
def shared_server(request: pytest.FixtureRequest, serve_shared: StartServer) -> ServerUnderTest:
    """A shared server for tests that write nothing."""
    return serve_shared(request.param)


def add_prompt(server: ServerUnderTest, content: str = REVIEW["content"], **changes: Any) -> str:
    """Store the document's prompt, or a variation of it, and return its id."""
    prompt = {"title": REVIEW["title"], "tags": REVIEW["tags"], "content": content}
    identity: str = server.data("add_prompt", **(prompt | changes))["id"]
    return identity


def add_others(server: ServerUnderTest, count: int, **changes: Any) -> None:
    for number in range(count):
        add_prompt(server, title=f"Other {number}", **changes)


def expected_text(key: str, identity: str, **changes: Any) -> str:
    """Return the text in the document with this prompt id and masked times."""
    return mask_times(compact(CONTRACT[key] | changes).replace(EXAMPLE_ID, identity))


def prompts_in(text: str, key: str, identity: str) -> list[Json]:
    """Return the only prompt of the list in the document, followed by the other prompts in `text`."""
    one: Json = msgspec.json.decode(compact(CONTRACT[key]["prompts"][0]).replace(EXAMPLE_ID, identity))
    rest: list[Json] = msgspec.json.decode(text)["prompts"][1:]
    return [one, *rest]


def snippet(key: str) -> str:
    """Return the snippet in the document, to be used as a content that is not longer."""
    text: str = CONTRACT[key]["prompts"][0]["snippet"]
    return text


@CONTRACT.replays("Tool: add_prompt > Success Response")
def test_add_prompt_success_response(server: ServerUnderTest) -> None:
    text = server.text("add_prompt", title=REVIEW["title"], content=REVIEW["content"], tags=REVIEW["tags"])
    (identity,) = UUID.findall(text)
    assert mask_times(text) == expected_text("Tool: add_prompt > Success Response", identity)


LIST = "Tool: list_prompts > Success Response"


@CONTRACT.replays(LIST)
def test_list_prompts_success_response(server: ServerUnderTest) -> None:
    add_others(server, CONTRACT[LIST]["total"] - 1)
    identity = add_prompt(server, snippet(LIST))
    text = server.text("list_prompts")
    assert mask_times(text) == expected_text(LIST, identity, prompts=prompts_in(text, LIST, identity))
    assert len(msgspec.json.decode(text)["prompts"]) == CONTRACT[LIST]["limit"]


@CONTRACT.replays("Tool: get_prompt > Success Response")
def test_get_prompt_success_response(server: ServerUnderTest) -> None:
    identity = add_prompt(server)
    text = server.text("get_prompt", id=identity)
    assert mask_times(text) == expected_text("Tool: get_prompt > Success Response", identity)


@CONTRACT.replays("Tool: update_prompt > Success Response")
def test_update_prompt_success_response(server: ServerUnderTest) -> None:
    identity = add_prompt(server)
    title = CONTRACT["Tool: update_prompt > Success Response"]["title"]
    text = server.text("update_prompt", id=identity, title=title, content="Other words")
    assert mask_times(text) == expected_text("Tool: update_prompt > Success Response", identity)


@CONTRACT.replays("Tool: delete_prompt > Success Response")
def test_delete_prompt_success_response(server: ServerUnderTest) -> None:
    identity = add_prompt(server)
    text = server.text("delete_prompt", id=identity)
    assert text == expected_text("Tool: delete_prompt > Success Response", identity)


SEARCH = "Tool: search_prompts > Success Response"


@CONTRACT.replays(SEARCH)
def test_search_prompts_success_response(server: ServerUnderTest) -> None:
    found = CONTRACT[SEARCH]
    add_prompt(server, "Words", title="Unrelated")
    add_others(server, found["total"] - 1, content="In review")
    identity = add_prompt(server, snippet(SEARCH))
    text = server.text("search_prompts", query=found["query"])
    assert mask_times(text) == expected_text(SEARCH, identity, prompts=prompts_in(text, SEARCH, identity))
    assert len(msgspec.json.decode(text)["prompts"]) == found["total"]


FILTER = "Tool: filter_by_tags > Success Response"


@CONTRACT.replays(FILTER)
def test_filter_by_tags_success_response(server: ServerUnderTest) -> None:
    found = CONTRACT[FILTER]
    add_prompt(server, title="Unrelated", tags=["writing"])
    add_others(server, found["total"] - 1, tags=["coding"])
    identity = add_prompt(server, snippet(FILTER))
    text = server.text("filter_by_tags", tags=found["matched_tags"])
    assert mask_times(text) == expected_text(FILTER, identity, prompts=prompts_in(text, FILTER, identity))
    assert len(msgspec.json.decode(text)["prompts"]) == found["total"]


@CONTRACT.replays("Tool: list_tags > Success Response")
def test_list_tags_success_response(server: ServerUnderTest) -> None:
    counts = {
        tag["name"]: tag["prompt_count"] for tag in CONTRACT["Tool: list_tags > Success Response"]["tags"]
    }
    for number in range(max(counts.values())):
        tags = [name for name, count in counts.items() if number < count]
        add_prompt(server, title=f"Prompt {number}", tags=tags)
    assert server.text("list_tags") == expected_text("Tool: list_tags > Success Response", EXAMPLE_ID)


#: The arguments that cause each error. STORED_ID is replaced with the id of the stored prompt.
STORED_ID = "stored"
ERRORS: dict[str, Json] = {
    "Tool: add_prompt > Error Responses > DUPLICATE_TITLE": {"title": REVIEW["title"], "content": "Words"},
    "Tool: add_prompt > Error Responses > INVALID_TITLE": {"title": "", "content": "Words"},
    "Tool: add_prompt > Error Responses > INVALID_TAG": {
        "title": "Another",
        "content": "Words",
        "tags": ["fine", "invalid tag!"],
    },
    "Tool: get_prompt > Error Response": {"id": EXAMPLE_ID},
    "Tool: update_prompt > Error Responses > NOT_FOUND": {
        "id": EXAMPLE_ID,
        "title": "New",
        "content": "Words",
    },
    "Tool: update_prompt > Error Responses > DUPLICATE_TITLE": {
        "id": STORED_ID,
        "title": "Taken",
        "content": "Words",
    },
    "Tool: delete_prompt > Error Response": {"id": EXAMPLE_ID},
}


@CONTRACT.replays(*ERRORS)
@pytest.mark.parametrize("key", ERRORS)
def test_the_error_matches_the_contract(server: ServerUnderTest, key: str) -> None:
    stored_id = add_prompt(server)
    add_prompt(server, title="Taken")
    arguments = ERRORS[key]
    if arguments.get("id") == STORED_ID:
        arguments = arguments | {"id": stored_id}
    tool = key.partition(" > ")[0].removeprefix("Tool: ")
    assert server.refusal(tool, **arguments) == compact(CONTRACT[key])


@CONTRACT.replays(*(schema for _, schema in TOOLS.values()))
@pytest.mark.parametrize("tool", TOOLS)
def test_the_schema_of_the_tool_matches_the_contract(shared_server: ServerUnderTest, tool: str) -> None:
    description, key = TOOLS[tool]
    listed = without_additions(shared_server.tools()[tool])
    if shared_server.profile == "all" and tool in {"update_prompt", "delete_prompt"}:
        # The mcpkg contract has these tools too: either address is accepted, so none is required.
        actual, contract_properties = listed["inputSchema"]["properties"], CONTRACT[key]["properties"]
        assert actual.keys() >= contract_properties.keys()
        return
    assert listed["inputSchema"] == CONTRACT[key]
    assert (listed["name"], listed["description"]) == (tool, description)


CONTRACT.record(
    "the JSON Schema below it in the document is replayed",
    "Tool: add_prompt > Zod Schema (Implementation)",
    "Tool: list_prompts > Zod Schema (Implementation)",
    "Tool: list_tags > Zod Schema (Implementation)",
)


@pytest.mark.parametrize("requested", REQUESTED_VERSIONS)
def test_a_known_version_is_echoed_and_any_other_gets_the_newest(
    serve_shared: StartServer, requested: str | None
) -> None:
    result = serve_shared(PROFILE, first_request=initialize(requested)).first_response["result"]
    assert result["protocolVersion"] == (
        requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    )
    # The contract does not say; the SDK that it names declares this.
    assert result["capabilities"] == {"tools": {"listChanged": True}}
    assert result["serverInfo"] == {"name": "prompt-store", "version": "0.1.0"}


def test_exactly_the_tools_of_the_contract_are_listed_in_its_order(serve_shared: StartServer) -> None:
    server = serve_shared(PROFILE)
    assert list(server.tools()) == list(TOOLS)
    assert "nextCursor" not in server.request("tools/list")


def test_an_unknown_tool_is_named_in_the_error(shared_server: ServerUnderTest) -> None:
    error = shared_server.error("tools/call", {"name": "nope", "arguments": {}})
    assert error == {"code": -32602, "message": "Unknown tool: nope"}


@pytest.mark.parametrize(
    "method", ["prompts/list", "prompts/get", "resources/list", "resources/read", "no/such"]
)
def test_methods_that_are_not_in_the_contract_are_not_found(serve_shared: StartServer, method: str) -> None:
    error = serve_shared(PROFILE).error(method, {"name": "x", "uri": "file:///x"})
    assert error["code"] == -32601


def test_structured_content_equals_the_json_of_the_text(server: ServerUnderTest) -> None:
    identity = add_prompt(server)
    for tool, arguments in [("get_prompt", {"id": identity}), ("list_prompts", {}), ("list_tags", {})]:
        result = server.call(tool, **arguments)
        assert result["structuredContent"] == msgspec.json.decode(result["content"][0]["text"])


def test_json_is_encoded_as_json_stringify_does(server: ServerUnderTest) -> None:
    identity = add_prompt(server, 'Größe 🎒 "/\\ \b\t\n\f\r\x01\x7f\u2028')
    encoded = r'"content":"Größe 🎒 \"/\\ \b\t\n\f\r\u0001' + '\x7f\u2028"'
    assert encoded in server.text("get_prompt", id=identity)


def test_every_code_in_the_summary_is_used(server: ServerUnderTest) -> None:
    add_prompt(server)
    errors = [
        server.refusal("get_prompt", id=EXAMPLE_ID),
        server.refusal("add_prompt", title=REVIEW["title"], content="Words"),
        server.refusal("add_prompt", title="x" * 201, content="Words"),
        server.refusal("add_prompt", title="Another", content="Words", tags=["ä"]),
        server.refusal("add_prompt", title="Another", content=""),
    ]
    codes = [msgspec.json.decode(error)["error"]["code"] for error in errors]
    summary = CONTRACT.text.partition("## Error Codes Summary")[2]
    assert codes == re.findall(r"^\| ([A-Z_]+) ", summary, re.MULTILINE)


def test_every_example_is_replayed() -> None:
    assert CONTRACT.unreplayed() == []
