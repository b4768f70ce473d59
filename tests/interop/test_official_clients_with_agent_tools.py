"""Official clients and FastMCP's call every tool of the profile `agent` and validate the answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dittybag.contracts.profiles import PROFILES
from tests.interop.agent_plan import AgentCall, Contents, Json, Refusal, agent_calls, write_library
from tests.interop.client_drivers import (
    DRIVERS,
    HANDSHAKE,
    STATELESS,
    STDIO,
    TRANSPORTS,
    Driver,
    run,
    serve_dittybag,
)
from tests.interop.environments import FASTMCP
from tests.repetitions import IS_FULL

FASTMCP_DRIVERS = [
    Driver("fastmcp-auto", FASTMCP, STATELESS, mode="auto"),
    Driver("fastmcp-handshake", FASTMCP, HANDSHAKE, mode="legacy"),
]
CLIENTS = [*DRIVERS, *FASTMCP_DRIVERS]
#: The transports take turns: other tests run every client over both.
PAIRS = [
    (driver, transport)
    for number, driver in enumerate(CLIENTS)
    for transport in (TRANSPORTS if IS_FULL else TRANSPORTS[number % 2 :][:1])
]
TOOLS = {tool.name: tool for tool in PROFILES["agent"].tools}


@pytest.fixture
def server(transport: str, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Dittybag with a library and an empty store."""
    write_library(tmp_path / "home")
    with serve_dittybag(transport, tmp_path / "home", "--profile", "agent") as server:
        yield server


@pytest.mark.parametrize("sessions", [True, False])
def test_every_tool_is_called_and_refuses_something(sessions: bool) -> None:
    calls = agent_calls(sessions=sessions)
    refused = {call.tool for call in calls if isinstance(call.expected, Refusal)}
    answered = {call.tool for call in calls if not isinstance(call.expected, Refusal)}
    assert refused == answered == TOOLS.keys()


@pytest.mark.parametrize(
    ("driver", "transport"), PAIRS, ids=[f"{driver.name}-{transport}" for driver, transport in PAIRS]
)
def test_a_client_calls_every_tool(driver: Driver, transport: str, server: dict[str, Any]) -> None:
    calls = agent_calls(sessions=transport == STDIO or not driver.stateless)
    plan = {"server": server, "calls": [(call.tool, call.arguments, call.answer) for call in calls]}
    seen = run(msgspec.structs.replace(driver, suite="agent"), plan)
    assert {tool["name"]: tool.get("outputSchema") for tool in seen["tools"]} == {
        name: tool.output for name, tool in TOOLS.items()
    }
    for call, found in zip(calls, seen["calls"], strict=True):
        check_answer(call, found["result"])
        assert found["output"] == [], call
        fits_schema = not isinstance(call.expected, Refusal) or call.expected.fits_schema
        assert (found["input"] == []) is fits_schema, (call, found["input"])
    assert [form["requestedSchema"]["required"] for form in seen["forms"]] == [["who"], ["position"]]


@pytest.mark.parametrize("driver", CLIENTS, ids=lambda driver: driver.name)
def test_a_client_works_in_the_project_of_its_roots(driver: Driver, tmp_path: Path) -> None:
    root = tmp_path / "web shop"
    root.mkdir()
    with serve_dittybag(STDIO, tmp_path / "home", "--profile", "agent", "--project", "auto") as server:
        server["cwd"] = server["env"]["HOME"] = str(tmp_path)
    calls: list[tuple[str, Json, Json]] = [
        ("search", {"query": "zebra"}, {}),
        ("save_prompt", {"name": "a", "content": "A zebra"}, {}),
        ("search", {"query": "zebra"}, {}),
        ("project", {}, {}),
    ]
    plan = {"server": server, "calls": calls, "roots": [root.as_uri()]}
    seen = run(msgspec.structs.replace(driver, suite="agent"), plan)
    before, _, after, project = (call["result"]["structuredContent"] for call in seen["calls"])
    assert (before["total"], after["total"]) == (0, 1)
    assert project["current"] == "web shop"
    assert project["projects"][-1] == {"name": "web shop", "prompts": 1, "resources": 0, "tasks": 0}


def check_answer(call: AgentCall, result: Json) -> None:
    """Compare an answer with the expected one."""
    *blocks, last = result["content"]
    expected = call.expected
    if isinstance(expected, str):
        assert (blocks, result.get("isError", False)) == ([], False), (call, result)
        assert expected in last["text"], (call, result)
        return
    data = json.loads(last["text"])
    assert result.get("isError", False) is isinstance(expected, Refusal), (call, result)
    assert ("structuredContent" in result) is isinstance(expected, dict), (call, result)
    if isinstance(expected, Refusal):
        assert (blocks, data["error"]["code"]) == ([], expected.code), (call, result)
        assert expected.message in data["error"]["message"], (call, result)
    elif isinstance(expected, Contents):
        assert not expected.blocks or blocks == expected.blocks, (call, result)
        assert expected.described.items() <= data.items(), (call, result)
    else:
        assert (blocks, data) == ([], result["structuredContent"]), (call, result)
        assert expected.items() <= data.items(), (call, result)
