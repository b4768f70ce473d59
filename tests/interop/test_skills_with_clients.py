"""Official clients, FastMCP and the Inspector read skills, and check every digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from tests.contracts.library_fixtures import write_files
from tests.interop.client_drivers import (
    DRIVERS,
    HTTP,
    STATELESS,
    STDIO,
    TRANSPORTS,
    Driver,
    run,
    serve_dittybag,
)
from tests.interop.environments import FASTMCP
from tests.interop.test_inspector import run_inspector
from tests.skill_samples import FIELDS, LIBRARY

IDENTIFIER = "io.modelcontextprotocol/skills"
PROMPT = "skill://stored-prompts/greet/SKILL.md"


@pytest.fixture(params=TRANSPORTS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Dittybag with a library of skills."""
    write_files(tmp_path / "home" / "libraries" / "acme", LIBRARY)
    with serve_dittybag(request.param, tmp_path / "home") as server:
        yield server


def expected_files() -> dict[str, str]:
    """Return the digest of every file of every skill, by URI without escapes."""
    return {
        f"skill://acme/{path}": f"sha256:{hashlib.sha256(_bytes(content)).hexdigest()}"
        for path, content in LIBRARY.items()
        if path.startswith("skills/")
    }


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_an_official_client_reads_every_skill(driver: Driver, server: dict[str, Any]) -> None:
    seen = run(msgspec.structs.replace(driver, suite="skills"), {"server": server})
    assert {unquote(uri): digest for uri, digest in seen["files"].items()} == expected_files()
    forms = next(entry for entry in seen["entries"] if entry["frontmatter"]["name"] == "pdf-forms")
    assert forms["frontmatter"] == FIELDS
    assert "skill://acme/skills/pdf-forms/templates" in seen["folders"]["skill://acme/skills/pdf-forms"]
    if driver.discovers_server:
        assert seen["extensions"] == {IDENTIFIER: {"directoryRead": True}}


def test_fastmcp_reads_every_skill(server: dict[str, Any]) -> None:
    seen = run(Driver("fastmcp", FASTMCP, STATELESS, suite="skills"), {"server": server})
    assert seen["version"] == STATELESS
    assert {unquote(uri): digest for uri, digest in seen["files"].items()} == expected_files()
    assert FIELDS in [entry["frontmatter"] for entry in seen["entries"]]


@pytest.mark.parametrize(("era", "server"), [("legacy", HTTP), ("modern", STDIO)], indirect=["server"])
def test_the_inspector_verifies_every_skill(server: dict[str, Any], era: str, tmp_path: Path) -> None:
    kind = {"type": "streamable-http"} if "url" in server else {}
    config = tmp_path / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"dittybag": {**server, **kind, "protocolEra": era}}}))
    options = ("--config", str(config), "--server", "dittybag", "--method")
    prompt = {"name": "greet", "description": 'Says "hello": \\o/', "content": "Hello"}
    arguments = ("--tool-name", "create_prompt", "--tool-args-json", json.dumps(prompt))
    assert run_inspector(tmp_path, *options, "tools/call", *arguments).status == 0
    verified = run_inspector(tmp_path, *options, "skills/list", "--verify")
    assert verified.status == 0, verified
    found = {report["uri"]: report for report in verified.reports}
    assert found.keys() == {f"skill://acme/{path}" for path in LIBRARY if path.endswith("/SKILL.md")} | {
        PROMPT
    }
    assert {report["outcome"] for report in found.values()} == {"verified"}, found
    assert not [issue for report in found.values() for issue in report["conformance"] + report["frontmatter"]]
    listed = run_inspector(
        tmp_path, *options, "resources/directory/read", "--uri", "skill://acme/skills/pdf-forms"
    )
    assert len(listed.result["resources"]) == 5


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content
