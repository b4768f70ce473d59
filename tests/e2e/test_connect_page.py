"""Connect: the lines for every client, the button, and calls as they arrive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import LOOKS, Checked, Look, Visits
from tests.e2e.sample_home import fill
from tests.e2e.web_server_process import Served


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for somebody whose home is empty but for Cursor's folder."""
    home, person = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("person")
    (person / ".cursor").mkdir()
    fill(home)
    with Served(home, variables={"HOME": str(person), "XDG_CONFIG_HOME": str(person / ".config")}) as served:
        yield served


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
def test_it_looks_well(served: Served, visits: Visits, checked: Checked, look: Look) -> None:
    served.call("search", query="password", limit=1)
    page = visits.open(served, "/p/auth-module/connect", look)
    page.get_by_text("Manual setup: HTTP").first.click()
    checked(page, f"connect-{look.name}")


def test_the_button_does_what_the_command_does(served: Served, visits: Visits, tmp_path: Path) -> None:
    page = visits.open(served, "/p/auth-module/connect")
    card = page.get_by_role("region", name="Cursor")
    assert card.get_by_text("installed").is_visible()
    card.get_by_role("button", name="Connect Cursor").click()
    page.get_by_text("Cursor is now connected").wait_for()
    assert page.get_by_role("region", name="Cursor").get_by_text("connected", exact=True).is_visible()
    shown = served.dittybag("connect", "--json")
    assert '"state":"connected"' not in shown, "that is another person's home"


def test_the_lines_are_what_the_button_writes(served: Served, visits: Visits) -> None:
    page = visits.open(served, "/p/auth-module/connect")
    region = page.get_by_role("region", name="Claude Code", exact=True)
    region.get_by_text("Manual setup: local (stdio)").click()
    told = json.loads(page.locator("#config-claude-code").inner_text())
    file = Path(region.locator("code").first.inner_text())
    assert not file.exists()
    region.get_by_role("button", name="Connect Claude Code").click()
    page.get_by_text("Claude Code is now connected").wait_for()
    assert json.loads(file.read_text()) == told
    entry = told["mcpServers"]["dittybag"]
    assert entry["args"][-3:] == ["serve", "--project", "auth-module"]
    assert entry["env"] == {"DITTYBAG_HOME": str(served.home)}


def test_an_entry_of_somebody_else_can_come_back(served: Served, visits: Visits) -> None:
    page = visits.open(served, "/p/auth-module/connect")
    region = page.get_by_role("region", name="Windsurf")
    region.get_by_text("Manual setup: local (stdio)").click()
    file = Path(region.locator("code").first.inner_text())
    file.parent.mkdir(parents=True)
    theirs = '{"mcpServers": {"dittybag": {"command": "other"}}}'
    file.write_text(theirs)
    page.reload()
    assert page.get_by_text("starts another program; connecting replaces it").is_visible()
    page.get_by_role("button", name="Connect Windsurf").click()
    page.get_by_text("dittybag connect windsurf --remove restores it").wait_for()
    assert json.loads(file.read_text())["mcpServers"]["dittybag"]["command"] != "other"


def test_a_file_that_cannot_be_read_is_left_alone(served: Served, visits: Visits) -> None:
    page = visits.open(served, "/p/auth-module/connect")
    region = page.get_by_role("region", name="Gemini CLI")
    region.get_by_text("Manual setup: local (stdio)").click()
    file = Path(region.locator("code").first.inner_text())
    file.parent.mkdir(parents=True)
    file.write_text("{ not JSON")
    region.get_by_role("button", name="Connect Gemini CLI").click()
    assert "nothing was changed" in page.get_by_role("alert").inner_text()
    assert file.read_text() == "{ not JSON"
    # The browser itself notes that the answer was no success.
    assert [problem for problem in visits.problems if "409" not in problem] == []
    visits.problems.clear()


def test_calls_show_up_as_they_arrive(served: Served, visits: Visits) -> None:
    page = visits.open(served, "/p/auth-module/connect")
    page.get_by_text("Live", exact=True).wait_for()
    served.call("search", client="a-new-agent", query="password", limit=1)
    row = page.get_by_role("row").filter(has_text="a-new-agent")
    row.wait_for(timeout=1000)
    assert "search" in row.inner_text()
