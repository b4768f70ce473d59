"""The reference page of HTTP has every path, header and status of the code, and the answers of servers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from dittybag.assembly.web_setup import _is_web_path
from dittybag.http.routes import METADATA_PATHS
from tests.cli.cli_runner import data, dittybag
from tests.http.plain_http_client import BOTH, JSON, PlainHttpClient, request
from tests.http.spawned_server import SpawnedServer
from tests.stdio_server_process import ROOT

REFERENCE = ROOT / "docs" / "reference" / "http.md"
CODE = "\n".join(file.read_text() for file in sorted((ROOT / "src" / "dittybag" / "http").glob("*.py")))
#: Headers of every HTTP server, and those that only the web UI reads.
STANDARD_HEADERS = {"connection", "content-length", "cache-control", "x-accel-buffering"}


def _section(title: str) -> str:
    return REFERENCE.read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]


class Call(NamedTuple):
    """A row of the table: a request, and its status without authentication, without a token and by scope."""

    method: str
    path: str
    is_in_session: bool
    statuses: list[int]

    def status(self, client: PlainHttpClient, token: str) -> int:
        headers = [JSON, BOTH, *([("Authorization", f"Bearer {token}")] if token else [])]
        if self.is_in_session:
            reply = client.post(request("initialize", {"protocolVersion": "2025-11-25"}), headers)
            headers.append(("Mcp-Session-Id", reply.headers.get("Mcp-Session-Id", "none")))
        body = msgspec.json.encode(request("tools/list")) if self.method == "POST" else b""
        with closing(client.send(self.method, headers, body, self.path)) as reply:
            return reply.status


def calls() -> Iterator[Call]:
    row = r"^\| `([A-Z]+) (/\S*)`( in a session)? \|([ |0-9]+)\|$"
    rows = re.findall(row, REFERENCE.read_text(), re.MULTILINE)
    for method, path, session, statuses in rows:
        yield Call(method, path, bool(session), [int(status) for status in statuses.split("|")])


CALLS = list(calls())


def test_servers_give_the_answers_of_the_page(tmp_path: Path) -> None:
    assert len(CALLS) > 20
    with SpawnedServer.product(tmp_path) as server, PlainHttpClient(server.port) as client:
        answers = [[call.status(client, "")] for call in CALLS]
    dittybag(tmp_path, "user", "add", "ann")
    tokens = [
        data(dittybag(tmp_path, "token", "create", "--user", "ann", "--scope", scope, "--json"))["token"]
        for scope in ("read", "write", "admin")
    ]
    with (
        SpawnedServer.product(tmp_path, "--auth", "tokens") as server,
        PlainHttpClient(server.port) as client,
    ):
        for call, found in zip(CALLS, answers, strict=True):
            found += [call.status(client, token) for token in ("", *tokens)]
    assert {call[:3]: found for call, found in zip(CALLS, answers, strict=True)} == {
        call[:3]: call.statuses for call in CALLS
    }


def test_the_page_has_every_path() -> None:
    paths = set(re.findall(r'"(/[a-z]+)": operations\.', CODE)) | {"/", "/mcp"}
    assert len(paths) == 5
    for path in paths:
        assert f"\n| `{path}` | " in _section("Paths")
        assert path in {call.path for call in CALLS}
    assert METADATA_PATHS[1] == f"{METADATA_PATHS[0]}/mcp"
    assert f"`{METADATA_PATHS[0]}`, also followed by `/mcp`" in _section("Paths")
    for call in CALLS:
        if _is_web_path(call.method, call.path) and call.path != "/":
            first = "/".join(call.path.split("/")[:2])
            assert f"`{first}" in _section("Paths")


def test_the_page_has_every_status() -> None:
    found = re.findall(r"\b(?:HttpError|respond|_fail|_refuse)\(\s*(?:request, )?(\d{3})\b", CODE)
    found += re.findall(r"^    [A-Z_]+: (\d{3}),$", CODE, re.MULTILINE)
    listed = re.findall(r"^\| (\d{3}) \|", _section("Statuses"), re.MULTILINE)
    # Only the web UI redirects.
    assert sorted(set(found) | {"303"}) == listed


def test_the_page_has_every_header() -> None:
    names = set(re.findall(r'\bb"([a-z]+(?:-[a-z]+)+|accept|host|origin|allow|authorization)"', CODE))
    page = (_section("Request headers") + _section("Response headers")).lower()
    missing = {name for name in names - STANDARD_HEADERS if f"`{name}`" not in page}
    assert missing == set()
