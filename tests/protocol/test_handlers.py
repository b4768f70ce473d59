"""What handlers may do, and what becomes of it on the wire."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from satchel.protocol import (
    Context,
    InvalidParams,
    Limits,
    Page,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    ToolError,
    UrlElicitationRequired,
)
from satchel.protocol.eras import V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28, VERSIONS
from satchel.protocol.transports.memory import MemoryClient
from satchel.protocol.types import (
    Annotations,
    Audio,
    Content,
    Icon,
    Image,
    PromptInfo,
    PromptMessage,
    ResourceLink,
    Text,
    ToolResult,
)
from tests.protocol.servers import full_server


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_tools_own_failure_is_a_result_that_the_model_reads(version: str) -> None:
    async with MemoryClient(full_server(), version) as client:
        result = await client.call("fail")
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "The cupboard is bare; fill it first"}]


@pytest.mark.parametrize("tool", ["crash", "exit"])
async def test_an_unforeseen_failure_tells_the_client_nothing_and_the_log_everything(
    tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with MemoryClient(full_server()) as client:
        with caplog.at_level(logging.ERROR):
            error = await client.error("tools/call", {"name": tool})
        assert error == {"code": -32603, "message": "Internal error"}
        assert await client.request("ping") == {}
    assert caplog.records[0].exc_info is not None


async def test_an_unknown_tool_is_named_in_the_error() -> None:
    async with MemoryClient(full_server()) as client:
        error = await client.error("tools/call", {"name": "nope"})
    assert error == {"code": -32602, "message": "Unknown tool: nope"}


@pytest.mark.parametrize("arguments", [[], "x", 7, True])
async def test_arguments_that_are_no_object_are_invalid_params(arguments: Any) -> None:
    async with MemoryClient(full_server()) as client:
        error = await client.error("tools/call", {"name": "echo", "arguments": arguments})
    assert error["code"] == -32602


async def test_all_violations_of_a_call_are_reported_together() -> None:
    async with MemoryClient(full_server()) as client:
        result = await client.call(
            "order", {"count": 11, "speed": "warp", "tags": ["a", "b", 3, "d"], "note": 5, "extra": 1}
        )
    assert result["isError"] is True
    assert result["content"][0]["text"] == (
        "Invalid arguments for order: `title` is required; `count` must be at most 10, not 11; "
        '`speed` must be one of "fast", "slow", not "warp"; `tags` must have at most 3 items, it has 4; '
        "`tags[2]` must be a string, not the number 3; `note` must be a string or null, not the number 5; "
        "`extra` is not known here (known: title, count, speed, tags, note)"
    )


async def test_a_tool_may_word_its_failures_itself() -> None:
    server = full_server()

    class Title(Struct):
        title: str

    @server.tool("worded", Title, explain=lambda error: ToolResult.of(f"No: {error}", is_error=True))
    async def worded(arguments: Title, ctx: Context) -> str:
        raise ToolError("later")

    async with MemoryClient(server) as client:
        early = await client.call("worded", {})
        late = await client.call("worded", {"title": "x"})
    assert early["content"][0]["text"] == "No: Invalid arguments for worded: `title` is required"
    assert late["content"][0]["text"] == "No: later"


async def test_a_whole_number_written_with_a_point_is_an_integer() -> None:
    async with MemoryClient(full_server()) as client:
        result = await client.call("order", {"title": "tea", "count": 2.0})
    assert result["content"][0]["text"] == "2 x tea"


@pytest.mark.parametrize("version", VERSIONS)
async def test_half_a_surrogate_pair_in_an_argument_is_a_violation_like_any_other(version: str) -> None:
    async with MemoryClient(full_server(), version) as client:
        envelope = msgspec.json.encode(client._envelope())
        client.send(
            b'{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"order","_meta":%b,'
            b'"arguments":{"title":"\\ud83d","tags":["ok","\\udc00"]}}}' % envelope
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


async def test_an_answer_that_clients_would_drop_becomes_an_error_that_says_so() -> None:
    server = full_server(limits=Limits(answer_bytes=1000))

    @server.tool("big")
    def big(arguments: object, ctx: Context) -> str:
        return "x" * 2000

    server.add(Resource(uri="memo://big", name="big", read=lambda ctx: "x" * 2000))
    async with MemoryClient(server) as client:
        result = await client.call("big")
        assert result["isError"] is True
        assert "more than the 1000 that fit in a message" in result["content"][0]["text"]
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
async def test_content_is_fitted_to_what_the_revision_knows(version: str) -> None:
    server = full_server()
    server.tool("content")(lambda arguments, ctx: list(CONTENT))
    server.add(
        Prompt(
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
async def test_structured_content_that_is_no_object_waits_for_a_revision_that_allows_it(version: str) -> None:
    server = full_server()
    server.tool("numbers", output=list[int])(lambda arguments, ctx: [1, 2])  # type: ignore[list-item]
    async with MemoryClient(server, version) as client:
        result = await client.call("numbers")
        tools = {tool["name"]: tool for tool in (await client.request("tools/list"))["tools"]}
    assert result["content"][0]["text"] == "[1,2]"
    assert result.get("structuredContent") == ([1, 2] if version == V2026_07_28 else None)
    assert ("outputSchema" in tools["numbers"]) == (version == V2026_07_28)


async def test_a_results_own_meta_is_kept_beside_ours() -> None:
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


async def test_resources_are_text_or_base64_and_templates_match_their_uris() -> None:
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
def test_a_template_that_cannot_be_matched_is_refused_when_it_is_registered(template: str) -> None:
    with pytest.raises(ValueError, match="URI template"):
        full_server().add(ResourceTemplate(uri_template=template, name="x", read=lambda v, ctx: ""))


@pytest.mark.parametrize("name", ["", "with space", "x" * 129, "ü"])
def test_a_tool_name_that_clients_refuse_is_refused_when_it_is_registered(name: str) -> None:
    with pytest.raises(ValueError, match="1 to 128"):
        full_server().tool(name)(lambda arguments, ctx: "")


async def test_missing_prompt_arguments_are_named() -> None:
    async with MemoryClient(full_server()) as client:
        error = await client.error("prompts/get", {"name": "greet", "arguments": {"language": "x"}})
        unknown = await client.error("prompts/get", {"name": "nope"})
    assert (error["code"], error["message"]) == (
        -32602,
        "Missing required arguments for the prompt greet: who",
    )
    assert (unknown["code"], unknown["message"]) == (-32602, "Unknown prompt: nope")


async def test_a_server_has_only_the_methods_of_what_it_offers() -> None:
    server = Server("bare", "1")
    server.tool("only")(lambda arguments, ctx: "x")
    async with MemoryClient(server) as client:
        for method in ("prompts/list", "resources/list", "completion/complete", "logging/setLevel"):
            assert (await client.error(method))["code"] == -32601
        assert (await client.request("initialize", {}))["capabilities"] == {"tools": {"listChanged": True}}


# Pages


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("method", "member", "count"), [("tools/list", "tools", 7), ("resources/list", "resources", 2)]
)
async def test_pages_follow_each_other_without_gap_or_overlap(
    version: str, method: str, member: str, count: int
) -> None:
    async with MemoryClient(full_server(), version) as client:
        whole = (await client.request(method))[member]
    async with MemoryClient(full_server(page_size=2), version) as client:
        seen: list[Any] = []
        params: dict[str, Any] = {}
        while True:
            page = await client.request(method, params)
            assert 1 <= len(page[member]) <= 2
            seen += page[member]
            if "nextCursor" not in page:
                break
            params = {"cursor": page["nextCursor"]}
    assert seen == whole
    assert len(seen) == count


@pytest.mark.parametrize(
    "cursor", ["", "x", "bm90IGpzb24", 7, [], "WyJ0b29scy9saXN0Iiw5OTldCg", "=" * 5000, "é"]
)
async def test_a_cursor_we_did_not_write_is_refused(cursor: Any) -> None:
    async with MemoryClient(full_server(page_size=2)) as client:
        assert (await client.error("tools/list", {"cursor": cursor}))["code"] == -32602


async def test_a_cursor_of_one_list_does_not_work_for_another() -> None:
    async with MemoryClient(full_server(page_size=1)) as client:
        cursor = (await client.request("tools/list"))["nextCursor"]
        assert (await client.error("resources/list", {"cursor": cursor}))["code"] == -32602


async def test_a_source_of_ones_own_is_asked_page_by_page_and_encoded_once_per_stamp() -> None:
    asked: list[Any] = []

    class Letters:
        """Prompts named after the letters, two to a page, which a length of nothing must not hide."""

        mark: str | None = "first"

        def __len__(self) -> int:
            return 0

        def stamp(self, ctx: Context) -> str | None:
            return self.mark

        async def list(self, position: str | int | None, ctx: Context) -> Page[PromptInfo]:
            asked.append(position)
            letters = "abcde"
            start = 0 if position is None else letters.index(str(position))
            page = letters[start : start + 2]
            following = letters[start + 2 : start + 3] or None
            return Page(tuple(PromptInfo(name=letter, arguments=()) for letter in page), following)

        def get(self, name: str, arguments: Any, ctx: Context) -> str:
            return f"The letter {name}"

        def complete(self, request: Any, ctx: Context) -> tuple[str, ...]:
            return ()

    source = Letters()
    server = Server("letters", "1", prompts=source)
    async with MemoryClient(server) as client:
        names: list[str] = []
        params: dict[str, Any] = {}
        while True:
            page = await client.request("prompts/list", params)
            names += [prompt["name"] for prompt in page["prompts"]]
            if "nextCursor" not in page:
                break
            params = {"cursor": page["nextCursor"]}
        assert names == list("abcde")
        assert asked == [None, "c", "e"]
        await client.request("prompts/list")
        assert len(asked) == 3
        source.mark = "second"
        await client.request("prompts/list")
        source.mark = None
        await client.request("prompts/list")
        await client.request("prompts/list")
        assert asked[3:] == [None, None, None]
        got = await client.request("prompts/get", {"name": "a"})
        assert got["messages"][0]["content"]["text"] == "The letter a"
        with pytest.raises(TypeError):
            server.add(Prompt(name="x", run=lambda arguments, ctx: ""))


# Completion


async def test_completions_are_filtered_capped_and_know_the_other_arguments() -> None:
    async with MemoryClient(full_server(), V2025_11_25) as client:
        ref = {"type": "ref/prompt", "name": "greet"}
        languages = await client.request(
            "completion/complete", {"ref": ref, "argument": {"name": "language", "value": "e"}}
        )
        people = await client.request(
            "completion/complete",
            {
                "ref": ref,
                "argument": {"name": "who", "value": "A"},
                "context": {"arguments": {"language": "French"}},
            },
        )
        years = await client.request(
            "completion/complete",
            {
                "ref": {"type": "ref/resource", "uri": "memo://{year}/{name}"},
                "argument": {"name": "year", "value": ""},
            },
        )
    assert languages["completion"] == {"values": ["English", "Esperanto"], "total": 2, "hasMore": False}
    assert len(people["completion"]["values"]) == 100
    assert people["completion"]["values"][0] == "A0 (French)"
    assert (people["completion"]["total"], people["completion"]["hasMore"]) == (150, True)
    assert years["completion"]["values"] == ["2024", "2025"]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"ref": {"type": "ref/prompt", "name": "greet"}},
        {"ref": {"type": "ref/prompt", "name": "nope"}, "argument": {"name": "who", "value": ""}},
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "nope", "value": ""}},
        {"ref": {"type": "ref/other"}, "argument": {"name": "who", "value": ""}},
        {"ref": {"type": "ref/resource", "uri": "memo://no"}, "argument": {"name": "who", "value": ""}},
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": 7}},
    ],
)
async def test_a_completion_of_nothing_is_invalid_params(params: dict[str, Any]) -> None:
    async with MemoryClient(full_server()) as client:
        assert (await client.error("completion/complete", params))["code"] == -32602


# Progress and log


@pytest.mark.parametrize("version", VERSIONS)
async def test_progress_goes_only_to_those_who_asked_and_only_forward(version: str) -> None:
    server = full_server()

    @server.tool("work")
    async def work(arguments: object, ctx: Context) -> str:
        ctx.progress(1, 3, "one")
        ctx.progress(1, 3, "again")
        await asyncio.sleep(0)
        ctx.progress(2.5, 3, "nearly")
        return "done"

    async with MemoryClient(server, version) as client:
        await client.call("work")
        assert client.inbox.empty()
        await client.request("tools/call", {"name": "work"}, meta={"progressToken": "p"})
        sent = [client.inbox.get_nowait()["params"] for _ in range(client.inbox.qsize())]
    words = {} if version == V2024_11_05 else {"message": "one"}
    assert sent[0] == {"progressToken": "p", "progress": 1, "total": 3, **words}
    assert [item["progress"] for item in sent] == [1, 2.5]


async def test_nothing_is_said_of_a_request_after_its_answer() -> None:
    server = full_server()
    kept: list[Context] = []

    @server.tool("keep")
    def keep(arguments: object, ctx: Context) -> str:
        kept.append(ctx)
        return "done"

    async with MemoryClient(server) as client:
        await client.request("tools/call", {"name": "keep"}, meta={"progressToken": 1})
        kept[0].progress(1)
        kept[0].log("error", "too late")
        assert client.inbox.empty()


async def test_a_new_handshake_is_a_new_session() -> None:
    server = _chatty()
    async with MemoryClient(server) as client:
        await client.request("logging/setLevel", {"level": "debug"})
        await client.request("resources/subscribe", {"uri": "memo://one"})
        await client.request("initialize", {"protocolVersion": V2025_06_18})
        await client.call("chat")
        assert (await client.next())["params"]["level"] == "warning"
        server.resource_updated("memo://one")
        assert client.inbox.empty()


def _chatty() -> Server:
    server = full_server()

    @server.tool("chat")
    def chat(arguments: object, ctx: Context) -> str:
        ctx.log("debug", "quiet")
        ctx.log("warning", {"loud": True}, logger="chat")
        return "done"

    return server


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != V2026_07_28])
async def test_log_messages_follow_the_level_of_the_session(version: str) -> None:
    async with MemoryClient(_chatty(), version) as client:
        await client.call("chat")
        assert (await client.next())["params"] == {
            "level": "warning",
            "data": {"loud": True},
            "logger": "chat",
        }
        assert client.inbox.empty()
        await client.request("logging/setLevel", {"level": "debug"})
        await client.call("chat")
        assert client.inbox.qsize() == 2
        assert (await client.error("logging/setLevel", {"level": "loud"}))["code"] == -32602


async def test_a_stateless_request_gets_log_messages_only_if_it_names_a_level() -> None:
    async with MemoryClient(_chatty(), V2026_07_28) as client:
        await client.call("chat")
        assert client.inbox.empty()
        await client.request(
            "tools/call", {"name": "chat"}, meta={"io.modelcontextprotocol/logLevel": "warning"}
        )
        assert (await client.next())["params"]["level"] == "warning"
        assert client.inbox.empty()


# Concurrency and cancellation


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_cancelled_request_is_stopped_and_never_answered(version: str) -> None:
    server = full_server()
    stopped = asyncio.Event()

    @server.tool("stoppable")
    async def stoppable(arguments: object, ctx: Context) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    async with MemoryClient(server, version) as client:
        request_id, future = client.start("tools/call", {"name": "stoppable"}, request_id=7)
        client.notify("notifications/cancelled", {"requestId": "7"})
        await client.request("tools/list")
        assert not stopped.is_set(), '"7" is another id than 7'
        client.notify("notifications/cancelled", {"requestId": request_id, "reason": "changed my mind"})
        await asyncio.wait_for(stopped.wait(), 5)
        await client.request("tools/list")
        assert not future.done()
        assert client.dropped == 1


async def test_an_id_that_was_cancelled_may_be_used_again_at_once() -> None:
    server = full_server()
    release = asyncio.Event()

    @server.tool("slow_to_stop")
    async def slow_to_stop(arguments: object, ctx: Context) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()
        return "never"

    async with MemoryClient(server) as client:
        client.start("tools/call", {"name": "slow_to_stop"}, request_id=1)
        client.notify("notifications/cancelled", {"requestId": 1})
        await client.request("ping")
        _, second = client.start("tools/call", {"name": "wait"}, request_id=1)
        release.set()
        await client.request("ping")
        await client.request("ping")
        client.notify("notifications/cancelled", {"requestId": 1})
        assert client.dropped == 2
        assert not second.done()


async def test_a_cancellation_of_the_handlers_own_is_a_failure_like_any_other() -> None:
    server = full_server()

    @server.tool("own")
    async def own(arguments: object, ctx: Context) -> str:
        task = asyncio.ensure_future(asyncio.sleep(60))
        task.cancel()
        await task
        return "never"

    async with MemoryClient(server) as client:
        assert (await client.error("tools/call", {"name": "own"}))["message"] == "Internal error"


async def test_progress_is_left_out_while_the_client_does_not_read() -> None:
    server = full_server()

    @server.tool("talk")
    def talk(arguments: object, ctx: Context) -> str:
        ctx.progress(1)
        return "done"

    async with MemoryClient(server) as client:
        client.full = True
        await client.request("tools/call", {"name": "talk"}, meta={"progressToken": 1})
        assert client.inbox.empty()


async def test_a_handler_that_will_not_be_cancelled_is_still_not_answered() -> None:
    server = full_server()
    release = asyncio.Event()

    @server.tool("stubborn")
    async def stubborn(arguments: object, ctx: Context) -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                ctx.progress(1)
                release.set()
        return "too late"

    async with MemoryClient(server) as client:
        request_id, future = client.start("tools/call", {"name": "stubborn"}, meta={"progressToken": 1})
        client.notify("notifications/cancelled", {"requestId": request_id})
        await client.request("ping")
        await client.request("ping")
        assert not future.done()
        assert client.inbox.empty()


async def test_requests_wait_for_each_other_only_if_they_want_to() -> None:
    server = full_server()
    gate = asyncio.Event()

    @server.tool("gate")
    async def wait_at_gate(arguments: object, ctx: Context) -> str:
        await gate.wait()
        return "through"

    async with MemoryClient(server) as client:
        waiting = [client.start("tools/call", {"name": "gate"})[1] for _ in range(5)]
        assert (await client.call("echo", {"text": "x"}))["content"][0]["text"] == "x"
        assert not any(future.done() for future in waiting)
        gate.set()
        answers = await asyncio.wait_for(asyncio.gather(*waiting), 5)
    assert {answer["id"] for answer in answers} == {2, 3, 4, 5, 6}


async def test_an_id_in_use_cannot_be_used_again_until_it_is_answered() -> None:
    async with MemoryClient(full_server()) as client:
        client.start("tools/call", {"name": "wait"}, request_id="a")
        _, second = client.start("ping", request_id="a")
        assert (await second)["error"]["code"] == -32600
        client.notify("notifications/cancelled", {"requestId": "a"})
        _, third = client.start("ping", request_id="a")
        assert (await third)["result"] == {}


async def test_too_many_requests_at_once_are_refused_one_by_one() -> None:
    async with MemoryClient(full_server(limits=Limits(requests_in_flight=3))) as client:
        for _ in range(3):
            client.start("tools/call", {"name": "wait"})
        assert (await client.error("tools/call", {"name": "wait"}))["code"] == -32603


async def test_a_handler_runs_in_a_task_and_a_context_of_its_own() -> None:
    server = full_server()
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")

    @server.tool("inside")
    async def inside(arguments: object, ctx: Context) -> str:
        before = variable.get()
        variable.set("set")
        async with asyncio.timeout(1):
            await asyncio.sleep(0)
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
        return before

    async with MemoryClient(server) as client:
        for _ in range(2):
            assert (await client.call("inside"))["content"][0]["text"] == "unset"


async def test_a_timeout_inside_a_handler_ends_only_what_it_guards() -> None:
    server = full_server()

    @server.tool("timed")
    async def timed(arguments: object, ctx: Context) -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "timed out"
        return "no"

    async with MemoryClient(server) as client:
        assert (await client.call("timed"))["content"][0]["text"] == "timed out"


@pytest.mark.parametrize("version", [V2025_11_25, V2026_07_28])
async def test_what_is_under_way_when_the_session_ends_is_finished_or_refused(version: str) -> None:
    server = full_server()
    finish = asyncio.Event()

    @server.tool("finishing")
    async def finishing(arguments: object, ctx: Context) -> str:
        await finish.wait()
        return "finished"

    client = MemoryClient(server, version)
    async with client:
        _, done = client.start("tools/call", {"name": "finishing"})
        _, stuck = client.start("tools/call", {"name": "wait"})
        closing = asyncio.ensure_future(client.session.close(grace=0.05))
        finish.set()
        await closing
    assert (await done)["result"]["content"][0]["text"] == "finished"
    assert (await stuck)["error"]["message"] == "The server is shutting down"


@pytest.mark.parametrize("version", VERSIONS)
async def test_pages_to_visit_first_have_a_code_only_in_the_revision_that_has_it(version: str) -> None:
    server = full_server()

    @server.tool("login")
    def login(arguments: object, ctx: Context) -> str:
        raise UrlElicitationRequired(
            [{"mode": "url", "message": "Log in", "url": "https://example.org", "elicitationId": "1"}]
        )

    async with MemoryClient(server, version) as client:
        answer = await client.exchange("tools/call", {"name": "login"})
    if version == V2025_11_25:
        assert answer["error"]["code"] == -32042
        assert answer["error"]["data"]["elicitations"][0]["url"] == "https://example.org"
    else:
        assert answer["result"]["isError"] is True
        assert "https://example.org" in answer["result"]["content"][0]["text"]


async def test_a_protocol_error_of_a_handler_reaches_the_client_as_it_is() -> None:
    server = full_server()

    def refuse(arguments: Any, ctx: Context) -> str:
        raise InvalidParams("Not today", data={"details": "closed"})

    server.add(Prompt(name="refuse", run=refuse))
    async with MemoryClient(server) as client:
        error = await client.error("prompts/get", {"name": "refuse"})
    assert error == {"code": -32602, "message": "Not today", "data": {"details": "closed"}}
