"""Several servers on one workspace: each client hears of what the others do, in every revision."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.contracts.contract_replay import Json, ServerUnderTest, create_project, database
from tests.wire import Wire

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

#: What a client may have to wait for a change that another process has made.
SECOND = 1.0


class Watcher:
    """A client that has said what it wants to be told of, in one of the two ways there are."""

    def __init__(self, directory: Path, stack: ExitStack, *, stateless: bool) -> None:
        self._directory = directory
        self._stack = stack
        self._stateless = stateless

    def watch(self, *uris: str) -> None:
        """Start a server and have it tell what changes from now on."""
        self._wire = self._stack.enter_context(Wire("dittybag", "serve", *database(self._directory)))
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

    def heard(self) -> tuple[str, Json]:
        """The next notification, which comes within a second."""
        message = self._wire.message(SECOND)
        params = message.get("params", {})
        if self._stateless:
            assert params.pop("_meta") == {SUBSCRIPTION: "listening"}
        assert "id" not in message
        return message["method"], params

    def hears_nothing_before(self, request_id: str) -> None:
        """Nothing came up to now: the answer to a request is the next thing to come."""
        assert self.ask(request_id, "tools/list", {})["tools"]


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def watcher(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Watcher]:
    with ExitStack() as stack:
        yield Watcher(tmp_path, stack, stateless=request.param == "2026-07-28")


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[ServerUnderTest]:
    with ServerUnderTest(tmp_path) as server:
        yield server


def test_a_prompt_written_through_one_server_is_announced_by_the_other(
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
        assert watcher.heard() == ("notifications/prompts/list_changed", {})


def test_what_was_announced_is_listed(watcher: Watcher, writer: ServerUnderTest) -> None:
    watcher.watch()
    assert watcher.ask("before", "prompts/list", {})["prompts"] == []
    writer.text("create_prompt", name="shared", content="one")
    watcher.heard()
    (listed,) = watcher.ask("after", "prompts/list", {})["prompts"]
    assert listed["name"] == "shared"


def test_a_watched_resource_is_announced_when_it_changes(watcher: Watcher, writer: ServerUnderTest) -> None:
    document = {"name": "notes", "uri": "file:///notes.md", "mime_type": "text/markdown"}
    writer.text("create_resource", **document, content="one")
    writer.text("create_resource", name="other", uri="file:///other.md", content="x")
    watcher.watch("file:///notes.md")
    updated = ("notifications/resources/updated", {"uri": "file:///notes.md"})
    # As long as before: the list looks the same.
    writer.text("update_resource", name="notes", content="two")
    assert watcher.heard() == updated
    writer.text("update_resource", name="notes", content="three and more")
    assert watcher.heard() == ("notifications/resources/list_changed", {})
    assert watcher.heard() == updated
    writer.text("update_resource", name="other", content="y")
    watcher.hears_nothing_before("quiet")
    writer.text("delete_resource", name="notes")
    assert {watcher.heard()[0], watcher.heard()[0]} == {
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    }


def test_tasks_and_other_projects_are_not_announced(
    watcher: Watcher, writer: ServerUnderTest, tmp_path: Path
) -> None:
    create_project(tmp_path, "elsewhere")
    watcher.watch()
    writer.text("task_create", title="Nobody lists tasks")
    with ServerUnderTest(tmp_path, "all", "--project", "elsewhere") as elsewhere:
        elsewhere.text("create_prompt", name="far", content="away")
    writer.text("create_prompt", name="near", content="by")
    # The first to arrive, and the only one.
    assert watcher.heard() == ("notifications/prompts/list_changed", {})
    watcher.hears_nothing_before("quiet")


def test_one_s_own_write_is_answered_before_it_is_announced(tmp_path: Path) -> None:
    with Wire("dittybag", "serve", *database(tmp_path)) as wire:
        wire.handshake()
        call = {"name": "create_prompt", "arguments": {"name": "mine", "content": "x"}}
        wire.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        assert wire.message(SECOND)["method"] == "notifications/prompts/list_changed"


@pytest.mark.parametrize("profile", ["all", "mcpkg"])
def test_lists_are_never_stale_even_before_the_announcement(tmp_path: Path, profile: str) -> None:
    with ServerUnderTest(tmp_path, profile) as reader, ServerUnderTest(tmp_path, "mcpkg") as writer:
        for number in range(20):
            writer.text("create_prompt", name=f"p{number}", content="x")
            listed = reader.request("prompts/list")["prompts"]
            assert [prompt["name"] for prompt in listed] == [f"p{count}" for count in range(number + 1)]


def test_everything_deleted_or_overwritten_comes_back_by_undoing(tmp_path: Path) -> None:
    """Through one server it is lost, through another it is restored, byte for byte."""
    every_byte = base64.b64encode(bytes(range(256)) * 4).decode()
    with ServerUnderTest(tmp_path) as loser, ServerUnderTest(tmp_path) as finder:
        prompt_id = loser.data("add_prompt", title="Ünïcode 😀", content="a\r\n\tb\x1f", tags=["X", "y"])[
            "id"
        ]
        loser.text(
            "create_resource", name="pic", uri="file:///p.png", mime_type="image/png", content=every_byte
        )
        loser.text("create_resource", name="doc", uri="file:///d.md", content="text\n")
        task_id = loser.data("task_create", title="Do", notes="n", due_date="2027-01-01")["id"]

        def everything() -> list[Any]:
            return [
                finder.data("get_prompt", id=prompt_id),
                finder.request("prompts/list"),
                finder.request("resources/list"),
                finder.request("resources/read", {"uri": "file:///p.png"}),
                finder.request("resources/read", {"uri": "file:///d.md"}),
                finder.data("task_get", task_id=task_id),
            ]

        before = everything()
        losses: list[tuple[str, Json]] = [
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
        for tool, arguments in losses:
            loser.text(tool, **arguments)
        changes = finder.data("list_changes", limit=len(losses))["changes"]
        for change in changes:
            finder.text("undo_change", change=change["change"])
        assert everything() == before
        # What was undone is in the log too, and so are both actors.
        assert [item["action"] for item in finder.data("list_changes", limit=9)["changes"]] == ["restore"] * 9
