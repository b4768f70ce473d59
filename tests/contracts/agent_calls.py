"""Calls of the tools of the profile `agent`, whose results are checked: their size, schema and text."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from dittybag.domain.token_estimate import estimate_tokens
from dittybag.protocol.argument_schemas import find_violations
from tests.contracts.contract_replay import Json, ServerUnderTest

#: Maximum number of tokens of results, unless a call says otherwise.
DEFAULT_LIMITS: Final = {"read": 6_000}
USUAL_LIMIT: Final = 8_000


def tokens(result: Json) -> int:
    """Return the size of a result: the tokens of its texts, without images and audio."""
    texts = [
        block["text"] if block["type"] == "text" else json.dumps({**block, "data": ""}, ensure_ascii=False)
        for block in result["content"]
    ]
    return sum(map(estimate_tokens, texts))


class AgentCalls:
    """A client that only calls tools."""

    def __init__(self, server: ServerUnderTest) -> None:
        self.server = server
        self.tools = server.tools()

    def call(self, tool: str, /, **arguments: Any) -> Json:
        """Call a tool and check its result."""
        result: Json = self.server.call(tool, **arguments)
        limit = arguments.get("max_tokens") or DEFAULT_LIMITS.get(tool, USUAL_LIMIT)
        limit = limit if isinstance(limit, int) and limit >= 1000 else USUAL_LIMIT
        assert tokens(result) <= limit, (tool, arguments, tokens(result))
        schema = self.tools[tool].get("outputSchema")
        if result["isError"] or schema is None:
            assert "structuredContent" not in result
            return result
        structured = result["structuredContent"]
        assert find_violations(structured, schema) == []
        assert structured.keys() <= schema["properties"].keys(), structured
        (content,) = result["content"]
        assert msgspec.json.decode(content["text"]) == structured
        return result

    def data(self, tool: str, /, **arguments: Any) -> Json:
        """Call a tool that succeeds and return its data."""
        result = self.call(tool, **arguments)
        assert not result["isError"], result
        structured: Json = result["structuredContent"]
        return structured

    def error(self, tool: str, /, **arguments: Any) -> tuple[str, str]:
        """Call a tool that fails and return the code and the message."""
        result = self.call(tool, **arguments)
        assert result["isError"], result
        (content,) = result["content"]
        error = msgspec.json.decode(content["text"])["error"]
        assert error.keys() == {"code", "message"}
        return error["code"], error["message"]

    def read(self, ref: str, **arguments: Any) -> tuple[list[Json], Json]:
        """Read something and return the content blocks and the description."""
        result = self.call("read", ref=ref, **arguments)
        assert not result["isError"], result
        *blocks, description = result["content"]
        described: Json = msgspec.json.decode(description["text"])
        return blocks, described

    def read_text(self, ref: str, **arguments: Any) -> str:
        """Read a whole text by following the offsets."""
        pieces = []
        offset: int | None = 0
        while offset is not None:
            blocks, described = self.read(ref, offset=offset, **arguments)
            pieces += [block["text"] for block in blocks]
            offset = described.get("next_offset")
            assert ("more" in described) is (offset is not None)
        return "".join(pieces)

    def use_prompt(self, ref: str, **arguments: Any) -> str:
        """Render a prompt of one message and return its text."""
        (message,) = self.data("use_prompt", ref=ref, arguments=arguments)["messages"]
        assert message["role"] == "user"
        text: str = message["text"]
        return text
