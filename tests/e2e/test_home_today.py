"""Home: what is due, the latest changes, and clients."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Page, expect

from dittybag.assembly.workspace_session import with_workspace
from dittybag.cli.sample_workspace import PROJECT, fill_demo, write_library
from dittybag.config import settings
from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck, Screen
from tests.e2e.web_server_process import WebServerProcess

HOME = f"/p/{PROJECT}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServerProcess]:
    """A server with the workspace of the demo."""
    home = tmp_path_factory.mktemp("home")
    # Playwright already runs an event loop in this thread.
    with ThreadPoolExecutor(1) as executor:
        executor.submit(with_workspace, settings({"DITTYBAG_HOME": os.fspath(home)}), fill_demo).result()
    write_library(home)
    with WebServerProcess(home, "--project", PROJECT) as server:
        for client in ("codex", "cursor"):
            server.call("create_resource", client=client, name=client, uri=f"file:///{client}", content="x")
        yield server


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_home_shows_today(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck, screen: Screen
) -> None:
    page = windows.open(server, HOME, screen)
    assert page.locator("#due .feed-day").all_inner_texts() == ["Overdue", "Today", "Next days"]
    titles = page.locator("#due .home-title").all_inner_texts()
    assert titles[:2] == ["Rotate the signing key", "Answer the auditors"]
    expect(page.locator("#due li", has_text="Hash passwords")).to_contain_text("claude-code")
    expect(page.locator("#due li", has_text="Cover the login")).to_contain_text("waits for 1")
    _check_actors(page)
    names = page.locator("#clients .home-title").all_inner_texts()
    assert sorted(names) == ["claude-code", "codex", "cursor"]
    check_page(page, f"today-{screen.name}")
    task = page.locator("#due li", has_text="Log failed logins")
    task.get_by_role("button", name="Complete Log failed logins").click()
    expect(page.locator("#toast")).to_contain_text("Completed ‘Log failed logins’")
    expect(task).to_have_count(0)
    page.locator("#toast").get_by_role("button", name="Undo").click()
    expect(task).to_have_count(1)


def _check_actors(page: Page) -> None:
    """Check that agents differ in letters and colours, and people in shape."""
    agents = page.locator("#changes .mark.agent")
    marks = agents.evaluate_all(
        "marks => marks.map((mark) => [mark.textContent, getComputedStyle(mark).backgroundColor])"
    )
    assert {letters for letters, _ in marks} == {"CC", "Co", "Cu"}
    assert len({colour for _, colour in marks}) == 3
    shapes = [
        page.locator(f"#changes .mark.{kind}").first.evaluate("mark => getComputedStyle(mark).borderRadius")
        for kind in ("agent", "person")
    ]
    assert shapes[1] == "50%" != shapes[0]


def test_the_latest_changes_appear_and_are_undone(server: WebServerProcess, windows: BrowserWindows) -> None:
    page = windows.open(server, HOME)
    page.get_by_text("Live", exact=True).wait_for()
    server.call("create_prompt", client="zed", name="one", content="x")
    newest = page.locator("#changes .change").first
    expect(newest).to_contain_text("zed created prompt one")
    expect(page.locator("#count-prompts b")).to_have_text("6")
    newest.get_by_role("button", name="Undo").click()
    expect(page.locator(".note")).to_have_text("Deleted “one”")
    expect(page.locator("#count-prompts b")).to_have_text("5")
    page.get_by_role("button", name="Redo").click()
    expect(page.locator("#count-prompts b")).to_have_text("6")
