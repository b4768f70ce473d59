"""The official clients with Satchel itself: every tool, every answer checked against its schema."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from satchel.contracts.profiles import PROFILES
from tests.interop.drivers import DRIVER_SECONDS, DRIVERS, Driver
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
    assert {name for name, _ in CALLS} == {tool.name for tool in PROFILES["satchel"].tools}


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_an_official_client_uses_every_tool(driver: Driver, tmp_path: Path) -> None:
    database = str(tmp_path / "satchel.db")
    server = {
        "command": sys.executable,
        "args": ["-m", "satchel", "serve", "--db", database],
        "cwd": str(ROOT),
    }
    store = msgspec.structs.replace(driver, program=f"store_{driver.program}")
    done = subprocess.run(
        store.command({"server": server, "mode": driver.mode, "calls": CALLS}),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DRIVER_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    *seen, greeting = json.loads(done.stdout)
    assert greeting == "Hello Ann"
    assert [(name, failed) for name, failed, _ in seen] == [(name, False) for name, _ in CALLS]
    answers = {name: structured for name, _, structured in seen}
    assert all(answers.values())
    assert answers["get_prompt"]["tags"] == ["review"]
    assert answers["search"]["hits"][0]["id"] == "file:///notes.md"
    assert answers["task_stats"]["completion_rate"] == 100
