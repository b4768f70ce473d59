"""What every Python client does with the fixture, and what it saw, as one JSON document.

The plan comes as the first argument. A client of its own version fits in through a `Peer`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import anyio

PATIENCE_SECONDS = 10.0

Json = dict[str, Any]
OnProgress = Callable[[float, "float | None", "str | None"], Awaitable[None]]


class Heard:
    """Notifications that arrived, to be waited for."""

    def __init__(self) -> None:
        self._in, self._out = anyio.create_memory_object_stream[Json](100)

    async def note(self, notification: Json) -> None:
        await self._in.send(notification)

    async def next(self) -> Json:
        return await self._out.receive()


class Peer(Protocol):
    """A connected client. Results are what travelled, spelled as in the protocol."""

    #: The error that carries a JSON-RPC error.
    error: type[Exception]
    #: Log messages and changes, in the order of their arrival.
    logs: Heard
    changes: Heard
    #: Questions that the server asked.
    asked: list[Json]

    def connection(self) -> Json: ...

    async def lists(self) -> Json: ...

    async def call(
        self, name: str, arguments: Json, *, on_progress: OnProgress | None = None, level: str | None = None
    ) -> Json: ...

    async def prompt(self, name: str, arguments: Json) -> Json: ...

    async def read(self, uri: str) -> Json: ...

    async def complete(self, ref: Json, argument: Json, context: Json | None) -> Json: ...

    async def announce_cancellation(self) -> None:
        """Tell the server that the call that runs is not wanted any more, if cancelling it does not."""
        ...

    def watch(self, uri: str) -> AbstractAsyncContextManager[Callable[[], Awaitable[Json]]]:
        """Be told of every change; gives a function that waits for the next one."""
        ...


class Answers:
    """The client's user, model, roots and ear for log messages, in the types of its SDK."""

    def __init__(self, plan: Json, types: Any) -> None:
        self._plan = plan
        self._types = types
        self.asked: list[Json] = []
        self.logs = Heard()

    def callbacks(self) -> Json:
        """What both generations of the SDK are given, under the names they have in common."""
        return {
            "elicitation_callback": self._elicit,
            "sampling_callback": self._sample,
            "list_roots_callback": self._roots,
            "logging_callback": self._log,
        }

    async def _elicit(self, context: Any, params: Any) -> Any:
        self.asked.append({"method": "elicitation/create", "params": plain(params)})
        fields = plain(params)["requestedSchema"]["properties"]
        filled = {name: value for name, value in self._plan["form"].items() if name in fields}
        return self._types.ElicitResult(action="accept", content=filled)

    async def _sample(self, context: Any, params: Any) -> Any:
        self.asked.append({"method": "sampling/createMessage", "params": plain(params)})
        said = {"type": "text", "text": self._plan["sample"]}
        result = {"role": "assistant", "content": said, "model": "test-model", "stopReason": "endTurn"}
        return self._types.CreateMessageResult.model_validate(result)

    async def _roots(self, context: Any) -> Any:
        self.asked.append({"method": "roots/list"})
        return self._types.ListRootsResult.model_validate({"roots": self._plan["roots"]})

    async def _log(self, params: Any) -> None:
        await self.logs.note(plain(params))


async def observe(peer: Peer, plan: Json) -> Json:
    """Go through the plan."""
    return {
        "connection": peer.connection(),
        "lists": await peer.lists(),
        "calls": {
            key: await _outcome(peer, peer.call(name, arguments))
            for key, (name, arguments) in plan["calls"].items()
        },
        "prompts": {
            key: await _outcome(peer, peer.prompt(name, arguments))
            for key, (name, arguments) in plan["prompts"].items()
        },
        "reads": {key: await _outcome(peer, peer.read(uri)) for key, uri in plan["reads"].items()},
        "completions": {
            key: await _outcome(peer, peer.complete(ref, argument, context))
            for key, (ref, argument, context) in plan["completions"].items()
        },
        "asked": list(peer.asked),
        "progress": await _progress(peer),
        "cancellation": await _cancellation(peer),
        "changes": await _changes(peer, plan),
        "logs": await _logs(peer, plan),
    }


async def _outcome(peer: Peer, request: Awaitable[Json]) -> Json:
    try:
        return {"result": await request}
    except peer.error as error:
        details = error.error  # type: ignore[attr-defined]
        return {"error": {"code": details.code, "message": details.message, "data": details.data}}


async def _progress(peer: Peer) -> list[Any]:
    seen: list[Any] = []
    complete = anyio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append([progress, total, message])
        if len(seen) == 3:
            complete.set()

    await peer.call("test_tool_with_progress", {}, on_progress=note)
    with anyio.move_on_after(PATIENCE_SECONDS):
        await complete.wait()
    return seen


async def _cancellation(peer: Peer) -> Json:
    running = anyio.Event()
    outcome: Json = {}

    async def note(progress: float, total: float | None, message: str | None) -> None:
        running.set()

    async def call() -> None:
        outcome.update(await _outcome(peer, peer.call("wait_until_cancelled", {}, on_progress=note)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        with anyio.fail_after(PATIENCE_SECONDS):
            await running.wait()
            await peer.announce_cancellation()
        tasks.cancel_scope.cancel()
    count = await peer.call("cancelled_count", {"at_least": 1})
    return {"outcome": outcome, "count": count, "afterwards": await peer.call("test_simple_text", {})}


async def _changes(peer: Peer, plan: Json) -> Json:
    events: list[Json] = []
    async with peer.watch(plan["watched"]) as next_change:
        for trigger in plan["triggers"]:
            await peer.call(trigger, {})
            with anyio.move_on_after(PATIENCE_SECONDS):
                events.append(await next_change())
    return {"events": events, "lists": await peer.lists(), "watched": await peer.read(plan["watched"])}


async def _logs(peer: Peer, plan: Json) -> list[Json]:
    await peer.call("test_logging_tool", {})
    await peer.call("test_logging_tool", {}, level="debug")
    seen: list[Json] = []
    with anyio.move_on_after(PATIENCE_SECONDS):
        while len(seen) < plan["logs"]:
            seen.append(await peer.logs.next())
    return seen


def run(main: Callable[[Json], Awaitable[Json]]) -> None:
    """Run a client with the plan of the command line."""
    plan = json.loads(sys.argv[1])
    json.dump(anyio.run(main, plan), sys.stdout)


def plain(model: Any) -> Json:
    """A model of the SDK, as it travels."""
    dumped: Json = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped
