"""The connect page: configuration snippets, connect buttons and live calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck, Screen
from tests.e2e.sample_home import fill_home
from tests.e2e.web_server_process import WebServerProcess


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServerProcess]:
    """A server of a user whose home folder contains only Cursor's folder."""
    home, user_home = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("user")
    (user_home / ".cursor").mkdir()
    fill_home(home)
    with WebServerProcess(
        home, variables={"HOME": str(user_home), "XDG_CONFIG_HOME": str(user_home / ".config")}
    ) as server:
        yield server


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_the_page_is_accessible_on_every_screen(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck, screen: Screen
) -> None:
    server.call("search", query="password", limit=1)
    page = windows.open(server, "/p/auth-module/connect", screen)
    page.get_by_text("Manual setup: HTTP").first.click()
    check_page(page, f"connect-{screen.name}")


def test_the_buttons_connect_and_disconnect_a_client(
    server: WebServerProcess, windows: BrowserWindows, tmp_path: Path
) -> None:
    page = windows.open(server, "/p/auth-module/connect")
    card = page.get_by_role("region", name="Cursor")
    assert card.get_by_text("installed").is_visible()
    card.get_by_role("button", name="Connect Cursor").click()
    page.get_by_text("Cursor is now connected").wait_for()
    assert page.get_by_role("region", name="Cursor").get_by_text("connected", exact=True).is_visible()
    listed = server.dittybag("connect", "--json")
    assert '"state":"connected"' not in listed, "the command runs with another home folder"
    card.get_by_role("button", name="Disconnect Cursor").click()
    page.get_by_text("Cursor is no longer connected").wait_for()
    assert card.get_by_role("button", name="Connect Cursor", exact=True).is_visible()


def test_the_snippet_is_what_the_button_writes(server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(server, "/p/auth-module/connect")
    region = page.get_by_role("region", name="Claude Code", exact=True)
    region.get_by_text("Manual setup: local (stdio)").click()
    snippet = json.loads(page.locator("#config-claude-code").inner_text())
    file = Path(region.locator("code").first.inner_text())
    assert not file.exists()
    region.get_by_role("button", name="Connect Claude Code").click()
    page.get_by_text("Claude Code is now connected").wait_for()
    assert json.loads(file.read_text()) == snippet
    entry = snippet["mcpServers"]["dittybag"]
    assert entry["args"][-5:] == ["serve", "--project", "auth-module", "--profile", "agent"]
    assert entry["env"] == {"DITTYBAG_HOME": str(server.home)}


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("Gemini CLI", "{ not JSON"),
        ("Windsurf", '{"mcpServers": {"dittybag": {"command": "other", "args": []}}}'),
    ],
)
def test_a_file_that_cannot_be_edited_is_left_unchanged(
    server: WebServerProcess, windows: BrowserWindows, client: str, text: str
) -> None:
    page = windows.open(server, "/p/auth-module/connect")
    region = page.get_by_role("region", name=client)
    region.get_by_text("Manual setup: local (stdio)").click()
    file = Path(region.locator("code").first.inner_text())
    file.parent.mkdir(parents=True)
    file.write_text(text)
    region.get_by_role("button", name=f"Connect {client}").click()
    assert "nothing was changed" in page.get_by_role("alert").inner_text()
    assert file.read_text() == text
    # The browser logs the error status of the response.
    assert [problem for problem in windows.problems if "409" not in problem] == []
    windows.problems.clear()


def test_calls_appear_live(server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(server, "/p/auth-module/connect")
    page.get_by_text("Live", exact=True).wait_for()
    server.call("search", client="a-new-agent", query="password", limit=1)
    row = page.get_by_role("row").filter(has_text="a-new-agent")
    row.wait_for(timeout=1000)
    assert "search" in row.inner_text()
