"""The responses that clients get for the return values and exceptions of handlers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from dittybag.protocol.eras.versions import (
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    VERSIONS,
)
from dittybag.protocol.features import PromptDefinition, ResourceDefinition, ResourceTemplateDefinition
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server, ServerLimits
from dittybag.protocol.types import (
    Annotations,
    Audio,
    Content,
    Icon,
    Image,
    PromptArgument,
    PromptMessage,
    ResourceLink,
    Text,
    ToolResult,
)
from dittybag.protocol.wire_errors import InvalidParams, ToolError
from tests.protocol.engine_servers import full_server
from tests.protocol.memory_client import MemoryClient


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_tool_error_becomes_a_result_for_the_model(version: str) -> None:
    async with MemoryClient(full_server(), version) as client:
        result = await client.call("fail")
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "The cupboard is bare; fill it first"}]


@pytest.mark.parametrize("tool", ["crash", "exit"])
async def test_an_unexpected_exception_is_logged_and_its_details_are_not_sent(
    tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with MemoryClient(full_server()) as client:
        with caplog.at_level(logging.ERROR):
            error = await client.error("tools/call", {"name": tool})
        assert error == {"code": -32603, "message": "Internal error"}
        assert await client.request("ping") == {}
    assert caplog.records[0].exc_info is not None


@pytest.mark.parametrize("arguments", [[], "x", 7, True])
async def test_arguments_that_are_not_an_object_are_reported_to_the_model(arguments: Any) -> None:
    async with MemoryClient(full_server()) as client:
        result = await client.request("tools/call", {"name": "echo", "arguments": arguments})
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith("Invalid arguments for echo: must be an object, not ")


async def test_all_violations_of_a_call_are_reported_together() -> None:
    async with MemoryClient(full_server()) as client:
        result = await client.call(
            "order", {"count": 11, "speed": "warp", "tags": ["a", "b", 3, "d"], "note": 5, "extra": 1}
        )
    assert result["isError"] is True
    assert result["content"][0]["text"] == (
        "Invalid arguments for order: `title` is required; `count` must be at most 10, not 11; "
        '`speed` must be one of "fast", "slow", not "warp"; `tags` must have at most 3 items, not 4; '
        "`tags[2]` must be a string, not the number 3; `note` must be a string or null, not the number 5; "
        "`extra` is not a known field (known: title, count, speed, tags, note)"
    )


async def test_a_tool_can_have_its_own_error_format() -> None:
    server = full_server()

    class Title(Struct):
        title: str

    @server.tool(
        "formatted", Title, format_error=lambda error: ToolResult.from_text(f"No: {error}", is_error=True)
    )
    async def formatted(arguments: Title, ctx: Context) -> str:
        raise ToolError("later")

    async with MemoryClient(server) as client:
        early = await client.call("formatted", {})
        late = await client.call("formatted", {"title": "x"})
    assert early["content"][0]["text"] == "No: Invalid arguments for formatted: `title` is required"
    assert late["content"][0]["text"] == "No: later"


async def test_unsupported_keywords_in_a_custom_schema_are_ignored() -> None:
    server = full_server()

    class Loose(Struct):
        amount: int

    schema = {
        "type": "object",
        "properties": {
            "amount": {"type": ["integer", "null"]},
            "where": {"$ref": "#anchor"},
            "when": {"type": "date", "oneOf": [{"const": 1}]},
        },
        "required": ["amount"],
    }
    server.tool("loose", Loose, input_schema=schema)(lambda arguments, ctx: "fine")
    async with MemoryClient(server) as client:
        wrong = await client.call("loose", {"amount": "x", "where": 1, "when": 2})
        right = await client.call("loose", {"amount": 1, "where": 1, "when": 2})
    assert wrong["content"][0]["text"] == (
        "Invalid arguments for loose: `amount` must be an integer or null, not a string"
    )
    assert right["isError"] is False


async def test_a_float_without_a_fraction_is_an_integer() -> None:
    async with MemoryClient(full_server()) as client:
        result = await client.call("order", {"title": "tea", "count": 2.0})
    assert result["content"][0]["text"] == "2 x tea"


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_lone_surrogate_in_an_argument_is_reported_as_a_violation(version: str) -> None:
    async with MemoryClient(full_server(), version) as client:
        meta = msgspec.json.encode(client.request_meta())
        client.send(
            b'{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"order","_meta":%b,'
            b'"arguments":{"title":"\\ud83d","tags":["ok","\\udc00"]}}}' % meta
        )
        result = (await client.next())["result"]
    assert result["isError"] is True
    assert "`title` must be valid Unicode text" in result["content"][0]["text"]
    assert "`tags[1]` must be valid Unicode text" in result["content"][0]["text"]


async def test_a_result_that_cannot_be_encoded_is_an_internal_error() -> None:
    server = full_server()

    @server.tool("surrogate")
    def surrogate(arguments: object, ctx: Context) -> str:
        return "\ud800"

    @server.tool("object")
    async def object_(arguments: object, ctx: Context) -> Any:
        return object()

    async with MemoryClient(server) as client:
        for name in ("surrogate", "object"):
            assert (await client.error("tools/call", {"name": name}))["code"] == -32603


async def test_a_result_over_the_size_limit_becomes_an_error() -> None:
    server = full_server(limits=ServerLimits(response_bytes=1000))

    @server.tool("big")
    def big(arguments: object, ctx: Context) -> str:
        return "x" * 2000

    server.add(ResourceDefinition(uri="memo://big", name="big", read=lambda ctx: "x" * 2000))
    async with MemoryClient(server) as client:
        result = await client.call("big")
        assert result["isError"] is True
        assert "more than the maximum of 1000" in result["content"][0]["text"]
        assert (await client.error("resources/read", {"uri": "memo://big"}))["code"] == -32603


# Content and results


CONTENT: Sequence[Content] = (
    Audio(data=b"RIFF", mime_type="audio/wav"),
    ResourceLink(uri="memo://one", name="one", title="The first", icons=(Icon(src="x"),)),
    Image(
        data=b"\x89PNG",
        mime_type="image/png",
        annotations=Annotations(priority=1, last_modified="2025-01-01"),
    ),
    Text(text="plain", meta={"example.org/key": 1}),
)


@pytest.mark.parametrize("version", VERSIONS)
async def test_content_is_converted_for_older_revisions(version: str) -> None:
    server = full_server()
    server.tool("content")(lambda arguments, ctx: list(CONTENT))
    server.add(
        PromptDefinition(
            name="content", run=lambda a, ctx: [PromptMessage(role="user", content=item) for item in CONTENT]
        )
    )
    async with MemoryClient(server, version) as client:
        content = (await client.call("content"))["content"]
        prompt = await client.request("prompts/get", {"name": "content"})
    assert content == [message["content"] for message in prompt["messages"]]
    audio, link, image, text = content
    if version >= V2025_03_26:
        assert audio == {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
    else:
        assert audio == {"type": "text", "text": "[audio/wav audio, 4 bytes]"}
    if version >= V2025_06_18:
        assert (link["type"], link["title"], "icons" in link) == (
            "resource_link",
            "The first",
            version >= V2025_11_25,
        )
        assert image["annotations"] == {"priority": 1.0, "lastModified": "2025-01-01"}
        assert text["_meta"] == {"example.org/key": 1}
    else:
        assert link == {"type": "text", "text": "The first: memo://one"}
        assert image["annotations"] == {"priority": 1.0}
        assert "_meta" not in text


@pytest.mark.parametrize("version", VERSIONS)
async def test_structured_content_other_than_an_object_is_sent_only_in_revisions_that_allow_it(
    version: str,
) -> None:
    server = full_server()
    server.tool("numbers", output=list[int])(lambda arguments, ctx: [1, 2])  # type: ignore[list-item]
    async with MemoryClient(server, version) as client:
        result = await client.call("numbers")
        tools = {tool["name"]: tool for tool in (await client.request("tools/list"))["tools"]}
    assert result["content"][0]["text"] == "[1,2]"
    assert result.get("structuredContent") == ([1, 2] if version == V2026_07_28 else None)
    assert ("outputSchema" in tools["numbers"]) == (version == V2026_07_28)


async def test_the_meta_of_a_result_is_merged_with_the_server_info() -> None:
    server = full_server()
    server.tool("meta")(
        lambda arguments, ctx: ToolResult(
            content=(Text(text="x"),), is_error=False, meta={"example.org/a": 1}
        )
    )
    async with MemoryClient(server, V2026_07_28) as client:
        meta = (await client.call("meta"))["_meta"]
    assert meta["example.org/a"] == 1
    assert meta["io.modelcontextprotocol/serverInfo"]["name"] == "full"


async def test_resources_are_text_or_base64_and_templates_match_uris() -> None:
    async with MemoryClient(full_server()) as client:
        text = await client.request("resources/read", {"uri": "memo://one"})
        blob = await client.request("resources/read", {"uri": "memo://bytes"})
        made = await client.request("resources/read", {"uri": "memo://2025/two%20words"})
    assert text["contents"] == [{"uri": "memo://one", "mimeType": "text/plain", "text": "The first memo"}]
    assert blob["contents"] == [{"uri": "memo://bytes", "blob": "AP8="}]
    assert made["contents"][0]["text"] == "two words of 2025"


@pytest.mark.parametrize(
    "template", ["memo://none", "memo://{a}{b}", "memo://{+a}", "memo://{a}/{a}", "memo://{a"]
)
def test_an_invalid_uri_template_is_refused_at_registration(template: str) -> None:
    with pytest.raises(ValueError, match="URI template"):
        full_server().add(ResourceTemplateDefinition(uri_template=template, name="x", read=lambda v, ctx: ""))


@pytest.mark.parametrize("name", ["", "with space", "x" * 129, "ü"])
def test_an_invalid_tool_name_is_refused_at_registration(name: str) -> None:
    with pytest.raises(ValueError, match="1 to 128"):
        full_server().tool(name)(lambda arguments, ctx: "")


async def test_a_server_has_only_the_methods_of_its_capabilities() -> None:
    server = Server("bare", "1")
    server.tool("only")(lambda arguments, ctx: "x")
    async with MemoryClient(server) as client:
        for method in ("prompts/list", "resources/list", "completion/complete", "logging/setLevel"):
            assert (await client.error(method))["code"] == -32601
        assert (await client.request("initialize", {}))["capabilities"] == {"tools": {"listChanged": True}}


async def test_a_protocol_error_from_a_handler_reaches_the_client_unchanged() -> None:
    server = full_server()

    def refuse(arguments: Any, ctx: Context) -> str:
        raise InvalidParams("Not today", data={"details": "closed"})

    server.add(PromptDefinition(name="refuse", run=refuse))
    async with MemoryClient(server) as client:
        error = await client.error("prompts/get", {"name": "refuse"})
    assert error == {"code": -32602, "message": "Not today", "data": {"details": "closed"}}


async def test_a_list_of_strings_becomes_valid_content() -> None:
    server = Server("lists", "1")
    server.tool("words")(lambda arguments, ctx: ["one", Text(text="two"), "three"])
    server.add(PromptDefinition(name="words", run=lambda arguments, ctx: ["one", "two"]))
    async with MemoryClient(server) as client:
        words = (await client.call("words"))["content"]
        assert words == [{"type": "text", "text": word} for word in ("one", "two", "three")]
        prompt = await client.request("prompts/get", {"name": "words"})
        assert prompt["messages"] == [
            {"role": "user", "content": {"type": "text", "text": word}} for word in ("one", "two")
        ]


INVALID_RETURNS: dict[str, Any] = {
    "a number": 7,
    "None": None,
    "a dict": {"type": "text"},
    "a list of numbers": [1, 2],
    "a list of lists": [["one"]],
}


@pytest.mark.parametrize("returned", INVALID_RETURNS.values(), ids=INVALID_RETURNS.keys())
async def test_a_return_value_that_is_not_content_is_an_internal_error(returned: Any) -> None:
    server = Server("invalid", "1")
    server.tool("bad")(lambda arguments, ctx: returned)
    server.add(
        PromptDefinition(
            name="bad",
            run=lambda arguments, ctx: returned,
            arguments=(PromptArgument(name="x"),),
            completions={"x": lambda typed, others: [returned]},
        )
    )
    server.add(ResourceDefinition(uri="memo://bad", name="bad", read=lambda ctx: returned))
    async with MemoryClient(server) as client:
        for method, params in (
            ("tools/call", {"name": "bad"}),
            ("prompts/get", {"name": "bad"}),
            ("resources/read", {"uri": "memo://bad"}),
            (
                "completion/complete",
                {"ref": {"type": "ref/prompt", "name": "bad"}, "argument": {"name": "x", "value": ""}},
            ),
        ):
            assert await client.error(method, params) == {"code": -32603, "message": "Internal error"}
