"""Requests that tests cancel, and reads whose results must stay the same."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, TypeAlias

import msgspec

from tests.storage.cancelling_clients import CancellingClient, ask, call

Request: TypeAlias = tuple[str, dict[str, Any]]


def tool(name: str, /, **arguments: Any) -> Request:
    return "tools/call", {"name": name, "arguments": arguments}


def reads(prompt_id: str) -> list[Request]:
    """Requests that read, for each kind of handler."""
    return [
        tool("get_prompt", id=prompt_id),
        tool("list_prompts"),
        tool("search_prompts", query="word"),
        tool("filter_by_tags", tags=["kept"]),
        tool("list_tags"),
        tool("task_list"),
        tool("task_get", task_id=1),
        tool("task_search", query="kept"),
        tool("task_stats"),
        tool("search", query="kept"),
        tool("list_changes"),
        ("prompts/list", {}),
        ("prompts/get", {"name": "kept"}),
        ("resources/list", {}),
        ("resources/read", {"uri": "file:///kept"}),
        ("resources/templates/list", {}),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "file:///{x}"}, "argument": {"name": "x", "value": ""}},
        ),
    ]


def writes(numbers: count[int]) -> list[Callable[[], Request]]:
    """Requests that write, each different from all before it."""
    return [
        lambda: tool("create_prompt", name=f"p{next(numbers)}", content="New"),
        lambda: tool("add_prompt", title=f"p{next(numbers)}", content="New", tags=["new"]),
        lambda: tool("update_prompt", name="changed", content=f"New {next(numbers)}"),
        lambda: tool("create_resource", name=f"r{next(numbers)}", uri=f"x:{next(numbers)}", content=""),
        lambda: tool("update_resource", name="changed", content=f"New {next(numbers)}"),
        lambda: tool("task_create", title=f"t{next(numbers)}"),
        lambda: tool("task_update", task_id=2, title=f"t{next(numbers)}"),
    ]  # fmt: skip


async def fill(client: CancellingClient) -> str:
    """Create entities. Returns the id of the prompt that stays as it is."""
    text = await call(client, "add_prompt", title="kept", content="Words", tags=["kept"])
    prompt_id: str = msgspec.json.decode(text)["id"]
    await call(client, "create_prompt", name="changed", content="Words")
    for name in ("kept", "changed"):
        await call(client, "create_resource", name=name, uri=f"file:///{name}", content="Words")
    await call(client, "create_resource", name="template", uri="file:///{x}", content="{{ x }}")
    for title in ("kept", "changed"):
        await call(client, "task_create", title=title)
    return prompt_id


async def probe(client: CancellingClient, prompt_id: str) -> list[Any]:
    """Return the results of some reads that no write above changes."""
    requests = [
        tool("get_prompt", id=prompt_id),
        tool("task_get", task_id=1),
        ("prompts/get", {"name": "kept"}),
    ]
    results = [await ask(client, method, **params) for method, params in requests]
    result = await ask(client, "resources/read", uri="file:///kept")
    return [*results, result["contents"]]
