"""`dittybag serve`: options, environment variables and their error messages."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import pytest

from tests.cli.cli_runner import dittybag
from tests.stdio_server_process import ROOT

INITIALIZE = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
LIST_TOOLS = '{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'


def run_server(home: Path, *options: str, **variables: str) -> tuple[str, list[str]]:
    """Run a server; return its name and its tools."""
    result = dittybag(home, "serve", *options, stdin=INITIALIZE + LIST_TOOLS, variables=variables)
    initialized, tools = map(msgspec.json.decode, result.stdout.splitlines())
    return initialized["result"]["serverInfo"]["name"], [tool["name"] for tool in tools["result"]["tools"]]


def test_serve_needs_no_options_and_creates_its_database(tmp_path: Path) -> None:
    name, tools = run_server(tmp_path / "new" / "home")
    assert name == "dittybag"
    assert "task_create" in tools
    assert (tmp_path / "new" / "home" / "default.db").exists()


@pytest.mark.parametrize(
    ("profile", "name"),
    [("mcpkg", "mcpkg"), ("tasks", "Task Manager MCP"), ("prompt-store", "prompt-store")],
)
def test_the_profile_is_an_option_or_a_variable(tmp_path: Path, profile: str, name: str) -> None:
    by_option = run_server(tmp_path, "--profile", profile)
    assert by_option[0] == name
    assert run_server(tmp_path, f"--profile={profile}") == by_option
    assert run_server(tmp_path, DITTYBAG_PROFILE=profile) == by_option
    # The option takes precedence.
    assert run_server(tmp_path, "--profile", profile, DITTYBAG_PROFILE="all") == by_option


def test_read_only_and_toolsets_limit_the_tools(tmp_path: Path) -> None:
    _, tasks = run_server(tmp_path, "--toolsets", "tasks", "--read-only")
    assert tasks == ["task_list", "task_get", "task_search", "task_stats", "read"]
    assert run_server(tmp_path, DITTYBAG_TOOLSETS="tasks", DITTYBAG_READ_ONLY="yes")[1] == tasks


def test_the_instructions_mention_only_available_tools(tmp_path: Path) -> None:
    def instructions(*options: str) -> str:
        first = dittybag(tmp_path, "serve", *options, stdin=INITIALIZE).stdout
        text: str = msgspec.json.decode(first)["result"]["instructions"]
        return text

    assert "`undo_change`" in instructions()
    assert "`search`" in instructions("--read-only")
    for options in (
        (),
        ("--read-only",),
        ("--toolsets", "tasks"),
        ("--toolsets", "resources", "--read-only"),
    ):
        for profile in ("all", "agent"):
            text = instructions("--profile", profile, *options)
            assert text.startswith("Use Dittybag when ")
            assert len(text.encode()) <= 1536
            _, tools = run_server(tmp_path, "--profile", profile, *options)
            assert set(re.findall(r"`(\w+)`", text)) <= set(tools)


def test_the_actor_in_the_log_can_be_set(tmp_path: Path) -> None:
    task = (
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":'
        '{"name":"task_create","arguments":{"title":"x"}}}\n'
    )
    dittybag(tmp_path, "serve", stdin=INITIALIZE + task, variables={"DITTYBAG_ACTOR": "cron"})
    changes = (
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":'
        '{"name":"list_changes","arguments":{"limit":1}}}\n'
    )
    answer = dittybag(tmp_path, "serve", stdin=INITIALIZE + changes).stdout.splitlines()[1]
    assert '\\"actor\\":\\"cron\\"' in answer


def test_the_database_is_a_path_or_a_url(tmp_path: Path) -> None:
    file = tmp_path / "here.db"
    relative = os.path.relpath(file, ROOT)
    for url in (str(file), f"sqlite:///{file}", relative, f"sqlite:///{relative}"):
        run_server(tmp_path, "--db", url)
        file.unlink()
    run_server(tmp_path, DITTYBAG_DATABASE_URL=str(file))
    file.unlink()
    secret = tmp_path / "database_url"
    secret.write_text(f"{file}\n")
    run_server(tmp_path, DITTYBAG_DATABASE_URL_FILE=str(secret))
    assert file.exists()


def test_an_unreachable_database_server_is_named_without_its_password(tmp_path: Path) -> None:
    result = dittybag(tmp_path, "serve", "--db", "postgresql://ann:s3cret@127.0.0.1:1/x", status=5)
    assert result.stderr.startswith(
        "error: postgresql://ann@127.0.0.1:1/x: The database server cannot be reached"
    )
    assert "s3cret" not in result.stderr


def test_an_invalid_variable_is_rejected(tmp_path: Path) -> None:
    result = dittybag(tmp_path, "serve", status=2, variables={"DITTYBAG_READ_ONLY": "maybe"})
    assert (
        "DITTYBAG_READ_ONLY must be one of 1, true, yes, on, 0, false, no, off, not 'maybe'" in result.stderr
    )


def test_a_file_that_is_not_a_database_is_left_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("Not a database, and long enough to be sure of it. " * 50)
    before = file.read_bytes()
    result = dittybag(tmp_path, "serve", "--db", str(file), status=5)
    assert "This file is not a Dittybag database" in result.stderr
    assert str(file) in result.stderr
    assert file.read_bytes() == before
