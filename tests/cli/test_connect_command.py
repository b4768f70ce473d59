"""`dittybag connect`, with text and JSON output."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.cli.cli_runner import data, failure

#: The file of each client, with unusual but valid formatting.
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


class Person:
    """A user with a home folder and a working folder, on an otherwise empty machine."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.folder = folder / "site"
        self.ours = folder / "dittybag"
        for made in (self.home, self.folder):
            made.mkdir()

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        keep = ("LANG", "LC_ALL", "PYTHONDONTWRITEBYTECODE")
        kept = {name: os.environ[name] for name in keep if name in os.environ}
        own = {"HOME": str(self.home), "DITTYBAG_HOME": str(self.ours), "PATH": "/nowhere", "NO_COLOR": "1"}
        return {**kept, **own, **variables}

    def connect(
        self,
        *arguments: str,
        status: int = 0,
        program: list[str] = PROGRAM,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*program, "connect", *arguments],
            cwd=self.folder,
            env=self.environment(variables),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == status, done
        assert "Traceback" not in done.stderr
        return done

    def write(self, path: str, text: str) -> Path:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


@pytest.mark.parametrize("client", USER_FILES)
def test_a_round_trip_leaves_no_trace(person: Person, client: str) -> None:
    path, before = USER_FILES[client]
    file = person.write(path, before)
    file.chmod(0o600)

    done = person.connect(client)
    assert done.stdout.startswith("Connected ")
    assert str(file) in done.stdout
    backup = next(line for line in done.stderr.splitlines() if line.startswith("backup: "))
    assert Path(backup.removeprefix("backup: ")).read_bytes() == before.encode()
    assert "\nnext: " in f"\n{done.stderr}"

    connected = file.read_bytes()
    for word in (b"mine", b"keep", b"other"):
        assert connected.count(word) == before.encode().count(word)
    again = data(person.connect(client, "--json"))
    expected = {"client": client, "scope": "user", "file": str(file), "state": "unchanged", "backup": None}
    assert again == expected
    assert file.read_bytes() == connected

    assert data(person.connect(client, "--remove", "--json"))["state"] == "removed"
    assert file.read_bytes() == before.encode()
    assert file.stat().st_mode & 0o777 == 0o600
    assert person.connect(client, "--remove").stdout.endswith(f"was not connected: {file}\n")


@pytest.mark.parametrize("client", PROJECT_FILES)
def test_a_round_trip_in_a_project(person: Person, client: str) -> None:
    before = USER_FILES[client][1]
    file = person.folder / PROJECT_FILES[client]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(before.encode())
    done = person.connect(client, "--scope", "project", "-p", "site")
    assert "note: the entry contains paths of this machine" in done.stderr
    assert list(person.home.iterdir()) == []
    assert b'"--project", "site"' in file.read_bytes()
    person.connect(client, "--scope", "project", "--remove")
    assert file.read_bytes() == before.encode()


@pytest.mark.parametrize("client", ["claude-desktop", "windsurf"])
def test_a_client_without_projects_says_so(person: Person, client: str) -> None:
    done = person.connect(client, "--scope", "project", status=2)
    assert "has no project configuration" in done.stderr
    assert list(person.folder.iterdir()) == []


def test_a_client_starts_what_was_written(person: Person) -> None:
    """Run the entry as a client would: in another folder, and without the environment of this terminal."""
    person.connect("claude-code", "--db", "bag.db", "--profile", "tasks")
    entry = json.loads((person.home / ".claude.json").read_text())["mcpServers"]["dittybag"]
    arguments = ["-m", "dittybag", "serve", "--db", str(person.folder / "bag.db"), "--profile", "tasks"]
    assert entry == {
        "type": "stdio",
        "command": sys.executable,
        "args": arguments,
        "env": {"DITTYBAG_HOME": str(person.ours)},
    }
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _params()}
    done = subprocess.run(
        [entry["command"], *entry["args"]],
        cwd="/",
        env=entry["env"],
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert json.loads(done.stdout)["id"] == 1
    assert (person.folder / "bag.db").exists()


def _params() -> dict[str, Any]:
    return {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }


def test_the_installed_program_is_named_by_the_path_it_was_found_at(person: Person) -> None:
    script = Path(sys.executable).parent / "dittybag"
    link = person.home / "bin" / "dittybag"
    link.parent.mkdir()
    link.symlink_to(script)
    person.connect("codex", "--workspace", "work", program=[str(link)], variables={"DITTYBAG_HOME": ""})
    written = tomllib.loads((person.home / ".codex" / "config.toml").read_text())
    entry = {"command": str(link), "args": ["serve", "--workspace", "work"]}
    assert written == {"mcp_servers": {"dittybag": entry}}


def test_all_clients_and_how_things_stand(person: Person) -> None:
    listed = data(person.connect("--json"))["clients"]
    assert [(row["client"], row["scope"], row["found"], row["state"]) for row in listed] == [
        (client, "user", False, "absent") for client in USER_FILES
    ]
    assert list(person.home.iterdir()) == []
    assert not person.ours.exists()

    person.connect("cursor")
    person.connect("gemini", "--name", "bag")
    person.write(".codex/config.toml", '[mcp_servers.dittybag]\ncommand = "bag"\n')
    person.write(".config/zed/settings.json", "{\x1b[31m")
    (person.folder / ".mcp.json").write_text("{}")
    listed = data(person.connect("--json"))["clients"]
    rows = {(row["client"], row["scope"]): row for row in listed}
    assert len(rows) == 9
    assert rows["cursor", "user"]["state"] == "connected"
    assert rows["cursor", "user"]["found"] is True
    assert rows["gemini", "user"]["names"] == ["bag"]
    assert rows["codex", "user"]["state"] == "other"
    assert rows["zed", "user"]["state"] == "unreadable"
    assert rows["zed", "user"]["problem"].startswith("not valid JSON")
    assert rows["claude-code", "project"]["file"] == str(person.folder / ".mcp.json")

    done = person.connect()
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["client", "scope", "found", "state", "file"]
    assert lines[1].split()[:5] == ["claude-code", "user", "no", "not", "connected"]
    assert lines[2].split()[:5] == ["claude-code", "project", "no", "not", "connected"]
    assert any(line.split()[:4] == ["cursor", "user", "yes", "connected"] for line in lines)
    assert "connected as bag" in done.stdout
    assert "starts another program" in done.stdout
    assert "cannot be read: not valid JSON" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_dry_run_shows_the_difference_and_changes_nothing(person: Person) -> None:
    path, before = USER_FILES["zed"]
    file = person.write(path, before)
    done = person.connect("zed", "--dry-run")
    added = [line for line in done.stdout.splitlines() if line.startswith("+")]
    assert '+\t\t"dittybag": {' in added
    assert [line for line in done.stdout.splitlines() if line.startswith("-")] == [f"--- {file}"]
    said = data(person.connect("zed", "--dry-run", "--json"))
    assert said["state"] == "connected"
    assert said["backup"] is None
    assert said["diff"] + "\n" == done.stdout
    assert file.read_bytes() == before.encode()
    assert not person.ours.exists()
    person.connect("zed")
    done = person.connect("zed", "--dry-run")
    assert (done.stdout, done.stderr) == ("", "No changes\n")
    assert '-\t\t"dittybag": {' in person.connect("zed", "--remove", "--dry-run").stdout.splitlines()
    assert "dittybag" in file.read_text()


def test_colours_are_for_terminals_and_nothing_else_commands_them(person: Person) -> None:
    # \x9b is a terminal control character that JSON allows in strings.
    person.write(".cursor/mcp.json", '{\n  "note": "\x9b31m"\n}\n')
    raw = _on_a_terminal(person, {})
    assert "\x1b[32m+" in raw
    assert "\x9b" not in raw
    assert "\N{REPLACEMENT CHARACTER}31m" in raw
    assert "\x1b" not in _on_a_terminal(person, {"NO_COLOR": "1"})


def _on_a_terminal(person: Person, variables: Mapping[str, str]) -> str:
    ours, theirs = pty.openpty()
    environment = {**person.environment({}), "NO_COLOR": "", **variables, "TERM": "xterm"}
    subprocess.run(
        [*PROGRAM, "connect", "cursor", "--dry-run"],
        cwd=person.folder,
        env=environment,
        stdout=theirs,
        timeout=30,
        check=True,
    )
    os.close(theirs)
    said = b""
    # At the end of the output, a terminal returns no data or an error.
    try:
        while piece := os.read(ours, 65536):
            said += piece
    except OSError:
        pass
    os.close(ours)
    return said.decode()


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
def test_what_makes_no_sense_is_refused(person: Person, arguments: tuple[str, ...], problem: str) -> None:
    done = person.connect(*arguments, status=2)
    assert problem in done.stderr
    assert done.stdout == ""
    assert failure(person.connect(*arguments, "--json", status=2))["code"] == "USAGE"
    assert list(person.home.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "arguments", "status", "code"),
    [
        ("{", (), 1, "CLIENT_FILE_REFUSED"),
        ('{"mcpServers": []}', (), 1, "CLIENT_FILE_REFUSED"),
        ('{"mcpServers": {"dittybag": {"command": "bag"}}}', ("--remove",), 4, "CLIENT_ENTRY_FOREIGN"),
    ],
)
def test_a_file_that_cannot_be_edited_is_left_alone(
    person: Person, text: str, arguments: tuple[str, ...], status: int, code: str
) -> None:
    file = person.write(".cursor/mcp.json", text)
    done = person.connect("cursor", *arguments, status=status)
    assert done.stderr.startswith(f"error: {file}: ")
    assert "\nhint: nothing was changed; " in done.stderr
    assert failure(person.connect("cursor", *arguments, "--json", status=status))["code"] == code
    assert file.read_text() == text
    assert not (person.ours / "connect" / "backups").exists()


def test_a_folder_that_cannot_be_made(person: Person) -> None:
    (person.home / ".cursor").write_text("here")
    done = person.connect("cursor", "--json", status=5)
    assert failure(done)["code"] == "CLIENT_FILE_UNREACHABLE"
    assert (person.home / ".cursor").read_text() == "here"


def test_an_entry_that_was_there_is_replaced_and_comes_back(person: Person) -> None:
    before = '{"mcpServers": {"dittybag": {"command": "bag"}}}'
    file = person.write(".cursor/mcp.json", before)
    done = person.connect("cursor")
    assert done.stdout.startswith("Updated Cursor: ")
    assert "note: an existing entry 'dittybag' was replaced; --remove restores it" in done.stderr
    assert (
        "note: the entry 'dittybag' that existed before was restored"
        in person.connect("cursor", "--remove").stderr
    )
    assert file.read_text() == before


def test_a_client_that_is_not_there_is_prepared_all_the_same(person: Person) -> None:
    assert "note: Cursor does not seem to be installed" in person.connect("cursor").stderr
    assert (person.home / ".cursor" / "mcp.json").exists()
    person.connect("cursor", "--remove")
    assert list(person.home.iterdir()) == []
