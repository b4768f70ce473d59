"""`dittybag connect`: adding entries to the configuration files of clients and removing them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.cli.cli_runner import data, failure
from tests.cli.pseudo_terminal import run_in_terminal
from tests.forked_processes import run
from tests.stdio_server_process import ROOT

#: Configuration files with unusual but valid formatting.
JSONC = '// mine\r\n{\r\n\t"%s": {\r\n\t\t"other": {"command": "x",}, // keep\r\n\t},\r\n\t"z" :1 }'
JSON = '{"numStartups":41,"%s":{"other":{"command":"x"}},\n\n   "z":\n[1, 2] }\n\n'
TOML = '# mine\r\nmodel="o3"\r\n[ mcp_servers.other ] # keep\r\n  command = \'x\'\r\n[projects."/x"]'
USER_FILES = {
    "claude-code": (".claude.json", JSON % "mcpServers"),
    "claude-desktop": (".config/Claude/claude_desktop_config.json", JSON % "mcpServers"),
    "cursor": (".cursor/mcp.json", JSONC % "mcpServers"),
    "vscode": (".config/Code/User/mcp.json", "\ufeff" + JSONC % "servers"),
    "codex": (".codex/config.toml", TOML),
    "gemini": (".gemini/settings.json", JSONC % "mcpServers"),
    "windsurf": (".codeium/windsurf/mcp_config.json", JSON % "mcpServers"),
    "zed": (".config/zed/settings.json", JSONC % "context_servers"),
}
PROJECT_FILES = {
    "claude-code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "zed": ".zed/settings.json",
}
PROGRAM = [sys.executable, "-m", "dittybag"]


class ConnectUser:
    """A user of `dittybag connect` with an empty home folder and working folder."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.folder = folder / "site"
        self.data_folder = folder / "dittybag"
        for path in (self.home, self.folder):
            path.mkdir()

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        names = ("LANG", "LC_ALL", "PYTHONDONTWRITEBYTECODE")
        inherited = {name: os.environ[name] for name in names if name in os.environ}
        own = {
            "HOME": str(self.home),
            "DITTYBAG_HOME": str(self.data_folder),
            "PATH": "/nowhere",
            "NO_COLOR": "1",
        }
        return {**inherited, **own, **variables}

    def connect(
        self,
        *arguments: str,
        status: int = 0,
        program: list[str] = PROGRAM,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> subprocess.CompletedProcess[str]:
        environment = self.environment(variables)
        if program == PROGRAM:
            result = run("dittybag", "connect", *arguments, cwd=self.folder, env=environment)
        else:
            result = subprocess.run(
                [*program, "connect", *arguments],
                cwd=self.folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
        assert result.returncode == status, result
        assert "Traceback" not in result.stderr
        return result

    def run(self, *arguments: str) -> str:
        """Run another command."""
        result = run("dittybag", *arguments, cwd=self.folder, env=self.environment({}))
        assert result.returncode == 0, result
        return result.stdout

    def client_findings(self) -> list[dict[str, Any]]:
        """Return what `dittybag doctor` finds about the clients."""
        found = json.loads(self.run("doctor", "--json"))["data"]["findings"]
        return [finding for finding in found if finding["topic"] == "clients"]

    def write(self, path: str, text: str) -> Path:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file


@pytest.fixture
def user(tmp_path: Path) -> ConnectUser:
    return ConnectUser(tmp_path)


@pytest.mark.parametrize("client", USER_FILES)
def test_connect_and_remove_restores_the_file(user: ConnectUser, client: str) -> None:
    path, before = USER_FILES[client]
    file = user.write(path, before)
    file.chmod(0o600)

    result = user.connect(client)
    assert result.stdout.startswith("Connected ")
    assert str(file) in result.stdout
    backup = next(line for line in result.stderr.splitlines() if line.startswith("backup: "))
    assert Path(backup.removeprefix("backup: ")).read_bytes() == before.encode()
    assert "\nnext: " in f"\n{result.stderr}"

    connected = file.read_bytes()
    for word in (b"mine", b"keep", b"other"):
        assert connected.count(word) == before.encode().count(word)
    again = data(user.connect(client, "--json"))
    expected = {"client": client, "scope": "user", "file": str(file), "state": "unchanged", "backup": None}
    assert again == expected
    assert file.read_bytes() == connected

    assert data(user.connect(client, "--remove", "--json"))["state"] == "removed"
    assert file.read_bytes() == before.encode()
    assert file.stat().st_mode & 0o777 == 0o600
    assert user.connect(client, "--remove").stdout.endswith(f"was not connected: {file}\n")


@pytest.mark.parametrize("client", PROJECT_FILES)
def test_connect_and_remove_restores_the_file_of_a_project(user: ConnectUser, client: str) -> None:
    before = USER_FILES[client][1]
    file = user.folder / PROJECT_FILES[client]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(before.encode())
    result = user.connect(client, "--scope", "project", "-p", "site")
    assert "note: the entry contains paths of this machine" in result.stderr
    assert list(user.home.iterdir()) == []
    assert b'"--project", "site"' in file.read_bytes()
    user.connect(client, "--scope", "project", "--remove")
    assert file.read_bytes() == before.encode()


@pytest.mark.parametrize("client", ["claude-desktop", "windsurf"])
def test_project_scope_is_rejected_for_clients_without_it(user: ConnectUser, client: str) -> None:
    result = user.connect(client, "--scope", "project", status=2)
    assert "has no project configuration" in result.stderr
    assert list(user.folder.iterdir()) == []


def test_the_entry_starts_a_server(user: ConnectUser) -> None:
    """Run the entry as a client does: in another folder and with its own environment only."""
    user.connect("claude-code", "--db", "bag.db", "--profile", "tasks")
    entry = json.loads((user.home / ".claude.json").read_text())["mcpServers"]["dittybag"]
    arguments = ["-m", "dittybag", "serve", "--db", str(user.folder / "bag.db")]
    arguments += ["--profile", "tasks"]
    assert entry == {
        "type": "stdio",
        "command": sys.executable,
        "args": arguments,
        "env": {"DITTYBAG_HOME": str(user.data_folder)},
    }
    assert _serve(entry, cwd=Path("/"))["id"] == 1
    assert (user.folder / "bag.db").exists()


CALLS = {
    "prompt-store": ("tools/call", {"name": "list_prompts", "arguments": {}}),
    "tasks": ("tools/call", {"name": "task_list", "arguments": {}}),
    "twig": ("prompts/list", {}),
    "mcpkg": ("prompts/list", {}),
}


def test_a_client_of_a_contract_sees_the_store_in_every_folder(user: ConnectUser) -> None:
    """With the commands of the guide for those who come from another server."""
    user.run("prompt", "add", "greeting", "Hello")
    user.run("task", "add", "greeting")
    user.run("project", "create", "website")
    user.run("prompt", "add", "-p", "website", "greeting", "Hello")
    user.run("library", "add", str(user.write("team/prompts/greeting.md", "Hello").parent.parent), "--link")
    (user.folder / ".git").mkdir()
    guide = (ROOT / "docs" / "guides" / "migrate.md").read_text()
    profiles = []
    for command in re.findall("^dittybag connect (.+)$", guide, re.MULTILINE):
        client, _, profile, *_ = command.split()
        user.connect(*command.split())
        file = user.home / USER_FILES[client][0]
        key = {"zed": "context_servers"}.get(client, "mcpServers")
        entry = json.loads(file.read_text())[key]["dittybag"]
        assert "auto" not in entry["args"]
        method, params = CALLS[profile]
        request = {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}
        assert "greeting" in json.dumps(_serve(entry, request, cwd=user.folder)["result"]), command
        profiles.append(profile)
    assert sorted(profiles) == sorted(CALLS)
    refused = user.connect("zed", "--profile", "mcpkg", status=2)
    assert "--profile mcpkg serves one project; name it with --project" in refused.stderr


def _serve(entry: dict[str, Any], *requests: dict[str, Any], cwd: Path) -> Any:
    """Start the server of an entry, and return its last answer."""
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _params()}
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    result = subprocess.run(
        [entry["command"], *entry["args"]],
        cwd=cwd,
        env=entry["env"],
        input="".join(f"{json.dumps(message)}\n" for message in (initialize, initialized, *requests)),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return json.loads(result.stdout.splitlines()[-1])


def _params() -> dict[str, Any]:
    return {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }


def test_the_entry_uses_the_path_of_the_installed_program(user: ConnectUser) -> None:
    script = Path(sys.executable).parent / "dittybag"
    link = user.home / "bin" / "dittybag"
    link.parent.mkdir()
    link.symlink_to(script)
    user.connect("codex", "--workspace", "work", program=[str(link)], variables={"DITTYBAG_HOME": ""})
    written = tomllib.loads((user.home / ".codex" / "config.toml").read_text())
    entry = {
        "command": str(link),
        "args": ["serve", "--workspace", "work", "--project", "auto", "--profile", "agent"],
    }
    assert written == {"mcp_servers": {"dittybag": entry}}


def test_the_state_of_all_clients_is_listed(user: ConnectUser) -> None:
    listed = data(user.connect("--json"))["clients"]
    assert [(row["client"], row["scope"], row["found"], row["state"]) for row in listed] == [
        (client, "user", False, "absent") for client in USER_FILES
    ]
    assert list(user.home.iterdir()) == []
    assert not user.data_folder.exists()

    user.connect("cursor")
    user.connect("gemini", "--name", "bag")
    user.write(".codex/config.toml", '[mcp_servers.dittybag]\ncommand = "bag"\n')
    user.write(".config/zed/settings.json", "{\x1b[31m")
    (user.folder / ".mcp.json").write_text("{}")
    listed = data(user.connect("--json"))["clients"]
    rows = {(row["client"], row["scope"]): row for row in listed}
    assert len(rows) == 9
    assert rows["cursor", "user"]["state"] == "connected"
    # The files that were just written do not count.
    assert rows["cursor", "user"]["found"] is False
    assert rows["gemini", "user"]["names"] == ["bag"]
    assert rows["codex", "user"]["state"] == "other"
    assert rows["zed", "user"]["state"] == "unreadable"
    assert rows["zed", "user"]["problem"].startswith("not valid JSON")
    assert rows["claude-code", "project"]["file"] == str(user.folder / ".mcp.json")

    result = user.connect()
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["client", "scope", "found", "state", "file"]
    assert lines[1].split()[:5] == ["claude-code", "user", "no", "not", "connected"]
    assert lines[2].split()[:5] == ["claude-code", "project", "no", "not", "connected"]
    assert any(line.split()[:4] == ["cursor", "user", "no", "connected"] for line in lines)
    assert "connected as bag" in result.stdout
    assert "starts another program" in result.stdout
    assert "cannot be read: not valid JSON" in result.stdout
    assert "\x1b" not in result.stdout


def test_a_dry_run_shows_the_diff_and_changes_nothing(user: ConnectUser) -> None:
    path, before = USER_FILES["zed"]
    file = user.write(path, before)
    result = user.connect("zed", "--dry-run")
    added = [line for line in result.stdout.splitlines() if line.startswith("+")]
    assert '+\t\t"dittybag": {' in added
    assert [line for line in result.stdout.splitlines() if line.startswith("-")] == [f"--- {file}"]
    report = data(user.connect("zed", "--dry-run", "--json"))
    assert report["state"] == "connected"
    assert report["backup"] is None
    assert report["diff"] + "\n" == result.stdout
    assert file.read_bytes() == before.encode()
    assert not user.data_folder.exists()
    user.connect("zed")
    result = user.connect("zed", "--dry-run")
    assert (result.stdout, result.stderr) == ("", "No changes\n")
    assert '-\t\t"dittybag": {' in user.connect("zed", "--remove", "--dry-run").stdout.splitlines()
    assert "dittybag" in file.read_text()


def test_a_terminal_gets_colours_but_no_control_characters(user: ConnectUser) -> None:
    # \x9b is a terminal control character that JSON allows in strings.
    user.write(".cursor/mcp.json", '{\n  "note": "\x9b31m"\n}\n')
    arguments = ("connect", "cursor", "--dry-run")
    raw = run_in_terminal(user.data_folder, *arguments, variables={"HOME": str(user.home)})
    assert "\x1b[32m+" in raw
    assert "\x9b" not in raw
    assert "\N{REPLACEMENT CHARACTER}31m" in raw
    plain = {"HOME": str(user.home), "NO_COLOR": "1"}
    assert "\x1b" not in run_in_terminal(user.data_folder, *arguments, variables=plain)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("netscape",), "'netscape' is not one of 'claude-code'"),
        (("--remove",), "CLIENT is required"),
        (("--dry-run",), "CLIENT is required"),
        (("zed", "--name", "a b"), "--name must be 1 to 64 letters"),
        (("zed", "--name", ""), "--name must be 1 to 64 letters"),
        (("zed", "--scope", "world"), "'world' is not one of 'user', 'project'"),
        (("zed", "--workspace", "../x"), "is not a valid workspace name"),
        (("zed", "--workspace", "x", "--db", "y"), "use either --workspace or --db, not both"),
        (("zed", "--profile", "nope"), "there is no profile 'nope'"),
    ],
)
def test_invalid_arguments_are_rejected(user: ConnectUser, arguments: tuple[str, ...], problem: str) -> None:
    result = user.connect(*arguments, status=2)
    assert problem in result.stderr
    assert result.stdout == ""
    assert failure(user.connect(*arguments, "--json", status=2))["code"] == "USAGE"
    assert list(user.home.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "arguments", "status", "code"),
    [
        ("{", (), 1, "CLIENT_FILE_REFUSED"),
        ('{"mcpServers": []}', (), 1, "CLIENT_FILE_REFUSED"),
        ('{"mcpServers": {"dittybag": {"command": "bag"}}}', (), 4, "CLIENT_ENTRY_FOREIGN"),
        ('{"mcpServers": {"dittybag": {"command": "bag"}}}', ("--remove",), 4, "CLIENT_ENTRY_FOREIGN"),
    ],
)
def test_a_file_that_cannot_be_edited_is_left_unchanged(
    user: ConnectUser, text: str, arguments: tuple[str, ...], status: int, code: str
) -> None:
    file = user.write(".cursor/mcp.json", text)
    result = user.connect("cursor", *arguments, status=status)
    assert result.stderr.startswith(f"error: {file}: ")
    assert "\nhint: nothing was changed; " in result.stderr
    assert failure(user.connect("cursor", *arguments, "--json", status=status))["code"] == code
    assert file.read_text() == text
    assert [copy.name for copy in (user.data_folder / "connect").iterdir()] == ["lock"]


def test_a_folder_that_cannot_be_created_is_reported(user: ConnectUser) -> None:
    (user.home / ".cursor").write_text("here")
    result = user.connect("cursor", "--json", status=5)
    assert failure(result)["code"] == "CLIENT_FILE_UNREACHABLE"
    assert (user.home / ".cursor").read_text() == "here"


def test_a_client_that_is_not_installed_can_be_connected(user: ConnectUser) -> None:
    assert "note: Cursor does not seem to be installed" in user.connect("cursor").stderr
    assert (user.home / ".cursor" / "mcp.json").exists()
    user.connect("cursor", "--remove")
    assert list(user.home.iterdir()) == []


@pytest.mark.parametrize("client", USER_FILES)
def test_a_client_is_not_found_because_of_what_was_written_for_it(user: ConnectUser, client: str) -> None:
    user.connect(client)
    user.connect(client, "--name", "second", "--workspace", "work")
    assert _row(user, client)["found"] is False
    assert f"note: {_row(user, client)['title']} does not seem to be" in user.connect(client).stderr
    # Anything else in its folder is from the client itself.
    folder = ".claude" if client == "claude-code" else str(Path(USER_FILES[client][0]).parent)
    user.write(f"{folder}/state.json", "{}")
    assert _row(user, client)["found"] is True
    assert "does not seem to be installed" not in user.connect(client).stderr


def test_a_client_whose_folder_existed_before_is_found(user: ConnectUser) -> None:
    (user.home / ".cursor").mkdir()
    assert _row(user, "cursor")["found"] is True
    user.connect("cursor")
    assert _row(user, "cursor")["found"] is True


def _row(user: ConnectUser, client: str) -> Any:
    listed = data(user.connect("--json"))["clients"]
    return next(row for row in listed if (row["client"], row["scope"]) == (client, "user"))


def _entry(*arguments: str, command: str = sys.executable, **variables: str) -> dict[str, Any]:
    return {"command": command, "args": ["-m", "dittybag", "serve", *arguments], "env": variables}


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "/nowhere/python", "args": ["-m", "dittybag", "serve"]},
        {"command": "dittybag", "args": ["serve"]},
    ],
)
def test_an_entry_whose_program_does_not_exist_is_broken(user: ConnectUser, entry: dict[str, Any]) -> None:
    problem = f"the program {entry['command']} does not exist"
    file = user.write(".cursor/mcp.json", json.dumps({"mcpServers": {"other": {}, "dittybag": entry}}))
    row = _row(user, "cursor")
    assert (row["state"], row["broken"], row["names"]) == ("broken", {"dittybag": problem}, [])
    assert f"broken: {problem}" in user.connect().stdout
    # `doctor` says so, too, and what to do.
    finding = user.client_findings()[0]
    assert (finding["level"], problem in finding["message"]) == ("warning", True), finding
    assert str(file) in finding["message"]
    assert finding["fix"].startswith("dittybag connect cursor replaces it, dittybag connect cursor --remove")
    assert user.connect("cursor").stdout.startswith("Updated Cursor")
    assert _row(user, "cursor")["state"] == "connected"
    user.connect("cursor", "--remove")
    assert json.loads(file.read_text()) == {"mcpServers": {"other": {}}}


def test_an_entry_of_another_program_is_not_checked(user: ConnectUser) -> None:
    user.write(".cursor/mcp.json", '{"mcpServers": {"dittybag": {"command": "/nowhere/other"}}}')
    assert _row(user, "cursor")["state"] == "other"


def test_a_broken_entry_beside_a_working_one_is_reported(user: ConnectUser) -> None:
    entries = {"dittybag": _entry(), "old": _entry(command="/nowhere/python")}
    user.write(".cursor/mcp.json", json.dumps({"mcpServers": entries}))
    row = _row(user, "cursor")
    assert (row["state"], row["names"]) == ("connected", ["dittybag"])
    assert row["broken"] == {"old": "the program /nowhere/python does not exist"}
    assert "connected; old is broken: the program" in user.connect().stdout
    broken, connected = user.client_findings()
    assert (broken["level"], connected["level"]) == ("warning", "ok")
    assert "dittybag connect cursor --name old --remove removes it" in broken["fix"]
    user.connect("cursor", "--name", "old", "--remove")
    assert _row(user, "cursor")["broken"] == {}


def test_several_clients_are_connected_and_removed_together(user: ConnectUser) -> None:
    codex, gemini = (user.write(*USER_FILES[client]) for client in ("codex", "gemini"))
    before = codex.read_bytes(), gemini.read_bytes()
    connected = user.connect("codex", "gemini", "codex")
    assert [line.split(":")[0] for line in connected.stdout.splitlines()] == [
        "Connected Codex",
        "Connected Gemini CLI",
    ]
    assert connected.stderr.endswith("2 clients\n")
    user.connect("codex", "gemini", "--remove")
    assert (codex.read_bytes(), gemini.read_bytes()) == before

    refused = json.loads(user.connect("--all", "--json", status=1).stderr)
    assert refused["error"]["code"] == "NOT_CONFIRMED"
    dry = json.loads(user.connect("--all", "--dry-run", "--json").stdout)["data"]["clients"]
    assert [(item["client"], bool(item["diff"])) for item in dry] == [("codex", True), ("gemini", True)]
    assert (codex.read_bytes(), gemini.read_bytes()) == before

    codex.write_text("not [ toml")
    done = user.connect("--all", "--yes", status=1)
    assert "Connected Gemini CLI" in done.stdout
    assert "error: " in done.stderr
    assert done.stderr.endswith("2 clients, 1 failed\n")
    codex.write_bytes(before[0])
    every = json.loads(user.connect("--all", "--yes", "--json").stdout)["data"]["clients"]
    assert [(item["client"], item["state"]) for item in every] == [
        ("codex", "connected"),
        ("gemini", "unchanged"),
    ]
    removed = json.loads(user.connect("--all", "--remove", "--yes", "--json").stdout)["data"]["clients"]
    assert [(item["client"], item["state"]) for item in removed] == [
        ("codex", "removed"),
        ("gemini", "removed"),
    ]
    assert (codex.read_bytes(), gemini.read_bytes()) == before
    assert "No client has an entry" in user.connect("--all", "--remove").stderr
    assert "Give either CLIENT or --all" in user.connect("--all", "codex", status=2).stderr
