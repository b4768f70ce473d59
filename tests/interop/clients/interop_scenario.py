"""The scenario that every Python client runs with the everything server; prints its results as JSON.

The plan is the first argument. Each version of the SDK implements `ClientAdapter`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import anyio

TIMEOUT_SECONDS = 10.0

Json = dict[str, Any]
OnProgress = Callable[[float, "float | None", "str | None"], Awaitable[None]]


class NotificationQueue:
    """A queue of received notifications."""

    def __init__(self) -> None:
        self._in, self._out = anyio.create_memory_object_stream[Json](100)

    async def put(self, notification: Json) -> None:
        await self._in.send(notification)

    async def next(self) -> Json:
        return await self._out.receive()


class ClientAdapter(Protocol):
    """A connected client. Results have the field names of the protocol."""

    #: The exception for a JSON-RPC error.
    error: type[Exception]
    #: Log messages and change notifications, in the order of their arrival.
    logs: NotificationQueue
    changes: NotificationQueue
    #: The server's requests for input.
    input_requests: list[Json]

    def connection(self) -> Json: ...

    async def lists(self) -> Json: ...

    async def call(
        self, name: str, arguments: Json, *, on_progress: OnProgress | None = None, level: str | None = None
    ) -> Json: ...

    async def prompt(self, name: str, arguments: Json) -> Json: ...

    async def read(self, uri: str) -> Json: ...

    async def complete(self, ref: Json, argument: Json, context: Json | None) -> Json: ...

    async def notify_cancelled(self) -> None:
        """Notify the server that the running call is cancelled, unless the SDK does so."""
        ...

    def subscribe(self, uri: str) -> AbstractAsyncContextManager[Callable[[], Awaitable[Json]]]:
        """Subscribe to all changes; yields a function that waits for the next one."""
        ...


class ClientCallbacks:
    """The client's callbacks for input requests and log messages, in the types of its SDK."""

    def __init__(self, plan: Json, types: Any) -> None:
        self._plan = plan
        self._types = types
        self.input_requests: list[Json] = []
        self.logs = NotificationQueue()

    def as_keywords(self) -> Json:
        """Return the callbacks as keyword arguments, which both versions of the SDK share."""
        return {
            "elicitation_callback": self._elicit,
            "sampling_callback": self._sample,
            "list_roots_callback": self._roots,
            "logging_callback": self._log,
        }

    async def _elicit(self, context: Any, params: Any) -> Any:
        self.input_requests.append({"method": "elicitation/create", "params": to_json(params)})
        fields = to_json(params)["requestedSchema"]["properties"]
        filled = {name: value for name, value in self._plan["form"].items() if name in fields}
        return self._types.ElicitResult(action="accept", content=filled)

    async def _sample(self, context: Any, params: Any) -> Any:
        self.input_requests.append({"method": "sampling/createMessage", "params": to_json(params)})
        content = {"type": "text", "text": self._plan["sample"]}
        result = {"role": "assistant", "content": content, "model": "test-model", "stopReason": "endTurn"}
        return self._types.CreateMessageResult.model_validate(result)

    async def _roots(self, context: Any) -> Any:
        self.input_requests.append({"method": "roots/list"})
        return self._types.ListRootsResult.model_validate({"roots": self._plan["roots"]})

    async def _log(self, params: Any) -> None:
        await self.logs.put(to_json(params))


async def run_scenario(adapter: ClientAdapter, plan: Json) -> Json:
    """Execute the plan and return the results."""
    return {
        "connection": adapter.connection(),
        "lists": await adapter.lists(),
        "calls": {
            key: await _outcome(adapter, adapter.call(name, arguments))
            for key, (name, arguments) in plan["calls"].items()
        },
        "prompts": {
            key: await _outcome(adapter, adapter.prompt(name, arguments))
            for key, (name, arguments) in plan["prompts"].items()
        },
        "reads": {key: await _outcome(adapter, adapter.read(uri)) for key, uri in plan["reads"].items()},
        "completions": {
            key: await _outcome(adapter, adapter.complete(ref, argument, context))
            for key, (ref, argument, context) in plan["completions"].items()
        },
        "input_requests": list(adapter.input_requests),
        "progress": await _progress(adapter),
        "cancellation": await _cancellation(adapter),
        "changes": await _changes(adapter, plan),
        "logs": await _logs(adapter, plan),
    }


async def _outcome(adapter: ClientAdapter, request: Awaitable[Json]) -> Json:
    try:
        return {"result": await request}
    except adapter.error as error:
        details = error.error  # type: ignore[attr-defined]
        return {"error": {"code": details.code, "message": details.message, "data": details.data}}


async def _progress(adapter: ClientAdapter) -> list[Any]:
    seen: list[Any] = []
    complete = anyio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append([progress, total, message])
        if len(seen) == 3:
            complete.set()

    await adapter.call("test_tool_with_progress", {}, on_progress=note)
    with anyio.move_on_after(TIMEOUT_SECONDS):
        await complete.wait()
    return seen


async def _cancellation(adapter: ClientAdapter) -> Json:
    running = anyio.Event()
    outcome: Json = {}

    async def note(progress: float, total: float | None, message: str | None) -> None:
        running.set()

    async def call() -> None:
        outcome.update(await _outcome(adapter, adapter.call("wait_until_cancelled", {}, on_progress=note)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        with anyio.fail_after(TIMEOUT_SECONDS):
            await running.wait()
            await adapter.notify_cancelled()
        tasks.cancel_scope.cancel()
    count = await adapter.call("cancelled_count", {"at_least": 1})
    return {"outcome": outcome, "count": count, "afterwards": await adapter.call("test_simple_text", {})}


async def _changes(adapter: ClientAdapter, plan: Json) -> Json:
    events: list[Json] = []
    async with adapter.subscribe(plan["watched"]) as next_change:
        for trigger in plan["triggers"]:
            await adapter.call(trigger, {})
            with anyio.move_on_after(TIMEOUT_SECONDS):
                events.append(await next_change())
    return {"events": events, "lists": await adapter.lists(), "watched": await adapter.read(plan["watched"])}


async def _logs(adapter: ClientAdapter, plan: Json) -> list[Json]:
    await adapter.call("test_logging_tool", {})
    await adapter.call("test_logging_tool", {}, level="debug")
    seen: list[Json] = []
    with anyio.move_on_after(TIMEOUT_SECONDS):
        while len(seen) < plan["logs"]:
            seen.append(await adapter.logs.next())
    return seen


def run(main: Callable[[Json], Awaitable[Json]]) -> None:
    """Run a client with the plan from the command line and print its results."""
    plan = json.loads(sys.argv[1])
    json.dump(anyio.run(main, plan), sys.stdout)


def to_json(model: Any) -> Json:
    """Return an SDK model as JSON with the field names of the protocol."""
    dumped: Json = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped
