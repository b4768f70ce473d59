"""`dittybag purge`, on SQLite and PostgreSQL, and what other commands say about what was purged."""

from __future__ import annotations

import subprocess
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from msgspec import Struct

from tests.cli.cli_runner import data, dittybag, failure
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours
from tests.postgres_servers import PostgresServer
from tests.stdio_server_process import StdioServerProcess

SECRET = "qzxjvqkzwx"

schema_numbers = count(1)


class Commands(Struct, frozen=True):
    """Runs commands on one workspace."""

    home: Path
    variables: dict[str, str]

    def run(self, *arguments: str, status: int = 0, actor: str = "ann") -> subprocess.CompletedProcess[str]:
        variables = {**self.variables, "DITTYBAG_ACTOR": actor}
        return dittybag(self.home, *arguments, status=status, variables=variables)

    def data(self, *arguments: str) -> Any:
        return data(self.run(*arguments, "--json"))

    def error(self, *arguments: str, status: int) -> str:
        code: str = failure(self.run(*arguments, "--json", status=status))["code"]
        return code


@pytest.fixture
def server(shared_postgres: PostgresServer) -> PostgresServer:
    return shared_postgres


@pytest.fixture(params=["sqlite", "postgres"])
def commands(tmp_path: Path, request: pytest.FixtureRequest) -> Commands:
    """A workspace with a prompt of two versions, a deleted prompt, a resource and a task."""
    variables = {}
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("server")
        variables["DITTYBAG_DATABASE_URL"] = server.url(schema=f"purge_{next(schema_numbers)}")
    commands = Commands(tmp_path, variables)
    commands.run("prompt", "add", "review", f"First {SECRET}")
    commands.run("prompt", "edit", "review", "Second")
    commands.run("prompt", "add", "gone", f"Deleted {SECRET}")
    commands.run("prompt", "delete", "gone")
    commands.run("task", "add", f"Task {SECRET}")
    return commands


def history(commands: Commands) -> list[Any]:
    rows: list[Any] = commands.data("history", "--limit", "100")["changes"]
    return rows


def test_an_item_is_purged_and_the_history_says_by_whom_and_when(commands: Commands) -> None:
    before = history(commands)
    shown = data(commands.run("purge", "review", "--yes", "--json", actor="bob"))
    assert (shown["purged"], shown["versions"]) == (True, 2)
    (item,) = shown["entities"]
    assert (item["kind"], item["name"], item["project"], item["deletes"]) == (
        "prompt",
        "review",
        "default",
        True,
    )
    deletion, *rest = history(commands)
    assert (deletion["actor"], deletion["action"], deletion["name"]) == ("bob", "delete", None)
    assert [(row["change"], row["at"], row["actor"], row["action"]) for row in rest] == [
        (row["change"], row["at"], row["actor"], row["action"]) for row in before
    ]
    purged = [row for row in (deletion, *rest) if row["id"] == item["id"]]
    assert {row["purged"]["by"] for row in purged} == {"bob"}
    assert all(row["purged"]["at"] >= row["at"] for row in purged)
    assert [row["purged"] for row in rest if row["id"] != item["id"]] == [None] * (len(rest) - 2)
    line = commands.run("history", item["id"]).stdout.splitlines()[1]
    assert f"prompt (purged by bob, {deletion['purged']['at']})" in line
    commands.run("prompt", "show", "review", status=3)


def test_undo_restore_and_diff_of_a_purged_change_say_so(commands: Commands) -> None:
    commands.run("purge", "review", "--yes")
    for arguments in (
        ("undo", "--yes"),
        ("undo", "2", "--yes"),
        ("undo", "--last", "20", "--yes"),
        ("undo", "2", "--dry-run"),
        ("restore", "2"),
        ("restore", "3"),
        ("history", "3", "--diff"),
    ):
        assert commands.error(*arguments, status=3) == "PURGED", arguments
    message = commands.run("restore", "2", status=3).stderr
    assert message.startswith("error: The content of change 2 was purged by ann at 20")
    assert message.endswith("Z; it cannot be brought back\n")
    # Everything else can still be undone.
    commands.run("undo", "5", "--yes")
    assert SECRET in commands.run("prompt", "show", "gone").stdout


def test_the_history_is_purged_and_the_current_version_stays(commands: Commands) -> None:
    shown = commands.data("purge", "review", "--keep-current", "--yes")
    assert [(item["name"], item["deletes"], item["versions"]) for item in shown["entities"]] == [
        ("review", False, 1)
    ]
    assert [row["change"] for row in history(commands) if row["purged"]] == [3, 2]
    assert commands.run("prompt", "show", "review").stdout == "Second"
    assert commands.run("purge", "review", "--keep-current").stderr == "Nothing to purge\n"
    assert commands.error("purge", "nothing", "--keep-current", status=3) == "NOTHING_TO_PURGE"


def test_tasks_deleted_items_and_projects_are_named(commands: Commands) -> None:
    commands.run("project", "create", "other")
    commands.run("prompt", "add", "review", "Text", "-p", "other")
    assert commands.error("purge", "review", "--yes", status=4) == "AMBIGUOUS"
    assert "prompt:review in project other" in commands.run("purge", "review", "--yes", status=4).stderr
    commands.run("purge", "review", "-p", "other", "--yes")
    commands.run("purge", "task:1", "--yes")
    assert commands.error("purge", "1", "--kind", "task", "--yes", status=3) == "PURGED"
    commands.run("purge", "gone", "--yes")
    commands.run("purge", "other", "--yes")
    assert [row["name"] for row in commands.data("project", "list")["projects"]] == ["default"]
    assert commands.error("purge", "default", "--yes", status=4) == "PROJECT_PROTECTED"
    assert commands.error("purge", "nothing", "--yes", status=3) == "NOTHING_TO_PURGE"
    assert SECRET not in str(history(commands)[1:-1])


def test_a_dry_run_and_a_missing_confirmation_change_nothing(commands: Commands) -> None:
    before = history(commands)
    planned = commands.run("purge", "review", "--dry-run").stdout
    assert planned == "delete and purge prompt review: 2 versions\n"
    assert commands.data("purge", "review", "--keep-current", "--dry-run")["purged"] is False
    assert "--yes" in commands.run("purge", "review", status=1).stderr
    assert commands.error("purge", "review", status=1) == "NOT_CONFIRMED"
    assert history(commands) == before


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


def test_a_running_server_follows_a_purge_and_says_what_was_purged(commands: Commands) -> None:
    environment = {**commands.variables, "DITTYBAG_HOME": str(commands.home)}
    with StdioServerProcess("dittybag", "serve", env=environment) as wire:
        agent = Agent(wire)
        added = agent.call("add_prompt", title="Agent's", content=f"Words {SECRET}")
        agent.call("update_prompt", id=added["id"], content=f"Other words {SECRET}")
        agent.call("get_prompt", id=added["id"])
        agent.request("prompts/list")
        agent.notified.clear()
        commands.run("purge", added["id"], "--yes", actor="bob")
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


# SQLite only: files, doctor, exports


def files_with(home: Path, text: str) -> list[str]:
    return [file.name for file in home.glob("*.db*") if text.encode() in file.read_bytes().lower()]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    dittybag(tmp_path, "prompt", "add", "review", f"First {SECRET}")
    dittybag(tmp_path, "prompt", "edit", "review", f"Second {SECRET}")
    dittybag(tmp_path, "task", "add", "Kept")
    return tmp_path


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
    assert files_with(home, SECRET)
    dittybag(home, "purge", "review", "--yes")
    assert files_with(home, SECRET) == []
    assert "The search index is intact" in dittybag(home, "doctor").stdout
