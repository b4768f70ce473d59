"""How soon open pages show what others change."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e.conftest import BrowserWindows
from tests.e2e.test_task_pages import TASKS, add_task, card, task_server, wait_until_live
from tests.e2e.web_server_process import WebServerProcess

__all__ = ["task_server"]


def test_a_task_added_by_an_agent_appears_within_a_second(
    task_server: WebServerProcess, windows: BrowserWindows
) -> None:
    pages = [windows.open(task_server, TASKS + query) for query in ("?by=priority", "?view=list&sort=newest")]
    for page in pages:
        wait_until_live(page)
        page.get_by_label("New task").fill("Half a thou")
    add_task(task_server, "From an agent <b>", priority=5)
    for page in pages:
        expect(card(page, "From an agent <b>")).to_be_visible(timeout=1000)
        expect(page.get_by_label("New task")).to_have_value("Half a thou")
