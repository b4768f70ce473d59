"""Install links contain the entry that `dittybag connect` writes."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from dittybag.clients.connector import ConfigTarget, Launch, connect
from dittybag.clients.install_links import install_link
from dittybag.clients.known_clients import CLIENTS, LocalMachine
from tests.stdio_server_process import ROOT

LAUNCH = Launch(
    "/opt/Ünder & co/dittybag", (), ("serve", "--project", "a+b/c?d"), {"DITTYBAG_HOME": "/data 1"}
)


def decode(link: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the entry, as the clients read them."""
    if link.startswith("https://insiders.vscode.dev/redirect?url="):
        link = unquote(link.partition("=")[2])
    if link.startswith("vscode:mcp/install?"):
        entry = json.loads(unquote(link.partition("?")[2]))
        return entry.pop("name"), entry
    address = urlsplit(link)
    assert address[:3] in (
        ("cursor", "anysphere.cursor-deeplink", "/mcp/install"),
        ("https", "cursor.com", "/en/install-mcp"),
    )
    values = parse_qs(address.query, strict_parsing=True)
    return values["name"][0], json.loads(base64.b64decode(values["config"][0], validate=True))


@pytest.mark.parametrize("name", ["vscode", "cursor"])
def test_a_link_contains_the_entry_that_connect_writes(name: str, tmp_path: Path) -> None:
    client = CLIENTS[name]
    machine = LocalMachine({}, "linux", tmp_path, tmp_path)
    target = ConfigTarget.resolve(client, "user", machine, "dittybag")
    assert target is not None
    connect(target, LAUNCH, str(tmp_path / "data"))
    written = json.loads(target.file.read_text())[client.format.key]["dittybag"]
    link = install_link(name, "dittybag", LAUNCH.entry(client))
    assert link is not None
    assert decode(link) == ("dittybag", written)


def test_exactly_the_clients_with_a_documented_scheme_have_links() -> None:
    for name, client in CLIENTS.items():
        link = install_link(name, "dittybag", LAUNCH.entry(client))
        assert (link is not None) == (name in ("cursor", "vscode"))


@pytest.mark.parametrize("name", ["vscode", "cursor"])
def test_the_readme_has_the_links(name: str) -> None:
    """As links to `https:`, which lead to the other ones."""
    launch = Launch("dittybag", (), ("serve", "--project", "auto", "--profile", "agent"))
    found = re.search(
        rf"\[{CLIENTS[name].title}\]\((https://\S+install\S+)\)", (ROOT / "README.md").read_text()
    )
    assert found is not None
    assert decode(found[1]) == ("dittybag", launch.entry(CLIENTS[name]))
