"""The official clients with Dittybag itself: every tool, every answer checked against its schema."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin
from urllib.request import urlopen

import msgspec
import pytest

from dittybag.contracts.profiles import PROFILES
from tests.conformance.servers import dittybag, listening
from tests.interop.drivers import DRIVERS, STDIO, TRANSPORTS, Driver, run
from tests.wire import ROOT

GREETING = {
    "name": "greet",
    "content": "Hello {{ who }}",
    "arguments": [{"name": "who", "required": True}],
}
RESOURCE = {"name": "notes", "uri": "file:///notes.md", "content": "# Notes", "mime_type": "text/markdown"}

#: Every tool of the default profile once; `$ID` is the id in the answer before.
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
]


def test_the_plan_has_every_tool() -> None:
    assert {name for name, _ in CALLS} == {tool.name for tool in PROFILES["all"].tools}


@pytest.fixture(params=TRANSPORTS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Dittybag with an empty store, the way clients want to be told."""
    database = str(tmp_path / "dittybag.db")
    if request.param == STDIO:
        arguments = ["-m", "dittybag", "serve", "--db", database]
        yield {"command": sys.executable, "args": arguments, "cwd": str(ROOT)}
    else:
        with listening(*dittybag(database)) as listener:
            yield {"url": listener.address}


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_an_official_client_uses_every_tool(driver: Driver, server: dict[str, Any]) -> None:
    store = msgspec.structs.replace(driver, program=f"store_{driver.program}")
    *seen, greeting = run(store, {"server": server, "calls": CALLS})
    assert greeting == "Hello Ann"
    assert [(name, failed) for name, failed, _ in seen] == [(name, False) for name, _ in CALLS]
    answers = {name: structured for name, _, structured in seen}
    assert all(answers.values())
    assert answers["get_prompt"]["tags"] == ["review"]
    assert answers["search"]["hits"][0]["id"] == "file:///notes.md"
    assert answers["task_stats"]["completion_rate"] == 100
    if "url" in server:
        assert _open_sessions(server["url"]) == 0, "the client ended its session, and the server keeps it"


def _open_sessions(address: str) -> int:
    with urlopen(urljoin(address, "/metrics"), timeout=10) as answer:
        found = re.search(r"^dittybag_open_sessions (\d+)", answer.read().decode(), re.MULTILINE)
    assert found
    return int(found[1])
