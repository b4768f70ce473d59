"""`dittybag serve`: options, environment variables and their error messages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.cli.cli_runner import dittybag
from tests.stdio_server_process import ROOT

HELLO = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
TOOLS = '{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'


def served(home: Path, *options: str, **variables: str) -> tuple[str, list[str]]:
    """Return the name of the server and its tools."""
    done = dittybag(home, "serve", *options, stdin=HELLO + TOOLS, variables=variables)
    hello, tools = map(msgspec.json.decode, done.stdout.splitlines())
    return hello["result"]["serverInfo"]["name"], [tool["name"] for tool in tools["result"]["tools"]]


def test_it_needs_no_options_and_makes_its_database(tmp_path: Path) -> None:
    name, tools = served(tmp_path / "new" / "home")
    assert name == "dittybag"
    assert "task_create" in tools
    assert (tmp_path / "new" / "home" / "default.db").exists()


@pytest.mark.parametrize(
    ("profile", "name"),
    [("mcpkg", "mcpkg"), ("tasks", "Task Manager MCP"), ("prompt-store", "prompt-store")],
)
def test_the_profile_is_an_option_or_a_variable(tmp_path: Path, profile: str, name: str) -> None:
    by_option = served(tmp_path, "--profile", profile)
    assert by_option[0] == name
    assert served(tmp_path, f"--profile={profile}") == by_option
    assert served(tmp_path, DITTYBAG_PROFILE=profile) == by_option
    # The option takes precedence.
    assert served(tmp_path, "--profile", profile, DITTYBAG_PROFILE="all") == by_option


def test_read_only_and_toolsets_narrow_what_is_shown(tmp_path: Path) -> None:
    _, tasks = served(tmp_path, "--toolsets", "tasks", "--read-only")
    assert tasks == ["task_list", "task_get", "task_search", "task_stats"]
    assert served(tmp_path, DITTYBAG_TOOLSETS="tasks", DITTYBAG_READ_ONLY="yes")[1] == tasks


def test_the_instructions_speak_only_of_tools_that_are_shown(tmp_path: Path) -> None:
    def told(*options: str) -> str:
        first = dittybag(tmp_path, "serve", *options, stdin=HELLO).stdout
        text: str = msgspec.json.decode(first)["result"]["instructions"]
        return text

    assert "`undo_change`" in told()
    assert "`search`" in told("--read-only")
    assert "`undo_change`" not in told("--read-only")
    assert "`" not in told("--toolsets", "tasks")


def test_the_actor_in_the_log_can_be_set(tmp_path: Path) -> None:
    task = (
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":'
        '{"name":"task_create","arguments":{"title":"x"}}}\n'
    )
    dittybag(tmp_path, "serve", stdin=HELLO + task, variables={"DITTYBAG_ACTOR": "cron"})
    changes = (
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":'
        '{"name":"list_changes","arguments":{"limit":1}}}\n'
    )
    answer = dittybag(tmp_path, "serve", stdin=HELLO + changes).stdout.splitlines()[1]
    assert '\\"actor\\":\\"cron\\"' in answer


def test_the_database_is_a_path_or_a_url(tmp_path: Path) -> None:
    file = tmp_path / "here.db"
    relative = os.path.relpath(file, ROOT)
    for url in (str(file), f"sqlite:///{file}", relative, f"sqlite:///{relative}"):
        served(tmp_path, "--db", url)
        file.unlink()
    served(tmp_path, DITTYBAG_DATABASE_URL=str(file))
    assert file.exists()


@pytest.mark.parametrize(
    ("options", "status", "problem"),
    [
        (
            ("--profile", "nope"),
            2,
            "there is no profile 'nope'; use one of: all, mcpkg, twig, tasks, prompt-store",
        ),
        (("--toolsets", "tasks,nope"), 2, "there is no toolset 'nope'"),
        (
            ("--profile", "tasks", "--toolsets", "prompts"),
            2,
            "the profile 'tasks' has no tools in these toolsets; its toolsets: tasks",
        ),
        (("--project", "nope"), 3, "Project 'nope' does not exist in "),
        (("--workspace", "../x"), 2, "'../x' is not a valid workspace name"),
        (("--db",), 2, "--db requires a value"),
        (("--dance",), 2, "Unknown option for dittybag serve: --dance"),
        (("--read-only=maybe",), 2, "Unknown option for dittybag serve: --read-only"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_a_hint(
    tmp_path: Path, options: tuple[str, ...], status: int, problem: str
) -> None:
    done = dittybag(tmp_path, "serve", *options, status=status)
    assert done.stderr.startswith(f"error: {problem}")
    assert "\nhint: " in done.stderr
    assert done.stdout == ""


def test_a_database_server_that_is_away_is_named_without_its_password(tmp_path: Path) -> None:
    done = dittybag(tmp_path, "serve", "--db", "postgresql://ann:s3cret@127.0.0.1:1/x", status=5)
    assert done.stderr.startswith(
        "error: postgresql://ann@127.0.0.1:1/x: The database server cannot be reached"
    )
    assert "s3cret" not in done.stderr


def test_a_variable_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    done = dittybag(tmp_path, "serve", status=2, variables={"DITTYBAG_READ_ONLY": "maybe"})
    assert "DITTYBAG_READ_ONLY must be one of 1, true, yes, on, 0, false, no, off, not 'maybe'" in done.stderr


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("Not a database, and long enough to be sure of it. " * 50)
    before = file.read_bytes()
    done = dittybag(tmp_path, "serve", "--db", str(file), status=5)
    assert "This file is not a Dittybag database" in done.stderr
    assert str(file) in done.stderr
    assert file.read_bytes() == before


def test_help_is_for_people(tmp_path: Path) -> None:
    text = dittybag(tmp_path, "serve", "--help").stdout
    for option in ("--profile", "--project", "--workspace", "--db", "--read-only", "--toolsets"):
        assert option in text
    assert max(map(len, text.splitlines())) <= 90


def test_a_server_starts_without_modules_that_only_some_calls_need(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "dittybag", "serve", "--db", str(tmp_path / "a.db")]
    done = subprocess.run(command, cwd=ROOT, input=b"", capture_output=True, timeout=30, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert "dittybag.domain.names" in loaded
    assert not loaded & {"anyascii", "importlib.resources"}
