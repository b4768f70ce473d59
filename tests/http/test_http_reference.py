"""The reference page of HTTP is up to date, and has every path, header and status of the code."""

from __future__ import annotations

import re

from dittybag.assembly.web_setup import _is_web_path
from dittybag.http.routes import METADATA_PATHS
from tests.http.http_reference import CALLS, REFERENCE, render_page
from tests.stdio_server_process import ROOT

CODE = "\n".join(file.read_text() for file in sorted((ROOT / "src" / "dittybag" / "http").glob("*.py")))
#: Headers of every HTTP server, and those that only the web UI reads.
STANDARD_HEADERS = {"connection", "content-length", "cache-control", "x-accel-buffering"}


def _section(title: str) -> str:
    return REFERENCE.read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_page_of_http_is_current() -> None:
    assert REFERENCE.read_text() == render_page(), "run python -m tests.http.http_reference"


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
