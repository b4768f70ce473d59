"""Long-running tools: progress, log messages and cancellation."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from msgspec import Meta, Struct

from dittybag.protocol.argument_schemas import NoArguments
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server

#: The suite requires notifications to arrive separately, while the tool is running.
PAUSE_SECONDS: Final = 0.05
#: How long the suite's client may take to reconnect after its stream was closed.
RECONNECTION_SECONDS: Final = 0.2
#: How long `cancelled_count` waits for cancellations.
CANCELLATION_TIMEOUT_SECONDS: Final = 5.0


class AtLeast(Struct):
    at_least: Annotated[int, Meta(ge=0, description="Wait until this many calls were cancelled")] = 0


class Cancellations(Struct):
    started: int
    cancelled: int


def register(server: Server) -> None:
    _register_notifications(server)
    _register_cancellation(server)


def _register_notifications(server: Server) -> None:
    @server.tool("test_tool_with_progress", description="Reports progress three times")
    async def with_progress(arguments: NoArguments, ctx: Context) -> str:
        for done in (0, 50, 100):
            ctx.progress(done, 100, f"Completed step {done} of 100")
            await asyncio.sleep(PAUSE_SECONDS)
        return f"Progress was reported to {ctx.progress_token!r}"

    @server.tool("test_tool_with_logging", description="Logs three messages")
    async def with_logging(arguments: NoArguments, ctx: Context) -> str:
        for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            ctx.log("info", message, "everything")
            await asyncio.sleep(PAUSE_SECONDS)
        return "Tool with logging executed successfully"

    @server.tool("test_logging_tool", description="Logs one message at each of three levels")
    def logging_tool(arguments: NoArguments, ctx: Context) -> str:
        ctx.log("debug", {"step": 1}, "everything")
        ctx.log("info", "Diagnostic message", "everything")
        ctx.log("error", ["a", "list"])
        return "Logging evaluated"

    @server.tool("test_reconnection", description="Finishes after its response stream was closed")
    async def reconnection(arguments: NoArguments, ctx: Context) -> str:
        # Only transports with resumable streams have this method.
        close_stream = getattr(ctx.outlet, "close_stream", None)
        if close_stream is not None:
            close_stream()
        await asyncio.sleep(RECONNECTION_SECONDS)
        return "Reconnection test completed"


def _register_cancellation(server: Server) -> None:
    started = 0
    cancelled = 0
    changed = asyncio.Condition()

    @server.tool("wait_until_cancelled", description="Never returns; reports progress when it starts to wait")
    async def wait_until_cancelled(arguments: NoArguments, ctx: Context) -> str:
        nonlocal started, cancelled
        started += 1
        ctx.progress(1, message="waiting")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled += 1
            async with changed:
                changed.notify_all()
            raise
        return "It was not cancelled"

    @server.tool(
        "cancelled_count",
        AtLeast,
        description="Returns how many calls of wait_until_cancelled were cancelled",
        output=Cancellations,
    )
    async def cancelled_count(arguments: AtLeast, ctx: Context) -> Cancellations:
        try:
            async with asyncio.timeout(CANCELLATION_TIMEOUT_SECONDS), changed:
                await changed.wait_for(lambda: cancelled >= arguments.at_least)
        except TimeoutError:
            # The returned count shows that cancellations are missing.
            pass
        return Cancellations(started=started, cancelled=cancelled)
