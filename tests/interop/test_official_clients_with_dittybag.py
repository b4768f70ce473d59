"""The official clients call every Dittybag tool and check each result against its schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin
from urllib.request import urlopen

import msgspec
import pytest

from dittybag.contracts.profiles import PROFILES
from tests.interop.client_drivers import DRIVERS, TRANSPORTS, Driver, run, serve_dittybag

GREETING = {
    "name": "greet",
    "content": "Hello {{ who }}",
    "arguments": [{"name": "who", "required": True}],
}
RESOURCE = {"name": "notes", "uri": "file:///notes.md", "content": "# Notes", "mime_type": "text/markdown"}

#: Calls every tool of the `all` profile. `$ID` is the id in the previous result.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("create_prompt", GREETING),
    ("add_prompt", {"title": "Code Review", "content": "Review this", "tags": ["Review"]}),
    ("get_prompt", {"id": "$ID"}),
    ("update_prompt", {"id": "$ID", "title": "Code Review v2", "content": "Review that"}),
    ("list_prompts", {}),
    ("search_prompts", {"query": "REVIEW"}),
    ("filter_by_tags", {"tags": ["review"]}),
    ("list_tags", {}),
    ("delete_prompt", {"name": "code-review"}),
    ("create_resource", RESOURCE),
    ("update_resource", {"name": "notes", "content": "# More"}),
    ("search", {"query": "more"}),
    ("read", {"ref": "file:///notes.md"}),
    ("use_prompt", {"ref": "greet", "arguments": {"who": "Ann"}}),
    ("context", {"query": "greet", "budget": 500}),
    ("delete_resource", {"name": "notes"}),
    ("task_create", {"title": "Write tests", "priority": 4}),
    ("task_get", {"task_id": 1}),
    ("task_update", {"task_id": 1, "notes": "with clients"}),
    ("task_list", {}),
    ("task_search", {"query": "clients"}),
    ("task_complete", {"task_id": 1}),
    ("task_stats", {}),
    ("task_delete", {"task_id": 1}),
    ("list_changes", {"limit": 3}),
    ("undo_change", {"change": 10}),
    (
        "task_add",
        {"tasks": [{"title": "Draw", "key": "a", "priority": 5}, {"title": "Build", "blocked_by": ["a"]}]},
    ),
    ("task_next", {"lease": "1h"}),
    ("task_release", {"ref": "task:2", "fence": 16, "comment": "Over to you"}),
    ("task_done", {"ref": "task:2", "comment": "Drawn"}),
]


def test_the_calls_cover_every_tool() -> None:
    assert {name for name, _ in CALLS} == {tool.name for tool in PROFILES["all"].tools}


@pytest.fixture(params=TRANSPORTS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Dittybag with an empty store."""
    with serve_dittybag(request.param, tmp_path) as server:
        yield server


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_an_official_client_calls_every_tool(driver: Driver, server: dict[str, Any]) -> None:
    plan = {"server": server, "calls": [(name, arguments, {}) for name, arguments in CALLS]}
    seen = run(msgspec.structs.replace(driver, suite="agent"), plan)["calls"]
    assert [(call["input"], call["output"], call["result"].get("isError", False)) for call in seen] == [
        ([], [], False)
    ] * len(CALLS)
    results = {
        name: call["result"].get("structuredContent") for (name, _), call in zip(CALLS, seen, strict=True)
    }
    # Clients that find structured content show the model nothing else, so `read` and `context` have none.
    assert (results.pop("read"), results.pop("context")) == (None, None)
    assert all(results.values())
    assert results["get_prompt"]["tags"] == ["review"]
    assert results["search"]["hits"][0]["ref"] == "file:///notes.md"
    assert results["task_stats"]["completion_rate"] == 100
    if "url" in server:
        assert _open_sessions(server["url"]) == 0, "the server still has the session that the client ended"


def _open_sessions(address: str) -> int:
    with urlopen(urljoin(address, "/metrics"), timeout=10) as response:
        match = re.search(r"^dittybag_open_sessions (\d+)", response.read().decode(), re.MULTILINE)
    assert match
    return int(match[1])
