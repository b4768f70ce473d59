"""`dittybag purge`, and what other commands say about what was purged."""

from __future__ import annotations

from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from tests.cli.cli_runner import data, dittybag, failure
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours
from tests.stdio_server_process import StdioServerProcess

SECRET = "qzxjvqkzwx"


def run(home: Path, *arguments: str, status: int = 0, actor: str = "ann") -> str:
    """Run a command as somebody, and return what it prints."""
    result = dittybag(home, *arguments, status=status, variables={"DITTYBAG_ACTOR": actor})
    return result.stderr if status else result.stdout


def error_code(home: Path, *arguments: str, status: int) -> str:
    code: str = failure(dittybag(home, *arguments, "--json", status=status))["code"]
    return code


def history(home: Path) -> list[Any]:
    rows: list[Any] = data(dittybag(home, "history", "--limit", "100", "--json"))["changes"]
    return rows


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder with a prompt of two versions, a deleted prompt, and a task."""
    run(tmp_path, "prompt", "add", "review", f"First {SECRET}")
    run(tmp_path, "prompt", "edit", "review", "Second")
    run(tmp_path, "prompt", "add", "gone", f"Deleted {SECRET}")
    run(tmp_path, "prompt", "delete", "gone")
    run(tmp_path, "task", "add", f"Task {SECRET}")
    return tmp_path


def test_an_item_is_purged_and_the_history_says_by_whom_and_when(home: Path) -> None:
    shown = data(dittybag(home, "purge", "review", "--yes", "--json", variables={"DITTYBAG_ACTOR": "bob"}))
    assert (shown["purged"], shown["versions"]) == (True, 2)
    (item,) = shown["entities"]
    assert (item["kind"], item["name"], item["project"], item["deletes"]) == (
        *("prompt", "review", "default"),
        True,
    )
    deletion, *rest = history(home)
    assert (deletion["actor"], deletion["action"], deletion["name"]) == ("bob", "delete", None)
    purged = [row for row in (deletion, *rest) if row["purged"]]
    assert {(row["id"], row["purged"]["by"]) for row in purged} == {(item["id"], "bob")}
    line = run(home, "history", item["id"]).splitlines()[1]
    assert f"prompt (purged by bob, {deletion['purged']['at']})" in line
    for arguments in (
        ("undo", "--yes"),
        ("undo", "2", "--dry-run"),
        ("restore", "2"),
        ("history", "3", "--diff"),
    ):
        assert error_code(home, *arguments, status=3) == "PURGED", arguments
    message = run(home, "restore", "2", status=3)
    assert message.startswith("error: The content of change 2 was purged by bob at 20")
    assert message.endswith("Z; it cannot be brought back\n")


def test_the_history_is_purged_and_the_current_version_stays(home: Path) -> None:
    shown = data(dittybag(home, "purge", "review", "--keep-current", "--yes", "--json"))
    assert [(item["name"], item["deletes"], item["versions"]) for item in shown["entities"]] == [
        ("review", False, 1)
    ]
    assert [row["change"] for row in history(home) if row["purged"]] == [3, 2]
    assert run(home, "prompt", "show", "review") == "Second"
    assert dittybag(home, "purge", "review", "--keep-current").stderr == "Nothing to purge\n"
    assert error_code(home, "purge", "nothing", "--keep-current", status=3) == "NOTHING_TO_PURGE"


def test_tasks_deleted_items_and_items_of_a_project_are_named(home: Path) -> None:
    run(home, "project", "create", "other")
    run(home, "prompt", "add", "review", "Text", "-p", "other")
    assert "prompt:review in project other" in run(home, "purge", "review", "--yes", status=4)
    run(home, "purge", "review", "-p", "other", "--yes")
    run(home, "purge", "task:1", "--yes")
    assert error_code(home, "purge", "1", "--kind", "task", "--yes", status=3) == "PURGED"
    run(home, "purge", "gone", "--yes")
    assert SECRET not in str(history(home)[:-5])


def test_a_dry_run_and_a_missing_confirmation_change_nothing(home: Path) -> None:
    before = history(home)
    assert run(home, "purge", "review", "--dry-run") == "delete and purge prompt review: 2 versions\n"
    tried = data(dittybag(home, "purge", "review", "--keep-current", "--dry-run", "--json"))
    assert tried["purged"] is False
    assert "--yes" in run(home, "purge", "review", status=1)
    assert error_code(home, "purge", "review", status=1) == "NOT_CONFIRMED"
    assert history(home) == before


@pytest.mark.parametrize(("typed", "status"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_a_terminal_is_asked(tmp_path: Path, typed: str, status: int) -> None:
    dittybag(tmp_path, "prompt", "add", "review", "Text")
    seen = run_in_terminal(
        tmp_path, "purge", "review", answers=[("It cannot be undone.", typed)], status=status
    )
    assert "delete and purge prompt review: 1 version" in strip_colours(seen)
    dittybag(tmp_path, "prompt", "show", "review", status=3 if status == 0 else 0)


# A running server


class Agent:
    """An MCP client of a server on a workspace."""

    def __init__(self, wire: StdioServerProcess) -> None:
        self._wire = wire
        self._ids = count(1)
        #: The methods of the notifications that arrived.
        self.notified: list[str] = []
        wire.handshake()

    def request(self, method: str, **params: Any) -> Any:
        number = next(self._ids)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._wire.send(msgspec.json.encode(message))
        while (answer := self._wire.message(30)).get("id") != number:
            self.notified.append(answer["method"])
        return answer["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        result = self.request("tools/call", name=tool, arguments=arguments)
        return msgspec.json.decode(result["content"][0]["text"])

    def wait_for(self, method: str) -> None:
        while method not in self.notified:
            self.notified.append(self._wire.message(30)["method"])


def test_a_running_server_follows_a_purge_and_says_what_was_purged(home: Path) -> None:
    with StdioServerProcess("dittybag", "serve", env={"DITTYBAG_HOME": str(home)}) as wire:
        agent = Agent(wire)
        added = agent.call("add_prompt", title="Agent's", content=f"Words {SECRET}")
        agent.call("update_prompt", id=added["id"], content=f"Other words {SECRET}")
        agent.call("get_prompt", id=added["id"])
        agent.request("prompts/list")
        agent.notified.clear()
        run(home, "purge", added["id"], "--yes", actor="bob")
        agent.wait_for("notifications/prompts/list_changed")
        assert [item["name"] for item in agent.request("prompts/list")["prompts"]] == ["review"]
        assert agent.call("get_prompt", id=added["id"])["error"]["code"] == "NOT_FOUND"
        changes = agent.call("list_changes", id=added["id"])["changes"]
        assert [(row["action"], row["title"]) for row in changes] == [
            ("delete", "(purged)"),
            ("update", "(purged)"),
            ("create", "(purged)"),
        ]
        refused = agent.call("undo_change", change=changes[0]["change"])["error"]
        assert refused["code"] == "PURGED"
        assert "was purged by bob at 20" in refused["message"]
        assert agent.call("search", query=SECRET, kinds=["prompt"])["total"] == 0


def test_an_interrupted_purge_is_reported_by_doctor_and_resumed(home: Path) -> None:
    assert dittybag(home, "purge", "--resume").stdout == "No purge was interrupted\n"
    with closing(apsw.Connection(str(home / "default.db"))) as connection:
        connection.execute("INSERT INTO pending_purges (at, actor) VALUES (0, 'ann')")
    report = dittybag(home, "doctor").stdout
    assert "A purge was interrupted" in report
    assert "dittybag purge --resume" in report
    assert data(dittybag(home, "purge", "--resume", "--json")) == {"finished": True}
    assert "A purge was interrupted" not in dittybag(home, "doctor").stdout


def test_doctor_finds_nothing_after_a_purge_and_the_files_have_no_byte_of_it(home: Path) -> None:
    def files_with_secret() -> list[str]:
        return [file.name for file in home.glob("*.db*") if SECRET.encode() in file.read_bytes().lower()]

    assert files_with_secret()
    for ref in ("review", "gone", "task:1"):
        run(home, "purge", ref, "--yes")
    assert files_with_secret() == []
    assert "The search index is intact" in run(home, "doctor")
