"""The Connect page says which clients are installed, connected or broken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from tests.clients.test_install_links import decode
from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient


@pytest.fixture
def user_home(tmp_path: Path) -> Path:
    folder = tmp_path / "user"
    folder.mkdir()
    return folder


@pytest.fixture
def browser(tmp_path: Path, user_home: Path) -> Iterator[BrowserClient]:
    variables = {
        "HOME": str(user_home),
        "XDG_CONFIG_HOME": str(user_home / ".config"),
        "PATH": "/nowhere",
    }
    with WebServerProcess(tmp_path / "home", variables=variables) as server:
        yield BrowserClient.sign_in(server)


def client_card(browser: BrowserClient, client: str) -> str:
    """Return the part of the page about a client."""
    page = unescape(browser.get("/p/default/connect").text)
    flags = re.DOTALL
    found = re.search(rf'<section class="card client" aria-labelledby="{client}">.*?</section>', page, flags)
    assert found is not None
    return found[0]


def connect(browser: BrowserClient, client: str) -> None:
    response = browser.post(f"/p/default/connect/{client}", {"form_secret": browser.secret})
    assert response.status == 303


def test_a_client_is_not_installed_because_of_what_was_written_for_it(
    browser: BrowserClient, user_home: Path
) -> None:
    connect(browser, "cursor")
    assert '<span class="badge good">connected' in client_card(browser, "cursor")
    # Without the entry, its folder and its file alone do not make it an installed client.
    (user_home / ".cursor" / "mcp.json").write_text("{}")
    assert "badge" not in client_card(browser, "cursor")
    (user_home / ".cursor" / "extensions").mkdir()
    assert '<span class="badge info">installed' in client_card(browser, "cursor")


def test_a_broken_entry_is_reported_and_can_be_replaced(browser: BrowserClient, user_home: Path) -> None:
    file = user_home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    entry = {"command": "/nowhere/dittybag", "args": ["serve", "--db", "/nowhere/demo.db"]}
    file.write_text(json.dumps({"mcpServers": {"dittybag": entry}}))
    card = client_card(browser, "cursor")
    assert '<span class="badge bad">broken' in card
    assert "The entry 'dittybag' is broken: the program /nowhere/dittybag does not exist." in card
    connect(browser, "cursor")
    card = client_card(browser, "cursor")
    assert '<span class="badge good">connected' in card
    assert "badge bad" not in card


def test_install_links_start_this_installation(browser: BrowserClient, user_home: Path) -> None:
    for client, file, key in (
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("vscode", ".config/Code/User/mcp.json", "servers"),
    ):
        link = re.search(r'<a href="((?:cursor|vscode):[^"]+)">', client_card(browser, client))
        assert link is not None
        connect(browser, client)
        written = json.loads((user_home / file).read_text())[key]["dittybag"]
        assert decode(link[1]) == ("dittybag", written)
        assert f'href="{client}:' not in client_card(browser, client)
