"""The command line of the official Inspector, in each way it can agree on a revision with the fixture."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.interop.drivers import HANDSHAKE, STATELESS, ends, fixture_command
from tests.interop.environments import INSPECTOR, NODE

PROGRAM = (
    INSPECTOR.home
    / "node_modules"
    / "@modelcontextprotocol"
    / "inspector"
    / "clients"
    / "launcher"
    / "build"
    / "index.js"
)
SECONDS = 30.0
#: The exit status for a tool that failed.
TOOL_FAILED = 5


class Run(Struct, frozen=True):
    status: int
    result: dict[str, Any]
    errors: str


Inspect = Callable[..., Run]


@pytest.fixture(
    params=[("legacy", HANDSHAKE), ("auto", STATELESS), ("modern", STATELESS)], ids=lambda era: era[0]
)
def era(request: pytest.FixtureRequest) -> tuple[str, str]:
    name, version = request.param
    return name, version


@pytest.fixture
def inspect(era: tuple[str, str], tmp_path: Path) -> Inspect:
    """Runs the Inspector with one method; the fixture must have ended cleanly afterwards."""
    report = tmp_path / "ends"
    servers = {"mcpServers": {"fixture": {**fixture_command(report), "protocolEra": era[0]}}}
    config = tmp_path / "servers.json"
    config.write_text(json.dumps(servers))

    def run(method: str, *options: str) -> Run:
        done = subprocess.run(
            [
                *(str(NODE), str(PROGRAM), "--cli", "--config", str(config), "--server", "fixture"),
                *("--format", "json", "--method", method, *options),
            ],
            cwd=tmp_path,
            # The Inspector keeps files at home and secrets in the keychain: not those of whoever runs this.
            env={**os.environ, "HOME": str(tmp_path), "MCP_INSPECTOR_SECRET_STORE": "memory"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.stdout, done.stderr
        assert ends(report)[-1] == {"status": 0, "signals": []}
        return Run(done.returncode, json.loads(done.stdout)["result"], done.stderr)

    return run


def test_the_inspector_connects_in_the_revision_of_its_era(inspect: Inspect, era: tuple[str, str]) -> None:
    run = inspect("initialize")
    assert run.status == 0, run.errors
    assert run.result["protocolVersion"] == era[1]
    assert run.result["serverInfo"]["name"] == "everything"


@pytest.mark.parametrize(
    ("method", "member", "key", "some"),
    [
        ("tools/list", "tools", "name", {"add", "test_simple_text"}),
        ("prompts/list", "prompts", "name", {"test_simple_prompt", "test_prompt_with_arguments"}),
        ("resources/list", "resources", "uri", {"test://static-text", "test://static-binary"}),
        ("resources/templates/list", "resourceTemplates", "uriTemplate", {"test://template/{id}/data"}),
    ],
)
def test_the_inspector_lists(inspect: Inspect, method: str, member: str, key: str, some: set[str]) -> None:
    run = inspect(method)
    assert run.status == 0, run.errors
    assert some <= {item[key] for item in run.result[member]}


def test_the_inspector_calls_a_tool(inspect: Inspect) -> None:
    run = inspect("tools/call", "--tool-name", "add", "--tool-arg", "a=2", "--tool-arg", "b=40")
    assert run.status == 0, run.errors
    assert run.result["structuredContent"] == {"sum": 42}


def test_the_inspector_shows_why_a_tool_failed(inspect: Inspect) -> None:
    run = inspect("tools/call", "--tool-name", "book_table", "--tool-args-json", '{"guests": 0}')
    assert run.status == TOOL_FAILED
    assert run.result["isError"] is True
    assert "`guests` must be at least 1" in run.result["content"][0]["text"]


def test_the_inspector_gets_a_prompt(inspect: Inspect) -> None:
    arguments = ("--prompt-args", "arg1=one", "--prompt-args", "arg2=two")
    run = inspect("prompts/get", "--prompt-name", "test_prompt_with_arguments", *arguments)
    assert run.status == 0, run.errors
    (message,) = run.result["messages"]
    assert message["content"]["text"] == "Prompt with arguments: arg1='one', arg2='two'"


@pytest.mark.parametrize(
    ("uri", "member", "beginning"),
    [
        ("test://static-text", "text", "This is the content"),
        ("test://static-binary", "blob", "iVBORw0KGgo"),
        ("test://template/7/data", "text", '{"id": "7"'),
    ],
)
def test_the_inspector_reads_a_resource(inspect: Inspect, uri: str, member: str, beginning: str) -> None:
    run = inspect("resources/read", "--uri", uri)
    assert run.status == 0, run.errors
    (contents,) = run.result["contents"]
    assert contents["uri"] == uri
    assert contents[member].startswith(beginning)
