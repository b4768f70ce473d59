"""Generates docs/reference/http.md from real servers: `python -m tests.http.http_reference`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import msgspec

from dittybag.web.routes import ROUTES
from tests.cli.cli_runner import data, dittybag
from tests.http.plain_http_client import BOTH, HANDSHAKE, JSON, PlainHttpClient
from tests.http.spawned_server import SpawnedServer
from tests.stdio_server_process import ROOT

REFERENCE: Path = ROOT / "docs" / "reference" / "http.md"

#: The part of the page above this line is not generated.
MARKER = "<!-- Generated below this line by: python -m tests.http.http_reference -->\n"

SCOPES: Final = ("read", "write", "admin")
_LIST: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
_INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


class Call(NamedTuple):
    """A request to record."""

    method: str
    path: str
    body: object = None
    #: Whether it names a session, which is opened before.
    in_session: bool = False


CALLS: Final = (
    Call("POST", "/mcp", _LIST),
    Call("GET", "/mcp", in_session=True),
    Call("DELETE", "/mcp", in_session=True),
    Call("GET", "/mcp"),
    Call("PUT", "/mcp"),
    Call("HEAD", "/"),
    Call("POST", "/", {"method": "tools/list"}),
    Call("GET", "/"),
    Call("PUT", "/"),
    Call("GET", "/healthz"),
    Call("GET", "/readyz"),
    Call("GET", "/metrics"),
    Call("POST", "/metrics"),
    Call("GET", "/sign-in"),
    Call("POST", "/sign-in"),
    Call("POST", "/sign-in/link"),
    Call("POST", "/sign-out"),
    Call("POST", "/appearance"),
    Call("GET", "/static/dittybag.css"),
    Call("GET", "/favicon.ico"),
    Call("GET", "/p/default/prompts"),
    Call("GET", "/anything-else"),
)


def recorded_statuses() -> Iterator[list[int]]:
    """Yield the statuses of all calls, for each kind of access."""
    with TemporaryDirectory() as folder:
        home = Path(folder)
        with SpawnedServer.product(home) as server:
            yield _statuses(server.port, None)
        dittybag(home, "user", "add", "ann")
        tokens = [
            data(dittybag(home, "token", "create", "--user", "ann", "--scope", scope, "--json"))["token"]
            for scope in SCOPES
        ]
        with SpawnedServer.product(home, "--auth", "tokens") as server:
            for token in (None, *tokens):
                yield _statuses(server.port, token)


def _statuses(port: int, token: str | None) -> list[int]:
    with PlainHttpClient(port) as client:
        return [_status(client, call, token) for call in CALLS]


def _status(client: PlainHttpClient, call: Call, token: str | None) -> int:
    headers = [JSON, BOTH]
    if token is not None:
        headers.append(("Authorization", f"Bearer {token}"))
    if call.in_session:
        opened = client.send("POST", headers, msgspec.json.encode(_INITIALIZE))
        with closing(opened):
            headers.append(("Mcp-Session-Id", opened.headers.get("Mcp-Session-Id", "none")))
    body = b"" if call.body is None else msgspec.json.encode(call.body)
    with closing(client.send(call.method, headers, body, call.path)) as reply:
        return reply.status


def render_page() -> str:
    """Return the reference page."""
    columns = list(recorded_statuses())
    parts = [REFERENCE.read_text().partition(MARKER)[0] + MARKER, "## Recorded answers\n"]
    parts += [
        "| request | no authentication | no token | `read` | `write` | `admin` |",
        "|---|---|---|---|---|---|",
    ]
    for call, *statuses in zip(CALLS, *columns, strict=True):
        session = " in a session" if call.in_session else ""
        shown = " | ".join(map(str, statuses))
        parts.append(f"| `{call.method} {call.path}`{session} | {shown} |")
    parts += ["\n## Pages of the web UI\n", *_web_pages()]
    return "\n".join(parts).rstrip("\n") + "\n"


def _web_pages() -> Iterator[str]:
    yield "Below `/p/PROJECT`. They serve the web UI and are no API: they may change with every release.\n"
    yield "| path | methods |\n|---|---|"
    paths: dict[str, list[str]] = {}
    for route in ROUTES:
        paths.setdefault(route.pattern, []).append(route.method)
    paths["/live"] = ["GET"]
    for path in sorted(paths):
        yield f"| `{path}` | {', '.join(sorted(set(paths[path])))} |"


if __name__ == "__main__":
    REFERENCE.write_text(render_page())
