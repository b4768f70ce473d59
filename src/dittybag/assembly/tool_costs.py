"""How many tokens the tool definitions of each profile cost a client."""

from __future__ import annotations

from typing import Any, cast

from msgspec import Struct

from dittybag.domain.token_estimate import estimate_tokens


class ToolCost(Struct, frozen=True):
    """The size of a profile's tool list."""

    profile: str
    tools: int
    bytes: int
    #: An estimate.
    tokens: int


def tool_costs() -> list[ToolCost]:
    """The size of the tool list of every profile."""
    from dittybag.contracts.profiles import PROFILES

    return [_cost(profile) for profile in PROFILES.values()]


def _cost(profile: Any) -> ToolCost:
    from dittybag.contracts.profiles import visible_tools
    from dittybag.contracts.tool_specs import ServerScope
    from dittybag.protocol.eras.revisions import REVISIONS
    from dittybag.protocol.eras.versions import NEWEST_HANDSHAKE
    from dittybag.protocol.jsonrpc import encode
    from dittybag.protocol.server import Server

    server = Server(profile.server_name, profile.server_version)
    # The listing of a tool does not depend on its scope.
    no_scope = cast("ServerScope", None)
    for tool in visible_tools(profile, read_only=False, toolsets=()):
        server.add(tool.bind(no_scope))
    revision = REVISIONS[NEWEST_HANDSHAKE]
    listed = [server.tool_info(tool, revision) for tool in server.tools.values()]
    text = encode(listed) if listed else b""
    return ToolCost(profile.name, len(listed), len(text), estimate_tokens(text.decode()))
