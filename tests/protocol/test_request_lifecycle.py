"""Running requests: progress, log messages, cancellation and concurrency."""

from __future__ import annotations

import asyncio
import contextvars

import pytest

from dittybag.protocol.eras.versions import (
    V2024_11_05,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    VERSIONS,
)
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server, ServerLimits
from tests.protocol.engine_servers import full_server
from tests.protocol.memory_client import MemoryClient

# Progress and log messages


@pytest.mark.parametrize("version", VERSIONS)
async def test_progress_is_sent_only_on_request_and_only_increases(version: str) -> None:
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
    message = {} if version == V2024_11_05 else {"message": "one"}
    assert sent[0] == {"progressToken": "p", "progress": 1, "total": 3, **message}
    assert [item["progress"] for item in sent] == [1, 2.5]


async def test_no_messages_are_sent_for_a_request_after_its_response() -> None:
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


async def test_a_new_handshake_resets_the_session() -> None:
    server = _logging_server()
    async with MemoryClient(server) as client:
        await client.request("logging/setLevel", {"level": "debug"})
        await client.request("resources/subscribe", {"uri": "memo://one"})
        await client.request("initialize", {"protocolVersion": V2025_06_18})
        await client.call("chat")
        assert (await client.next())["params"]["level"] == "warning"
        server.resource_updated("memo://one")
        assert client.inbox.empty()


def _logging_server() -> Server:
    server = full_server()

    @server.tool("chat")
    def chat(arguments: object, ctx: Context) -> str:
        ctx.log("debug", "quiet")
        ctx.log("warning", {"loud": True}, logger="chat")
        return "done"

    return server


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != V2026_07_28])
async def test_log_messages_respect_the_log_level_of_the_session(version: str) -> None:
    async with MemoryClient(_logging_server(), version) as client:
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


async def test_a_stateless_request_gets_log_messages_only_if_it_sets_a_level() -> None:
    async with MemoryClient(_logging_server(), V2026_07_28) as client:
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
        assert not stopped.is_set(), '"7" and 7 are different ids'
        client.notify("notifications/cancelled", {"requestId": request_id, "reason": "changed my mind"})
        await asyncio.wait_for(stopped.wait(), 5)
        await client.request("tools/list")
        assert not future.done()
        assert client.dropped == 1


async def test_the_id_of_a_cancelled_request_can_be_reused_immediately() -> None:
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


async def test_a_cancellation_inside_the_handler_is_an_internal_error() -> None:
    server = full_server()

    @server.tool("own")
    async def own(arguments: object, ctx: Context) -> str:
        task = asyncio.ensure_future(asyncio.sleep(60))
        task.cancel()
        await task
        return "never"

    async with MemoryClient(server) as client:
        assert (await client.error("tools/call", {"name": "own"}))["message"] == "Internal error"


async def test_progress_is_skipped_while_the_client_does_not_read() -> None:
    server = full_server()

    @server.tool("talk")
    def talk(arguments: object, ctx: Context) -> str:
        ctx.progress(1)
        return "done"

    async with MemoryClient(server) as client:
        client.full = True
        await client.request("tools/call", {"name": "talk"}, meta={"progressToken": 1})
        assert client.inbox.empty()


async def test_a_handler_that_ignores_cancellation_gets_no_response() -> None:
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


async def test_requests_run_concurrently() -> None:
    server = full_server()
    gate = asyncio.Event()

    @server.tool("gate")
    async def wait_for_gate(arguments: object, ctx: Context) -> str:
        await gate.wait()
        return "through"

    async with MemoryClient(server) as client:
        waiting = [client.start("tools/call", {"name": "gate"})[1] for _ in range(5)]
        assert (await client.call("echo", {"text": "x"}))["content"][0]["text"] == "x"
        assert not any(future.done() for future in waiting)
        gate.set()
        responses = await asyncio.wait_for(asyncio.gather(*waiting), 5)
    assert {response["id"] for response in responses} == {2, 3, 4, 5, 6}


async def test_an_id_cannot_be_reused_while_its_request_is_pending() -> None:
    async with MemoryClient(full_server()) as client:
        client.start("tools/call", {"name": "wait"}, request_id="a")
        _, second = client.start("ping", request_id="a")
        assert (await second)["error"]["code"] == -32600
        client.notify("notifications/cancelled", {"requestId": "a"})
        _, third = client.start("ping", request_id="a")
        assert (await third)["result"] == {}


async def test_requests_over_the_concurrency_limit_are_refused() -> None:
    async with MemoryClient(full_server(limits=ServerLimits(requests_in_flight=3))) as client:
        for _ in range(3):
            client.start("tools/call", {"name": "wait"})
        assert (await client.error("tools/call", {"name": "wait"}))["code"] == -32603


async def test_a_handler_runs_in_its_own_task_and_context() -> None:
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


async def test_a_timeout_inside_a_handler_ends_only_its_block() -> None:
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
async def test_requests_running_at_the_end_of_a_session_finish_or_fail(version: str) -> None:
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
