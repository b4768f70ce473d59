"""Servers on one workspace notify their clients of each other's changes, in every protocol revision."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.contracts.contract_replay import Json, ServerUnderTest, create_project, database
from tests.stdio_server_process import StdioServerProcess

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

#: The maximum time until a client is notified of a change by another process.
MAX_SECONDS = 1.0


class Watcher:
    """A client of either era that subscribes to notifications."""

    def __init__(self, directory: Path, stack: ExitStack, *, stateless: bool) -> None:
        self._directory = directory
        self._stack = stack
        self._stateless = stateless

    def watch(self, *uris: str) -> None:
        """Start a server and subscribe to its notifications."""
        self._wire = self._stack.enter_context(
            StdioServerProcess("dittybag", "serve", *database(self._directory))
        )
        if not self._stateless:
            self._wire.handshake()
            for number, uri in enumerate(uris):
                self.ask(f"s{number}", "resources/subscribe", {"uri": uri})
            return
        wanted = {"promptsListChanged": True, "resourcesListChanged": True, "toolsListChanged": True}
        listen = {"notifications": wanted | {"resourceSubscriptions": list(uris)}, "_meta": ENVELOPE}
        request = {"jsonrpc": "2.0", "id": "listening", "method": "subscriptions/listen", "params": listen}
        self._wire.send(msgspec.json.encode(request))
        assert self._wire.message()["method"] == "notifications/subscriptions/acknowledged"

    def ask(self, request_id: str, method: str, params: Json) -> Any:
        meta = {"_meta": ENVELOPE} if self._stateless else {}
        request = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params | meta}
        return self._wire.ask(request)["result"]

    def next_notification(self) -> tuple[str, Json]:
        """Return the next notification, which must arrive within a second."""
        message = self._wire.message(MAX_SECONDS)
        params = message.get("params", {})
        if self._stateless:
            assert params.pop("_meta") == {SUBSCRIPTION: "listening"}
        assert "id" not in message
        return message["method"], params

    def assert_quiet_until(self, request_id: str) -> None:
        """Check that no notification arrives before the response to this request."""
        assert self.ask(request_id, "tools/list", {})["tools"]


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def watcher(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Watcher]:
    with ExitStack() as stack:
        yield Watcher(tmp_path, stack, stateless=request.param == "2026-07-28")


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[ServerUnderTest]:
    with ServerUnderTest(tmp_path) as server:
        yield server


def test_a_prompt_change_on_one_server_is_notified_by_the_other(
    watcher: Watcher, writer: ServerUnderTest
) -> None:
    watcher.watch()
    changes: list[tuple[str, Json]] = [
        ("create_prompt", {"name": "shared", "content": "one"}),
        ("update_prompt", {"name": "shared", "description": "two"}),
        ("delete_prompt", {"name": "shared"}),
    ]
    for tool, arguments in changes:
        writer.text(tool, **arguments)
        assert watcher.next_notification() == ("notifications/prompts/list_changed", {})


def test_a_notified_change_is_in_the_list(watcher: Watcher, writer: ServerUnderTest) -> None:
    watcher.watch()
    assert watcher.ask("before", "prompts/list", {})["prompts"] == []
    writer.text("create_prompt", name="shared", content="one")
    watcher.next_notification()
    (listed,) = watcher.ask("after", "prompts/list", {})["prompts"]
    assert listed["name"] == "shared"


def test_a_subscribed_resource_is_notified_when_it_changes(watcher: Watcher, writer: ServerUnderTest) -> None:
    resource = {"name": "notes", "uri": "file:///notes.md", "mime_type": "text/markdown"}
    writer.text("create_resource", **resource, content="one")
    writer.text("create_resource", name="other", uri="file:///other.md", content="x")
    watcher.watch("file:///notes.md")
    updated = ("notifications/resources/updated", {"uri": "file:///notes.md"})
    # The size is the same, so the list does not change.
    writer.text("update_resource", name="notes", content="two")
    assert watcher.next_notification() == updated
    writer.text("update_resource", name="notes", content="three and more")
    assert watcher.next_notification() == ("notifications/resources/list_changed", {})
    assert watcher.next_notification() == updated
    writer.text("update_resource", name="other", content="y")
    watcher.assert_quiet_until("quiet")
    writer.text("delete_resource", name="notes")
    assert {watcher.next_notification()[0], watcher.next_notification()[0]} == {
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    }


def test_changes_of_tasks_and_other_projects_are_not_notified(
    watcher: Watcher, writer: ServerUnderTest, tmp_path: Path
) -> None:
    create_project(tmp_path, "elsewhere")
    watcher.watch()
    writer.text("task_create", title="A task")
    with ServerUnderTest(tmp_path, "all", "--project", "elsewhere") as elsewhere:
        elsewhere.text("create_prompt", name="far", content="away")
    writer.text("create_prompt", name="near", content="by")
    # The first notification, and the only one.
    assert watcher.next_notification() == ("notifications/prompts/list_changed", {})
    watcher.assert_quiet_until("quiet")


def test_the_response_to_a_write_comes_before_its_notification(tmp_path: Path) -> None:
    with StdioServerProcess("dittybag", "serve", *database(tmp_path)) as wire:
        wire.handshake()
        call = {"name": "create_prompt", "arguments": {"name": "mine", "content": "x"}}
        wire.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        assert wire.message(MAX_SECONDS)["method"] == "notifications/prompts/list_changed"


@pytest.mark.parametrize("profile", ["all", "mcpkg"])
def test_lists_are_never_stale_even_before_the_notification(tmp_path: Path, profile: str) -> None:
    with ServerUnderTest(tmp_path, profile) as reader, ServerUnderTest(tmp_path, "mcpkg") as writer:
        for number in range(20):
            writer.text("create_prompt", name=f"p{number}", content="x")
            listed = reader.request("prompts/list")["prompts"]
            assert [prompt["name"] for prompt in listed] == [f"p{count}" for count in range(number + 1)]


def test_undo_restores_everything_that_was_deleted_or_overwritten(tmp_path: Path) -> None:
    """One server deletes or overwrites; another restores every byte."""
    every_byte = base64.b64encode(bytes(range(256)) * 4).decode()
    with ServerUnderTest(tmp_path) as deleting, ServerUnderTest(tmp_path) as restoring:
        prompt_id = deleting.data("add_prompt", title="Ünïcode 😀", content="a\r\n\tb\x1f", tags=["X", "y"])[
            "id"
        ]
        deleting.text(
            "create_resource", name="pic", uri="file:///p.png", mime_type="image/png", content=every_byte
        )
        deleting.text("create_resource", name="doc", uri="file:///d.md", content="text\n")
        task_id = deleting.data("task_create", title="Do", notes="n", due_date="2027-01-01")["id"]

        def everything() -> list[Any]:
            return [
                restoring.data("get_prompt", id=prompt_id),
                restoring.request("prompts/list"),
                restoring.request("resources/list"),
                restoring.request("resources/read", {"uri": "file:///p.png"}),
                restoring.request("resources/read", {"uri": "file:///d.md"}),
                restoring.data("task_get", task_id=task_id),
            ]

        before = everything()
        deletions: list[tuple[str, Json]] = [
            ("update_prompt", {"id": prompt_id, "title": "T", "content": "gone", "tags": []}),
            ("delete_prompt", {"id": prompt_id}),
            ("update_resource", {"name": "pic", "content": "AAAA", "description": "d"}),
            ("delete_resource", {"name": "pic"}),
            ("update_resource", {"name": "doc", "mime_type": "application/pdf", "content": "AAAA"}),
            ("delete_resource", {"name": "doc"}),
            ("task_update", {"task_id": task_id, "title": "Gone", "notes": "", "due_date": ""}),
            ("task_complete", {"task_id": task_id}),
            ("task_delete", {"task_id": task_id}),
        ]
        for tool, arguments in deletions:
            deleting.text(tool, **arguments)
        changes = restoring.data("list_changes", limit=len(deletions))["changes"]
        for change in changes:
            restoring.text("undo_change", change=change["change"])
        assert everything() == before
        # The log contains the undo operations too.
        assert [item["action"] for item in restoring.data("list_changes", limit=9)["changes"]] == [
            "restore"
        ] * 9
