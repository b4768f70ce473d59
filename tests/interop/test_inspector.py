"""The CLI of the official Inspector, with each way of negotiating a revision."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.http.spawned_server import SpawnedServer
from tests.interop.client_drivers import (
    HANDSHAKE,
    HTTP,
    STATELESS,
    STDIO,
    TRANSPORTS,
    everything_stdio_config,
    read_exits,
)
from tests.interop.environments import INSPECTOR, NODE
from tests.repetitions import IS_FULL

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


class InspectorRun(Struct, frozen=True):
    status: int
    result: dict[str, Any]
    errors: str
    #: With `--verify`: a report on each skill.
    reports: tuple[dict[str, Any], ...] = ()


Inspect = Callable[..., InspectorRun]


#: The Inspector's names of eras, and the revision that it agrees on.
ERAS = {"legacy": HANDSHAKE, "auto": STATELESS, "modern": STATELESS}

#: Era and transport. Each era and each transport is tried with every method; `make torture` tries all pairs.
ALL_PAIRS = [(era, transport) for era in ERAS for transport in TRANSPORTS]
PAIRS = ALL_PAIRS if IS_FULL else [("legacy", HTTP), ("modern", STDIO)]


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    era, transport = request.param
    return era, transport


@pytest.fixture(scope="module")
def listener() -> Iterator[SpawnedServer]:
    with SpawnedServer.everything() as server:
        yield server


@pytest.fixture
def inspect(listener: SpawnedServer, pair: tuple[str, str], tmp_path: Path) -> Inspect:
    """Run the Inspector with one method, and check the server afterwards."""
    report = tmp_path / "exits"
    era, transport = pair
    over_stdio = transport == STDIO
    server = (
        everything_stdio_config(report)
        if over_stdio
        else {"type": "streamable-http", "url": listener.address}
    )
    servers = {"mcpServers": {"everything": {**server, "protocolEra": era}}}
    config = tmp_path / "servers.json"
    config.write_text(json.dumps(servers))

    def run(method: str, *options: str) -> InspectorRun:
        done = run_inspector(
            tmp_path, "--config", str(config), "--server", "everything", "--method", method, *options
        )
        if over_stdio:
            assert read_exits(report)[-1] == {"status": 0, "signals": []}
        else:
            assert listener.is_running
            assert listener.log() == ""
        return done

    return run


def run_inspector(home: Path, *arguments: str) -> InspectorRun:
    """Run the Inspector's CLI, with `home` as its home directory."""
    done = subprocess.run(
        [str(NODE), str(PROGRAM), "--cli", *arguments, "--format", "json"],
        cwd=home,
        # The Inspector writes to the home directory and the keychain: isolate it from the user's own.
        env={**os.environ, "HOME": str(home), "MCP_INSPECTOR_SECRET_STORE": "memory"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.stdout, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if "--verify" in arguments:
        return InspectorRun(done.returncode, {}, done.stderr, tuple(lines))
    (answer,) = lines
    return InspectorRun(done.returncode, answer["result"], done.stderr)


@pytest.mark.parametrize("pair", ALL_PAIRS, ids="-".join, indirect=True)
def test_the_inspector_connects_in_the_revision_of_its_era(inspect: Inspect, pair: tuple[str, str]) -> None:
    run = inspect("initialize")
    assert run.status == 0, run.errors
    assert run.result["protocolVersion"] == ERAS[pair[0]]
    assert run.result["serverInfo"]["name"] == "everything"


@pytest.mark.parametrize(
    ("method", "member", "key", "expected"),
    [
        ("tools/list", "tools", "name", {"add", "test_simple_text"}),
        ("prompts/list", "prompts", "name", {"test_simple_prompt", "test_prompt_with_arguments"}),
        ("resources/list", "resources", "uri", {"test://static-text", "test://static-binary"}),
        ("resources/templates/list", "resourceTemplates", "uriTemplate", {"test://template/{id}/data"}),
    ],
)
def test_the_inspector_lists(
    inspect: Inspect, method: str, member: str, key: str, expected: set[str]
) -> None:
    run = inspect(method)
    assert run.status == 0, run.errors
    assert expected <= {item[key] for item in run.result[member]}


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


def test_the_inspector_connects_to_dittybag_with_only_its_url(tmp_path: Path) -> None:
    with SpawnedServer.product(tmp_path) as server:
        arguments = ("--tool-name", "task_create", "--tool-arg", "title=Look at it")
        created = run_inspector(tmp_path, server.address, "--method", "tools/call", *arguments)
        listed = run_inspector(tmp_path, server.address, "--method", "tools/call", "--tool-name", "task_list")
    assert (created.status, listed.status) == (0, 0), created.errors + listed.errors
    assert [task["title"] for task in listed.result["structuredContent"]["tasks"]] == ["Look at it"]
