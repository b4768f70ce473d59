"""The tool `project`: the project of a connection on stdio, and of a session over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dittybag.contracts.project_tool import project
from dittybag.protocol.argument_schemas import schema_of
from tests.cli.cli_runner import data, dittybag
from tests.contracts.http_server_process import BOTH, HttpServerProcess, McpHttpClient, open_event_stream
from tests.folders.folder_client import FolderClient, Json, Machine, McpCalls
from tests.folders.project_server import PROFILE

LISTS_CHANGED = ["notifications/prompts/list_changed", "notifications/resources/list_changed"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with the projects `one` and `two`, each with a prompt."""
    machine = Machine(tmp_path)
    for name in ("one", "two"):
        machine.command(machine.path, "project", "create", name)
        machine.command(machine.path, "prompt", "add", f"of-{name}", "x", "--project", name)
    return machine


def fixed(machine: Machine, *options: str, **more: Any) -> FolderClient:
    """Connect to a server with a fixed project."""
    return FolderClient(machine, machine.home, "--project", "one", *options, **more)


# On stdio


def test_the_definition_is_short_and_begins_with_when_to_use_it() -> None:
    schema = msgspec.json.encode(schema_of(project.arguments)).decode()
    assert (len(project.name) + len(project.description) + len(schema)) / 4 <= 110
    assert project.description.startswith("Use to ")


def test_the_current_project_is_listed_with_the_reason(machine: Machine) -> None:
    with fixed(machine) as client:
        assert client.call("project") == {
            "current": "one",
            "why": "the project of this server",
            "projects": [
                {"name": "default", "prompts": 0, "resources": 0, "tasks": 0},
                {"name": "one", "prompts": 1, "resources": 0, "tasks": 0},
                {"name": "two", "prompts": 1, "resources": 0, "tasks": 0},
            ],
        }
        assert [row["name"] for row in client.call("project", name="T")["projects"]] == ["two"]


def test_a_long_list_says_how_many_more_there_are(machine: Machine) -> None:
    with fixed(machine) as client:
        for number in range(60):
            client.call("project", action="create", name=f"{number:02}-" + "x" * 90)
        listed = client.call("project")
        assert len(listed["projects"]) == 50
        assert listed["more"] == "13 more; give name to list those that begin with it"
        assert len(msgspec.json.encode(listed)) / 4 < 8000
        assert "more" not in client.call("project", name="5")


@pytest.mark.parametrize("stateless", [False, True], ids=["handshake", "stateless"])
def test_a_switch_changes_the_project_of_the_connection_only(machine: Machine, stateless: bool) -> None:
    with fixed(machine, stateless=stateless) as client, fixed(machine) as other:
        if stateless:
            client.listen()
        assert client.prompts() == ["of-one"]
        switched = client.call("project", action="switch", name="two")
        assert switched == {"current": "two", "why": "switched to by this connection"}
        assert list(client.notifications) == LISTS_CHANGED
        assert client.prompts() == ["of-two"]
        assert client.save("new") == "two"
        assert other.prompts() == ["of-one"]
        assert client.call("project", action="switch")["current"] == "one"
        assert client.prompts() == ["of-one"]


def test_what_follows_a_switch_on_the_wire_sees_the_new_project(machine: Machine, postgres_url: str) -> None:
    """On PostgreSQL, where the switch has to wait for the database."""
    with FolderClient(machine, machine.home, "--db", postgres_url) as client:
        client.call("project", action="create", name="two")
        client.save("of-default")
        switch = {"name": "project", "arguments": {"action": "switch", "name": "two"}}
        first, second = client.request("tools/call", switch), client.request("prompts/list", {})
        assert client.response(first)["result"]["structuredContent"]["current"] == "two"
        assert client.response(second)["result"]["prompts"] == []


def test_notifications_follow_the_switch(machine: Machine) -> None:
    with fixed(machine) as client:
        client.call("project", action="switch", name="two")
        client.notifications.clear()
        file = machine.path / "file.txt"
        file.write_text("x")
        machine.command(machine.path, "resource", "add", str(file), "-p", "one")
        machine.command(machine.path, "prompt", "add", "more", "x", "--project", "two")
        client.wait_for("notifications/prompts/list_changed")
        assert client.prompts() == ["of-two", "more"]
        assert "notifications/resources/list_changed" not in client.notifications


def test_updates_of_prompts_as_skills_follow_the_switch(machine: Machine) -> None:
    with fixed(machine) as client:
        client.ask("resources/subscribe", {"uri": "skill://stored-prompts/of-two/SKILL.md"})
        client.call("project", action="switch", name="two")
        client.notifications.clear()
        machine.command(machine.path, "prompt", "edit", "of-two", "--title", "New", "--project", "two")
        client.wait_for("notifications/resources/updated")


def test_a_switch_to_an_unknown_project_is_refused(machine: Machine) -> None:
    with fixed(machine) as client:
        assert client.refusal("project", action="switch", name="nope") == (
            '{"error":{"code":"INVALID_INPUT","message":"Project \'nope\' does not exist. '
            'Use the action list to see all, create to create it"}}'
        )
        assert client.prompts() == ["of-one"]


def test_a_project_is_created_but_not_switched_to(machine: Machine) -> None:
    with fixed(machine) as client:
        assert client.call("project", action="create", name="three")["created"] == "three"
        assert client.call("project")["current"] == "one"
        assert "DUPLICATE_NAME" in client.refusal("project", action="create", name="three")
        assert "name is required" in client.refusal("project", action="create")
        assert "must not be 'auto'" in client.refusal("project", action="create", name="auto")
        assert "action" in client.refusal("project", action="delete", name="three")


def test_a_read_only_server_lists_and_switches(machine: Machine) -> None:
    with fixed(machine, "--read-only") as client:
        assert client.call("project", action="switch", name="two")["current"] == "two"
        assert client.prompts() == ["of-two"]
        assert "NOT_ALLOWED" in client.refusal("project", action="create", name="three")


def test_a_cursor_does_not_outlast_a_switch(machine: Machine) -> None:
    file = machine.path / "prompts.csv"
    file.write_text("act,prompt\n" + "".join(f"Prompt {number},x\n" for number in range(1005)))
    machine.command(machine.path, "import", str(file), "-p", "one")
    with fixed(machine) as client:
        cursor = client.ask("prompts/list")["nextCursor"]
        assert client.ask("prompts/list", {"cursor": cursor})["prompts"]
        client.call("project", action="switch", name="two")
        message = client.response(client.request("prompts/list", {"cursor": cursor}))
        assert message["error"]["message"] == "Invalid cursor: restart the list without a cursor"


def test_a_switch_comes_before_the_folder_until_the_client_switches_back(machine: Machine) -> None:
    top = machine.repository("website")
    with machine.connect(top, roots=[f"file://{top}"]) as client:
        assert client.call("project")["current"] == "website"
        client.call("project", action="switch", name="two")
        client.change_roots(f"file://{machine.repository('other')}")
        assert client.prompts() == ["of-two"]
        client.call("project", action="switch")
        assert client.save("new") == "other"


def test_a_switched_project_that_is_deleted_is_reported(machine: Machine) -> None:
    with fixed(machine) as client:
        client.call("project", action="switch", name="two")
        machine.command(machine.path, "project", "delete", "two")
        message = client.response(client.request("prompts/list", {}))
        assert "The selected project was deleted" in message["error"]["message"]
        assert client.call("project")["current"] == ""
        assert client.call("project", action="switch")["current"] == "one"


# Over HTTP


class HttpClient(McpHttpClient, McpCalls):
    """A client with a token."""

    def __init__(self, host: HttpServerProcess, token: str) -> None:
        super().__init__(host)
        self._token = token
        self._last = 0

    def open_session(self) -> None:
        self.ask(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}}
        )

    def headers(self) -> dict[str, str]:
        return super().headers() | ({"Authorization": f"Bearer {self._token}"} if self._token else {})

    def message(self, method: str, params: Json | None = None) -> Json:
        self._last += 1
        frame = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params or {}}
        response = self.post(msgspec.json.encode(frame), BOTH)
        if "text/event-stream" in response.headers["content-type"]:
            events = [line[6:] for line in response.body.decode().split("\n") if line.startswith("data: {")]
            return next(m for m in map(msgspec.json.decode, events) if m.get("id") == self._last)
        message = response.message()
        self._adopt_session(message, response)
        return message  # type: ignore[no-any-return]  # JSON

    def ask(self, method: str, params: Json | None = None) -> Json:
        message = self.message(method, params)
        assert "error" not in message, message
        result: Json = message["result"]
        return result


class HttpServer:
    """A server whose clients are closed with it."""

    def __init__(self, process: HttpServerProcess, stack: ExitStack) -> None:
        self.process = process
        self._stack = stack

    def connect(self, token: str = "", *, has_session: bool = True) -> HttpClient:
        client = HttpClient(self.process, token)
        self._stack.callback(client.close)
        if has_session:
            client.open_session()
        return client


@contextmanager
def http_server(machine: Machine, *options: str) -> Iterator[HttpServer]:
    arguments = ("serve", "--http", "127.0.0.1:0", "--profile", PROFILE, "--project", "one", *options)
    process = HttpServerProcess(*arguments, module="tests.folders.project_server", env=machine.environment)
    with process as started, ExitStack() as stack:
        yield HttpServer(started, stack)


def test_a_switch_belongs_to_its_session(machine: Machine) -> None:
    with http_server(machine) as server:
        first, second = server.connect(), server.connect()
        assert first.call("project", action="switch", name="two")["current"] == "two"
        assert first.prompts() == ["of-two"]
        assert second.prompts() == ["of-one"]
        with ExitStack() as stack:
            streams = [
                stack.enter_context(open_event_stream(server.process, "GET", None, client.headers()))
                for client in (first, second)
            ]
            # What the switch itself has sent.
            assert [streams[0].message()["method"] for _ in LISTS_CHANGED] == LISTS_CHANGED
            second.call("create_resource", name="r", uri="file:///r", content="x")
            first.call("create_prompt", name="new", content="x")
            assert streams[0].message()["method"] == "notifications/prompts/list_changed"
            assert streams[1].message()["method"] == "notifications/resources/list_changed"
        assert (first.prompts(), second.prompts()) == (["of-two", "new"], ["of-one"])


def test_a_switch_is_kept_when_another_process_handles_the_session(machine: Machine) -> None:
    with http_server(machine) as server, http_server(machine) as other:
        client = server.connect()
        client.call("project", action="switch", name="two")
        moved = other.connect(has_session=False)
        moved.session, moved.version = client.session, client.version
        assert moved.prompts() == ["of-two"]
        moved.call("project", action="switch")
        assert client.prompts() == ["of-one"]


def test_without_a_session_a_switch_is_refused(machine: Machine) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with http_server(machine) as server:
        client = server.connect(has_session=False)
        params = {"name": "project", "arguments": {"action": "switch", "name": "two"}, "_meta": meta}
        text = client.ask("tools/call", params)["content"][0]["text"]
        assert "This request belongs to no session" in text
        assert "dittybag serve --project NAME" in text
        listed = client.ask("tools/call", {"name": "project", "arguments": {}, "_meta": meta})
        assert listed["structuredContent"]["current"] == "one"


def test_the_automatic_project_is_refused_over_http(machine: Machine) -> None:
    refused = machine.command(machine.path, "serve", "--http", "127.0.0.1:0", "--project", "auto", status=2)
    assert "--project auto does not work with --http" in refused.stderr
    # Other commands are not servers, even if the environment has an address.
    variables = {"DITTYBAG_HTTP": "127.0.0.1:0", "DITTYBAG_PROJECT": "auto"}
    dittybag(machine.data, "prompt", "list", variables=variables)


@pytest.fixture
def tokens(machine: Machine) -> dict[str, str]:
    """Alice can change `one` and read `two`, Bob can change `one` only; Carol is an administrator."""

    def run(*arguments: str) -> Any:
        return data(dittybag(machine.data, *arguments, "--json"))

    scopes = {"alice": "write", "bob": "write", "carol": "admin"}
    for user in scopes:
        run("user", "add", user)
    for user, name, *more in (
        ("alice", "one"),
        ("alice", "two", "--read"),
        ("bob", "one"),
        ("carol", "one"),
        ("carol", "two"),
    ):
        run("project", "share", name, user, *more)
    return {
        user: run("token", "create", "--user", user, "--scope", scope)["token"]
        for user, scope in scopes.items()
    }


def test_users_see_and_create_only_what_they_may(machine: Machine, tokens: dict[str, str]) -> None:
    with http_server(machine, "--auth", "tokens") as server:
        alice, bob, carol = (server.connect(tokens[user]) for user in ("alice", "bob", "carol"))
        hidden = bob.refusal("project", action="switch", name="two")
        assert hidden == bob.refusal("project", action="switch", name="nope").replace("nope", "two")
        assert [row["name"] for row in bob.call("project")["projects"]] == ["default", "one"]
        assert alice.call("project", action="switch", name="two")["current"] == "two"
        assert alice.prompts() == ["of-two"]
        refused = alice.refusal("create_prompt", name="x", content="x")
        assert "You can read this project, but not change it" in refused
        carol.call("project", action="switch", name="two")
        assert carol.save("new") == "two"
        assert alice.prompts() == ["of-two", "new"]
        assert "Use a token with the admin scope" in alice.refusal("project", action="create", name="three")
        assert carol.call("project", action="create", name="three")["created"] == "three"


def test_users_get_no_notifications_of_a_project_that_they_have_switched_to(
    machine: Machine, tokens: dict[str, str]
) -> None:
    """The membership is checked for every request, but not for every notification."""
    with http_server(machine, "--auth", "tokens") as server:
        alice, carol = (server.connect(tokens[user]) for user in ("alice", "carol"))
        alice.call("project", action="switch", name="two")
        carol.call("project", action="switch", name="two")
        with open_event_stream(server.process, "GET", None, alice.headers()) as stream:
            assert [stream.message()["method"] for _ in LISTS_CHANGED] == LISTS_CHANGED
            carol.call("create_resource", name="new", uri="file:///new", content="x")
            alice.call("project", action="switch")
            assert stream.message()["method"] == "notifications/prompts/list_changed"
            assert stream.message()["method"] == "notifications/resources/list_changed"
            carol.call("project", action="switch")
            carol.call("create_resource", name="r", uri="file:///r", content="x")
            assert stream.message()["method"] == "notifications/resources/list_changed"


def test_the_end_of_a_membership_ends_the_access_of_a_switched_session(
    machine: Machine, tokens: dict[str, str]
) -> None:
    with http_server(machine, "--auth", "tokens") as server:
        alice = server.connect(tokens["alice"])
        alice.call("project", action="switch", name="two")
        skill = {"uri": "skill://stored-prompts/of-two/SKILL.md"}
        assert alice.ask("skills/get", skill)["skill"]["uri"] == skill["uri"]
        dittybag(machine.data, "project", "unshare", "two", "alice")
        for method, params in (
            ("prompts/list", {}),
            ("resources/list", {}),
            ("resources/read", skill),
            ("skills/list", {}),
            ("skills/get", skill),
            ("resources/directory/read", {"uri": "skill://stored-prompts/of-two"}),
        ):
            message = alice.message(method, params)
            assert "error" in message, (method, message)
        assert "PROJECT_NOT_FOUND" in alice.refusal("list_prompts")
        assert alice.call("project", action="switch")["current"] == "one"
        assert alice.prompts() == ["of-one"]
