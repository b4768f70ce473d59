"""How each client is told of a server that it reaches over HTTP: the lines to paste."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from dittybag.clients.known_clients import CLIENTS

#: Stands for a token, which nobody but its owner knows.
TOKEN: Final = "dittybag_YOUR_TOKEN"  # noqa: S105


class Lines(Struct, frozen=True):
    """What to do with which lines."""

    #: Where they go: the name of a file, or nothing for lines that are run in a terminal.
    file: str | None
    text: str


def lines(client: str, address: str, *, needs_token: bool) -> Lines:
    """How a client is told of the server at `address`."""
    header = {"Authorization": f"Bearer {TOKEN}"} if needs_token else {}
    return _WRITERS[client](address, header)


def _claude_code(address: str, header: dict[str, str]) -> Lines:
    extra = "".join(f' --header "{name}: {value}"' for name, value in header.items())
    return Lines(None, f"claude mcp add --scope user --transport http dittybag {address}{extra}")


def _codex(address: str, header: dict[str, str]) -> Lines:
    text = f'[mcp_servers.dittybag]\nurl = "{address}"\n'
    if header:
        text += "\n[mcp_servers.dittybag.http_headers]\n"
        text += "".join(f'{name} = "{value}"\n' for name, value in header.items())
    return Lines(CLIENTS["codex"].user_file, text.rstrip("\n"))


def _claude_desktop(address: str, header: dict[str, str]) -> Lines:
    # It starts programs only; this one passes on what it is told.
    arguments = ["-y", "mcp-remote", address]
    for name, value in header.items():
        arguments += ["--header", f"{name}:{value}"]
    entry = {"command": "npx", "args": arguments}
    return Lines(CLIENTS["claude-desktop"].user_file, _json("mcpServers", entry))


def _entry(client: str, container: str, key: str, **more: str) -> Callable[[str, dict[str, str]], Lines]:
    def write(address: str, header: dict[str, str]) -> Lines:
        entry: dict[str, Any] = {**more, key: address} | ({"headers": header} if header else {})
        return Lines(CLIENTS[client].user_file, _json(container, entry))

    return write


def _json(container: str, entry: dict[str, Any]) -> str:
    return json.dumps({container: {"dittybag": entry}}, indent=2, ensure_ascii=False)


_WRITERS: Final[dict[str, Callable[[str, dict[str, str]], Lines]]] = {
    "claude-code": _claude_code,
    "claude-desktop": _claude_desktop,
    "cursor": _entry("cursor", "mcpServers", "url"),
    "vscode": _entry("vscode", "servers", "url", type="http"),
    "codex": _codex,
    "gemini": _entry("gemini", "mcpServers", "httpUrl"),
    "windsurf": _entry("windsurf", "mcpServers", "serverUrl"),
    "zed": _entry("zed", "context_servers", "url"),
}
