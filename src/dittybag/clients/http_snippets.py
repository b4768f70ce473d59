"""Configuration snippets that connect each client to a server over HTTP, for users to paste."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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
    codex = CLIENTS["codex"]
    text = f'[{codex.format.key}.dittybag]\nurl = "{address}"\n'
    if header:
        text += f"\n[{codex.format.key}.dittybag.http_headers]\n"
        text += "".join(f'{name} = "{value}"\n' for name, value in header.items())
    return ConfigSnippet(codex.user_file, text.rstrip("\n"))


def _claude_desktop(address: str, header: dict[str, str]) -> ConfigSnippet:
    # Claude Desktop only starts programs; mcp-remote forwards to the HTTP server.
    arguments = ["-y", "mcp-remote", address]
    for name, value in header.items():
        arguments += ["--header", f"{name}:{value}"]
    return _json_snippet("claude-desktop", {"command": "npx", "args": arguments})


def _entry(client: str, key: str, **more: str) -> Callable[[str, dict[str, str]], ConfigSnippet]:
    def write(address: str, header: dict[str, str]) -> ConfigSnippet:
        entry = {**more, key: address}
        return _json_snippet(client, {**entry, "headers": header} if header else entry)

    return write


def _json_snippet(client: str, entry: Mapping[str, Any]) -> ConfigSnippet:
    known = CLIENTS[client]
    text = json.dumps({known.format.key: {"dittybag": entry}}, indent=2, ensure_ascii=False)
    return ConfigSnippet(known.user_file, text)


_WRITERS: Final[dict[str, Callable[[str, dict[str, str]], ConfigSnippet]]] = {
    "claude-code": _claude_code,
    "claude-desktop": _claude_desktop,
    "cursor": _entry("cursor", "url"),
    "vscode": _entry("vscode", "url", type="http"),
    "codex": _codex,
    "gemini": _entry("gemini", "httpUrl"),
    "windsurf": _entry("windsurf", "serverUrl"),
    "zed": _entry("zed", "url"),
}
