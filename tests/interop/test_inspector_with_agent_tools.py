"""The Inspector's command line calls every tool of the profile `agent`."""

from __future__ import annotations

import json
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

import pytest

from dittybag.contracts.profiles import PROFILES
from tests.interop.agent_plan import SHORT_CALLS, Json, Refusal, write_library
from tests.interop.client_drivers import HANDSHAKE, HTTP, TRANSPORTS, Driver, run, serve_dittybag
from tests.interop.environments import PYTHON_1
from tests.interop.test_inspector import ALL_PAIRS, TOOL_FAILED, run_inspector
from tests.interop.test_official_clients_with_agent_tools import check_answer
from tests.repetitions import IS_FULL

#: Runs the validator of JSON schemas.
VALIDATOR = Driver("recorded", PYTHON_1, HANDSHAKE, suite="recorded")


def _names(pairs: list[tuple[str, str]]) -> str:
    return "+".join("-".join(pair) for pair in pairs)


# The Inspector starts a process for each call, which takes a second.
@pytest.mark.skipif(not IS_FULL, reason="runs in make torture")
@pytest.mark.parametrize("pairs", [[pair] for pair in ALL_PAIRS], ids=_names)
def test_the_inspector_calls_every_tool(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_library(home)
    with ExitStack() as stack:
        transports: dict[str, Json] = {
            name: stack.enter_context(serve_dittybag(name, home, "--profile", "agent")) for name in TRANSPORTS
        }
        transports[HTTP]["type"] = "streamable-http"
        servers = {_names([pair]): {**transports[pair[1]], "protocolEra": pair[0]} for pair in pairs}
        config = tmp_path / "servers.json"
        config.write_text(json.dumps({"mcpServers": servers}))
        turns = cycle(("--config", str(config), "--server", name, "--method") for name in servers)
        # With this option, the exit status says whether other hosts understand the schemas, too.
        listed = run_inspector(tmp_path, *next(turns), "tools/list", "--strict")
        assert listed.status == 0, listed.errors
        results = []
        for call in SHORT_CALLS:
            options = ("--tool-name", call.tool, "--tool-args-json", json.dumps(call.arguments))
            done = run_inspector(tmp_path, *next(turns), "tools/call", *options)
            assert done.status == (TOOL_FAILED if isinstance(call.expected, Refusal) else 0), (call, done)
            check_answer(call, done.result)
            results.append(done.result)
    tools = listed.result["tools"]
    assert {tool["name"] for tool in tools} == {call.tool for call in SHORT_CALLS}
    assert [tool["name"] for tool in tools] == [tool.name for tool in PROFILES["agent"].tools]
    calls = [(call.tool, call.arguments, call.answer) for call in SHORT_CALLS]
    seen = run(VALIDATOR, {"tools": tools, "calls": calls, "results": results})
    assert [found["output"] for found in seen["calls"]] == [[]] * len(calls)
