"""The calls that every Python client makes to Dittybag; prints what it received as JSON.

Each call of the plan has a tool, its arguments, and the user's answer if the server asks for something. `$ID`
in the arguments is the id in the last result with one. The plan may also have the URIs of the client's roots.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from interop_scenario import Json
from jsonschema import Draft202012Validator


class Roots:
    """The roots of a client, in the types of the SDK; empty if it has none."""

    def __init__(self, plan: Json, types: Any) -> None:
        self._result = types.ListRootsResult(roots=[{"uri": uri} for uri in plan.get("roots", ())])

    def as_keywords(self) -> Json:
        return {"list_roots_callback": self._list} if self._result.roots else {}

    async def _list(self, context: Any) -> Any:
        return self._result


async def call_tools(
    tools: list[Json], call: Callable[[str, Json, Json], Awaitable[Json]], plan: Json
) -> Json:
    """Make the calls. `tools`: as the server lists them; `call`: sends a call and returns its result."""
    inputs = {tool["name"]: _validator(tool["inputSchema"]) for tool in tools}
    outputs = {tool["name"]: _validator(tool["outputSchema"]) for tool in tools if "outputSchema" in tool}
    calls, last = [], ""
    for tool, arguments, answer in plan["calls"]:
        arguments = json.loads(json.dumps(arguments).replace("$ID", last))  # noqa: PLW2901
        result = await call(tool, arguments, answer)
        structured = result.get("structuredContent")
        last = str((structured or {}).get("id", last))
        calls.append(
            {
                "result": result,
                "input": _violations(inputs[tool], arguments),
                "output": [] if structured is None else _violations(outputs[tool], structured),
            }
        )
    return {"tools": tools, "calls": calls}


def _validator(schema: Json) -> Draft202012Validator:
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def _violations(validator: Any, value: object) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]
