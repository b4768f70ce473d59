"""Questions to the client: separate requests in handshake revisions, rounds of one request in 2026-07-28."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from dittybag.protocol.client_input import Elicit, ListRoots, SampleModel, SamplingMessage
from dittybag.protocol.eras.versions import (
    V2024_11_05,
    V2025_03_26,
    V2025_11_25,
    V2026_07_28,
)
from dittybag.protocol.features import PromptDefinition, ResourceDefinition, ToolDefinition
from dittybag.protocol.request_context import Context
from dittybag.protocol.request_state import StateSealer
from dittybag.protocol.server import Server
from dittybag.protocol.types import Text, ToolResult
from dittybag.protocol.wire_errors import InputRejected
from tests.protocol.engine_servers import full_server
from tests.protocol.memory_client import MemoryClient

ALL_CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}


class PersonForm(Struct):
    name: Annotated[str, Meta(min_length=1)]
    mood: Literal["good", "bad"] = "good"


def asking_server(state_key: bytes | None = None) -> Server:
    server = Server("asking", "1", state_key=state_key)

    @server.tool("greet")
    async def greet(arguments: object, ctx: Context) -> str:
        who = await ctx.elicit("Who are you?", PersonForm, key="person")
        if who.action != "accept" or who.content is None:
            return f"Nobody ({who.action})"
        answer = await ctx.sample(
            SamplingMessage(role="user", content=Text(text=f"Greet {who.content['name']}")),
            max_tokens=50,
            key="greeting",
        )
        return f"{who.content['name']}: {answer.text}"

    @server.tool("together")
    async def together(arguments: object, ctx: Context) -> str:
        question = SampleModel(
            messages=(SamplingMessage(role="user", content=Text(text="?")),),
            max_tokens=5,
            system_prompt="Be brief",
        )
        answers = await ctx.ask(
            {"name": Elicit("Name?", PersonForm), "model": question, "roots": ListRoots()}
        )
        return f"{answers['name'].content['name']}, {answers['model'].text}, {answers['roots'].roots[0].uri}"

    @server.tool("careful")
    async def careful(arguments: object, ctx: Context) -> str:
        try:
            return str(await ctx.roots())
        except InputRejected as rejected:
            return f"rejected with {rejected.code}"

    @server.tool("swallowing")
    async def swallowing(arguments: object, ctx: Context) -> str:
        try:
            return (await ctx.elicit("Sure?", PersonForm)).action
        except Exception:  # noqa: BLE001  # simulates a careless handler
            return "swallowed"

    async def personal(arguments: Any, ctx: Context) -> str:
        return f"For {(await ctx.elicit('Who?', PersonForm)).content}"

    async def read(ctx: Context) -> str:
        return f"Read by {(await ctx.elicit('Who?', PersonForm)).content}"

    server.add(PromptDefinition(name="personal", run=personal))
    server.add(ResourceDefinition(uri="memo://personal", name="personal", read=read))
    return server


@pytest.fixture
async def client() -> AsyncIterator[MemoryClient]:
    async with MemoryClient(asking_server(), V2026_07_28, capabilities=ALL_CAPABILITIES) as client:
        yield client


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


# Handshake revisions


async def test_an_error_from_the_client_reaches_the_handler_or_the_model() -> None:
    async with MemoryClient(asking_server(), V2025_11_25, capabilities=ALL_CAPABILITIES) as client:
        for tool, words in (
            ("careful", "rejected with -1"),
            ("greet", "The client responded to elicitation/create with an error: no"),
        ):
            _, future = client.start("tools/call", {"name": tool})
            question = await client.next()
            client.send(b'{"jsonrpc":"2.0","id":%d,"error":{"code":-1,"message":"no"}}' % question["id"])
            result = (await future)["result"]
            assert result["content"][0]["text"] == words
            assert result["isError"] == (tool == "greet")


@pytest.mark.parametrize(
    "answer", [{}, {"action": "maybe"}, {"action": "accept"}, accept(name=""), accept(name=7)]
)
async def test_an_answer_that_violates_the_schema_is_refused(answer: dict[str, Any]) -> None:
    async with MemoryClient(asking_server(), V2025_11_25, capabilities=ALL_CAPABILITIES) as client:
        _, future = client.start("tools/call", {"name": "greet"})
        client.respond(await client.next(), answer)
        assert (await future)["result"]["isError"] is True
    async with MemoryClient(asking_server(), V2026_07_28, capabilities=ALL_CAPABILITIES) as client:
        error = await client.error("tools/call", {"name": "greet", "inputResponses": {"person": answer}})
        assert error["code"] == -32602


@pytest.mark.parametrize(("effect", "is_delayed"), [("reads", False), ("writes", True)])
async def test_only_a_write_that_asks_delays_later_requests(
    effect: Literal["reads", "writes"], *, is_delayed: bool
) -> None:
    server = Server("ordered", "1")

    async def ask(arguments: object, ctx: Context) -> str:
        return (await ctx.elicit("Sure?", PersonForm)).action

    async def work(arguments: object, ctx: Context) -> str:
        await asyncio.sleep(0)
        return "done"

    server.add(ToolDefinition(name="ask", run=ask, effect=effect))
    server.add(ToolDefinition(name="read", run=work, effect="reads"))
    server.add(ToolDefinition(name="write", run=work, effect="writes"))
    async with MemoryClient(server, V2025_11_25, capabilities=ALL_CAPABILITIES) as client:
        _, asking = client.start("tools/call", {"name": "ask"})
        question = await client.next()
        later = [client.start("tools/call", {"name": name})[1] for name in ("write", "read")]
        if not is_delayed:
            await asyncio.gather(*later)
        assert [future.done() for future in later] == [not is_delayed] * 2
        client.respond(question, {"action": "decline"})
        await asyncio.gather(asking, *later)


async def test_cancelling_a_request_cancels_its_questions() -> None:
    async with MemoryClient(asking_server(), V2025_11_25, capabilities=ALL_CAPABILITIES) as client:
        request_id, future = client.start("tools/call", {"name": "greet"})
        question = await client.next()
        client.notify("notifications/cancelled", {"requestId": request_id})
        withdrawn = await client.next()
        assert withdrawn["method"] == "notifications/cancelled"
        assert withdrawn["params"]["requestId"] == question["id"]
        assert not future.done()


@pytest.mark.parametrize(
    ("version", "capabilities"),
    [
        (V2025_11_25, {}),
        (V2025_11_25, {"elicitation": None}),
        (V2024_11_05, ALL_CAPABILITIES),
        (V2025_03_26, ALL_CAPABILITIES),
    ],
)
async def test_a_client_is_never_asked_without_the_capability(
    version: str, capabilities: dict[str, Any]
) -> None:
    async with MemoryClient(asking_server(), version, capabilities=capabilities) as client:
        result = await client.call("greet")
        assert result["isError"] is True
        assert "elicitation" in result["content"][0]["text"]
        assert client.inbox.empty()


async def test_closing_the_session_fails_pending_questions() -> None:
    async with MemoryClient(asking_server(), V2025_11_25, capabilities=ALL_CAPABILITIES) as client:
        _, future = client.start("tools/call", {"name": "careful"})
        await client.next()
        await asyncio.wait_for(client.session.close(grace=5), 1)
        assert (await future)["result"]["content"][0]["text"] == "rejected with 0"


# The stateless revision


async def test_a_stateless_request_takes_several_rounds(client: MemoryClient) -> None:
    first = await client.request("tools/call", {"name": "greet"})
    assert first["resultType"] == "input_required"
    assert "ttlMs" not in first
    assert first["inputRequests"].keys() == {"person"}
    assert first["inputRequests"]["person"]["method"] == "elicitation/create"
    second = await client.request(
        "tools/call",
        {
            "name": "greet",
            "inputResponses": {"person": accept(name="Ada"), "unknown": {"x": 1}},
            "requestState": first["requestState"],
        },
    )
    assert second["inputRequests"].keys() == {"greeting"}
    assert second["requestState"] != first["requestState"]
    third = await client.request(
        "tools/call",
        {"name": "greet", "inputResponses": {"greeting": SAMPLED}, "requestState": second["requestState"]},
    )
    assert third["resultType"] == "complete"
    assert third["content"][0]["text"] == "Ada: Paris"


async def test_a_missing_answer_is_requested_again(client: MemoryClient) -> None:
    first = await client.request("tools/call", {"name": "together"})
    again = await client.request(
        "tools/call",
        {"name": "together", "inputResponses": {"model": SAMPLED}, "requestState": first["requestState"]},
    )
    assert again["inputRequests"].keys() == {"name", "roots"}


@pytest.mark.parametrize(
    ("method", "params"),
    [("prompts/get", {"name": "personal"}), ("resources/read", {"uri": "memo://personal"})],
)
async def test_prompts_and_resources_can_ask_questions(
    client: MemoryClient, method: str, params: dict[str, Any]
) -> None:
    first = await client.request(method, params)
    assert first["resultType"] == "input_required"
    again = {"inputResponses": {"input-1": accept(name="Ada")}, "requestState": first["requestState"]}
    last = await client.request(method, {**params, **again})
    assert last["resultType"] == "complete"


async def test_a_handler_that_catches_all_exceptions_cannot_suppress_a_question(client: MemoryClient) -> None:
    assert (await client.request("tools/call", {"name": "swallowing"}))["resultType"] == "input_required"


async def test_a_missing_capability_has_a_separate_error_code() -> None:
    async with MemoryClient(asking_server(), V2026_07_28, capabilities={"sampling": {}}) as client:
        error = await client.error("tools/call", {"name": "greet"})
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


@pytest.mark.parametrize(
    ("declared", "is_supported"),
    [({}, True), ({"form": {}}, True), ({"form": {}, "url": {}}, True), ({"url": {}}, False)],
)
@pytest.mark.parametrize("version", [V2025_11_25, V2026_07_28])
async def test_a_form_needs_a_capability_of_its_own(
    version: str, declared: dict[str, Any], *, is_supported: bool
) -> None:
    server = Server("kinds", "1")
    server.tool("kinds")(lambda arguments, ctx: str(ctx.can_ask(Elicit)))
    async with MemoryClient(server, version, capabilities={"elicitation": declared}) as client:
        result = await client.call("kinds")
    assert result["content"][0]["text"] == str(is_supported)


async def test_a_rejected_question_uses_the_error_format_of_the_tool() -> None:
    server = asking_server()
    server.add(
        ToolDefinition(
            name="formatted",
            run=lambda arguments, ctx: ctx.elicit("Who?", PersonForm),
            format_error=lambda error: ToolResult.from_text(f"No: {error}", is_error=True),
        )
    )
    async with MemoryClient(server, V2025_11_25) as client:
        missing = await client.call("formatted")
    async with MemoryClient(server, V2025_11_25, capabilities=ALL_CAPABILITIES) as client:
        _, future = client.start("tools/call", {"name": "formatted"})
        question = await client.next()
        client.send(b'{"jsonrpc":"2.0","id":%d,"error":{"code":-1,"message":"busy"}}' % question["id"])
        refused = (await future)["result"]
    assert missing["content"][0]["text"].startswith("No: The client does not declare")
    assert (
        refused["content"][0]["text"] == "No: The client responded to elicitation/create with an error: busy"
    )


@pytest.mark.parametrize("given", [None, [], "x", {"person": 7}, {"person": None}])
async def test_malformed_answers_are_invalid_or_requested_again(client: MemoryClient, given: Any) -> None:
    answer = await client.exchange("tools/call", {"name": "greet", "inputResponses": given})
    if given is None:
        assert answer["result"]["resultType"] == "input_required"
    else:
        assert answer["error"]["code"] == -32602


# Request state

KEY = b"k" * 32


async def _get_state(server: Server, principal: str = "") -> str:
    async with MemoryClient(
        server, V2026_07_28, capabilities=ALL_CAPABILITIES, principal_id=principal
    ) as client:
        first = await client.request(
            "tools/call", {"name": "greet", "inputResponses": {"person": accept(name="A")}}
        )
        assert first["inputRequests"].keys() == {"greeting"}
        state: str = first["requestState"]
        return state


async def _finish_with_state(
    server: Server, state: Any, *, principal: str = "", tool: str = "greet", **more: Any
) -> Any:
    async with MemoryClient(
        server, V2026_07_28, capabilities=ALL_CAPABILITIES, principal_id=principal
    ) as client:
        params = {"name": tool, "inputResponses": {"greeting": SAMPLED}, "requestState": state, **more}
        return await client.exchange("tools/call", params)


async def test_a_state_is_valid_in_another_process_with_the_same_key() -> None:
    state = await _get_state(asking_server(KEY))
    answer = await _finish_with_state(asking_server(KEY), state)
    assert answer["result"]["content"][0]["text"] == "A: Paris"


async def test_a_state_is_bound_to_its_key_principal_and_request() -> None:
    server = asking_server(KEY)
    state = await _get_state(server, principal="ada")
    assert "result" in await _finish_with_state(server, state, principal="ada")
    for answer in (
        await _finish_with_state(asking_server(b"q" * 32), state, principal="ada"),
        await _finish_with_state(server, state, principal="bob"),
        await _finish_with_state(server, state, principal="ada", tool="together"),
        await _finish_with_state(server, state, principal="ada", arguments={"other": 1}),
    ):
        assert answer["error"]["code"] == -32602
        assert "requestState" in answer["error"]["message"]


async def test_every_modification_of_a_state_is_detected() -> None:
    server = asking_server(KEY)
    state = await _get_state(server)
    changed = [
        state[:index] + ("A" if state[index] != "A" else "B") + state[index + 1 :]
        for index in range(len(state))
    ]
    for candidate in [
        *changed,
        state + "-TAMPERED",
        state + "!",
        " " + state,
        state[:-4],
        "",
        "x",
        7,
        {},
        "é" * 50,
    ]:
        answer = await _finish_with_state(server, candidate)
        assert answer.get("error", {}).get("code") == -32602, candidate


async def test_a_state_expires() -> None:
    server = asking_server(KEY)
    server.sealer = StateSealer(KEY, lifetime_seconds=-1)
    assert (await _finish_with_state(server, await _get_state(server)))["error"]["code"] == -32602


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        asking_server(b"short")


async def test_a_completion_handler_cannot_ask_questions() -> None:
    server = full_server()

    async def ask(ctx: Context) -> None:
        await ctx.roots()

    class Asking:
        def __getattr__(self, name: str) -> Any:
            return getattr(full_server().prompts, name)

        async def complete(self, request: Any, ctx: Context) -> list[str]:
            await ask(ctx)
            return []

    server.prompts = Asking()
    async with MemoryClient(server, V2026_07_28, capabilities=ALL_CAPABILITIES) as client:
        ref = {"type": "ref/prompt", "name": "greet"}
        error = await client.error(
            "completion/complete", {"ref": ref, "argument": {"name": "who", "value": ""}}
        )
    assert error["code"] == -32603
