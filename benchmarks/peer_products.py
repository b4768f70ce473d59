"""Other products that keep tasks or notes for agents, and how each stores and returns one item."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from tests.interop.environments import NODE, install

from benchmarks.peers import PeerEnvironment
from benchmarks.product import products
from benchmarks.store_calls import McpRequest, tool_call


class StoredItem(Struct, frozen=True):
    """A product, ready to be started on a folder."""

    title: str
    #: Makes the store in an empty folder.
    prepare: Callable[[Path], None]
    command: Callable[[Path], list[str]]
    variables: Callable[[Path], dict[str, str]]
    create: Callable[[Path, str], McpRequest]
    #: The request that reads an item, from the folder, the title and the text of the response to `create`.
    read: Callable[[Path, str, str], McpRequest]


def _nothing(folder: Path) -> None:
    """Prepare nothing: the product makes its store itself."""


def _no_variables(folder: Path) -> dict[str, str]:
    return {}


def _node(name: str, package: str, version: str, program: str) -> list[str]:
    """Install a product from npm, and return the start of its command."""
    environment = PeerEnvironment(name, f"{package} {version}", {package: version}, "node")
    install(environment)
    return [str(NODE), str(environment.home / "node_modules" / ".bin" / program)]


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"no {pattern} in {text[:300]}")
    return found[1]


def dittybag() -> StoredItem:
    """Return Dittybag with tasks."""
    (product,) = products(None)
    return StoredItem(
        "Dittybag",
        _nothing,
        lambda folder: [product.command, "serve", "--profile", "agent", "--db", str(folder / "workspace.db")],
        lambda folder: {"DITTYBAG_HOME": str(folder)},
        lambda folder, title: tool_call("task_add", tasks=[{"title": title}]),
        lambda folder, title, text: tool_call("read", ref="task:" + _first(r"task:(\d+)", text)),
    )


def server_memory() -> StoredItem:
    """Return the reference server for a memory, with entities."""
    package = "@modelcontextprotocol/server-memory"
    command = _node("server-memory", package, "2026.8.31", "mcp-server-memory")
    return StoredItem(
        "server-memory 2026.8.31",
        _nothing,
        lambda folder: command,
        lambda folder: {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
        lambda folder, title: tool_call(
            "create_entities", entities=[{"name": title, "entityType": "task", "observations": [title]}]
        ),
        lambda folder, title, text: tool_call("open_nodes", names=[title]),
    )


def task_master() -> StoredItem:
    """Return task-master-ai, with tasks that no model writes."""
    command = _node("task-master", "task-master-ai", "0.43.1", "task-master-mcp")

    def prepare(folder: Path) -> None:
        tasks = folder / ".taskmaster" / "tasks"
        tasks.mkdir(parents=True)
        (tasks / "tasks.json").write_text(json.dumps({"master": {"tasks": [], "metadata": {}}}))

    return StoredItem(
        "task-master-ai 0.43.1",
        prepare,
        lambda folder: command,
        lambda folder: {"TASK_MASTER_TOOLS": "all"},
        lambda folder, title: tool_call(
            "add_task", projectRoot=str(folder), title=title, description=title, details=title
        ),
        lambda folder, title, text: tool_call(
            "get_task", projectRoot=str(folder), id=_first(r'"taskId": (\d+)', text)
        ),
    )


def backlog() -> StoredItem:
    """Return Backlog.md, in a Git repository."""
    node = _node("backlog", "backlog.md", "1.52.0", "backlog")
    program = node[1]

    def prepare(folder: Path) -> None:
        for command in (["git", "init", "--quiet"], [program, "init", "bench", "--defaults"]):
            subprocess.run(command, cwd=folder, check=True, capture_output=True, stdin=subprocess.DEVNULL)

    return StoredItem(
        "Backlog.md 1.52.0",
        prepare,
        lambda folder: [program, "mcp", "start", "--cwd", str(folder)],
        _no_variables,
        lambda folder, title: tool_call("task_create", title=title, description=title),
        lambda folder, title, text: tool_call("task_view", id=_first(r"Task (TASK-\d+)", text)),
    )


def shrimp() -> StoredItem:
    """Return Shrimp Task Manager."""
    command = _node("shrimp", "mcp-shrimp-task-manager", "1.0.21", "mcp-shrimp-task-manager")

    def create(folder: Path, title: str) -> McpRequest:
        task: dict[str, Any] = {
            "name": title,
            "description": f"{title} {title}",
            "implementationGuide": title,
        }
        tasks = json.dumps([{**task, "dependencies": [], "relatedFiles": []}])
        return tool_call("split_tasks", updateMode="append", tasksRaw=tasks, globalAnalysisResult=title)

    return StoredItem(
        "Shrimp Task Manager 1.0.21",
        _nothing,
        lambda folder: command,
        lambda folder: {"DATA_DIR": str(folder), "ENABLE_GUI": "false", "TEMPLATES_USE": "en"},
        create,
        lambda folder, title, text: tool_call(
            "get_task_detail", taskId=_first(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", text)
        ),
    )


PRODUCTS: Final = (dittybag, server_memory, task_master, backlog, shrimp)
