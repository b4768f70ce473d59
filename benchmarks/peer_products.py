"""Products that keep tasks or notes for agents: how each is started, and stores and returns an item.

Each is configured as its README recommends for a new user. The versions are pinned.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from tests.interop.environments import NODE, install

from benchmarks.peers import PeerEnvironment
from benchmarks.product import products
from benchmarks.product_session import McpRequest, ProductSession, tool_call

_PREPARE_SECONDS: Final = 60


class Place(Struct, frozen=True):
    """The folders of one measurement: a home folder, and a project in a Git repository."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def project(self) -> Path:
        return self.folder / "project"


class Item(Struct, frozen=True):
    """What is stored: a title, which no other item has, and a text."""

    title: str
    text: str


class StoredItems(Struct, frozen=True):
    """A product that is installed."""

    title: str
    version: str
    command: list[str]
    create: Callable[[Place, Item], McpRequest]
    #: Returns the id of a new item from the text of the result; `None` if the text has none.
    created_id: Callable[[Item, str], str | None]
    read: Callable[[Place, str], McpRequest]
    variables: Callable[[Place], dict[str, str]] = lambda place: {}
    #: Does in a new project what the product asks its users to do first.
    prepare: Callable[[Place], None] = lambda place: None

    def new_place(self, folder: Path) -> Place:
        """Return a place in a new folder."""
        place = Place(folder)
        for path in (place.home, place.project):
            path.mkdir(parents=True)
        (place.project / "README.md").write_text("# Sample\n")
        identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        for command in (
            ["git", "init", "--quiet", "--initial-branch", "main"],
            ["git", "add", "README.md"],
            ["git", *identity, "commit", "--quiet", "--message", "Add a file"],
        ):
            run(place, command)
        self.prepare(place)
        return place

    def session(self, place: Place) -> ProductSession:
        return ProductSession(self.command, place.project, environment(place) | self.variables(place))


def environment(place: Place) -> dict[str, str]:
    """Return a minimal environment, with a home folder of its own."""
    path = os.pathsep.join((str(NODE.parent), os.environ.get("PATH", os.defpath)))
    return {"PATH": path, "HOME": str(place.home), "LANG": "C.UTF-8"}


def run(place: Place, command: list[str]) -> None:
    """Run a command in the project."""
    subprocess.run(
        command,
        cwd=place.project,
        env=environment(place),
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=_PREPARE_SECONDS,
    )


def _from_npm(name: str, package: str, version: str, program: str) -> list[str]:
    """Install a product from npm, and return its command."""
    pinned = PeerEnvironment(name, f"{package} {version}", {package: version}, "node")
    install(pinned)
    return [str(NODE), str(pinned.home / "node_modules" / ".bin" / program)]


def _match(pattern: str) -> Callable[[Item, str], str | None]:
    def created_id(item: Item, text: str) -> str | None:
        found = re.search(pattern, text)
        return found and found[1]

    return created_id


def dittybag() -> StoredItems:
    """Return Dittybag with tasks, as `dittybag connect` configures clients."""
    (product,) = products(None)
    return StoredItems(
        "Dittybag",
        product.version,
        [product.command, "serve", "--project", "auto", "--profile", "agent"],
        lambda place, item: tool_call("task_add", tasks=[{"title": item.title, "notes": item.text}]),
        _match(r'"ref":\s*"(task:\d+)"'),
        lambda place, key: tool_call("read", ref=key),
    )


def server_memory() -> StoredItems:
    """Return the reference server for a memory, with entities."""
    version = "2026.8.31"
    return StoredItems(
        "server-memory",
        version,
        _from_npm("server-memory", "@modelcontextprotocol/server-memory", version, "mcp-server-memory"),
        lambda place, item: tool_call(
            "create_entities",
            entities=[{"name": item.title, "entityType": "task", "observations": [item.text]}],
        ),
        lambda item, text: item.title if item.title in text else None,
        lambda place, key: tool_call("open_nodes", names=[key]),
        lambda place: {"MEMORY_FILE_PATH": str(place.home / "memory.jsonl")},
    )


def task_master() -> StoredItems:
    """Return Task Master, with tasks that no model writes and the tools that it recommends to new users."""
    version = "0.43.1"
    command = _from_npm("task-master", "task-master-ai", version, "task-master-ai")
    program = Path(command[1]).with_name("task-master")
    return StoredItems(
        "Task Master",
        version,
        command,
        lambda place, item: tool_call(
            "add_task", projectRoot=str(place.project), title=item.title, description=item.text
        ),
        _match(r'"taskId":\s*"?(\d+)'),
        lambda place, key: tool_call("get_task", projectRoot=str(place.project), id=key),
        lambda place: {"TASK_MASTER_TOOLS": "standard"},
        lambda place: run(place, [str(NODE), str(program), "init", "--yes"]),
    )


def backlog() -> StoredItems:
    """Return Backlog.md, in a Git repository."""
    version = "1.52.0"
    command = _from_npm("backlog", "backlog.md", version, "backlog")
    return StoredItems(
        "Backlog.md",
        version,
        [*command, "mcp", "start"],
        lambda place, item: tool_call("task_create", title=item.title, description=item.text),
        _match(r"Task (TASK-\d+)"),
        lambda place, key: tool_call("task_view", id=key),
        prepare=lambda place: run(place, [*command, "init", "Sample", "--defaults"]),
    )


def shrimp() -> StoredItems:
    """Return Shrimp Task Manager."""
    version = "1.0.21"

    def create(place: Place, item: Item) -> McpRequest:
        task: dict[str, Any] = {
            "name": item.title,
            "description": item.text,
            # It is required.
            "implementationGuide": item.title,
            "dependencies": [],
            "relatedFiles": [],
        }
        tasks = json.dumps([task])
        return tool_call(
            "split_tasks", updateMode="append", tasksRaw=tasks, globalAnalysisResult="A sample of tasks"
        )

    return StoredItems(
        "Shrimp Task Manager",
        version,
        _from_npm("shrimp", "mcp-shrimp-task-manager", version, "mcp-shrimp-task-manager"),
        create,
        _match(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"),
        lambda place, key: tool_call("get_task_detail", taskId=key),
        lambda place: {
            "DATA_DIR": str(place.project / "shrimp_data"),
            "TEMPLATES_USE": "en",
            "ENABLE_GUI": "false",
        },
    )


PRODUCTS: Final = (dittybag, server_memory, backlog, shrimp, task_master)
