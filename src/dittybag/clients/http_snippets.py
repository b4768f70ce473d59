"""Configuration snippets that connect each client to a server over HTTP, for users to paste."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from dittybag.clients.known_clients import CLIENTS

#: A placeholder: the server does not know the user's token.
TOKEN: Final = "dittybag_YOUR_TOKEN"  # noqa: S105


class ConfigSnippet(Struct, frozen=True):
    """Lines for a configuration file, or a command."""

    #: The name of the file; `None` for a command to run in a terminal.
    file: str | None
    text: str


def http_snippet(client: str, address: str, *, needs_token: bool) -> ConfigSnippet:
    """The snippet that connects a client to the server at `address`."""
    header = {"Authorization": f"Bearer {TOKEN}"} if needs_token else {}
    return _WRITERS[client](address, header)


def _claude_code(address: str, header: dict[str, str]) -> ConfigSnippet:
    extra = "".join(f' --header "{name}: {value}"' for name, value in header.items())
    return ConfigSnippet(None, f"claude mcp add --scope user --transport http dittybag {address}{extra}")


def _codex(address: str, header: dict[str, str]) -> ConfigSnippet:
    text = f'[mcp_servers.dittybag]\nurl = "{address}"\n'
    if header:
        text += "\n[mcp_servers.dittybag.http_headers]\n"
        text += "".join(f'{name} = "{value}"\n' for name, value in header.items())
    return ConfigSnippet(CLIENTS["codex"].user_file, text.rstrip("\n"))


def _claude_desktop(address: str, header: dict[str, str]) -> ConfigSnippet:
    # Claude Desktop only starts programs; mcp-remote forwards to the HTTP server.
    arguments = ["-y", "mcp-remote", address]
    for name, value in header.items():
        arguments += ["--header", f"{name}:{value}"]
    entry = {"command": "npx", "args": arguments}
    return ConfigSnippet(CLIENTS["claude-desktop"].user_file, _json("mcpServers", entry))


def _entry(
    client: str, container: str, key: str, **more: str
) -> Callable[[str, dict[str, str]], ConfigSnippet]:
    def write(address: str, header: dict[str, str]) -> ConfigSnippet:
        entry: dict[str, Any] = {**more, key: address} | ({"headers": header} if header else {})
        return ConfigSnippet(CLIENTS[client].user_file, _json(container, entry))

    return write


def _json(container: str, entry: dict[str, Any]) -> str:
    return json.dumps({container: {"dittybag": entry}}, indent=2, ensure_ascii=False)


_WRITERS: Final[dict[str, Callable[[str, dict[str, str]], ConfigSnippet]]] = {
    "claude-code": _claude_code,
    "claude-desktop": _claude_desktop,
    "cursor": _entry("cursor", "mcpServers", "url"),
    "vscode": _entry("vscode", "servers", "url", type="http"),
    "codex": _codex,
    "gemini": _entry("gemini", "mcpServers", "httpUrl"),
    "windsurf": _entry("windsurf", "mcpServers", "serverUrl"),
    "zed": _entry("zed", "context_servers", "url"),
}
